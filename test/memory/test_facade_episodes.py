"""Episodes through the facade: explicit ones nest and chain, others are linked by silence, a kill abandons."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support.fakes import FakeClock, WordEmbedder

from memory_node.errors import InvalidArgument
from memory_node.graph import Detection, EdgeType, Kind, Tier
from memory_node.memory import Memory
from memory_node.protocols import NamedThing, SummaryRow
from memory_node.storage import nodes

S = 1_000_000_000


def edge_pairs(memory: Memory, id: int, type: EdgeType) -> set[tuple[int, int]]:
    return {(edge.source, edge.target) for edge in memory.edges(id) if edge.type is type}


def test_episodes_nest_and_chain_and_rows_belong_to_the_innermost(tmp_path: Path) -> None:
    clock = FakeClock()
    with Memory.open(tmp_path / "robot.db", embedder=WordEmbedder(), clock=clock) as memory:
        outer = memory.start_episode("kitchen patrol")
        clock.advance(1)
        first = memory.record("the fridge hums", layer="scene", position=(1.0, 0.0, 0.0))
        inner = memory.start_episode("look for the cup")
        clock.advance(1)
        second = memory.record("a cup on the counter", layer="scene", position=(1.5, 0.0, 0.0))
        ended = memory.end_episode()
        clock.advance(1)
        third = memory.record("the tap drips", layer="scene", position=(1.0, 0.5, 0.0))
        assert ended.id == inner and "cup" in ended.summary
        memory.end_episode()
        following = memory.start_episode("bedroom check")
        memory.end_episode(status="abandoned")

        assert edge_pairs(memory, inner, EdgeType.SUBTASK_OF) == {(inner, outer)}
        assert edge_pairs(memory, following, EdgeType.FOLLOWS) == {(following, outer)}
        members = {node.id: node.episode_id for node in memory.nodes() if node.kind is Kind.OBSERVATION}
        assert members == {first: outer, second: inner, third: outer}
        (patrol, nested) = memory.episode_summary(task_name="KITCHEN").episodes
        assert (patrol.id, patrol.status, patrol.observation_count) == (outer, "completed", 2)
        assert (nested.id, nested.parent_id, nested.depth) == (inner, outer, 1)
        assert memory.episode_summary().episodes[0].status == "abandoned"


def test_the_last_episode_is_the_last_that_somebody_started(tmp_path: Path) -> None:
    clock = FakeClock()
    with Memory.open(tmp_path / "robot.db", clock=clock) as memory:
        task = memory.start_episode("inspect the door")
        clock.advance(60)
        memory.end_episode()
        clock.advance(60)
        memory.record("idling in the hall", layer="scene")
        memory.run_job("episodes")
        kinds = [node.kind for node in memory.nodes()]
        assert kinds.count(Kind.EPISODE) == 2
        assert [episode.id for episode in memory.episode_summary().episodes] == [task]
        assert len(memory.episode_summary(last_n=2).episodes) == 2


def test_ending_what_does_not_run_is_refused_by_name(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "robot.db", clock=FakeClock()) as memory:
        with pytest.raises(InvalidArgument) as caught:
            memory.end_episode()
        assert caught.value.argument == "id"
        memory.start_episode("patrol")
        with pytest.raises(InvalidArgument) as caught:
            memory.end_episode(status="bored")
        assert caught.value.argument == "status"
        with pytest.raises(InvalidArgument) as caught:
            memory.start_episode("inner", parent_id=999)
        assert caught.value.argument == "parent_id"


@pytest.mark.parametrize("metadata", [{1: object()}, [1], "x", {"a": float("nan")}, {"a": {2}}])
def test_metadata_that_is_no_json_object_is_refused_by_name(tmp_path: Path, metadata: Any) -> None:
    with Memory.open(tmp_path / "robot.db", clock=FakeClock()) as memory:
        with pytest.raises(InvalidArgument) as caught:
            memory.start_episode("patrol", metadata=metadata)
        assert caught.value.argument == "metadata"
        assert memory.nodes() == []


@pytest.mark.parametrize("id", [2**70, -(2**70), -1, 1.0, "1", True, None])
def test_what_is_no_id_is_refused_by_name(tmp_path: Path, id: Any) -> None:
    with Memory.open(tmp_path / "robot.db", clock=FakeClock()) as memory:
        with pytest.raises(InvalidArgument) as caught:
            memory.start_episode("inner", parent_id=id)
        assert caught.value.argument == "parent_id"
        memory.start_episode("patrol")
        with pytest.raises(InvalidArgument) as caught:
            memory.end_episode(id)
        assert caught.value.argument == "id"


def test_an_episode_left_open_is_abandoned_at_its_last_row(tmp_path: Path) -> None:
    clock = FakeClock()
    memory = Memory.open(tmp_path / "robot.db", clock=clock)
    id = memory.start_episode("patrol")
    clock.advance(10)
    memory.record("a door", layer="scene")
    clock.advance(50)
    memory.close()
    clock.advance(1000)
    with Memory.open(tmp_path / "robot.db", clock=clock) as again:
        (episode,) = again.episode_summary(episode_id=id).episodes
        assert (episode.status, episode.end) == ("abandoned", 1010 * S)


def test_f1_a_clock_that_goes_back_closes_the_episode_and_opens_a_session(tmp_path: Path) -> None:
    clock = FakeClock()
    with Memory.open(tmp_path / "robot.db", clock=clock) as memory:
        id = memory.start_episode("first loop")
        clock.advance(100)
        memory.record("end of the first loop", layer="scene")
        before = memory.status().session
        clock.set(1000.0)
        memory.record("start of the second loop", layer="scene")
        memory.flush()
        assert memory.status().session == before + 1
        (episode,) = memory.episode_summary(episode_id=id).episodes
        assert episode.status == "abandoned"
        last = memory.nodes()[-1]
        assert (last.text, last.session_id, last.episode_id) == ("start of the second loop", before + 1, 0)


def test_f25_rows_of_another_map_are_left_out_unless_asked_for(tmp_path: Path) -> None:
    from memory_node.graph import Filter

    with Memory.open(tmp_path / "robot.db", clock=FakeClock(), settings={"map_id": "ground floor"}) as memory:
        memory.record("a red chair", layer="scene", position=(1.0, 0.0, 0.0))
        memory.set_map("first floor")
        memory.record("a blue chair", layer="scene", position=(1.0, 0.0, 0.0))
        here = memory.spatial_query((1.0, 0.0), 1.0)
        assert [match.text for match in here.matches] == ["a blue chair"]
        there = memory.spatial_query((1.0, 0.0), 1.0, filter=Filter(map_id="ground floor"))
        assert [match.text for match in there.matches] == ["a red chair"]
        both = memory.spatial_query((1.0, 0.0), 1.0, filter=Filter(any_map=True))
        assert {match.map_id for match in both.matches} == {"ground floor", "first floor"}


class Namer:
    """A language model that writes one sentence and names a chair in every row."""

    name = "namer"

    def summarize(self, rows: Sequence[SummaryRow], max_chars: int) -> str:
        return "Somebody moved the chairs."

    def extract(self, rows: Sequence[SummaryRow]) -> list[NamedThing]:
        return [NamedThing(row.id, "chair") for row in rows]


def live(path: Path, clock: FakeClock) -> Memory:
    """A memory in which every job has something to do."""
    memory = Memory.open(path, embedder=WordEmbedder(same={"key": "keys"}), summarizer=Namer(), clock=clock)
    memory.record_body_state("battery: 90%", layer="battery", value=0.9)
    for i in range(6):
        memory.record(f"a red chair {i} by the door", layer="scene", position=(0.1 * i, 0.0, 0.0))
        memory.record_detections([Detection("cup", 0.9, (2.0, 0.0, 0.5))])
        clock.advance(1)
    for _ in range(2):
        memory.record_detections([Detection("cup", 0.9, (2.9, 0.0, 0.5))])
        clock.advance(1)
    older, newer = (memory.record(f"the spare {key} is under the mat", "notes") for key in ("key", "keys"))
    memory.flush()
    for id in (older, newer):  # notes whose vectors came only later
        memory._rooms.db.write(lambda tx, id=id: nodes.update(tx, id, tier=Tier.LONG_TERM))
    assert memory.wait_embedded(20.0)
    assert memory.semantic_search("chair").matches
    clock.advance(9 * 86_400.0)
    return memory


def test_a_dry_run_of_any_job_leaves_no_trace(tmp_path: Path) -> None:
    clock = FakeClock()
    with live(tmp_path / "tried.db", clock) as tried, live(tmp_path / "not.db", FakeClock()) as other:
        before = tried._rooms.db.revision, tried.jobs(), tried.nodes()
        found = {state.name: tried.run_job(state.name, dry_run=True) for state in tried.jobs()}
        assert (tried._rooms.db.revision, tried.jobs(), tried.nodes()) == before
        assert all(state.wrote == 0 and not state.error for state in found.values())
        (same,) = found["duplicates"].found
        notes = [node.id for node in tried.nodes() if node.layer == "notes"]
        assert [same.older_id, same.newer_id] == notes and same.cosine == pytest.approx(1.0, abs=1e-3)
        cups = tuple(node.id for node in tried.nodes() if node.kind is Kind.ENTITY)
        assert found["merge_entities"].found == (cups,) and len(cups) == 2
        assert found["gists"].found
        wrote = {state.name: tried.run_job(state.name).wrote for state in tried.jobs()}
        assert {name for name, count in wrote.items() if not count} == {"rollup", "bound", "snapshots"}
        assert wrote == {state.name: other.run_job(state.name).wrote for state in other.jobs()}
