"""recall: all that is known of a thing, inside the filter and on one scale, and nothing about something else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from entities.scene import open_memory, show
from golden_texts import assert_golden
from numpy.typing import NDArray
from support.fakes import SECOND, FakeClock, WordEmbedder

from memory_node.graph import EVENTS_LAYER, Detection, Filter
from memory_node.ingest.embedding import wait_until
from memory_node.memory import Memory
from memory_node.tools.locate import SAME_PLACE

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


def patrol(house: House) -> tuple[int, tuple[float, float]]:
    """A summary of tiles and counters: its id, and where its circle ends on the way along x."""
    memory, clock = house
    memory.start_episode("patrol")
    for number in range(9):
        memory.record(f"tiles and counters number {number}", layer="scene", position=(0.3 * number, 0.0, 0.0))
        clock.advance(5.0)
    memory.end_episode()
    clock.advance(8 * 3600.0)
    ready(memory)
    memory.consolidate()
    (gist,) = memory.search_gists().gists
    assert gist.position is not None and gist.radius > 0.8
    return gist.id, (gist.position[0] + gist.radius, gist.position[1])


def test_a_summary_is_of_a_place_that_its_circle_reaches_as_far_as_observers_tell(house: House) -> None:
    memory, _ = house
    gist, (x, y) = patrol(house)
    things = [Detection("fridge", 0.9, (x + SAME_PLACE - 0.2, y, 0.5)), Detection("ladder", 0.9, (x + 3.0, y, 0.5))]
    memory.record_detections(things, pose=(x, y, 0.0, 0.0))
    ready(memory)
    told = [[one.id for one in memory.recall(thing.label).gists] for thing in things]
    assert told == [[gist], []]


def test_a_filter_by_place_takes_summaries_by_the_circle_they_are_of(house: House) -> None:
    memory, _ = house
    gist, edge = patrol(house)
    beside = (edge[0] + 1.0, edge[1])
    told = [memory.recall("tiles counters", filter=Filter(center=at, radius=0.5)).gists for at in (edge, beside)]
    assert [[one.id for one in some] for some in told] == [[gist], []]


# around an event


def drop(house: House, seconds: int, at: int, rate: int = 0) -> None:
    """A battery that drops, and so many new captions a second of one layer, seen from a robot that stands still."""
    memory, clock = house
    for i in range(seconds):
        memory.record_body_state("battery", "battery", 0.9 if i < at else 0.75, "fraction")
        for k in range(rate):
            stamp = clock.ns + k * SECOND // rate
            memory.record(f"view {i}-{k}", layer="camera", position=(1.0, 0.0, 0.0), stamp=stamp)
        if not rate:
            kitchen = (1.0, 0.0, 0.0)
            memory.record("a kitchen with a white oven", layer="scene", position=kitchen, position_source="observer")
        if i == at:
            memory.record("a steep ramp with a wet floor", layer="scene", position=(6.0, 0.0, 0.0))
        clock.advance(1.0)


def test_around_an_event_the_nearest_in_time_are_told_and_no_layer_fills_the_list(house: House) -> None:
    memory, _ = house
    drop(house, seconds=60, at=30, rate=25)
    ready(memory)
    (event,) = memory.temporal_query(Filter(layers=(EVENTS_LAYER,))).matches
    for limit in (3, 10):
        matches = memory.recall("when the battery dropped", limit).matches
        assert len(matches) == limit and matches[0].id == event.id
        assert "a steep ramp with a wet floor" in [match.text for match in matches]
        assert all(abs(match.stamp - event.stamp) <= SECOND for match in matches)


def test_what_is_the_same_around_an_event_is_told_once_and_what_differs_is_told(house: House) -> None:
    memory, clock = house
    drop(house, seconds=70, at=40)
    memory.record("Ben pulled the plug", layer="talk", stamp=clock.ns - 12 * SECOND)
    ready(memory)
    (event,) = memory.temporal_query(Filter(layers=(EVENTS_LAYER,))).matches
    joined = [e.source for e in memory.edges(event.id) if e.type.name == "NEAR_EVENT" and e.target == event.id]
    matches = memory.recall("when the battery dropped").matches
    assert [match.text for match in matches[:1]] == [event.text]
    assert {match.text: match.repeats for match in matches[1:]} == {
        "Ben pulled the plug": 1, "a kitchen with a white oven": len(joined) - 2, "a steep ramp with a wet floor": 1,
    }  # fmt: skip
    assert len(matches) == 4
    kitchen = next(match for match in matches if "kitchen" in match.text)
    assert kitchen.last_stamp - kitchen.stamp == (len(joined) - 3) * SECOND


def test_of_two_events_both_are_told_with_what_is_joined_to_each(house: House) -> None:
    memory, clock = house
    for i in range(400):
        memory.record_body_state("battery", "battery", 0.9 - 0.15 * (i >= 60) - 0.15 * (i >= 260), "fraction")
        memory.record(f"corridor section {i}", layer="scene", position=(1.0 * i, 0.0, 0.0))
        clock.advance(1.0)
    ready(memory)
    events = memory.temporal_query(Filter(layers=(EVENTS_LAYER,))).matches
    matches = memory.recall("when the battery dropped").matches
    assert len(events) == 2 and {event.id for event in events} <= {match.id for match in matches}
    assert len(matches) == 10
    for event in events:
        near = [match for match in matches if 0 <= abs(match.stamp - event.stamp) <= 5 * SECOND]
        assert len(near) >= 4


def test_what_is_joined_to_two_events_is_counted_once(house: House) -> None:
    memory, clock = house
    for i in range(140):
        memory.record_body_state("battery", "battery", 0.9 - 0.15 * (i >= 60), "fraction")
        memory.record_body_state("fault", "fault", float(i >= 70))
        memory.record("a kitchen with a white oven", layer="scene", position=(1.0, 0.0, 0.0))
        clock.advance(1.0)
    ready(memory)
    events = memory.temporal_query(Filter(layers=(EVENTS_LAYER,))).matches
    found = memory.recall("battery dropped, fault rose")
    assert len(events) == 2 and {event.id for event in events} <= {match.id for match in found.matches}
    (kitchen,) = [match for match in found.matches if "kitchen" in match.text]
    edges = [edge for event in events for edge in memory.edges(event.id) if edge.type.name == "NEAR_EVENT"]
    assert 60 <= kitchen.repeats <= len({edge.source for edge in edges})


# the text


def sections(text: str) -> dict[str, list[str]]:
    """Lines of each section, without the mark before them."""
    parts = re.split(r"^(\S[^:\n]*):$", text.partition("\n")[2], flags=re.MULTILINE)
    told = zip(parts[1::2], parts[2::2], strict=True)
    return {title: re.findall("^- (.*)$", lines, re.MULTILINE) for title, lines in told}


def test_what_does_not_fit_or_is_beyond_the_limit_is_counted_in_every_section(house: House) -> None:
    memory, clock = house
    for x in range(8):
        show(memory, clock, ("chair", (20.0 * x + 2.0, 0.0, 0.5)), at=(20.0 * x, 0.0, 0.0))
    for i in range(25):
        say(house, f"beside the window of room {i} stands a chair", (8.0 * i, 50.0, 0.0))
    ready(memory)
    for limit, told in ((3, 3), (10, None)):
        found = memory.recall("chair", limit)
        lines = sections(found.text)
        assert len(found.text) < 2000
        assert set(lines) == {"Things", "Seen"}
        counts = {}
        for title, some in lines.items():
            more = re.fullmatch(r"(at least )?(\d+) more", some[-1])
            counts[title] = len(some) - 1 + int(more[2]) if more else len(some)
            assert all(not line.endswith("more") for line in some[:-1])
        assert counts["Things"] == 8
        assert counts["Seen"] > 10 if limit == 10 else counts["Seen"] > 3
        # Places of things beyond the limit are told as theirs, and of no thing as one that it left.
        assert ("entity #" in found.text.split("Things:")[0].partition("\nOther")[2]) is (limit == 3)
        assert "earlier" not in found.text
        if told:
            assert [len(lines[title]) for title in ("Things", "Seen")] == [told + 1, told + 1]
        assert min(map(len, lines.values())) >= 2


def test_all_summaries_are_told_with_their_score_when_there_is_room(house: House) -> None:
    memory, clock = house
    for i in range(6):
        memory.start_episode(f"round {i}")
        memory.record(f"zebra number {i}", layer="scene", position=(20.0 * i, 0.0, 0.0))
        clock.advance(10.0)
        memory.end_episode()
    ready(memory)
    clock.advance(8 * 3600.0)
    memory.consolidate()
    ready(memory)
    found = memory.recall("zebra", filter=Filter(kinds=("gist",)))
    lines = sections(found.text)["Summaries"]
    assert len(found.gists) == 6
    assert len(lines) == 6 and all(re.search(r"score 0\.\d\d$", line) for line in lines)


def test_other_places_are_told(house: House) -> None:
    memory, clock = house
    show(memory, clock, ("chair", A), at=FACING_A)
    say(house, "a chair", (40.0, 0.0, 0.0))
    ready(memory)
    found = memory.recall("chair")
    assert found.place is not None and found.place.entity_id
    assert "\nOther places: seen from (40.00, 0.00, 0.00) map, confidence 0." in found.text


def test_of_a_long_text_the_part_that_was_asked_for_is_quoted(house: House) -> None:
    memory, _ = house
    talk = "The weather was fine that day and nobody was at home for long. " * 5
    say(house, f"{talk}The zebra sleeps in the cellar.")
    ready(memory)
    assert "zebra sleeps in the cellar" in memory.recall("zebra cellar").text


def test_golden(house: House) -> None:
    memory, clock = house
    for x in (2.0, 22.0):
        show(memory, clock, ("chair", (x, 0.0, 0.5)), at=(x - 2.0, 0.0, 0.0))
    for i in range(14):
        say(house, f"a chair beside window {i}", (10.0 * i, 40.0, 0.0))
    clock.advance(8 * 3600.0)
    ready(memory)
    memory.run_job("gists")
    ready(memory)
    assert_golden("recall_chair", memory.recall("chair").text)


def test_a_question_is_embedded_once(tmp_path: Path) -> None:
    embedder = WordEmbedder(dim=32)
    with Memory.open(tmp_path / "robot.db", embedder=embedder, clock=FakeClock()) as memory:
        memory.record_detections([Detection("cup", 0.9, (1.0, 0.0, 0.5))], pose=(0.0, 0.0, 0.0, 0.0))
        memory.flush()
        assert memory.wait_embedded(20.0)
        embedder.calls.clear()
        memory.recall("a zebra with green stripes")
        asked = [text for call in embedder.calls for text in call if "zebra" in text]  # others are names of things
        name = "zebra with green stripes"
        assert sorted(asked) == [f"a photo of a {name}", f"a {name}", name]


@pytest.mark.parametrize("answers", [True, False])
def test_what_is_told_is_of_one_state_and_nothing_is_read_while_the_embedder_is_waited_for(
    tmp_path: Path, answers: bool
) -> None:
    done: list[str] = []

    class Noted(WordEmbedder):
        def embed(self, texts: list[str]) -> NDArray[np.float32]:
            if any("red" in text for text in texts):
                done.append("EMBED")
                if not answers:
                    raise RuntimeError("no answer")
            return super().embed(texts)

    embedder = Noted(dim=32)
    with Memory.open(tmp_path / "robot.db", embedder=embedder, clock=FakeClock()) as memory:
        memory.record_detections([Detection("cup", 0.9, (1.0, 0.0, 0.5))], pose=(0.0, 0.0, 0.0, 0.0))
        ready(memory)
        # Then the names of things are embedded ahead, for which another thread reads.
        assert wait_until(lambda: any("a photo of a cup" in call for call in embedder.calls), 20.0)
        with memory._rooms.db.read() as conn:  # which this thread gets again
            conn.set_trace_callback(lambda sql: done.append(sql.split()[0]))
        assert [cup.name for cup in memory.recall("red cup").entities] == ["cup"]
        conn.set_trace_callback(None)
    steps = [one for one in done if one in ("BEGIN", "ROLLBACK", "EMBED")]
    assert "EMBED" in steps and steps[-2:] == ["BEGIN", "ROLLBACK"]
    assert steps.count("BEGIN") == 3  # the filter, the names of things, all that is told
    assert all(steps[at + 1] == "ROLLBACK" for at, one in enumerate(steps) if one == "BEGIN")
