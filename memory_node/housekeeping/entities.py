"""The job that merges duplicates in the entity graph, and the undoing of a merge."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from memory_node.errors import InvalidArgument, shown
from memory_node.graph import NO_ID, EdgeType, Node, PositionSource
from memory_node.housekeeping.runtime import JobContext, StepResult
from memory_node.ingest import association, presence
from memory_node.ingest.entity_table import ELSEWHERE, no_names
from memory_node.storage import edges, entities, identity, jobs, nodes, vectors
from memory_node.storage.entities import EntityState

if TYPE_CHECKING:
    from memory_node.storage.database import Transaction

BATCH = 1000
"""Rows that one installment looks through for changed entities."""
SAVE_EVERY = 10_000
"""Rows looked through after which the cursor is written though nothing was merged: so many are read again at most."""
FAR = 2.0 / 3.0
"""Share of the gate within which a thing that was lost and one that was found later are one: drift."""
NEAR = 0.4
"""m: within this two that are seen in turn and never together are one, whatever the gate."""


class MergeEntities:
    """The job `merge_entities`: joins duplicates that drift, or words without a vector yet, left behind.

    Cursor: revision and id up to which entities were compared with all others. It is written with merges, or far
    enough, so that a run that finds nothing writes nothing. A dry run answers with the pairs of ids that are one.
    """

    name = "merge_entities"

    def __init__(self, other_names: Callable[[str], Iterable[str]] = no_names) -> None:
        """other_names: the other names that a label's thing has, whatever their vectors."""
        self._names = other_names
        self._cursor: dict[str, Any] | None = None
        self._unsaved = 0

    def step(self, context: JobContext) -> StepResult:
        with context.db.read() as conn:
            cursor = self._cursor or {"revision": 0, "id": 0, **jobs.cursor(conn, self.name)}
            if context.dry_run:
                return self._dry_run(conn, context, cursor)
            pairs, cursor, scanned, done = self._compared(conn, context, cursor)
        wrote = 0
        self._unsaved += scanned
        if pairs or self._unsaved >= SAVE_EVERY:
            gate = context.settings().entity_gate_measured
            wrote = context.db.write(lambda tx: self._merge(tx, pairs, gate, cursor))
            self._unsaved = 0
        self._cursor = cursor
        return StepResult(scanned, wrote, done)

    def _dry_run(self, conn: sqlite3.Connection, context: JobContext, cursor: dict[str, Any]) -> StepResult:
        """Go all the way in one installment: how far it came is kept nowhere."""
        found: dict[tuple[int, int], None] = {}
        scanned, done = 0, False
        while not done and not context.closing.is_set():
            pairs, cursor, count, done = self._compared(conn, context, cursor)
            found.update(dict.fromkeys((min(pair), max(pair)) for pair in pairs))
            scanned += count
        return StepResult(scanned, found=tuple(found))

    def _compared(
        self, conn: sqlite3.Connection, context: JobContext, cursor: dict[str, Any]
    ) -> tuple[list[tuple[int, int]], dict[str, Any], int, bool]:
        """Return pairs among the next changed entities, the cursor after them, how many rows were read, whether all."""
        settings = context.settings()
        changed = entities.changed_since(conn, cursor["revision"], cursor["id"], BATCH)
        labels = {label for _, _, label in changed if label is not None}
        kin = _kin_labels(conn, labels, settings.entity_similarity_threshold, self._names)
        pairs: list[tuple[int, int]] = []
        for number, (revision, id_, label) in enumerate(changed, start=1):
            cursor = {"revision": revision, "id": id_}
            if label is None:
                continue
            pairs += _duplicates(conn, id_, kin[label], settings.entity_gate_measured)
            if context.should_yield() and not context.dry_run:
                return pairs, cursor, number, number == len(changed) < BATCH
        return pairs, cursor, len(changed), len(changed) < BATCH

    def _merge(self, tx: Transaction, pairs: Iterable[tuple[int, int]], gate: float, cursor: dict[str, Any]) -> int:
        merged = 0
        for pair in pairs:
            found = entities.states_of(tx.conn, {identity.resolve(tx.conn, id_) for id_ in pair})
            if len(found) == 2 and _one_thing(tx.conn, found[0], found[1], gate):
                _merge(tx, *sorted(found, key=lambda state: (state.first_seen, state.id)))
                merged += 1
        if merged:
            entities.edited(tx)
        jobs.save_cursor(tx, self.name, cursor)
        return merged


def split_entity(tx: Transaction, id: int, observation_ids: Sequence[int]) -> int:
    """Make of some of an entity's sightings an entity of its own and return its id.

    Both are what their sightings alone make of them, history included, and are not joined again. Only looks that missed
    the one at its place have missed what is there now.

    Raises:
        InvalidArgument: there is no such entity, or these are not some, but not all, of its sightings.
    """
    id = identity.resolve(tx.conn, id) if _is_id(id) else NO_ID
    if not id:
        raise InvalidArgument("id", "there is no such entity")
    seen, given = set(entities.observations(tx.conn, id)), checked_ids("observation_ids", observation_ids)
    if not given or not given < seen:
        raise InvalidArgument("observation_ids", "must be some, but not all, of the entity's sightings")
    (old,) = entities.states_of(tx.conn, [id])
    (node,) = nodes.fetch(tx.conn, [id])
    new = _unseen(tx.new_id(), old)
    origins = {id} | identity.split_from(tx.conn, id)
    entities.insert(
        tx, new, frame=node.frame, map_id=node.map_id, split_from=origins
    )
    _resee(tx, new, old, given)
    resee(tx, id, seen - given)
    entities.unlink(tx, id, given)
    edges.add_many(tx, [(new.id, observation, EdgeType.OBSERVED_IN) for observation in sorted(given)])
    entities.edited(tx)
    return new.id


def resee(tx: Transaction, id: int, observation_ids: Iterable[int]) -> None:
    """Make an entity what some of its sightings alone make of it, history included."""
    (old,) = entities.states_of(tx.conn, [id])
    entities.forget_places(tx, id)
    _resee(tx, _unseen(id, old), old, observation_ids)


def _resee(tx: Transaction, state: EntityState, old: EntityState, observation_ids: Iterable[int]) -> None:
    _replay(tx, state, observation_ids)
    _keep_doubt(state, old)
    entities.save(tx, [state])


def _is_id(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and NO_ID < int(value) < 1 << 63


def checked_ids(argument: str, ids: Iterable[int]) -> set[int]:
    """Return ids; raises InvalidArgument where there is none, or anything else among them."""
    given = list(ids) if isinstance(ids, Iterable) else []
    if not given or not all(map(_is_id, given)):
        raise InvalidArgument(argument, f"got {shown(ids)}, allowed is a list of ids")
    return {int(id_) for id_ in given}


def _kin_labels(
    conn: sqlite3.Connection, labels: set[str], threshold: float, other_names: Callable[[str], Iterable[str]]
) -> dict[str, list[str]]:
    """Return, for each label, the labels of entities that may name the same thing, itself among them."""
    if not labels:
        return {}
    model = vectors.active_model(conn)
    there = set(entities.labels(conn))
    known = vectors.of_bodies(conn, model.id, there) if model is not None else {}
    names = list(known)
    matrix = np.stack([known[name] for name in names]) if names else np.empty((0, 0), dtype=np.float32)
    found = {}
    for label in labels:
        near = there.intersection(other_names(label))
        if label in known:
            near.update(names[i] for i in np.flatnonzero(matrix @ known[label] >= threshold))
        kin = sorted(name for name in near if name != label and association.may_be_one(label, name))
        found[label] = [label, *kin]
    return found


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
    return not entities.seen_together(conn, [(a.id, b.id)]) and not identity.were_split(conn, a.id, b.id)


def _merge(tx: Transaction, keep: EntityState, gone: EntityState) -> None:
    """Make one of two; keep is the older."""
    assert keep.position is not None and gone.position is not None
    later = max(keep, gone, key=lambda state: state.newest)
    keep.position = presence.join((keep.weight, gone.weight), (keep.position, gone.position))
    keep.weight += gone.weight
    keep.stddev = presence.deviation(keep.weight, keep.source)
    keep.sightings += gone.sightings
    keep.session_id, keep.last_seen = later.newest
    keep.confidence, keep.missed = later.confidence, later.missed
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
    for node in sorted(nodes.fetch(tx.conn, observation_ids), key=lambda node: (node.session_id, node.stamp, node.id)):
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
        presence.see(state, sighting, (node.session_id, node.stamp), np.zeros(3))


def _keep_doubt(state: EntityState, old: EntityState) -> None:
    """Doubt a part of an entity as the whole was, where the looks that missed the whole should have shown the part."""
    if state.position is None or old.position is None or math.dist(state.position, old.position) > ELSEWHERE:
        return
    if old.missed:
        state.confidence, state.missed = min(state.confidence, old.confidence), old.missed
        state.missing = old.missing and not state.tentative


def _elsewhere(state: EntityState, node: Node) -> bool:
    if state.position is None or node.position is None:
        return False
    return math.dist(state.position, node.position) > ELSEWHERE
