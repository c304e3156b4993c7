"""A database with a clock, a session and the jobs, without the rest of the memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from support.fakes import SECOND, FakeClock, WordEmbedder

from memory_node.config import Settings
from memory_node.graph import Detection, Kind, Look, Node, Position, PositionSource, Tier
from memory_node.housekeeping.entities import MergeEntities
from memory_node.housekeeping.importance import Recalls
from memory_node.housekeeping.name_things import NameThings
from memory_node.housekeeping.runtime import JobContext, JobRunner, JobState
from memory_node.housekeeping.schedule import standard_jobs
from memory_node.ingest.entities import EntityTracker
from memory_node.protocols import Summarizer
from memory_node.storage import edges, gists, nodes, sessions, texts, vectors
from memory_node.storage.database import Database, Transaction

DAY = 86_400.0


class Store:
    """Rows are stored at once; housekeeping runs on request. Times are given in seconds."""

    def __init__(
        self,
        path: Path,
        clock: FakeClock | None = None,
        summarizer: Summarizer | None = None,
        embedder: WordEmbedder | None = None,
        clock_kind: str = "system",
        reason: str = "start",
        wall: float = 0.0,
        entities: bool = False,
        **settings: Any,
    ) -> None:
        self.clock = clock or FakeClock(DAY)
        self.settings = Settings().changed(**settings)
        self.embedder = embedder
        self.db = Database.open(path)
        self.recalls = Recalls()
        self.wall = wall
        self.session_id = 0
        self.new_session(reason, clock_kind)
        if embedder is not None:
            self.model = self.db.write(lambda tx: vectors.open_model(tx, embedder.name, embedder.dim))
        self.context = JobContext(
            db=self.db, settings=lambda: self.settings, now_ns=self.clock.now_ns, session_id=lambda: self.session_id,
            summarizer=summarizer, similar=self.similar if embedder else None,
        )
        self.tracker = EntityTracker(lambda: self.settings, self.label_vectors)
        others = [MergeEntities(), NameThings(self.tracker)] if entities else []
        self.runner = JobRunner(self.context, standard_jobs(self.recalls, others))

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.runner.close()
        self.db.close()

    def new_session(self, reason: str, clock_kind: str = "system") -> None:
        now, wall = self.clock.now_ns(), round(self.wall * SECOND)
        self.session_id = self.db.write(
            lambda tx: sessions.open_session(
                tx, clock=clock_kind, stamp=now, wall=wall, frame="map", map_id="home", reason=reason
            )
        )

    def add(
        self, text: str, stamp: float, position: Position | None = (0.0, 0.0, 0.0), layer: str = "scene", **more: Any
    ) -> int:
        return self.add_many([(text, stamp, position, layer)], **more)[0]

    def add_many(self, rows: Iterable[tuple[str, float, Position | None, str]], **more: Any) -> list[int]:
        made = [
            Node(
                id=0, kind=Kind.OBSERVATION, layer=layer, text=text, text_id=None, stamp=round(stamp * SECOND),
                last_stamp=round(stamp * SECOND), position=position, frame="map", map_id="home",
                position_source=PositionSource.OBSERVER if position else PositionSource.NONE,
                session_id=self.session_id,
            )._replace(**more)
            for text, stamp, position, layer in rows
        ]

        def work(tx: Transaction) -> list[int]:
            newest = max(node.stamp for node in made)
            sessions.touch(tx, self.session_id, newest, self.clock.now_ns(), round(self.wall * SECOND))
            return nodes.insert_many(tx, made)

        return self.db.write(work)

    def add_reading(self, text: str, stamp: float, layer: str, value: float | None) -> int:
        def work(tx: Transaction) -> int:
            nodes.layer_id(tx, layer, internal=True)
            return 0

        self.db.write(work)
        return self.add(text, stamp, None, layer, value=value)

    def note(self, text: str, stamp: float, layer: str = "notes") -> int:
        return self.add(text, stamp, None, layer, tier=Tier.LONG_TERM)

    def look(self, stamp: float, *things: tuple[str, Position]) -> list[int]:
        """One message of a detector: what it saw where; returns ids of the observations."""
        detections = tuple(Detection(label, 0.9, place) for label, place in things)

        def work(tx: Transaction) -> list[int]:
            rows = [
                Node(
                    id=0, kind=Kind.OBSERVATION, layer="detections", text=label, text_id=None,
                    stamp=round(stamp * SECOND), last_stamp=round(stamp * SECOND), position=place, frame="map",
                    map_id="home", position_source=PositionSource.MEASURED, session_id=self.session_id,
                )
                for label, place in things
            ]
            ids = nodes.insert_many(tx, rows)
            self.tracker.observe(
                tx,
                Look(
                    "detections", round(stamp * SECOND), "home", detections, tuple(ids), None, 5.0, 1.2, self.session_id
                ),
            )
            return ids

        return self.db.write(work)

    def label_vectors(self, conn: Any, labels: list[str]) -> dict[str, Any]:
        return vectors.of_bodies(conn, self.model.id, labels) if self.embedder is not None else {}

    def embed(self) -> None:
        """Embed every text that waits."""
        assert self.embedder is not None
        with self.db.read() as conn:
            waiting = texts.unembedded(conn, self.model.id, 100_000)
        if waiting:
            found = self.embedder.embed([body for _, body in waiting])

            def work(tx: Transaction) -> None:
                for (id_, _), vector in zip(waiting, found, strict=True):
                    vectors.put_texts(tx, self.model.id, {id_: [vector]})

            self.db.write(work)

    def similar(self, vector: Any, least: float, layer_id: int) -> Sequence[int]:
        with self.db.read() as conn:
            sql = "SELECT DISTINCT text_id FROM node WHERE text_id IS NOT NULL AND layer_id = ? AND tier = ?"
            ids = [row[0] for row in conn.execute(sql, (layer_id, int(Tier.LONG_TERM)))]
            found, rows = vectors.of_texts(conn, self.model.id, ids)
        return list(found[rows @ vector >= least].tolist())

    def run(self, *names: str, **how: Any) -> list[JobState]:
        states = [self.runner.run(name, **how) for name in names or self.runner.jobs]
        for state in states:
            assert not state.error, f"{state.name}: {state.error}"
        return states

    def all(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        with self.db.read() as conn:
            return conn.execute(sql, parameters).fetchall()

    def one(self, sql: str, *parameters: Any) -> Any:
        return self.all(sql, *parameters)[0][0]

    def node(self, id_: int) -> Node:
        with self.db.read() as conn:
            return nodes.fetch(conn, [id_])[0]

    def gists(self) -> list[Any]:
        ids = [row[0] for row in self.all("SELECT id FROM gist ORDER BY id")]
        with self.db.read() as conn:
            return gists.get_many(conn, ids)

    def members(self, gist_id: int) -> list[int]:
        with self.db.read() as conn:
            return edges.targets(conn, gist_id, edges.EdgeType.SUMMARIZES)

    def write(self, work: Callable[[Transaction], Any]) -> Any:
        return self.db.write(work)
