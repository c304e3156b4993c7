"""recall: all that is known of a thing, inside the filter and on one scale, and nothing about something else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from entities.scene import open_memory, show
from support.fakes import FakeClock

from memory_node.graph import Detection, Filter
from memory_node.memory import Memory

A = (2.0, 0.0, 0.5)
FACING_A = (0.0, 0.0, 0.0)
House = tuple[Memory, FakeClock]


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    memory, clock = open_memory(tmp_path, same={"sofa": "couch"})
    with memory:
        yield memory, clock


def say(house: House, text: str, position: tuple[float, float, float] | None = None) -> int:
    memory, clock = house
    clock.advance(1.0)
    return memory.record(text, layer="scene", position=position, position_source="observer")


def ready(memory: Memory) -> None:
    memory.flush()
    assert memory.wait_embedded(timeout=20.0)


def test_the_things_of_all_places_are_told_within_the_limit(house: House) -> None:
    memory, clock = house
    for x in (2.0, 22.0, 42.0):
        show(memory, clock, ("chair", (x, 0.0, 0.5)), at=(x - 2.0, 0.0, 0.0))
    ready(memory)
    found = memory.recall("chair")
    assert sorted(round(chair.position[0]) for chair in found.entities if chair.position) == [2, 22, 42]
    assert len(memory.recall("chair", 2).entities) == 2


def test_a_thing_by_another_name_brings_what_shows_it_and_what_speaks_of_it(house: House) -> None:
    memory, clock = house
    show(memory, clock, ("sofa", A), at=FACING_A)
    spoken = [say(house, "Anna sleeps on the couch"), say(house, "a sofa too big for the lift")]
    say(house, "a long corridor")
    ready(memory)
    found = memory.recall("couch")
    (sofa,) = found.entities
    shown = set(memory.entity_observations(sofa.id))
    ids = {match.id for match in found.matches}
    assert shown & ids and set(spoken) <= ids <= shown | set(spoken)
    scores = [match.score for match in found.matches]
    assert scores == sorted(scores, reverse=True) and scores[-1] > 0.0


def test_many_things_leave_room_for_what_speaks_of_them(house: House) -> None:
    memory, clock = house
    show(memory, clock, *(("refrigerator", (2.0, 0.9 * i, 0.5)) for i in range(-1, 2)), at=FACING_A)
    for i in range(12):
        say(house, f"a fridge in room {i}", (10.0 * i, 5.0, 0.0))
    ready(memory)
    layers = [match.layer for match in memory.recall("fridge").matches]
    assert len(layers) == 10 and layers.count("scene") >= 5 and layers.count("detections") >= 3


@pytest.mark.parametrize("query", ["cup", "mug"])
def test_what_shows_a_thing_obeys_the_filter(house: House, query: str) -> None:
    memory, clock = house
    show(memory, clock, ("cup", A), at=FACING_A)
    between = clock.now_ns()
    clock.advance(1000.0)
    show(memory, clock, ("cup", A), at=FACING_A)
    ready(memory)
    before = memory.recall(query, filter=Filter(time_before=between)).matches
    assert before and all(match.stamp <= between for match in before)
    after = memory.recall(query, filter=Filter(time_after=between + 1)).matches
    assert after and all(match.last_stamp > between for match in after)
    assert memory.recall(query, filter=Filter(min_confidence=0.95)).matches == ()  # each was seen with 0.9
    assert {match.layer for match in memory.recall(query, filter=Filter(layers=("detections",))).matches} == {
        "detections"
    }
    assert memory.recall(query, filter=Filter(kinds=("entity",))).matches == ()


@pytest.mark.parametrize("query", ["submarine", "where is the giraffe?", "oven"])
def test_about_what_is_not_known_nothing_is_told(house: House, query: str) -> None:
    memory, clock = house
    show(memory, clock, ("refrigerator", A), ("chair", (2.0, 1.0, 0.5)), at=FACING_A)
    for i in range(5):
        say(house, f"a chair beside the window of room {i}", (8.0 * i, 0.0, 0.0))
    ready(memory)
    found = memory.recall(query)
    assert (found.found, found.matches, found.gists, found.entities) == (False, (), (), ())
    assert "Nothing is known" in found.text


def test_what_says_all_the_words_is_told_however_long_it_is(house: House) -> None:
    memory, _ = house
    id_ = say(house, "among many other things that stood in the way that day there was a purple submarine " + "x " * 40)
    say(house, "a corridor")
    ready(memory)
    assert [match.id for match in memory.recall("submarine").matches] == [id_]


def test_the_summaries_of_the_things_place_are_told(house: House) -> None:
    memory, clock = house
    for x in (2.0, 60.0):
        for number in range(30):
            clock.advance(5.0)
            place = (x + 0.02 * number, 0.6, 0.0)
            memory.record(f"tiles and counters number {number}", layer="scene", position=place)
        clock.advance(600.0)
    clock.advance(8 * 3600.0)
    ready(memory)
    memory.consolidate()
    clock.advance(1.0)
    memory.record_detections([Detection("fridge", 0.9, A)], pose=(0.0, 0.0, 0.0, 0.0))
    ready(memory)
    gists = memory.search_gists().gists
    near = {gist.id for gist in gists if gist.position and abs(gist.position[0] - 2.0) < 2.0}
    found = memory.recall("fridge")
    assert near and len(near) < len(gists)
    assert {gist.id for gist in found.gists} == near
    assert all(0.0 < gist.score < 1.0 for gist in found.gists)
    assert memory.recall("fridge", filter=Filter(kinds=("entity",))).gists == ()
