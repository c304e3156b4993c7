"""Sessions: a stretch of one clock on one map. Stamps of different sessions may be of different clocks."""

from __future__ import annotations

import sqlite3
import time
from dataclasses import dataclass

from memory_node.storage.writer import Transaction

_SECOND = 1_000_000_000
FAR = 30 * 86_400 * _SECOND
"""ns between the stamps of two sessions of one clock beyond which it can't be said to have gone on."""
_COLUMNS = "id, started_wall, clock, start_stamp, last_stamp, last_wall, frame, map_id, reason"
LOOKED_BACK = 1000
"""Sessions that are looked back through for the first of the present clock; older rows are of no use then."""


@dataclass(frozen=True)
class Session:
    """One session.

    Attributes:
        started_wall, last_wall: wall clock when it began and when its newest row came (ns since 1970).
        clock: kind of the node's clock: "ros", "sim", "system" ...
        start_stamp, last_stamp: first time of the node's clock, and its time as the newest row tells it (ns).
        frame: of positions.
        map_id: name of the map, "" when it has none.
        reason: why it was opened: "start", "clock went back", "clock jumped ahead", "clock steady again" (after two
            quarrelled), "map changed".
    """

    id: int
    started_wall: int
    clock: str
    start_stamp: int
    last_stamp: int
    last_wall: int
    frame: str
    map_id: str
    reason: str


def open_session(
    tx: Transaction, *, clock: str, stamp: int, wall: int, frame: str, map_id: str = "", reason: str = "start"
) -> int:
    """Store a session that begins at stamp (node's clock, ns) and wall (wall clock, ns); return its id."""
    cursor = tx.conn.execute(
        f"INSERT INTO session ({_COLUMNS}) VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?)",
        (wall, clock, stamp, stamp, wall, frame, map_id, reason),
    )
    assert cursor.lastrowid is not None
    return cursor.lastrowid


def next_id(conn: sqlite3.Connection) -> int:
    """Return the id that the next session gets."""
    return int(conn.execute("SELECT ifnull(max(id), 0) + 1 FROM session").fetchone()[0])


def touch(tx: Transaction, session_id: int, stamp: int, now: int, wall: int | None = None) -> None:
    """Note that a row of stamp (ns) came at wall (ns; None: now); an older stamp leaves the newest as it is.

    Args:
        now: the node's clock, ns; a row stamped ahead of it doesn't make the session any longer.
    """
    wall = time.time_ns() if wall is None else wall
    tx.conn.execute(
        "UPDATE session SET last_stamp = max(last_stamp, ?), last_wall = ? WHERE id = ?",
        (min(stamp, now), wall, session_id),
    )


def get(conn: sqlite3.Connection, session_id: int) -> Session | None:
    """Return a session, or None when there is none of that id."""
    row = conn.execute(f"SELECT {_COLUMNS} FROM session WHERE id = ?", (session_id,)).fetchone()
    return None if row is None else Session(*row)


def latest(conn: sqlite3.Connection) -> Session | None:
    """Return the session opened last, or None when there is none."""
    row = conn.execute(f"SELECT {_COLUMNS} FROM session ORDER BY id DESC LIMIT 1").fetchone()
    return None if row is None else Session(*row)


def comparable_since(conn: sqlite3.Connection) -> int:
    """Return the first session of the present clock: after its last jump, or the last change to another clock."""
    sql = "SELECT id, clock, start_stamp, last_stamp, reason FROM session ORDER BY id DESC LIMIT ?"
    rows = conn.execute(sql, (LOOKED_BACK + 1,))
    first = rows.fetchone()
    for earlier in rows:
        id_, clock, start, _, reason = first
        earlier_id, earlier_clock, _, last, _ = earlier
        if reason.startswith("clock") or earlier_id != id_ - 1 or earlier_clock != clock or last > start:
            break
        first = earlier
    return first[0] if first else 0


def bases(conn: sqlite3.Connection, session_id: int, now: int) -> dict[int, tuple[int, str]]:
    """Return, for each session up to one whose clock shows now (ns), of what a stamp's distance is its age; its clock.

    A row's age is what its own session's clock measured after it, plus what the later sessions measured, plus the time
    between sessions. A jump of the clock begins a session and counts nothing.
    """
    found: dict[int, tuple[int, str]] = {}
    later: tuple[int, str, int, str] | None = None
    elapsed = 0
    rows = conn.execute(
        "SELECT id, started_wall, clock, start_stamp, last_stamp, last_wall, reason FROM session"
        " WHERE id <= ? ORDER BY id DESC",
        (session_id,),
    )
    for id_, started_wall, clock, start, last, last_wall, reason in rows:
        if later is None and id_ == session_id:
            last = now
        elif later is not None:
            elapsed += _between(clock, last, last_wall, later)
        # A row of stamp s in this session is `elapsed + last - s` old.
        found[id_] = elapsed + last, clock
        elapsed += max(0, last - start)
        later = (started_wall, clock, start, reason)
    return found


def shifts(conn: sqlite3.Connection, session_id: int) -> dict[int, int]:
    """Return what to add (ns) to stamps of earlier sessions to have them on the clock of one; those of 0 left out."""
    session = get(conn, session_id)
    if session is None:
        return {}
    start = session.start_stamp
    return {id_: start - base for id_, (base, _) in bases(conn, session_id, start).items() if base != start}


def _between(clock: str, last: int, last_wall: int, later: tuple[int, str, int, str]) -> int:
    """Time from the last row of a session to the start of the next, ns."""
    started_wall, later_clock, start, reason = later
    if reason.startswith("clock"):
        return 0
    if clock == later_clock and 0 <= start - last <= FAR:
        return start - last
    return max(0, started_wall - last_wall)
