"""The job `rollup`: the old gists of one place and day become one gist of gists, so that gists too stay bounded.

A day is one of the clock, whatever map changes and restarts divide it into sessions.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from memory_node.graph import NO_ID, Gist, Kind, Tier
from memory_node.housekeeping import clusters, members
from memory_node.housekeeping.ages import SECOND, Ages, clamped
from memory_node.housekeeping.extractive import Extractive
from memory_node.housekeeping.runtime import JobContext, StepResult
from memory_node.storage import gists, jobs, nodes
from memory_node.storage.ids import id_table
from memory_node.storage.writer import Transaction

SCAN = 1000
"""New gists whose day is looked up in one go."""
MAX_GISTS = 600
"""Gists of a day that are divided into places in one go."""
MAX_MEMBERS = 100
"""Gists that become one."""
MAX_ITEMS = 2000
"""Items of their texts that the one is made of."""

_LONE = f"level = 0 AND (SELECT tier FROM node WHERE node.id = gist.id) < {int(Tier.ARCHIVED)}"


@dataclass(frozen=True)
class _Day:
    """A day of one kind of clock on one map: its first stamp (ns), and the newest session that has gists in it."""

    clock: str
    map_id: int
    start: int
    session_id: int


@dataclass
class _Cursor:
    """How far the job is.

    Attributes:
        id: gist up to which each one's day is known.
        days: those that wait until they are old enough; the first of them is the one that `groups` and `after` are of.
        groups: ids of gists that are still to become one.
        after: stamp (ns) and id of the last gist of the day that was put into a group.
    """

    id: int = NO_ID
    days: list[_Day] = field(default_factory=list)
    groups: list[list[int]] = field(default_factory=list)
    after: tuple[int, int] | None = None

    def dump(self) -> dict[str, Any]:
        days = [[day.clock, day.map_id, day.start, day.session_id] for day in self.days]
        return {"id": self.id, "days": days, "groups": self.groups, "after": self.after}

    @classmethod
    def load(cls, cursor: dict[str, Any]) -> _Cursor:
        after = cursor.get("after")
        days = [_Day(*day) for day in cursor.get("days", [])]
        return cls(cursor.get("id", NO_ID), days, cursor.get("groups", []), tuple(after) if after else None)


class Rollup:
    """Gists of level 0 give up text and vector to the gist of level 1 that holds them.

    An installment looks up the days of new gists, divides some gists of an old day into places, or writes one gist.
    """

    name = "rollup"

    def step(self, context: JobContext) -> StepResult:
        if context.dry_run:
            return StepResult()
        with context.db.read() as conn:
            cursor = _Cursor.load(jobs.cursor(conn, self.name))
            scanned = 0 if cursor.groups else self._advance(conn, cursor, context)
        if cursor.groups and not scanned:
            group = cursor.groups.pop(0)
            return StepResult(0, context.db.write(lambda tx: self._roll(tx, group, cursor, context)), done=False)
        if not scanned:
            return StepResult()
        context.db.write(lambda tx: jobs.save_cursor(tx, self.name, cursor.dump()))
        return StepResult(scanned, 0, done=False)

    @staticmethod
    def _advance(conn: sqlite3.Connection, cursor: _Cursor, context: JobContext) -> int:
        """Bring the cursor on by one unit of work and return how many gists were read; 0: nothing is due."""
        settings = context.settings()
        ages = Ages(conn, context.present, context.now)
        if cursor.after is None:
            ids, new = _new(conn, cursor.id)
            if ids:
                cursor.id = ids[-1]
                cursor.days = _with(cursor.days, new, ages, settings.time_zone)
                return len(ids)
            old = [day for day in cursor.days if _is_old(day, ages, settings.rollup_after, settings.time_zone)]
            if not old:
                return 0
            cursor.days = [old[0], *(day for day in cursor.days if day is not old[0])]
        day = cursor.days[0]
        found = _of_day(conn, day, cursor.after, settings.time_zone)
        cursor.groups = _places(found, settings.consolidation_max_radius)
        cursor.after = (found[-1][1], found[-1][0]) if len(found) == MAX_GISTS else None
        if cursor.after is None:
            del cursor.days[0]
        return max(1, len(found))

    def _roll(self, tx: Transaction, ids: Sequence[int], cursor: _Cursor, context: JobContext) -> int:
        """Write the gist of those gists that still stand alone."""
        settings = context.settings()
        sql = f"SELECT id FROM gist WHERE id IN (SELECT value FROM json_each(?)) AND {_LONE} ORDER BY id"
        left = tx.conn.execute(sql, (id_table(ids),))
        group = gists.get_many(tx.conn, [row[0] for row in left])
        wrote = 0
        if len(group) > 1:
            ids = [gist.id for gist in group]
            text = Extractive(settings.time_zone).summarize(_items(tx.conn, ids), settings.consolidation_max_text)
            session = tx.conn.execute(
                "SELECT max(session_id) FROM node WHERE id IN (SELECT value FROM json_each(?))", (id_table(ids),)
            ).fetchone()[0]
            gists.insert(tx, _together(group, text), ids, session_id=session)
            wrote = 1 + nodes.archive(tx, ids)
        jobs.save_cursor(tx, self.name, cursor.dump())
        return wrote


def _new(conn: sqlite3.Connection, after: int) -> tuple[list[int], list[tuple[int, int, int]]]:
    """Ids of the next gists after one; session, map and stamp of those that stand alone."""
    # Subqueries, because SQLite would make a Bloom filter of the whole node table for a join.
    own = ", ".join(f"(SELECT {name} FROM node WHERE node.id = gist.id)" for name in ("session_id", "map_id", "stamp"))
    rows = conn.execute(f"SELECT id, {_LONE}, {own} FROM gist WHERE id > ? ORDER BY id LIMIT {SCAN}", (after,))
    found = rows.fetchall()
    return [row[0] for row in found], [row[2:] for row in found if row[1]]


def _with(
    days: Sequence[_Day], new: Sequence[tuple[int, int, int]], ages: Ages, time_zone: str
) -> list[_Day]:
    """Days and those of new gists, each once with its newest session."""
    known = {(day.clock, day.map_id, day.start): day for day in days}
    for session_id, map_id, stamp in new:
        key = (ages.clock(session_id), map_id, _day(stamp, time_zone)[0])
        if key not in known or known[key].session_id < session_id:
            known[key] = _Day(*key, session_id)
    return list(known.values())


def _is_old(day: _Day, ages: Ages, seconds: float, time_zone: str) -> bool:
    return _day(day.start, time_zone)[1] <= ages.cutoff(day.session_id, seconds)


def _of_day(
    conn: sqlite3.Connection, day: _Day, after: tuple[int, int] | None, time_zone: str
) -> list[tuple[int, int, float | None, float, float, float]]:
    """Gists of a day that stand alone, in order of time: id, stamp, position or None, radius."""
    start, end = _day(day.start, time_zone)
    return conn.execute(
        "SELECT id, stamp, x, y, z, (SELECT radius FROM gist WHERE gist.id = node.id)"
        f" FROM node INDEXED BY node_kind_stamp WHERE kind = {int(Kind.GIST)} AND stamp < ?"
        " AND (stamp, id) > (?, ?) AND map_id = ? AND (SELECT clock FROM session WHERE session.id = session_id) = ?"
        f" AND tier < {int(Tier.ARCHIVED)} AND (SELECT level FROM gist WHERE gist.id = node.id) = 0"
        f" ORDER BY stamp, id LIMIT {MAX_GISTS}",
        (end, *(after or (start, NO_ID)), day.map_id, day.clock),
    ).fetchall()


def _places(found: Sequence[tuple[int, int, float | None, float, float, float]], max_radius: float) -> list[list[int]]:
    """Ids of the gists of each place, those without a place together; who is alone is left out."""
    placed = [row for row in found if row[2] is not None]
    groups = [[row[0] for row in found if row[2] is None]]
    if placed:
        positions, spread = np.array([row[2:5] for row in placed]), np.array([row[5] for row in placed])
        parts = clusters.divide(positions, np.arange(len(placed)), max_radius, spread)
        groups += [[placed[i][0] for i in sorted(part)] for part in parts]
    pieces = [group[i : i + MAX_MEMBERS] for group in groups for i in range(0, len(group), MAX_MEMBERS)]
    return [piece for piece in pieces if len(piece) > 1]


def _items(conn: sqlite3.Connection, ids: Sequence[int]) -> list[members.SummaryRow]:
    """Items of the texts of gists, of each so many that all have a share; the first say most."""
    rows = conn.execute(
        f"SELECT {members.GIST_ROW} WHERE n.id IN (SELECT value FROM json_each(?)) ORDER BY n.stamp, n.id",
        (id_table(ids),),
    )
    return [item for row in rows for item in members.gist_items(row)[: max(1, MAX_ITEMS // len(ids))]]


def _together(group: Sequence[Gist], text: str) -> Gist:
    """The gist of gists, its centre weighed by observations."""
    count = sum(gist.observation_count for gist in group)
    position, reach = None, 0.0
    if group[0].position is not None:
        places = np.array([gist.position for gist in group], np.float64)
        center = np.average(places, axis=0, weights=[gist.observation_count for gist in group])
        position = (float(center[0]), float(center[1]), float(center[2]))
        reach = float((np.linalg.norm(places - center, axis=1) + [gist.radius for gist in group]).max())
    episodes = {gist.episode_id for gist in group}
    return Gist(
        id=NO_ID, text=text, layers=tuple(sorted({layer for gist in group for layer in gist.layers})),
        start=min(gist.start for gist in group), end=max(gist.end for gist in group), observation_count=count,
        position=position, frame=group[0].frame, radius=reach,
        episode_id=episodes.pop() if len(episodes) == 1 else NO_ID, level=1, map_id=group[0].map_id,
    )


def _day(stamp: int, time_zone: str) -> tuple[int, int]:
    """First stamp (ns) of the day that holds a stamp, and of the next one."""
    zone: tzinfo = timezone.utc if time_zone == "UTC" else ZoneInfo(time_zone)
    midnight = datetime.fromtimestamp(stamp // SECOND, zone).replace(hour=0, minute=0, second=0)
    start, end = (int(time.timestamp()) * SECOND for time in (midnight, midnight + timedelta(days=1)))
    return clamped(start), clamped(end)
