"""Search by words: FTS5 tells which texts have a word; each is scored by how much of the query it says.

`lexical` is the share of the query's weight that a text covers: the sum of idf over the query's words that it has, by
the sum over all of them, with idf(word) = ln(1 + (N - n + 0.5) / (n + 0.5)) as in BM25, n of N texts having the word.
It lies in 0..1 and compares across queries: 1 says that the text has every word. Of texts with an equal share the
shortest comes first, then the newest. FTS5's own rank is not used: it costs four times as much as the bare ids, and a
sum of bm25 has no scale that compares.
"""

from __future__ import annotations

import math
import sqlite3
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from memory_node.retrieval.lexicon import Ids, Lexicon, newest
from memory_node.retrieval.stems import WORD, stem_of
from memory_node.storage import texts

POSTINGS = 8192
"""Occurrences of words from which texts are chosen to be scored: of the rarest words all, of the next the newest."""

EQUAL = 1e-12
"""By how much the next newer of two texts is held to weigh more."""
_LONGEST = 64  # words of a query that are looked at
_STOP_WORDS = """
a about all an and any are as at be been but by can could did do does for from had has have how i if in into is it its
me my no not of on or our please show so tell than that the their them then there these they this to was we were what
when where which who why will with would you your
"""
_STOP = frozenset(_STOP_WORDS.split())


@dataclass(frozen=True)
class Query:
    """Words of a query worth looking for, by stem.

    Attributes:
        words: as it was asked.
        weights: idf.
        postings: texts that have the word, ascending ids; the rarest word first.
        horizon: texts below this id may have words that postings do not tell of.
    """

    words: dict[str, str]
    weights: dict[str, float]
    postings: dict[str, Ids]
    horizon: int

    @cached_property
    def weight(self) -> float:
        """Sum of idf of all its words."""
        return sum(self.weights.values())

    @property
    def most(self) -> float:
        """Share of its weight that a text can cover: the words that any text has."""
        return sum(weight for stem, weight in self.weights.items() if len(self.postings[stem])) / self.weight

    def share(self, body: str) -> float:
        """Share of the query's weight that body covers, 0..1."""
        stems = set(map(stem_of, WORD.findall(body.lower())))
        return sum(w for stem, w in self.weights.items() if stem in stems) / self.weight

    def shares(self, conn: sqlite3.Connection, text_ids: NDArray[np.int64]) -> NDArray[np.float64]:
        """Share of the query's weight that each of the texts covers."""
        ids = text_ids.astype(np.int32)
        sums = np.zeros(len(ids))
        for stem, known in self.postings.items():
            if len(known):
                sums += self.weights[stem] * (known.take(np.searchsorted(known, ids), mode="clip") == ids)
        shares = sums / self.weight
        if self.horizon:
            old = np.flatnonzero(ids < self.horizon)
            bodies = texts.bodies(conn, ids[old].tolist())
            shares[old] = [self.share(bodies.get(id_, "")) for id_ in ids[old].tolist()]
        return shares


def understand(conn: sqlite3.Connection, lexicon: Lexicon, text: str, count: int) -> Query | None:
    """Return the query that text is, whatever characters it has; None when it has no word.

    Args:
        count: number of texts, N.
    """
    state = count, *texts.state(conn)
    return lexicon.once(text, state, lambda: _understand(conn, lexicon, text, *state))


def worth_looking_for(text: str) -> list[str]:
    """The words of a question but for the most common ones, in small letters, each once; all where it has no others."""
    words = list(dict.fromkeys(WORD.findall(text.lower())))
    return [word for word in words if word not in _STOP] or words


def _understand(
    conn: sqlite3.Connection, lexicon: Lexicon, text: str, count: int, total: int, epoch: int
) -> Query | None:
    by_stem = {stem_of(word): word for word in worth_looking_for(text)[:_LONGEST]}
    by_stem.pop("", None)
    if not by_stem:
        return None
    known = {stem: lexicon.word(conn, stem, word, total, epoch) for stem, word in by_stem.items()}
    weights, postings, horizon = {}, {}, 0
    for stem, word in sorted(known.items(), key=lambda item: item[1].holders):
        # What is remembered of a word may be a little more than there is.
        weights[stem] = math.log(1.0 + (max(0, count - word.holders) + 0.5) / (word.holders + 0.5))
        postings[stem] = word.ids
        if len(word.ids) < word.holders:
            horizon = max(horizon, int(word.ids[0]) if len(word.ids) else total + 1)
    return Query(by_stem, weights, postings, horizon)


def matching(query: Query, k: int, passing: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
    """Return ids of the k texts that have most of the query's rarest words, of equals the newest, these first.

    Args:
        passing: bool by text id: the texts wanted; None for all.
    """
    chosen: dict[str, Ids] = {}
    left = POSTINGS
    for stem, ids in query.postings.items():
        if passing is None:
            ids = ids[max(0, len(ids) - left) :]
            left -= len(ids)
        else:
            ids = ids[: np.searchsorted(ids, len(passing))]
            ids = ids[passing[ids]]
        if len(ids):
            chosen[stem] = ids
    if not chosen:
        return np.empty(0, dtype=np.int64)
    if len(chosen) == 1:
        (ids,) = chosen.values()
        return ids[max(0, len(ids) - k) :][::-1].astype(np.int64)
    first = min(int(ids[0]) for ids in chosen.values())
    sums = np.zeros(max(int(ids[-1]) for ids in chosen.values()) + 1 - first)
    for stem, ids in chosen.items():
        sums[ids - first] += query.weights[stem]
    best = np.flatnonzero(sums == sums.max())
    if len(best) >= k:
        return best[len(best) - k :][::-1] + first
    found = np.flatnonzero(sums > 0.0)
    # The newest of equals; and a partition of values of which many are equal takes several times as long.
    values = sums[found] + EQUAL * np.arange(len(found))
    if len(found) > k:
        most = np.argpartition(values, len(found) - k)[len(found) - k :]
        found, values = found[most], values[most]
    return found[np.argsort(-values)] + first


def older(
    conn: sqlite3.Connection, query: Query, k: int, passing: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Return ids of texts that pass and have one of the words, of those that postings do not tell of.

    The newest come first, k of each word; the work is that of reading its postings down to them.
    """
    found: list[Ids] = []
    first = int(passing.argmax())
    for stem, known in query.postings.items():
        end = int(known[0]) if len(known) else query.horizon
        left = k
        while left > 0 and end > first:
            ids = newest(conn, query.words[stem], after=first - 1, before=end)
            if not len(ids):
                break
            end = int(ids[0])
            inside = ids[ids < len(passing)]
            found.append(inside[passing[inside]][-left:])
            left -= len(found[-1])
    return np.unique(np.concatenate(found)).astype(np.int64) if found else np.empty(0, dtype=np.int64)


def scored(conn: sqlite3.Connection, query: Query, text_ids: NDArray[np.int64], k: int) -> list[tuple[int, float]]:
    """Return those k of the texts that say most of the query, with `lexical`, the best first; all say something."""
    shares = query.shares(conn, text_ids)
    least = np.partition(shares, len(shares) - k)[len(shares) - k] if len(shares) > k else 0.0
    some = np.flatnonzero((shares >= least) & (shares > 0.0))
    rated = dict(zip(text_ids[some].tolist(), shares[some].tolist(), strict=True))
    best = sorted((-rated[id_], length, -id_) for id_, length in texts.lengths(conn, rated).items())[:k]
    return [(-id_, -share) for share, _, id_ in best]
