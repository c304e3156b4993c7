"""What moved, and what only looks so: duplicates, ghosts and neighbours of the same class."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from entities.scene import Scene

A, B = (2.0, 0.0, 0.5), (12.0, 0.0, 0.5)
AT_A, AT_B = (0.0, 0.0, 0.0), (10.0, 0.0, 0.0)


def test_a_chair_pushed_by_less_than_a_metre_has_moved(scene: Scene) -> None:
    pushed = (2.0, 0.85, 0.5)
    for _ in range(4):
        scene.look(("chair", A), at=AT_A)
    scene.second += 600.0
    for _ in range(6):
        scene.look(("chair", pushed), at=AT_A)
    (chair,) = [entity for entity in scene.known() if not entity.tentative]
    assert chair.moved
    assert chair.position == pytest.approx(pushed, abs=0.05)
    assert [place.position for place in chair.history] == [pytest.approx(A, abs=0.05)]


def test_a_duplicate_that_is_seen_no_more_has_not_moved_to_where_another_turned_up(scene: Scene) -> None:
    """Sightings that were off made a second chair beside the first; they were never seen together."""
    beside = (2.0, 0.75, 0.5)
    for _ in range(4):
        scene.look(("chair", A), at=AT_A)
        scene.look(("chair", beside), at=AT_A)
    scene.second += 600.0
    for _ in range(6):
        scene.look(("chair", A), at=AT_A)
    scene.look(at=AT_B)
    scene.second += 600.0
    for _ in range(4):
        scene.look(("chair", B), at=AT_B)
    assert [(chair.moved, chair.missing) for chair in scene.known()] == [(False, False), (False, True), (False, False)]


def test_a_thing_that_comes_to_where_a_false_detection_was_has_moved_there(scene: Scene) -> None:
    scene.look(("cup", B), at=AT_B)
    for _ in range(4):
        scene.look(at=AT_B)
    for _ in range(4):
        scene.look(("cup", A), at=AT_A)
    scene.second += 600.0
    for _ in range(5):
        scene.look(("cup", B), at=AT_B)
    for _ in range(6):
        scene.look(at=AT_A)
    (cup,) = scene.known()
    assert cup.moved
    assert cup.position == pytest.approx(B, abs=0.05)
    assert [place.position for place in cup.history] == [pytest.approx(A, abs=0.05)]


def test_a_sighting_between_two_is_of_the_one_that_was_seen_in_every_look(scene: Scene) -> None:
    beside, between = (2.0, 0.6, 0.5), (2.0, 0.33, 0.5)
    for _ in range(4):
        scene.look(("cup", A), ("cup", beside), at=AT_A)
    for _ in range(2):
        scene.look(("cup", A), at=AT_A)
    scene.look(("cup", between), at=AT_A)
    assert [cup.sightings for cup in scene.known()] == [7, 4]


def test_the_only_cup_that_is_found_in_a_room_never_seen_before_has_moved_there(scene: Scene) -> None:
    """With other cups known it could as well be another that always stood there."""
    for _ in range(4):
        scene.look(("cup", A), ("table", (2.2, 0.5, 0.4)), at=AT_A)
    scene.second += 60.0
    for _ in range(4):
        scene.look(("cup", B), ("bed", (12.2, 0.6, 0.4)), at=AT_B)
    scene.second += 60.0
    for _ in range(6):
        scene.look(("table", (2.2, 0.5, 0.4)), at=AT_A)
    (cup,) = [entity for entity in scene.known() if entity.name == "cup"]
    assert cup.moved and not cup.missing
    assert cup.position == pytest.approx(B, abs=0.05)
    assert [place.position for place in cup.history] == [pytest.approx(A, abs=0.05)]


@pytest.mark.parametrize(
    ("label", "pause", "step"), [("person", 0.2, 0.2), ("delivery man", 1.0, 1.2), ("dog", 0.5, 1.0)]
)
def test_who_walks_past_is_one_without_track_ids_too(scene: Scene, label: str, pause: float, step: float) -> None:
    for number in range(30):
        y = number * step
        scene.look((label, (2.0, y, 0.0)), at=(0.0, y, 0.0), pause=pause)
    walker = scene.only()
    assert (walker.sightings, walker.tentative) == (30, False)
    assert walker.position == pytest.approx((2.0, 29 * step, 0.0), abs=0.7)


def test_two_who_walk_side_by_side_are_two_and_one_who_comes_later_is_another(scene: Scene) -> None:
    for number in range(10):
        y = 0.4 * number
        scene.look(("person", (2.0, y, 0.0)), ("person", (3.0, y, 0.0)), at=(0.0, y, 0.0), pause=0.4)
    assert [person.sightings for person in scene.known()] == [10, 10]
    scene.look(("person", (2.0, 5.0, 0.0)), at=(0.0, 5.0, 0.0), pause=20.0)
    assert len(scene.known()) == 3


def test_a_chair_a_step_from_another_is_another(scene: Scene) -> None:
    scene.look(("chair", A), at=(0.0, 0.0, 0.0))
    scene.look(("chair", (2.0, 1.2, 0.5)), at=(0.0, 0.0, 0.0))
    assert len(scene.known()) == 2


def test_one_of_several_cups_is_not_taken_for_one_in_a_room_never_seen_before(scene: Scene) -> None:
    for _ in range(4):
        scene.look(("cup", A), ("cup", (2.5, 1.0, 0.5)), ("table", (2.2, 0.5, 0.4)), at=AT_A)
    scene.second += 60.0
    for _ in range(4):
        scene.look(("cup", B), ("bed", (12.2, 0.6, 0.4)), at=AT_B)
    scene.second += 60.0
    for _ in range(6):
        scene.look(("cup", (2.5, 1.0, 0.5)), ("table", (2.2, 0.5, 0.4)), at=AT_A)
    cups = [entity for entity in scene.known() if entity.name == "cup"]
    assert [(cup.moved, cup.missing) for cup in cups] == [(False, True), (False, False), (False, False)]


def test_the_reads_of_a_message_grow_with_the_things_that_moved_and_not_with_their_pairs(tmp_path: Path) -> None:
    def most_reads(count: int) -> int:
        def ring(radius: float, turn: float) -> list[tuple[str, tuple[float, float, float]]]:
            angles = [(i + turn) * 2.0 * math.pi / count for i in range(count)]
            return [("cup", (radius * math.cos(angle), radius * math.sin(angle), 0.5)) for angle in angles]

        folder = tmp_path / str(count)
        folder.mkdir()
        reads: list[int] = []
        with Scene(folder) as scene:
            for cups in [ring(10.0, 0.0)] * 3 + [ring(20.0, 0.5)] * 7:
                traced: list[str] = []
                scene.db.write(lambda tx, traced=traced: tx.conn.set_trace_callback(traced.append))
                scene.look(*cups, at=(0.0, 0.0, 0.0), fov=2.0 * math.pi, reach=50.0)
                reads.append(sum(sql.lstrip().startswith("SELECT") for sql in traced))
            assert [cup.moved for cup in scene.known()] == [True] * count
        return max(reads)

    assert most_reads(16) < 5 * most_reads(4)
