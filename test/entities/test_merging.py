"""Duplicates become one thing, and what is not a duplicate stays two."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from entities.scene import NEARBY, A, Scene, drifted, runner

from memory_node.housekeeping import entities as housekeeping
from memory_node.housekeeping.entities import MergeEntities
from memory_node.housekeeping.runtime import JobRunner
from memory_node.retrieval import concepts
from memory_node.storage import entities, identity, nodes


def test_duplicates_become_one_by_the_weight_of_their_sightings(scene: Scene) -> None:
    """F46"""
    first, second = drifted(scene)
    observations = scene.observations(first) + scene.observations(second)
    assert runner(scene).run("merge_entities").wrote == 1
    cup = scene.only()
    assert (cup.id, cup.sightings) == (first, 8)
    assert cup.position == pytest.approx((2.0 + 0.9 * 2 / 8, 0.0, 0.5))
    assert scene.observations(first) == observations
    with scene.db.read() as conn:
        assert identity.resolve(conn, second) == first
        assert entities.get(conn, second) == cup
        assert identity.resolve(conn, 999) == 0
        assert identity.resolve_many(conn, [first, second, 999]) == {first: first, second: first}
        assert [node.text for node in nodes.fetch(conn, [second])] == [None]
    assert scene.observations(second) == observations


def test_a_dry_run_shows_the_pair_and_leaves_it_to_be_merged(scene: Scene) -> None:
    first, second = drifted(scene)
    jobs, before = runner(scene), scene.db.revision
    assert jobs.run("merge_entities", dry_run=True).found == ((first, second),)
    assert scene.db.revision == before
    assert jobs.run("merge_entities").wrote == 1
    assert scene.only().id == first


def test_a_job_run_twice_changes_nothing(scene: Scene) -> None:
    """F43: nothing but a sighting makes last_seen younger."""
    drifted(scene)
    jobs = runner(scene)
    jobs.run("merge_entities")
    before = scene.rows()
    assert jobs.run("merge_entities").wrote == 0
    assert runner(scene).run("merge_entities").wrote == 0
    assert scene.rows() == before


def test_a_run_over_what_has_not_changed_reads_none_of_it(tmp_path: Path) -> None:
    """However many things and rows there are, and however long ago the last merge was."""

    def work_of_a_run(things: int) -> int:
        folder = tmp_path / str(things)
        folder.mkdir()
        with Scene(folder) as scene:
            for number in range(things):
                scene.look((f"thing{number}", (5.0 * number, 0.0, 0.5)))
            for _ in range(things):
                scene.say("nothing new", None)
            jobs, counted = runner(scene), []
            assert jobs.run("merge_entities").wrote == 0
            with scene.db.read() as conn:
                conn.set_progress_handler(lambda: counted.append(1), 1)
                jobs.run("merge_entities")
                conn.set_progress_handler(None, 0)
            return len(counted)

    assert 0 < work_of_a_run(200) < 1.5 * work_of_a_run(5)


def test_how_far_a_job_came_is_kept_now_and_then(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the next start does not compare everything again when nothing was ever merged."""
    monkeypatch.setattr(housekeeping, "SAVE_EVERY", 6)
    for number in range(4):
        scene.look((f"thing{number}", A))
    runner(scene).run("merge_entities")
    assert runner(scene).run("merge_entities").scanned == 0


def test_things_seen_together_are_never_merged(scene: Scene) -> None:
    """F45"""
    scene.look(("cup", A), ("cup", (2.2, 0.0, 0.5)))
    for _ in range(4):
        scene.look(("cup", (1.9, 0.0, 0.5)))
        scene.look(("cup", (2.3, 0.0, 0.5)))
    assert runner(scene).run("merge_entities").wrote == 0
    assert len(scene.known()) == 2


def test_things_apart_are_never_merged(scene: Scene) -> None:
    """F45"""
    for _ in range(3):
        scene.look(("chair", A))
    for _ in range(3):
        scene.look(("chair", (5.0, 0.0, 0.5)))
    runner(scene).run("merge_entities")
    assert len(scene.known()) == 2


def test_the_tracker_goes_on_with_the_merged_one(scene: Scene) -> None:
    first, _ = drifted(scene)
    runner(scene).run("merge_entities")
    scene.look(("cup", (2.2, 0.0, 0.5)))
    assert (scene.only().id, scene.only().sightings) == (first, 9)


def test_words_that_turn_out_to_mean_the_same_are_merged(tmp_path: Path) -> None:
    from memory_node.storage import vectors

    with Scene(tmp_path) as scene:
        for word in ("sofa", "couch"):
            for _ in range(2):
                scene.look((word, A))
        assert len(scene.known()) == 2

        def embed(tx: object) -> None:
            model = vectors.open_model(tx, "words", 2)  # type: ignore[arg-type]
            vectors.activate(tx, model.id)  # type: ignore[arg-type]
            for word, vector in (("sofa", [1.0, 0.0]), ("couch", [0.9, math.sqrt(0.19)])):
                text = tx.conn.execute("SELECT id FROM text WHERE body = ?", (word,)).fetchone()[0]  # type: ignore[attr-defined]
                vectors.put_texts(tx, model.id, {text: np.float32([vector])})  # type: ignore[arg-type]

        scene.db.write(embed)
        runner(scene).run("merge_entities")
        assert (scene.only().name, scene.only().sightings) == ("sofa", 4)


def test_duplicates_by_two_names_of_one_thing_are_merged(scene: Scene) -> None:
    for word in ("sofa", "couch"):
        for _ in range(2):
            scene.look((word, A))
    assert runner(scene).run("merge_entities").wrote == 0
    scene.look(("couch", A))
    job = MergeEntities(concepts.other_names)
    assert JobRunner(runner(scene).context, [job]).run("merge_entities").wrote == 1
    assert (scene.only().name, scene.only().sightings) == ("sofa", 5)


def test_labels_stand_in_order_and_as_many_as_are_asked_for(scene: Scene) -> None:
    scene.look(("cup", A), ("bowl", NEARBY), ("sofa", (5.0, 0.0, 0.5)), ("cup", (8.0, 0.0, 0.5)))
    with scene.db.read() as conn:
        assert entities.labels(conn) == ["bowl", "cup", "sofa"]
        assert entities.labels(conn, 2) == ["bowl", "cup"]
        assert entities.labels(conn, 0) == []
