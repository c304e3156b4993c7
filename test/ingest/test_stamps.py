from __future__ import annotations

import pytest

from memory_node.ingest.converters import Refused
from memory_node.ingest.stamps import NS, Stamped, StampLimits, sane_stamp

NOW = 1_000_000 * NS
LIMITS = StampLimits(max_ahead=2.0, max_age=600.0)


@pytest.mark.parametrize(
    ("stamp", "expected"),
    [
        (NOW - NS, Stamped(NOW - NS, "header")),
        (NOW + 2 * NS, Stamped(NOW + 2 * NS, "header")),
        (NOW - 600 * NS, Stamped(NOW - 600 * NS, "header")),
        (None, Stamped(NOW, "receive")),
        (0, Stamped(NOW, "receive: stamp 0")),
        (NOW + 3600 * NS, Stamped(NOW, "receive: stamp ahead of the clock")),
        (NOW - 515_220 * NS, Stamped(NOW, "receive: stamp too old")),
    ],
)
def test_f4_f5_insane_stamps_give_way_to_the_time_of_arrival(stamp: int | None, expected: Stamped) -> None:
    assert sane_stamp(stamp, NOW, LIMITS) == expected


def test_f5_negative_stamps_are_refused() -> None:
    with pytest.raises(Refused, match="negative stamp"):
        sane_stamp(-NS, NOW, LIMITS)


@pytest.mark.parametrize("stamp", [None, 0, 1, NOW])
def test_f3_nothing_is_stamped_before_the_clock_starts(stamp: int | None) -> None:
    with pytest.raises(Refused, match="clock has not started"):
        sane_stamp(stamp, 0, LIMITS)


def test_simulation_time_just_above_zero_is_legal() -> None:
    assert sane_stamp(120_000_000, 150_000_000, LIMITS) == Stamped(120_000_000, "header")
    assert sane_stamp(1, NS, LIMITS) == Stamped(1, "header")
