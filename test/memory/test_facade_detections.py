"""What a detector's message may hold, and that a bad one takes nothing good with it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.fakes import FakeClock, WordEmbedder

from memory_node.errors import ConstraintError, InvalidArgument
from memory_node.graph import Detection, Kind, Node, Pose
from memory_node.ingest.buffer import Entry
from memory_node.memory import Memory

A = (2.0, 0.0, 0.5)
NAN = math.nan


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "robot.db", embedder=WordEmbedder(), clock=FakeClock()) as opened:
        yield opened


@pytest.mark.parametrize(
    "pose",
    [
        Pose(0, (NAN, 0.0, 0.0), 0.0),
        Pose(0, (math.inf, 0.0, 0.0), 0.0),
        Pose(0, (1e256, 0.0, 0.0), 0.0),
        Pose(0, (0.0, 0.0), 0.0),  # type: ignore[arg-type]
        Pose(0, (0.0, 0.0, 0.0), 0.0, stddev=NAN),
        Pose(0, (0.0, 0.0, 0.0), 0.0, stddev=-1.0),
        Pose(0, (0.0, 0.0, 0.0), "north"),  # type: ignore[arg-type]
        (0.0, 0.0, 0.0),
        "here",
        5,
    ],
)
def test_f21_a_pose_that_is_none_is_refused_and_what_else_waits_is_stored(memory: Memory, pose: object) -> None:
    memory.record("a good sentence", layer="scene")
    with pytest.raises(InvalidArgument) as caught:
        memory.record_detections([Detection("cup")], pose=pose)  # type: ignore[arg-type]
    assert caught.value.argument == "pose"
    memory.flush()
    assert [match.text for match in memory.temporal_query().matches] == ["a good sentence"]


def test_f22_a_pose_without_a_heading_is_a_place(memory: Memory) -> None:
    (id_,) = memory.record_detections([Detection("cup")], pose=Pose(0, (1.0, 2.0, 0.0), NAN))
    memory.flush()
    (match,) = memory.temporal_query().matches
    assert (match.id, match.position, match.position_source) == (id_, (1.0, 2.0, 0.0), "observer")


def test_a_row_that_sqlite_refuses_takes_no_good_row_with_it(tmp_path: Path) -> None:
    settings = {"flush_interval": 3600.0, "flush_batch_size": 1000}
    with Memory.open(tmp_path / "slow.db", embedder=WordEmbedder(), clock=FakeClock(), settings=settings) as memory:
        memory.record("before", layer="scene")
        bad = Node(memory._rooms.db.new_id(), Kind.OBSERVATION, "scene", "bad", None, 0, 0, position=(NAN, 0.0, 0.0))
        memory._rooms.buffer.add(Entry((bad,)))  # the door lets none such in
        memory.record("after", layer="scene")
        with pytest.raises(ConstraintError):
            memory.flush()
        assert sorted(match.text for match in memory.temporal_query().matches) == ["after", "before"]


@pytest.mark.parametrize("position", [(1.0, 2.0), "abc", (None, 1.0, 2.0), 5, (1.0, 2.0, 3.0, 4.0)])
def test_a_position_of_another_shape_is_named(memory: Memory, position: object) -> None:
    with pytest.raises(InvalidArgument) as caught:
        memory.record_detections([Detection("cup", 0.9, A), Detection("book", 0.9, position)])  # type: ignore[arg-type]
    assert caught.value.argument == "position"
    memory.flush()
    assert memory.status().observations == 0


def test_a_track_id_that_is_not_utf8_is_repaired(memory: Memory) -> None:
    memory.record_detections([Detection("cup", 0.9, A, "\ud800")])
    memory.flush()
    assert memory.entity_query("cup").total == 1


@pytest.mark.parametrize("ids", [1, 5, None, [], [[1]], ["1"], [1.5], [True], "12"])
def test_a_split_of_no_ids_names_them(memory: Memory, ids: object) -> None:
    for _ in range(3):
        memory.record_detections([Detection("cup", 0.9, A)])
    memory.flush()
    (cup,) = memory.entity_query("cup").entities
    with pytest.raises(InvalidArgument) as caught:
        memory.split_entity(cup.id, ids)  # type: ignore[arg-type]
    assert caught.value.argument == "observation_ids"


@pytest.mark.parametrize("id_", ["x", None, [1], 1.5, 1 << 70])
def test_a_split_of_no_entity_names_it(memory: Memory, id_: object) -> None:
    with pytest.raises(InvalidArgument) as caught:
        memory.split_entity(id_, [1])  # type: ignore[arg-type]
    assert caught.value.argument == "id"
