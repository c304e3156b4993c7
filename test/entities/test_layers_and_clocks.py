"""What is gone is noticed by every layer that showed it, after a restart too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from entities.scene import Scene

from memory_node.storage import entities
from memory_node.storage.database import Transaction

A, B = (2.0, 0.0, 0.5), (2.0, 6.0, 0.5)
FACING_A, FACING_B = (0.0, 0.0, 0.0), (0.0, 6.0, 0.0)


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with Scene(tmp_path) as opened:
        yield opened


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
