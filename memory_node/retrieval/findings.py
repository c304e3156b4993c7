"""What the searches of one question found, for the same question with another filter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from memory_node.retrieval import words
from memory_node.retrieval.groups import Group, group

if TYPE_CHECKING:
    import sqlite3

    from numpy.typing import NDArray

    from memory_node.index.matrix import VectorView
    from memory_node.index.vectors import Found, VectorIndex
    from memory_node.index.view import View
    from memory_node.retrieval.filters import Resolved

FEW = 16
"""Vectors that are looked for first where few may be as alike as is wanted."""


class Findings:
    """Kept while a question is answered, which may ask for the same several times.

    Attributes:
        query: the words that are searched for, of which the vector is.
        by_graph: whether vectors were found by a graph, which may miss one.
    """

    def __init__(self, query: str) -> None:
        self.query = query
        self.by_graph = False
        self._searched: tuple[VectorIndex, VectorView] | None = None
        self._nearest: tuple[int, Found] | None = None
        self._matching: tuple[int, NDArray[np.int64]] | None = None
        self._rated: list[tuple[int, float]] | None = None
        self._groups: dict[Resolved, dict[int, Group | None]] = {}

    def view(self, index: VectorIndex) -> VectorView:
        """Return the vectors as of the first search; anew where another model's took their place meanwhile."""
        if self._searched is None or self._searched[0] is not index:
            self._searched, self._nearest = (index, index.view), None
        return self._searched[1]

    def nearest(self, index: VectorIndex, vector: NDArray[np.float32], k: int) -> Found:
        """Return the k vectors of the view that are most like the question's, the best first."""
        view = self.view(index)
        if self._nearest is None or self._nearest[0] < k:
            self._nearest = k, index.find(view, vector, k)
        return self._nearest[1].first(k)

    def alike(self, index: VectorIndex, vector: NDArray[np.float32], k: int, least: float) -> Found:
        """Return the k nearest, or fewer where a smaller search shows that no other has a cosine of `least`."""
        few = self.nearest(index, vector, min(k, FEW)) if least > -1.0 else None
        if few is not None and len(few.similarities) and few.similarities[-1] < least:
            return few
        return self.nearest(index, vector, k)

    def matching(self, asked: words.Query, k: int) -> NDArray[np.int64]:
        """Return the ids of the k texts that have most of the words, these first; see `words.matching`."""
        if self._matching is None or self._matching[0] < k:
            self._matching, self._rated = (k, words.matching(asked, k)), None
        return self._matching[1][:k]

    def rated(self, conn: sqlite3.Connection, asked: words.Query, k: int) -> tuple[list[tuple[int, float]], bool]:
        """Return the k texts that have most of the words as `words.scored` does, and whether there are as many."""
        ids = self.matching(asked, k)
        assert self._matching is not None
        most, every = self._matching
        if self._rated is None:
            self._rated = words.scored(conn, asked, every, most)
        if len(every) <= k:
            return self._rated, len(every) == k
        first = set(ids.tolist())
        return [one for one in self._rated if one[0] in first], True

    def groups(self, view: View, resolved: Resolved, texts: Sequence[int]) -> Mapping[int, Group | None]:
        """Return the passing nodes of texts, among others; None where there are none. See `groups.group`."""
        known = self._groups.get(resolved)
        if known is None:
            known = self._groups[resolved] = self._of_fewer_kinds(resolved)
        new = [text for text in texts if text not in known]
        if new:
            known.update(dict.fromkeys(new))
            known.update(group(view, resolved, np.array(new, dtype=np.int64)))
        return known

    def _of_fewer_kinds(self, resolved: Resolved) -> dict[int, Group | None]:
        """What a filter tells that lets more kinds pass: of texts that have one such node or none."""
        kinds = set(resolved.kinds)
        for wide, groups in self._groups.items():
            if kinds and kinds.issubset(wide.kinds) and replace(wide, kinds=resolved.kinds) == resolved:
                few = ((text, one) for text, one in groups.items() if one is None or one.total == 1)
                return {text: one if one and one.kind in kinds else None for text, one in few}
        return {}
