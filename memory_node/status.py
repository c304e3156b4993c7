"""What `Memory.status` tells: counts, sizes, backlog, layers, warnings, under the names of the MemoryStatus message."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from memory_node.graph import Kind, Tier
from memory_node.storage import nodes

if TYPE_CHECKING:
    from memory_node.rooms import Rooms

_SECOND = 1_000_000_000


@dataclass(frozen=True)
class LayerStatus:
    """What became of one layer's readings.

    Attributes:
        received, stored, folded, refused: readings since the memory was opened.
        age: s since the stamp of the last one, None before the first.
    """

    name: str
    received: int = 0
    stored: int = 0
    folded: int = 0
    refused: int = 0
    age: float | None = None
    is_internal_state: bool = False


@dataclass(frozen=True)
class MemoryStatus:
    """State of a memory.

    Attributes:
        observations, episodes, gists, entities: rows by kind, archived ones included.
        working: rows in the working buffer. short_term, long_term, archived: observations by tier.
        vectors: in the index. backlog: texts that wait for their vector.
        model, dimension: of the embedder; "" and 0 without one.
        index_state: "ready", "loading", "off" (no model) or "failed".
        db_bytes, wal_bytes: size of the file and of its write-ahead log.
        position_age: s since the last known pose, None when none is known.
        refused: rows that could not be written since the memory was opened.
    """

    observations: int
    episodes: int
    gists: int
    entities: int
    working: int
    short_term: int
    long_term: int
    archived: int
    vectors: int
    backlog: int
    layers: tuple[LayerStatus, ...]
    session: int
    frame_id: str
    map_id: str
    model: str
    dimension: int
    index_state: str
    db_bytes: int
    wal_bytes: int
    position_age: float | None
    refused: int
    warnings: tuple[str, ...]


def status_of(rooms: Rooms) -> MemoryStatus:
    """Read the state of everything; costs a look at the columns in memory and at one small index of SQLite."""
    with rooms.db.read() as conn:
        archived = nodes.archived(conn)
    view = rooms.projections.rows.view
    alive = view.alive()
    kinds = np.bincount(view.columns["kind"][alive], minlength=len(Kind) + 1)
    seen = alive[view.columns["kind"][alive] == Kind.OBSERVATION]
    tiers = np.bincount(view.columns["tier"][seen], minlength=len(Tier))
    model = rooms.projections.model
    situation = rooms.situation
    if not rooms.db.read_only:
        rooms.recorder.take_refusals()

    def count(kind: Kind) -> int:
        return int(kinds[kind]) + archived.get(kind, 0)

    return MemoryStatus(
        observations=count(Kind.OBSERVATION),
        episodes=count(Kind.EPISODE),
        gists=count(Kind.GIST),
        entities=int(kinds[Kind.ENTITY]),
        working=0 if rooms.db.read_only else len(rooms.buffer),
        short_term=int(tiers[Tier.SHORT_TERM]),
        long_term=int(tiers[Tier.LONG_TERM]),
        archived=archived.get(Kind.OBSERVATION, 0),
        vectors=len(rooms.projections.vectors),
        backlog=0 if rooms.embedding is None else rooms.embedding.backlog(),
        layers=_layers(rooms),
        session=situation.session_id,
        frame_id=situation.frame,
        map_id=situation.map_id,
        model="" if model is None else model.name,
        dimension=0 if model is None else model.dim,
        index_state=_index_state(rooms),
        db_bytes=rooms.db.size_bytes(),
        wal_bytes=rooms.db.wal_bytes(),
        position_age=_position_age(rooms),
        refused=0 if rooms.db.read_only else rooms.buffer.refused,
        warnings=tuple(_warnings(rooms)),
    )


def _layers(rooms: Rooms) -> tuple[LayerStatus, ...]:
    now = rooms.clock.now_ns()
    with rooms.situation.lock:
        return tuple(
            LayerStatus(
                name=name,
                received=counts.received + counts.refused,
                stored=counts.stored,
                folded=counts.folded,
                refused=counts.refused,
                age=None if counts.last_stamp is None else max(0.0, (now - counts.last_stamp) / _SECOND),
                is_internal_state=counts.internal,
            )
            for name, counts in rooms.situation.layers.items()
        )


def _index_state(rooms: Rooms) -> str:
    if rooms.embedding is not None and rooms.embedding.error:
        return "failed"
    if rooms.projections.model is None:
        return "off" if rooms.embedding is None else "loading"
    return "ready" if rooms.projections.tail == 0 else "loading"


def _position_age(rooms: Rooms) -> float | None:
    now = rooms.clock.now_ns()
    latest = rooms.track.latest_at(now)
    return None if latest is None else (now - latest.stamp) / _SECOND


def _warnings(rooms: Rooms) -> list[str]:
    found = [warning for warning in (rooms.db.note, rooms.clock_watch.warning) if warning]
    if rooms.embedding is not None and rooms.embedding.error:
        found.append(f"answers are by words only: {rooms.embedding.error}")
    elif rooms.embedding is not None and rooms.embedding.refusal:
        found.append(f"some texts have no vector: {rooms.embedding.refusal}")
    age = _position_age(rooms)
    if age is not None and age > rooms.track.max_age:
        name = "position_max_age" if rooms.track.holds else "stale_after"
        limit = f"{name}, {rooms.track.max_age:g} s"
        found.append(f"the robot's position is not known: its last pose is older than {limit}")
    if not rooms.db.read_only:
        if rooms.buffer.refused:
            found.append(f"{rooms.buffer.refused} rows could not be written")
        found += [f"job {job.name} failed: {job.error}" for job in rooms.runner.states() if job.error]
    return found
