"""Sessions of one clock: how far back their stamps may be compared, found in one statement."""

from __future__ import annotations

import pytest

from memory_node.storage import sessions
from memory_node.storage.database import Database


def open_session(db: Database, stamp: int, clock: str = "ros", reason: str = "start") -> int:
    return db.write(
        lambda tx: sessions.open_session(tx, clock=clock, stamp=stamp, wall=stamp, frame="map", reason=reason)
    )


def comparable_since(db: Database) -> int:
    with db.read() as conn:
        return sessions.comparable_since(conn)


def test_no_session_is_compared_with_before_the_first(db: Database) -> None:
    assert comparable_since(db) == 0


def test_restarts_of_one_clock_are_compared(db: Database) -> None:
    first = open_session(db, 10)
    open_session(db, 20)
    open_session(db, 30, reason="map changed")
    assert comparable_since(db) == first


@pytest.mark.parametrize(
    ("stamp", "clock", "reason"),
    [(30, "ros", "clock jumped ahead"), (30, "sim", "start"), (15, "ros", "start")],
    ids=["a jump", "another clock", "an earlier time"],
)
def test_what_was_before_a_change_of_the_clock_is_not_compared(
    db: Database, stamp: int, clock: str, reason: str
) -> None:
    open_session(db, 10, clock="ros")
    open_session(db, 20, clock="ros")
    changed = open_session(db, stamp, clock, reason)
    open_session(db, 40, clock)
    assert comparable_since(db) == changed


def test_a_thousand_restarts_are_one_statement(db: Database) -> None:
    stamps = range(sessions.LOOKED_BACK + 5)
    ids = [open_session(db, stamp) for stamp in stamps]
    asked: list[str] = []
    with db.read() as conn:
        conn.set_trace_callback(asked.append)
        assert sessions.comparable_since(conn) == ids[-1] - sessions.LOOKED_BACK
        conn.set_trace_callback(None)
    assert len(asked) == 1
