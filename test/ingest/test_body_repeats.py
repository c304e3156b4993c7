"""Equal readings of the body are counted on one row, and what is asked of the body is answered as if each had one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.fakes import SECOND, FakeClock

from memory_node.graph import EVENTS_LAYER, Filter
from memory_node.ingest.buffer import Entry, Repeat
from memory_node.memory import Memory
from memory_node.storage.body import LONGEST, values_before
from memory_node.tools.results import BodyReading

Open = Callable[[bool], Memory]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def open_memory(tmp_path: Path, clock: FakeClock) -> Iterator[Open]:
    opened = []

    def open_one(fold: bool) -> Memory:
        settings = {"fold_repeats": fold, "stale_after": 5.0, "trend_window": 60.0}
        opened.append(Memory.open(tmp_path / f"{fold}.db", clock=clock, settings=settings))
        return opened[-1]

    yield open_one
    for memory in opened:
        memory.close()


def say(memory: Memory, value: float | None, text: str = "", at: tuple[float, float, float] | None = None) -> int:
    return memory.record_body_state(text or f"battery: {value} %", layer="battery", value=value, unit="%", position=at)


def live(memory: Memory, clock: FakeClock, *values: float, every: float = 0.5) -> list[int]:
    ids = []
    for value in values:
        clock.advance(every)
        ids.append(say(memory, value))
    memory.flush()
    return ids


def reading(memory: Memory) -> BodyReading:
    (found,) = memory.body_status().readings
    return found


def counts(memory: Memory) -> tuple[int, int, int]:
    (layer,) = memory.status().layers
    return layer.received, layer.stored, layer.folded


def test_an_unchanged_reading_is_a_count(open_memory: Open, clock: FakeClock) -> None:
    memory = open_memory(True)
    ids = live(memory, clock, *[50.0] * 100)
    assert len(set(ids)) == 1 and memory.status().observations == 1
    assert counts(memory) == (100, 1, 99)
    (row,) = memory.nodes()
    assert (row.repeats, row.stamp, row.last_stamp) == (100, clock.ns - round(49.5 * SECOND), clock.ns)


def test_what_differs_from_the_last_reading_is_a_row(open_memory: Open, clock: FakeClock) -> None:
    memory = open_memory(True)
    rows = live(memory, clock, 50.0, 49.0, 50.0)
    clock.advance(1)
    rows += [say(memory, 50.0, "charging"), say(memory, None, "charging"), say(memory, None, "charging")]
    rows += [say(memory, None, "charging", (3.0, 0.0, 0.0))]  # where the robot moved
    clock.advance(61)
    rows += [say(memory, None, "charging", (3.0, 0.0, 0.0))]  # after more than fold_window
    assert len(set(rows)) == len(rows) - 1 and rows[4] == rows[5]


def test_a_row_stands_for_an_hour_at_most(open_memory: Open, clock: FakeClock) -> None:
    memory = open_memory(True)
    live(memory, clock, *[50.0] * 400, every=30.0)
    assert reading(memory).age == 0.0
    lasted = [(row.repeats, row.last_stamp - row.stamp) for row in memory.nodes()]
    assert lasted == [(121, LONGEST)] * 3 + [(37, 36 * 30 * SECOND)]


def test_a_folded_reading_is_fresh_until_it_is_stale(open_memory: Open, clock: FakeClock) -> None:
    memory = open_memory(True)
    live(memory, clock, *[50.0] * 40)
    assert (reading(memory).stamp, reading(memory).age, reading(memory).is_stale) == (clock.ns, 0.0, False)
    clock.advance(6)
    assert (reading(memory).age, reading(memory).is_stale) == (6.0, True)


@pytest.mark.parametrize(
    "values",
    [
        [50.0] * 300,
        [50.0] * 30,
        [60.0] * 200 + [55.0] * 30 + [50.0] * 30,
        [60.0] * 400 + [58.0] + [50.0] * 100,
        [60.0] * 60 + [50.0] * 140,
        [60.0, 59.0] * 100,
    ],
)
def test_status_and_events_are_those_of_rows_that_are_not_folded(
    open_memory: Open, clock: FakeClock, values: list[float]
) -> None:
    found = []
    for fold in (True, False):
        clock.set(1000.0)
        memory = open_memory(fold)
        live(memory, clock, *values)
        events = memory.temporal_query(Filter(layers=(EVENTS_LAYER,))).matches
        found.append((reading(memory), [(event.text, event.stamp, event.last_stamp) for event in events]))
    assert found[0] == found[1]


def late(memory: Memory, clock: FakeClock, value: float, behind: float) -> None:
    """A reading that comes so many seconds after its stamp."""
    memory.record_body_state(
        f"battery: {value} %", layer="battery", value=value, unit="%", stamp=clock.ns - round(behind * SECOND)
    )
    memory.flush()


@pytest.mark.parametrize("fold", [True, False])
def test_the_latest_reading_is_that_of_the_newest_stamp_whatever_comes_late(
    open_memory: Open, clock: FakeClock, fold: bool
) -> None:
    memory = open_memory(fold)
    live(memory, clock, *[80.0] * 120)
    for value, behind in ((20.0, 30.0), (30.0, 20.0), *[(20.0 + i / 10, 50.0 - i / 10) for i in range(400)]):
        late(memory, clock, value, behind)
    assert (reading(memory).value, reading(memory).age, reading(memory).change) == (80.0, 0.0, 0.0)
    live(memory, clock, 79.0)
    assert (reading(memory).value, reading(memory).age, reading(memory).change) == (79.0, 0.0, -1.0)


@pytest.mark.parametrize("fold", [True, False])
def test_the_latest_reading_is_the_newest_of_those_that_began_to_come_late(
    open_memory: Open, clock: FakeClock, fold: bool
) -> None:
    memory = open_memory(fold)
    live(memory, clock, *[80.0 - i / 100 for i in range(100)])
    clock.advance(1)
    for behind in range(50, -1, -1):  # they catch up with the present
        late(memory, clock, 20.0, behind)
    assert (reading(memory).value, reading(memory).age) == (20.0, 0.0)
    clock.advance(1)
    assert (reading(memory).value, reading(memory).age) == (20.0, 1.0)


@pytest.mark.parametrize("fold", [True, False])
def test_the_change_is_from_the_newest_reading_before_the_window(
    open_memory: Open, clock: FakeClock, fold: bool
) -> None:
    memory = open_memory(fold)
    live(memory, clock, *[80.0] * 120)
    late(memory, clock, 20.0, 30.0)  # 85 s ago in the end, where the window begins 60 s ago
    live(memory, clock, *[75.0] * 110)
    assert (reading(memory).value, reading(memory).change, reading(memory).window) == (75.0, -5.0, 60.0)


def test_what_events_are_judged_by_after_a_restart_is_in_the_order_of_time(open_memory: Open, clock: FakeClock) -> None:
    memory = open_memory(True)
    live(memory, clock, *[80.0] * 5, every=10.0)
    late(memory, clock, 20.0, 15.0)
    ago = [(-40, 80.0), (-30, 80.0), (-20, 80.0), (-15, 20.0), (-10, 80.0), (0, 80.0)]
    with memory._rooms.db.read() as conn:
        for most in (6, 3):
            found = values_before(conn, "battery", clock.ns + 1, 60 * SECOND, most, 0)
            assert [((stamp - clock.ns) / SECOND, value) for stamp, value in found] == ago[-most:]


def test_a_fall_after_a_long_rest_and_a_restart_is_an_event(open_memory: Open, clock: FakeClock) -> None:
    memory = open_memory(True)
    live(memory, clock, *[80.0] * 200)
    memory.close()
    memory = open_memory(True)
    live(memory, clock, 60.0)
    (event,) = memory.temporal_query(Filter(layers=(EVENTS_LAYER,))).matches
    assert event.text.startswith("battery dropped from 80% to 60%")


def test_a_repeat_of_a_reading_that_was_purged_is_a_reading_of_the_body(open_memory: Open, clock: FakeClock) -> None:
    memory = open_memory(True)
    (first,) = live(memory, clock, 50.0)
    assert memory.purge([first]) == 1
    (second,) = live(memory, clock, 50.0)
    assert second != first and reading(memory).value == 50.0
    assert memory.status().layers[0].is_internal_state


def test_a_repeat_of_a_row_that_was_refused_becomes_the_row(open_memory: Open, clock: FakeClock) -> None:
    memory = open_memory(True)
    live(memory, clock, 70.0)
    repeat = memory.nodes()[0]._replace(id=99, text_id=None, text="battery: 50.0 %", value=50.0, stamp=clock.ns + 1)
    clock.advance(1)
    memory._rooms.writer.write([Entry(repeats=(Repeat(repeat._replace(last_stamp=repeat.stamp)),), internal=True)])
    assert (reading(memory).value, reading(memory).stamp) == (50.0, repeat.stamp)
    assert [(row.id, row.repeats) for row in memory.nodes()][-1] == (99, 1)
