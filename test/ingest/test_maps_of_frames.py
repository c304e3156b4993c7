"""Which map positions belong to when nobody names one: those of another frame, or of another start, are none of now."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.fakes import FakeClock

from memory_node.graph import Detection, Filter, Pose
from memory_node.ingest.situation import map_name
from memory_node.memory import Memory


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(1000.0)


@contextmanager
def run(folder: Path, clock: FakeClock, **settings: Any) -> Iterator[Memory]:
    """One run of the robot; every run is a minute after the one before."""
    clock.advance(60)
    with Memory.open(folder / "memory.db", clock=clock, settings=settings) as memory:
        yield memory


def see_plant(memory: Memory, clock: FakeClock) -> None:
    for _ in range(3):
        memory.record_detections([Detection("plant", 0.9, (2.0, 0.0, 0.0))], pose=(0.0, 0.0, 0.0, 0.0))
        clock.advance(1)
    memory.flush()


def seen(memory: Memory, **filter: Any) -> int:
    """How many plants are told of near where it was stored, with everything else that tells a place."""
    found = len(memory.spatial_query((2.0, 0.0), 1.0, filter=Filter(**filter)).matches)
    assert memory.locate("plant", Filter(**filter)).found is bool(found)
    assert bool(memory.entity_query("plant", filter=Filter(**filter)).entities) is bool(found)
    return found


@pytest.mark.parametrize(
    ("frame", "given", "name"),
    [
        ("map", "", ""),
        ("robot1/map", "", ""),
        ("map", "floor-2", "floor-2"),
        ("odom", "", "odom/7"),
        ("robot1/odom", "", "robot1/odom/7"),
        ("odom", "floor-2", "floor-2"),
        ("world", "", "world"),
    ],
)
def test_names(frame: str, given: str, name: str) -> None:
    assert map_name(frame, given, 7) == name


def test_f25_odometry_begins_anew_at_each_start(tmp_path: Path, clock: FakeClock) -> None:
    with run(tmp_path, clock, frame="odom") as memory:
        see_plant(memory, clock)
        assert seen(memory) and memory.status().map_id == "odom/1"
    with run(tmp_path, clock, frame="odom") as memory:
        assert memory.status().map_id == "odom/2"
        assert not seen(memory) and seen(memory, any_map=True) and seen(memory, map_id="odom/1")
    with Memory.open(tmp_path / "memory.db", clock=clock, read_only=True) as memory:
        assert memory.status().map_id == "odom/2"


def test_f25_places_of_another_frame_are_none_of_the_present_one(tmp_path: Path, clock: FakeClock) -> None:
    with run(tmp_path, clock, frame="odom") as memory:
        see_plant(memory, clock)
    with run(tmp_path, clock, frame="world") as memory:
        assert not seen(memory)
        see_plant(memory, clock)
    with run(tmp_path, clock) as memory:
        assert not seen(memory) and seen(memory, any_map=True)
        memory.update_pose(Pose(clock.ns, (2.0, 0.0, 0.0), 0.0))
        assert memory.get_current_context().nearby == ()
    with run(tmp_path, clock, frame="world") as memory:
        assert seen(memory)


def test_a_named_map_holds_over_starts_in_any_frame(tmp_path: Path, clock: FakeClock) -> None:
    for known in (0, 3):
        with run(tmp_path, clock, frame="odom", map_id="hall") as memory:
            assert seen(memory) == known
            see_plant(memory, clock)


def test_a_clock_that_goes_back_begins_odometry_anew_and_one_that_jumps_ahead_does_not(
    tmp_path: Path, clock: FakeClock
) -> None:
    with run(tmp_path, clock, frame="odom") as memory:
        see_plant(memory, clock)
        clock.advance(40 * 86_400)
        assert memory.check_clock() == "clock jumped ahead"
        assert seen(memory) and memory.status().map_id == "odom/1"
        clock.set(10.0)
        assert memory.check_clock() == "clock went back"
        assert not seen(memory) and memory.status().map_id == "odom/3"


def test_without_a_name_again_the_frame_names_the_map(tmp_path: Path, clock: FakeClock) -> None:
    with run(tmp_path, clock, frame="world") as memory:
        see_plant(memory, clock)
        memory.set_map("hall")
        assert not seen(memory)
        memory.set_map("")
        assert seen(memory) and memory.status().map_id == "world"
