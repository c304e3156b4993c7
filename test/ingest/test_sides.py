"""A layer is either of perception or of the body, and no row moves it to the other side."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.fakes import FakeClock

from memory_node.errors import InvalidArgument
from memory_node.graph import Detection
from memory_node.memory import Memory


@pytest.mark.parametrize(
    "store",
    [
        lambda m, layer: m.store_specific_memory("the battery was swapped", layer),
        lambda m, layer: m.record("the battery was swapped", layer),
        lambda m, layer: m.record_detections([Detection("battery", 0.9)], layer),
    ],
)
@pytest.mark.parametrize("reopened", [False, True])
def test_f45_perception_is_refused_in_a_layer_of_the_body(
    tmp_path: Path, store: Callable[[Memory, str], Any], reopened: bool
) -> None:
    def check(memory: Memory) -> None:
        for name in ("battery", " battery "):
            with pytest.raises(InvalidArgument, match="layer: 'battery' tells of the robot's own body"):
                store(memory, name)
        assert [reading.text for reading in memory.body_status().readings] == ["battery: 50 %"]
        assert memory.temporal_query().matches == ()

    clock = FakeClock()
    with Memory.open(tmp_path / "memory.db", clock=clock) as memory:
        memory.record_body_state("battery: 50 %", "battery", 0.5)
        if not reopened:
            check(memory)
    if reopened:
        with Memory.open(tmp_path / "memory.db", clock=clock) as memory:
            check(memory)


def test_a_reading_is_refused_in_a_layer_of_perception(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "memory.db", clock=FakeClock()) as memory:
        memory.record("a red chair", "scene")
        for source in ({}, {"source": "interoception"}):
            with pytest.raises(InvalidArgument, match="layer: 'scene' is a layer of perception"):
                if source:
                    memory.record("scene: 7", "scene", **source)  # type: ignore[arg-type]
                else:
                    memory.record_body_state("scene: 7", "scene", 7.0)
        assert [match.text for match in memory.temporal_query().matches] == ["a red chair"]


def test_declaring_a_layer_anew_moves_it(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "memory.db", clock=FakeClock()) as memory:
        memory.record("battery: 50 %", "battery")
        memory.flush()
        memory.declare_layer("battery", True)
        memory.record_body_state("battery: 40 %", "battery", 0.4)
        assert memory.temporal_query().matches == ()
        assert [reading.text for reading in memory.body_status().readings] == ["battery: 40 %"]


def test_what_was_refused_decides_nothing(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "memory.db", clock=FakeClock()) as memory:
        with pytest.raises(InvalidArgument):
            memory.record("", "battery")
        memory.record_body_state("battery: 40 %", "battery", 0.4)
