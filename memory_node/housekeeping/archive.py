"""The jobs `archive` and `bound`: what gives up its text and vector, and what goes when the file is full."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from memory_node.graph import NO_ID, EdgeType, Kind, Tier
from memory_node.housekeeping.ages import Ages
from memory_node.housekeeping.gists import Gists, groups
from memory_node.housekeeping.runtime import JobContext, StepResult
from memory_node.storage import jobs, nodes
from memory_node.storage.writer import Transaction

log = logging.getLogger(__name__)

CHUNK = 1000
"""Rows that one transaction archives or removes."""
REWRITE_PATIENCE = 86_400.0
"""s: how long the rows of a gist keep their texts for a language model that doesn't answer."""
FULL, EMPTIED = 1.0, 0.95
"""Shares of max_db_mb at which removal begins, and at which it is enough."""


@dataclass(frozen=True)
class _Batch:
    """Rows to archive now; cursor: gist after which the next run looks, None to leave it."""

    ids: Sequence[int]
    cursor: int | None = None


class Archive:
    """Takes text and vector from rows that a committed gist summarises, and from readings of the body that are old.

    The last reading of each body layer keeps its text. Cursor: the gist up to which everything is archived.
    """

    name = "archive"

    def step(self, context: JobContext) -> StepResult:
        if context.dry_run:
            return StepResult()
        scanned = wrote = 0
        while True:
            with context.db.read() as conn:
                ages = Ages(conn, context.present, context.now)
                batch = _summarised(conn, context, ages) or _readings(conn, context, ages)
            if batch is None:
                return StepResult(scanned, wrote)
            scanned += len(batch.ids)
            wrote += self._write(context, batch)
            if context.should_yield():
                return StepResult(scanned, wrote, done=False)

    def _write(self, context: JobContext, batch: _Batch) -> int:
        def work(tx: Transaction) -> int:
            count = nodes.archive(tx, batch.ids)
            if batch.cursor is not None:
                jobs.save_cursor(tx, self.name, {"id": batch.cursor})
            return count

        return context.db.write(work)


def _summarised(conn: sqlite3.Connection, context: JobContext, ages: Ages) -> _Batch | None:
    """Members of the next gists, in order of id, whose newest row is old enough."""
    done = jobs.cursor(conn, Archive.name).get("id", NO_ID)
    unfinished = jobs.cursor(conn, Gists.name).get("gist", NO_ID)
    rows = conn.execute(
        "SELECT id, (SELECT session_id FROM node WHERE node.id = gist.id),"
        " (SELECT last_stamp FROM node WHERE node.id = gist.id), rewrite"
        " FROM gist WHERE id > ? AND level = 0 ORDER BY id LIMIT 200",
        (done,),
    )
    ids: list[int] = []
    cursor = None
    for gist_id, session_id, newest, rewrite in rows:
        wait = context.settings().archive_after_seconds
        if rewrite and context.summarizer is not None:
            wait = max(wait, REWRITE_PATIENCE)
        if gist_id == unfinished or newest > ages.cutoff(session_id, wait):
            break
        members = conn.execute(
            f"SELECT target FROM edge WHERE source = ? AND type = {int(EdgeType.SUMMARIZES)}"
            f" AND (SELECT tier FROM node WHERE node.id = edge.target) < {int(Tier.ARCHIVED)} LIMIT {CHUNK}",
            (gist_id,),
        ).fetchall()
        ids += [row[0] for row in members]
        if len(members) == CHUNK:
            break
        cursor = gist_id
        if len(ids) >= CHUNK:
            break
    return _Batch(ids, cursor) if ids or cursor is not None else None


def _readings(conn: sqlite3.Connection, context: JobContext, ages: Ages) -> _Batch | None:
    """Readings of the body that are old, but for the last of each layer."""
    layers = [row[0] for row in conn.execute("SELECT id FROM layer WHERE internal = 1")]
    if not layers:
        return None
    last = [
        row[0]
        for layer in layers
        for row in conn.execute(
            "SELECT id FROM node INDEXED BY node_layer_stamp WHERE layer_id = ? ORDER BY stamp DESC, id DESC LIMIT 1",
            (layer,),
        )
    ]
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
