"""Gists: what rows near in place and time had in common, written once they are old enough or their episode ended.

A stretch of rows is clustered once; the plan lies in the job's cursor until every cluster is written, so a killed
process goes on with the same plan.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from memory_node.graph import NO_ID, Episode, Gist
from memory_node.housekeeping import clusters, members
from memory_node.housekeeping.ages import Ages
from memory_node.housekeeping.extractive import Extractive
from memory_node.housekeeping.runtime import JobContext, StepResult
from memory_node.storage import episodes, jobs
from memory_node.storage import gists as gist_table
from memory_node.storage.ids import id_table

if TYPE_CHECKING:
    from memory_node.config import Settings
    from memory_node.storage.database import Transaction

MAX_STRETCH = 10_000
"""Rows that are clustered in one go."""
PIECE = 1000
"""Rows that become arrays in one go."""
CHUNK = 2000
"""Rows that one transaction joins to their gists."""

_RAW = """
FROM node INDEXED BY node_raw WHERE kind = 1 AND tier = 1 AND session_id = ? AND episode_id = ?
AND text_id IS NOT NULL AND layer_id NOT IN (SELECT id FROM layer WHERE internal = 1)
"""


@dataclass(frozen=True)
class Group:
    """Rows that may share a gist: of one session and one episode (0: none)."""

    session_id: int
    episode_id: int


@dataclass
class Plan:
    """Clusters of one group that are to become gists: ids of their members.

    Attributes:
        gist_id: gist of the first cluster when some of its members were written already, else 0.
        scanned: rows that were read to make it.
    """

    group: Group
    clusters: list[list[int]] = field(default_factory=list)
    gist_id: int = NO_ID
    scanned: int = 0

    def dump(self) -> dict[str, Any]:
        """Return the plan as a cursor."""
        if not self.clusters:
            return {}
        return {
            "session": self.group.session_id, "episode": self.group.episode_id, "clusters": self.clusters,
            "gist": self.gist_id,
        }

    @classmethod
    def load(cls, cursor: dict[str, Any]) -> Plan | None:
        """Return the plan of a cursor, None when all is done."""
        if not cursor:
            return None
        return cls(Group(cursor["session"], cursor["episode"]), cursor["clusters"], cursor["gist"])


class Gists:
    """The job `gists`. A dry run answers with the gists (id 0) that a run would write now."""

    name = "gists"

    def step(self, context: JobContext) -> StepResult:
        if context.dry_run:
            return self._dry_run(context)
        scanned = wrote = 0
        while True:
            with context.db.read() as conn:
                plan = Plan.load(jobs.cursor(conn, self.name)) or next(due(conn, context), None)
            if plan is None:
                return StepResult(scanned, wrote)
            scanned += plan.scanned
            wrote += self._write(context, plan)
            if context.should_yield():
                return StepResult(scanned, wrote, done=False)

    def _write(self, context: JobContext, plan: Plan) -> int:
        return context.db.write(lambda tx: self._advance(tx, plan, context))

    def _advance(self, tx: Transaction, plan: Plan, context: JobContext) -> int:
        """Write up to CHUNK members of a plan while time is left, and the rest of the plan; return rows written."""
        settings, rewrite = context.settings(), context.summarizer is not None
        wrote, room = 0, CHUNK
        while plan.clusters and room > 0 and not (wrote and context.should_yield()):
            ids = plan.clusters[0]
            if plan.gist_id == NO_ID and (ids := still_raw(tx.conn, ids)):
                plan.gist_id = write_gist(tx, plan.group, ids, settings, rewrite)
                wrote += 1
            part = still_raw(tx.conn, ids[:room])
            gist_table.add_members(tx, plan.gist_id, part)
            wrote += len(part)
            left, room = ids[room:], room - len(ids)
            if left:
                plan.clusters[0] = left
            else:
                plan.clusters.pop(0)
                plan.gist_id = NO_ID
        jobs.save_cursor(tx, self.name, plan.dump())
        return wrote

    @staticmethod
    def _dry_run(context: JobContext) -> StepResult:
        found: list[Gist] = []
        scanned = 0
        with context.db.read() as conn:
            for plan in due(conn, context):
                scanned += plan.scanned
                found += [describe(conn, plan.group, ids, context.settings()) for ids in plan.clusters]
        return StepResult(scanned, 0, found=tuple(found))


def summarise_episode(tx: Transaction, episode_id: int, settings: Settings, rewrite: bool) -> list[int]:
    """Write the gists of an episode that ends now, whatever the age of its rows, and return their ids.

    At most MAX_STRETCH rows; the job does the rest of a longer one.
    """
    ids: list[int] = []
    room = MAX_STRETCH
    sessions = tx.conn.execute(
        "SELECT DISTINCT session_id FROM node INDEXED BY node_episode WHERE episode_id = ? AND kind = 1",
        (episode_id,),
    ).fetchall()
    for (session_id,) in sessions:
        group = Group(session_id, episode_id)
        for plan in stretches(tx.conn, group, None, None, settings):
            for members_ in plan.clusters if plan.scanned <= room else []:
                gist_id = write_gist(tx, group, members_, settings, rewrite)
                gist_table.add_members(tx, gist_id, members_)
                ids.append(gist_id)
            room -= plan.scanned
            if room <= 0:
                return ids
    return ids


def write_gist(tx: Transaction, group: Group, ids: Sequence[int], settings: Settings, rewrite: bool) -> int:
    """Store the gist of observations, without its members, and return its id."""
    gist = describe(tx.conn, group, ids, settings)
    return gist_table.insert(tx, gist, (), session_id=group.session_id, rewrite=rewrite)


def still_raw(conn: sqlite3.Connection, ids: Sequence[int]) -> list[int]:
    """Return those of the observations that no gist holds yet."""
    sql = "SELECT node.id FROM json_each(?) AS given CROSS JOIN node ON node.id = given.value WHERE tier = 1"
    return [row[0] for row in conn.execute(sql, (id_table(ids),))]


def describe(conn: sqlite3.Connection, group: Group, ids: Sequence[int], settings: Settings) -> Gist:
    """Return the gist of observations, with the extractive text; its id is 0."""
    given = id_table(ids)
    inside = "FROM json_each(?1) AS given CROSS JOIN node AS n ON n.id = given.value"
    count, start, end, x, y, z, frame, map_name = conn.execute(
        "SELECT count(*), min(stamp), max(last_stamp), avg(x), avg(y), avg(z), max(frame), max(m.name)"
        f" {inside} LEFT JOIN map AS m ON m.id = n.map_id",
        (given,),
    ).fetchone()
    position = None if x is None else (x, y, z)
    farthest = 0.0
    if position is not None:
        farthest = conn.execute(
            "SELECT max((x - ?2) * (x - ?2) + (y - ?3) * (y - ?3) + (z - ?4) * (z - ?4))"
            f" {inside} WHERE x IS NOT NULL",
            (given, x, y, z),
        ).fetchone()[0]
    layers = conn.execute(
        f"SELECT DISTINCT l.name {inside} JOIN layer AS l ON l.id = n.layer_id ORDER BY l.name", (given,)
    )
    text = Extractive(settings.time_zone).summarize(members.folded(conn, ids), settings.consolidation_max_text)
    return Gist(
        id=NO_ID, text=text, layers=tuple(row[0] for row in layers), start=start, end=end, observation_count=count,
        position=position, frame=frame, radius=math.sqrt(farthest), episode_id=group.episode_id,
        map_id=map_name or "",
    )


def due(conn: sqlite3.Connection, context: JobContext) -> Iterator[Plan]:
    """Yield a plan for each stretch of rows that is due, empty ones left out."""
    settings = context.settings()
    ages = Ages(conn, context.present, context.now)
    for group in groups(conn):
        bounds = _bounds(conn, group, ages, settings, context.forced)
        if bounds is not None:
            for plan in stretches(conn, group, *bounds, settings):
                if plan.clusters:
                    yield plan


def groups(conn: sqlite3.Connection) -> list[Group]:
    """Return the groups that have raw rows."""
    sql = "SELECT DISTINCT session_id, episode_id FROM node INDEXED BY node_raw WHERE kind = 1 AND tier = 1"
    return [Group(*row) for row in conn.execute(sql)]


def stretches(
    conn: sqlite3.Connection, group: Group, newest: int | None, noise_newest: int | None, settings: Settings
) -> Iterator[Plan]:
    """Yield the clusters of a group's raw rows, one contiguous stretch of time after another.

    Args:
        newest, noise_newest: stamp (ns) up to which rows, and rows that DBSCAN calls noise, become gists; None: all.
    """
    after, after_id = -(2**63), 0
    while True:
        rows = conn.execute(
            f"SELECT id, stamp, map_id, x, y, z {_RAW} AND stamp <= ? AND (stamp, id) > (?, ?)"
            f" ORDER BY stamp, id LIMIT {MAX_STRETCH}",
            (group.session_id, group.episode_id, 2**63 - 1 if newest is None else newest, after, after_id),
        )
        keys, positions = _columns(rows)
        if not len(keys):
            return
        gap = round(settings.consolidation_window * 1e9)
        cuts = np.flatnonzero((np.diff(keys[:, 1]) > gap) | (np.diff(keys[:, 2]) != 0)) + 1
        length = int(cuts[0]) if len(cuts) else len(keys)
        after_id, after = keys[length - 1, :2].tolist()
        noise_due = np.ones(length, bool) if noise_newest is None else keys[:length, 1] <= noise_newest
        parts = _clusters(positions[:length], noise_due, settings)
        yield Plan(group, [keys[part, 0].tolist() for part in parts], scanned=length)


def _columns(rows: sqlite3.Cursor) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Id, stamp and map (N, 3), and positions (N, 3) with NaN where unknown, of rows that hold them in that order."""
    keys, positions = [np.empty((0, 3), np.int64)], [np.empty((0, 3))]
    # NumPy holds the interpreter while it takes in a list, and queries wait.
    while piece := rows.fetchmany(PIECE):
        keys.append(np.array([row[:3] for row in piece], np.int64))
        positions.append(np.array([row[3:] for row in piece], np.float64))
    return np.concatenate(keys), np.concatenate(positions)


def _clusters(
    positions: NDArray[np.float64], noise_due: NDArray[np.bool_], settings: Settings
) -> list[clusters.Indices]:
    """Clusters of one stretch, positions NaN where unknown: in place, those without a place, and noise that is due."""
    known = np.flatnonzero(np.isfinite(positions).all(axis=1))
    placeless = np.flatnonzero(~np.isfinite(positions).all(axis=1))
    found, noise = clusters.cluster(
        positions[known], settings.consolidation_spatial_eps, settings.consolidation_min_samples,
        settings.consolidation_max_radius,
    )
    parts = [known[part] for part in found]
    if len(placeless) and (len(placeless) >= settings.consolidation_min_samples or noise_due[placeless].all()):
        parts.append(placeless)
    lonely = known[noise]
    lonely = lonely[noise_due[lonely]]
    if len(lonely):
        parts += list(clusters.divide(positions, lonely, settings.consolidation_max_radius))
    return sorted(parts, key=lambda part: int(part[0]))


def _bounds(
    conn: sqlite3.Connection, group: Group, ages: Ages, settings: Settings, forced: bool
) -> tuple[int | None, int | None] | None:
    """Stamps up to which a group's rows and noise are due, None when nothing is.

    Unless forced, rows wait until their stretch is over or a good part of it is old, so that a place gets one gist an
    hour rather than one a minute.
    """
    episode = episodes.get(conn, group.episode_id) if group.episode_id else None
    if episode is not None and episode.explicit and episode.status != "active":
        return None, None
    window = _window(episode, settings)
    limit = ages.cutoff(group.session_id, window)
    key = (group.session_id, group.episode_id)
    oldest = conn.execute(f"SELECT stamp {_RAW} ORDER BY stamp LIMIT 1", key).fetchone()
    if oldest is None or oldest[0] > limit:
        return None
    newest = conn.execute(f"SELECT stamp {_RAW} ORDER BY stamp DESC LIMIT 1", key).fetchone()
    full = ages.cutoff(group.session_id, window + settings.archive_after_seconds)
    if not forced and newest[0] > limit and oldest[0] > full:
        return None
    return limit, ages.cutoff(group.session_id, max(window, settings.archive_after_seconds))


def _window(episode: Episode | None, settings: Settings) -> float:
    if episode is not None and episode.explicit:
        return max(settings.consolidation_window, settings.episode_max_duration)
    return settings.consolidation_window
