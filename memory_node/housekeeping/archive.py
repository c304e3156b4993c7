"""The jobs `archive` and `bound`: what gives up its text and vector, and what goes when the file is full."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from memory_node.graph import NO_ID, EdgeType, Kind, Tier
from memory_node.housekeeping.ages import NEVER, Ages
from memory_node.housekeeping.centroids import is_past
from memory_node.housekeeping.gists import Gists, groups
from memory_node.housekeeping.name_things import NameThings
from memory_node.housekeeping.runtime import JobContext, StepResult
from memory_node.storage import body, jobs, nodes, sessions, vectors
from memory_node.storage.ids import id_table
from memory_node.storage.writer import Transaction

log = logging.getLogger(__name__)

CHUNK = 400
"""Rows that one transaction archives or removes."""
LOOKED_AT = 200
"""New gists that one installment looks at."""
WAITING = 1000
"""Gists too young for their rows to be archived beyond which no new ones are looked at."""
REWRITE_PATIENCE = 86_400.0
"""s: how long the rows of a gist keep their texts for a language model that doesn't answer, or is slow to read."""
FULL, EMPTIED = 1.0, 0.95
"""Shares of max_db_mb at which removal begins, and at which it is enough."""


@dataclass(frozen=True)
class _Batch:
    """Rows to archive, or episodes to take the vector from, now, and the cursor after that; None to leave it."""

    ids: Sequence[int]
    episodes: Sequence[int] = ()
    cursor: dict[str, Any] | None = None


class Archive:
    """Takes text and vector from rows that a committed gist summarises, and from readings of the body that are old.

    The last reading of each body layer keeps its text. Episodes that nobody named lose their vector. Cursor: the gist
    up to which all were looked at, those of them whose rows are not archived yet, and the last such episode.
    """

    name = "archive"

    def step(self, context: JobContext) -> StepResult:
        if context.dry_run:
            return StepResult()
        with context.db.read() as conn:
            ages = Ages(conn, context.present, context.now)
            cursor = {"id": NO_ID, "waiting": [], "episode": NO_ID, **jobs.cursor(conn, self.name)}
            batch = (
                _summarised(conn, cursor, context, ages)
                or _readings(conn, context, ages)
                or _centroids(conn, cursor, ages)
            )
        if batch is None:
            return StepResult()
        scanned = len(batch.ids) + len(batch.episodes)
        return StepResult(scanned, self._write(context, batch), done=False)

    def _write(self, context: JobContext, batch: _Batch) -> int:
        def work(tx: Transaction) -> int:
            count = nodes.archive(tx, batch.ids) + vectors.drop_nodes(tx, batch.episodes)
            if batch.cursor is not None:
                jobs.save_cursor(tx, self.name, batch.cursor)
            return count

        return context.db.write(work)


def _summarised(
    conn: sqlite3.Connection, cursor: dict[str, Any], context: JobContext, ages: Ages
) -> _Batch | None:
    """Members of gists whose newest row is old enough: of those that waited, then of new ones in order of id."""
    done, ids, waiting = cursor["id"], list[int](), list[int]()
    for gist_id, is_old, read in _candidates(conn, cursor, context, ages):
        if len(ids) >= CHUNK and gist_id > done:
            break
        done = max(done, gist_id)
        if not is_old or len(ids) >= CHUNK:
            waiting.append(gist_id)
            continue
        members = _members(conn, gist_id, read)
        ids += [id_ for id_, unread in members if not unread]
        if len(members) == CHUNK or any(unread for _, unread in members):
            waiting.append(gist_id)
    after = {**cursor, "id": done, "waiting": waiting}
    return _Batch(ids, cursor=after) if ids or after != cursor else None


def _members(conn: sqlite3.Connection, gist_id: int, read: int) -> list[tuple[int, bool]]:
    """The next members of a gist to archive, and whether a language model shall read them first.

    Those are rows after `read` whose text shows no thing yet.
    """
    unread = f"""node.id > ? AND text_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM edge AS sighting
        WHERE sighting.target = node.id AND sighting.type = {int(EdgeType.OBSERVED_IN)})"""
    return conn.execute(
        f"SELECT node.id, {unread} FROM edge CROSS JOIN node ON node.id = edge.target"
        f" WHERE source = ? AND edge.type = {int(EdgeType.SUMMARIZES)} AND tier < {int(Tier.ARCHIVED)} LIMIT {CHUNK}",
        (read, gist_id),
    ).fetchall()


def _candidates(
    conn: sqlite3.Connection, cursor: dict[str, Any], context: JobContext, ages: Ages
) -> Iterator[tuple[int, bool, int]]:
    """Gists whose rows may have to be archived, whether those are old enough, and the row up to which all may go."""
    wait = context.settings().archive_after_seconds
    patient = max(wait, REWRITE_PATIENCE) if context.summarizer is not None else wait
    unfinished = jobs.cursor(conn, Gists.name).get("gist", NO_ID)
    read = jobs.cursor(conn, NameThings.name).get("newest", NO_ID)
    columns = """SELECT id, (SELECT session_id FROM node WHERE node.id = gist.id),
        (SELECT last_stamp FROM node WHERE node.id = gist.id), rewrite FROM gist"""
    waiting = cursor["waiting"]
    known = f"{columns} WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id"
    new = f"{columns} WHERE id > ? AND level = 0 ORDER BY id LIMIT {LOOKED_AT}"
    rows = conn.execute(known, (id_table(waiting),)).fetchall()
    if len(waiting) < WAITING:
        rows += conn.execute(new, (cursor["id"],))
    for gist_id, session_id, newest, rewrite in rows:
        is_old = newest <= ages.cutoff(session_id, patient if rewrite else wait)
        is_late = newest <= ages.cutoff(session_id, patient)
        yield gist_id, gist_id != unfinished and is_old, NEVER if is_late else read


def _readings(conn: sqlite3.Connection, context: JobContext, ages: Ages) -> _Batch | None:
    """Readings of the body that are old, but for the last of each layer, by the present clock and by all of them."""
    layers = [row[0] for row in conn.execute("SELECT id FROM layer WHERE internal = 1")]
    if not layers:
        return None
    last = {
        row[0]
        for layer in layers
        for row in conn.execute(
            "SELECT id FROM node INDEXED BY node_layer_stamp WHERE layer_id = ? ORDER BY stamp DESC, id DESC LIMIT 1",
            (layer,),
        )
    }
    # Where the clock went back the largest stamp is not the last one.
    last.update(one.node_id for one in body.latest(conn, None, context.now, sessions.comparable_since(conn)))
    for group in groups(conn):
        old = ages.cutoff(group.session_id, context.settings().archive_after_seconds)
        rows = conn.execute(
            "SELECT id FROM node INDEXED BY node_raw WHERE kind = 1 AND tier = 1 AND session_id = ? AND episode_id = ?"
            " AND stamp < ? AND layer_id IN (SELECT id FROM layer WHERE internal = 1) ORDER BY stamp, id LIMIT ?",
            (group.session_id, group.episode_id, old, CHUNK + len(last)),
        )
        ids = [row[0] for row in rows if row[0] not in last]
        if ids:
            return _Batch(ids[:CHUNK])
    return None


def _centroids(conn: sqlite3.Connection, cursor: dict[str, Any], ages: Ages) -> _Batch | None:
    """Vectors of the next episodes, in order of id, that silence linked and that are long over."""
    rows = conn.execute(
        "SELECT DISTINCT node_id, (SELECT explicit FROM episode WHERE episode.id = node_id) FROM vector"
        f" INDEXED BY vector_node WHERE node_id > ? ORDER BY node_id LIMIT {CHUNK}",
        (cursor["episode"],),
    )
    ids, last = list[int](), cursor["episode"]
    for id_, explicit in rows:
        if explicit == 0 and not is_past(conn, id_, ages):
            break
        last = id_
        if explicit == 0:
            ids.append(id_)
    return _Batch((), ids, {**cursor, "episode": last}) if last != cursor["episode"] else None


class Bound:
    """Removes the oldest archived rows while the database is larger than `max_db_mb`, but no demoted note."""

    name = "bound"

    def __init__(self) -> None:
        self._warned = False
        self._removed = 0

    def step(self, context: JobContext) -> StepResult:
        allowed = context.settings().max_db_mb * 1e6
        size = context.db.size_bytes()
        enough = EMPTIED if self._removed else FULL
        if context.dry_run or allowed <= 0 or size <= enough * allowed:
            self._tell(context)
            return StepResult()
        with context.db.read() as conn:
            rows = conn.execute(
                "SELECT id FROM node INDEXED BY node_kind_stamp"
                f" WHERE kind = {int(Kind.OBSERVATION)} AND tier = {int(Tier.ARCHIVED)} AND NOT EXISTS"
                f" (SELECT 1 FROM edge WHERE target = node.id AND type = {int(EdgeType.SUPERSEDES)})"
                f" ORDER BY stamp, id LIMIT {CHUNK}"
            ).fetchall()
        if not rows:
            if not self._warned:
                log.warning("the database has %.1f MB, more than max_db_mb, and no archived row is left", size / 1e6)
                self._warned = True
            self._tell(context)
            return StepResult()
        ids = [row[0] for row in rows]
        count = context.db.write(lambda tx: nodes.remove(tx, ids))
        self._removed += count
        return StepResult(len(ids), count, done=False)

    def _tell(self, context: JobContext) -> None:
        if self._removed:
            log.warning(
                "the database reached %.1f MB: removed %d of the oldest archived rows", context.settings().max_db_mb,
                self._removed,
            )
            self._removed = 0
            self._warned = False
