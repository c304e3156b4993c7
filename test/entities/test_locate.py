"""Where things are, which are known, and what is not there."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from entities.scene import open_memory, show
from support.fakes import FakeClock, WordEmbedder

from memory_node.errors import InvalidArgument
from memory_node.graph import Detection, Filter, PositionSource
from memory_node.ingest.embedding import wait_until
from memory_node.memory import Memory

A, B = (2.0, 0.0, 0.5), (8.0, 0.0, 0.5)
FACING_A, FACING_B = (0.0, 0.0, 0.0), (6.0, 0.0, 0.0)


@pytest.fixture
def house(tmp_path: Path) -> Iterator[tuple[Memory, FakeClock]]:
    memory, clock = open_memory(tmp_path, same={"gizmo": "widget"})
    with memory:
        yield memory, clock


def say(memory: Memory, clock: FakeClock, text: str, position: tuple[float, float, float]) -> int:
    clock.advance(1.0)
    return memory.record(text, layer="scene", position=position)


def ready(memory: Memory) -> None:
    memory.flush()
    assert memory.wait_embedded(timeout=20.0)


def test_a_things_place_is_ready_for_a_goal(house: tuple[Memory, FakeClock]) -> None:
    memory, clock = house
    show(memory, clock, ("cup", A), at=FACING_A)
    found = memory.locate("cup")
    assert found.found and found.place is not None
    assert found.place.position == pytest.approx(A)
    assert (found.place.frame, found.place.position_source) == ("map", PositionSource.MEASURED)
    assert (found.place.entity_id, found.place.label, found.place.support) == (
        memory.entity_query("cup").entities[0].id,
        "cup",
        3,
    )
    assert found.alternatives == ()
    assert "(2.00, 0.00, 0.50)" in found.text


def test_a_moved_thing_is_where_it_is_now_and_then_where_it_was(house: tuple[Memory, FakeClock]) -> None:
    """F44: 'where is the cup' gives B with its time first, A as history."""
    memory, clock = house
    show(memory, clock, ("cup", A), at=FACING_A)
    clock.advance(4 * 3600.0)
    show(memory, clock, ("cup", B), at=FACING_B)
    seen_at_b = clock.now_ns()
    for _ in range(3):
        clock.advance(1.0)
        memory.record_detections([], pose=(*FACING_A[:2], 0.0, FACING_A[2]))
    found = memory.locate("where is the cup?")
    assert found.place is not None
    assert found.place.position == pytest.approx(B)
    assert found.place.last_seen == seen_at_b
    assert [place.position for place in found.alternatives] == [pytest.approx(A)]
    (cup,) = memory.entity_query("cup").entities
    assert cup.moved and cup.history[0].position == pytest.approx(A)


def test_without_a_look_back_the_latest_place_comes_first(house: tuple[Memory, FakeClock]) -> None:
    """F44"""
    memory, clock = house
    show(memory, clock, ("cup", A), at=FACING_A)
    clock.advance(4 * 3600.0)
    show(memory, clock, ("cup", B), at=FACING_B)
    found = memory.locate("cup")
    assert found.place is not None and found.place.position == pytest.approx(B)
    assert [place.position for place in found.alternatives] == [pytest.approx(A)]


@pytest.mark.parametrize(
    "concept", ["fridge", "the icebox", "Refrigerators", "Where is my fridge?", "big refrigerator"]
)
def test_another_name_finds_it(house: tuple[Memory, FakeClock], concept: str) -> None:
    memory, clock = house
    show(memory, clock, ("refrigerator", A), ("sink", (2.0, 1.0, 0.5)), at=FACING_A)
    found = memory.locate(concept)
    assert found.place is not None and found.place.position == pytest.approx(A)


def test_a_name_that_only_the_model_knows_finds_it(house: tuple[Memory, FakeClock]) -> None:
    memory, clock = house
    show(memory, clock, ("widget", A), at=FACING_A)
    ready(memory)
    assert memory.locate("gizmo").found


@pytest.mark.parametrize("concept", ["oven", "submarine", "freezer", "wine glass"])
def test_what_is_not_there_is_not_found(house: tuple[Memory, FakeClock], concept: str) -> None:
    memory, clock = house
    show(memory, clock, ("refrigerator", A), ("glass", (2.0, 1.0, 0.5)), at=FACING_A)
    say(memory, clock, "a refrigerator beside a sink", (0.0, 0.0, 0.0))
    ready(memory)
    found = memory.locate(concept)
    assert (found.success, found.found, found.place, found.alternatives) == (True, False, None, ())
    assert concept in found.text


def test_two_kitchens_are_two_places(house: tuple[Memory, FakeClock]) -> None:
    memory, clock = house
    for number in range(8):
        say(memory, clock, "a kitchen with a stove", (40.0 * (number % 2) + 0.3 * number, 1.0, 0.0))
        say(memory, clock, "a long hallway", (20.0, 1.0, 0.0))
    ready(memory)
    found = memory.locate("kitchen")
    assert found.place is not None
    places = sorted(place.position[0] for place in (found.place, *found.alternatives))
    assert places == pytest.approx([0.9, 41.2], abs=0.3)
    assert (found.place.support, found.place.entity_id) == (4, 0)
    assert 0.9 <= found.place.radius <= 1.2


def test_sentences_about_a_known_thing_are_no_second_place(house: tuple[Memory, FakeClock]) -> None:
    memory, clock = house
    show(memory, clock, ("cup", A), at=FACING_A)
    say(memory, clock, "a cup on the table", (1.0, 0.5, 0.0))
    say(memory, clock, "another cup", (30.0, 0.0, 0.0))
    ready(memory)
    found = memory.locate("cup")
    assert found.place is not None and found.place.entity_id
    assert [round(place.position[0]) for place in found.alternatives] == [30]


@pytest.mark.parametrize(
    ("concept", "text", "found"),
    [
        ("suitcase", "a fallen tree trunk lies across the path", False),
        ("stove", "the range of the sensor is too short", False),
        ("sofa", "somebody sleeps on the couch", True),
        ("suitcase", "suitcase trunk", True),
    ],
)
def test_another_name_in_a_sentence_counts_when_the_sentence_means_the_thing(
    tmp_path: Path, concept: str, text: str, found: bool
) -> None:
    memory, clock = open_memory(tmp_path, same={"couch": "sofa"})
    with memory:
        clock.advance(1.0)
        memory.record(text, layer="scene", position=(1.0, 2.0, 0.0))
        memory.flush()
        assert memory.wait_embedded(10.0)
        assert memory.locate(concept).found is found


def test_a_filter_holds_for_things_and_texts(house: tuple[Memory, FakeClock]) -> None:
    memory, clock = house
    show(memory, clock, ("cup", A), at=FACING_A)
    show(memory, clock, ("cup", B), at=FACING_B)
    found = memory.locate("cup", Filter(center=(8.0, 0.0), radius=1.0))
    assert found.place is not None and found.place.position == pytest.approx(B)
    assert found.alternatives == ()
    assert not memory.locate("cup", Filter(center=(50.0, 0.0), radius=1.0)).found


def test_a_missing_thing_comes_after_one_that_is_there(house: tuple[Memory, FakeClock]) -> None:
    memory, clock = house
    show(memory, clock, ("cup", A), ("cup", (2.0, 1.0, 0.5)), at=FACING_A)
    show(memory, clock, ("cup", A), at=FACING_A, times=4)
    found = memory.locate("cup")
    assert found.place is not None and found.place.position == pytest.approx(A)
    assert found.alternatives[0].confidence < 0.2


def test_the_text_says_what_is_missing_and_since_when(house: tuple[Memory, FakeClock]) -> None:
    memory, clock = house
    show(memory, clock, ("cup", A), at=FACING_A)
    seen = clock.now_ns()
    clock.advance(600.0)
    show(memory, clock, at=FACING_A, times=4)
    for answer in (memory.locate("cup"), memory.recall("cup")):
        assert answer.found and answer.place is not None and answer.place.last_seen == seen
        assert "missing, last seen there 10 min ago" in answer.text
    head = memory.locate("cup").text.splitlines()[0]
    assert "likely here" not in head and "missing" in head


def test_what_is_seen_once_is_called_tentative_and_an_earlier_place_earlier(house: tuple[Memory, FakeClock]) -> None:
    memory, clock = house
    show(memory, clock, ("cup", A), at=FACING_A)
    show(memory, clock, ("cup", B), at=FACING_B)
    show(memory, clock, at=FACING_A, times=4)
    show(memory, clock, ("dog", (2.0, 1.0, 0.5)), at=FACING_A, times=1)
    first, second = [line for line in memory.locate("cup").text.splitlines() if "(" in line and "m," in line]
    assert "(8.00, 0.00, 0.50)" in first and "earlier" not in first
    assert "(2.00, 0.00, 0.50)" in second and "earlier place" in second
    assert "tentative" in memory.locate("dog").text


def test_fresh_sentences_beside_a_missing_thing_are_a_place_of_their_own(house: tuple[Memory, FakeClock]) -> None:
    memory, clock = house
    show(memory, clock, ("cup", A), at=FACING_A)
    say(memory, clock, "the cup is full", (1.2, 0.0, 0.0))
    show(memory, clock, ("cup", A), at=FACING_A, times=1)
    show(memory, clock, at=FACING_A, times=4)
    assert [memory.locate("cup").alternatives, len(memory.entity_query("cup").entities)] == [(), 1]
    for _ in range(3):
        say(memory, clock, "there is a cup on the table", (1.0, 0.0, 0.0))
    spoken = clock.now_ns()
    ready(memory)
    found = memory.locate("cup")
    assert found.place is not None
    assert (found.place.entity_id, found.place.last_seen, found.place.position[0]) == (
        0, spoken, pytest.approx(1.0, abs=0.1),
    )
    assert [place.entity_id > 0 for place in found.alternatives] == [True]


def test_a_false_detection_that_faded_is_nowhere(house: tuple[Memory, FakeClock]) -> None:
    """F43: it was never confirmed, and what looks should have shown of it they did not."""
    memory, clock = house
    show(memory, clock, ("dog", A), at=FACING_A, times=1)
    assert memory.locate("dog").found
    show(memory, clock, at=FACING_A, times=8)
    ready(memory)
    found = memory.locate("dog")
    assert (found.found, found.place, found.alternatives) == (False, None, ())
    assert memory.entity_query("dog").total == 1  # never deleted


def test_a_thing_that_is_back_is_not_told_twice_of_one_place(house: tuple[Memory, FakeClock]) -> None:
    memory, clock = house
    for place, old in ((A, None), (B, A), (A, B)):
        clock.advance(600.0)
        show(memory, clock, ("cup", place), at=(place[0] - 2.0, 0.0, 0.0))
        if old is not None:
            show(memory, clock, at=(old[0] - 2.0, 0.0, 0.0), times=4)
    found = memory.locate("cup")
    assert found.place is not None and found.place.position == pytest.approx(A)
    assert [place.position for place in found.alternatives] == [pytest.approx(B)]


def test_a_blank_concept_is_refused(house: tuple[Memory, FakeClock]) -> None:
    memory, _ = house
    with pytest.raises(InvalidArgument) as caught:
        memory.locate("  ")
    assert caught.value.argument == "concept"


def test_nothing_known_is_an_answer(house: tuple[Memory, FakeClock]) -> None:
    memory, _ = house
    assert not memory.locate("cup").found
    assert memory.entity_query("cup").entities == ()


def test_how_many_chairs(house: tuple[Memory, FakeClock]) -> None:
    """F45: a count query says 2."""
    memory, clock = house
    show(memory, clock, ("chair", A), ("chair", (2.0, 1.0, 0.5)), ("table", (2.0, -1.0, 0.5)), at=FACING_A)
    clock.advance(1.0)
    memory.record_detections([Detection("chair", 0.9, (50.0, 0.0, 0.0))])
    answer = memory.entity_query(name="chairs", limit=1)
    assert (len(answer.entities), answer.total) == (1, 3)
    assert answer.text.startswith('2 things named "chairs" (confirmed); 1 more tentative')


def test_what_is_there_is_counted_first(house: tuple[Memory, FakeClock]) -> None:
    memory, clock = house
    chairs = [("chair", (2.0, 0.9 * i, 0.5)) for i in (-1, 0, 1)]
    show(memory, clock, *chairs, ("table", (3.0, 0.3, 0.5)), at=FACING_A)
    show(memory, clock, *chairs[1:], ("table", (3.0, 0.3, 0.5)), at=FACING_A, times=4)
    show(memory, clock, ("chair", B), at=FACING_B, times=1)
    answer = memory.entity_query("chair")
    assert answer.text.startswith('2 things named "chair" (confirmed); 1 more tentative')
    assert "1 missing" in answer.text.splitlines()[0]
    assert answer.total == 4
    assert memory.entity_query().text.splitlines()[0].endswith("(confirmed): 2 chair, 1 table; 1 more tentative (seen "
        "once or doubtful), 1 missing from where they were seen.")
    assert [entity.name for entity in answer.entities] == ["chair"] * 4


def test_entities_by_type_time_and_place_the_latest_first(house: tuple[Memory, FakeClock]) -> None:
    memory, clock = house
    show(memory, clock, ("cup", A), at=FACING_A)
    clock.advance(600.0)
    show(memory, clock, ("cup", B), ("book", (8.0, 1.0, 0.5)), at=FACING_B)
    assert [entity.position[0] for entity in memory.entity_query(entity_type="cup").entities if entity.position] == [
        pytest.approx(8.0),
        pytest.approx(2.0),
    ]
    assert [entity.name for entity in memory.entity_query(last_seen_after="-1m", name="book").entities] == ["book"]
    assert len(memory.entity_query(last_seen_after="-1m").entities) == 2
    assert memory.entity_query(filter=Filter(center=(2.0, 0.0), radius=1.0)).total == 1


def test_names_by_part_and_by_meaning_the_best_first(house: tuple[Memory, FakeClock]) -> None:
    memory, clock = house
    show(
        memory,
        clock,
        ("office chair", A),
        ("armchair", (2.0, 1.0, 0.5)),
        ("chair", (2.0, -1.0, 0.5)),
        ("couch", B),
        at=FACING_A,
    )
    assert [entity.name for entity in memory.entity_query("chair").entities] == ["chair", "office chair", "armchair"]
    assert [entity.name for entity in memory.entity_query("sofa").entities] == ["couch"]


def test_a_split_by_the_facade(house: tuple[Memory, FakeClock]) -> None:
    memory, clock = house
    show(memory, clock, ("cup", A), at=FACING_A)
    (cup,) = memory.entity_query("cup").entities
    seen = memory.entity_observations(cup.id)
    new = memory.split_entity(cup.id, seen[:1])
    assert memory.entity_observations(new) == seen[:1]
    assert memory.entity_query("cup").total == 2


def test_f45_two_things_of_one_message_are_two_rows_when_repeats_fold(tmp_path: Path) -> None:
    memory, clock = open_memory(tmp_path, fold_repeats=True)
    with memory:
        seen = [Detection("chair", 0.9, (2.0, 0.0, 0.5)), Detection("chair", 0.9, (2.4, 0.0, 0.5))]
        ids = []
        for _ in range(3):
            clock.advance(1.0)
            ids.append(memory.record_detections(seen, pose=(0.0, 0.0, 0.0, 0.0)))
        memory.flush()
        assert ids[0][0] != ids[0][1] and ids == [ids[0]] * 3
        left, right = sorted(memory.entity_query("chair").entities, key=lambda chair: chair.position or ())
        assert [memory.entity_observations(chair.id) for chair in (left, right)] == [ids[0][:1], ids[0][1:]]


class WatchingEmbedder(WordEmbedder):
    """Tries at each picture of a gizmo whether all of the log can be written back, as it can't while somebody reads."""

    def __init__(self, path: Path) -> None:
        super().__init__(same={"gizmo": "widget"})
        self.path = path
        self.blocked: list[int] = []

    def embed(self, texts: list[str]) -> np.ndarray:
        if "a photo of a gizmo" in texts:
            with closing(sqlite3.connect(self.path)) as conn:
                conn.execute("CREATE TABLE IF NOT EXISTS written (number INTEGER)")
                conn.execute("INSERT INTO written VALUES (1)")
                conn.commit()
                self.blocked.append(conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0])
        return super().embed(texts)


def test_nothing_is_read_while_the_names_of_a_question_are_embedded(tmp_path: Path) -> None:
    embedder, clock = WatchingEmbedder(tmp_path / "robot.db"), FakeClock()
    with Memory.open(tmp_path / "robot.db", embedder=embedder, clock=clock) as memory:
        show(memory, clock, ("widget", A), at=FACING_A)
        ready(memory)
        assert memory.locate("gizmo").found
    assert embedder.blocked == [0]


def test_a_question_for_an_unknown_name_embeds_that_name_only(tmp_path: Path) -> None:
    embedder, clock = WordEmbedder(), FakeClock()
    with Memory.open(tmp_path / "robot.db", embedder=embedder, clock=clock) as memory:
        show(memory, clock, ("refrigerator", A), ("sofa", (2.0, 1.0, 0.5)), at=FACING_A)
        ready(memory)
        assert wait_until(lambda: "a photo of a loveseat" in sum(embedder.calls, []), timeout=20.0)
        assert {"fridge", "couch", "a photo of a fridge"} <= set(sum(embedder.calls, []))
        for name in ("gizmo", "thingamabob"):
            embedder.calls.clear()
            memory.locate(name)
            assert {text for texts in embedder.calls for text in texts} == {name, f"a photo of a {name}"}
