"""usearch behind a lock: a graph of vectors in 8 bit, which names candidates; what they score is told by the table.

Nothing is taken out of it. Where usearch puts a vector into the place of a removed one, the links to that place stay,
and its neighbours lose theirs: of 1000 vectors, 500 of them replaced, up to 35 were not found any more. So the dead
stay, whoever searches asks for more and leaves them out, and a graph with many is built anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory_node.index import exact
from memory_node.index.gate import Gate


class Graph:
    """HNSW graph of unit vectors by label, a positive integer. Safe to use from any number of threads.

    usearch does not promise that it may be searched while it grows or is told another number of candidates, so one gate
    stands before all of these; insertion holds it for one small batch at a time and lets searches go first. It works in
    one thread: the other processors are for those who ask.

    Args:
        dim: dimensions.
        links: M of HNSW, usearch's connectivity.
        ef_construction: candidates while building.
    """

    def __init__(self, dim: int, links: int, ef_construction: int) -> None:
        self.dim = dim
        self._links = links
        self._ef_construction = ef_construction
        self._gate = Gate()
        self._index = self._fresh()

    def __len__(self) -> int:
        return len(self._index)

    def labels(self) -> NDArray[np.int64]:
        """Labels inside, ascending."""
        return np.sort(np.asarray(self._index.keys).astype(np.int64))

    def add(self, labels: NDArray[np.int64], vectors: NDArray[np.float32]) -> None:
        """Insert vectors (N, D) under labels (N,); labels already inside are left as they are."""
        with self._gate.later():
            new = ~self._index.contains(labels)
            if new.any():
                self._index.add(labels[new], exact.coarse(vectors[new]), threads=1)

    def search(self, query: NDArray[np.float32], k: int, ef: int) -> NDArray[np.int64] | None:
        """Labels of about the k best in about this order, or None when the graph cannot reach k.

        Args:
            query: unit vector (D,).
            k: no more than are inside are looked for.
            ef: candidates; the more, the better and the slower.
        """
        coarse = exact.coarse(query)
        with self._gate.soon():
            k = min(k, len(self))
            if k <= 0:
                return np.empty(0, dtype=np.int64)
            self._index.expansion_search = max(ef, k)
            labels = self._index.search(coarse, k, threads=1).keys
        # Links that many near-identical vectors broke lead to fewer.
        return labels.astype(np.int64) if len(labels) == k else None

    def search_many(self, queries: NDArray[np.float32], k: int, ef: int) -> list[NDArray[np.int64]]:
        """Labels that a search finds for each of queries (N, D), at most k; for those who can wait."""
        coarse = exact.coarse(queries)
        with self._gate.later():
            self._index.expansion_search = ef
            return [self._index.search(query, k, threads=1).keys.astype(np.int64) for query in coarse]

    @contextmanager
    def still(self) -> Iterator[None]:
        """Within it nothing changes, nor is found."""
        with self._gate.soon():
            yield

    def state(self) -> NDArray[np.uint8]:
        """A copy of everything, bytes; while `still`, or when nobody else is there."""
        return np.frombuffer(self._index.save(), dtype=np.uint8)

    def restore(self, state: NDArray[np.uint8]) -> None:
        """Become what `state` gave. The caller vouches that it is undamaged: usearch does not look."""
        index = self._fresh()
        index.load(state.tobytes())
        self._index = index

    def vectors(self, labels: NDArray[np.int64]) -> NDArray[np.int8]:
        """What is inside under labels (N,), all of which are there, int8 (N, D); see `exact.coarse`."""
        with self._gate.soon():
            return np.asarray(self._index.get(labels, dtype="i8"))

    def _fresh(self) -> Any:
        from memory_node.index.library import Index

        return Index(
            ndim=self.dim, metric="cos", dtype="i8", connectivity=self._links, expansion_add=self._ef_construction
        )
