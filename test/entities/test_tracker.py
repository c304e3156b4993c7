"""What is seen again and what is new, by the tracker alone."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from entities.scene import Scene

from memory_node.graph import Detection, EdgeType, PositionSource
from memory_node.storage import edges, nodes

A, C = (2.0, 0.0, 0.5), (2.0, 3.0, 0.5)
FACING_A = (0.0, 0.0, 0.0)


def test_a_thing_seen_again_is_one_thing_where_it_was_seen_on_average(scene: Scene) -> None:
    ids = [scene.look(("cup", (2.0 + dx, 0.0, 0.5)), at=FACING_A)[0] for dx in (-0.1, 0.0, 0.1)]
    cup = scene.only()
    assert cup.position == pytest.approx(A, abs=0.03)
    assert (cup.name, cup.entity_type, cup.sightings, cup.tentative) == ("cup", "cup", 3, False)
    assert (cup.first_seen, cup.last_seen) == (1_001_000_000_000, 1_003_000_000_000)
    assert 0.05 <= cup.position_stddev < 0.15
    assert scene.observations(cup.id) == ids


def test_a_single_sighting_is_tentative(scene: Scene) -> None:
    scene.look(("cup", A), at=FACING_A)
    assert scene.only().tentative
    assert scene.only().confidence < 0.6


def test_two_things_in_one_message_are_never_one(scene: Scene) -> None:
    """F45: even at 0.3 m, where each alone would be taken for the other."""
    for _ in range(3):
        scene.look(("chair", A), ("chair", (2.3, 0.0, 0.5)), at=FACING_A)
    chairs = scene.known()
    assert [round(chair.position[0], 1) for chair in chairs if chair.position] == [2.0, 2.3]
    assert [chair.sightings for chair in chairs] == [3, 3]


def test_two_things_seen_in_turn_are_two(scene: Scene) -> None:
    """F45: chairs 3 m apart, seen in turn, and then both in one frame."""
    for _ in range(3):
        scene.look(("chair", A), at=FACING_A)
        scene.look(("chair", C), at=(0.0, 3.0, 0.0))
    scene.look(("chair", A), ("chair", C), at=(-2.0, 1.5, 0.0))
    assert [(chair.sightings, chair.tentative) for chair in scene.known()] == [(4, False), (4, False)]


def test_another_class_at_the_same_place_is_another_thing(scene: Scene) -> None:
    scene.look(("cup", A), at=FACING_A)
    scene.look(("book", A), at=FACING_A)
    assert [entity.name for entity in scene.known()] == ["cup", "book"]


def test_labels_near_in_meaning_may_be_one_thing(tmp_path: Path) -> None:
    vectors = {
        "sofa": np.float32([1.0, 0.0]),
        "couch": np.float32([0.9, math.sqrt(0.19)]),
        "dog": np.float32([0.0, 1.0]),
    }
    with Scene(tmp_path, vectors) as scene:
        scene.look(("sofa", A), at=FACING_A)
        scene.look(("couch", A), at=FACING_A)
        scene.look(("dog", A), at=FACING_A)
        assert [(entity.name, entity.sightings) for entity in scene.known()] == [("sofa", 2), ("dog", 1)]


def test_numbers_and_sides_near_in_meaning_are_two_things(tmp_path: Path) -> None:
    near = (np.float32([1.0, 0.0]), np.float32([0.9, math.sqrt(0.19)]))
    for labels in (("56", "62"), ("chair 1", "chair 2"), ("left door", "right door")):
        folder = tmp_path / labels[0]
        folder.mkdir()
        with Scene(folder, dict(zip(labels, near, strict=True))) as scene:
            for _ in range(2):
                scene.look((labels[0], A), at=FACING_A)
                scene.look((labels[1], (2.2, 0.0, 0.5)), at=FACING_A)
            assert [(entity.name, entity.sightings) for entity in scene.known()] == [(label, 2) for label in labels]


def test_the_gate_for_measured_places_is_a_setting(tmp_path: Path) -> None:
    with Scene(tmp_path, entity_gate_measured=0.2) as scene:
        scene.look(("cup", A), at=FACING_A)
        scene.look(("cup", (2.3, 0.0, 0.5)), at=FACING_A)
        assert len(scene.known()) == 2


def test_what_only_the_observer_places_is_matched_within_its_radius(scene: Scene) -> None:
    scene.look(("cup", None), at=(0.0, 0.0, 0.0))
    scene.look(("cup", None), at=(3.0, 0.0, 0.0))
    scene.look(("cup", None), at=(20.0, 0.0, 0.0))
    near, far = scene.known()
    assert (near.sightings, near.position_source, near.position_stddev >= 1.0) == (2, PositionSource.OBSERVER, True)
    assert far.position == (20.0, 0.0, 0.0)


def test_a_measured_place_replaces_the_observers_and_is_not_diluted(scene: Scene) -> None:
    scene.look(("cup", None), at=FACING_A)
    scene.look(("cup", A), at=FACING_A)
    scene.look(("cup", None), at=FACING_A)
    cup = scene.only()
    assert cup.position == pytest.approx(A)
    assert (cup.position_source, cup.sightings) == (PositionSource.MEASURED, 3)


def test_cooccurrence_is_counted_once_a_message(scene: Scene) -> None:
    for _ in range(3):
        scene.look(("cup", A), ("book", C), at=(0.0, 1.5, 0.0))
    cup, book = scene.known()
    with scene.db.read() as conn:
        (edge,) = [edge for edge in edges.of(conn, cup.id) if edge.type is EdgeType.COOCCURS_WITH]
    assert (edge.source, edge.target, edge.count) == (cup.id, book.id, 3)


def test_the_same_track_id_for_two_things_joins_nothing(scene: Scene) -> None:
    for _ in range(3):
        scene.look(Detection("cup", 0.9, A, "7"), Detection("cup", 0.9, C, "7"), at=(-1.0, 1.5, 0.0))
    assert [cup.sightings for cup in scene.known()] == [3, 3]


def test_a_new_track_id_every_frame_parts_nothing(scene: Scene) -> None:
    for frame in range(5):
        scene.look(Detection("cup", 0.9, A, str(frame)), at=FACING_A)
    assert scene.only().sightings == 5


def test_a_track_id_holds_together_what_walks(scene: Scene) -> None:
    for step in range(6):
        scene.look(Detection("person", 0.9, (2.0 + 0.8 * step, 0.0, 0.5), "p1"), at=FACING_A, pause=0.4)
    assert scene.only().sightings == 6


@pytest.mark.parametrize("label", ["", "   ", "\t\n", "__"])
def test_blank_labels_make_no_entity(scene: Scene, label: str) -> None:
    """F19"""
    scene.look((label, A), at=FACING_A)
    assert scene.known() == []


@pytest.mark.parametrize("label", ["62", "CUP", "Dining_Table"])
def test_numbers_and_capitals_are_labels(scene: Scene, label: str) -> None:
    scene.look((label, A), at=FACING_A)
    scene.look((label.lower(), A), at=FACING_A)
    assert scene.only().sightings == 2


def test_a_score_that_is_no_number_makes_no_entity(scene: Scene) -> None:
    """F19: no phantom entity."""
    scene.look(Detection("cup", math.nan, A), at=FACING_A)
    assert scene.known() == []


def test_a_position_that_is_no_number_is_the_observers(scene: Scene) -> None:
    scene.look(("cup", (math.nan, 0.0, 0.0)), at=FACING_A)
    cup = scene.only()
    assert (cup.position, cup.position_source) == ((0.0, 0.0, 0.0), PositionSource.OBSERVER)


def test_before_any_pose_a_thing_is_known_without_a_place_and_gets_one_later(scene: Scene) -> None:
    scene.look(("cup", None))
    scene.look(("cup", None))
    assert (scene.only().position, scene.only().sightings) == (None, 2)
    scene.look(("cup", A), at=FACING_A)
    assert scene.only().position == pytest.approx(A)


def test_an_empty_message_with_nothing_known_does_nothing(scene: Scene) -> None:
    """F19"""
    assert scene.look(at=FACING_A) == []
    assert scene.known() == []


def test_500_detections_in_one_message_are_500_things(scene: Scene) -> None:
    crowd = [("chair", (0.7 * (i % 25), 0.7 * (i // 25), 0.0)) for i in range(500)]
    scene.look(*crowd)
    scene.look(*crowd)
    chairs = scene.known()
    assert len(chairs) == 500
    assert {chair.sightings for chair in chairs} == {2}
    with scene.db.read() as conn:
        pairs = conn.execute("SELECT count(*) FROM edge WHERE type = ?", (int(EdgeType.COOCCURS_WITH),)).fetchone()[0]
    assert 500 <= pairs <= 500 * 24


def test_revisits_with_drift_stay_one_thing(scene: Scene) -> None:
    """F46: the odometry drifts half a metre over eight passes; the number of entities stays the true one."""
    rng = np.random.default_rng(1)
    things = [("chair", (x, y, 0.5)) for x in (1.0, 2.0, 3.0) for y in (-1.0, 0.0, 1.0)]
    for number in range(8 * 6):
        drift = 0.5 * number / 48.0
        seen = [
            (label, tuple(float(v) for v in np.add(p, (drift, 0.0, 0.0)) + rng.normal(0, 0.1, 3)))
            for label, p in things
        ]
        scene.look(*seen, at=(-0.5 + drift, 0.0, 0.0), fov=3.0)  # type: ignore[arg-type]
    confirmed = [entity for entity in scene.known() if not entity.tentative]
    assert len(confirmed) == 9


def test_a_rolled_back_message_leaves_no_trace_in_memory_or_store(scene: Scene) -> None:
    scene.look(("cup", A), at=FACING_A)
    before = scene.rows()

    def fail(tx: object) -> None:
        scene.look_in(tx, ("cup", A), ("book", C), at=FACING_A)  # type: ignore[arg-type]
        raise RuntimeError("the disk is full")

    with pytest.raises(RuntimeError):
        scene.db.write(fail)
    assert scene.rows() == before
    scene.look(("cup", A), ("book", C), at=FACING_A)
    assert [(entity.name, entity.sightings) for entity in scene.known()] == [("cup", 2), ("book", 1)]


def test_a_removed_entity_is_not_written_to_again(scene: Scene) -> None:
    """F43: delete or correct is possible."""
    scene.look(("cup", A), at=FACING_A)
    old = scene.only().id
    scene.db.write(lambda tx: nodes.remove(tx, [old]))
    scene.look(("cup", A), at=FACING_A)
    assert (scene.only().id != old, scene.only().sightings) == (True, 1)


def test_things_of_another_map_are_other_things(scene: Scene) -> None:
    from memory_node.graph import Look

    (id_,) = scene.look(("cup", A), at=FACING_A)
    cup = Detection("cup", 0.9, A)
    look = Look("detections", 2_000_000_000_000, "garden", (cup,), (id_,), None, 5.0, 1.2, scene.session)
    scene.db.write(lambda tx: scene.tracker.observe(tx, look))
    assert [entity.map_id for entity in scene.known()] == ["house", "garden"]
