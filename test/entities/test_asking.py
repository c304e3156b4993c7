"""What a planner asks of things, and what it is answered: how many, where now, where before."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from entities.scene import open_memory, show
from support.fakes import SECOND, FakeClock

from memory_node.graph import Filter
from memory_node.memory import Memory

FACING = (0.0, 0.0, 0.0)


@pytest.fixture
def house(tmp_path: Path) -> Iterator[tuple[Memory, FakeClock]]:
    memory, clock = open_memory(tmp_path)
    with memory:
        yield memory, clock


@pytest.mark.parametrize("asked", ["chair", "chairs", "how many chairs", "number of chairs now", "Office chairs"])
def test_as_many_things_are_counted_whether_one_is_asked_for_or_several(
    house: tuple[Memory, FakeClock], asked: str
) -> None:
    memory, clock = house
    show(memory, clock, ("office chair", (2.0, -1.0, 0.0)), ("office chair", (2.0, 1.0, 0.0)), at=FACING)
    answer = memory.entity_query(asked)
    assert (answer.total, [entity.name for entity in answer.entities]) == (2, ["office chair"] * 2)
    where = memory.locate(f"where are the {asked}")
    assert where.found and len(where.alternatives) == 1


@pytest.mark.parametrize(("asked", "total"), [("knife", 2), ("knives", 2), ("how many people", 1), ("benches", 0)])
def test_plurals_that_are_no_part_of_the_name_count_too(
    house: tuple[Memory, FakeClock], asked: str, total: int
) -> None:
    memory, clock = house
    show(
        memory, clock, ("breadknife", (2.0, -1.0, 0.9)), ("knife", (2.0, 1.0, 0.9)), ("person", (3.0, 0.0, 0.0)),
        at=FACING,
    )  # fmt: skip
    assert memory.entity_query(asked).total == total
    assert memory.entity_query(entity_type="Knives").total == 1


def test_an_article_is_no_part_of_a_name(house: tuple[Memory, FakeClock]) -> None:
    memory, clock = house
    show(memory, clock, ("the Mug", (2.0, 0.0, 0.9)), ("A chair", (3.0, 1.0, 0.0)), at=FACING)
    show(memory, clock, ("mug", (2.0, 0.0, 0.9)), ("chair", (3.0, 1.0, 0.0)), at=FACING)
    known = {entity.name: entity.sightings for entity in memory.entity_query().entities}
    assert known == {"mug": 6, "chair": 6}
    assert memory.entity_query("a mug").total == 1 and memory.locate("the chair").found


def test_what_two_detectors_call_by_two_names_is_one_thing(house: tuple[Memory, FakeClock]) -> None:
    memory, clock = house
    for _ in range(3):
        show(memory, clock, ("cup", (2.0, 0.0, 0.9)), ("sofa", (3.0, 1.0, 0.0)), at=FACING, times=1)
        show(memory, clock, ("mug", (2.1, 0.0, 0.9)), ("couch", (3.0, 1.1, 0.0)), at=FACING, times=1)
    assert [(entity.name, entity.sightings) for entity in memory.entity_query().entities] == [("cup", 6), ("sofa", 6)]
    assert memory.entity_query("how many mugs").total == 1
    show(memory, clock, ("cup", (2.0, 0.0, 0.9)), ("mug", (2.3, 0.0, 0.9)), at=FACING)
    assert memory.entity_query("how many mugs").total == 2


def test_what_moved_out_of_a_region_is_not_in_it(house: tuple[Memory, FakeClock]) -> None:
    memory, clock = house
    far, facing = (2.0, 10.0, 0.9), (0.0, 10.0, 0.0)
    show(memory, clock, ("cup", (2.0, 0.0, 0.9)), ("vase", (2.0, -1.0, 0.9)), at=FACING)
    show(memory, clock, ("shelf", (2.5, 10.0, 0.9)), at=facing)
    show(memory, clock, ("cup", far), ("shelf", (2.5, 10.0, 0.9)), at=facing)
    show(memory, clock, ("vase", (2.0, -1.0, 0.9)), at=FACING, times=6)
    assert memory.entity_query("cup").entities[0].moved
    here, there = Filter(center=(2.0, 0.0), radius=3.0), Filter(center=(2.0, 10.0), radius=3.0)
    assert not memory.locate("cup", here).found
    assert memory.locate("cup", there).place.position == pytest.approx(far)
    memory.record("a cup of tea stands here", layer="scene", position=(0.0, 0.0, 0.0))
    memory.flush()
    assert memory.wait_embedded() and memory.locate("cup", here).found


def test_what_was_seen_before_the_clock_went_back_was_not_seen_just_now(house: tuple[Memory, FakeClock]) -> None:
    memory, clock = house
    for number in range(2):
        clock.set(1000.0 + 1000.0 * number)
        show(memory, clock, ("mug", (2.0, 0.0, 0.9)), ("vase", (3.0, 1.0, 0.9)), at=FACING)
    clock.set(1500.0)
    assert memory.check_clock() == "clock went back"
    show(memory, clock, ("vase", (3.0, 1.0, 0.9)), at=FACING)
    assert [entity.name for entity in memory.entity_query(last_seen_after="-1m").entities] == ["vase"]
    assert [entity.name for entity in memory.entity_query(last_seen_after=1900 * SECOND).entities] == ["mug"]
    assert {entity.name for entity in memory.entity_query().entities} == {"mug", "vase"}


def test_another_colour_or_number_is_another_thing(house: tuple[Memory, FakeClock]) -> None:
    memory, clock = house
    show(memory, clock, ("blue mug", (2.0, 0.0, 0.9)), ("door 1", (3.0, 1.0, 0.0)), at=FACING)
    assert not memory.locate("red mug").found and not memory.locate("door 2").found
    assert memory.locate("the blue mug").found and memory.locate("where is door 1?").found
    assert memory.locate("door").found


def test_a_thing_carried_to_and_fro_has_each_earlier_place_once(house: tuple[Memory, FakeClock]) -> None:
    memory, clock = house
    spots = [((2.0, y, 0.9), (0.0, y, 0.0)) for y in (0.0, 10.0, 20.0)]
    for number in (2, *(0, 1) * 7):
        for other, (place, facing) in enumerate(spots):
            shelf = ("shelf", (2.5, place[1], 0.9))
            show(memory, clock, shelf, *([("cup", place)] if other == number else []), at=facing, times=4)
    where = memory.locate("cup")
    assert where.place is not None and where.place.position == pytest.approx(spots[1][0])
    assert [old.position for old in where.alternatives] == [pytest.approx(spots[0][0]), pytest.approx(spots[2][0])]
    assert [old.support for old in where.alternatives] == [28, 4]
    assert where.place.support == 4
    cup = memory.entity_query("cup").entities[0]
    assert (len(cup.history), cup.places_left, cup.sightings, cup.sightings_here) == (10, 14, 60, 4)
    assert [old.position[1] for old in cup.history[:3]] == [0.0, 10.0, 0.0]
    assert "and at 13 more places before" in memory.entity_query("cup").text
    assert memory.recall("cup").entities == (cup._replace(score=0.0),)
    assert [old.position for old in memory.locate(f"#{cup.id}").alternatives] == [
        old.position for old in where.alternatives
    ]


def test_the_text_says_how_many_places_are_not_told(house: tuple[Memory, FakeClock]) -> None:
    memory, clock = house
    for y in (6.0 * number for number in range(25)):
        show(memory, clock, ("chair", (2.0, y, 0.0)), at=(0.0, y, 0.0))
    where = memory.locate("chairs")
    assert len(where.alternatives) == 10
    assert where.text.endswith("(14 more places)")
