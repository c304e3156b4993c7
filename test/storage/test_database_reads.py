"""Readers: snapshots, few connections for many threads, readers and a writer at once (F36)."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from memory_node.errors import ClosedError, LockedError, ReadOnlyError
from memory_node.graph import EdgeType, Node
from memory_node.storage import connections, edges, meta, nodes, texts
from memory_node.storage.database import Database, Transaction

Make = Callable[..., Node]


def test_a_read_block_is_one_snapshot_and_nests(db: Database) -> None:
    db.write(lambda tx: meta.put(tx.conn, "k", 1))
    with db.read() as conn:
        assert meta.get(conn, "k") == 1
        db.write(lambda tx: meta.put(tx.conn, "k", 2))
        with db.read() as inner:
            assert inner is conn
            assert meta.get(inner, "k") == 1
        assert meta.get(conn, "k") == 1, "the inner block must not end the snapshot"
    with db.read() as conn:
        assert meta.get(conn, "k") == 2


def test_readers_cannot_write(db: Database) -> None:
    with db.read() as conn, pytest.raises(sqlite3.OperationalError, match="readonly"):
        conn.execute("INSERT INTO meta VALUES ('k', 1)")


def test_any_number_of_threads_share_few_connections(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MOST_READERS", 4)
    most, faults = [0], []

    def read() -> None:
        try:
            for _ in range(5):
                with db.read() as conn, db.read() as inner:
                    assert inner is conn and meta.get(conn, "uuid")
                    most[0] = max(most[0], len(db._readers))
                    time.sleep(0.001)
        except Exception as error:
            faults.append(error)

    threads = [threading.Thread(target=read) for _ in range(100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert faults == [] and most == [4] and len(db._readers) == 4


def test_however_many_read_at_once_few_caches_are_large_and_one_who_reads_alone_has_such_a_one(db: Database) -> None:
    together = threading.Barrier(10)

    def cache_kib() -> int:
        with db.read() as conn:
            together.wait(30)
            return -int(conn.execute("PRAGMA cache_size").fetchone()[0])

    with ThreadPoolExecutor(10) as threads:
        kib = [future.result() for future in [threads.submit(cache_kib) for _ in range(10)]]
    assert sorted(kib) == 8 * [512] + 2 * [2048]
    for _ in range(20):
        with db.read() as conn:
            assert conn.execute("PRAGMA cache_size").fetchone() == (-2048,)


def test_few_who_read_at_once_have_the_same_few_connections_again(db: Database) -> None:
    def lent(number: int) -> set[sqlite3.Connection]:
        together = threading.Barrier(number)

        def hold() -> sqlite3.Connection:
            with db.read() as conn:
                together.wait(30)
                return conn

        with ThreadPoolExecutor(number) as threads:
            return {future.result() for future in [threads.submit(hold) for _ in range(number)]}

    lent(10)
    assert len(set.union(*(lent(4) for _ in range(20)))) == 4


def test_threads_that_wait_for_each_other_inside_their_blocks_are_lent_more_connections(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MOST_READERS", 2)
    monkeypatch.setattr(connections, "PATIENCE", 0.05)
    together = threading.Barrier(6)

    def read() -> None:
        with db.read():
            together.wait(30)

    threads = [threading.Thread(target=read) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not together.broken and len(db._readers) == 2


def test_close_waits_for_nobody_and_a_block_that_runs_ends_with_closed_error(tmp_path: Path) -> None:
    db = Database.open(tmp_path / "a.db")
    inside, outcome = threading.Event(), []
    count_for_hours = """WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1e12)
                         SELECT max(i) FROM n"""

    def endless() -> None:
        try:
            with db.read() as conn:
                inside.set()
                conn.execute(count_for_hours).fetchone()
        except ClosedError as error:
            outcome.append(error)

    thread = threading.Thread(target=endless)
    thread.start()
    assert inside.wait(10)
    while thread.is_alive():  # an interrupt that comes before the statement runs is lost
        db.close()
        db._readers.close()
        thread.join(0.05)
    assert len(outcome) == 1
    assert len(db._readers) == 0


def test_f36_four_readers_beside_one_writer_see_whole_batches_only(db: Database, observation: Make) -> None:
    batches, size = 60, 20
    problems: list[object] = []
    done = threading.Event()

    def batch(number: int) -> Callable[[Transaction], None]:
        def work(tx: Transaction) -> None:
            rows = [observation(f"batch {number} row {i}", stamp=number, layer=f"l{number % 3}") for i in range(size)]
            ids = nodes.insert_many(tx, rows)
            edges.add_many(tx, [(ids[0], id_, EdgeType.NEAR_EVENT) for id_ in ids[1:]])

        return work

    def reader() -> None:
        try:
            last = 0
            while not done.is_set():
                with db.read() as conn:
                    rows = conn.execute("SELECT count(*) FROM node").fetchone()[0]
                    joined = conn.execute("SELECT count(*) FROM edge").fetchone()[0]
                    words = conn.execute("SELECT count(*) FROM text_fts WHERE text_fts MATCH 'batch'").fetchone()[0]
                if not (rows % size == 0 and joined == rows // size * (size - 1) and words == rows and rows >= last):
                    problems.append((rows, joined, words, last))
                last = rows
        except Exception as error:
            problems.append(error)

    threads = [threading.Thread(target=reader) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number in range(batches):
        db.write(batch(number))
    done.set()
    for thread in threads:
        thread.join(30)
    assert problems == []
    with db.read() as conn:
        assert conn.execute("SELECT count(*) FROM node").fetchone()[0] == batches * size


def test_f36_a_reader_that_holds_its_transaction_stops_neither_writes_nor_checkpoints(
    db: Database, observation: Make
) -> None:
    db.write(lambda tx: nodes.insert(tx, observation("first")))
    with db.read() as conn:
        assert len(nodes.fetch(conn, range(1, 100))) == 1
        for i in range(20):
            db.write(lambda tx, i=i: nodes.insert(tx, observation(f"text {i}")))
        db.checkpoint()
        assert db.wal_bytes() > 0
        assert len(nodes.fetch(conn, range(1, 100))) == 1
    db.checkpoint()
    assert db.wal_bytes() == 0
    with db.read() as conn:
        assert len(nodes.fetch(conn, range(1, 100))) == 21


def test_f36_a_foreign_viewer_that_locks_for_a_while_only_delays_a_write(db: Database) -> None:
    viewer = sqlite3.connect(db.path, isolation_level=None)
    viewer.execute("BEGIN IMMEDIATE")
    future = db.submit(lambda tx: meta.put(tx.conn, "k", 1))
    assert not future.done()
    viewer.execute("COMMIT")
    viewer.close()
    future.result(10)
    with db.read() as conn:
        assert meta.get(conn, "k") == 1


def test_f36_a_second_writer_is_told_who_has_it(db: Database, run_child: Callable[..., str]) -> None:
    source = """
import sys
from memory_node.errors import LockedError
from memory_node.storage.database import Database
try:
    Database.open(sys.argv[1])
except LockedError as error:
    print(error)
"""
    told = run_child(source, db.path)
    assert f"process {os.getpid()} has it open for writing" in told
    assert str(db.path) in told
    assert f"{db.path}.lock" in told
    with pytest.raises(LockedError, match=f"process {os.getpid()} "):
        Database.open(db.path)


def test_the_lock_is_free_again_after_close(tmp_path: Path) -> None:
    for _ in range(2):
        db = Database.open(tmp_path / "a.db")
        db.close()
    assert (tmp_path / "a.db.lock").read_text() == ""


def test_read_only_beside_the_writer_follows_it(db: Database, observation: Make) -> None:
    watcher = Database.open(db.path, read_only=True)
    assert watcher.read_only and not db.read_only
    before = watcher.revision
    id_ = db.write(lambda tx: nodes.insert(tx, observation("seen by both")))
    assert watcher.revision == before + 1 == db.revision
    with watcher.read() as conn:
        assert [node.text for node in nodes.fetch(conn, [id_])] == ["seen by both"]
    assert watcher.check() == []
    for refused in (
        lambda: watcher.write(lambda tx: texts.intern(tx, "x")),
        lambda: watcher.submit(lambda tx: texts.intern(tx, "x")),
        watcher.new_id,
        watcher.checkpoint,
        lambda: watcher.add_listener(print),
    ):
        with pytest.raises(ReadOnlyError, match="opened read-only"):
            refused()
    watcher.close()
    with pytest.raises(ClosedError), watcher.read():
        pass


def test_a_child_that_outlives_its_killed_parent_for_a_moment_keeps_nobody_out(tmp_path: Path) -> None:
    """The graph is written by a forked child, which has the lock of its parent until it closes what it inherited."""
    source = """
import os, signal, sys, time
from memory_node.storage.database import Database
db = Database.open(sys.argv[1])
if os.fork() == 0:
    time.sleep(0.5)
    os._exit(0)
os.kill(os.getpid(), signal.SIGKILL)
"""
    killed = subprocess.run([sys.executable, "-c", source, str(tmp_path / "a.db")], check=False)
    assert killed.returncode == -9
    with pytest.raises(BlockingIOError), open(tmp_path / "a.db.lock", "rb+") as held:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    Database.open(tmp_path / "a.db").close()
