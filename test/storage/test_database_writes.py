"""The writer: group commit, savepoints, undo, listeners, ids and revisions."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from memory_node.errors import ClosedError, InvalidArgument, StorageError
from memory_node.graph import Node
from memory_node.storage import meta, nodes
from memory_node.storage.database import Database, Transaction

Make = Callable[..., Node]


def put(key: str, value: Any) -> Callable[[Transaction], str]:
    def work(tx: Transaction) -> str:
        meta.put(tx.conn, key, value)
        return key

    return work


def value(db: Database, key: str) -> Any:
    with db.read() as conn:
        return meta.get(conn, key)


def in_one_commit(db: Database, works: list[Callable[[Transaction], Any]]) -> list[Future[Any]]:
    """Queue works while the writer is held up, so that all of them share the next commit."""
    entered, go = threading.Event(), threading.Event()

    def hold(tx: Transaction) -> None:
        entered.set()
        assert go.wait(10)

    held = db.submit(hold)
    assert entered.wait(10)
    futures = [db.submit(work) for work in works]
    assert db.waiting == len(works)
    go.set()
    held.result(10)
    return futures


def test_write_returns_the_result_after_the_commit(db: Database) -> None:
    assert db.write(put("a", 1)) == "a"
    assert value(db, "a") == 1
    assert db.waiting == 0


def test_waiting_works_share_one_commit_and_a_failed_one_leaves_no_trace(db: Database) -> None:
    before = db.revision
    revisions: list[int] = []

    def good(tx: Transaction) -> None:
        revisions.append(tx.revision)
        meta.put(tx.conn, f"good{len(revisions)}", len(revisions))

    def bad(tx: Transaction) -> None:
        meta.put(tx.conn, "bad", 1)
        raise KeyError("mine")

    first, failed, last = in_one_commit(db, [good, bad, good])
    first.result(10)
    with pytest.raises(KeyError, match="mine"):
        failed.result(10)
    last.result(10)
    assert revisions == [before + 1, before + 1]
    assert db.revision == before + 1
    assert (value(db, "good1"), value(db, "bad"), value(db, "good2")) == (1, None, 2)


def test_an_error_of_sqlite_reaches_the_caller_as_storage_error(db: Database) -> None:
    with pytest.raises(StorageError, match="no such table: nowhere") as caught:
        db.write(lambda tx: tx.conn.execute("SELECT * FROM nowhere"))
    assert isinstance(caught.value.__cause__, sqlite3.OperationalError)
    with pytest.raises(StorageError, match="no such table"), db.read() as conn:
        conn.execute("SELECT * FROM nowhere")
    db.write(put("after", 1))
    assert value(db, "after") == 1


def test_nested_block_undoes_itself_and_the_work_may_go_on(db: Database) -> None:
    undone: list[str] = []

    def work(tx: Transaction) -> None:
        meta.put(tx.conn, "outer", 1)
        tx.on_rollback(lambda: undone.append("outer"))
        with pytest.raises(ValueError), tx.nested():
            meta.put(tx.conn, "inner", 1)
            tx.on_rollback(lambda: undone.append("inner"))
            with tx.nested():
                meta.put(tx.conn, "innermost", 1)
                tx.on_rollback(lambda: undone.append("innermost"))
            raise ValueError
        meta.put(tx.conn, "later", 1)

    db.write(work)
    assert undone == ["innermost", "inner"]
    assert [value(db, key) for key in ("outer", "inner", "innermost", "later")] == [1, None, None, 1]


def test_write_inside_a_work_runs_at_once_in_a_savepoint(db: Database) -> None:
    def fails(tx: Transaction) -> None:
        meta.put(tx.conn, "inner", 1)
        raise ValueError

    def work(tx: Transaction) -> list[Any]:
        assert db.write(put("nested", 5)) == "nested"
        with pytest.raises(ValueError):
            db.write(fails)
        return [meta.get(tx.conn, "nested"), meta.get(tx.conn, "inner")]

    assert db.write(work) == [5, None]
    assert value(db, "nested") == 5


def test_undo_runs_newest_first_only_for_the_work_that_failed(db: Database) -> None:
    undone: list[str] = []

    def work(name: str, fails: bool) -> Callable[[Transaction], None]:
        def run(tx: Transaction) -> None:
            tx.on_rollback(lambda: undone.append(f"{name} 1"))
            tx.on_rollback(lambda: undone.append(f"{name} 2"))
            if fails:
                raise ValueError

        return run

    good, bad = in_one_commit(db, [work("good", False), work("bad", True)])
    good.result(10)
    assert isinstance(bad.exception(10), ValueError)
    assert undone == ["bad 2", "bad 1"]


def test_a_failed_commit_fails_and_undoes_every_work_and_the_writer_lives_on(db: Database) -> None:
    undone: list[int] = []

    def dangling(tx: Transaction) -> None:
        tx.on_rollback(lambda: undone.append(1))
        tx.conn.execute("PRAGMA defer_foreign_keys = ON")
        tx.conn.execute("INSERT INTO gist VALUES (999, 0, '[]', 0, 0, 0, '', 0)")

    def innocent(tx: Transaction) -> None:
        tx.on_rollback(lambda: undone.append(2))
        meta.put(tx.conn, "innocent", 1)

    before = db.revision
    futures = in_one_commit(db, [innocent, dangling])
    for future in futures:
        with pytest.raises(StorageError, match="FOREIGN KEY constraint failed"):
            future.result(10)
    assert undone == [1, 2]
    assert value(db, "innocent") is None
    db.write(put("later", 1))
    assert (value(db, "later"), db.revision) == (1, before + 1)


def test_listeners_run_after_the_commit_and_before_the_caller_is_answered(db: Database) -> None:
    seen: list[Any] = []

    def listener() -> None:
        seen.append((threading.current_thread().name, value(db, "k")))

    def broken() -> None:
        raise RuntimeError("of a listener")

    db.add_listener(broken)
    db.add_listener(listener)
    db.write(put("k", 7))
    assert seen == [("memory-writer", 7)]
    db.write(lambda tx: None)
    assert len(seen) == 1, "a commit that changed nothing tells nobody"


def test_a_listener_may_submit_but_not_wait_for_a_write(db: Database) -> None:
    caught: list[BaseException] = []
    submitted: list[Future[str]] = []

    def listener() -> None:
        if submitted:
            return
        submitted.append(db.submit(put("submitted", 1)))
        try:
            db.write(put("waited", 1))
        except StorageError as error:
            caught.append(error)

    db.add_listener(listener)
    db.write(put("k", 1))
    assert submitted[0].result(10) == "submitted"
    assert len(caught) == 1
    assert value(db, "waited") is None


def test_a_cancelled_write_is_never_run(db: Database) -> None:
    entered, go = threading.Event(), threading.Event()

    def hold(tx: Transaction) -> None:
        entered.set()
        assert go.wait(10)

    held = db.submit(hold)
    assert entered.wait(10)
    cancelled = db.submit(put("cancelled", 1))
    assert cancelled.cancel()
    go.set()
    held.result(10)
    db.write(put("after", 1))
    assert value(db, "cancelled") is None
    assert db.waiting == 0


def test_ids_are_distinct_across_threads_and_never_given_again_once_committed(
    tmp_path: Path, observation: Make
) -> None:
    db = Database.open(tmp_path / "a.db")
    ids: list[int] = []
    threads = [threading.Thread(target=lambda: ids.extend([db.new_id() for _ in range(500)])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(ids) == list(range(1, 2001))
    (stored,) = db.write(lambda tx: nodes.insert_many(tx, [observation()]))
    db.write(lambda tx: nodes.remove(tx, [stored]))
    db.close()
    again = Database.open(tmp_path / "a.db")
    assert again.new_id() == stored + 1
    again.close()


def test_revision_rises_across_restarts(tmp_path: Path) -> None:
    seen = []
    for _ in range(3):
        db = Database.open(tmp_path / "a.db")
        seen.append(db.write(lambda tx: (meta.put(tx.conn, "k", tx.revision), tx.revision)[1]))
        assert db.revision == seen[-1]
        db.close()
    assert seen == [1, 2, 3]


def test_close_commits_what_waits_and_later_calls_say_closed(tmp_path: Path) -> None:
    db = Database.open(tmp_path / "a.db")
    futures = [db.submit(put(f"k{i}", i)) for i in range(50)]
    db.close()
    db.close()
    assert [future.result(0) for future in futures] == [f"k{i}" for i in range(50)]
    assert not (tmp_path / "a.db-wal").exists(), "the log is folded into the file"
    with pytest.raises(ClosedError):
        db.write(put("k", 1))
    with pytest.raises(ClosedError):
        db.submit(put("k", 1))
    with pytest.raises(ClosedError), db.read():
        pass
    again = Database.open(tmp_path / "a.db")
    assert [value(again, f"k{i}") for i in range(50)] == list(range(50))
    again.close()


@pytest.mark.parametrize("replaced", [False, True])
def test_a_file_that_is_removed_or_replaced_while_open_takes_no_more_until_it_is_back(
    tmp_path: Path, replaced: bool
) -> None:
    """What is written to it would be gone with the last connection."""
    with closing(Database.open(tmp_path / "robot.db")) as db:
        db.write(put("stored", "before"))
        assert value(db, "stored") == "before"
        db.path.rename(tmp_path / "aside.db")
        if replaced:
            Database.open(tmp_path / "other.db").close()
            (tmp_path / "other.db").rename(db.path)
        for _ in range(2):
            with pytest.raises(StorageError, match="robot.db: was removed or replaced while open; nothing is stored"):
                db.write(put("stored", "lost"))
        assert value(db, "stored") == "before"
        (tmp_path / "aside.db").rename(db.path)
        db.write(put("more", "after"))
    with closing(Database.open(tmp_path / "robot.db")) as db:
        assert (value(db, "stored"), value(db, "more")) == ("before", "after")


def test_wrong_options_are_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="^durability: got 'some', allowed is one of normal, full"):
        Database.open(tmp_path / "a.db", durability="some")
    with pytest.raises(InvalidArgument, match="^on_corrupt: "):
        Database.open(tmp_path / "a.db", on_corrupt="ignore")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("durability", "level"), [("normal", 1), ("full", 2)])
def test_durability_is_sqlites_synchronous(tmp_path: Path, durability: str, level: int) -> None:
    db = Database.open(tmp_path / "a.db", durability=durability)
    assert db.write(lambda tx: tx.conn.execute("PRAGMA synchronous").fetchone()[0]) == level
    assert db.write(lambda tx: tx.conn.execute("PRAGMA journal_mode").fetchone()[0]) == "wal"
    db.close()
