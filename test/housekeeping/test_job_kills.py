"""`kill -9` in the middle of each job: reopened and run to the end, the graph is that of an undisturbed run."""

from __future__ import annotations

import multiprocessing
import os
import random
import shutil
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

import pytest
from kept_store import DAY, Store
from support.fakes import SECOND, FakeClock, WordEmbedder

from memory_node.graph import Kind
from memory_node.housekeeping import archive, gists, importance, silence
from memory_node.housekeeping import episodes as keeping
from memory_node.protocols import NamedThing, SummaryRow

KILLS = 20
START = 20 * DAY
NOW = START + 10 * DAY
JOBS = ("episodes", "gists", "archive", "rollup", "importance", "duplicates", "snapshots")

SOON = START + 8 * 3600.0
"""Rows are then young enough for a language model to be waited for."""

processes = multiprocessing.get_context("forkserver")
processes.set_forkserver_preload(["kept_store", "sklearn.cluster"])


class Narrator:
    """A language model that needs a moment and says the same of the same rows."""

    name = "narrator"

    def summarize(self, rows: Sequence[SummaryRow], max_chars: int) -> str:
        time.sleep(0.001)
        return f"{sum(row.repeats for row in rows)} times, such as {rows[0].text} and {rows[-1].text}"[:max_chars]

    def extract(self, rows: Sequence[SummaryRow]) -> list[NamedThing]:
        return []


def opened(path: Path, now: float = NOW, **more: Any) -> Store:
    return Store(path, clock=FakeClock(now), embedder=WordEmbedder(), **more)


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


def run_until_killed(path: Path, job: str, delay: float, **more: Any) -> None:
    """Run all jobs up to one in small bites, and die `delay` s after that one began."""
    gists.CHUNK = archive.CHUNK = silence.BATCH = 25
    importance.BATCH = 1
    store = opened(path, **more)
    for name in store.runner.jobs:
        store.recalls.note([1, 2, 3], store.clock.ns)
        if name == job:
            threading.Thread(target=lambda: (time.sleep(delay), os.kill(os.getpid(), signal.SIGKILL))).start()
        store.runner.run(name)
        if name == job:
            time.sleep(60)


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
    columns = "n.id, n.kind, n.layer_id, t.body, n.stamp, n.last_stamp, n.x, n.y, n.z, n.tier"
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


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Counter[Any]]:
    with pytest.MonkeyPatch.context() as patch:
        # The server that children are forked from imports what they need once, if it finds it.
        patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
        forkserver.ensure_running()
    folder = tmp_path_factory.mktemp("kills")
    build(folder / "base.db")
    shutil.copy(folder / "base.db", folder / "undisturbed.db")
    expected = finish(folder / "undisturbed.db")
    kinds = Counter(key[1] for key in expected if len(key) > 5)
    assert kinds[Kind.GIST] > 10 and kinds[Kind.EPISODE] >= 2
    return folder, expected


@pytest.mark.process
@pytest.mark.parametrize("number", range(KILLS))
def test_jobs_killed_one_after_another_go_on_where_they_were(
    number: int, base: tuple[Path, Counter[Any]], tmp_path: Path
) -> None:
    """Each store is killed once in every job, so every job is killed at as many instants as there are stores."""
    folder, expected = base
    chance = random.Random(number)
    path = tmp_path / "m.db"
    shutil.copy(folder / "base.db", path)
    for job in JOBS:
        kill(path, job, chance.uniform(0.0, 0.03))
    assert finish(path) == expected


def kill(path: Path, job: str, delay: float, **more: Any) -> None:
    process = processes.Process(target=run_until_killed, args=(path, job, delay), kwargs=more)
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL


@pytest.mark.process
def test_a_language_model_is_asked_again_after_a_kill(base: tuple[Path, Counter[Any]], tmp_path: Path) -> None:
    folder, _ = base
    shutil.copy(folder / "base.db", tmp_path / "undisturbed.db")
    more = {"now": SOON, "summarizer": Narrator()}
    expected = finish(tmp_path / "undisturbed.db", **more)
    with opened(tmp_path / "undisturbed.db", **more) as store:
        written = store.one("SELECT count(*) FROM gist WHERE author = 'narrator'")
        assert written == store.one("SELECT count(*) FROM gist") > 10
    chance = random.Random(3)
    left = []
    for number in range(KILLS):
        path = tmp_path / f"{number}.db"
        shutil.copy(folder / "base.db", path)
        kill(path, "summaries", chance.uniform(0.0, 0.05), **more)
        with opened(path, **more) as store:
            left.append(store.one("SELECT count(*) FROM gist WHERE rewrite = 1"))
        assert finish(path, **more) == expected
    assert any(0 < count < written for count in left)


@pytest.mark.process
def test_removing_the_oldest_rows_survives_kills(base: tuple[Path, Counter[Any]], tmp_path: Path) -> None:
    path = tmp_path / "bound.db"
    shutil.copy(base[0] / "undisturbed.db", path)
    with opened(path) as store:
        first = store.all("SELECT id FROM node WHERE kind = 1 AND tier = 3 ORDER BY stamp, id")
        bound = store.db.size_bytes() / 1e6 * 0.8
    chance = random.Random(7)
    for _ in range(KILLS):
        kill(path, "bound", chance.uniform(0.0, 0.01), max_db_mb=bound)
    with opened(path, max_db_mb=bound) as store:
        store.run()
        left = store.all("SELECT id FROM node WHERE kind = 1 AND tier = 3 ORDER BY stamp, id")
        assert 0 < len(left) < len(first) and left == first[-len(left) :]
        assert store.db.size_bytes() <= bound * 1e6 and store.db.check() == []
