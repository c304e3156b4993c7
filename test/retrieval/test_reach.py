"""How far gists reach, kept in memory."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from memory_node.graph import Gist
from memory_node.retrieval.reach import Reach
from memory_node.storage import gists
from memory_node.storage.database import Database


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    database = Database.open(tmp_path / "memory.db")
    yield database
    database.close()


def store(db: Database, radius: float) -> int:
    gist = Gist(
        id=0, text="much was seen", layers=("scene",), start=0, end=1, observation_count=0, position=None, frame="map",
        radius=radius,
    )  # fmt: skip
    return db.write(lambda tx: gists.insert(tx, gist, []))


def of(db: Database, reach: Reach, *ids: int) -> list[float]:
    with db.read() as conn:
        return reach.of(conn, np.array(ids, dtype=np.int64)).tolist()


def widest(db: Database, reach: Reach) -> float:
    with db.read() as conn:
        return reach.widest(conn)


def test_radii_of_gists_that_come_later_are_known_too(db: Database) -> None:
    reach = Reach()
    assert (widest(db, reach), of(db, reach), of(db, reach, 7)) == (0.0, [], [0.0])
    first, second = store(db, 2.0), store(db, 3.5)
    assert of(db, reach, second, first, 7_000) == [3.5, 2.0, 0.0]
    assert widest(db, reach) == 3.5
    third = store(db, 1.0)
    assert of(db, reach, third, first) == [1.0, 2.0]
    assert widest(db, reach) == 3.5


def test_no_gist_is_read_twice(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    reach = Reach()
    read: list[list[tuple[int, float]]] = []
    radii_after = gists.radii_after

    def counted(conn: sqlite3.Connection, id_: int) -> list[tuple[int, float]]:
        read.append(radii_after(conn, id_))
        return read[-1]

    monkeypatch.setattr(gists, "radii_after", counted)
    ids = [store(db, 1.0) for _ in range(3)]
    assert widest(db, reach) == 1.0
    ids.append(store(db, 2.0))
    assert of(db, reach, *ids) == [1.0, 1.0, 1.0, 2.0]
    assert [len(rows) for rows in read] == [3, 1]


def test_a_snapshot_of_before_takes_no_gist_from_others(db: Database) -> None:
    reach = Reach()
    first = store(db, 1.0)
    with db.read() as conn, ThreadPoolExecutor(1) as beside:
        assert reach.widest(conn) == 1.0
        second = beside.submit(store, db, 2.0).result()
        assert reach.of(conn, np.array([second])).tolist() == [0.0]
        assert beside.submit(of, db, reach, first, second).result() == [1.0, 2.0]
    assert of(db, reach, first, second) == [1.0, 2.0]
