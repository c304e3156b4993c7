"""Search by words: FTS5 finds texts by the rarest words of a query; each is scored by how much of the query it says.

`lexical` is the share of the query's weight that a text covers: the sum of idf over the query's words that it has, by
the sum over all of them, with idf(word) = ln(1 + (N - n + 0.5) / (n + 0.5)) as in BM25, n of N texts having the word.
It lies in 0..1 and compares across queries: 1 says that the text has every word. Among texts of equal share FTS5's bm25
decides, which prefers short ones.
"""

from __future__ import annotations

import math
import re
import sqlite3
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from memory_node.storage import texts

POSTINGS = 8000
"""Occurrences that one query may look at, 1 to 2 ms. Words beyond are not searched for but still count in the score."""

_WORD = re.compile(r"[^\W_]+")
_LONGEST = 64  # words of a query that are looked at
_STOP_WORDS = """
a about all an and any are as at be been but by can could did do does for from had has have how i if in into is it its me
my no not of on or our please show so tell than that the their them then there these they this to was we were what when
where which who why will with would you your
"""
_STOP = frozenset(_STOP_WORDS.split())


@dataclass(frozen=True)
class Query:
    """Words of a query worth looking for.

    Attributes:
        weights: idf by stem.
        search: words to search for, the rarest first, within POSTINGS; one at least.
        costly: even the rarest word is in more texts than POSTINGS.
        texts: how many texts there are, or were: N.
    """

    weights: dict[str, float]
    search: tuple[str, ...]
    costly: bool
    texts: int

    def score(self, body: str) -> float:
        """Share of the query's weight that body covers, 0..1."""
        stems = {stem_of(word) for word in _WORD.findall(body.lower())}
        return math.fsum(w for stem, w in self.weights.items() if stem in stems) / math.fsum(self.weights.values())


def understand(conn: sqlite3.Connection, text: str) -> Query | None:
    """Return the query that text is, whatever characters it has; None when it has no word."""
    words = list(dict.fromkeys(_WORD.findall(text.lower())))[:_LONGEST]
    words = [word for word in words if word not in _STOP] or words
    by_stem = {stem_of(word): word for word in words}
    by_stem.pop("", None)
    if not by_stem:
        return None
    total = conn.execute("SELECT seq FROM sqlite_sequence WHERE name = 'text'").fetchone()
    count = total[0] if total else 0
    found = {stem: _holders(conn, stem) for stem in by_stem}
    weights = {stem: math.log(1.0 + max(0.0, count - n + 0.5) / (n + 0.5)) for stem, n in found.items()}
    search: list[str] = []
    spent = 0
    for stem in sorted(by_stem, key=lambda stem: found[stem]):
        spent += found[stem]
        if search and spent > POSTINGS:
            break
        search.append(by_stem[stem])
    return Query(weights, tuple(search), min(found.values()) > POSTINGS, count)


def matching(conn: sqlite3.Connection, query: Query, limit: int) -> list[int]:
    """Return ids of texts that have a searched word, the best by bm25 first; the newest when the word is too common."""
    match = " OR ".join(f'"{word}"' for word in query.search)
    order = "rowid DESC" if query.costly else "rank"
    sql = f"SELECT rowid FROM text_fts WHERE text_fts MATCH ? ORDER BY {order} LIMIT ?"
    return [row[0] for row in conn.execute(sql, (match, limit))]


def scored(conn: sqlite3.Connection, query: Query, text_ids: Sequence[int]) -> list[tuple[int, float]]:
    """Return those of the texts that have a word of the query, with `lexical`: the best first, else as given."""
    found = texts.bodies(conn, text_ids)
    rated = [(id_, query.score(found[id_])) for id_ in text_ids if id_ in found]
    return sorted((row for row in rated if row[1] > 0.0), key=lambda row: -row[1])


def _holders(conn: sqlite3.Connection, stem: str) -> int:
    """How many texts have the stem."""
    row = conn.execute("SELECT doc FROM text_terms WHERE term = ?", (stem,)).fetchone()
    return row[0] if row else 0


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

