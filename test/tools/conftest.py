"""A memory whose clock is set by hand, empty or with a morning at home in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.fakes import SECOND, FakeClock, WordEmbedder

from memory_node.graph import Detection, Pose
from memory_node.memory import Memory

START = 1_772_611_200  # 2026-03-04 08:00:00 UTC, a Wednesday

OpenMemory = Callable[..., Memory]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(START)


@pytest.fixture
def open_memory(tmp_path: Path, clock: FakeClock) -> Iterator[OpenMemory]:
    """Opens memories in the test's folder and closes them at its end."""
    opened: list[Memory] = []

    def open_one(name: str = "robot.db", embedder: object = None, **settings: object) -> Memory:
        memory = Memory.open(tmp_path / name, embedder=embedder, clock=clock, settings=settings)  # type: ignore[arg-type]
        opened.append(memory)
        return memory

    yield open_one
    for memory in opened:
        memory.close()


@pytest.fixture
def memory(open_memory: OpenMemory) -> Memory:
    """Empty, with an embedder that costs nothing."""
    return open_memory(embedder=WordEmbedder())


@pytest.fixture
def morning(memory: Memory, clock: FakeClock) -> Memory:
    """08:00 to 08:10: a patrol of the kitchen, with a thing moved, talk, body readings and a nested task."""
    patrol = memory.start_episode("Kitchen patrol")
    for minute in range(5):
        memory.update_pose(Pose(clock.ns, (minute * 1.0, 0.0, 0.0), 0.0))
        memory.record(
            "a kitchen with a white oven", layer="scene", position=(0.0, 0.0, 0.0), position_source="observer",
        )  # fmt: skip
        memory.record_detections(
            [Detection("chair", 0.9, position=(2.0, 1.0, 0.4)), Detection("red mug", 0.8, position=(3.0, -1.0, 0.9))],
            pose=(minute * 1.0, 0.0, 0.0, 0.0),
        )
        memory.record_body_state(f"battery: {80 - minute}%", layer="battery", value=80.0 - minute)
        clock.advance(60)
    memory.start_episode("water the fern", parent_id=patrol)
    memory.record("the fern is dry and brown", layer="scene", position=(4.0, 4.0, 1.0))
    clock.advance(120)
    memory.end_episode()
    memory.record("Anna said that the spare key is under the blue flower pot", layer="talk", importance=0.9)
    clock.advance(120)
    memory.end_episode()
    clock.advance(60)
    memory.update_pose(Pose(clock.ns - 2 * SECOND, (1.0, 0.0, 0.0), 1.5708))
    memory.record_body_state("battery: 70%", layer="battery", value=70.0)
    memory.flush()
    assert memory.wait_embedded(20.0)
    return memory
