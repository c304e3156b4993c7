"""What may answer a question, the best first: found by meaning, and by words as soon as these can matter."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from memory_node.graph import Kind
from memory_node.retrieval import scoring
from memory_node.storage import vectors

if TYPE_CHECKING:
    import sqlite3

    import numpy as np
    from numpy.typing import NDArray

    from memory_node.config import Settings
    from memory_node.retrieval.filters import Resolved
    from memory_node.retrieval.findings import Findings
    from memory_node.retrieval.plan import Plan
    from memory_node.retrieval.search import Hit, Searcher

ROUNDING = 1e-4
"""By how much the cosine of a vector of 16 bits may be off."""
_NOTHING = (0.0, 0.0)
_ALL = (1.0, 1.0)
_ORDER = itemgetter(0)


@dataclass(frozen=True)
class Asked:
    """A question: words ("" for none), unit vector (D,) or None, filter, moment it is asked at (ns), what was found."""

    query: str
    vector: NDArray[np.float32] | None
    resolved: Resolved
    now: int
    seen: Findings


class Candidate(NamedTuple):
    """A hit, where in the order the best of its rows stands, its relevance and the parts; None for one without part."""

    order: scoring.Order
    relevance: float
    hit: Hit
    similarity: float | None
    lexical: float | None


class Candidates:
    """What the searches of one question found, each text once, in the order of the best that its newest rows can be.

    A text that words alone find is no more alike than the last of those that meaning found where that compared all;
    where a graph answered, those with most of the words are compared. Words are searched once one that is as alike as
    that, and has as many of the words, could stand before what is left.

    Attributes:
        found: how many the searches found so far.
    """

    def __init__(
        self,
        searcher: Searcher,
        conn: sqlite3.Connection,
        settings: Settings,
        asked: Asked,
        pool: int,
        plan: Plan | None = None,
    ) -> None:
        """Search by meaning; pool: most that each search brings. plan: filled with what the searches did."""
        self._searcher, self._conn, self._settings = searcher, conn, settings
        self._asked, self._pool, self._plan = asked, pool, plan
        hits: list[Hit] = []
        if asked.vector is not None:
            hits = searcher.meaning(asked.vector, pool, asked.resolved, plan, seen=asked.seen)
        self._meant = {(hit.text_id, hit.node_id) for hit in hits}
        self._said = searcher.said(asked.query, [hit.text_id for hit in hits])
        share, none = self._said.shares.get, 0.0 if asked.query else None
        self.found = len(hits)
        self._left = deque(self._scored((hit, hit.similarity, share(hit.text_id, none)) for hit in hits))
        self._by_words = self._best_by_words(hits)

    @property
    def has_gists(self) -> bool:
        """Whether a gist is among those left."""
        return any(one.hit.kind == Kind.GIST for one in self._left)

    def any_before(self, place: scoring.Order | None) -> bool:
        """Whether one of those left stands before a place, or, where that is None, at all."""
        if self._left and (place is None or self._left[0].order < place):
            return True
        if self._by_words is None or (place is not None and self._by_words >= place):
            return False
        self._search_words()
        return self.any_before(place)

    def take(self) -> Candidate:
        """Take the best of those left; there is one, see `any_before`."""
        if self._by_words is not None and not (self._left and self._left[0].order < self._by_words):
            self._search_words()
        return self._left.popleft()

    def _best_by_words(self, hits: Sequence[Hit]) -> scoring.Order | None:
        """Before what stands all that words alone can find, None where there is nothing to find."""
        most, weight = self._said.most, self._said.weight
        parts = self._parts_by_words(hits) if most else []
        if not parts:
            return None
        best = max(scoring.relevance(similarity, lexical, weight) for similarity, lexical in parts) + ROUNDING
        gists_only = set(self._asked.resolved.kinds) == {int(Kind.GIST)}
        return -scoring.score(self._settings, best, _ALL, gists_only), -math.inf, 0

    def _parts_by_words(self, hits: Sequence[Hit]) -> Sequence[tuple[float | None, float]]:
        """Similarity and lexical of texts that are as good as any that words alone can find."""
        asked, words, most = self._asked, self._said.query, self._said.most
        found: Sequence[tuple[float | None, float]] | None = None
        if words and asked.vector is not None and self._searcher.has_compared_all(self._conn, asked.seen):
            if asked.seen.by_graph:  # which may miss the very text asked for
                texts = [hit.text_id for hit in hits]
                found = self._searcher.alike_by_words(
                    self._conn, words, asked.vector, self._pool, asked.resolved, asked.seen, texts
                )
            elif len(hits) >= self._pool:
                found = [(hits[-1].similarity, most)]
        return [(None, most), (1.0, most)] if found is None else found  # a text without a vector has its words alone

    def _search_words(self) -> None:
        """Add what words alone find."""
        self._by_words = None
        asked = self._asked
        by_words = self._searcher.words(asked.query, self._pool, asked.resolved, self._plan, seen=asked.seen)
        hits = [hit for hit in by_words if (hit.text_id, hit.node_id) not in self._meant]
        similar = self._similarities([hit.text_id for hit in hits])
        new = self._scored((hit, similar.get(hit.text_id), hit.lexical) for hit in hits)
        self.found += len(new)
        self._left = deque(sorted([*self._left, *new], key=_ORDER))

    def _similarities(self, text_ids: list[int]) -> dict[int, float]:
        """Cosines of those of the texts that have a vector."""
        vector, model = self._asked.vector, self._searcher.model
        if vector is None or model is None or model.dim != len(vector) or not text_ids:
            return {}
        ids, found = vectors.of_texts(self._conn, model.id, text_ids)
        return dict(zip(ids.tolist(), (found @ vector).tolist(), strict=True))

    def _scored(self, parts: Iterable[tuple[Hit, float | None, float | None]]) -> list[Candidate]:
        """Hits with similarity and lexical, by the best that any of their newest rows can be, the best first."""
        found, settings, worth = list(parts), self._settings, {}
        if scoring.weighed(settings):
            ids = [id_ for hit, _, _ in found for id_ in hit.node_ids]
            worth = scoring.worth_of(self._conn, settings, self._asked.now, ids)
        gains = {id_: scoring.fused(settings, 0.0, *one) for id_, one in worth.items()}
        scored = []
        for hit, similarity, lexical in found:
            relevance = scoring.relevance(similarity, lexical, self._said.weight)
            id_ = max(hit.node_ids, key=lambda id_: (gains.get(id_, 0.0), id_)) if gains else max(hit.node_ids)
            best = scoring.score(settings, relevance, worth.get(id_, _NOTHING), hit.kind == Kind.GIST)
            scored.append(Candidate(scoring.order(best, similarity, id_), relevance, hit, similarity, lexical))
        return sorted(scored, key=_ORDER)
