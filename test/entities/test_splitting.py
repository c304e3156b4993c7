"""A wrong merge and a wrong move are undone by a split, and stay so."""

from __future__ import annotations

import pytest
from entities.scene import NEARBY, A, Scene, drifted, runner

from memory_node.errors import InvalidArgument
from memory_node.housekeeping.entities import split_entity
from memory_node.storage import entities
from memory_node.storage.database import Transaction

FACING_A = (0.0, 0.0, 0.0)


def test_a_wrong_merge_is_split_and_stays_split(scene: Scene) -> None:
    first, second = drifted(scene)
    of_second = scene.observations(second)
    jobs = runner(scene)
    jobs.run("merge_entities")
    new = scene.db.write(lambda tx: split_entity(tx, second, of_second))
    old, split = scene.known()
    assert (old.id, split.id) == (first, new)
    assert (old.sightings, split.sightings) == (6, 2)
    assert old.position == pytest.approx(A)
    assert split.position == pytest.approx(NEARBY)
    assert scene.observations(new) == of_second
    assert split.first_seen > old.last_seen
    jobs.run("merge_entities")
    assert len(scene.known()) == 2


def moved_from_a_to(scene: Scene, *places: tuple[float, float, float]) -> list[list[int]]:
    """A cup seen at A and then at each place in turn, no more at those before; returns its observations by place."""
    found = []
    for number, place in enumerate((A, *places)):
        scene.second += 3600.0
        found.append([scene.look(("cup", place), at=(place[0] - 2.0, place[1], 0.0))[0] for _ in range(3)])
        for old in (A, *places)[:number]:
            for _ in range(4):
                scene.look(at=(old[0] - 2.0, old[1], 0.0))
    return found


def test_a_wrong_move_is_undone_by_a_split(scene: Scene) -> None:
    at_a, at_b = moved_from_a_to(scene, (8.0, 0.0, 0.5))
    moved = scene.only()
    assert moved.moved and len(moved.history) == 1
    scene.db.write(lambda tx: split_entity(tx, moved.id, at_b))
    old, new = scene.known()
    assert (old.position, new.position) == (pytest.approx(A), pytest.approx((8.0, 0.0, 0.5)))
    for cup, seen in ((old, at_a), (new, at_b)):
        assert (cup.moved, cup.missing, cup.tentative, cup.history, cup.sightings) == (False, False, False, (), 3)
        assert scene.observations(cup.id) == seen
    assert old.first_seen == moved.first_seen and old.last_seen == moved.history[0].last_seen
    assert new.first_seen > old.last_seen and new.last_seen == moved.last_seen


def test_a_wrong_move_that_was_undone_is_not_made_again(scene: Scene) -> None:
    _, at_b = moved_from_a_to(scene, (8.0, 0.0, 0.5))
    scene.db.write(lambda tx: split_entity(tx, scene.only().id, at_b))
    for _ in range(5):
        scene.look(at=FACING_A)
    assert [(cup.missing, cup.moved, cup.sightings) for cup in scene.known()] == [(True, False, 3), (False, False, 3)]
    scene.look(("cup", A), at=FACING_A)
    assert [(cup.missing, cup.sightings) for cup in scene.known()] == [(False, 4), (False, 3)]


def test_what_was_missing_is_missing_after_a_split(scene: Scene) -> None:
    seen = [scene.look(("cup", A), at=FACING_A)[0] for _ in range(6)]
    for _ in range(5):
        scene.look(at=FACING_A)
    missing = scene.only()
    scene.db.write(lambda tx: split_entity(tx, missing.id, seen[:3]))
    rest, new = scene.known()
    assert rest.missing and new.missing
    assert rest.confidence == new.confidence == missing.confidence < 0.1
    scene.look(("cup", A), at=FACING_A)
    assert sorted(cup.missing for cup in scene.known()) == [False, True]


def test_a_split_leaves_out_the_doubt_of_another_place(scene: Scene) -> None:
    shelf = ("shelf", (2.0, 9.5, 0.5))
    for _ in range(3):
        scene.look(("cup", A), at=FACING_A)
        scene.look(shelf, at=(0.0, 9.0, 0.0))
    moved = [scene.look(("cup", (2.0, 9.0, 0.5)), shelf, at=(0.0, 9.0, 0.0))[0] for _ in range(3)]
    for _ in range(4):
        scene.look(at=FACING_A)
    for _ in range(4):
        scene.look(shelf, at=(0.0, 9.0, 0.0))
    cup = scene.known()[0]
    assert cup.moved and cup.missing
    scene.db.write(lambda tx: split_entity(tx, cup.id, moved))
    cups = [entity for entity in scene.known() if entity.name == "cup"]
    assert [(cup.position, cup.missing) for cup in cups] == [
        (pytest.approx(A), False), (pytest.approx((2.0, 9.0, 0.5)), True)
    ]  # fmt: skip


def test_the_history_is_that_of_the_sightings_that_remain(scene: Scene) -> None:
    b, c = (8.0, 0.0, 0.5), (2.0, 20.0, 0.5)
    at_a, at_b, at_c = moved_from_a_to(scene, b, c)
    scene.db.write(lambda tx: split_entity(tx, scene.only().id, at_b))
    old, new = scene.known()
    assert (old.position, old.moved, new.position, new.moved) == (pytest.approx(c), True, pytest.approx(b), False)
    (before,) = old.history
    assert (before.position, before.support, new.history) == (pytest.approx(A), 3, ())
    assert scene.observations(old.id) == at_a + at_c


def three_of_one(scene: Scene) -> tuple[int, list[list[int]]]:
    """One cup made of three that stand in a row; returns it and the observations of each."""
    seen = [[scene.look(("cup", (x, 0.0, 0.5)))[0] for _ in range(3)] for x in (2.0, 2.2, 2.35)]
    return scene.only().id, seen


def test_all_that_was_split_from_one_entity_stays_apart(scene: Scene) -> None:
    cup, (_, second, third) = three_of_one(scene)
    for seen in (second, third):
        scene.db.write(lambda tx, seen=seen: split_entity(tx, cup, seen))
    assert runner(scene).run("merge_entities").wrote == 0
    assert [cup.sightings for cup in scene.known()] == [3, 3, 3]


def test_what_was_split_twice_stays_apart_from_the_first_too(scene: Scene) -> None:
    cup, (_, second, third) = three_of_one(scene)
    both = scene.db.write(lambda tx: split_entity(tx, cup, second + third))
    scene.db.write(lambda tx: split_entity(tx, both, third))
    assert runner(scene).run("merge_entities").wrote == 0
    assert len(scene.known()) == 3


def test_a_merge_with_a_third_undoes_no_split(scene: Scene) -> None:
    cup, (_, second, third) = three_of_one(scene)
    other = scene.db.write(lambda tx: split_entity(tx, cup, second + third))

    def into_one_more(tx: Transaction) -> int:
        gone = split_entity(tx, other, third)
        tx.conn.execute("UPDATE node SET metadata = NULL WHERE id = ?", (gone,))  # one that nobody split
        entities.absorb(tx, gone, other)
        return gone

    third_cup = scene.db.write(into_one_more)
    assert [entity.id for entity in scene.known()] == [cup, third_cup]
    assert runner(scene).run("merge_entities").wrote == 0


@pytest.mark.parametrize(("id_", "which"), [(999, "id"), (None, "observation_ids")])
def test_a_split_says_what_was_wrong(scene: Scene, id_: int | None, which: str) -> None:
    scene.look(("cup", A))
    cup = scene.only().id
    with pytest.raises(InvalidArgument) as caught:
        scene.db.write(lambda tx: split_entity(tx, id_ or cup, scene.observations(cup)))
    assert caught.value.argument == which
