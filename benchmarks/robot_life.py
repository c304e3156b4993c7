"""A simulated robot that works, idles and sleeps at home, told to a memory row by row as time goes by."""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SECOND = 1_000_000_000
DAY = 86_400
MONDAY = 1_900_000_000 // DAY * DAY
"""s since 1970: midnight at which the first day begins."""

ROOMS = {"hall": (0.0, 0.0), "kitchen": (14.0, 2.0), "living room": (2.0, 14.0), "study": (16.0, 16.0)}
THINGS = {
    "hall": ("coat", "shoe rack", "umbrella"), "kitchen": ("mug", "kettle", "plant"),
    "living room": ("sofa", "lamp", "book"), "study": ("desk", "chair", "laptop"),
}  # fmt: skip
WORDS_KEPT = 1024  # vectors of words that the embedder below keeps, lest it outgrow the memory that is measured
DOINGS = ("reads a newspaper", "waters the flowers", "talks on the phone", "carries a box", "sweeps the floor")


class SimulatedClock:
    """A clock that is moved by hand."""

    kind = "sim"

    def __init__(self, seconds: float = MONDAY) -> None:
        self.ns = round(seconds * SECOND)

    def now_ns(self) -> int:
        """Simulated time, ns."""
        return self.ns


class HashEmbedder:
    """Costs next to nothing: the normalised sum of vectors drawn for each word from a generator seeded by its hash."""

    def __init__(self, dim: int = 64) -> None:
        self.name = "hashed words"
        self.dim = dim
        self._words: dict[str, NDArray[np.float32]] = {}

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        """Return unit vectors, shape (len(texts), dim)."""
        rows = np.stack([sum(map(self._word, re.findall(r"\w+", text.lower())), self._word("")) for text in texts])
        return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)

    def _word(self, word: str) -> NDArray[np.float32]:
        if word not in self._words:
            if len(self._words) >= WORDS_KEPT:
                self._words.clear()
            seed = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "little")
            self._words[word] = np.random.default_rng(seed).standard_normal(self.dim).astype(np.float32)
        return self._words[word]


@dataclass(frozen=True)
class Moment:
    """What the robot perceives at one time: s since 1970, pose (x, y) m, a caption, a thing seen and where it is."""

    seconds: float
    pose: tuple[float, float]
    caption: str
    thing: str
    thing_at: tuple[float, float, float]
    battery: float


def life(days: int, period: float, seed: int = 0) -> Iterator[Moment]:
    """Yield a moment every `period` s: rounds through the rooms by day, waits at the dock, sleep at night."""
    chance = random.Random(seed)
    for number in range(round(days * DAY / period)):
        seconds = MONDAY + number * period
        hour = seconds % DAY / 3600
        working = 8 <= hour < 12 or 14 <= hour < 18
        room = list(ROOMS)[int(hour * 2) % len(ROOMS)] if working else "hall"
        x, y = ROOMS[room]
        spread = 1.5 if working else 0.02
        pose = (x + chance.uniform(-spread, spread), y + chance.uniform(-spread, spread))
        thing = chance.choice(THINGS[room])
        at = (x + 1.0 + THINGS[room].index(thing), y + 1.0, 0.5)
        yield Moment(seconds, pose, _caption(chance, room, hour, working), thing, at, 0.3 + 0.7 * abs(hour - 12) / 12)


def _caption(chance: random.Random, room: str, hour: float, working: bool) -> str:
    if hour < 6 or hour >= 23:
        return "it is dark and nothing moves"
    if not working:
        return "the hall is quiet, the robot waits at its dock"
    if chance.random() < 0.7:
        return f"the {room} looks tidy"
    return f"a person {chance.choice(DOINGS)} in the {room}, object {chance.randrange(2000)} lies near"
