"""`kill -9` in the middle of each job: reopened and run to the end, the graph is that of an undisturbed run.

A child kills itself as it is about to run the n-th SQL statement of a job; n is spread over all statements up to the
job's last commit, so that something is always left to do.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

import pytest
from kept_store import DAY, Store
from support.fakes import SECOND, FakeClock, WordEmbedder

from memory_node.graph import Kind
from memory_node.housekeeping import archive, duplicates, entities, gists, importance, silence, snapshots
from memory_node.housekeeping import episodes as keeping
from memory_node.housekeeping.runtime import Job, JobContext, StepResult
from memory_node.protocols import NamedThing, SummaryRow

KILLS = 20
START = 20 * DAY
NOW = START + 10 * DAY
JOBS = (
    "episodes", "gists", "merge_entities", "name_things", "archive", "rollup", "importance", "duplicates", "snapshots",
)  # fmt: skip
BITES = {
    (gists, "CHUNK"): 25, (archive, "CHUNK"): 25, (silence, "BATCH"): 25, (importance, "BATCH"): 1,
    (duplicates, "BATCH"): 100, (entities, "BATCH"): 25, (snapshots, "WORTH"): 1,
}  # fmt: skip
"""Small installments, so that there are many of them."""
SURVIVED = 7
"""Exit status of a child whose job came to its end."""

SOON = START + 8 * 3600.0
"""Rows are then young enough for a language model to be waited for."""

processes = multiprocessing.get_context("forkserver")
processes.set_forkserver_preload(["kept_store", "sklearn.cluster"])


class Narrator:
    """A language model that says the same of the same rows, and knows what a lamp is."""

    name = "narrator"

    def summarize(self, rows: Sequence[SummaryRow], max_chars: int) -> str:
        return f"{sum(row.repeats for row in rows)} times, such as {rows[0].text} and {rows[-1].text}"[:max_chars]

    def extract(self, rows: Sequence[SummaryRow]) -> list[NamedThing]:
        return [NamedThing(row.id, "lamp") for row in rows if "lamp" in row.text]


class Watched:
    """A job whose steps are watched: it counts their SQL statements and kills the process before one of them.

    Attributes:
        count: statements up to now.
        commits: number of the last that was a commit.
    """

    def __init__(self, job: Job, instant: int = 0) -> None:
        self.name = job.name
        self._job = job
        self._instant = instant
        self._inside = False
        self.count = self.commits = 0

    def step(self, context: JobContext) -> StepResult:
        if not self.count:
            with context.db.read() as conn:
                conn.set_trace_callback(self._tick)
            context.db.write(lambda tx: tx.conn.set_trace_callback(self._tick))
        self._inside = True
        try:
            return self._job.step(context)
        finally:
            self._inside = False

    def _tick(self, statement: str) -> None:
        if self._inside:
            self.count += 1
            if statement == "COMMIT":
                self.commits = self.count
            if self.count == self._instant:
                os.kill(os.getpid(), signal.SIGKILL)


def opened(path: Path, now: float = NOW, **more: Any) -> Store:
    return Store(
        path, clock=FakeClock(now), embedder=WordEmbedder(), summarizer=Narrator(), entities=True, **more
    )


def build(path: Path) -> None:
    """A day with work for every job, ten days old, and a patrol that a killed node left open."""
    clock = FakeClock(START)
    with Store(path, clock=clock, embedder=WordEmbedder()) as store:
        for hour in range(5):
            start = clock.ns / SECOND
            for place in range(3):
                rows = [
                    (f"a chair {i % 4} of room {place}", start + i, (12.0 * place + i % 3, 0.0, 0.0), "scene")
                    for i in range(30)
                ]
                store.add_many(rows)
            store.add(f"a lamp {hour}", start + 5, (100.0, 20.0 * hour, 2.6))
            store.add_many([("somebody says hello", start + i, None, "speech") for i in range(4)])
            store.add_reading(f"battery: {90 - hour}%", start, "battery", 0.9 - hour / 100)
            for i in range(8):  # a cup that drift makes two of
                store.look(start + 40 + i, ("cup", (200.0 + (0.9 if i > 5 else 0.0), 10.0 * hour, 0.5)))
            clock.advance(3600)
        for number in range(3):
            for way in ("under", "below"):
                store.note(f"the spare key number {number} lies {way} the mat", clock.ns / SECOND)
                store.note(f"the spare key number {number} lies {way} the mat", clock.ns / SECOND + 1)
        now = clock.now_ns()
        patrol = store.write(lambda tx: keeping.start_episode(tx, "patrol", now, store.session_id))
        for i in range(20):
            store.add("a door", now / SECOND + i, (50.0 + i % 2, 0.0, 0.0), episode_id=patrol)
        store.write(lambda tx: keeping.close_abandoned(tx, store.settings))
        store.embed()


def run_until_killed(path: Path, job: str, instant: int, **more: Any) -> None:
    """Run all jobs up to one in small bites, and die before a statement of that one; note which found work before."""
    for (module, name), size in BITES.items():
        setattr(module, name, size)
    store = opened(path, **more)
    busy = []
    for name in list(store.runner.jobs):
        if name == job:
            path.with_suffix(".busy").write_text(" ".join(busy))
            store.runner.jobs[name] = Watched(store.runner.jobs[name], instant)
        before = store.db.revision
        store.recalls.note([1, 2, 3], store.clock.ns)
        store.run(name)
        if store.db.revision > before:
            busy.append(name)
        if name == job:
            os._exit(SURVIVED)


def lengths(path: Path, **more: Any) -> dict[str, int]:
    """Return how many statements each job runs up to its last commit, in small bites; snapshots: all that it runs."""
    watched = {}
    with pytest.MonkeyPatch.context() as patch, opened(path, **more) as store:
        for (module, name), size in BITES.items():
            patch.setattr(module, name, size)
        for name in list(store.runner.jobs):
            watched[name] = store.runner.jobs[name] = Watched(store.runner.jobs[name])
            store.recalls.note([1, 2, 3], store.clock.ns)
            store.run(name)
            with store.db.read() as conn:
                conn.set_trace_callback(None)
            store.write(lambda tx: tx.conn.set_trace_callback(None))
    return {name: job.count if name == "snapshots" else job.commits for name, job in watched.items()}


def finish(path: Path, **more: Any) -> Counter[Any]:
    """Run everything to its end, twice, and return the graph without its ids."""
    with opened(path, **more) as store:
        store.recalls.note([1, 2, 3], store.clock.ns)
        for _ in range(2):
            store.run()
            store.embed()
        before = store.db.revision
        assert [state.wrote for state in store.run()] == [0] * len(store.runner.jobs)
        assert store.db.revision == before and store.db.check() == []
        return graph(store)


def graph(store: Store) -> Counter[Any]:
    """Nodes and edges by what they say; ids, revisions and sessions left out."""
    keys: dict[int, Any] = {}
    columns = "n.id, n.kind, n.layer_id, t.body, n.stamp, n.last_stamp, n.x, n.y, n.z, n.tier, n.repeats"
    sql = f"SELECT {columns}, g.level, g.layers, g.observation_count, g.radius, g.author, e.status, e.ended, e.radius,"
    sql += " e.observation_count, e.summary, (SELECT count(*) FROM vector WHERE node_id = n.id OR text_id = n.text_id),"
    sql += " (SELECT blocks FROM usage WHERE node_id = n.id) FROM node AS n LEFT JOIN text AS t ON t.id = n.text_id"
    sql += " LEFT JOIN gist AS g ON g.id = n.id LEFT JOIN episode AS e ON e.id = n.id"
    for row in store.all(sql):
        # Raw rows that say the same at the same time are told apart by their order, which no job changes.
        keys[row[0]] = (row[0] if row[1] == Kind.OBSERVATION else 0, *row[1:])
    found: Counter[Any] = Counter(keys.values())
    for source, target, type_, count in store.all("SELECT source, target, type, count FROM edge"):
        found[(keys[source], keys[target], type_, count)] += 1
    return found


@dataclass(frozen=True)
class Base:
    """Where stores are, the graph of one that ran undisturbed, and statements of each job up to its last commit."""

    folder: Path
    expected: Counter[Any]
    lengths: Mapping[str, int]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Base:
    with pytest.MonkeyPatch.context() as patch:
        # The server that children are forked from imports what they need once, if it finds it.
        patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
        forkserver.ensure_running()
    folder = tmp_path_factory.mktemp("kills")
    build(folder / "base.db")
    shutil.copy(folder / "base.db", folder / "undisturbed.db")
    expected = finish(folder / "undisturbed.db")
    kinds = Counter(key[1] for key in expected if len(key) > 5)
    assert kinds[Kind.GIST] > 10 and kinds[Kind.EPISODE] >= 2 and kinds[Kind.ENTITY] == 15
    shutil.copy(folder / "base.db", folder / "measured.db")
    counted = lengths(folder / "measured.db")
    assert min(counted[job] for job in JOBS) >= 7
    return Base(folder, expected, counted)


@pytest.mark.process
@pytest.mark.parametrize("number", range(KILLS))
def test_jobs_killed_one_after_another_go_on_where_they_were(number: int, base: Base, tmp_path: Path) -> None:
    """Each store is killed once in every job, so every job is killed at as many instants as there are stores."""
    path = tmp_path / "m.db"
    shutil.copy(base.folder / "base.db", path)
    inside, left = [], []
    for job, before in zip(JOBS, ("", *JOBS), strict=False):
        if kill(path, job, instant(number, base.lengths[job], job)):
            inside.append(job)
        if before in path.with_suffix(".busy").read_text().split():
            left.append(before)
    assert len(inside) >= len(JOBS) - 1
    # Each child finds the killed job's work unfinished, but for that of snapshots: they come last and write no rows.
    assert len(left) >= len(JOBS) - 2
    assert finish(path) == base.expected


def instant(number: int, length: int, seed: str = "") -> int:
    """A statement in the number-th of KILLS equal parts of a job."""
    part = (number + random.Random(f"{seed} {number}").random()) / KILLS
    return 1 + int(part * length)


def kill(path: Path, job: str, instant: int, **more: Any) -> bool:
    """Let a child run up to a statement of a job; tell whether it was killed there, not at the end of a shorter run."""
    process = processes.Process(target=run_until_killed, args=(path, job, instant), kwargs=more)
    process.start()
    process.join(60)
    assert process.exitcode in (-signal.SIGKILL, SURVIVED)
    return process.exitcode == -signal.SIGKILL


@pytest.mark.process
def test_a_language_model_is_asked_again_after_a_kill(base: Base, tmp_path: Path) -> None:
    shutil.copy(base.folder / "base.db", tmp_path / "undisturbed.db")
    expected = finish(tmp_path / "undisturbed.db", now=SOON)
    with opened(tmp_path / "undisturbed.db", now=SOON) as store:
        written = store.one("SELECT count(*) FROM gist WHERE author = 'narrator'")
        assert written == store.one("SELECT count(*) FROM gist") > 10
    shutil.copy(base.folder / "base.db", tmp_path / "measured.db")
    length = lengths(tmp_path / "measured.db", now=SOON)["summaries"]
    left = []
    for number in range(KILLS):
        path = tmp_path / f"{number}.db"
        shutil.copy(base.folder / "base.db", path)
        assert kill(path, "summaries", instant(number, length), now=SOON)
        with opened(path, now=SOON) as store:
            left.append(store.one("SELECT count(*) FROM gist WHERE rewrite = 1"))
        assert finish(path, now=SOON) == expected
    assert left == sorted(left, reverse=True) and min(left) > 0
    assert sum(count < written for count in left) > KILLS / 2


@pytest.mark.process
def test_removing_the_oldest_rows_survives_kills(base: Base, tmp_path: Path) -> None:
    path = tmp_path / "bound.db"
    shutil.copy(base.folder / "undisturbed.db", path)
    with opened(path) as store:
        first = store.all("SELECT id FROM node WHERE kind = 1 AND text_id IS NULL ORDER BY stamp, id")
        bound = store.db.size_bytes() / 1e6 * 0.93
    shutil.copy(base.folder / "undisturbed.db", tmp_path / "measured.db")
    length = lengths(tmp_path / "measured.db", max_db_mb=bound)["bound"]
    assert length > 5 * KILLS
    chance = random.Random(7)
    for _ in range(KILLS):
        # What all children did together is less than one that is left alone does.
        assert kill(path, "bound", chance.randint(1, length // KILLS), max_db_mb=bound)
    with opened(path, max_db_mb=bound) as store:
        store.run()
        left = store.all("SELECT id FROM node WHERE kind = 1 AND text_id IS NULL ORDER BY stamp, id")
        assert 0 < len(left) < len(first) and left == first[-len(left) :]
        assert store.db.size_bytes() <= bound * 1e6 and store.db.check() == []
