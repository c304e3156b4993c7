"""The job `episodes`: rows outside an explicit episode are linked into one.

Silence, a day, another map or an explicit episode ends it.
"""

from __future__ import annotations

import bisect
import sqlite3
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from memory_node.graph import NO_ID, Episode, Kind
from memory_node.housekeeping import episodes as endings
from memory_node.housekeeping.ages import SECOND, Ages, clamped
from memory_node.housekeeping.centroids import Centroids
from memory_node.housekeeping.runtime import JobContext, StepResult
from memory_node.storage import episodes, nodes, sessions

if TYPE_CHECKING:
    from memory_node.config import Settings
    from memory_node.storage.database import Transaction

BATCH = 500
"""Rows linked by one transaction."""
MAX_OPENED = 5
"""Episodes begun by one transaction."""
NAME = "unnamed activity"
"""Name of every episode that nobody named: one text, so it costs one vector."""

Row = tuple[int, int, int, int]
_NEXT_SESSION = """
SELECT session_id, episode_id FROM node INDEXED BY node_raw WHERE kind = 1 AND tier = 1 AND session_id > ?
ORDER BY session_id, episode_id LIMIT 1
"""
_UNLINKED = """
SELECT id, stamp, last_stamp, map_id FROM node INDEXED BY node_raw WHERE kind = 1 AND tier = 1
AND session_id = ? AND episode_id = 0 AND layer_id NOT IN (SELECT id FROM layer WHERE internal = 1)
ORDER BY stamp, id LIMIT ?
"""
_LINKED = """
SELECT e.id, n.stamp, n.last_stamp, n.map_id, e.status, e.observation_count, n.session_id
FROM episode AS e CROSS JOIN node AS n ON n.id = e.id
"""
_RUNNING = _LINKED.replace("AS e", "AS e INDEXED BY episode_status") + "WHERE e.status = 'active' AND e.explicit = 0"


class Episodes:
    """Links rows, closes what silence ended, and gives ended episodes their vector.

    An installment links some rows, closes an episode, or reads some rows of one whose vector is to come.
    """

    name = endings.JOB

    def __init__(self) -> None:
        self._centroids = Centroids()

    def step(self, context: JobContext) -> StepResult:
        if context.dry_run:
            return StepResult()
        db, settings = context.db, context.settings()
        with db.read() as conn:
            batch = _unlinked(conn)
            over = None if batch else _over(conn, context)
        if batch:
            session_id, rows = batch
            self._centroids.forget()
            linked, wrote = db.write(lambda tx: _link(tx, session_id, rows, settings))
            return StepResult(linked, wrote, done=False)
        if over:
            db.write(lambda tx: endings.close(tx, over.id, "completed", over.end, settings, over.count))
            return StepResult(1, 1, done=False)
        return self._centroids.step(context)


@dataclass
class _Linked:
    """An episode linked by silence, and the rows that just joined it. Times in ns."""

    id: int
    start: int
    end: int
    map_id: int
    status: str
    count: int
    session_id: int
    rows: list[int] = field(default_factory=list)

    def takes(self, stamp: int, map_id: int, starts: list[int], settings: Settings) -> bool:
        """Tell whether a row goes on with it; starts: of explicit episodes, ascending."""
        gap, longest = round(settings.episode_gap * SECOND), round(settings.episode_max_duration * SECOND)
        return (
            map_id == self.map_id
            and self.start - gap <= stamp <= self.end + gap
            and max(stamp, self.end) - min(stamp, self.start) <= longest
            and bisect.bisect_right(starts, stamp) <= bisect.bisect_right(starts, self.end)
        )

    def reach(self, stamp: int, last_stamp: int, settings: Settings) -> None:
        """Let it hold a row; one that is repeated for longer than an episode may last goes on after it."""
        self.start = min(self.start, stamp)
        longest = round(settings.episode_max_duration * SECOND)
        self.end = max(self.end, min(last_stamp, self.start + longest))


def _unlinked(conn: sqlite3.Connection) -> tuple[int, list[Row]] | None:
    """The first rows in no episode, and their session."""
    key = (-1, NO_ID)
    while (key := conn.execute(_NEXT_SESSION, key[:1]).fetchone()) is not None:
        if key[1] == NO_ID and (rows := conn.execute(_UNLINKED, (key[0], BATCH)).fetchall()):
            return key[0], rows
    return None


def _over(conn: sqlite3.Connection, context: JobContext) -> _Linked | None:
    """A linked episode that silence ended; one of an earlier session is over."""
    running = [_Linked(*row) for row in conn.execute(_RUNNING)]
    if not running:
        return None
    ages = Ages(conn, context.present, context.now)
    gap = context.settings().episode_gap
    over = (one for one in running if one.session_id != context.present or one.end < ages.cutoff(one.session_id, gap))
    return next(over, None)


def _link(tx: Transaction, session_id: int, rows: list[Row], settings: Settings) -> tuple[int, int]:
    """Put rows of one session, in order of time, into the episode each belongs to, until MAX_OPENED were begun.

    Returns how many were linked, and how many rows were written for it.
    """
    there = nodes.existing(tx.conn, [row[0] for row in rows])  # some may have been purged since they were read
    rows = [row for row in rows if row[0] in there]
    if not rows:
        return 0, 0
    starts = _explicit_starts(tx.conn, session_id, rows, settings)
    gap = round(settings.episode_gap * SECOND)
    current: _Linked | None = None
    linked = wrote = opened = 0
    for row in rows:
        id_, stamp, last_stamp, map_id = row
        if current is None or not current.takes(stamp, map_id, starts, settings):
            wrote += _flush(tx, current, settings)
            current = _latest(tx.conn, session_id, clamped(stamp + gap))
            if current is None or not current.takes(stamp, map_id, starts, settings):
                if opened == MAX_OPENED:
                    return linked, wrote
                current = _open(tx, session_id, row, current, settings)
                opened += 1
        current.reach(stamp, last_stamp, settings)
        current.rows.append(id_)
        linked += 1
    return linked, wrote + _flush(tx, current, settings)


def _flush(tx: Transaction, linked: _Linked | None, settings: Settings) -> int:
    """Write the rows that joined an episode and what they changed of it."""
    if linked is None or not linked.rows:
        return 0
    episodes.add_members(tx, linked.id, linked.rows)
    episodes.update(
        tx, linked.id, stamp=linked.start, last_stamp=linked.end, observation_count=linked.count + len(linked.rows)
    )
    if linked.status != "active":
        endings.close(tx, linked.id, linked.status, linked.end, settings, linked.count + len(linked.rows))
    return 2 * len(linked.rows) + 1


def _latest(conn: sqlite3.Connection, session_id: int, stamp: int) -> _Linked | None:
    """The linked episode of a session that began last up to a stamp."""
    row = conn.execute(
        f"{_LINKED} WHERE e.id = (SELECT id FROM node INDEXED BY node_kind_stamp"
        f" WHERE kind = {int(Kind.EPISODE)} AND stamp <= ? AND session_id = ?"
        " AND (SELECT explicit FROM episode WHERE episode.id = node.id) = 0 ORDER BY stamp DESC, id DESC LIMIT 1)",
        (stamp, session_id),
    ).fetchone()
    return None if row is None else _Linked(*row)


def _open(tx: Transaction, session_id: int, row: Row, before: _Linked | None, settings: Settings) -> _Linked:
    """Begin an episode at a row; the one before it is over unless it lies ahead."""
    _, stamp, _, map_id = row
    if before is not None and before.status == "active" and before.start <= stamp:
        endings.close(tx, before.id, "completed", before.end, settings, before.count)
    name = tx.conn.execute("SELECT name FROM map WHERE id = ?", (map_id,)).fetchone()
    session = sessions.get(tx.conn, session_id)  # the row's frame is "" where its place is not known
    frame = session.frame if session else ""
    episode = Episode(id=NO_ID, name=NAME, status="active", start=stamp, end=None, frame=frame, explicit=False)
    id_ = episodes.insert(tx, episode, session_id, name[0] if name else "")
    episodes.chain(tx, id_)
    return _Linked(id_, stamp, stamp, map_id, "active", 0, session_id)


def _explicit_starts(conn: sqlite3.Connection, session_id: int, rows: list[Row], settings: Settings) -> list[int]:
    longest = round(settings.episode_max_duration * SECOND)
    found = conn.execute(
        f"SELECT stamp FROM node INDEXED BY node_kind_stamp WHERE kind = {int(Kind.EPISODE)} AND stamp BETWEEN ? AND ?"
        " AND session_id = ? AND (SELECT explicit FROM episode WHERE episode.id = node.id) = 1 ORDER BY stamp",
        (clamped(rows[0][1] - longest), rows[-1][1], session_id),
    )
    return [row[0] for row in found]
