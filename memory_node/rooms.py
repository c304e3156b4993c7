"""Builds the rooms of one memory in their order, closes them in reverse, and does what touches several of them."""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from memory_node.config import Settings
from memory_node.errors import StorageError
from memory_node.housekeeping import episodes as episode_keeping
from memory_node.housekeeping.consolidation import Consolidation, consolidate
from memory_node.housekeeping.duplicates import store_note
from memory_node.housekeeping.entities import MergeEntities, split_entity
from memory_node.housekeeping.importance import BLOCK, MAX_WAITING, Recalls
from memory_node.housekeeping.name_things import NameThings
from memory_node.housekeeping.purge import purge
from memory_node.housekeeping.runtime import Job, JobContext, JobRunner, JobState
from memory_node.housekeeping.schedule import standard_jobs
from memory_node.index.projections import Projections
from memory_node.ingest.buffer import WorkingBuffer
from memory_node.ingest.clockwatch import JUMPED_AHEAD, ClockWatch, clock_kind, clock_source
from memory_node.ingest.embedding import EmbeddingQueue
from memory_node.ingest.entities import EntityTracker
from memory_node.ingest.recorder import Recorder
from memory_node.ingest.repeats import Held, Sought
from memory_node.ingest.situation import Situation, map_name
from memory_node.ingest.track import PositionTrack
from memory_node.ingest.writer import BatchWriter
from memory_node.retrieval import concepts, naming
from memory_node.retrieval.chunks import split
from memory_node.retrieval.search import Searcher
from memory_node.storage import episodes, nodes, sessions, usage, vectors
from memory_node.storage.database import Database, Transaction
from memory_node.tools.context import ToolContext

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memory_node.housekeeping.episodes import EndedEpisode
    from memory_node.protocols import Clock, Embedder, Summarizer
    from memory_node.storage.vectors import Model

logger = logging.getLogger(__name__)

GIVEN = "given"
"""Name of the model of vectors that callers bring when there is no embedder."""


@dataclass
class SettingsBox:
    """The settings of this moment, replaced as a whole."""

    value: Settings

    def __call__(self) -> Settings:
        return self.value


class Rooms:
    """Everything behind the facade. Read-only rooms have no buffer, recorder or housekeeping."""

    def __init__(
        self,
        embedder: Embedder | None,
        summarizer: Summarizer | None,
        clock: Clock,
        settings: Settings,
        read_only: bool,
    ) -> None:
        self.settings = SettingsBox(settings)
        self.clock = clock
        self.embedder = embedder
        self.track = PositionTrack()
        self.track.follow(settings)
        self.db = Database.open(
            settings.db_path, read_only=read_only, durability=settings.durability, on_corrupt=settings.on_corrupt
        )
        try:
            self._build_readers(read_only)
            if not read_only:
                self._build_writers(summarizer)
        except BaseException:
            self.db.close()
            raise

    def _build_readers(self, read_only: bool) -> None:
        model = self._known_model(read_only)
        self.projections = Projections(self.db, model, self.settings())
        if not read_only:
            self.db.add_listener(self.projections.catch_up)
        self.searcher = Searcher(self.db, self.projections)
        self.situation = self._situation(read_only)
        self.embedding: EmbeddingQueue | None = None
        if self.embedder is not None:
            size = self.settings().embed_batch_size
            self.embedding = EmbeddingQueue(
                self.db, self.embedder, split, size, model, self.projections.use_model, naming.asked_of
            )
        self.clock_watch = ClockWatch(lambda: clock_kind(self.clock), lambda: clock_source(self.clock))
        self.recalls = Recalls()
        self.context = ToolContext(
            db=self.db,
            searcher=self.searcher,
            get_settings=self.settings,
            clock=self.clock,
            embed=self._embed_query,
            embed_names=lambda names: None if self.embedding is None else self.embedding.embed_names(names),
            get_pose=lambda: self.track.latest_at(self.clock.now_ns()),
            get_map_id=lambda: self.situation.map_id,
            get_newest=lambda: self.projections.rows.view.newest,
            note_recall=lambda ids: self.recalls.note(ids, self.clock.now_ns()),
        )

    def _build_writers(self, summarizer: Summarizer | None) -> None:
        self.entities = EntityTracker(self.settings, self._label_vectors, concepts.other_names)
        self.writer = BatchWriter(self.db, self.settings, self.entities, self._given_model, self.clock.now_ns)
        self.buffer = WorkingBuffer(self.writer.write, self.settings)
        self.recorder = Recorder(
            self.buffer, self.situation, self.settings, self.db.new_id, self._dim, self._stored, self.clock.now_ns
        )
        if self.embedding is not None:
            self.db.add_listener(self.embedding.notify)
            self.embedding.start()
        context = JobContext(
            db=self.db,
            settings=self.settings,
            now_ns=self.clock.now_ns,
            session_id=self.session_id,
            summarizer=summarizer,
            similar=self._similar,
            save_index=self.projections.save,
            sorting=lambda: self.projections.rows.settling,
        )
        self.runner = JobRunner(context, self._jobs(), self.settings().consolidation_interval)

    def _jobs(self) -> list[Job]:
        return standard_jobs(self.recalls, [MergeEntities(concepts.other_names), NameThings(self.entities)])

    def close(self) -> None:
        """Commit what waits, save the caches, close the database."""
        if not self.db.read_only:
            self.runner.close()
            self.buffer.close()
            self._keep_recalls()
        if self.embedding is not None:
            self.embedding.close()
        self.projections.close()
        self.db.close()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Around a query: the thread's own rows are committed first, and what works in the background stands aside."""
        with nullcontext() if self.embedding is None else self.embedding.patience():
            if self.db.read_only:
                self.projections.follow(self._model_of)
                yield
                return
            self.recorder.wait_for_own()
            with self.db.foreground:
                yield

    def all_indexed(self) -> bool:
        """Whether every text has its vector, of the model that is active, and every vector is in the index."""
        waiting = 0 if self.embedding is None else self.embedding.backlog()
        known = self.embedding is None or (self.embedding.model is not None and self.embedding.model.active)
        if not known or waiting:
            return False
        # The commit of the last vectors can be read here before the listener has taken it in.
        self.projections.catch_up()
        return self.projections.vectors.settled

    # ---- sessions, maps, episodes

    def session_id(self) -> int:
        """The present session; looks at the clock first, so that a jump has opened a new one."""
        self.check_clock()
        return self.situation.session_id

    def check_clock(self) -> str:
        """Open a new session when the clock has jumped; returns why, or ""."""
        now = self.clock.now_ns()
        reason = self.clock_watch.look(now)
        if reason:
            self.new_session(reason)
        self.situation.look(now)
        return reason

    def new_session(self, reason: str) -> None:
        """Close running episodes as abandoned, drop what belongs to the old clock, mark what follows anew."""
        logger.warning("a new session begins: %s", reason)
        with self.situation.lock:
            self.buffer.drain()
            self.db.write(lambda tx: episode_keeping.close_abandoned(tx, self.settings()))
            self.situation.episode_id = 0
            self._open_session(reason)
        self.writer.forget()

    def change_map(self, map_id: str) -> None:
        """Let positions belong to another map from now on."""
        with self.situation.lock:
            if map_id == self.situation.given_map:
                return
            self.buffer.drain()
            self.situation.given_map = map_id
            self._open_session("map changed")

    def _open_session(self, reason: str) -> None:
        situation = self.situation
        # Odometry goes on where only the time is another one.
        kept = situation.map_id if reason == JUMPED_AHEAD else None
        situation.session_id, situation.map_id = self.db.write(
            lambda tx: self._insert_session(tx, reason, situation.frame, situation.given_map, kept)
        )
        situation.newest = self.clock.now_ns()
        self.track.clear()
        self.recorder.forget_repeats()

    def _insert_session(
        self, tx: Transaction, reason: str, frame: str, given_map: str, map_id: str | None = None
    ) -> tuple[int, str]:
        """Store a session that begins now, on a map of that name or on the one that is due; returns its id and map."""
        if map_id is None:
            map_id = map_name(frame, given_map, sessions.next_id(tx.conn))
        id = sessions.open_session(
            tx, clock=clock_kind(self.clock), stamp=self.clock.now_ns(), wall=time.time_ns(), frame=frame,
            map_id=map_id, reason=reason,
        )
        return id, map_id

    def start_episode(self, name: str, parent_id: int, metadata: Mapping[str, Any] | None) -> int:
        """Begin an episode; rows recorded from now on belong to it."""
        now, situation = self.clock.now_ns(), self.situation
        with situation.lock:
            self.buffer.drain()
            situation.episode_id = self.db.write(
                lambda tx: episode_keeping.start_episode(
                    tx, name, now, situation.session_id, parent_id, metadata, situation.map_id, situation.frame
                )
            )
            self.recorder.forget_repeats()
            return situation.episode_id

    def end_episode(self, id: int, status: str) -> EndedEpisode:
        """End an episode; rows recorded from now on belong to the one around it, if there is one."""
        now, settings = self.clock.now_ns(), self.settings()
        rewrite = self.runner.context.summarizer is not None

        def end(tx: Transaction) -> tuple[EndedEpisode, int]:
            ended = episode_keeping.end_episode(tx, id, status, now, settings, rewrite)
            running = episodes.active(tx.conn)
            return ended, running[-1].id if running else 0

        with self.situation.lock:
            self.buffer.drain()
            ended, self.situation.episode_id = self.db.write(end)
            self.recorder.forget_repeats()
        return ended

    # ---- notes and housekeeping

    def note_stored(self, id: int) -> None:
        """Make a note of a row stored on purpose: it outlives its raw neighbours, and older ones that say the same."""
        threshold = self.settings().duplicate_threshold
        self.db.write(lambda tx: store_note(tx, id, self._similar, threshold))

    def consolidate(self, dry_run: bool) -> Consolidation:
        """Write the gists that are due, over everything that was recorded before, or say what would be written."""
        self.buffer.drain()
        return consolidate(self.runner, dry_run)

    def run_job(self, name: str, dry_run: bool) -> JobState:
        """Run one job to its end, over everything that was recorded before, or say what it would do."""
        self.buffer.drain()
        return self.runner.run(name, dry_run=dry_run)

    def housekeep(self) -> list[JobState]:
        """Run what the timer runs, over everything that was recorded before."""
        self.buffer.drain()
        return self.runner.cycle()

    def split_entity(self, id: int, observation_ids: Sequence[int]) -> int:
        """Make a thing of its own of some of an entity's sightings."""
        self.buffer.drain()
        return self.db.write(lambda tx: split_entity(tx, id, observation_ids))

    def purge(self, ids: Sequence[int]) -> int:
        """Remove observations and entities; nothing that comes is counted on, or joined to, what is gone."""
        with self.situation.lock:
            self.buffer.drain()
            removed = self.db.write(lambda tx: purge(tx, ids))
            self.recorder.forget_repeats()
        self.writer.forget()
        return removed

    # ---- what the rooms below ask for

    def _known_model(self, read_only: bool) -> Model | None:
        """The model whose vectors rank: the embedder's when its dimension is known, else the database's own."""
        embedder = self.embedder
        if embedder is not None and embedder.dim and not read_only:
            return self.db.write(lambda tx: vectors.open_model(tx, embedder.name, embedder.dim))
        with self.db.read() as conn:
            return self._model_of(conn)

    def _model_of(self, conn: sqlite3.Connection) -> Model | None:
        """The embedder's model as the database knows it, or without an embedder the one that is active."""
        if self.embedder is None:
            return vectors.active_model(conn)
        return vectors.model_named(conn, self.embedder.name)

    def _given_model(self, tx: Transaction, dim: int) -> int:
        """Id of the model of vectors that callers bring; the first one decides their length."""
        model = self.projections.model
        if model is None:
            name = self.embedder.name if self.embedder is not None else GIVEN
            model = vectors.open_model(tx, name, dim)
            tx.on_rollback(lambda: self.projections.use_model(None))
            self.projections.use_model(model)
        return model.id

    def _keep_recalls(self) -> None:
        """Write down who was recalled, whatever the jobs are at; losing it would only cost importance."""
        recalled = self.recalls.take(MAX_WAITING)
        if recalled:
            try:
                self.db.write(lambda tx: usage.record(tx, recalled, round(BLOCK * 1e9)))
            except StorageError as error:
                logger.warning("recalls could not be kept: %s", error)

    def _embed_query(self, text: str) -> NDArray[np.float32] | None:
        """Vector of a question; None without an embedder, and where another process keeps vectors of other models."""
        model = self.projections.model
        if self.embedding is None or (self.db.read_only and model is None):
            return None
        vector = self.embedding.embed_query(text)
        return vector if vector is None or model is None or len(vector) == model.dim else None

    def _similar(self, vector: NDArray[np.float32], least: float, layer_id: int) -> list[int]:
        """Texts like a stored vector; none while the index is of a model that is still being filled."""
        model, similar = self.projections.model, self.projections.similar_texts
        return similar(vector, least, layer_id) if model is not None and model.active else []

    def _label_vectors(self, conn: sqlite3.Connection, labels: list[str]) -> dict[str, NDArray[np.float32]]:
        """Unit vectors of those labels that have one stored; in the writer thread, so never embedded here."""
        model = self.projections.model
        return {} if model is None else vectors.of_bodies(conn, model.id, labels)

    def _stored(self, sought: Sought) -> list[Held]:
        """Rows that a reading could repeat, out of SQLite."""
        with self.db.read() as conn:
            found = nodes.repeatable(conn, sought.layer, sought.text, sought.first, sought.after, sought.before)
        return [Held(id_, sought.layer, sought.text, position, last) for id_, position, last in found]

    def _dim(self) -> int | None:
        model = self.projections.model
        return None if model is None else model.dim

    def _situation(self, read_only: bool) -> Situation:
        settings = self.settings()
        if read_only:
            with self.db.read() as conn:
                last = sessions.latest(conn)
            if last is None:
                return Situation(0, settings.map_id, settings.frame)
            return Situation(last.id, last.map_id, last.frame)

        def begin(tx: Transaction) -> tuple[int, str]:
            episode_keeping.close_abandoned(tx, settings)
            return self._insert_session(tx, "start", settings.frame, settings.map_id)

        session_id, map_id = self.db.write(begin)
        with self.db.read() as conn:
            internal = {layer.name: layer.internal for layer in nodes.layers(conn).values()}
        return Situation(session_id, map_id, settings.frame, settings.map_id, internal=internal)
