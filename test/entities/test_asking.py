"""What a planner asks of things, and what it is answered: how many, where now, where before."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from entities.scene import open_memory, show
from support.fakes import FakeClock

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


def test_another_colour_or_number_is_another_thing(house: tuple[Memory, FakeClock]) -> None:
    memory, clock = house
    show(memory, clock, ("blue mug", (2.0, 0.0, 0.9)), ("door 1", (3.0, 1.0, 0.0)), at=FACING)
    assert not memory.locate("red mug").found and not memory.locate("door 2").found
    assert memory.locate("the blue mug").found and memory.locate("where is door 1?").found
    assert memory.locate("door").found
