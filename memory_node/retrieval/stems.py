"""Words of a text, and the stems under which FTS5 files them."""

from __future__ import annotations

import re
import sqlite3
import threading
from functools import lru_cache

WORD = re.compile(r"[^\W_]+")


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
