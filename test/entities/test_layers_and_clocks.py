"""What is gone is noticed by every layer that showed it, after a restart too, and whatever the clock does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from entities.scene import Scene

from memory_node.graph import Detection
from memory_node.ingest.entities import EntityTracker
from memory_node.storage import entities
from memory_node.storage.database import Transaction

A, B = (2.0, 0.0, 0.5), (2.0, 6.0, 0.5)
FACING_A, FACING_B = (0.0, 0.0, 0.0), (0.0, 6.0, 0.0)


@pytest.mark.parametrize("layer", ["front", "rear", "side"])
def test_after_a_restart_each_layer_that_showed_a_thing_notices_that_it_is_gone(scene: Scene, layer: str) -> None:
    for _ in range(2):
        for name in ("front", "rear", "side", "front"):
            scene.look(("cup", A), at=FACING_A, layer=name)
    scene.tracker.forget()
    for _ in range(4):
        scene.look(at=FACING_A, layer="faces")
    assert not scene.only().missing
    for _ in range(4):
        scene.look(at=FACING_A, layer=layer)
    assert scene.only().missing


def test_a_layer_that_names_a_thing_by_another_word_notices_that_it_is_gone(tmp_path: Path) -> None:
    vectors = {"sofa": np.float32([1.0, 0.0]), "couch": np.float32([0.96, 0.28])}
    with Scene(tmp_path, vectors) as scene:
        for _ in range(2):
            scene.look(("sofa", A), at=FACING_A, layer="front")
            scene.look(("couch", A), at=FACING_A, layer="rear")
        scene.tracker.forget()
        for _ in range(4):
            scene.look(at=FACING_A, layer="rear")
        assert (scene.only().name, scene.only().missing) == ("sofa", True)


def test_what_two_were_shown_by_shows_the_one_that_they_turn_out_to_be(scene: Scene) -> None:
    for _ in range(2):
        scene.look(("sofa", A), at=FACING_A, layer="front")
        scene.look(("couch", A), at=FACING_A, layer="rear")
    sofa, couch = (entity.id for entity in scene.known())

    def merge(tx: Transaction) -> None:
        entities.absorb(tx, sofa, couch)
        entities.edited(tx)

    scene.db.write(merge)
    for _ in range(4):
        scene.look(at=FACING_A, layer="rear")
    assert scene.only().missing


BACK = [("clock went back", False), ("clock went back", True), ("start", True)]


def begin_anew(scene: Scene, reason: str, restart: bool, second: float) -> None:
    """Have the clock begin anew at second, in a new process or not."""
    if restart:
        scene.tracker = EntityTracker(lambda: scene.settings, scene._label_vectors)
    scene.begin(reason, second)


@pytest.mark.parametrize(("reason", "restart"), BACK)
def test_f1_what_is_gone_is_missed_after_the_clock_went_back(scene: Scene, reason: str, restart: bool) -> None:
    """Looks that saw nothing went on for long after the last row that was stored."""
    for _ in range(6):
        scene.look(("cup", A), at=FACING_A)
    for _ in range(20):
        scene.look(at=FACING_B, pause=30.0)
    begin_anew(scene, reason, restart, 100.0)
    for _ in range(3):
        assert not scene.only().missing
        scene.look(at=FACING_A, pause=5.0)
    assert scene.only().missing
    scene.look(("cup", A), at=FACING_A)
    assert (scene.only().missing, scene.only().last_seen) == (False, 116_000_000_000)


@pytest.mark.parametrize(("reason", "restart"), BACK)
def test_f1_what_moved_is_where_it_was_seen_last_whatever_the_clock_said(
    scene: Scene, reason: str, restart: bool
) -> None:
    for _ in range(3):
        scene.look(("cup", A), at=FACING_A)
        scene.look(("shelf", (2.0, 6.5, 0.5)), at=FACING_B)
    begin_anew(scene, reason, restart, 100.0)
    for _ in range(3):
        scene.look(("cup", B), ("shelf", (2.0, 6.5, 0.5)), at=FACING_B)
    for _ in range(8):
        scene.look(at=FACING_A)
    cup = next(entity for entity in scene.known() if entity.name == "cup")
    assert (cup.position, cup.moved, cup.missing, cup.sightings) == (pytest.approx(B), True, False, 6)
    assert [place.position for place in cup.history] == [pytest.approx(A)]
    assert (cup.first_seen, cup.last_seen) == (101_000_000_000, 103_000_000_000)


def test_f1_the_place_that_it_left_last_comes_first_whatever_the_clock_said(scene: Scene) -> None:
    places = (A, FACING_A), (B, FACING_B), ((2.0, 12.0, 0.5), (0.0, 12.0, 0.0))
    for (place, facing), second in zip(places, (1000.0, 2000.0, 100.0), strict=True):
        scene.begin("clock went back" if second < scene.second else "start", second)
        for _, elsewhere in places:
            for _ in range(4):
                seen = [("cup", place)] if elsewhere == facing else []
                scene.look(("shelf", (2.5, elsewhere[1], 0.5)), *seen, at=elsewhere)
    cup = scene.known()[1]
    assert (cup.name, cup.position) == ("cup", pytest.approx(places[2][0]))
    assert [place.position for place in cup.history] == [pytest.approx(B), pytest.approx(A)]
    assert all(place.first_seen <= place.last_seen for place in cup.history)
    assert cup.first_seen <= cup.last_seen == 112_000_000_000


def test_f1_a_track_id_of_the_last_loop_says_nothing(scene: Scene) -> None:
    scene.look(Detection("person", 0.9, A, "7"), at=FACING_A)
    scene.begin("clock went back", 1000.0)
    scene.look(Detection("person", 0.9, (3.2, 0.0, 0.5), "7"), at=FACING_A)
    assert len(scene.known()) == 2
