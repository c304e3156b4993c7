"""The job `rollup`: the old gists of one place and day become one gist of gists, so that gists too stay bounded."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

import numpy as np

from memory_node.graph import NO_ID, Gist, Kind, Tier
from memory_node.housekeeping import clusters, members
from memory_node.housekeeping.ages import SECOND, Ages
from memory_node.housekeeping.extractive import Extractive
from memory_node.housekeeping.runtime import JobContext, StepResult
from memory_node.storage import gists, jobs, nodes
from memory_node.storage.ids import id_table
from memory_node.storage.writer import Transaction


@dataclass(frozen=True)
class _Day:
    """Gists of one session and day that stand alone, and the gist after which the next run looks."""

    session_id: int
    ids: list[int]
    cursor: int


class Rollup:
    """Gists of level 0 give up text and vector to the gist of level 1 that holds them. Cursor: id of the last done."""

    name = "rollup"

    def step(self, context: JobContext) -> StepResult:
        if context.dry_run:
            return StepResult()
        scanned = wrote = 0
        while True:
            with context.db.read() as conn:
                day = self._next(conn, context)
            if day is None:
                return StepResult(scanned, wrote)
            scanned += len(day.ids)
            wrote += self._roll(context, day)
            if context.should_yield():
                return StepResult(scanned, wrote, done=False)

    def _next(self, conn: sqlite3.Connection, context: JobContext) -> _Day | None:
        """The gists of the day of the first gist that isn't done, once the whole day is old enough."""
        row = conn.execute(
            # Subqueries, because SQLite would make a Bloom filter of the whole node table for a join.
            "SELECT id, (SELECT session_id FROM node WHERE node.id = gist.id),"
            " (SELECT stamp FROM node WHERE node.id = gist.id) FROM gist WHERE id > ? AND level = 0"
            f" AND (SELECT tier FROM node WHERE node.id = gist.id) < {int(Tier.ARCHIVED)} ORDER BY id LIMIT 1",
            (jobs.cursor(conn, self.name).get("id", NO_ID),),
        ).fetchone()
        if row is None:
            return None
        settings = context.settings()
        gist_id, session_id, stamp = row
        start, end = _day(stamp, settings.time_zone)
        if end > Ages(conn, context.present, context.now).cutoff(session_id, settings.rollup_after):
            return None
        rows = conn.execute(
            f"SELECT id FROM node INDEXED BY node_kind_stamp WHERE kind = {int(Kind.GIST)} AND stamp >= ? AND stamp < ?"
            f" AND session_id = ? AND tier < {int(Tier.ARCHIVED)}"
            " AND (SELECT level FROM gist WHERE gist.id = node.id) = 0 ORDER BY id",
            (start, end, session_id),
        )
        return _Day(session_id, [row[0] for row in rows], gist_id)

    def _roll(self, context: JobContext, day: _Day) -> int:
        settings = context.settings()
        summarizer = Extractive(settings.time_zone)

        def work(tx: Transaction) -> int:
            wrote = 0
            for group in _places(gists.get_many(tx.conn, day.ids), settings.consolidation_max_radius):
                if len(group) > 1:
                    ids = [gist.id for gist in group]
                    text = summarizer.summarize(_items(tx.conn, ids), settings.consolidation_max_text)
                    gists.insert(tx, _together(group, text), ids, session_id=day.session_id)
                    wrote += 1 + nodes.archive(tx, ids)
            jobs.save_cursor(tx, self.name, {"id": day.cursor})
            return wrote

        return context.db.write(work)


def _items(conn: sqlite3.Connection, ids: list[int]) -> list[members.SummaryRow]:
    rows = conn.execute(
        f"SELECT {members.GIST_ROW} WHERE n.id IN (SELECT value FROM json_each(?)) ORDER BY n.stamp, n.id",
        (id_table(ids),),
    )
    return [item for row in rows for item in members.gist_items(row)]


def _places(day: list[Gist], max_radius: float) -> list[list[Gist]]:
    """Divide gists into those of one place each; those without a place are together."""
    placed = [gist for gist in day if gist.position is not None]
    groups = [[gist for gist in day if gist.position is None]]
    if placed:
        positions = np.array([gist.position for gist in placed], np.float64)
        spread = np.array([gist.radius for gist in placed])
        parts = clusters.divide(positions, np.arange(len(placed)), max_radius, spread)
        groups += [[placed[i] for i in sorted(part)] for part in parts]
    return [group for group in groups if group]


def _together(group: list[Gist], text: str) -> Gist:
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
    return int(midnight.timestamp()) * SECOND, int((midnight + timedelta(days=1)).timestamp()) * SECOND
