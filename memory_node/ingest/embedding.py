"""Embedding off the write path: the backlog is a query on SQLite, questions go before it, no lock is held meanwhile."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from memory_node.errors import EmbedderError, InvalidArgument, MemoryNodeError
from memory_node.ingest.turns import Turns
from memory_node.protocols import embed_within
from memory_node.storage import texts, vectors

if TYPE_CHECKING:
    import sqlite3

    from numpy.typing import NDArray

    from memory_node.protocols import Embedder
    from memory_node.storage.database import Database, Transaction
    from memory_node.storage.vectors import Model

logger = logging.getLogger(__name__)

_CACHED_QUERIES, _CACHED_NAMES = 256, 4096
_AHEAD = 8
"""Short texts embedded in one go ahead of questions: so few that nothing else waits for them for long."""
_TOGETHER, _GATHERED = 64, 0.1
"""Texts whose vectors are committed together, and the s after which those that are there are: a commit costs the
other threads more than a few vectors do."""
_FIRST_RETRY, _LAST_RETRY = 0.5, 30.0
CLOSE_PATIENCE = 2.0
"""s that closing waits for the embedder to end the batch at hand; an embedder that hangs keeps its texts in the
backlog. A launch file gives a node 5 s."""
_PROBE = "is anybody there"
"""A text that no embedder refuses, to tell one that refuses others from one that does not answer."""


class EmbeddingQueue:
    """Gives every wanted text of the database its vectors, in a thread of its own.

    Args:
        split: divides a text into the parts that are embedded; the first stands for the whole.
        batch_size: texts embedded in one go while nobody asks.
        model: the embedder's, when its dimension is known already.
        on_model: called with the model once its dimension is known, before its first vector is written, and again
            once it is the active one.
        ahead: returns short texts that `embed_names` may be asked for; they are embedded while nothing else waits.
    """

    def __init__(
        self,
        db: Database,
        embedder: Embedder,
        split: Callable[[str], list[str]],
        batch_size: int,
        model: Model | None,
        on_model: Callable[[Model], None],
        ahead: Callable[[sqlite3.Connection], list[str]] = lambda conn: [],
    ) -> None:
        self._db = db
        self._embedder = embedder
        self._split = split
        self._batch_size = batch_size
        self._on_model = on_model
        self._ahead = ahead
        self._turns = Turns()
        self.patience = self._turns.patience
        self._queries: OrderedDict[str, NDArray[np.float32]] = OrderedDict()
        self._names: OrderedDict[str, NDArray[np.float32]] = OrderedDict()
        self._cache_lock = threading.Lock()
        self._wake = threading.Event()
        self._closing = threading.Event()
        self._again = threading.Event()
        self._model = model
        self._passed = 0  # newest of the texts that were passed over
        self._passed_until = 0.0
        self.error = ""
        """Why the embedder does not answer at present; empty when it does."""
        self.refusal = ""
        """Why texts are passed over at present; empty when none is."""
        self._thread = threading.Thread(target=self._run, name="memory-embedding", daemon=True)

    def start(self) -> None:
        """Begin to work off the backlog."""
        self._thread.start()

    @property
    def model(self) -> Model | None:
        """The model in use, None until the embedder has told its dimension."""
        return self._model

    def notify(self) -> None:
        """Say that texts were committed."""
        self._wake.set()

    def retry(self) -> None:
        """Say that the embedder answers again, so that the backlog need not wait for the next attempt."""
        self._again.set()

    def embed_query(self, text: str) -> NDArray[np.float32] | None:
        """Return the unit vector of a question, shape (dim,), or None when the embedder does not answer."""
        with self._cache_lock:
            if text in self._queries:
                self._queries.move_to_end(text)
                return self._queries[text]
        try:
            vector = self._embed_now([self._split(text)[0]])[0]
        except EmbedderError as error:
            self.error = str(error)
            return None
        with self._cache_lock:
            self._queries[text] = vector
            while len(self._queries) > _CACHED_QUERIES:
                self._queries.popitem(last=False)
        return vector

    def embed_names(self, names: Sequence[str]) -> NDArray[np.float32] | None:
        """Return unit vectors (N, dim) of short texts, which are kept; None when the embedder does not answer."""
        with self._cache_lock:
            # A name may be what was just asked.
            found = {name: known[name] for known in (self._queries, self._names) for name in names if name in known}
        new = [name for name in dict.fromkeys(names) if name not in found]
        try:
            for start in range(0, len(new), self._batch_size):
                batch = new[start : start + self._batch_size]
                found.update(zip(batch, self._embed_now(batch), strict=True))
        except EmbedderError as error:
            self.error = str(error)
            return None
        self._keep_names(found)
        return np.stack([found[name] for name in names])

    def _embed_now(self, batch: list[str]) -> NDArray[np.float32]:
        """Vectors that a question waits for."""
        with self._turns.question() as patience:
            return self._embed(batch, patience)

    def _keep_names(self, found: Mapping[str, NDArray[np.float32]]) -> None:
        with self._cache_lock:
            for name, vector in found.items():
                self._names[name] = vector
                self._names.move_to_end(name)
            while len(self._names) > _CACHED_NAMES:
                self._names.popitem(last=False)

    def backlog(self) -> int:
        """Texts that wait for a vector; 0 while the model is not known."""
        if self._model is None:
            return 0
        with self._db.read() as conn:
            return texts.backlog(conn, self._model.id)

    def close(self) -> None:
        """End the thread after the batch at hand, which is not waited for longer than CLOSE_PATIENCE."""
        self._closing.set()
        self._again.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(CLOSE_PATIENCE)
            if self._thread.is_alive():
                logger.warning("the embedder does not answer; its texts get their vectors at the next start")

    def _run(self) -> None:
        retry = _FIRST_RETRY
        while not self._closing.is_set():
            self._wake.clear()
            try:
                while not self._closing.is_set() and self._work():
                    retry = _FIRST_RETRY
            except MemoryNodeError as error:
                if str(error) != self.error:
                    logger.warning("texts wait for their vectors: %s", error)
                self.error = str(error)
                self._again.wait(retry)
                self._again.clear()
                retry = min(2 * retry, _LAST_RETRY)
                continue
            ahead = self._embed_ahead()
            self._wake.wait(None if ahead and not self._passed else _LAST_RETRY)

    def _work(self) -> bool:
        """Embed the oldest texts of the backlog; False when it is empty but for those that were passed over."""
        model = self._known_model()
        if self._passed and time.monotonic() >= self._passed_until:
            self._passed, self.refusal = 0, ""
        with self._db.read() as conn:
            waiting = texts.unembedded(conn, model.id, max(_TOGETHER, self._batch_size), self._passed)
        if not waiting:
            self._settle(model)
            return False
        rows = self._embed_some(waiting)

        def store(tx: Transaction) -> None:
            still = texts.bodies(tx.conn, [text_id for text_id, _ in rows])
            # Others were archived meanwhile.
            vectors.put_texts(tx, model.id, {text_id: group for text_id, group in rows if text_id in still})

        self._db.write(store)
        return True

    def _embed_ahead(self) -> bool:
        """Embed short texts that questions may need, at least a few of them, until other texts wait again.

        Returns whether the embedder took them; a question embeds for itself what it needs of the others.
        """
        if self._closing.is_set():
            return True
        try:
            self._embed_names_ahead()
        except MemoryNodeError as error:
            self.error = str(error)
            return False
        return True

    def _embed_names_ahead(self) -> None:
        with self._db.read() as conn:
            names = self._ahead(conn)
        with self._cache_lock:
            new = [name for name in names if name not in self._names]
        size = min(_AHEAD, self._batch_size)
        for start in range(0, len(new), size):
            if self._closing.is_set():
                return
            batch = new[start : start + size]
            with self._turns.backlog():
                self._keep_names(dict(zip(batch, self._embed(batch), strict=True)))
            if self._wake.is_set():
                return

    def _embed_some(self, waiting: Sequence[tuple[int, str]]) -> list[tuple[int, NDArray[np.float32]]]:
        """Ids and vectors of the first of the texts: of those that are embedded in time, one batch at least."""
        rows: list[tuple[int, NDArray[np.float32]]] = []
        until = time.monotonic() + _GATHERED
        for start in range(0, len(waiting), self._batch_size):
            batch = waiting[start : start + self._batch_size]
            parts = [self._split(body) for _, body in batch]
            try:
                found = self._embed_parts([part for group in parts for part in group])
            except EmbedderError:
                # What is there is kept; the next attempt tells of the error.
                return rows or self._embed_singly(batch)
            ends = np.cumsum([len(group) for group in parts])
            rows += zip((id_ for id_, _ in batch), np.split(found, ends[:-1]), strict=True)
            if self._closing.is_set() or time.monotonic() >= until:
                break
        return rows

    def _embed_singly(self, batch: Sequence[tuple[int, str]]) -> list[tuple[int, NDArray[np.float32]]]:
        """Ids and vectors of those texts that the embedder takes one by one, where it refuses them together.

        The others are passed over for a while, so that those behind them need not wait. Raises EmbedderError when it
        is not the texts that it refuses.
        """
        self._embed_parts([_PROBE])
        rows: list[tuple[int, NDArray[np.float32]]] = []
        for id_, body in batch:
            try:
                rows.append((id_, self._embed_parts(self._split(body))))
            except EmbedderError as error:
                if str(error) != self.refusal:
                    logger.warning("texts are passed over, as the embedder refuses them: %s", error)
                self._passed, self._passed_until = id_, time.monotonic() + _LAST_RETRY
                self.refusal = str(error)
        return rows

    def _embed_parts(self, parts: list[str]) -> NDArray[np.float32]:
        chunks, start = [], 0
        while start < len(parts):
            self._db.foreground.give_way()
            with self._turns.backlog():
                size = 1 if self._turns.expects_questions() else self._batch_size
                chunks.append(self._embed(parts[start : start + size]))
            start += size
        return np.concatenate(chunks)

    def _embed(self, batch: list[str], patience: float | None = None) -> NDArray[np.float32]:
        """Vectors of some texts. Args: patience: s after which an embedder that can be left is; None: never."""
        embedder = self._embedder
        try:
            rows = embedder.embed(batch) if patience is None else embed_within(embedder, batch, patience)
            found = np.asarray(rows, dtype=np.float32)
        except EmbedderError:
            raise
        except (Exception, SystemExit) as error:  # who ends a program in here would end this thread alone
            raise EmbedderError(f"the embedder failed: {type(error).__name__}: {error}") from error
        if found.ndim != 2 or len(found) != len(batch) or not np.isfinite(found).all():
            raise EmbedderError(f"the embedder gave shape {found.shape} for {len(batch)} texts, or what is not finite")
        if self._model is not None and found.shape[1] != self._model.dim:
            raise EmbedderError(f"the embedder gave {found.shape[1]} dimensions, its model has {self._model.dim}")
        self.error = ""
        norms = np.linalg.norm(found, axis=1, keepdims=True)
        return (found / np.where(norms > 0, norms, 1.0)).astype(np.float32)

    def _known_model(self) -> Model:
        if self._model is None:
            with self._turns.backlog():
                dim = self._embedder.dim or self._embed(["what is the dimension"]).shape[1]
            name = self._embedder.name
            model = self._db.write(lambda tx: vectors.open_model(tx, name, dim))
            self._on_model(model)
            self._model = model
        return self._model

    def _settle(self, model: Model) -> None:
        """All texts have vectors of this model: it becomes the active one, and the vectors of others go."""
        if not model.active:
            self._db.write(lambda tx: vectors.activate(tx, model.id))
            self._model = replace(model, active=True)
            self._on_model(self._model)
        with self._db.read() as conn:
            stale = vectors.any_stale(conn)  # a transaction each time the backlog is empty would double the writer's
        while stale and self._db.write(vectors.drop_stale):
            pass


def wait_until(condition: Callable[[], bool], timeout: float) -> bool:
    """Poll a condition for at most timeout s (steady clock); returns whether it came true."""
    if timeout < 0:
        raise InvalidArgument("timeout", f"got {timeout!r}, allowed is at least 0")
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.005)
    return True
