"""Gists: clusters in place and time, their bounds, what is due when, and that nothing is summarised twice."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kept_store import DAY, Store
from support.fakes import SECOND

from benchmarks.peak_memory import PeakMemory
from memory_node.graph import EdgeType, Tier
from memory_node.housekeeping import clusters, gists
from memory_node.housekeeping import episodes as keeping
from memory_node.housekeeping.consolidation import consolidate
from memory_node.storage import edges, nodes, sessions
from memory_node.storage.database import Transaction


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "m.db") as opened:
        yield opened


def series(store: Store, count: int, place: str, *, step: float = 0.5, text: str = "'a red chair'") -> None:
    """Store count rows `step` s apart by one statement; place gives x, y, z and text the text in SQL, from i."""
    start, nanoseconds = store.clock.now_ns(), round(step * SECOND)

    numbers = f"WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {count - 1})"

    def work(tx: Transaction) -> None:
        conn, first = tx.conn, [tx.new_id() for _ in range(count)][0]
        layer, map_ = nodes.layer_id(tx, "scene"), nodes.map_id(tx, "home")
        known = conn.execute("SELECT ifnull(max(id), 0) FROM text").fetchone()[0]
        conn.execute(f"{numbers} INSERT OR IGNORE INTO text (digest, body) SELECT DISTINCT {text}, {text} FROM n")
        conn.execute("INSERT INTO text_fts (rowid, body) SELECT id, body FROM text WHERE id > ?", (known,))
        conn.execute(
            f"{numbers} INSERT INTO node (id, kind, layer_id, text_id, stamp, last_stamp, x, y, z, position_source,"
            f" frame, map_id, session_id, revision) SELECT {first} + i, 1, {layer},"
            f" (SELECT id FROM text WHERE digest = {text}), {start} + i * {nanoseconds}, {start} + i * {nanoseconds},"
            f" {place}, 2, 'map', {map_}, {store.session_id}, {tx.revision} FROM n"
        )
        sessions.touch(tx, store.session_id, start + count * nanoseconds, start + count * nanoseconds, 0)

    store.write(work)
    store.clock.ns = start + count * nanoseconds


def members(store: Store) -> list[int]:
    return sorted(row[0] for row in store.all("SELECT target FROM edge WHERE type = ?", int(EdgeType.SUMMARIZES)))


def perceived(store: Store) -> list[int]:
    return [row[0] for row in store.all("SELECT id FROM node WHERE kind = 1 ORDER BY id")]


def test_rows_of_one_place_become_one_gist_with_centre_radius_span_layers_and_members(store: Store) -> None:
    now = store.clock.ns / SECOND
    ids = store.add_many([("a red chair", now + i, (float(i), 0.0, 1.0), "scene") for i in range(4)])
    ids += store.add_many([("cup", now + 4 + i, (1.5, 0.0, 1.0), "detections") for i in range(2)])
    store.clock.advance(1900)
    store.run("gists")
    (gist,) = store.gists()
    assert gist.position == pytest.approx((1.5, 0.0, 1.0)) and gist.radius == pytest.approx(1.5)
    assert gist.start == store.node(ids[0]).stamp and gist.end == store.node(ids[-1]).stamp
    assert gist.layers == ("detections", "scene") and gist.observation_count == 6 and gist.map_id == "home"
    assert gist.text.startswith("1970-01-02 00:00 at (1.50, 0.00): ")
    assert "a red chair (x4)" in gist.text and "cup (x2)" in gist.text
    assert store.members(gist.id) == ids
    assert {store.node(id_).tier for id_ in ids} == {Tier.LONG_TERM}


def test_a_second_run_writes_nothing(store: Store) -> None:
    series(store, 500, "i % 7, i % 3, 0")
    store.clock.advance(8000)
    store.run()
    before = store.db.revision
    assert [state.wrote for state in store.run()] == [0] * len(store.runner.jobs)
    assert store.db.revision == before
    assert members(store) == perceived(store)


def test_a_parked_robot_is_summarised_within_its_memory_bound(store: Store) -> None:
    """F41: DBSCAN's neighbourhoods of 100 000 rows at one spot would be 10 000 000 000 entries."""
    series(store, 100_000, "1.5, 2.5, 0", text="'a person at seat ' || (i % 5)")
    store.clock.advance(2000)
    store.runner.run("duplicates")  # nothing to do, but everything is imported
    with PeakMemory() as peak:
        store.run("gists")
    assert peak.growth_mb < 300
    assert store.one("SELECT count(*) FROM node WHERE kind = 1 AND tier = 1") == 0
    assert store.one("SELECT sum(observation_count) FROM gist") == 100_000
    assert all(gist.radius == pytest.approx(0.0, abs=1e-9) for gist in store.gists())
    assert len(store.gists()) <= 20


def test_a_parked_robots_rows_come_to_dbscan_as_few_weighed_points(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F41: localisation wanders over 4 x 4 m, which is more than eps, so that DBSCAN is really asked."""
    from sklearn.cluster import DBSCAN

    given: list[tuple[int, int]] = []
    fit = DBSCAN.fit

    def counted(self: Any, points: Any, y: Any = None, sample_weight: Any = None) -> Any:
        given.append((len(points), int(sample_weight.sum())))
        return fit(self, points, y, sample_weight)

    monkeypatch.setattr(DBSCAN, "fit", counted)
    series(store, 100_000, "1.5 + i * 7919 % 4001 / 1000.0, 2.5 + i * 104729 % 4001 / 1000.0, 0")
    store.clock.advance(2000)
    store.run("gists")
    assert sum(rows for _, rows in given) == 100_000 and len(given) == 100_000 / gists.MAX_STRETCH
    assert max(points for points, _ in given) <= (4.0 / 3.0 * clusters.CELLS_PER_EPS + 2) ** 2
    assert store.one("SELECT sum(observation_count) FROM gist") == 100_000
    assert all(gist.radius <= store.settings.consolidation_max_radius for gist in store.gists())


def test_an_even_drive_becomes_many_local_gists_of_bounded_radius_and_text(store: Store) -> None:
    """Every row is within eps of the next, so DBSCAN alone would chain 100 x 100 m into one."""
    series(store, 10_000, "(i % 100), (i / 100), 0", text="'a shelf with the number ' || i")
    store.clock.advance(4000)
    store.run("gists")
    gists = store.gists()
    assert 100 <= len(gists) <= 600
    assert max(gist.radius for gist in gists) <= store.settings.consolidation_max_radius
    assert max(len(gist.text) for gist in gists) <= store.settings.consolidation_max_text
    assert members(store) == perceived(store)


def test_noise_gets_its_gist_once_it_is_older_than_archive_after_seconds(store: Store) -> None:
    now = store.clock.ns / SECOND
    crowd = store.add_many([("a red chair", now + i, (0.0, 0.0, 0.0), "scene") for i in range(5)])
    lone = store.add("a lamp", now + 2, (40.0, 0.0, 2.6))
    store.clock.advance(1900)
    store.run("gists")
    assert members(store) == crowd and store.node(lone).tier is Tier.SHORT_TERM
    store.clock.advance(1800)
    store.run("gists")
    assert members(store) == sorted([*crowd, lone])
    assert store.gists()[1].position == (40.0, 0.0, 2.6) and store.gists()[1].radius == 0.0


def test_a_row_that_is_still_repeated_is_left_alone(store: Store) -> None:
    now = store.clock.ns / SECOND
    past = store.add_many([("a cup", now + i, (0.0, 0.0, 0.0), "scene") for i in range(3)])
    quiet = store.add("the hall is quiet", now + 1, last_stamp=round((now + 5000) * SECOND), repeats=500)
    store.clock.advance(5001)
    store.run("gists", "archive")
    assert members(store) == past and store.node(quiet).text == "the hall is quiet"
    store.clock.advance(3700)
    store.run("gists", "archive")
    gist = store.gists()[-1]
    assert store.members(gist.id) == [quiet] and gist.end == round((now + 5000) * SECOND) and "(x500)" in gist.text
    assert store.node(quiet).tier is Tier.ARCHIVED


def test_repeats_carry_a_stretch_on(store: Store) -> None:
    now = store.clock.ns / SECOND
    first = store.add("the hall is quiet", now, last_stamp=round((now + 5000) * SECOND), repeats=500)
    later = store.add_many([("a person sits here", now + 5100 + i, (1.0, 0.0, 0.0), "scene") for i in range(2)])
    store.clock.advance(9000)
    store.run("gists")
    assert [store.members(gist.id) for gist in store.gists()] == [[first, *later]]


def test_far_noise_is_not_put_together(store: Store) -> None:
    now = store.clock.ns / SECOND
    store.add_many([(f"lamp {i}", now + i, (40.0 * i, 0.0, 0.0), "scene") for i in range(6)])
    store.clock.advance(4000)
    store.run("gists")
    assert len(store.gists()) == 6


def test_rows_without_a_place_are_summarised_by_time_alone(store: Store) -> None:
    """F24: an unknown position is not the origin."""
    now = store.clock.ns / SECOND
    unknown = store.add_many([("somebody says hello", now + i, None, "speech") for i in range(4)])
    known = store.add_many([("a red chair", now + i, (0.0, 0.0, 0.0), "scene") for i in range(4)])
    store.clock.advance(2000)
    store.run("gists")
    by_members = {tuple(store.members(gist.id)): gist for gist in store.gists()}
    assert set(by_members) == {tuple(unknown), tuple(known)}
    assert by_members[tuple(unknown)].position is None and by_members[tuple(unknown)].radius == 0.0


def test_silence_another_map_and_another_session_divide_rows_of_one_place(store: Store) -> None:
    now = store.clock.ns / SECOND
    rows = [("a red chair", now + i, (0.0, 0.0, 0.0), "scene") for i in range(3)]
    groups = [store.add_many(rows), store.add_many([(t, stamp + 2000, p, layer) for t, stamp, p, layer in rows])]
    later = [(text, stamp + 2010, place, layer) for text, stamp, place, layer in rows]
    groups.append(store.add_many(later, map_id="garden"))
    store.new_session("start")
    groups.append(store.add_many(rows))
    store.clock.advance(6000)
    store.run("gists")
    assert sorted(store.members(gist.id) for gist in store.gists()) == sorted(groups)


def test_readings_of_the_body_are_never_summarised(store: Store) -> None:
    now = store.clock.ns / SECOND
    for i in range(5):
        store.add_reading(f"battery: {90 - i}%", now + i, "battery", 0.9)
    store.clock.advance(9000)
    store.run("episodes", "gists")
    assert store.gists() == []


def test_rows_of_a_running_episode_are_left_alone_for_at_most_a_day(store: Store) -> None:
    now = store.clock.now_ns()
    patrol = store.write(lambda tx: keeping.start_episode(tx, "patrol", now, store.session_id))
    ids = [store.add("a red chair", now / SECOND + i, episode_id=patrol) for i in range(5)]
    store.clock.advance(20_000)
    store.run("gists")
    assert store.gists() == []
    store.clock.advance(DAY)
    store.run("gists")
    assert members(store) == ids and store.gists()[0].episode_id == patrol


def test_the_timer_waits_until_a_good_part_of_a_stretch_is_old_and_a_request_does_not(store: Store) -> None:
    series(store, 5399, "0, 0, 0", step=1.0)
    store.runner.run("gists", forced=False)
    assert store.gists() == []
    series(store, 11, "0, 0, 0", step=1.0)
    store.runner.run("gists", forced=False)
    assert [gist.observation_count for gist in store.gists()] == [3611]
    series(store, 60, "0, 0, 0", step=1.0)
    store.runner.run("gists", forced=False)
    assert len(store.gists()) == 1
    store.run("gists")
    assert [gist.observation_count for gist in store.gists()] == [3611, 60]


def test_a_dry_run_returns_the_clusters_that_the_run_then_writes(store: Store) -> None:
    series(store, 600, "(i / 50) * 2.0, 0, 0")
    store.clock.advance(5000)
    before = store.db.revision
    told = consolidate(store.runner, dry_run=True)
    assert store.db.revision == before and store.gists() == [] and told.clusters == len(told.gists) == 2
    written = consolidate(store.runner).gists
    key = [(g.text, g.position, g.radius, g.start, g.end, g.observation_count, g.layers) for g in written]
    assert key == [(g.text, g.position, g.radius, g.start, g.end, g.observation_count, g.layers) for g in told.gists]
    assert {gist.id for gist in told.gists} == {0} and all(gist.id > 0 for gist in written)


@pytest.mark.parametrize("changed", [{}, {"episode_gap": 600.0}, {"episode_max_duration": 300.0}])
def test_a_dry_run_finds_what_a_run_writes_however_rows_are_linked(changed: dict[str, float], store: Store) -> None:
    store.settings = store.settings.changed(**changed)
    patrol = store.write(
        lambda tx: keeping.start_episode(tx, "patrol", store.clock.now_ns(), store.session_id)
    )
    store.add_many([("a door", store.clock.ns / SECOND + i, (3.0, 0.0, 0.0), "scene") for i in range(4)],
                   episode_id=patrol)
    store.clock.advance(10)
    store.write(lambda tx: keeping.close_abandoned(tx, store.settings))
    for _ in range(4):
        # Sparse enough for noise, and more than one stretch.
        series(store, 900, "(i * 7919 % 1000) / 5.0, (i * 104729 % 1000) / 5.0, 0", text="'thing ' || (i % 9)")
        store.clock.advance(700)
    store.clock.advance(1850)
    before = store.db.revision
    told = consolidate(store.runner, dry_run=True)
    assert store.db.revision == before and told.clusters > 20
    written = consolidate(store.runner)
    known = patrol
    key = [(g.text, g.position, g.radius, g.start, g.end, g.observation_count, g.layers) for g in written.gists]
    assert key == [(g.text, g.position, g.radius, g.start, g.end, g.observation_count, g.layers) for g in told.gists]
    assert [g.episode_id for g in told.gists] == [g.episode_id if g.episode_id == known else 0 for g in written.gists]


def test_a_pass_that_was_interrupted_is_followed_by_a_whole_one(tmp_path: Path) -> None:
    with Store(tmp_path / "m.db") as store:
        series(store, 20, "(i % 2) * 50, 0, 0", step=1.0)
        store.new_session("start")
        series(store, 20, "(i % 2) * 50, 0, 0", step=1.0)
        store.clock.advance(2000)
        job = store.runner.jobs["gists"]
        store.context.begin_step()
        while not store.gists():
            job.step(store.context)
        clock, first = store.clock, len(store.gists())
    with Store(tmp_path / "m.db", clock=clock) as store:
        store.add_many([("a late cup", DAY + i, (0.0, 0.0, 0.0), "scene") for i in range(3)], session_id=1)
        store.run("gists")
        assert first == 2 and members(store) == perceived(store)


def test_ending_a_long_episode_summarises_what_it_can_at_once_and_the_job_the_rest(store: Store) -> None:
    now = store.clock.now_ns()
    patrol = store.write(lambda tx: keeping.start_episode(tx, "patrol", now, store.session_id))
    series(store, 12_000, "0, 0, 0")
    store.write(lambda tx: tx.conn.execute("UPDATE node SET episode_id = ? WHERE kind = 1", (patrol,)))
    ended = store.write(lambda tx: keeping.end_episode(tx, patrol, "", store.clock.now_ns(), store.settings))
    assert len(ended.gist_ids) == 1 and store.one("SELECT count(*) FROM node WHERE kind = 1 AND tier = 1") == 11_000
    assert "a red chair" in ended.summary
    store.run("gists")
    assert members(store) == perceived(store) and len(store.gists()) == 3


def test_ending_a_wide_episode_writes_its_largest_gists_at_once_and_the_job_the_rest(store: Store) -> None:
    now = store.clock.now_ns()
    patrol = store.write(lambda tx: keeping.start_episode(tx, "patrol", now, store.session_id))
    series(store, 3000, "(i % 30) * 8.0 * (i % 4 <> 0), 0, 0")
    store.write(lambda tx: tx.conn.execute("UPDATE node SET episode_id = ? WHERE kind = 1", (patrol,)))
    ended = store.write(lambda tx: keeping.end_episode(tx, patrol, "", store.clock.now_ns(), store.settings))
    assert list(ended.gist_ids) == [gist.id for gist in store.gists()] and len(ended.gist_ids) == gists.MAX_GISTS
    assert store.gists()[0].observation_count > 250 and len(members(store)) <= gists.AT_ONCE
    store.run("gists")
    assert members(store) == perceived(store)


def test_no_installment_joins_more_rows_than_its_chunk(store: Store) -> None:
    series(store, 9000, "0, 0, 0")
    store.clock.advance(9000)
    changed: list[int] = []
    store.db.add_listener(lambda: changed.append(1))
    store.run("gists")
    assert len(changed) >= 5 and members(store) == perceived(store)
    assert len(store.gists()) == 1


def test_the_centre_of_a_gist_weighs_every_row(store: Store) -> None:
    now = store.clock.ns / SECOND
    places = [(0.0, 0.0, 0.0)] * 9 + [(1.0, 0.0, 0.0)]
    store.add_many([("a red chair", now + i, place, "scene") for i, place in enumerate(places)])
    store.clock.advance(2000)
    store.run("gists")
    assert store.gists()[0].position == pytest.approx((0.1, 0.0, 0.0))


def test_the_edges_of_a_gist_lead_to_its_members_only(store: Store) -> None:
    series(store, 50, "0, 0, 0")
    store.clock.advance(2000)
    store.run("gists")
    (gist,) = store.gists()
    with store.db.read() as conn:
        assert {edge.type for edge in edges.of(conn, gist.id)} == {EdgeType.SUMMARIZES}


# ---- clusters


def test_no_positions_are_no_clusters() -> None:
    """F41: empty input."""
    found, noise = clusters.cluster(np.empty((0, 3)), 3.0, 3, 5.0)
    assert found == [] and len(noise) == 0


def test_clusters_agree_with_dbscan_on_every_row() -> None:
    from sklearn.cluster import DBSCAN

    generator = np.random.default_rng(7)
    centers = generator.uniform(-60, 60, (6, 2))
    points = np.concatenate([centers[i % 6] + generator.normal(0, 0.8, 2) for i in range(400)]).reshape(-1, 2)
    points = np.column_stack([points, np.zeros(len(points))])
    found, noise = clusters.cluster(points, 3.0, 3, 100.0)
    labels = DBSCAN(eps=3.0, min_samples=3).fit(points).labels_
    expected = {tuple(np.flatnonzero(labels == label)) for label in set(labels) - {-1}}
    assert {tuple(sorted(part)) for part in found} == expected
    assert noise.tolist() == np.flatnonzero(labels < 0).tolist()


def test_a_wide_cluster_is_divided_and_loses_nobody() -> None:
    points = np.column_stack([np.arange(0, 100, 0.5), np.zeros(200), np.zeros(200)])
    parts, noise = clusters.cluster(points, 3.0, 3, 5.0)
    assert len(noise) == 0 and sorted(np.concatenate(parts)) == list(range(200))
    assert max(clusters.radius(points[part]) for part in parts) <= 5.0


def test_many_rows_at_one_spot_count_as_many_samples() -> None:
    points = np.array([[0.0, 0.0, 0.0]] * 3 + [[50.0, 0.0, 0.0]] * 2)
    (part,), noise = clusters.cluster(points, 3.0, 3, 5.0)
    assert part.tolist() == [0, 1, 2] and noise.tolist() == [3, 4]


@pytest.mark.parametrize("x", [1.0, np.nextafter(1.0, 2.0), 1e8, np.nextafter(1e8, 0.0)])
def test_a_part_that_no_middle_divides_is_left_whole(x: float) -> None:
    points = np.array([[x, 0.0, 0.0], [np.nextafter(x, np.inf), 0.0, 0.0]] * 2)
    parts = list(itertools.islice(clusters.divide(points, np.arange(4), 5.0, np.full(4, 9.0)), 5))
    assert sorted(np.concatenate(parts).tolist()) == [0, 1, 2, 3] and all(len(part) for part in parts)


def test_a_gist_tells_every_change_of_state(store: Store) -> None:
    start = store.clock.ns / SECOND
    said = ["door open", "door open", "door closed", "lamp off", "door open", "lamp on", "door closed", "door open"]
    store.add_many([(text, start + 60 * i, (0.0, 0.0, 0.0), "scene") for i, text in enumerate(said)])
    store.clock.advance(4000)
    store.run("gists")
    (gist,) = store.gists()
    assert "door open 00:00, door closed 00:02, door open 00:04, door closed 00:06, door open 00:07" in gist.text
    assert "lamp off 00:03, lamp on 00:05" in gist.text
