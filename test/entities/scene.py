"""A memory that is shown things, and asked; and a tracker with nothing but a database around it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

from support.fakes import SECOND, FakeClock, WordEmbedder

from memory_node.config import Settings
from memory_node.graph import Detection, Entity, Kind, Look, Node, Pose, Position, PositionSource
from memory_node.housekeeping.entities import MergeEntities
from memory_node.housekeeping.name_things import NameThings
from memory_node.housekeeping.runtime import JobContext, JobRunner
from memory_node.ingest.entities import EntityTracker
from memory_node.memory import Memory
from memory_node.protocols import NamedThing, SummaryRow
from memory_node.storage import entities, nodes, sessions
from memory_node.storage.database import Database, Transaction

A, NEARBY = (2.0, 0.0, 0.5), (2.9, 0.0, 0.5)


class Scene:
    """A tracker and a database. Times are in seconds; `look` is one message, a second after the last."""

    def __init__(self, folder: Path, vectors: object = None, **settings: object) -> None:
        self.db = Database.open(folder / "scene.db")
        self.settings = Settings().changed(**settings)
        self.vectors = vectors or {}
        self.tracker = EntityTracker(lambda: self.settings, self._label_vectors)
        self.second = 1000.0
        self.session, self.newest = 0, 0
        self.begin("start")

    def __enter__(self) -> Scene:
        return self

    def __exit__(self, *_: object) -> None:
        self.db.close()

    def begin(self, reason: str, second: float | None = None) -> None:
        """Begin a session, its clock at second, as now when None."""
        self.second = self.second if second is None else second
        stamp = round(self.second * SECOND)

        def open_session(tx: Transaction) -> int:
            sessions.touch(tx, self.session, self.newest, self.newest, wall=0)
            return sessions.open_session(
                tx, clock="sim", stamp=stamp, wall=0, frame="map", map_id="house", reason=reason
            )

        self.session, self.newest = self.db.write(open_session), stamp

    def _label_vectors(self, _conn: object, labels: list[str]) -> dict[str, object]:
        return {label: self.vectors[label] for label in labels if label in self.vectors}

    def look(
        self,
        *things: tuple[str, Position | None] | Detection,
        at: Sequence[float] | None = None,
        layer: str = "detections",
        pause: float = 1.0,
        fov: float = 1.2,
        reach: float = 5.0,
    ) -> list[int]:
        """Show things; at: (x, y, yaw) of the robot. Returns the ids of their observations."""
        return self.db.write(
            lambda tx: self.look_in(tx, *things, at=at, layer=layer, pause=pause, fov=fov, reach=reach)
        )

    def look_in(
        self,
        tx: Transaction,
        *things: tuple[str, Position | None] | Detection,
        at: Sequence[float] | None = None,
        layer: str = "detections",
        pause: float = 1.0,
        fov: float = 1.2,
        reach: float = 5.0,
    ) -> list[int]:
        self.second += pause
        stamp = round(self.second * SECOND)
        if things:
            self.newest = stamp
        seen = tuple(t if isinstance(t, Detection) else Detection(t[0], 0.9, t[1]) for t in things)
        ids = [tx.new_id() for _ in seen]
        pose = None if at is None else Pose(stamp, (at[0], at[1], 0.0), at[2] if len(at) > 2 else None)
        nodes.insert_many(
            tx, [self._node(id_, layer, thing, stamp, pose) for id_, thing in zip(ids, seen, strict=True)]
        )
        self.tracker.observe(tx, Look(layer, stamp, "house", seen, tuple(ids), pose, reach, fov, self.session))
        return ids

    def say(self, text: str, position: Position | None) -> int:
        """Store a sentence, a second after the last; returns its id. The position is the robot's."""
        self.second += 1.0
        stamp = round(self.second * SECOND)
        node = Node(
            id=0,
            kind=Kind.OBSERVATION,
            layer="scene",
            text=text,
            text_id=None,
            stamp=stamp,
            last_stamp=stamp,
            position=position,
            position_source=PositionSource.OBSERVER if position else PositionSource.NONE,
            frame="map",
            map_id="house",
            session_id=self.session,
        )
        return self.db.write(lambda tx: nodes.insert(tx, node))

    def _node(self, id_: int, layer: str, thing: Detection, stamp: int, pose: Pose | None) -> Node:
        measured = thing.position is not None and all(math.isfinite(v) for v in thing.position)
        place = thing.position if measured else (pose.position if pose else None)
        source = PositionSource.MEASURED if measured else PositionSource.OBSERVER
        return Node(
            id=id_,
            kind=Kind.OBSERVATION,
            layer=layer,
            text=thing.label,
            text_id=None,
            stamp=stamp,
            last_stamp=stamp,
            position=place,
            position_source=source if place else PositionSource.NONE,
            frame="map",
            map_id="house",
            session_id=self.session,
        )

    def known(self) -> list[Entity]:
        """All entities that stand for themselves, by id."""
        with self.db.read() as conn:
            rows = conn.execute("SELECT id FROM entity WHERE merged_into = 0 ORDER BY id").fetchall()
            return entities.get_many(conn, [row[0] for row in rows])

    def only(self) -> Entity:
        """The one entity there is."""
        (entity,) = self.known()
        return entity

    def observations(self, id_: int) -> list[int]:
        with self.db.read() as conn:
            return entities.observations(conn, id_)

    def rows(self) -> list[tuple[object, ...]]:
        """Everything that is stored of entities, to tell whether anything changed."""
        with self.db.read() as conn:
            return [
                *conn.execute("SELECT * FROM entity ORDER BY id"),
                *conn.execute("SELECT * FROM entity_place ORDER BY id"),
                *conn.execute("SELECT * FROM edge ORDER BY source, type, target"),
                *conn.execute("SELECT * FROM node WHERE kind = 4 ORDER BY id"),
            ]


class Namer:
    """A language model that answers by a rule."""

    name = "namer"

    def __init__(self, rule: Callable[[Sequence[SummaryRow]], object]) -> None:
        self.rule = rule
        self.rows: list[SummaryRow] = []

    def summarize(self, rows: Sequence[SummaryRow], max_chars: int) -> str:
        return "things"

    def extract(self, rows: Sequence[SummaryRow]) -> list[NamedThing]:
        self.rows += rows
        return self.rule(rows)  # type: ignore[return-value]


def runner(scene: Scene, namer: Namer | None = None) -> JobRunner:
    context = JobContext(
        db=scene.db,
        settings=lambda: scene.settings,
        now_ns=lambda: 0,
        session_id=lambda: scene.session,
        summarizer=namer,
    )
    return JobRunner(context, [MergeEntities(), NameThings(scene.tracker)])


def drifted(scene: Scene) -> tuple[int, int]:
    """A cup that after drift was taken for another one; returns both ids."""
    for _ in range(6):
        scene.look(("cup", A))
    for _ in range(2):
        scene.look(("cup", NEARBY))
    first, second = scene.known()
    return first.id, second.id


def open_memory(folder: Path, same: dict[str, str] | None = None, **settings: object) -> tuple[Memory, FakeClock]:
    """Return a memory with a clock set by hand and an embedder that makes the words of `same` alike."""
    clock = FakeClock()
    embedder = WordEmbedder(same=same)
    return Memory.open(folder / "robot.db", embedder=embedder, clock=clock, settings=settings or None), clock


def show(memory: Memory, clock: FakeClock, *things: tuple[str, Position], at: Sequence[float], times: int = 3) -> None:
    """Record a message a second, `times` of them, from a pose (x, y, yaw)."""
    for _ in range(times):
        clock.advance(1.0)
        memory.record_detections(
            [Detection(label, 0.9, place) for label, place in things], pose=(at[0], at[1], 0.0, at[2])
        )
    memory.flush()
