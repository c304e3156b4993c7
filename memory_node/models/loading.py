"""Loads an embedder in the background, so that a memory opens at once and answers by words until the model is there."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from memory_node.errors import EmbedderError
from memory_node.protocols import embed_within

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memory_node.protocols import Embedder

log = logging.getLogger(__name__)


class BackgroundEmbedder:
    """An embedder that raises EmbedderError until its model is loaded in a thread of its own.

    Attributes:
        name: name of the model, known from the start.
        dim: length of a vector; 0 while not known.
        state: "loading", "ready", "failed" (and no retry is due any more) or "closed".
        error: why the last attempt failed, or "".
    """

    def __init__(self, load: Callable[[], Embedder], name: str, dim: int = 0, retry_after: float = 0.0) -> None:
        """Start loading.

        Args:
            load: returns the embedder, or raises.
            name: name of the model.
            dim: length of a vector when it is known before loading, else 0.
            retry_after: s after which a failed attempt is repeated, for endpoints that come up later; 0: never.
        """
        self.name = name
        self.dim = dim
        self.state = "loading"
        self.error = ""
        self._load = load
        self._retry_after = retry_after
        self._embedder: Embedder | None = None
        self._settled = threading.Event()
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._listeners: list[Callable[[], None]] = []
        self._thread = threading.Thread(target=self._run, name="load-embedder", daemon=True)
        self._thread.start()

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        """Return vectors, shape (len(texts), dim); raise EmbedderError while there is no model."""
        return self._loaded().embed(texts)

    def embed_within(self, texts: list[str], timeout: float) -> NDArray[np.float32]:
        """Return the same; raise EmbedderError after timeout s as well where the model computes elsewhere."""
        return embed_within(self._loaded(), texts, timeout)

    def _loaded(self) -> Embedder:
        if self._embedder is None:
            raise EmbedderError(self.error or f"model {self.name}: still loading")
        return self._embedder

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the first attempt has ended; return whether the model is ready."""
        self._settled.wait(timeout)
        return self.state == "ready"

    def add_listener(self, ready: Callable[[], None]) -> None:
        """Call `ready` once, in the loading thread, when the model is there; at once when it is already."""
        with self._lock:
            if self._embedder is None:
                self._listeners.append(ready)
                return
        ready()

    def close(self) -> None:
        """Give up loading; a load under way is left to end by itself."""
        self._closing.set()
        if self._embedder is None:
            self.state = "closed"
            self._settled.set()

    def _run(self) -> None:
        while not self._closing.is_set():
            if self._attempt() or self._retry_after <= 0.0:
                return
            self._closing.wait(self._retry_after)

    def _attempt(self) -> bool:
        try:
            embedder = self._load()
        except Exception as error:
            message = str(error) or type(error).__name__
            if not message.startswith("model "):  # those of a folder or a package name it themselves
                message = f"model {self.name}: {message}"
            if message != self.error:
                log.warning("no embedder, answers are by words only: %s", message)
            self.error = message
            self.state = "failed" if self._retry_after <= 0.0 else "loading"
            self._settled.set()
            return False
        self._ready(embedder)
        return True

    def _ready(self, embedder: Embedder) -> None:
        with self._lock:
            self.dim, self.error = embedder.dim, ""
            self._embedder = embedder
            self.state = "ready"
            listeners, self._listeners = self._listeners, []
        self._settled.set()
        for listener in listeners:
            listener()


def local_embedder(model: str, threads: int = 0) -> BackgroundEmbedder:
    """Load a sentence-transformers model in the background.

    Args:
        threads: that it computes with, in the whole process; 0 leaves it as it is.

    Raises:
        EmbedderError: at once when `model` is a path without a model.
    """
    from memory_node.models.sentence_transformer import SentenceTransformerEmbedder, known_dim, known_name

    return BackgroundEmbedder(
        lambda: SentenceTransformerEmbedder(model, threads=threads), name=known_name(model), dim=known_dim(model)
    )


def http_embedder(url: str, model: str, key_variable: str = "", timeout: float = 10.0) -> BackgroundEmbedder:
    """Reach an OpenAI-compatible endpoint in the background, again each half minute until it answers."""
    from memory_node.models.http import HttpEmbedder

    return BackgroundEmbedder(lambda: HttpEmbedder(url, model, key_variable, timeout), name=model, retry_after=30.0)
