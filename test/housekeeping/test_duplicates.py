"""Stored notes that say the same, gists of gists, and snapshots."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from kept_store import DAY, Store
from numpy.typing import NDArray
from support.fakes import SECOND, FakeClock, WordEmbedder

from memory_node.graph import EdgeType, Tier
from memory_node.housekeeping.duplicates import Duplicate, store_note
from memory_node.memory import Memory
from memory_node.storage import edges, nodes


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    embedder = WordEmbedder(same={"key": "keys", "mats": "mat"})
    with Store(tmp_path / "m.db", embedder=embedder) as opened:
        yield opened


def now(store: Store) -> float:
    return store.clock.ns / SECOND


def test_the_newer_of_two_notes_that_say_the_same_survives_and_leads_to_the_older(store: Store) -> None:
    older = store.note("the spare key is under the mat", now(store))
    newer = store.note("the spare keys is under the mat", now(store) + 1)
    other = store.note("the window is broken", now(store) + 2)
    store.embed()
    store.run("duplicates")
    assert store.node(older).tier is Tier.ARCHIVED and store.node(older).text == "the spare key is under the mat"
    assert store.node(newer).tier is store.node(other).tier is Tier.LONG_TERM
    with store.db.read() as conn:
        assert edges.targets(conn, newer, EdgeType.SUPERSEDES) == [older]
    before = store.db.revision
    assert store.run("duplicates")[0].wrote == 0 and store.db.revision == before


def test_notes_of_another_layer_and_rows_that_are_no_notes_are_left_alone(store: Store) -> None:
    row = store.add("the spare key is under the mat", now(store), None, "notes")
    first = store.note("the spare key is under the mat", now(store) + 1, "orders")
    second = store.note("the spare key is under the mat", now(store) + 2)
    store.embed()
    store.run("duplicates")
    assert store.node(row).tier is Tier.SHORT_TERM
    assert store.node(first).tier is store.node(second).tier is Tier.LONG_TERM


def test_notes_that_merely_resemble_each_other_both_stay(store: Store) -> None:
    first = store.note("the spare key is under the mat", now(store))
    second = store.note("the spare key is under the table", now(store) + 1)
    store.embed()
    store.run("duplicates")
    assert store.node(first).tier is store.node(second).tier is Tier.LONG_TERM


def test_a_dry_run_shows_members_and_cosines_and_writes_nothing(store: Store) -> None:
    older = store.note("the spare key is under the mat", now(store))
    newer = store.note("the spare keys is under the mat", now(store) + 1)
    store.embed()
    before = store.db.revision
    (found,) = store.run("duplicates", dry_run=True)[0].found
    assert (found.newer_id, found.older_id) == (newer, older) and found.cosine == pytest.approx(1.0, abs=1e-3)
    assert store.db.revision == before and store.node(older).tier is Tier.LONG_TERM


def test_the_check_at_write_time_uses_the_same_rule(store: Store) -> None:
    older = store.note("the spare key is under the mat", now(store))
    store.embed()
    newer = store.add("the spare key is under the mat", now(store) + 1, None, "notes")
    found = store.write(lambda tx: store_note(tx, newer, None, store.settings.duplicate_threshold))
    assert found == [Duplicate(newer, older, 1.0)]
    assert store.node(newer).tier is Tier.LONG_TERM and store.node(older).tier is Tier.ARCHIVED


def test_a_note_of_before_is_demoted_though_it_was_stored_later(store: Store) -> None:
    newer = store.note("the spare key is under the mat", now(store))
    store.embed()
    store.run("duplicates")
    older = store.note("the spare keys is under the mat", now(store) - 3600)
    store.embed()
    (shown,) = store.run("duplicates", dry_run=True)[0].found
    store.run("duplicates")
    assert (shown.newer_id, shown.older_id) == (newer, older)
    assert store.node(older).tier is Tier.ARCHIVED and store.node(newer).tier is Tier.LONG_TERM
    with store.db.read() as conn:
        assert edges.targets(conn, newer, EdgeType.SUPERSEDES) == [older]
    oldest = store.add("the spare key is under the mat", now(store) - 7200, None, "notes")
    found = store.write(lambda tx: store_note(tx, oldest, None, store.settings.duplicate_threshold))
    assert found == [Duplicate(newer, oldest, 1.0)] and store.node(oldest).tier is Tier.ARCHIVED
    store.run("duplicates")
    assert store.run("duplicates", dry_run=True)[0].found == () and store.node(newer).tier is Tier.LONG_TERM


def test_a_note_waits_for_its_vector(store: Store) -> None:
    older = store.note("the spare key is under the mat", now(store))
    store.embed()
    store.run("duplicates")
    newer = store.note("the spare keys is under the mat", now(store) + 1)
    store.run("duplicates")
    assert store.node(older).tier is Tier.LONG_TERM
    store.embed()
    store.run("duplicates")
    assert store.node(older).tier is Tier.ARCHIVED and store.node(newer).tier is Tier.LONG_TERM


def test_notes_are_neither_summarised_nor_archived(store: Store) -> None:
    notes = [store.note(f"the spare key number {i} is under the mat {i}", now(store) + i) for i in range(5)]
    store.embed()
    store.clock.advance(20 * DAY)
    store.run()
    assert store.gists() == [] and {store.node(id_).tier for id_ in notes} == {Tier.LONG_TERM}


def test_a_run_reads_only_what_is_new(store: Store) -> None:
    store.add_many([("a red chair", now(store) + i, None, "scene") for i in range(3000)])
    assert store.run("duplicates")[0].scanned == 3000
    store.note("the spare key is under the mat", now(store))
    assert store.run("duplicates")[0].scanned == 1


# ---- in a whole memory


def tiers(memory: Memory) -> dict[str, Tier]:
    return {str(node.text): node.tier for node in memory.nodes() if node.layer == "notes"}


class Given:
    """An embedder of vectors drawn for each text: `crowd` ones are nearer to the new note than the old note is."""

    name, dim = "given", 64

    def __init__(self) -> None:
        self.chance = np.random.default_rng(0)
        self.new = self.unit(self.chance.standard_normal(self.dim))

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        return np.stack([self.one(text) for text in texts]).astype(np.float32)

    def one(self, text: str) -> NDArray[np.float64]:
        if text.startswith("new"):
            return self.new
        cosine = 0.98 if text.startswith("old") else 0.995
        across = self.chance.standard_normal(self.dim)
        across -= across @ self.new * self.new
        return cosine * self.new + math.sqrt(1 - cosine**2) * self.unit(across)

    @staticmethod
    def unit(vector: NDArray[np.float64]) -> NDArray[np.float64]:
        return vector / np.linalg.norm(vector)


@pytest.mark.parametrize("at_write", [True, False])
def test_a_note_is_found_among_however_many_nearer_texts_of_other_layers(tmp_path: Path, at_write: bool) -> None:
    clock = FakeClock()
    with Memory.open(tmp_path / "robot.db", embedder=Given(), clock=clock) as memory:
        memory.store_specific_memory("old note")
        for i in range(120):
            memory.record(f"scene {i}", layer="scene")
            memory.record(f"aside {i}", layer="notes")
        assert memory.wait_embedded(20.0)
        clock.advance(1)
        if at_write:
            # Its text has a vector already, so the check at write time sees it.
            memory.record("new note", layer="other")
            assert memory.wait_embedded(20.0)
            memory.store_specific_memory("new note")
        else:
            # A note whose vector came after that check.
            new = memory.record("new note", layer="notes")
            assert memory.wait_embedded(20.0)
            memory._rooms.db.write(lambda tx: nodes.update(tx, new, tier=Tier.LONG_TERM))
            (found,) = memory.run_job("duplicates", dry_run=True).found
            assert found.cosine == pytest.approx(0.98, abs=1e-3)
            memory.run_job("duplicates")
        assert (tiers(memory)["old note"], tiers(memory)["new note"]) == (Tier.ARCHIVED, Tier.LONG_TERM)


def test_a_note_that_says_more_than_the_newer_one_stays(tmp_path: Path) -> None:
    clock = FakeClock()
    with Memory.open(tmp_path / "robot.db", embedder=WordEmbedder(), clock=clock) as memory:
        more = "The spare key lies under the mat. The alarm is switched off with the red button."
        memory.store_specific_memory(more)
        clock.advance(1)
        memory.store_specific_memory("The spare key lies under the mat.")
        assert memory.wait_embedded(20.0)
        memory.run_job("duplicates")
        assert set(tiers(memory).values()) == {Tier.LONG_TERM}


# ---- gists of gists


def gists_of_a_day(store: Store, day: int, places: list[tuple[float, float, float]]) -> None:
    store.clock.set(day * DAY + 3600)
    for hour in range(6):
        start = now(store)
        for i, place in enumerate(places):
            store.add_many([(f"a chair of hour {hour}", start + j, place, "scene") for j in range(3 + i)])
        store.clock.advance(2000)
        store.run("gists")
        store.clock.advance(1600)


def test_old_gists_of_one_place_and_day_become_one_gist_of_gists(store: Store) -> None:
    gists_of_a_day(store, 10, [(0.0, 0.0, 0.0), (30.0, 0.0, 0.0)])
    gists_of_a_day(store, 11, [(0.5, 0.0, 0.0)])
    assert len(store.gists()) == 18
    store.clock.set(18 * DAY - 10)
    store.run("rollup")
    assert [gist for gist in store.gists() if gist.level == 1] == []
    store.clock.set(18 * DAY)
    store.run("rollup")
    left, right = sorted((gist for gist in store.gists() if gist.level == 1), key=lambda gist: gist.position)
    assert left.position == pytest.approx((0, 0, 0)) and right.position == pytest.approx((30, 0, 0))
    assert left.observation_count == 18 and right.observation_count == 24
    assert all(f"a chair of hour {hour} (x3)" in left.text for hour in range(6))
    assert left.radius <= store.settings.consolidation_max_radius
    members = [store.node(id_) for id_ in store.members(left.id)]
    assert len(members) == 6 and {m.tier for m in members} == {Tier.ARCHIVED} and {m.text for m in members} == {None}
    assert left.start == members[0].stamp and left.end == members[-1].last_stamp
    store.clock.set(19 * DAY)
    store.run("rollup")
    assert len([gist for gist in store.gists() if gist.level == 1]) == 3
    before = store.db.revision
    assert store.run("rollup")[0].wrote == 0 and store.db.revision == before


def test_a_gist_that_is_alone_at_its_place_stays_as_it_is(store: Store) -> None:
    store.clock.set(10 * DAY)
    store.add_many([("a chair", now(store) + i, (0.0, 0.0, 0.0), "scene") for i in range(3)])
    store.clock.advance(30 * DAY)
    store.run("gists", "rollup")
    (gist,) = store.gists()
    assert gist.level == 0 and "a chair (x3)" in gist.text
    assert store.run("rollup")[0].scanned == 0


def test_a_rollup_divides_what_is_too_far_apart(store: Store) -> None:
    gists_of_a_day(store, 10, [(float(x), 0.0, 0.0) for x in range(0, 40, 8)])
    store.clock.set(20 * DAY)
    store.run("rollup")
    rolled = [gist for gist in store.gists() if gist.level == 1]
    assert sum(gist.observation_count for gist in rolled) == 6 * (3 + 4 + 5 + 6 + 7)
    assert max(gist.radius for gist in rolled) <= store.settings.consolidation_max_radius
    assert len(rolled) == 3


# ---- snapshots


def test_snapshots_are_taken_when_something_changed(store: Store) -> None:
    saved: list[int] = []
    store.runner.context.save_index = lambda: bool(saved.append(1)) or True
    store.note("the spare key is under the mat", now(store))
    store.run("snapshots")
    assert saved == [1] and store.db.wal_bytes() == 0
    before = store.db.revision
    store.run("snapshots"), store.run("snapshots")
    assert saved == [1] and store.db.revision == before
    store.note("the window is broken", now(store))
    store.run("snapshots")
    assert saved == [1, 1]


def test_a_snapshot_is_told_in_one_line(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "memory_node.housekeeping")
    store.add_many([(f"a red chair {i}", now(store) + i, None, "scene") for i in range(500)])
    caplog.clear()
    store.run("snapshots"), store.run("snapshots")
    (record,) = caplog.records
    moved = re.search(r"job snapshots: .* (\d+\.\d) MB of write-ahead log", record.message)
    assert moved is not None and float(moved[1]) > 0.0


def test_the_snapshot_after_a_restart_of_an_unchanged_store_is_silent(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Memory.open(tmp_path / "m.db", clock=FakeClock(DAY), embedder=WordEmbedder()) as memory:
        for i in range(50):
            memory.record(f"a red chair {i}", layer="scene")
        assert memory.wait_embedded()
        memory.run_job("snapshots")
    caplog.set_level(logging.INFO, "memory_node.housekeeping")
    with Memory.open(tmp_path / "m.db", clock=FakeClock(2 * DAY), embedder=WordEmbedder()) as memory:
        memory.run_job("snapshots"), memory.run_job("snapshots")
        assert [record.message for record in caplog.records] == []
