"""What is gone and what moved, by the tracker alone."""

from __future__ import annotations

import math

import pytest
from entities.scene import Scene

from memory_node.graph import PositionSource

A, B, C = (2.0, 0.0, 0.5), (8.0, 0.0, 0.5), (2.0, 3.0, 0.5)
FACING_A, FACING_B = (0.0, 0.0, 0.0), (6.0, 0.0, 0.0)


def test_a_thing_looked_for_in_vain_is_missing_and_stays(scene: Scene) -> None:
    """F43: an object removed; its last sighting stays what it was."""
    for _ in range(3):
        scene.look(("cup", A), at=FACING_A)
    seen = scene.only()
    scene.look(at=FACING_A)
    assert not scene.only().missing
    for _ in range(3):
        scene.look(at=FACING_A)
    cup = scene.only()
    assert cup.missing
    assert cup.confidence < 0.2
    assert (cup.last_seen, cup.sightings, cup.position) == (seen.last_seen, seen.sightings, seen.position)
    scene.look(("cup", A), at=FACING_A)
    assert not scene.only().missing


@pytest.mark.parametrize(
    ("at", "why"),
    [
        ((-4.0, 0.0, 0.0), "out of range"),
        ((0.0, 0.0, 1.57), "outside the field of view"),
        ((0.0, 0.0), "heading unknown"),
        (None, "pose unknown"),
    ],
)
def test_a_look_that_could_not_show_it_says_nothing(scene: Scene, at: tuple[float, ...] | None, why: str) -> None:
    for _ in range(3):
        scene.look(("cup", A), at=FACING_A)
    before = scene.only()
    for _ in range(6):
        scene.look(at=at)
    assert scene.only() == before, why


def test_looks_from_where_it_was_never_seen_do_not_make_it_missing_in_one_sweep(scene: Scene) -> None:
    """A wall may stand between: the detector sees things of its own room only."""
    for _ in range(3):
        scene.look(("tv", A), at=FACING_A)
    scene.second += 100.0
    for _ in range(20):
        scene.look(at=(A[0], 3.0, -math.pi / 2.0), pause=0.5)
    tv = scene.only()
    assert not tv.missing
    assert tv.confidence == pytest.approx(16.0 / 17.0)


def test_looks_from_elsewhere_that_show_what_is_behind_it_count(scene: Scene) -> None:
    for _ in range(3):
        scene.look(("tv", A), at=FACING_A)
    for _ in range(3):
        scene.look(("shelf", (A[0], A[1] - 1.0, 0.5)), at=(A[0], 3.0, -math.pi / 2.0))
    assert scene.known()[0].missing


def test_looks_at_the_edge_of_the_view_do_not_make_it_missing_in_one_sweep(scene: Scene) -> None:
    for _ in range(3):
        scene.look(("cup", A), at=FACING_A)
    bearing = math.atan2(A[1], A[0])
    for _ in range(20):
        scene.look(at=(0.0, 0.0, bearing + 0.57), pause=0.5)
    assert not scene.only().missing


def test_many_occasions_without_it_make_it_missing_at_last(scene: Scene) -> None:
    for _ in range(3):
        scene.look(("tv", A), at=FACING_A)
    for _ in range(4):
        scene.look(at=(A[0], 3.0, -math.pi / 2.0), pause=60.0)
        assert not scene.only().missing
    for _ in range(2):
        scene.look(at=(A[0], 3.0, -math.pi / 2.0), pause=60.0)
    assert scene.only().missing


def test_chairs_that_the_detector_drops_now_and_then_are_not_missing(scene: Scene) -> None:
    """A robot that turns and drives by two chairs of the next room, as a real patrol does, at two looks a second."""
    chairs = (("chair", (2.85, 0.9, 0.4)), ("chair", (4.35, 0.9, 0.4)))
    for number in range(60):
        seen = [chair for place, chair in enumerate(chairs) if (number + 5 * place) % 12 > 1]
        scene.look(*seen, at=(4.2, 3.2, -2.0), pause=0.5, fov=1.92, reach=4.0)
    for number in range(12):
        scene.look(at=(3.0 + 0.2 * number, 4.8, -math.pi / 2.0), pause=0.5, fov=1.92, reach=4.0)
    assert [(chair.missing, chair.confidence > 0.85) for chair in scene.known()] == [(False, True)] * 2


def test_a_thing_behind_another_is_not_missing(scene: Scene) -> None:
    for _ in range(3):
        scene.look(("cup", A), at=FACING_A)
    for _ in range(6):
        scene.look(("shelf", (1.0, 0.0, 0.5)), at=FACING_A)
    cup = scene.known()[0]
    assert (cup.name, cup.missing) == ("cup", False)


def test_a_layer_that_never_saw_its_class_does_not_make_it_missing(scene: Scene) -> None:
    for _ in range(3):
        scene.look(("cup", A), at=FACING_A)
    for _ in range(6):
        scene.look(at=FACING_A, layer="faces")
    assert not scene.only().missing


def test_flicker_is_one_look(scene: Scene) -> None:
    for _ in range(3):
        scene.look(("cup", A), at=FACING_A)
    for _ in range(10):
        scene.look(at=FACING_A, pause=0.03)
    assert not scene.only().missing


def test_a_moved_thing_is_one_thing_with_a_history(scene: Scene) -> None:
    """F44: a cup at A in the morning, at B later, never again at A."""
    for _ in range(3):
        scene.look(("cup", A), at=FACING_A)
    left = scene.only()
    scene.second += 3600.0
    for _ in range(3):
        scene.look(("cup", B), at=FACING_B)
    for _ in range(3):
        scene.look(at=FACING_A)
    cup = scene.only()
    assert cup.id == left.id
    assert (cup.moved, cup.missing, cup.sightings, cup.first_seen) == (True, False, 6, left.first_seen)
    assert cup.position == pytest.approx(B)
    (old,) = cup.history
    assert old.position == pytest.approx(A)
    assert (old.first_seen, old.last_seen, old.support) == (left.first_seen, left.last_seen, 3)
    assert len(scene.observations(cup.id)) == 6


def test_a_thing_moved_twice_has_both_places_the_newest_first(scene: Scene) -> None:
    places = [A, B, (2.0, 20.0, 0.5)]
    for place in places:
        for _ in range(3):
            scene.look(("cup", place), at=(place[0] - 2.0, place[1], 0.0))
        for old in places[: places.index(place)]:
            for _ in range(4):
                scene.look(at=(old[0] - 2.0, old[1], 0.0))
    cup = scene.only()
    assert cup.position == pytest.approx(places[2])
    assert [place.position[:2] for place in cup.history] == [pytest.approx(B[:2]), pytest.approx(A[:2])]


def test_a_second_thing_elsewhere_does_not_move_the_first(scene: Scene) -> None:
    for _ in range(3):
        scene.look(("cup", A), at=FACING_A)
    for _ in range(3):
        scene.look(("cup", B), at=FACING_B)
    for _ in range(3):
        scene.look(("cup", A), at=FACING_A)
    assert [(cup.moved, cup.missing) for cup in scene.known()] == [(False, False), (False, False)]


def test_what_only_the_observer_places_is_missing_when_looks_from_there_do_not_show_it(scene: Scene) -> None:
    for _ in range(3):
        scene.look(("cup", None), at=FACING_A)
    scene.look(at=(0.3, 0.2, 0.1))
    assert not scene.only().missing
    for _ in range(3):
        scene.look(at=(0.3, 0.2, 0.1))
    cup = scene.only()
    assert (cup.missing, cup.position, cup.sightings) == (True, (0.0, 0.0, 0.0), 3)
    scene.look(("cup", None), at=FACING_A)
    assert not scene.only().missing


@pytest.mark.parametrize(
    ("at", "why"),
    [
        ((0.0, 0.0, 1.3), "another heading"),
        ((0.0, 6.0, 0.0), "another place"),
        ((0.0, 0.0), "heading unknown"),
        (None, "pose unknown"),
    ],
)
def test_a_look_from_elsewhere_says_nothing_of_what_only_the_observer_places(
    scene: Scene, at: tuple[float, ...] | None, why: str
) -> None:
    for _ in range(3):
        scene.look(("cup", None), at=FACING_A)
    before = scene.only()
    for _ in range(8):
        scene.look(at=at, pause=60.0)
    assert scene.only() == before, why


def test_looks_from_beside_make_what_only_the_observer_places_missing_after_many_occasions(scene: Scene) -> None:
    for _ in range(3):
        scene.look(("cup", None), at=FACING_A)
    scene.second += 60.0
    for _ in range(20):
        scene.look(at=(0.0, 2.0, 0.4), pause=0.5)
    assert not scene.only().missing
    for _ in range(6):
        scene.look(at=(0.0, 2.0, 0.4), pause=60.0)
    assert scene.only().missing


def test_what_only_the_observer_places_moves_too(scene: Scene) -> None:
    """F44: a cup seen from one place, then from another, and never again from the first."""
    for _ in range(3):
        scene.look(("cup", None), at=FACING_A)
    left = scene.only()
    scene.second += 600.0
    for _ in range(3):
        scene.look(("cup", None), at=(20.0, 0.0, 0.0))
    for _ in range(4):
        scene.look(at=FACING_A)
    cup = scene.only()
    assert (cup.id, cup.moved, cup.missing, cup.sightings) == (left.id, True, False, 6)
    assert (cup.position, cup.position_source) == ((20.0, 0.0, 0.0), PositionSource.OBSERVER)
    (old,) = cup.history
    assert (old.position, old.last_seen) == ((0.0, 0.0, 0.0), left.last_seen)


def test_what_was_measured_elsewhere_is_where_the_observers_thing_went(scene: Scene) -> None:
    for _ in range(3):
        scene.look(("cup", None), at=FACING_A)
    scene.second += 600.0
    for _ in range(3):
        scene.look(("cup", B), at=FACING_B)
    for _ in range(4):
        scene.look(at=FACING_A)
    assert (scene.only().moved, scene.only().position_source) == (True, PositionSource.MEASURED)


def test_a_false_detection_fades(scene: Scene) -> None:
    """F43: one false detection stays tentative and is hardly believed."""
    scene.look(("cup", A), ("dog", C), at=(-1.0, 1.5, 0.0))
    for _ in range(4):
        scene.look(("cup", A), at=(-1.0, 1.5, 0.0))
    dog = scene.known()[1]
    assert (dog.name, dog.tentative) == ("dog", True)
    assert dog.confidence < 0.05


def test_a_new_tracker_goes_on_where_the_last_one_was(scene: Scene) -> None:
    for _ in range(3):
        scene.look(("cup", A), at=FACING_A)
    scene.tracker.forget()
    for _ in range(3):
        scene.look(at=FACING_A)
    assert scene.only().missing
