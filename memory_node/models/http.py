"""Embedder behind an OpenAI-compatible endpoint: Ollama, vLLM, llama.cpp and hosted ones."""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import Future
from concurrent.futures import TimeoutError as TookTooLong
from typing import TYPE_CHECKING, Any

from memory_node.errors import EmbedderError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


MOST_LEFT = 4
"""Requests that may be under way in threads of their own: as many as hang, and no question waits for more."""


class HttpEmbedder:
    """Asks `POST <url>/embeddings` with {"model", "input"}; the constructor asks once, to learn the dimension.

    Attributes:
        name: the model's name. dim: length of a vector.
    """

    def __init__(self, url: str, model: str, key_variable: str = "", timeout: float = 10.0) -> None:
        """Connect.

        Args:
            url: base such as http://127.0.0.1:11434/v1, or the whole address ending in /embeddings.
            model: name the endpoint knows the model by.
            key_variable: name of the environment variable that holds the key; "": none is sent.
            timeout: s that one request may take.

        Raises:
            EmbedderError: the endpoint does not answer, or not with vectors.
        """
        import httpx

        base = url.rstrip("/")
        self._url = base if base.endswith("/embeddings") else base + "/embeddings"
        key = os.environ.get(key_variable, "") if key_variable else ""
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._client = httpx.Client(timeout=timeout, headers=headers)
        self._free = threading.Semaphore(MOST_LEFT)
        self.name = model
        self.dim = 0
        try:
            self.dim = int(self.embed(["dimension"]).shape[1])
        except EmbedderError:
            self.close()
            raise

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        """Return unit vectors, shape (len(texts), dim), in the order of the texts."""
        import numpy as np

        if not texts:
            return np.zeros((0, self.dim), np.float32)
        vectors = self._vectors(self._ask(texts), len(texts))
        if self.dim and vectors.shape[1] != self.dim:
            raise EmbedderError(f"{self._url}: vectors of {vectors.shape[1]} numbers came, {self.dim} were expected")
        return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)

    def embed_within(self, texts: list[str], timeout: float) -> NDArray[np.float32]:
        """Return the same, or raise EmbedderError after timeout s; the request is left to end by itself.

        httpx limits each step of a request, not the whole, and the look-up of the host's name not at all.
        """
        until = time.monotonic() + timeout
        if timeout <= 0.0:
            raise EmbedderError(f"{self._url}: no answer in time")
        if not self._free.acquire(timeout=timeout):
            raise EmbedderError(f"{self._url}: {MOST_LEFT} requests are without an answer")
        answer: Future[NDArray[np.float32]] = Future()
        threading.Thread(target=self._fulfil, args=(answer, texts), name="ask-embedder", daemon=True).start()
        try:
            return answer.result(until - time.monotonic())
        except TookTooLong:
            raise EmbedderError(f"{self._url}: no answer in time") from None

    def _fulfil(self, answer: Future[NDArray[np.float32]], texts: list[str]) -> None:
        try:
            answer.set_result(self.embed(texts))
        except Exception as error:
            answer.set_exception(error)
        finally:
            self._free.release()

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _ask(self, texts: list[str]) -> Any:
        import httpx

        try:
            answer = self._client.post(self._url, json={"model": self.name, "input": texts})
            answer.raise_for_status()
            return answer.json()
        except httpx.HTTPStatusError as error:
            raise EmbedderError(f"{self._url}: answered {error.response.status_code}") from error
        except httpx.TimeoutException as error:
            raise EmbedderError(f"{self._url}: no answer in time") from error
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            raise EmbedderError(f"{self._url}: {error}") from error

    def _vectors(self, answer: Any, count: int) -> NDArray[np.float32]:
        import numpy as np

        try:
            rows = sorted(answer["data"], key=lambda row: row["index"])
            vectors = np.array([row["embedding"] for row in rows], np.float32)
        except (KeyError, TypeError, ValueError) as error:
            raise EmbedderError(f"{self._url}: the answer holds no vectors") from error
        if vectors.ndim != 2 or len(vectors) != count or not np.isfinite(vectors).all():
            raise EmbedderError(f"{self._url}: the answer holds no usable vector for each text")
        return vectors
