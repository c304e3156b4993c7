"""What the searches of one question found among all there is, for the same question with another filter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memory_node.retrieval import words

if TYPE_CHECKING:
    import sqlite3

    import numpy as np
    from numpy.typing import NDArray

    from memory_node.index.matrix import VectorView
    from memory_node.index.vectors import Found, VectorIndex


class Findings:
    """Kept while a question is answered, which may ask for the same several times.

    Attributes:
        query: the words that are searched for, of which the vector is.
        view: vectors that were searched, None before.
    """

    def __init__(self, query: str) -> None:
        self.query = query
        self.view: VectorView | None = None
        self._nearest: tuple[int, Found] | None = None
        self._matching: tuple[int, NDArray[np.int64]] | None = None
        self._rated: list[tuple[int, float]] = []

    def nearest(self, index: VectorIndex, view: VectorView, vector: NDArray[np.float32], k: int) -> Found:
        """Return the k vectors of a view that are most like the question's, the best first."""
        if self._nearest is None or self._nearest[0] < k or self.view is not view:
            self.view, self._nearest = view, (k, index.find(view, vector, k))
        return self._nearest[1].first(k)

    def rated(self, conn: sqlite3.Connection, asked: words.Query, k: int) -> tuple[list[tuple[int, float]], bool]:
        """Return the k texts that have most of the words as `words.scored` does, and whether there are as many."""
        if self._matching is None or self._matching[0] < k:
            self._matching = k, words.matching(asked, k)
            self._rated = words.scored(conn, asked, self._matching[1], k)
        ids = self._matching[1]
        if len(ids) <= k:
            return self._rated, len(ids) == k
        first = set(ids[:k].tolist())
        return [one for one in self._rated if one[0] in first], True
