"""The consistency check, copies of a database that is written, and its size."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from memory_node.errors import StorageError
from memory_node.graph import Node
from memory_node.storage import nodes, vectors
from memory_node.storage.database import Database

Make = Callable[..., Node]


BREAKAGES = {
    "INSERT INTO edge VALUES (1, 12345, 1, 1)": "1 edges to nodes that do not exist",
    "INSERT INTO vector VALUES (NULL, 1, NULL, 0, 12345, 1, x'0000')": "1 vectors of nodes that do not exist",
    "UPDATE vector SET data = x'00'": "1 vectors of a wrong length",
    "DELETE FROM vector": "1 wanted texts that have neither a vector nor a place in the queue",
    "UPDATE text SET wanted = 0": "wanted texts missing from the word index, or others in it",
    "UPDATE node SET revision = 1000": "nodes written by a transaction that never was",
    "UPDATE node SET text_id = 999": "node row 1 refers to a missing row of text",
    "UPDATE text SET body = 'other words' WHERE wanted = 1": "the word index does not fit the texts",
}


@pytest.mark.parametrize("damage", BREAKAGES)
def test_check_finds_what_does_not_fit_together(tmp_path: Path, observation: Make, damage: str) -> None:
    db = Database.open(tmp_path / "a.db")
    model = db.write(lambda tx: vectors.open_model(tx, "m", 1))
    db.write(lambda tx: nodes.insert(tx, observation("a chair")))
    db.write(lambda tx: vectors.add_texts(tx, model.id, [1], [[1]]))
    assert db.check() == []
    db.close()
    conn = sqlite3.connect(tmp_path / "a.db")
    conn.execute(damage)
    conn.commit()
    conn.close()
    db = Database.open(tmp_path / "a.db")
    assert any(BREAKAGES[damage] in problem for problem in db.check()), db.check()
    db.close()


def test_backup_of_a_database_that_is_being_written_is_whole(db: Database, tmp_path: Path, observation: Make) -> None:
    stop = threading.Event()
    written = [0]

    def write() -> None:
        while not stop.is_set():
            rows = [observation(f"batch {written[0]} row {i}") for i in range(10)]
            db.write(lambda tx, rows=rows: nodes.insert_many(tx, rows))
            written[0] += 10

    thread = threading.Thread(target=write)
    thread.start()
    try:
        while written[0] < 200:
            pass
        for number in range(3):
            at_least = written[0]
            db.backup(tmp_path / "copies" / f"{number}.db")
            copy = Database.open(tmp_path / "copies" / f"{number}.db")
            with copy.read() as conn:
                count = conn.execute("SELECT count(*) FROM node").fetchone()[0]
            assert count >= at_least and count % 10 == 0
            assert copy.check() == []
            copy.close()
    finally:
        stop.set()
        thread.join(30)


def test_backup_never_overwrites_and_leaves_nothing_half_done(db: Database, tmp_path: Path) -> None:
    (tmp_path / "taken.db").write_text("mine")
    with pytest.raises(StorageError, match="taken.db: exists already"):
        db.backup(tmp_path / "taken.db")
    with pytest.raises(StorageError, match="exists already"):
        db.backup(db.path)
    with pytest.raises(StorageError, match="taken.db: cannot be created"):
        db.backup(tmp_path / "taken.db" / "below.db")
    assert (tmp_path / "taken.db").read_text() == "mine"
    assert list(tmp_path.glob("*.part")) == []


def test_size_counts_pages_in_use(db: Database, observation: Make) -> None:
    small = db.size_bytes()
    ids = db.write(lambda tx: nodes.insert_many(tx, [observation(f"{i} " + "x" * 1000) for i in range(500)]))
    full = db.size_bytes()
    assert full - small > 500_000
    db.write(lambda tx: nodes.remove(tx, ids))
    assert db.size_bytes() < small + 200_000
