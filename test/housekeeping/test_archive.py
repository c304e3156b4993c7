"""What is archived and when, whatever the clocks do; and the bound of the file."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from kept_store import DAY, Store
from support.fakes import SECOND, FakeClock, WordEmbedder

from memory_node.errors import SummarizerUnreachable
from memory_node.graph import EdgeType, Kind, Node, Tier
from memory_node.housekeeping import episodes as keeping
from memory_node.housekeeping.ages import Ages
from memory_node.memory import Memory
from memory_node.protocols import NamedThing, SummaryRow
from memory_node.storage import edges, nodes, usage

YEAR = 365 * DAY


class BrokenSummarizer:
    name = "broken"

    def summarize(self, rows: list[SummaryRow], max_chars: int) -> str:
        raise TimeoutError("no answer")

    def extract(self, rows: list[SummaryRow]) -> list[object]:
        return []


class Reader:
    """A language model that summarises, and reads texts for things unless that is down."""

    name = "reader"

    def __init__(self) -> None:
        self.down = True
        self.read: list[int] = []

    def summarize(self, rows: Sequence[SummaryRow], max_chars: int) -> str:
        return "Chairs."

    def extract(self, rows: Sequence[SummaryRow]) -> list[NamedThing]:
        if self.down:
            raise SummarizerUnreachable("nobody there")
        self.read += [row.id for row in rows]
        return []


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "m.db", embedder=WordEmbedder()) as opened:
        yield opened


def fill(store: Store, count: int = 5, text: str = "a red chair") -> list[int]:
    now = store.clock.ns / SECOND
    return store.add_many([(f"{text} {i}", now + i, (0.0, 0.0, 0.0), "scene") for i in range(count)])


def tiers(store: Store, ids: list[int]) -> set[Tier]:
    return {store.node(id_).tier for id_ in ids}


def test_summarised_rows_give_up_text_and_vector_and_keep_the_rest(store: Store) -> None:
    ids = fill(store)
    store.embed()
    before = [store.node(id_) for id_ in ids]
    store.clock.advance(3000)
    store.run()
    assert tiers(store, ids) == {Tier.LONG_TERM} and store.node(ids[0]).text == "a red chair 0"
    store.clock.advance(700)
    store.run()
    after = [store.node(id_) for id_ in ids]
    assert [node.text for node in after] == [None] * 5 and tiers(store, ids) == {Tier.ARCHIVED}
    assert [(n.stamp, n.position, n.layer, n.repeats) for n in after] == [
        (n.stamp, n.position, n.layer, n.repeats) for n in before
    ]
    assert store.one("SELECT count(*) FROM text WHERE body LIKE 'a red chair _'") == 0
    assert store.one("SELECT count(*) FROM vector WHERE text_id NOT IN (SELECT id FROM text)") == 0
    (gist,) = store.gists()
    assert store.members(gist.id) == ids and "a red chair 4" in gist.text
    assert store.node(gist.id).tier is Tier.LONG_TERM


def test_rows_without_a_gist_are_never_archived(store: Store) -> None:
    ids = fill(store)
    store.clock.advance(YEAR / 365 * 20)
    store.run("archive")
    assert tiers(store, ids) == {Tier.SHORT_TERM}


def test_the_last_reading_of_each_body_layer_keeps_its_text(store: Store) -> None:
    now = store.clock.ns / SECOND
    battery = [store.add_reading(f"battery: {90 - i}%", now + i, "battery", 0.9 - i / 100) for i in range(4)]
    heat = [store.add_reading("motor hot", now, "motor", None)]
    store.clock.advance(4000)
    store.run()
    assert [store.node(id_).text for id_ in battery] == [None, None, None, "battery: 87%"]
    assert [store.node(id_).value for id_ in battery] == [0.9, 0.89, 0.88, 0.87]
    assert store.node(heat[0]).text == "motor hot"


@pytest.mark.parametrize("restarted", [False, True])
def test_the_last_reading_keeps_its_text_where_the_clock_went_back(restarted: bool, tmp_path: Path) -> None:
    """F1"""
    clock, path = FakeClock(2 * DAY), tmp_path / "m.db"
    memory = Memory.open(path, clock=clock)
    memory.record_body_state("battery: 90%", "battery", 0.9, "fraction")
    memory.flush()
    if restarted:
        memory.close()
    clock.set(DAY)
    if restarted:
        memory = Memory.open(path, clock=clock)
    else:
        memory.check_clock()
    for value in (0.5, 0.4):
        clock.advance(10)
        memory.record_body_state(f"battery: {value:.0%}", "battery", value, "fraction")
    clock.advance(4000)
    assert not memory.run_job("archive").error
    (reading,) = memory.body_status().readings
    assert (reading.text, reading.value) == ("battery: 40%", 0.4)
    assert [node.text for node in memory.nodes() if node.layer == "battery"] == ["battery: 90%", None, "battery: 40%"]
    memory.close()


def test_an_entity_keeps_its_evidence(store: Store) -> None:
    ids = fill(store)
    now = store.clock.now_ns()

    def work(tx: object) -> int:
        thing = Node(id=0, kind=Kind.ENTITY, layer="", text="chair", text_id=None, stamp=now, last_stamp=now)
        id_ = nodes.insert(tx, thing)  # type: ignore[arg-type]
        edges.add_many(tx, [(id_, member, EdgeType.OBSERVED_IN) for member in ids])  # type: ignore[arg-type]
        return id_

    entity = store.write(work)
    store.clock.advance(9000)
    store.run()
    assert tiers(store, ids) == {Tier.ARCHIVED}
    with store.db.read() as conn:
        assert edges.targets(conn, entity, EdgeType.OBSERVED_IN) == ids


def test_rows_wait_a_day_for_a_language_model_that_is_down_and_no_longer(tmp_path: Path) -> None:
    """F47: raw rows are never dropped for a summary that failed, and a model that is gone does not fill the disk."""
    with Store(tmp_path / "m.db", summarizer=BrokenSummarizer()) as store:
        ids = fill(store)
        store.clock.advance(9000)
        states = {name: store.runner.run(name) for name in store.runner.jobs}
        assert "no answer" in states["summaries"].error and not states["archive"].error
        assert tiers(store, ids) == {Tier.LONG_TERM} and store.node(ids[0]).text == "a red chair 0"
        store.clock.advance(DAY)
        store.run()
        assert tiers(store, ids) == {Tier.ARCHIVED}
        assert "a red chair 4" in store.gists()[0].text and store.gists()[0].author == "extractive"


def test_rows_wait_until_a_language_model_read_them_a_day_at_most(tmp_path: Path) -> None:
    model = Reader()
    with Store(tmp_path / "m.db", summarizer=model, entities=True) as store:
        ids = fill(store, 60)
        detection = store.look(store.clock.ns / SECOND, ("chair", (0.0, 0.0, 0.0)))
        store.clock.advance(9000)
        for name in store.runner.jobs:
            store.runner.run(name)
        assert store.gists()[0].author == "reader"
        assert tiers(store, ids) == {Tier.LONG_TERM} and store.node(ids[0]).text == "a red chair 0"
        assert tiers(store, detection) == {Tier.ARCHIVED}
        model.down = False
        store.run()
        assert tiers(store, ids) == {Tier.ARCHIVED} and model.read == ids
        model.down = True
        later = fill(store, 5, "a new lamp")
        store.clock.advance(9000)
        for name in store.runner.jobs:
            store.runner.run(name)
        assert tiers(store, later) == {Tier.LONG_TERM}
        store.clock.advance(DAY)
        store.runner.run("archive")
        assert tiers(store, later) == {Tier.ARCHIVED}


def test_everything_is_summarised_and_archived_while_the_embedder_is_down(tmp_path: Path) -> None:
    with Store(tmp_path / "m.db", embedder=WordEmbedder()) as store:
        ids = fill(store)
        store.clock.advance(9000)
        store.run()
        assert tiers(store, ids) == {Tier.ARCHIVED}
        store.embed()
        store.run()
        assert store.one("SELECT count(*) FROM vector WHERE node_id > 0") == 1


def test_an_episode_that_nobody_named_has_a_vector_for_three_days(store: Store) -> None:
    with_vector = "SELECT node_id FROM vector WHERE node_id > 0 ORDER BY node_id"
    now = store.clock.now_ns()
    named = store.write(lambda tx: keeping.start_episode(tx, "patrol", now, store.session_id))
    fill(store), store.write(lambda tx: keeping.close_abandoned(tx, store.settings))
    first, second = fill(store), None
    store.embed()
    store.clock.advance(2 * DAY)
    store.run("episodes")
    second = fill(store)
    ahead = store.add_many([("a lamp", 400 * DAY + i, None, "scene") for i in range(3)])
    store.embed()
    store.clock.advance(0.9 * DAY)
    store.run("episodes", "archive")
    old, young, coming = (store.node(ids[0]).episode_id for ids in (first, second, ahead))
    assert [row[0] for row in store.all(with_vector)] == [old, young]
    store.clock.advance(0.2 * DAY)
    store.run("archive", "episodes")
    assert [row[0] for row in store.all(with_vector)] == [young]
    store.clock.advance(3 * DAY)
    assert store.run("archive")[0].wrote == 1 and store.all(with_vector) == []
    assert store.run("archive")[0].wrote == 0 and {named, coming} & {old, young} == set()


# ---- clocks


def test_a_clock_that_jumped_a_year_ahead_archives_nothing(store: Store) -> None:
    ids = fill(store)
    store.clock.advance(2000)
    store.run()
    store.clock.advance(YEAR)
    store.wall += YEAR
    store.new_session("clock jumped ahead")
    store.run()
    assert tiers(store, ids) == {Tier.LONG_TERM}
    store.clock.advance(4000)
    store.run()
    assert tiers(store, ids) == {Tier.ARCHIVED}


def test_a_clock_that_went_back_leaves_rows_ageing_by_what_passes(store: Store) -> None:
    """F1: rows of the first loop of a bag, and of the second, whose stamps are the same."""
    first = fill(store)
    store.clock.advance(1000)
    fill(store, 1, "a lamp")
    store.clock.advance(-900)
    store.new_session("clock went back")
    second = fill(store)
    store.run()
    assert tiers(store, first + second) == {Tier.SHORT_TERM}
    store.clock.advance(1000)
    store.run()
    assert tiers(store, first) == {Tier.LONG_TERM} and tiers(store, second) == {Tier.SHORT_TERM}
    store.clock.advance(2000)
    store.run()
    assert tiers(store, first) == {Tier.ARCHIVED} and tiers(store, second) == {Tier.LONG_TERM}


def test_rows_of_another_clock_age_by_wall_time(tmp_path: Path) -> None:
    with Store(tmp_path / "m.db", clock_kind="sim", wall=5000.0) as store:
        ids = fill(store)
    with Store(tmp_path / "m.db", clock_kind="system", wall=6000.0) as store:
        store.run()
        assert tiers(store, ids) == {Tier.SHORT_TERM}
    with Store(tmp_path / "m.db", clock=FakeClock(DAY + 8000), clock_kind="system", wall=5000.0 + 9000.0) as store:
        store.run()
        assert tiers(store, ids) == {Tier.ARCHIVED}


def test_rows_go_on_ageing_through_a_restart_of_the_same_clock(tmp_path: Path) -> None:
    with Store(tmp_path / "m.db") as store:
        ids = fill(store)
        clock = store.clock
    clock.advance(9000)
    with Store(tmp_path / "m.db", clock=clock) as store:
        store.run()
        assert tiers(store, ids) == {Tier.ARCHIVED}


def test_the_cutoff_of_the_present_session_is_now_minus_the_age(store: Store) -> None:
    with store.db.read() as conn:
        ages = Ages(conn, store.session_id, 1000 * SECOND)
    assert ages.cutoff(store.session_id, 10.0) == 990 * SECOND


@pytest.mark.parametrize("restarted", [False, True])
def test_a_row_stamped_ahead_ages_nobody(restarted: bool, tmp_path: Path) -> None:
    """F5: a stamp in the future is kept as it is, and says nothing about the clock."""
    with Memory.open(tmp_path / "m.db", clock=FakeClock(DAY)) as memory:
        patrol = memory.start_episode("patrol")
        seen = [memory.record(f"a blue lamp {i}", layer="scene", position=(0.0, 0.0, 0.0)) for i in range(3)]
        memory.store_specific_memory("dentist in two days", stamp=round(3 * DAY * SECOND))
        if restarted:
            memory.new_session("start")
        for job in memory.jobs():
            assert not memory.run_job(job.name).error
        rows = [node for node in memory.nodes() if node.id in seen]
        assert [node.text for node in rows] == [f"a blue lamp {i}" for i in range(3)]
        assert {node.episode_id for node in rows} == {patrol}
        assert restarted or {node.tier for node in rows} == {Tier.SHORT_TERM}


# ---- the bound of the file


def test_the_oldest_archived_rows_go_first_when_the_file_is_full(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    with Store(tmp_path / "m.db", max_db_mb=0.6) as store:
        now = store.clock.ns / SECOND
        old = store.add_many([("a red chair", now + i, (0.0, 0.0, 0.0), "scene") for i in range(6000)])
        store.clock.advance(DAY)
        new = fill(store, 500)
        store.run()
        left = [row[0] for row in store.all("SELECT id FROM node WHERE kind = 1 ORDER BY id")]
        assert store.db.size_bytes() <= 0.6e6 and set(new) <= set(left) and 0 < len(left) < 6500
        assert left == sorted([*old, *new])[-len(left) :]
        messages = [record.message for record in caplog.records if "removed" in record.message]
        assert messages == [f"the database reached 0.6 MB: removed {6500 - len(left)} of the oldest archived rows"]
        assert store.gists() and store.db.check() == []


def test_a_full_file_without_archived_rows_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with Store(tmp_path / "m.db", max_db_mb=0.01) as store:
        ids = fill(store)
        store.run("bound"), store.run("bound")
        assert len([r for r in caplog.records if "no archived row is left" in r.message]) == 1
        assert tiers(store, ids) == {Tier.SHORT_TERM}


def test_a_demoted_note_is_not_removed_from_a_full_file(tmp_path: Path) -> None:
    with Store(tmp_path / "m.db") as store:
        old, new = store.note("the key lies under the mat", DAY), store.note("the key lies under the mat", DAY + 1)
        store.run("duplicates")
        assert store.node(old).tier is Tier.ARCHIVED
        ids = fill(store, 2000)
        store.clock.advance(9000)
        store.run()
        store.settings = store.settings.changed(max_db_mb=0.01)
        store.run("bound")
        assert [row[0] for row in store.all("SELECT id FROM node WHERE kind = 1 ORDER BY id")] == [old, new]
        assert len(ids) == 2000 and store.node(old).text == "the key lies under the mat"


# ---- use


def test_recalls_are_folded_into_blocks_of_an_hour(store: Store) -> None:
    (id_,) = fill(store, 1)
    for minutes in (0, 10, 50, 130, 135):
        store.recalls.note([id_, 999_999], (1_000_000 + minutes * 60) * SECOND)
        store.run("importance")
    with store.db.read() as conn:
        ((known, _, _, blocks, last),) = usage.of(conn, [id_, 999_999])
    assert (known, blocks, last) == (id_, 2, (1_000_000 + 135 * 60) * SECOND)
    before = store.db.revision
    assert store.run("importance")[0].wrote == 0 and store.db.revision == before


# ---- repeats


def test_a_repeat_of_a_summarised_row_begins_a_new_one(tmp_path: Path) -> None:
    clock = FakeClock(DAY)
    settings = {"fold_repeats": True, "fold_window": 1e6}
    with Memory.open(tmp_path / "m.db", clock=clock, embedder=WordEmbedder(), settings=settings) as memory:
        said = {"text": "the hall is quiet", "layer": "scene", "position": (0.0, 0.0, 0.0)}
        vector = WordEmbedder().embed(["the hall is quiet"])[0]
        for passed in (0, 10, 6000, 10, 10, 9000, 10):
            clock.advance(passed)
            for name in ("gists", "archive"):
                assert not memory.run_job(name).error
            memory.record(**said, vector=vector)
            memory.flush()
            # What the robot sees now is never in a gist only.
            (match,) = memory.temporal_query(last_n_minutes=1.0).matches
            assert match.kind == "observation" and match.text == said["text"] and match.last_stamp == clock.ns
        rows = [node for node in memory.nodes() if node.kind.label == "observation"]
        assert [(node.repeats, node.tier) for node in rows] == [
            (2, Tier.ARCHIVED), (3, Tier.ARCHIVED), (2, Tier.SHORT_TERM),
        ]
        gists = memory.search_gists().gists
        assert sum(gist.observation_count for gist in gists) == 2
