"""What is kept in memory of SQLite, and how it keeps up: a watermark, a listener, one thread for what takes longer."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from memory_node.config import Settings
from memory_node.errors import ClosedError
from memory_node.graph import Kind, Tier
from memory_node.index.rows import RowTable
from memory_node.index.vectors import VectorIndex
from memory_node.index.view import RowFilter
from memory_node.storage import meta, nodes, vectors

if TYPE_CHECKING:
    import sqlite3

    from memory_node.storage.database import Database
    from memory_node.storage.vectors import Model

logger = logging.getLogger(__name__)

SIMILAR = 50  # similar texts looked for at first
SAVE_LEAST = 8192  # vectors inserted since the last save; a quarter of the graph when that is more


class Projections:
    """Columns, R-tree and vectors of one database; all of it can be thrown away and is made anew from SQLite.

    Safe to use from any number of threads. A failure in here never fails a commit: it is logged once, and the
    projections are read anew at the next one.

    Args:
        db: the truth. The caller makes `catch_up` its listener; a read-only handle calls `follow` before each query.
        model: whose vectors rank; None until one is known, see `use_model`.
        settings: those of hnswlib.

    Attributes:
        rows, vectors: see RowTable and VectorIndex. model: as given.
    """

    def __init__(self, db: Database, model: Model | None, settings: Settings) -> None:
        self._db = db
        self._settings = settings
        self._path = db.path.with_name(db.path.name + ".hnsw.bin")
        self._lock = threading.RLock()
        self._saving = threading.Lock()
        self._failing = False
        self._watermark = self._vector_watermark = 0
        self.rows = RowTable()
        self.model = model
        self.vectors = self._index_of(model)
        self._wake = threading.Event()
        self._closed = False
        self.catch_up()
        self._load()
        self._worker = threading.Thread(target=self._work, name="memory-indexer", daemon=True)
        self._worker.start()

    @property
    def tail(self) -> int:
        """Vectors that wait for the graph; they are found all the same, by exact search."""
        return self.vectors.waiting

    @property
    def watermark(self) -> int:
        """Revision of the database up to which all is taken in."""
        return self._watermark

    @property
    def path(self) -> Path:
        """The cache of the graph."""
        return self._path

    def catch_up(self) -> None:
        """Take in what was committed since the watermark."""
        with self._lock:
            try:
                self._read()
                self._failing = False
            except ClosedError:
                return
            except Exception:
                if not self._failing:
                    logger.exception("the index could not follow the database; it is built anew from it")
                self._failing = True
                self._watermark = self._vector_watermark = 0
        self._wake.set()

    def follow(self, model_of: Callable[[sqlite3.Connection], Model | None]) -> None:
        """Catch up when another process has committed since the last look.

        Args:
            model_of: tells whose vectors rank, which another process may have changed.
        """
        with self._db.read() as conn:
            if meta.revision(conn) == self._watermark:
                return
            model = model_of(conn)
        with self._lock:
            if model == self.model:
                self.catch_up()
            else:
                self.use_model(model)

    def use_model(self, model: Model | None) -> None:
        """Rank by the vectors of this model from now on, or None: of none."""
        with self._lock:
            known = model is not None and self.model is not None and model.id == self.model.id
            self.model = model
            if not known:
                self.vectors = self._index_of(model)
                self._vector_watermark = 0
            self.catch_up()

    def similar_texts(self, vector: NDArray[np.float32], least: float, layer_id: int) -> list[int]:
        """Return texts of a layer's long-term observations, the best first.

        One part of each, at least, has a cosine of `least` to vector (dim,).
        """
        rows, index = self.rows.view, self.vectors
        view = index.view
        slots = rows.select(RowFilter(kinds=(int(Kind.OBSERVATION),), layers=(layer_id,), internal=True))
        slots = slots[rows.columns["tier"][slots] == int(Tier.LONG_TERM)]
        texts = rows.columns["text"][slots]
        known = np.zeros(int(texts.max(initial=0)) + 1, dtype=bool)
        known[texts] = True
        known[0] = False
        allowed, wanted = view.of_texts(np.flatnonzero(known)), SIMILAR
        while True:
            found = index.find(view, vector, wanted, allowed)
            if len(found.slots) < wanted or found.similarities[-1] < least:
                return list(dict.fromkeys(view.columns["text"][found.slots[found.similarities >= least]].tolist()))
            wanted *= 4

    def save(self) -> bool:
        """Write the graph beside the database, when it has changed; returns whether it did.

        A full disk is logged and changes nothing else.
        """
        with self._saving:
            if self._db.read_only or not self.vectors.unsaved:
                return False
            try:
                self.vectors.save(self._path, self._origin())
            except OSError as error:
                logger.warning("%s could not be written (%s); it will be built anew if missing", self._path, error)
                return False
            return True

    def close(self) -> None:
        """End the indexer and save."""
        if self._closed:
            return
        self._closed = True
        self._wake.set()
        self._worker.join()
        self.save()

    def _read(self) -> None:
        with self._db.read() as conn:
            found = nodes.since(conn, self._watermark)
            rows = {"text": found.text_id, "episode": found.episode_id, "layer": found.layer_id, "map": found.map_id}
            same = ("id", "stamp", "last_stamp", "x", "y", "z", "confidence", "kind", "tier", "internal", "repeats")
            rows.update({name: getattr(found, name) for name in same})
            model = self.model
            # A model that its own transaction has not committed yet has no vectors to read.
            known = model is not None and conn.execute("SELECT 1 FROM model WHERE id = ?", (model.id,)).fetchone()
            new = vectors.since(conn, model.id, self._vector_watermark) if model is not None and known else None
        if new is not None and (len(new.ids) or len(new.removed) or new.complete):
            self.vectors.apply(new.ids, new.text_ids, new.node_ids, new.vectors, new.removed, new.complete)
        if len(found.id) or len(found.removed) or found.complete:
            self.rows.apply(rows, found.removed, found.complete)
        self._watermark = found.revision
        self._vector_watermark = new.revision if new is not None else 0

    def _load(self) -> None:
        if not len(self.vectors):
            return
        problem = self.vectors.load(self._path, self._origin())
        waiting = self.vectors.waiting
        if problem and waiting:
            logger.warning("%s %s: built anew from the database", self._path, problem)
        elif waiting:
            logger.info("%s is older than the database: %d vectors are added", self._path, waiting)

    def _origin(self) -> list[Any]:
        """What a cache must come from to fit."""
        with self._db.read() as conn:
            return [meta.get(conn, "uuid"), self.model.name if self.model else "", self.model.dim if self.model else 0]

    def _index_of(self, model: Model | None) -> VectorIndex:
        s = self._settings
        return VectorIndex(model.dim if model else 0, s.hnsw_m, s.hnsw_ef_construction, s.hnsw_ef_search)

    def _work(self) -> None:
        while not self._closed:
            self._wake.clear()
            try:
                busy = self._work_some()
            except Exception:
                logger.exception("the indexer failed; search goes on exactly")
                return
            if not busy and not self._closed:
                self._wake.wait()

    def _work_some(self) -> bool:
        self._db.foreground.give_way()
        if self.rows.unsettled:
            self.rows.settle()
        if self.vectors.index_some():
            return True
        if self.vectors.unsaved >= max(SAVE_LEAST, self.vectors.state["in_graph"] // 4):
            self.save()
        return False
