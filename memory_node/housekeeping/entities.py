"""Jobs of the entity graph: duplicates are merged, things that texts name are joined; and the undoing of a merge."""

from __future__ import annotations

import logging
import math
import sqlite3
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from memory_node.errors import InvalidArgument, SummarizerUnreachable
from memory_node.graph import NO_ID, Detection, EdgeType, Kind, Look, Node, Pose, PositionSource
from memory_node.housekeeping.asking import ask
from memory_node.housekeeping.runtime import JobContext, StepResult
from memory_node.ingest import association, presence
from memory_node.ingest.entities import EntityTracker
from memory_node.ingest.entity_table import ELSEWHERE
from memory_node.protocols import NamedThing, SummaryRow
from memory_node.storage import edges, entities, jobs, nodes, vectors
from memory_node.storage.entities import EntityState
from memory_node.storage.ids import id_table

if TYPE_CHECKING:
    from memory_node.storage.database import Transaction

log = logging.getLogger(__name__)

BATCH = 1000
"""Rows that one installment looks through for changed entities."""
SAVE_EVERY = 10_000
"""Rows looked through after which the cursor is written though nothing was merged: so many are read again at most."""
TEXTS = 20
"""Observations that a language model reads at once."""
TRIES = 3
"""Runs in which a language model may fail at one text before the others go on without it."""
LOOKED_THROUGH = 100
"""Rows newer than the cursor among which one installment looks for them."""
FAR = 2.0 / 3.0
"""Share of the gate within which a thing that was lost and one that was found later are one: drift."""
NEAR = 0.4
"""m: within this two that are seen in turn and never together are one, whatever the gate."""
_NAMED = 0.5


class MergeEntities:
    """The job `merge_entities`: joins duplicates that drift, or words without a vector yet, left behind.

    Cursor: revision and id up to which entities were compared with all others. It is written with merges, or far
    enough, so that a run that finds nothing writes nothing. A dry run answers with the pairs of ids that are one.
    """

    name = "merge_entities"

    def __init__(self) -> None:
        self._cursor: dict[str, Any] | None = None
        self._unsaved = 0

    def step(self, context: JobContext) -> StepResult:
        with context.db.read() as conn:
            cursor = self._cursor or {"revision": 0, "id": 0, **jobs.cursor(conn, self.name)}
            if context.dry_run:
                return self._dry_run(conn, context, cursor)
            pairs, cursor, scanned, done = _compared(conn, context, cursor)
        wrote = 0
        self._unsaved += scanned
        if pairs or self._unsaved >= SAVE_EVERY:
            gate = context.settings().entity_gate_measured
            wrote = context.db.write(lambda tx: self._merge(tx, pairs, gate, cursor))
            self._unsaved = 0
        self._cursor = cursor
        return StepResult(scanned, wrote, done)

    @staticmethod
    def _dry_run(conn: sqlite3.Connection, context: JobContext, cursor: dict[str, Any]) -> StepResult:
        """Go all the way in one installment: how far it came is kept nowhere."""
        found: dict[tuple[int, int], None] = {}
        scanned, done = 0, False
        while not done and not context.closing.is_set():
            pairs, cursor, count, done = _compared(conn, context, cursor)
            found.update(dict.fromkeys((min(pair), max(pair)) for pair in pairs))
            scanned += count
        return StepResult(scanned, found=tuple(found))

    def _merge(self, tx: Transaction, pairs: Iterable[tuple[int, int]], gate: float, cursor: dict[str, Any]) -> int:
        merged = 0
        for pair in pairs:
            found = entities.states_of(tx.conn, {entities.resolve(tx.conn, id_) for id_ in pair})
            if len(found) == 2 and _one_thing(tx.conn, found[0], found[1], gate):
                _merge(tx, *sorted(found, key=lambda state: (state.first_seen, state.id)))
                merged += 1
        if merged:
            entities.edited(tx)
        jobs.save_cursor(tx, self.name, cursor)
        return merged


class NameThings:
    """The job `name_things`: a language model names the things of sentences, which join the graph where they were said.

    Each is attributed to the sentence that named it, at its observer's place. Cursor: revision and id up to which
    texts were read. It is written with what was named only, so a run that finds nothing to read writes nothing. Texts
    that the model fails at are read again one by one, and one that it fails at TRIES times is passed over.
    """

    name = "name_things"

    def __init__(self, tracker: EntityTracker) -> None:
        self._tracker = tracker
        self._cursor: dict[str, int] | None = None
        self._together = TEXTS
        self._failures = 0

    def step(self, context: JobContext) -> StepResult:
        summarizer = context.summarizer
        if summarizer is None or context.dry_run:
            return StepResult()
        with context.db.read() as conn:
            cursor = self._cursor or {"revision": 0, "id": 0, **jobs.cursor(conn, self.name)}
            ids, after, done = _unnamed(conn, cursor, self._together)
            found = nodes.fetch(conn, ids)
        if not found:
            self._cursor = after
            return StepResult(done=done)
        told = [_summary_row(node) for node in found]
        try:
            answer = ask(context, summarizer.name, lambda: summarizer.extract(told))
        except (SummarizerUnreachable, OSError):
            raise
        except Exception as error:  # of any kind: it is somebody else's summarizer
            if len(found) > 1:
                self._together = 1
                return StepResult(len(found), done=False)
            self._failures += 1
            if self._failures < TRIES:
                raise
            log.warning("%s cannot name the things of observation %d: %s", summarizer.name, found[0].id, error)
            answer = []
        if answer is None and context.closing.is_set():
            return StepResult()
        things = _usable(answer, found)
        context.db.write(lambda tx: self._join(tx, found, things, after))
        self._cursor, self._failures, self._together = after, 0, min(TEXTS, 2 * self._together)
        return StepResult(len(found), len(things), done)

    def _join(self, tx: Transaction, found: list[Node], things: list[NamedThing], cursor: dict[str, int]) -> None:
        for node in found:
            named = [thing for thing in things if thing.observation_id == node.id]
            if named:
                self._tracker.observe(tx, _look(node, named), [thing.entity_type for thing in named])
        jobs.save_cursor(tx, self.name, cursor)


def split_entity(tx: Transaction, id: int, observation_ids: Sequence[int]) -> int:
    """Make of some of an entity's sightings an entity of its own and return its id.

    Both are what their sightings alone make of them, history included, and are not joined again.

    Raises:
        InvalidArgument: there is no such entity, or these are not some, but not all, of its sightings.
    """
    id = entities.resolve(tx.conn, id) if _is_id(id) else NO_ID
    if not id:
        raise InvalidArgument("id", "there is no such entity")
    seen, given = set(entities.observations(tx.conn, id)), _checked_ids(observation_ids)
    if not given or not given < seen:
        raise InvalidArgument("observation_ids", "must be some, but not all, of the entity's sightings")
    (old,) = entities.states_of(tx.conn, [id])
    (node,) = nodes.fetch(tx.conn, [id])
    new, rest = _unseen(tx.new_id(), old), _unseen(id, old)
    origins = {id} | entities.split_from(tx.conn, id)
    entities.insert(
        tx, new, frame=node.frame, map_id=node.map_id, session_id=node.session_id, split_from=origins
    )
    entities.forget_places(tx, id)
    for state, sightings in ((new, given), (rest, seen - given)):
        _replay(tx, state, sightings)
    entities.save(tx, [new, rest])
    entities.unlink(tx, id, given)
    edges.add_many(tx, [(new.id, observation, EdgeType.OBSERVED_IN) for observation in sorted(given)])
    entities.edited(tx)
    return new.id


def _is_id(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and NO_ID < int(value) < 1 << 63


def _checked_ids(observation_ids: Iterable[int]) -> set[int]:
    given = list(observation_ids) if isinstance(observation_ids, Iterable) else []
    if not given or not all(map(_is_id, given)):
        raise InvalidArgument("observation_ids", f"got {observation_ids!r}, allowed is a list of ids")
    return {int(id_) for id_ in given}


def _kin_labels(conn: sqlite3.Connection, labels: set[str], threshold: float) -> dict[str, list[str]]:
    """Return, for each label, the labels of entities that may name the same thing, itself among them."""
    if not labels:
        return {}
    model = vectors.active_model(conn)
    known = vectors.of_bodies(conn, model.id, entities.labels(conn)) if model is not None else {}
    names = list(known)
    matrix = np.stack([known[name] for name in names]) if names else np.empty((0, 0), dtype=np.float32)
    found = {label: [label] for label in labels}
    for label in labels & known.keys():
        near = [names[i] for i in np.flatnonzero(matrix @ known[label] >= threshold) if names[i] != label]
        found[label] += [name for name in near if association.may_be_one(label, name)]
    return found


def _compared(
    conn: sqlite3.Connection, context: JobContext, cursor: dict[str, Any]
) -> tuple[list[tuple[int, int]], dict[str, Any], int, bool]:
    """Return pairs among the next changed entities, the cursor after them, how many rows were read, and whether all."""
    settings = context.settings()
    changed = entities.changed_since(conn, cursor["revision"], cursor["id"], BATCH)
    labels = {label for _, _, label in changed if label is not None}
    kin = _kin_labels(conn, labels, settings.entity_similarity_threshold)
    pairs: list[tuple[int, int]] = []
    for number, (revision, id_, label) in enumerate(changed, start=1):
        cursor = {"revision": revision, "id": id_}
        if label is None:
            continue
        pairs += _duplicates(conn, id_, kin[label], settings.entity_gate_measured)
        if context.should_yield() and not context.dry_run:
            return pairs, cursor, number, number == len(changed) < BATCH
    return pairs, cursor, len(changed), len(changed) < BATCH


def _duplicates(conn: sqlite3.Connection, id_: int, labels: Sequence[str], gate: float) -> list[tuple[int, int]]:
    near = entities.near(conn, id_, labels, max(NEAR, FAR * gate))
    if not near:
        return []
    states = {state.id: state for state in entities.states_of(conn, [id_, *near])}
    if id_ not in states:
        return []
    return [(id_, other) for other in near if other in states and _one_thing(conn, states[id_], states[other], gate)]


def _one_thing(conn: sqlite3.Connection, a: EntityState, b: EntityState, gate: float) -> bool:
    """Tell whether two entities are one: near, never seen together, and not split from each other by somebody."""
    if a.position is None or b.position is None or PositionSource.MEASURED not in (a.source, b.source):
        return False
    old, new = sorted((a, b), key=lambda state: (state.first_seen, state.id))
    # What was looked for in vain is followed by the tracker, which knows who else may have turned up here.
    lost = old.last_seen < new.first_seen and not new.tentative and old.missed == 0
    if a.source is not b.source or math.dist(a.position, b.position) > (max(NEAR, FAR * gate) if lost else NEAR):
        return False
    return not entities.seen_together(conn, [(a.id, b.id)]) and not entities.were_split(conn, a.id, b.id)


def _merge(tx: Transaction, keep: EntityState, gone: EntityState) -> None:
    """Make one of two; keep is the older."""
    assert keep.position is not None and gone.position is not None
    later = max(keep, gone, key=lambda state: state.last_seen)
    keep.position = presence.join((keep.weight, gone.weight), (keep.position, gone.position))
    keep.weight += gone.weight
    keep.stddev = presence.deviation(keep.weight, keep.source)
    keep.sightings += gone.sightings
    keep.last_seen, keep.confidence, keep.missed = later.last_seen, later.confidence, later.missed
    keep.missing, keep.moved = later.missing, keep.moved or gone.moved
    keep.tentative = keep.tentative and gone.tentative and keep.confidence < presence.CONFIRMED
    if gone.track_stamp > keep.track_stamp:
        keep.track_id, keep.track_stamp = gone.track_id, gone.track_stamp
    entities.absorb(tx, keep.id, gone.id)
    entities.save(tx, [keep])


def _unseen(id_: int, like: EntityState) -> EntityState:
    return EntityState(
        id=id_, label=like.label, position=None, source=PositionSource.NONE, weight=0.0, stddev=0.0, first_seen=0,
        last_seen=0, sightings=0, confidence=0.0, entity_type=like.entity_type,
    )  # fmt: skip


def _replay(tx: Transaction, state: EntityState, observation_ids: Iterable[int]) -> None:
    """Show a stored entity that nothing is known of its sightings in the order of time; places it left are history."""
    since = 0
    for node in sorted(nodes.fetch(tx.conn, observation_ids), key=lambda node: (node.stamp, node.id)):
        if state.sightings == 0:
            state.first_seen = since = node.stamp
        variance = association.MEASURED_NOISE**2
        if node.position_source is PositionSource.OBSERVER:
            variance = presence.OBSERVER_FLOOR**2
        sighting = presence.Sighting(
            state.label, node.confidence, node.position, node.position_source, variance, "", node.id
        )
        if _elsewhere(state, node):
            entities.leave_place(tx, state, since)
            state.position, state.source, state.weight = None, PositionSource.NONE, 0.0
            state.moved, since = True, node.stamp
        presence.see(state, sighting, node.stamp, np.zeros(3))


def _elsewhere(state: EntityState, node: Node) -> bool:
    if state.position is None or node.position is None:
        return False
    return math.dist(state.position, node.position) > ELSEWHERE


def _unnamed(conn: sqlite3.Connection, cursor: dict[str, int], most: int) -> tuple[list[int], dict[str, int], bool]:
    """Return the next perceptions with a text that show no entity yet, the cursor after them, and whether it is all."""
    changed = conn.execute(
        "SELECT revision, id FROM node INDEXED BY node_revision WHERE (revision, id) > (?, ?)"
        " ORDER BY revision, id LIMIT ?",
        (cursor["revision"], cursor["id"], LOOKED_THROUGH),
    ).fetchall()
    if not changed:
        return [], cursor, True
    sql = """SELECT revision, node.id FROM json_each(?) AS given CROSS JOIN node ON node.id = given.value
             WHERE kind = ? AND text_id IS NOT NULL AND layer_id NOT IN (SELECT id FROM layer WHERE internal = 1)
             AND NOT EXISTS (SELECT 1 FROM edge WHERE target = node.id AND type = ?)
             ORDER BY revision, node.id LIMIT ?"""
    ids = id_table(id_ for _, id_ in changed)
    rows = conn.execute(sql, (ids, int(Kind.OBSERVATION), int(EdgeType.OBSERVED_IN), most)).fetchall()
    full = len(rows) == most
    last = rows[-1] if full else changed[-1]
    return [row[1] for row in rows], {"revision": last[0], "id": last[1]}, not full and len(changed) < LOOKED_THROUGH


def _summary_row(node: Node) -> SummaryRow:
    return SummaryRow(node.id, node.text or "", node.layer, node.stamp, node.last_stamp, node.position, node.repeats)


def _usable(things: Any, found: Sequence[Node]) -> list[NamedThing]:
    """Return the things that have a name and a row that named it, once a row; a model may answer anything."""
    known = {node.id for node in found}
    usable: dict[tuple[int, str], NamedThing] = {}
    for thing in things if isinstance(things, (list, tuple)) else ():
        if isinstance(thing, NamedThing) and thing.observation_id in known and isinstance(thing.name, str):
            label = association.normalise_label(thing.name)
            if label:
                usable.setdefault((thing.observation_id, label), thing)
    return list(usable.values())


def _look(node: Node, things: Sequence[NamedThing]) -> Look:
    """Return a sentence as a look: its things are somewhere around the observer, and nothing else was looked for."""
    pose = None if node.position is None else Pose(node.stamp, node.position, None, node.frame)
    detections = tuple(Detection(thing.name, _share(thing.confidence)) for thing in things)
    return Look(node.layer, node.stamp, node.map_id, detections, (node.id,) * len(things), pose, 1.0, 1.0)


def _share(confidence: Any) -> float:
    """A model's confidence as a number 0..1, whatever it is."""
    known = isinstance(confidence, (int, float)) and abs(confidence) < math.inf
    return float(min(1, max(0, confidence))) if known else _NAMED
