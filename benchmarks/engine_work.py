"""The work that both stores are given: rows, queries, filters and what the right answers are. Knows neither store."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

DIM = 384
CENTRES = 500
NOISE = 0.35
VOCABULARY = 2000
WORDS = 10
SIDE = 100.0  # m
STEP = 0.5  # s between rows
START = 1000.0  # s; not 0, which the peer takes for "now"
LAYERS = ("scene", "detections", "notes")
NEAR = (0.0, 0.0)
NEAR_RADIUS = 10.0  # m: with one layer, the filter of the filtered figures
TOLERANCE = 1e-3  # an answer this near to the true tenth score is right
TOP = 10


@dataclass
class Work:
    """n rows drawn from `distinct` texts, and queries from the same distribution; a fixed seed.

    Attributes:
        text_of: text of each row, (n,). vectors: of each text, (distinct, DIM). bodies: of each text.
        positions: (n, 2) m. hard: unit centres, among which neighbours are hardly nearer than others.
    """

    n: int
    distinct: int
    hard: bool = False
    queries_wanted: int = 200
    seed: int = 7
    text_of: NDArray[np.int64] = field(init=False)
    vectors: NDArray[np.float32] = field(init=False)
    queries: NDArray[np.float32] = field(init=False)
    bodies: list[str] = field(init=False)
    positions: NDArray[np.float64] = field(init=False)

    def __post_init__(self) -> None:
        rng = np.random.default_rng(self.seed)
        centres = rng.standard_normal((CENTRES, DIM)).astype(np.float32)
        if self.hard:
            centres /= np.linalg.norm(centres, axis=1, keepdims=True)
        self.vectors = _around(rng, centres, self.distinct)
        self.queries = _around(rng, centres, self.queries_wanted)
        share = 1.0 / np.arange(1, VOCABULARY + 1)
        words = rng.choice(VOCABULARY, (self.distinct, WORDS), p=share / share.sum())
        # The last word tells two texts of the same ten words apart.
        self.bodies = [" ".join(f"word{w}" for w in row) + f" t{i}" for i, row in enumerate(words)]
        self.text_of = np.arange(self.n) if self.distinct == self.n else rng.integers(0, self.distinct, self.n)
        self.positions = rng.random((self.n, 2)) * SIDE

    def stamp(self, row: int) -> float:
        """Time of a row, s."""
        return START + row * STEP

    def row_at(self, stamp: float) -> int:
        """The row of a time, s."""
        return round((stamp - START) / STEP)

    def layer(self, row: int) -> str:
        """Layer of a row."""
        return LAYERS[row % len(LAYERS)]

    def words(self, query: int) -> str:
        """Words to ask with: ten of some text, its own one left out."""
        return self.bodies[query * 37 % self.distinct].rsplit(" ", 1)[0]

    def filtered(self) -> NDArray[np.bool_]:
        """Rows of the first layer within NEAR_RADIUS of NEAR."""
        near = np.hypot(*(self.positions - NEAR).T) <= NEAR_RADIUS
        return near & (np.arange(self.n) % len(LAYERS) == 0)

    def recall(self, query: int, rows: list[int], passing: NDArray[np.bool_] | None = None) -> float:
        """Share of the TOP best answers that are among rows, by score; 1 where nothing passes and nothing came."""
        scores = (self.vectors @ self.queries[query])[self.text_of]
        if passing is not None:
            if not all(passing[row] for row in rows):
                return 0.0
            allowed = scores[passing]
        else:
            allowed = scores
        wanted = min(TOP, len(allowed))
        if wanted == 0:
            return float(not rows)
        floor = np.partition(allowed, len(allowed) - wanted)[len(allowed) - wanted] - TOLERANCE
        return sum(scores[row] >= floor for row in set(rows)) / wanted


def _around(rng: np.random.Generator, centres: NDArray[np.float32], count: int) -> NDArray[np.float32]:
    found = centres[rng.integers(0, len(centres), count)]
    found = found + NOISE * rng.standard_normal((count, DIM)).astype(np.float32)
    return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)


def resident_mb() -> float:
    """Resident memory of this process, MB."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 / 1e6
