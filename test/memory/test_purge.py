"""F43: what was wrong can be removed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.fakes import FakeClock, WordEmbedder

from memory_node.errors import InvalidArgument
from memory_node.graph import Detection
from memory_node.memory import Memory

HERE, THERE = (2.0, 0.0, 0.5), (2.0, 8.0, 0.5)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "m.db", clock=FakeClock(100_000.0), embedder=WordEmbedder()) as opened:
        yield opened


def see(memory: Memory, label: str, place: tuple[float, float, float], times: int = 1) -> list[int]:
    ids = []
    for _ in range(times):
        memory._rooms.clock.advance(1)  # type: ignore[attr-defined]
        ids += memory.record_detections([Detection(label, 0.9, place)], pose=(0.0, place[1], 0.0, 0.0))
    memory.flush()
    return ids


def test_a_sentence_is_found_by_nothing_any_more(memory: Memory) -> None:
    gone, kept = (memory.record(text, "scene", (1.0, 0.0, 0.0)) for text in ("the door code is 4711", "a red chair"))
    assert memory.wait_embedded() and memory.purge([gone]) == 1
    assert [match.id for match in memory.semantic_search("door code 4711").matches] in ([], [kept])
    assert [match.id for match in memory.spatial_query((1.0, 0.0), 1.0).matches] == [kept]
    assert [match.id for match in memory.temporal_query().matches] == [kept]
    assert [node.id for node in memory.nodes()] == [kept] and memory.status().vectors == 1
    assert memory.purge([gone]) == 0


def test_a_ghost_goes_with_its_only_sighting_and_a_thing_is_what_its_other_sightings_make_of_it(memory: Memory) -> None:
    ghost = see(memory, "dog", THERE)
    good, wrong = see(memory, "cup", HERE, 3), see(memory, "cup", THERE, 1)
    cups = memory.entity_query("cup").entities
    assert memory.purge(ghost) == 2 and not memory.locate("dog").found
    memory.purge(wrong)
    (cup,) = memory.entity_query("cup").entities
    assert (cup.sightings, cup.moved, cup.history) == (3, False, ()) and cup.position == pytest.approx(HERE, abs=0.01)
    assert memory.entity_observations(cup.id) == good and len(cups) in (1, 2)
    (again,) = see(memory, "cup", HERE)
    assert memory.entity_query("cup").entities[0].sightings == 4 and again in memory.entity_observations(cup.id)


def test_an_entity_goes_without_its_sightings_and_comes_back_when_seen(memory: Memory) -> None:
    rows = see(memory, "cup", HERE, 3)
    (cup,) = memory.entity_query("cup").entities
    assert memory.purge([cup.id]) == 1
    assert memory.entity_query("cup").entities == ()
    assert [node.id for node in memory.nodes()] == rows
    see(memory, "cup", HERE)
    (back,) = memory.entity_query("cup").entities
    assert (back.sightings, back.id != cup.id) == (1, True)


def test_a_repeat_of_a_removed_row_begins_a_new_one(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "m.db", clock=FakeClock(100_000.0), settings={"fold_repeats": True}) as memory:
        first = memory.record("a red chair", "scene", (1.0, 0.0, 0.0))
        assert memory.purge([first]) == 1
        second = memory.record("a red chair", "scene", (1.0, 0.0, 0.0))
        memory.flush()
        assert [(node.id, node.repeats) for node in memory.nodes()] == [(second, 1)] and second != first


@pytest.mark.parametrize("ids", [[], 7, ["7"], [0], [-1], [True], None, [[1]]])
def test_what_is_no_list_of_ids_is_refused(memory: Memory, ids: Any) -> None:
    with pytest.raises(InvalidArgument, match="ids: got"):
        memory.purge(ids)


def test_an_episode_is_not_removed(memory: Memory) -> None:
    id_ = memory.start_episode("patrol")
    row = memory.record("a red chair", "scene")
    with pytest.raises(InvalidArgument, match=f"ids: {id_} is episode"):
        memory.purge([row, id_])
    assert {node.id for node in memory.nodes()} == {id_, row}
