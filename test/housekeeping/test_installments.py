"""No installment does more work because more waits: what one reads and writes is bounded."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest
from kept_store import DAY, Store
from support.fakes import SECOND, WordEmbedder
from test_gists import series

from memory_node.graph import NO_ID
from memory_node.housekeeping import archive, centroids, gists, members, rollup, silence
from memory_node.housekeeping import episodes as keeping
from memory_node.housekeeping.runtime import JobContext, StepResult

BOUNDS = [
    (archive, "CHUNK", 100), (centroids, "PAGE", 100), (gists, "MAX_STRETCH", 400), (gists, "MAX_CELLS", 200),
    (gists, "CHUNK", 100), (gists, "AT_ONCE", 100), (members, "MAX_ROWS", 100), (rollup, "SCAN", 20),
    (rollup, "MAX_GISTS", 20), (rollup, "MAX_MEMBERS", 5), (silence, "BATCH", 100),
]  # fmt: skip
"""Smaller than in use, so that few rows reach them."""


@pytest.fixture(autouse=True)
def small_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name, value in BOUNDS:
        monkeypatch.setattr(module, name, value)


class Meter:
    """Counts what reads and writes cost, in hundreds of steps of SQLite's virtual machine."""

    def __init__(self, store: Store) -> None:
        self.count = 0
        with store.db.read() as conn:
            conn.set_progress_handler(self._tick, 100)
        store.write(lambda tx: tx.conn.set_progress_handler(self._tick, 100))

    def _tick(self) -> int:
        self.count += 1
        return 0


def costliest(store: Store, *names: str) -> dict[str, int]:
    """Run jobs and return what the costliest installment of each cost."""
    meter = Meter(store)
    most: dict[str, int] = defaultdict(int)
    for name in names:
        job = store.runner.jobs[name]
        inner = job.step

        def step(context: JobContext, inner=inner, name: str = name) -> StepResult:  # type: ignore[no-untyped-def]
            before = meter.count
            result = inner(context)
            most[name] = max(most[name], meter.count - before)
            return result

        job.step = step  # type: ignore[method-assign]
    store.run(*names)
    return most


def days_work(path: Path, count: int) -> dict[str, int]:
    """A day of so many rows at many places that nobody has looked at yet, and ten days later."""
    with Store(path) as store:
        store.clock.set(10 * DAY)
        series(store, count, "(i % 25) * 4.0, (i / 200) * 4.0, 0", step=2.0, text="'shelf ' || (i % 300)")
        store.clock.set(21 * DAY)
        return costliest(store, "episodes", "gists", "archive", "rollup")


def test_an_installment_costs_the_same_when_four_times_as_much_waits(tmp_path: Path) -> None:
    few, many = days_work(tmp_path / "few.db", 1500), days_work(tmp_path / "many.db", 6000)
    assert set(many) == {"episodes", "gists", "archive", "rollup"} and min(many.values()) > 5
    assert {name: (few[name], many[name]) for name in few if many[name] > 1.3 * few[name] + 20} == {}


def test_rows_that_got_a_gist_while_theirs_was_described_are_in_that_one_alone(tmp_path: Path) -> None:
    with Store(tmp_path / "m.db") as store:
        series(store, 300, "0, 0, 0", text="'shelf ' || (i % 30)")
        store.clock.advance(DAY)
        job, written = store.runner.jobs["gists"], [0]
        # Read, clustered, described; the next installment would write.
        for _ in range(3):
            store.context.begin_step()
            assert not job.step(store.context).done
            written.append(store.one("SELECT count(*) FROM gist"))
        assert written == [0] * 4
        rows = [row[0] for row in store.all("SELECT id FROM node WHERE kind = 1 ORDER BY id LIMIT 120")]
        settings, group = store.settings, gists.Group(store.session_id, NO_ID)
        early = store.write(lambda tx: gists.write_whole(tx, group, rows, settings, rewrite=False))
        store.run("gists")
        assert [gist.observation_count for gist in store.gists()] == [120, 180]
        assert store.members(early) == rows and len(set(store.members(store.gists()[1].id))) == 180


@pytest.mark.parametrize("count", [1000, 8000])
def test_ending_an_episode_costs_the_same_however_long_it_was(count: int, tmp_path: Path) -> None:
    with Store(tmp_path / "m.db") as store:
        now = store.clock.now_ns()
        patrol = store.write(lambda tx: keeping.start_episode(tx, "patrol", now, store.session_id, map_id="home"))
        series(store, count, "(i % 25) * 4.0, (i / 500) * 4.0, 0", text="'shelf ' || (i % 300)")
        store.write(lambda tx: tx.conn.execute("UPDATE node SET episode_id = ? WHERE kind = 1", (patrol,)))
        meter = Meter(store)
        end, settings = store.clock.now_ns(), store.settings
        ended = store.write(lambda tx: keeping.end_episode(tx, patrol, "", end, settings))
        assert meter.count < 700 and len(ended.gist_ids) == gists.MAX_GISTS and "shelf" in ended.summary
        # The count is about right at once, and exact after the job.
        sql = "SELECT observation_count, radius FROM episode WHERE id = ?"
        ((about, radius),) = store.all(sql, patrol)
        assert count <= about <= count + gists.MAX_GISTS and radius > 15.0
        store.run("episodes")
        assert store.one(sql, patrol) == count


def waiting_episodes(store: Store, count: int) -> None:
    for number in range(count):
        start = store.clock.ns / SECOND
        store.add_many([(f"a chair of visit {number}", start + i, None, "scene") for i in range(30)])
        store.clock.advance(2000)
    store.run("episodes")


def test_a_cycle_costs_the_same_however_many_episodes_wait_for_vectors(tmp_path: Path) -> None:
    costs = []
    for count in (10, 60):
        with Store(tmp_path / f"{count}.db", embedder=WordEmbedder()) as store:
            waiting_episodes(store, count)
            idle = costliest(store, "episodes")["episodes"]
            # One text of another kind got its vector, so each may be ready.
            store.note("the spare key lies under the mat", store.clock.ns / SECOND)
            some = store.embedder.embed(["the spare key lies under the mat"])
            text = store.one("SELECT id FROM text WHERE body LIKE 'the spare key%'")
            store.write(lambda tx, text=text, some=some: centroids.vectors.put_texts(tx, store.model.id, {text: some}))
            meter = Meter(store)
            store.run("episodes")
            costs.append((idle, meter.count))
            assert store.one("SELECT count(*) FROM vector WHERE node_id > 0") == 0
            store.embed()
            store.run("episodes")
            assert store.one("SELECT count(*) FROM vector WHERE node_id > 0") == count
    (idle_few, few), (idle_many, many) = costs
    assert idle_many <= idle_few + 10 and many <= few + 20


def test_rows_at_both_ends_of_time_are_linked_and_summarised(tmp_path: Path) -> None:
    with Store(tmp_path / "m.db") as store:
        ends = [*range(-(2**63), -(2**63) + 4), *range(2**63 - 4, 2**63)]
        ids = []
        for stamp in ends:
            ids += store.add_many([(f"a chair {stamp}", 0.0, None, "scene")], stamp=stamp, last_stamp=stamp)
        store.add_many([("a chair", DAY + i, None, "scene") for i in range(4)])
        store.clock.advance(30 * DAY)
        store.run()
        assert store.one("SELECT count(*) FROM node WHERE kind = 1 AND episode_id = ?", NO_ID) == 0
        assert {store.node(id_).tier.label for id_ in ids[:4]} == {"archived"}
        assert {store.node(id_).text for id_ in ids[4:]} == {f"a chair {stamp}" for stamp in ends[4:]}
