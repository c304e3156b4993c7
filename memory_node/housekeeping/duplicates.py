"""Stored notes that say the same: the newer survives, the older leaves the indexes and stays, joined by SUPERSEDES.

A note is what was stored on purpose: an observation that was long-term from the start, so no gist takes it and it keeps
its text. `store_note` makes one of a row and is the check at write time; the job finds those whose vectors came later.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from memory_node.graph import EdgeType, Tier
from memory_node.housekeeping.runtime import JobContext, StepResult
from memory_node.storage import edges, jobs, nodes, vectors
from memory_node.storage.ids import id_table
from memory_node.storage.writer import Transaction

BATCH = 2000
"""Rows newer than the cursor that one installment looks through."""

SAVE_EVERY = 20_000
"""Rows looked through after which the cursor is written although there was no note among them."""

MARGIN = 0.01
"""What the index, which is quantised, may be wrong by."""

Similar = Callable[[Any, float, int], Sequence[int]]

_NOTE = f"""kind = 1 AND tier = {int(Tier.LONG_TERM)} AND text_id IS NOT NULL AND NOT EXISTS
(SELECT 1 FROM edge WHERE target = node.id AND type = {int(EdgeType.SUMMARIZES)})"""


@dataclass(frozen=True)
class Duplicate:
    """Two notes that say the same: the newer, the older and their cosine."""

    newer_id: int
    older_id: int
    cosine: float


def store_note(tx: Transaction, id_: int, similar: Similar | None, threshold: float) -> list[Duplicate]:
    """Make a note of a row that was just stored; of it and the notes that say the same all but the newest are demoted.

    Returns what was demoted: the row itself too, when it tells of a time before that of such a note.
    """
    nodes.update(tx, id_, tier=Tier.LONG_TERM)
    found = _distinct(alike(tx.conn, id_, similar, threshold))
    for one in found:
        demote(tx, one)
    return found


def alike(conn: sqlite3.Connection, id_: int, similar: Similar | None, threshold: float) -> list[Duplicate]:
    """Return the notes of the same layer and map that say what a note says: same text, or cosine of at least threshold.

    The one of the later stamp is the newer, whatever the order they were stored in.

    Args:
        similar: see JobContext; None: only the same text counts.
    """
    row = conn.execute(f"SELECT text_id, layer_id, map_id, stamp FROM node WHERE id = ? AND {_NOTE}", (id_,)).fetchone()
    if row is None:
        return []
    text_id, layer_id, map_id, stamp = row
    cosines = {text_id: 1.0}
    model = vectors.active_model(conn)
    if similar is not None and model is not None:
        _, own = vectors.of_texts(conn, model.id, [text_id])
        for vector in own:
            # A text that merely has such a sentence says more: whole texts are compared.
            near, wholes = vectors.of_texts(conn, model.id, similar(vector, threshold - MARGIN, layer_id))
            alike = zip(near.tolist(), (wholes @ vector).tolist(), strict=True)
            cosines |= {text: cosine for text, cosine in alike if cosine >= threshold and text != text_id}
    rows = conn.execute(
        "SELECT id, text_id, stamp FROM node INDEXED BY node_text"
        " WHERE text_id IN (SELECT value FROM json_each(?)) AND layer_id = ? AND map_id = ?"
        f" AND id <> ? AND {_NOTE} ORDER BY id",
        (id_table(cosines), layer_id, map_id, id_),
    )
    found = []
    for other, text, at in rows:
        newer, old = (id_, other) if (at, other) < (stamp, id_) else (other, id_)
        found.append(Duplicate(newer, old, cosines[text]))
    return found


def demote(tx: Transaction, one: Duplicate) -> None:
    """Take the older of two notes out of the indexes; its row and text stay, and SUPERSEDES leads to it."""
    nodes.update(tx, one.older_id, tier=Tier.ARCHIVED)
    edges.add(tx, one.newer_id, one.older_id, EdgeType.SUPERSEDES)


class Duplicates:
    """The job `duplicates`. A dry run answers with what it would demote.

    Cursor: revision and id up to which rows were looked through, and notes whose vector is still to come. It is written
    when there was something, or far enough, so that rows of other kinds cost no write.
    """

    name = "duplicates"

    def __init__(self) -> None:
        self._cursor: dict[str, Any] | None = None
        self._unsaved = 0

    def step(self, context: JobContext) -> StepResult:
        threshold = context.settings().duplicate_threshold
        if context.dry_run:
            return self._dry_run(context, threshold)
        with context.db.read() as conn:
            cursor = self._cursor or {"revision": 0, "id": 0, "pending": [], **jobs.cursor(conn, self.name)}
            notes, position, scanned = _newer(conn, cursor)
            ready, waiting = _embedded(conn, [*cursor["pending"], *notes])
            found = _distinct(one for id_ in ready for one in alike(conn, id_, context.similar, threshold))
        after = {**position, "pending": waiting}
        self._unsaved += scanned
        if notes or waiting != cursor["pending"] or self._unsaved >= SAVE_EVERY:
            context.db.write(lambda tx: self._write(tx, found, after))
            self._unsaved = 0
        self._cursor = after
        return StepResult(scanned, 2 * len(found), done=scanned < BATCH)

    def _write(self, tx: Transaction, found: list[Duplicate], cursor: dict[str, Any]) -> None:
        for one in found:
            demote(tx, one)
        jobs.save_cursor(tx, self.name, cursor)

    @staticmethod
    def _dry_run(context: JobContext, threshold: float) -> StepResult:
        with context.db.read() as conn:
            ids = [row[0] for row in conn.execute(f"SELECT id FROM node WHERE {_NOTE} AND tier < 3 ORDER BY id")]
            found = _distinct(one for id_ in ids for one in alike(conn, id_, context.similar, threshold))
        return StepResult(len(ids), 0, found=tuple(found))


def _newer(conn: sqlite3.Connection, cursor: dict[str, Any]) -> tuple[list[int], dict[str, int], int]:
    """Notes among the rows written since the cursor, where it moves to, and how many rows were read."""
    keys = conn.execute(
        "SELECT revision, id FROM node INDEXED BY node_revision WHERE (revision, id) > (?, ?)"
        " ORDER BY revision, id LIMIT ?",
        (cursor["revision"], cursor["id"], BATCH),
    ).fetchall()
    if not keys:
        return [], {"revision": cursor["revision"], "id": cursor["id"]}, 0
    rows = conn.execute(
        "SELECT node.id FROM json_each(?) AS given CROSS JOIN node ON node.id = given.value"
        f" WHERE {_NOTE} ORDER BY node.id",
        (id_table(key[1] for key in keys),),
    )
    return [row[0] for row in rows], {"revision": keys[-1][0], "id": keys[-1][1]}, len(keys)


def _embedded(conn: sqlite3.Connection, ids: list[int]) -> tuple[list[int], list[int]]:
    """Divide notes into those whose text has a vector, or will never have one, and those that wait for it."""
    model = vectors.active_model(conn)
    if model is None:
        return ids, []
    waiting = {
        row[0]
        for row in conn.execute(
            "SELECT node.id FROM json_each(?) AS given CROSS JOIN node ON node.id = given.value"
            " CROSS JOIN unembedded AS u ON u.text_id = node.text_id AND u.model_id = ?",
            (id_table(ids), model.id),
        )
    }
    return [id_ for id_ in ids if id_ not in waiting], sorted(waiting)


def _distinct(found: Any) -> list[Duplicate]:
    """Each older note once, under the first newer one."""
    by_older: dict[int, Duplicate] = {}
    for one in found:
        by_older.setdefault(one.older_id, one)
    return list(by_older.values())
