"""Search by words: FTS5 finds texts by the rarest words of a query; each is scored by how much of the query it says.

`lexical` is the share of the query's weight that a text covers: the sum of idf over the query's words that it has, by
the sum over all of them, with idf(word) = ln(1 + (N - n + 0.5) / (n + 0.5)) as in BM25, n of N texts having the word.
It lies in 0..1 and compares across queries: 1 says that the text has every word. Of texts with an equal share the
shortest comes first, then the newest. FTS5's own rank is not used: it costs four times as much as the bare ids, and a
sum of bm25 has no scale that compares.
"""

from __future__ import annotations

import math
import re
import sqlite3
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from memory_node.storage import texts

POSTINGS = 4000
"""Occurrences of words that one query looks at, about 1 ms: of the rarest words all, of the next the newest."""

COMMON = 500  # texts with a word from which on their number is remembered instead of counted for every query

_ROW = np.dtype([("id", "i8")])
_WORD = re.compile(r"[^\W_]+")
_LONGEST = 64  # words of a query that are looked at
_STOP_WORDS = """
a about all an and any are as at be been but by can could did do does for from had has have how i if in into is it its
me my no not of on or our please show so tell than that the their them then there these they this to was we were what
when where which who why will with would you your
"""
_STOP = frozenset(_STOP_WORDS.split())


@dataclass(frozen=True)
class Query:
    """Words of a query worth looking for.

    Attributes:
        words: by stem.
        weights: idf by stem.
        holders: number of texts by stem.
    """

    words: dict[str, str]
    weights: dict[str, float]
    holders: dict[str, int]

    @cached_property
    def weight(self) -> float:
        """Sum of idf of all its words."""
        return sum(self.weights.values())

    @cached_property
    def initials(self) -> frozenset[str]:
        """First letters of its stems."""
        return frozenset(stem[0] for stem in self.words)

    def share(self, body: str) -> float:
        """Share of the query's weight that body covers, 0..1."""
        # Stemming changes endings alone, so that most words need not be stemmed to tell that they are other ones.
        stems = {stem_of(word) for word in _WORD.findall(body.lower()) if word[0] in self.initials or word[0] > "z"}
        return sum(w for stem, w in self.weights.items() if stem in stems) / self.weight


class Lexicon:
    """The words of one database; remembers how many texts hold a common word. Safe to use from several threads."""

    def __init__(self) -> None:
        self._common: dict[str, tuple[int, int]] = {}

    def understand(self, conn: sqlite3.Connection, text: str) -> Query | None:
        """Return the query that text is, whatever characters it has; None when it has no word."""
        words = list(dict.fromkeys(_WORD.findall(text.lower())))[:_LONGEST]
        words = [word for word in words if word not in _STOP] or words
        by_stem = {stem_of(word): word for word in words}
        by_stem.pop("", None)
        if not by_stem:
            return None
        row = conn.execute("SELECT seq FROM sqlite_sequence WHERE name = 'text'").fetchone()
        total = row[0] if row else 0
        holders = {stem: self._holders(conn, stem, total) for stem in by_stem}
        weights = {stem: math.log(1.0 + max(0.0, total - n + 0.5) / (n + 0.5)) for stem, n in holders.items()}
        return Query(by_stem, weights, holders)

    def _holders(self, conn: sqlite3.Connection, stem: str, total: int) -> int:
        count, then = self._common.get(stem, (0, 0))
        if count and total <= then + then // 20:
            return count
        row = conn.execute("SELECT doc FROM text_terms WHERE term = ?", (stem,)).fetchone()
        count = row[0] if row else 0
        if count >= COMMON:
            self._common[stem] = (count, total)
        return count


def matching(
    conn: sqlite3.Connection, query: Query, k: int, passing: NDArray[np.bool_] | None = None
) -> list[int]:
    """Return ids of about the k texts that have most of the query's rarest words, the best first.

    Args:
        passing: bool by text id: the texts wanted; None for all.
    """
    left = POSTINGS
    found, weights = [np.empty(0, dtype=np.int64)], [np.empty(0)]
    for stem in sorted(query.words, key=lambda stem: query.holders[stem]):
        # The quotes make a word of whatever it is, AND and NEAR among them.
        match = f'"{query.words[stem]}"'
        sql = "SELECT rowid FROM text_fts WHERE text_fts MATCH ? ORDER BY rowid DESC LIMIT ?"
        ids = np.fromiter(conn.execute(sql, (match, left)), dtype=_ROW)["id"]
        found.append(ids)
        weights.append(np.full(len(ids), query.weights[stem]))
        left -= len(ids)
        if left <= 0:
            break
    ids = np.concatenate(found)
    texts_found, places = np.unique(ids, return_inverse=True)
    sums = np.bincount(places, np.concatenate(weights), minlength=len(texts_found))
    if passing is not None:
        inside = texts_found < len(passing)
        inside[inside] = passing[texts_found[inside]]
        texts_found, sums = texts_found[inside], sums[inside]
    best: list[int] = texts_found[np.lexsort((texts_found, sums))[::-1][:k]].tolist()
    return best


def scored(conn: sqlite3.Connection, query: Query, text_ids: Sequence[int]) -> list[tuple[int, float]]:
    """Return those of the texts that have a word of the query, with `lexical`, the best first."""
    found = texts.bodies(conn, text_ids)
    rated = [(query.share(body), -len(body), id_) for id_, body in found.items()]
    return [(id_, share) for share, _, id_ in sorted(rated, reverse=True) if share > 0.0]


class _Stemmer:
    """FTS5's own tokenizer, asked through a table in memory, so that our stems are its stems."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._conn = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
        self._conn.execute("CREATE VIRTUAL TABLE words USING fts5(w, tokenize='porter unicode61 remove_diacritics 2')")
        self._conn.execute("CREATE VIRTUAL TABLE stems USING fts5vocab(words, instance)")

    def __call__(self, word: str) -> str:
        with self._lock:
            self._conn.execute("INSERT INTO words (rowid, w) VALUES (1, ?)", (word,))
            row = self._conn.execute("SELECT term FROM stems").fetchone()
            self._conn.execute("DELETE FROM words WHERE rowid = 1")
        return row[0] if row else ""


@lru_cache(maxsize=1)
def _stemmer() -> _Stemmer:
    return _Stemmer()


@lru_cache(maxsize=65_536)
def stem_of(word: str) -> str:
    """The term under which FTS5 files a word; "" when it files none."""
    return _stemmer()(word)
