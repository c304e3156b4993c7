"""One batch of the working buffer in one transaction: texts, rows, repeats, episodes, entities, body events."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from memory_node.graph import EVENTS_LAYER, NO_ID, EdgeType, Kind, Look, Node, PositionSource
from memory_node.ingest.body import BodyEvent, BodyWatch
from memory_node.ingest.buffer import Entry, Repeat
from memory_node.storage import body, edges, episodes, nodes, sessions, vectors

if TYPE_CHECKING:
    from memory_node.config import Settings
    from memory_node.storage.database import Database, Transaction

_SECOND = 1_000_000_000
_EVENT_IMPORTANCE = 0.8
_FOLLOWS = 4096
_REMEMBERED = 3600 * _SECOND
"""ns: a reading after a restart is compared with those since; what changes in a longer pause is no event."""
_READINGS = 64


class EntityObserver(Protocol):
    """What takes the looks of a batch, inside its transaction."""

    def observe(self, tx: Transaction, look: Look) -> None: ...


class BatchWriter:
    """Writes entries. Its caches live in the writer thread only.

    Args:
        given_model: id of the model that vectors given by callers belong to; called inside the transaction.
        now_ns: the node's clock.
    """

    def __init__(
        self,
        db: Database,
        settings: Callable[[], Settings],
        entities: EntityObserver,
        given_model: Callable[[Transaction, int], int],
        now_ns: Callable[[], int],
    ) -> None:
        self._db = db
        self._settings = settings
        self._entities = entities
        self._given_model = given_model
        self._now_ns = now_ns
        self._body = BodyWatch()
        self._layers: dict[str, bool] = {}
        self._events: deque[tuple[int, int, int]] = deque(maxlen=64)  # id, first and last stamp that are near it
        self._running: dict[str, tuple[int, int]] = {}  # layer -> when its last event was noticed, and its row
        self._follows: dict[int, int] = {}  # row that a gist holds, and the one that goes on with its repeats

    def write(self, entries: Sequence[Entry]) -> None:
        """Commit all entries, or none of them and raise."""
        self._db.write(lambda tx: self._write(tx, entries))

    def forget(self) -> None:
        """Drop readings and events of the past: the clock has jumped. Waits for the batch at hand."""
        self._db.write(lambda _: self._reset())

    def _write(self, tx: Transaction, entries: Sequence[Entry]) -> None:
        tx.on_rollback(self._reset)
        entries = self._continued(tx, entries)
        felt = [entry for entry in entries if entry.internal]
        heard = [node for entry in felt for node in (*entry.nodes, *(repeat.node for repeat in entry.repeats))]
        events, more = self._body_events(tx, heard)
        readings = [node for entry in felt for node in entry.nodes]
        readings += _orphans(tx, [repeat.node for entry in felt for repeat in entry.repeats], readings)
        seen = [node for entry in entries if not entry.internal for node in entry.nodes] + events
        repeats = [repeat.node for entry in entries for repeat in entry.repeats]
        seen += _orphans(tx, repeats, readings + seen)
        self._name_layers(tx, readings, seen)
        nodes.insert_many(tx, readings + seen)
        self._add_vectors(tx, entries)
        self._count_repeats(tx, repeats, readings + seen)
        _join_episodes(tx, readings + seen)
        self._join_events(tx, seen, events)
        self._tell_more(tx, more)
        for entry in entries:
            if entry.look is not None:
                self._entities.observe(tx, entry.look)
        _touch_sessions(tx, readings + heard + seen, self._now_ns())

    def _reset(self) -> None:
        self._body.clear()
        self._events.clear()
        self._running.clear()
        self._layers.clear()
        self._follows.clear()

    def _continued(self, tx: Transaction, entries: Sequence[Entry]) -> Sequence[Entry]:
        """The entries, where a repeat of a row that a gist holds by now begins a new row, on which later ones count."""
        counted_on = {id: self._follows.get(id, id) for entry in entries for id in (r.node.id for r in entry.repeats)}
        held = nodes.summarised(tx.conn, counted_on.values()) if counted_on else set()
        self._follows.update({id: tx.new_id() for id, last in counted_on.items() if last in held})
        while len(self._follows) > _FOLLOWS:
            self._follows.pop(next(iter(self._follows)))
        return [replace(entry, repeats=tuple(map(self._following, entry.repeats))) for entry in entries]

    def _following(self, repeat: Repeat) -> Repeat:
        id = self._follows.get(repeat.node.id, repeat.node.id)
        return repeat if id == repeat.node.id else replace(repeat, node=repeat.node._replace(id=id))

    def _name_layers(self, tx: Transaction, readings: Sequence[Node], seen: Sequence[Node]) -> None:
        """Have each layer stored as interoception or perception before its first row is."""
        for rows, internal in ((readings, True), (seen, False)):
            for name in {node.layer for node in rows}:
                if self._layers.get(name) is not internal:
                    nodes.layer_id(tx, name, internal)
                    self._layers[name] = internal

    def _add_vectors(self, tx: Transaction, entries: Sequence[Entry]) -> None:
        rows = [
            (node.id, vector)
            for entry in entries
            for node, vector in zip(entry.nodes, entry.vectors or (None,) * len(entry.nodes), strict=True)
            if vector is not None
        ]
        rows += [(r.node.id, r.vector) for entry in entries for r in entry.repeats if r.vector is not None]
        if rows:
            given = np.stack([vector for _, vector in rows])
            text_of = nodes.text_ids(tx.conn, [id for id, _ in rows])
            vectors.add_texts(tx, self._given_model(tx, given.shape[1]), [text_of[id] for id, _ in rows], given)

    def _count_repeats(self, tx: Transaction, repeats: Sequence[Node], new: Sequence[Node]) -> None:
        """Count repeats on the rows they repeat, whose episodes last as long then."""
        rows = {id(node) for node in new}
        counted: dict[int, tuple[int, int]] = {}
        for repeat in repeats:
            if id(repeat) not in rows:
                number, last = counted.get(repeat.id, (0, repeat.stamp))
                counted[repeat.id] = (number + 1, max(last, repeat.stamp))
        if counted:
            nodes.count_repeats(tx, [(id_, number, last) for id_, (number, last) in counted.items()])
            episodes.reach(tx, counted, round(self._settings().episode_max_duration * _SECOND))

    def _body_events(self, tx: Transaction, readings: Sequence[Node]) -> tuple[list[Node], dict[int, BodyEvent]]:
        """New events as rows, and by the id of its row what there is more to tell of an event."""
        window = self._settings().event_window
        new: list[Node] = []
        more: dict[int, BodyEvent] = {}
        for node in readings:
            if node.value is None:
                continue
            if not self._body.knows(node.layer):
                self._body.remember(node.layer, _before(tx, node))
            for event in self._body.observe(node.layer, node.value, node.stamp, node.unit, node.position, window):
                known, id = self._running.get(node.layer, (0, NO_ID))
                if known == event.noticed:
                    more[id] = event
                else:
                    new.append(_event_node(tx.new_id(), event, node))
                    self._running[node.layer] = event.noticed, new[-1].id
        told = {node.id: more.pop(node.id) for node in new if node.id in more}
        return [_with_more(node, told[node.id]) if node.id in told else node for node in new], more

    def _tell_more(self, tx: Transaction, more: Mapping[int, BodyEvent]) -> None:
        """Let the rows of events tell what they have become, joined to what is near that too."""
        near = round(self._settings().event_window * _SECOND)
        for id, event in more.items():
            changed = {"text": event.text, "last_stamp": event.stamp, "metadata": _event_facts(event)}
            if not nodes.update(tx, id, **changed):
                continue
            for place, (known, first, last) in enumerate(self._events):
                if known == id:
                    self._events[place] = id, first, max(last, event.stamp + near)
                    session = tx.conn.execute("SELECT session_id FROM node WHERE id = ?", (id,)).fetchone()[0]
                    rows = nodes.perceived_between(tx.conn, session, last + 1, event.stamp + near)
                    edges.add_many(tx, [(row, id, EdgeType.NEAR_EVENT) for row in rows])

    def _join_events(self, tx: Transaction, seen: Sequence[Node], events: Sequence[Node]) -> None:
        """NEAR_EVENT edges: from rows near a known event, and to a new event from the rows that were there before."""
        near = round(self._settings().event_window * _SECOND)
        rows = [
            (node.id, event, EdgeType.NEAR_EVENT)
            for node in seen
            for event, first, last in self._events
            if node.id != event and first <= node.stamp <= last
        ]
        for event in events:
            start = event.last_stamp - round(float(event.metadata["seconds"]) * _SECOND) - near
            end = event.last_stamp + near
            earlier = nodes.perceived_between(tx.conn, event.session_id, start, end)
            rows += [(id, event.id, EdgeType.NEAR_EVENT) for id in earlier if id != event.id]
            self._events.append((event.id, start, end))
        if rows:
            edges.add_many(tx, rows)


def _orphans(tx: Transaction, repeats: Sequence[Node], new: Sequence[Node]) -> list[Node]:
    """The first repeat of each row that is neither stored nor new, since it was refused: it becomes the row."""
    if not repeats:
        return []
    known = {node.id for node in new}
    known |= nodes.existing(tx.conn, {repeat.id for repeat in repeats} - known)
    first: dict[int, Node] = {}
    for repeat in repeats:
        if repeat.id not in known:
            first.setdefault(repeat.id, repeat)
    return list(first.values())


def _join_episodes(tx: Transaction, rows: Sequence[Node]) -> None:
    members = [(node.id, node.episode_id, EdgeType.BELONGS_TO) for node in rows if node.episode_id != NO_ID]
    if members:
        edges.add_many(tx, members)


def _touch_sessions(tx: Transaction, rows: Sequence[Node], now: int) -> None:
    newest: dict[int, int] = {}
    for node in rows:
        newest[node.session_id] = max(node.stamp, newest.get(node.session_id, node.stamp))
    for session_id, stamp in newest.items():
        sessions.touch(tx, session_id, stamp, now, time.time_ns())


def _event_node(id: int, event: BodyEvent, reading: Node) -> Node:
    return Node(
        id=id,
        kind=Kind.OBSERVATION,
        layer=EVENTS_LAYER,
        text=event.text,
        text_id=None,
        stamp=event.stamp,
        last_stamp=event.stamp,
        stamp_source=reading.stamp_source,
        position=event.position,
        position_source=PositionSource.NONE if event.position is None else PositionSource.OBSERVER,
        frame=reading.frame,
        map_id=reading.map_id,
        importance=_EVENT_IMPORTANCE,
        session_id=reading.session_id,
        episode_id=reading.episode_id,
        metadata=_event_facts(event),
    )


def _event_facts(event: BodyEvent) -> dict[str, object]:
    return {
        "layer": event.layer,
        "before": event.before,
        "after": event.after,
        "unit": event.unit,
        "seconds": (event.stamp - event.start) / _SECOND,
    }


def _with_more(row: Node, event: BodyEvent) -> Node:
    return row._replace(text=event.text, last_stamp=event.stamp, metadata=_event_facts(event))


def _before(tx: Transaction, reading: Node) -> list[tuple[int, float]]:
    """Stamps (ns) and values that the layer had before a reading, which is its first since the start."""
    first = sessions.comparable_since(tx.conn)
    return body.values_before(tx.conn, reading.layer, reading.stamp, _REMEMBERED, _READINGS, first)
