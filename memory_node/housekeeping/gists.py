"""Gists: what rows near in place and time had in common, written once they are old enough or their episode ended.

The job goes through the rows group by group and stretch by stretch. The clusters of a stretch lie in its cursor until
every one is written, so a killed process goes on with the same clusters.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from memory_node.graph import NO_ID, Episode, Gist
from memory_node.housekeeping import clusters, members
from memory_node.housekeeping.ages import NEVER, Ages
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
MAX_CELLS = 2000
"""Grid cells that are clustered in one go: what DBSCAN takes time for."""
FIRST, PIECE = 100, 1000
"""Rows that become arrays in one go; a short stretch needs no more than the first of them."""
CHUNK = 1000
"""Rows that one transaction joins to their gists."""
MAX_GISTS = 8
"""Gists that one transaction writes."""
AT_ONCE = 1000
"""Rows of which an episode that ends has gists at once."""

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
    """One stretch of a group: the clusters that are still to become gists, as ids of their members.

    Attributes:
        newest, noise_newest: stamp (ns) up to which rows, and rows that DBSCAN calls noise, are due.
        after: stamp (ns) and id of the last row of the stretch.
        gist_id: gist of the first cluster when some of its members were written already, else 0.
    """

    group: Group
    newest: int = NEVER
    noise_newest: int = NEVER
    after: tuple[int, int] = (-NEVER - 1, 0)
    clusters: list[list[int]] = field(default_factory=list)
    gist_id: int = NO_ID

    def dump(self) -> dict[str, Any]:
        """Return the plan as a cursor."""
        return {
            "session": self.group.session_id, "episode": self.group.episode_id, "newest": self.newest,
            "noise": self.noise_newest, "after": self.after, "clusters": self.clusters, "gist": self.gist_id,
        }

    @classmethod
    def load(cls, cursor: dict[str, Any]) -> Plan | None:
        """Return the plan of a cursor, None when all is done."""
        if not cursor:
            return None
        return cls(
            Group(cursor["session"], cursor["episode"]), cursor["newest"], cursor["noise"], tuple(cursor["after"]),
            cursor["clusters"], cursor["gist"],
        )


@dataclass(frozen=True)
class Stretch:
    """Rows that follow a plan in its group, one contiguous stretch of time.

    Attributes:
        before: the plan. Its group and bounds hold for these rows too.
        keys: id, stamp, last stamp (ns) and map, int64 (N, 4), ordered by stamp and id.
        positions: (N, 3) m, NaN where unknown.
    """

    before: Plan
    keys: NDArray[np.int64]
    positions: NDArray[np.float64]

    def clustered(self, settings: Settings) -> Plan:
        """Return the plan of these rows."""
        id_, stamp = self.keys[-1, :2].tolist()
        parts = _clusters(self.positions, self.keys[:, 2] <= self.before.noise_newest, settings)
        found = [self.keys[part, 0].tolist() for part in parts]
        return replace(self.before, after=(stamp, id_), clusters=found, gist_id=NO_ID)


class Gists:
    """The job `gists`. An installment reads one stretch, clusters it, or writes some of its gists.

    A dry run does all that on a copy of the rows, and answers with the gists (id 0) that a run would write now.
    """

    name = "gists"

    def __init__(self) -> None:
        self._at: Plan | None = None
        """A stretch that had nothing due, which is not worth a write."""
        self._read: Stretch | None = None
        """The stretch that is clustered next; what changes meanwhile is seen when its gists are written."""
        self._described: tuple[list[int], Gist] | None = None
        """Rows of a large cluster and their gist, which is written next unless some were summarised meanwhile."""
        self._forced: bool | None = None
        """Whether the present pass through the rows was forced; None: it was begun by another process."""

    def step(self, context: JobContext) -> StepResult:
        if context.dry_run:
            from memory_node.housekeeping.rehearsal import rehearse

            return StepResult(found=rehearse(context, [Gists()]))
        with context.db.read() as conn:
            stored = Plan.load(jobs.cursor(conn, self.name))
        if stored is None or not stored.clusters:
            return self._plan(context, stored)
        if stored.gist_id == NO_ID and len(stored.clusters[0]) > CHUNK and self._described is None:
            with context.db.read() as conn:
                ids = still_raw(conn, stored.clusters[0])
                if ids:
                    self._described = ids, describe(conn, stored.group, ids, context.settings())
                    return StepResult(done=False)
        wrote = context.db.write(lambda tx: self._advance(tx, stored, context))
        self._described = None
        return StepResult(0, wrote, done=False)

    def _plan(self, context: JobContext, stored: Plan | None) -> StepResult:
        """Read the next stretch, or cluster it when it was read; when there is none the pass is over.

        A pass that began in the middle, or that held back what is asked for now, is followed by another.
        """
        if self._read is None:
            at = self._at or stored
            if at is None:
                self._forced = context.forced
            with context.db.read() as conn:
                self._read = _next(conn, context, at)
            if self._read is not None:
                return StepResult(len(self._read.keys), done=False)
        read, self._read = self._read, None
        plan = None if read is None else read.clustered(context.settings())
        self._at = None if plan is None or plan.clusters else plan
        if self._at is not None:
            return StepResult(done=False)
        cursor = {} if plan is None else plan.dump()
        if plan is not None or stored is not None:
            context.db.write(lambda tx: jobs.save_cursor(tx, self.name, cursor))
        if plan is None:
            return StepResult(done=self._forced is not None and self._forced >= context.forced)
        return StepResult(done=False)

    def _advance(self, tx: Transaction, plan: Plan, context: JobContext) -> int:
        """Write up to MAX_GISTS gists and CHUNK members, and what is left of the plan; return rows written.

        A gist of more than CHUNK rows is the first or waits: those are described in an installment of their own.
        """
        rewrite = context.summarizer is not None
        wrote, room, gists = 0, CHUNK, MAX_GISTS
        while plan.clusters and room > 0 and gists > 0:
            ids = plan.clusters[0]
            if plan.gist_id == NO_ID and wrote and len(ids) > CHUNK:
                break
            if plan.gist_id == NO_ID and (ids := still_raw(tx.conn, ids)):
                described, gist = self._described or ([], None)
                if gist is None or described != ids:
                    gist = describe(tx.conn, plan.group, ids, context.settings())
                plan.gist_id = gist_table.insert(tx, gist, (), session_id=plan.group.session_id, rewrite=rewrite)
                wrote += 1
                gists -= 1
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


def summarise_episode(tx: Transaction, episode_id: int, settings: Settings, rewrite: bool) -> list[int]:
    """Write gists of an episode that ends now, whatever the age of its rows, and return their ids.

    So that this is quick, they are of its first AT_ONCE rows, and at most MAX_GISTS, of the largest clusters; the job
    writes the rest.
    """
    sessions = tx.conn.execute(
        "SELECT id FROM session WHERE id >= (SELECT session_id FROM node WHERE id = ?) AND EXISTS (SELECT 1 FROM node"
        " INDEXED BY node_raw WHERE kind = 1 AND tier = 1 AND session_id = session.id AND episode_id = ?) ORDER BY id",
        (episode_id, episode_id),
    )
    for (session_id,) in sessions.fetchall():
        found = stretch(tx.conn, Plan(Group(session_id, episode_id)), settings, AT_ONCE)
        if found is not None:
            plan = found.clustered(settings)
            largest = sorted(plan.clusters, key=len, reverse=True)[:MAX_GISTS]
            return [write_whole(tx, plan.group, ids, settings, rewrite) for ids in sorted(largest)]
    return []


def write_whole(tx: Transaction, group: Group, ids: Sequence[int], settings: Settings, rewrite: bool) -> int:
    """Store the gist of observations that are raw, with all of them, and return its id."""
    gist = describe(tx.conn, group, ids, settings)
    return gist_table.insert(tx, gist, ids, session_id=group.session_id, rewrite=rewrite)


def still_raw(conn: sqlite3.Connection, ids: Sequence[int]) -> list[int]:
    """Return those of the observations that no gist holds yet."""
    sql = "SELECT node.id FROM json_each(?) AS given CROSS JOIN node ON node.id = given.value WHERE tier = 1"
    return [row[0] for row in conn.execute(sql, (id_table(ids),))]


def describe(conn: sqlite3.Connection, group: Group, ids: Sequence[int], settings: Settings) -> Gist:
    """Return the gist of observations, with the extractive text; its id is 0."""
    given = id_table(ids)
    inside = "FROM json_each(?1) AS given CROSS JOIN node AS n ON n.id = given.value"
    count, start, end, x, y, z, frame, map_id, layer_ids = conn.execute(
        "SELECT count(*), min(stamp), max(last_stamp), avg(x), avg(y), avg(z), max(frame), max(map_id),"
        f" json_group_array(DISTINCT layer_id) {inside}",
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
        "SELECT name FROM layer WHERE id IN (SELECT value FROM json_each(?)) ORDER BY name", (layer_ids,)
    )
    map_name = conn.execute("SELECT name FROM map WHERE id = ?", (map_id,)).fetchone()
    text = Extractive(settings.time_zone).summarize(members.folded(conn, ids), settings.consolidation_max_text)
    return Gist(
        id=NO_ID, text=text, layers=tuple(row[0] for row in layers), start=start, end=end, observation_count=count,
        position=position, frame=frame, radius=math.sqrt(farthest), episode_id=group.episode_id,
        map_id=map_name[0] if map_name else "",
    )


def groups(conn: sqlite3.Connection, after: Group | None = None) -> Iterator[Group]:
    """Yield the groups that have raw rows and come after one, by session and episode; a look into the index each."""
    # Not `(session_id, episode_id) > (?, ?)`, for which SQLite reads every row of the session.
    sql = """SELECT session_id, episode_id FROM node INDEXED BY node_raw WHERE kind = 1 AND tier = 1
             AND {} ORDER BY session_id, episode_id LIMIT 1"""
    same, later = sql.format("session_id = ? AND episode_id > ?"), sql.format("session_id > ?")
    key = (-1, -1) if after is None else (after.session_id, after.episode_id)
    while (row := conn.execute(same, key).fetchone() or conn.execute(later, key[:1]).fetchone()) is not None:
        key = row
        yield Group(*key)


def _next(conn: sqlite3.Connection, context: JobContext, at: Plan | None) -> Stretch | None:
    """Read the stretch after one, None: the first; returns None after the last."""
    settings = context.settings()
    if at is not None and (found := stretch(conn, at, settings)) is not None:
        return found
    ages = Ages(conn, context.present, context.now)
    for group in groups(conn, None if at is None else at.group):
        bounds = _bounds(conn, group, ages, settings, context.forced)
        if bounds is not None and (found := stretch(conn, Plan(group, *bounds), settings)) is not None:
            return found
    return None


def stretch(conn: sqlite3.Connection, before: Plan, settings: Settings, most: int = MAX_STRETCH) -> Stretch | None:
    """Read the rows that come after a plan in its group: one contiguous stretch of time, at most so many rows.

    Rows that are still repeated after `newest` are left alone. None: nothing is left.
    """
    rows = conn.execute(
        f"SELECT id, stamp, last_stamp, map_id, x, y, z {_RAW} AND stamp <= ? AND last_stamp <= ?"
        f" AND (stamp, id) > (?, ?) ORDER BY stamp, id LIMIT {most}",
        (before.group.session_id, before.group.episode_id, before.newest, before.newest, *before.after),
    )
    keys, positions = _columns(rows, settings)
    if not len(keys):
        return None
    cuts = _cuts(keys, settings)
    length = int(cuts[0]) if len(cuts) else len(keys)
    return Stretch(before, keys[:length], positions[:length])


def _cuts(keys: NDArray[np.int64], settings: Settings) -> NDArray[np.int64]:
    """Where a stretch ends among rows, as `_columns` gives them: nothing for a while, or another map."""
    gap = settings.consolidation_window * 1e9
    # As floats, because the difference of two stamps may not fit into 64 bits.
    reached = np.maximum.accumulate(keys[:, 2]).astype(float)
    return np.flatnonzero((keys[1:, 1].astype(float) - reached[:-1] > gap) | (np.diff(keys[:, 3]) != 0)) + 1


def _columns(rows: sqlite3.Cursor, settings: Settings) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Id, stamp, last stamp and map (N, 4), and positions (N, 3) with NaN where unknown, of rows in that order.

    The rows end where they would come into more than MAX_CELLS cells of the grid, and soon after their stretch does.
    """
    keys, positions = np.empty((0, 4), np.int64), np.empty((0, 3))
    cells, room = clusters.CellCount(settings.consolidation_spatial_eps), MAX_CELLS
    # NumPy holds the interpreter while it takes in a list, and queries wait.
    while room >= 0 and not len(_cuts(keys, settings)):
        piece = rows.fetchmany(PIECE - len(keys) % PIECE if len(keys) else FIRST)
        if not piece:
            break
        keys = np.concatenate([keys, np.array([row[:4] for row in piece], np.int64)])
        where = np.array([row[4:] for row in piece], np.float64)
        positions = np.concatenate([positions, where])
        new = cells.take(where)
        if len(new) > room:
            end = len(keys) - len(where) + new[room]
            keys, positions = keys[:end], positions[:end]
        room -= len(new)
    return keys, positions


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
) -> tuple[int, int] | None:
    """Stamps up to which a group's rows and noise are due, None when nothing is.

    Unless forced, rows wait until their stretch is over or a good part of it is old, so that a place gets one gist an
    hour rather than one a minute.
    """
    episode = episodes.get(conn, group.episode_id) if group.episode_id else None
    if episode is not None and episode.explicit and episode.status != "active":
        return NEVER, NEVER
    window = _window(episode, settings)
    limit = ages.cutoff(group.session_id, window)
    key = (group.session_id, group.episode_id)
    oldest = conn.execute(
        f"SELECT stamp {_RAW} AND stamp <= ? AND last_stamp <= ? ORDER BY stamp LIMIT 1", (*key, limit, limit)
    ).fetchone()
    if oldest is None:
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
