"""How well an answer fits: one scale for all kinds of answers, each with the parts of its score in 0..1.

    evidence  = m / (m + HALF), m = lexical * (sum of idf of the query's words)
    relevance = (1 - WORDS) similarity + WORDS evidence; where meaning had no part, evidence
    score     = (r relevance + i importance + t recency) / (r + i + t); r, i, t are the weights of the settings

A rare word that both have is evidence, a common one is little; none of it is relative to the other answers, so a score
means the same in every query. docs/ranking.md shows how the constants were measured.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from memory_node.housekeeping.importance import earned_importance, retrievability, stability
from memory_node.storage import usage

if TYPE_CHECKING:
    import sqlite3

    from memory_node.config import Settings

SECOND = 1_000_000_000
WORDS = 0.3
"""Share of the words in relevance."""
HALF = 4.0
"""Sum of idf at which words are half as good as they can be; a word that one text of 50 has weighs 3.5."""
SUMMARY = 0.9
"""What a gist says counts so much of what a row says, which knows its own time and place."""
Worth = tuple[float, float]
"""Importance and recency of a row."""
Order = tuple[float, float, int]
"""Where an answer stands: the best first; see `order`."""


def relevance(similarity: float | None, lexical: float | None, weight: float) -> float:
    """Fuse meaning (cosine) and words into 0..1; either may have had no part.

    Args:
        lexical: share of the query's words, 0..1. weight: sum of idf of those words.
    """
    said = (lexical or 0.0) * weight
    evidence = said / (said + HALF)
    if similarity is None:
        return evidence
    meaning = min(max(similarity, 0.0), 1.0)
    return meaning if lexical is None else (1.0 - WORDS) * meaning + WORDS * evidence


def fused(settings: Settings, relevance: float, importance: float, recency: float) -> float:
    """Join relevance, importance and recency, each 0..1, with the weights of the settings into 0..1."""
    r, i, t = settings.relevance_weight, settings.importance_weight, settings.recency_weight
    total = r + i + t
    return (r * relevance + i * importance + t * recency) / total if total > 0.0 else relevance


def recency(age: float, halflife: float) -> float:
    """Freshness at an age (s): 1 now, a half after `halflife` (s); the future is now."""
    return float(0.5 ** (max(age, 0.0) / halflife))


def weighed(settings: Settings) -> bool:
    """Whether importance or recency have a part in the score."""
    return settings.importance_weight > 0.0 or settings.recency_weight > 0.0


def score(settings: Settings, relevance: float, worth: Worth, is_gist: bool) -> float:
    """Score of a row from its own parts, 0..1."""
    return min(max(fused(settings, relevance, *worth) * (SUMMARY if is_gist else 1.0), 0.0), 1.0)


def order(score: float, similarity: float | None, id_: int) -> Order:
    """The best first; opposite meanings all have relevance 0, and are still more or less alike; then the newest."""
    return -score, -(similarity or 0.0), -id_


def worth_of(conn: sqlite3.Connection, settings: Settings, now: int, ids: Iterable[int]) -> dict[int, Worth]:
    """Importance and recency of each row by id; use raises both, see housekeeping/importance.py."""
    worth = {}
    for id_, importance, last_stamp, blocks, recalled in usage.of(conn, ids):
        fresh = recency((now - last_stamp) / SECOND, settings.recency_halflife)
        if blocks and recalled <= now:  # one that is still to come is of a clock that has gone back
            fresh = max(fresh, retrievability(stability(blocks), (now - recalled) / SECOND))
        worth[id_] = (earned_importance(importance, blocks), min(fresh, 1.0))
    return worth
