"""What use earns: importance and retrievability are functions of blocks and time."""

from __future__ import annotations

import pytest

from memory_node.housekeeping.importance import (
    EARNED_CAP,
    FIRST_STABILITY,
    MAX_WAITING,
    Recalls,
    earned_importance,
    retrievability,
    stability,
)


@pytest.mark.parametrize(
    ("base", "blocks", "expected"),
    [(0.5, 0, 0.5), (0.5, 2, 0.6), (0.5, 1000, EARNED_CAP), (1.0, 3, 1.0), (0.0, 1, 0.05)],
)
def test_importance_is_earned_by_steps_and_capped_under_what_a_writer_can_set(
    base: float, blocks: int, expected: float
) -> None:
    assert earned_importance(base, blocks) == pytest.approx(expected)


def test_retrievability_is_nine_tenths_after_the_stability() -> None:
    assert retrievability(100.0, 0.0) == 1.0
    assert retrievability(100.0, 100.0) == pytest.approx(0.9)
    assert retrievability(100.0, 1000.0) == pytest.approx((1 + 190 / 81) ** -0.5)
    assert retrievability(100.0, -5.0) == 1.0


def test_each_block_of_recalls_makes_a_memory_last_longer() -> None:
    assert stability(0) == FIRST_STABILITY and stability(3) == 8 * FIRST_STABILITY
    assert stability(10_000) < 1e12


def test_recalls_that_nobody_writes_down_stay_bounded() -> None:
    recalls = Recalls()
    recalls.note(range(MAX_WAITING + 10), 7)
    taken = recalls.take(10 * MAX_WAITING)
    assert len(taken) == MAX_WAITING and min(taken) == 10 and recalls.take(1) == {}
