"""The job `episodes`: rows outside an explicit episode are linked into one.

Silence, a day, another map or an explicit episode ends it.
"""

from __future__ import annotations

import bisect
import sqlite3
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from memory_node.graph import NO_ID, Episode, Kind
from memory_node.housekeeping import episodes as endings
from memory_node.housekeeping import members
from memory_node.housekeeping.ages import SECOND, Ages
from memory_node.housekeeping.runtime import JobContext, StepResult
from memory_node.storage import episodes, jobs, vectors

if TYPE_CHECKING:
    from memory_node.config import Settings
    from memory_node.storage.database import Transaction

BATCH = 1000
"""Rows linked by one transaction."""
NAME = "unnamed activity"
"""Name of every episode that nobody named: one text, so it costs one vector."""

Row = tuple[int, int, int, int, str]
_UNLINKED = """
SELECT id, stamp, last_stamp, map_id, frame FROM node INDEXED BY node_raw WHERE kind = 1 AND tier = 1
AND session_id = ? AND episode_id = 0 AND layer_id NOT IN (SELECT id FROM layer WHERE internal = 1)
ORDER BY stamp, id LIMIT ?
"""
_LINKED = """
SELECT e.id, n.stamp, n.last_stamp, n.map_id, e.status, e.observation_count, n.session_id
FROM episode AS e CROSS JOIN node AS n ON n.id = e.id
"""
_RUNNING = _LINKED.replace("AS e", "AS e INDEXED BY episode_status") + "WHERE e.status = 'active' AND e.explicit = 0"


class Episodes:
    """Links rows, closes what silence ended, and gives ended episodes their vector."""

    name = endings.JOB

    def step(self, context: JobContext) -> StepResult:
        if context.dry_run:
            return StepResult()
        db, settings = context.db, context.settings()
        with db.read() as conn:
            batch = _unlinked(conn)
            over = [] if batch else _over(conn, context)
            vector = None if batch or over else _next_vector(conn)
        if batch:
            session_id, rows = batch
            return StepResult(len(rows), db.write(lambda tx: _link(tx, session_id, rows, settings)), done=False)
        if over:
            db.write(lambda tx: _close(tx, over, settings))
            return StepResult(len(over), len(over), done=False)
        if vector:
            return StepResult(1, db.write(lambda tx: _store_vector(tx, *vector)), done=False)
        return StepResult()


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


def _unlinked(conn: sqlite3.Connection) -> tuple[int, list[Row]] | None:
    """The first rows in no episode, and their session."""
    sessions = conn.execute(
        "SELECT DISTINCT session_id FROM node INDEXED BY node_raw WHERE kind = 1 AND tier = 1"
    ).fetchall()
    for (session,) in sessions:
        rows = conn.execute(_UNLINKED, (session, BATCH)).fetchall()
        if rows:
            return session, rows
    return None


def _over(conn: sqlite3.Connection, context: JobContext) -> list[_Linked]:
    """Linked episodes that silence ended: of the present session by its clock, of earlier ones by what passed since."""
    running = [_Linked(*row) for row in conn.execute(_RUNNING)]
    if not running:
        return []
    ages = Ages(conn, context.present, context.now)
    gap = context.settings().episode_gap
    return [one for one in running if one.session_id != context.present or one.end < ages.cutoff(one.session_id, gap)]


def _close(tx: Transaction, over: list[_Linked], settings: Settings) -> None:
    for one in over:
        endings.close(tx, one.id, "completed", one.end, settings)


def _link(tx: Transaction, session_id: int, rows: list[Row], settings: Settings) -> int:
    """Put rows of one session, in order of time, into the episode each belongs to; return how many were written."""
    starts = _explicit_starts(tx.conn, session_id, rows, settings)
    gap = round(settings.episode_gap * SECOND)
    current: _Linked | None = None
    wrote = 0
    for row in rows:
        id_, stamp, last_stamp, map_id, _ = row
        if current is None or not current.takes(stamp, map_id, starts, settings):
            wrote += _flush(tx, current, settings)
            current = _latest(tx.conn, session_id, stamp + gap)
            if current is None or not current.takes(stamp, map_id, starts, settings):
                current = _open(tx, session_id, row, current, settings)
        current.start, current.end = min(current.start, stamp), max(current.end, last_stamp)
        current.rows.append(id_)
    return wrote + _flush(tx, current, settings)


def _flush(tx: Transaction, linked: _Linked | None, settings: Settings) -> int:
    """Write the rows that joined an episode and what they changed of it."""
    if linked is None or not linked.rows:
        return 0
    episodes.add_members(tx, linked.id, linked.rows)
    episodes.update(
        tx, linked.id, stamp=linked.start, last_stamp=linked.end, observation_count=linked.count + len(linked.rows)
    )
    if linked.status != "active":
        endings.close(tx, linked.id, linked.status, linked.end, settings)
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
    _, stamp, _, map_id, frame = row
    if before is not None and before.status == "active" and before.start <= stamp:
        endings.close(tx, before.id, "completed", before.end, settings)
    name = tx.conn.execute("SELECT name FROM map WHERE id = ?", (map_id,)).fetchone()
    episode = Episode(id=NO_ID, name=NAME, status="active", start=stamp, end=None, frame=frame, explicit=False)
    id_ = episodes.insert(tx, episode, session_id, name[0] if name else "")
    episodes.chain(tx, id_)
    return _Linked(id_, stamp, stamp, map_id, "active", 0, session_id)


def _explicit_starts(conn: sqlite3.Connection, session_id: int, rows: list[Row], settings: Settings) -> list[int]:
    longest = round(settings.episode_max_duration * SECOND)
    found = conn.execute(
        f"SELECT stamp FROM node INDEXED BY node_kind_stamp WHERE kind = {int(Kind.EPISODE)} AND stamp BETWEEN ? AND ?"
        " AND session_id = ? AND (SELECT explicit FROM episode WHERE episode.id = node.id) = 1 ORDER BY stamp",
        (rows[0][1] - longest, rows[-1][1], session_id),
    )
    return [row[0] for row in found]


def _next_vector(conn: sqlite3.Connection) -> tuple[int, int | None, NDArray[np.float32] | None] | None:
    """The first ended episode whose members all have vectors: its id, the model, their centroid (None: no members)."""
    pending = jobs.cursor(conn, endings.JOB).get("pending", [])
    model = vectors.active_model(conn) if pending else None
    for id_ in pending:
        if model is None:
            return id_, None, None
        weights = members.weights(conn, episodes.descendants(conn, id_))
        ids, rows = vectors.of_texts(conn, model.id, weights)
        if len(ids) == len(weights):
            counts = np.array([weights[int(text_id)] for text_id in ids], np.float32)
            return id_, model.id, counts @ rows if len(ids) else None
    return None


def _store_vector(tx: Transaction, id_: int, model_id: int | None, vector: NDArray[np.float32] | None) -> int:
    """Keep the centroid of an episode, and that it isn't waited for any more."""
    pending = jobs.cursor(tx.conn, endings.JOB).get("pending", [])
    jobs.save_cursor(tx, endings.JOB, {"pending": [one for one in pending if one != id_]})
    if model_id is None or vector is None or not vector.any():
        return 0
    if tx.conn.execute("SELECT 1 FROM episode WHERE id = ?", (id_,)).fetchone() is None:
        return 0
    vectors.add_node(tx, model_id, id_, vector)
    return 1
