"""The job `name_things`: a language model names the things of sentences, which join the graph where they were said."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from memory_node.graph import NO_ID, Detection, EdgeType, Kind, Look, Node, Pose
from memory_node.housekeeping.answers import named_things
from memory_node.housekeeping.asking import ask, is_outage
from memory_node.housekeeping.runtime import JobContext, StepResult
from memory_node.ingest.entities import EntityTracker
from memory_node.protocols import READ_AT_ONCE, NamedThing, Summarizer, SummaryRow
from memory_node.storage import jobs, nodes
from memory_node.storage.ids import id_table

if TYPE_CHECKING:
    from memory_node.storage.database import Transaction

log = logging.getLogger(__name__)

TEXTS = 20
"""Observations that a language model reads at once."""
MARKS = 100
"""Characters that a text's number, time and place take at most."""
TRIES = 3
"""Runs in which a language model may fail at one text before the others go on without it."""
LOOKED_THROUGH = 100
"""Rows newer than the cursor among which one installment looks for texts."""
REMEMBERED = 5000
"""Texts whose things are remembered, so that a row that changes or is said again is not read again."""


class NameThings:
    """Each thing is attributed to the sentence that named it, at its observer's place.

    Cursor: revision and id up to which rows were looked through, and `newest`, the newest row that was read. It is
    written with what was read only, so a run that finds nothing new writes nothing. Texts that the model fails at are
    read again one by one, and one that it fails at TRIES times is passed over.
    """

    name = "name_things"

    def __init__(self, tracker: EntityTracker) -> None:
        self._tracker = tracker
        self._cursor: dict[str, int] | None = None
        self._together = TEXTS
        self._failures = 0
        self._named: dict[int | None, list[NamedThing]] = {}
        """Things of texts, by the id of the text."""

    def step(self, context: JobContext) -> StepResult:
        summarizer = context.summarizer
        if summarizer is None or context.dry_run:
            return StepResult()
        with context.db.read() as conn:
            cursor = self._cursor or {"revision": 0, "id": 0, "newest": NO_ID, **jobs.cursor(conn, self.name)}
            ids, after, done = _unnamed(conn, cursor, self._together)
            found = nodes.fetch(conn, ids)
        try:
            if not self._read(context, summarizer, found):
                return StepResult()
            named = self._join(context, found, after)
        except Exception as error:  # of any kind: it is somebody else's summarizer
            if is_outage(error):
                raise
            if len(found) > 1:
                self._together = 1
                return StepResult(len(found), done=False)
            self._failures += 1
            if self._failures < TRIES:
                raise
            log.warning("%s cannot name the things of observation %d: %s", summarizer.name, found[0].id, error)
            self._remember(found, {})
            named = self._join(context, found, after)
        if found:
            self._failures, self._together = 0, min(TEXTS, 2 * self._together)
        return StepResult(len(found), named, done)

    def _read(self, context: JobContext, summarizer: Summarizer, found: Sequence[Node]) -> bool:
        """Let the model read those texts that it has not read; False: the memory closes."""
        new = {node.text_id: node for node in reversed(found) if node.text_id not in self._named}
        if not new:
            return True
        told = [_summary_row(node) for node in reversed(new.values())]
        answer = ask(context, summarizer.name, lambda: summarizer.extract(told))
        if answer is None and context.closing.is_set():
            return False
        things: dict[int, list[NamedThing]] = {}
        for thing in named_things(answer, {row.id for row in told}):
            things.setdefault(thing.observation_id, []).append(thing)
        self._remember(list(new.values()), things)
        return True

    def _remember(self, read: Sequence[Node], things: Mapping[int, list[NamedThing]]) -> None:
        for node in read:
            self._named[node.text_id] = things.get(node.id, [])
        while len(self._named) > REMEMBERED:
            del self._named[next(iter(self._named))]

    def _join(self, context: JobContext, found: Sequence[Node], cursor: dict[str, int]) -> int:
        """Join what texts name to the graph, and return how many things that were."""
        things = {node.id: self._named[node.text_id] for node in found}
        newest = max((cursor["newest"], *things))
        if newest > cursor["newest"] or any(things.values()):
            cursor = {**cursor, "newest": newest}
            context.db.write(lambda tx: self._observe(tx, found, things, cursor))
        self._cursor = cursor
        return sum(map(len, things.values()))

    def _observe(
        self, tx: Transaction, found: Sequence[Node], things: Mapping[int, list[NamedThing]], cursor: dict[str, int]
    ) -> None:
        still_there = nodes.existing(tx.conn, things)
        for node in found:
            if node.id in still_there and (named := things[node.id]):
                self._tracker.observe(tx, _look(node, named), [thing.entity_type for thing in named])
        jobs.save_cursor(tx, self.name, cursor)


def _unnamed(conn: sqlite3.Connection, cursor: dict[str, int], most: int) -> tuple[list[int], dict[str, int], bool]:
    """Return the next perceptions with a text that show no entity yet, the cursor after them, and whether it is all.

    They are so few that a language model can read them at once.
    """
    changed = conn.execute(
        "SELECT revision, id FROM node INDEXED BY node_revision WHERE (revision, id) > (?, ?)"
        " ORDER BY revision, id LIMIT ?",
        (cursor["revision"], cursor["id"], LOOKED_THROUGH),
    ).fetchall()
    if not changed:
        return [], cursor, True
    sql = """SELECT revision, node.id, (SELECT length(body) FROM text WHERE text.id = text_id)
             FROM json_each(?) AS given CROSS JOIN node ON node.id = given.value
             WHERE kind = ? AND text_id IS NOT NULL AND layer_id NOT IN (SELECT id FROM layer WHERE internal = 1)
             AND NOT EXISTS (SELECT 1 FROM edge WHERE target = node.id AND type = ?)
             ORDER BY revision, node.id LIMIT ?"""
    ids = id_table(id_ for _, id_ in changed)
    rows = conn.execute(sql, (ids, int(Kind.OBSERVATION), int(EdgeType.OBSERVED_IN), most)).fetchall()
    fitting = _fitting([row[2] for row in rows])
    full = len(rows) == most or fitting < len(rows)
    last = rows[fitting - 1] if full else changed[-1]
    after = {**cursor, "revision": last[0], "id": last[1]}
    return [row[1] for row in rows[:fitting]], after, not full and len(changed) < LOOKED_THROUGH


def _fitting(lengths: Sequence[int]) -> int:
    """How many of the first texts can be read at once; one at least."""
    room = READ_AT_ONCE
    for number, length in enumerate(lengths):
        room -= length + MARKS
        if room < 0:
            return max(1, number)
    return len(lengths)


def _summary_row(node: Node) -> SummaryRow:
    return SummaryRow(node.id, node.text or "", node.layer, node.stamp, node.last_stamp, node.position, node.repeats)


def _look(node: Node, things: Sequence[NamedThing]) -> Look:
    """Return a sentence as a look: its things are somewhere around the observer, and nothing else was looked for."""
    pose = None if node.position is None else Pose(node.stamp, node.position, None, node.frame)
    detections = tuple(Detection(thing.name, thing.confidence) for thing in things)
    ids = (node.id,) * len(things)
    return Look(node.layer, node.stamp, node.map_id, detections, ids, pose, 1.0, 1.0, node.session_id)
