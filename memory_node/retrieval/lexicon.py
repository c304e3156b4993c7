"""Which texts have a word: read from FTS5, and remembered for common words, whose long lists change little."""

from __future__ import annotations

import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

COMMON = 500
"""Texts with a word from which on they are remembered instead of read for every query."""
MOST = 262_144
"""Texts that are known of a word, the newest; 1 MiB, some 30 ms to read them."""
REMEMBERED = 4_194_304
"""Texts of common words that are remembered together, of those words that were asked for last; 16 MiB."""

QUESTIONS = 64
"""Questions that are remembered as they were understood: answering one asks several times, also by other names."""

Ids = NDArray[np.int32]
T = TypeVar("T")

# One text of all ids takes a third of the time that as many rows take.
_NEWEST = """SELECT group_concat(rowid) FROM
    (SELECT rowid FROM text_fts WHERE text_fts MATCH ? AND rowid > ? AND rowid < ? ORDER BY rowid DESC LIMIT ?)"""
_LAST = 2**63 - 1


@dataclass(frozen=True)
class Word:
    """A word as of one state of the database.

    Attributes:
        holders: number of texts that have it.
        ids: the newest MOST of them, ascending; some may be gone meanwhile.
        total, epoch: `texts.state` then.
    """

    holders: int
    ids: Ids
    total: int
    epoch: int


class Lexicon:
    """The words of one database. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._common: OrderedDict[str, Word] = OrderedDict()
        self._size = 0
        self._understood: tuple[dict[str, Any], Hashable] = {}, None

    def once(self, question: str, state: Hashable, understand: Callable[[], T]) -> T:
        """Return what understanding a question gave or gives, in a state of the database.

        Only questions of the latest state are remembered: what they hold of common words they share.
        """
        known, of = self._understood
        if of != state or len(known) >= QUESTIONS:
            known, _ = self._understood = {}, state
        if question not in known:
            known[question] = understand()
        return cast(T, known[question])

    def word(self, conn: sqlite3.Connection, stem: str, word: str, total: int, epoch: int) -> Word:
        """Return what is known of a word, up to date with conn, of which are total and epoch.

        Args:
            stem: of word. total, epoch: see `texts.state`.
        """
        with self._lock:
            known = self._common.get(stem)
        if known is None or known.epoch != epoch or total > known.total + known.total // 20:
            known = self._read(conn, stem, word, total, epoch)
        elif total > known.total:
            newer = newest(conn, word, after=known.total)
            ids = np.concatenate([known.ids, newer])[-MOST:]
            known = replace(known, holders=known.holders + len(newer), ids=ids, total=total)
        if known.holders >= COMMON:
            self._remember(stem, known)
        return known

    def _remember(self, stem: str, word: Word) -> None:
        with self._lock:
            before = self._common.pop(stem, None)
            self._common[stem] = word
            self._size += len(word.ids) - (len(before.ids) if before else 0)
            while self._size > REMEMBERED:
                _, oldest = self._common.popitem(last=False)
                self._size -= len(oldest.ids)

    @staticmethod
    def _read(conn: sqlite3.Connection, stem: str, word: str, total: int, epoch: int) -> Word:
        row = conn.execute("SELECT doc FROM text_terms WHERE term = ?", (stem,)).fetchone()
        holders = row[0] if row else 0
        ids = newest(conn, word) if holders else np.empty(0, dtype=np.int32)
        return Word(holders, ids, total, epoch)


def newest(conn: sqlite3.Connection, word: str, after: int = 0, before: int = _LAST) -> Ids:
    """Return the newest MOST of the texts with ids between after and before that have a word, ascending."""
    # The quotes make a word of whatever it is, AND and NEAR among them.
    row = conn.execute(_NEWEST, (f'"{word}"', after, before, MOST)).fetchone()
    return np.sort(np.fromstring(row[0] or "", dtype=np.int32, sep=","))
