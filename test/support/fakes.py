"""The only fakes of the test suite: a clock that is set by hand and an embedder that costs nothing."""

from __future__ import annotations

import hashlib
import re

import numpy as np
from numpy.typing import NDArray

SECOND = 1_000_000_000


class FakeClock:
    """A clock that stands still until it is told to move."""

    def __init__(self, seconds: float = 1000.0) -> None:
        self.ns = round(seconds * SECOND)

    def now_ns(self) -> int:
        return self.ns

    def advance(self, seconds: float) -> None:
        self.ns += round(seconds * SECOND)

    def set(self, seconds: float) -> None:
        self.ns = round(seconds * SECOND)


class WordEmbedder:
    """Deterministic: a text is the normalised sum of its words' vectors, each drawn from a generator seeded by hashlib.

    Texts that share words are near each other. `same` maps a word onto another, to make synonyms.
    """

    def __init__(self, dim: int = 64, name: str = "words", same: dict[str, str] | None = None) -> None:
        self.name = name
        self.dim = dim
        self.same = same or {}
        self.calls: list[list[str]] = []

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        self.calls.append(list(texts))
        return np.stack([self._one(text) for text in texts]).astype(np.float32)

    def _one(self, text: str) -> NDArray[np.float64]:
        words = re.findall(r"\w+", text.lower()) or [""]
        total = np.sum([self._word(self.same.get(word, word)) for word in words], axis=0)
        return total / np.linalg.norm(total)

    def _word(self, word: str) -> NDArray[np.float64]:
        seed = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "little")
        return np.random.default_rng(seed).standard_normal(self.dim)
