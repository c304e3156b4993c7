"""Vector indexes for tests: what fills and empties them, and how much of the truth they find."""

from __future__ import annotations

import numpy as np

from memory_node.index import exact
from memory_node.index.vectors import VectorIndex

DIM = 24


def unit(rng: np.random.Generator, count: int, centres: int = 20) -> np.ndarray:
    middle = rng.standard_normal((centres, DIM))
    found = middle[rng.integers(0, centres, count)] + 0.3 * rng.standard_normal((count, DIM))
    return exact.normalise(found.astype(np.float32))


def filled(data: np.ndarray, first: int = 1) -> VectorIndex:
    index = VectorIndex(DIM)
    add(index, np.arange(first, first + len(data)), data)
    return index


def add(index: VectorIndex, ids: np.ndarray, data: np.ndarray) -> None:
    index.apply(ids, ids * 10, np.zeros(len(ids), dtype=int), data)


def drain(index: VectorIndex) -> None:
    while index.index_some():
        pass


def remove(index: VectorIndex, ids: np.ndarray) -> None:
    none = np.empty(0, dtype=np.int64)
    index.apply(none, none, none, np.empty((0, DIM), np.float32), removed=ids)


def recall(index: VectorIndex, ids: np.ndarray, data: np.ndarray, queries: np.ndarray, k: int = 10) -> float:
    hits = 0
    for query in queries:
        floor = np.sort(data @ query)[-k] - 1e-3
        found, similarities = index.search(query, k)
        assert np.isin(found, ids).all() and len(set(found.tolist())) == k
        hits += int((similarities >= floor).sum())
    return hits / (len(queries) * k)
