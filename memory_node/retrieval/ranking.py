"""From what meaning and words found to one ranked list on one scale, each answer with the parts of its score in 0..1.

    evidence  = m / (m + HALF), m = lexical * (sum of idf of the query's words)
    relevance = (1 - WORDS) similarity + WORDS evidence; where meaning had no part, evidence
    score     = (r relevance + i importance + t recency) / (r + i + t); r, i, t are the weights of the settings

A rare word that both have is evidence, a common one is little; none of it is relative to the other answers, so a score
means the same in every query. docs/ranking.md shows how the constants were measured.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from memory_node.graph import Kind, Node, PositionSource
from memory_node.housekeeping.importance import earned_importance, retrievability, stability
from memory_node.retrieval.folding import SAME_PLACE, Fold
from memory_node.storage import nodes, usage, vectors

if TYPE_CHECKING:
    import sqlite3

    import numpy as np
    from numpy.typing import NDArray

    from memory_node.config import Settings
    from memory_node.retrieval.filters import Resolved
    from memory_node.retrieval.plan import Plan
    from memory_node.retrieval.search import Hit, Searcher
    from memory_node.storage.database import Database

SECOND = 1_000_000_000
WORDS = 0.3
"""Share of the words in relevance."""
HALF = 4.0
"""Sum of idf at which words are half as good as they can be; a word that one text of 50 has weighs 3.5."""
POOL = 40
"""Texts that meaning and words each bring into the ranking, at least."""
SUMMARY = 0.9
"""What a gist says counts so much of what a row says, which knows its own time and place."""
SPARE = 4
"""Answers prepared beyond the limit, in case some become one or change places."""
SAME_VIEW = 2.0
"""m: the same words said from places nearer to each other than this are told as one; a robot sees a room from many."""
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Ranked:
    """One answer: its newest row, how many rows it stands for and their span (ns), and the parts of its score, 0..1."""

    node: Node
    count: int
    first: int
    last: int
    score: float
    similarity: float | None
    lexical: float | None
    importance: float
    recency: float


@dataclass(frozen=True)
class Asked:
    """A question: words ("" for none), unit vector (D,) or None, filter, and the moment it is asked at (ns)."""

    query: str
    vector: NDArray[np.float32] | None
    resolved: Resolved
    now: int


class _Found(NamedTuple):
    """A hit with both parts; None where a part had no part."""

    hit: Hit
    similarity: float | None
    lexical: float | None


def rank(
    searcher: Searcher, db: Database, settings: Settings, asked: Asked, limit: int, plan: Plan | None = None
) -> list[Ranked]:
    """Return the best answers of all kinds that the filter passes, the best first; of equals the newest first.

    Args:
        limit: most answers.
        plan: filled with what the searches did.
    """
    with db.read() as conn:
        # By meaning alone the order is the index's own, unless importance or recency change it.
        alone = not asked.query and not settings.importance_weight and not settings.recency_weight
        found, weight = _found(searcher, conn, asked, limit + SPARE if alone else max(POOL, 2 * limit), plan)
        return _told(searcher, conn, settings, asked, _scored(conn, settings, asked, found, weight), limit)


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


def _found(
    searcher: Searcher, conn: sqlite3.Connection, asked: Asked, pool: int, plan: Plan | None
) -> tuple[list[_Found], float]:
    """What both searches found, each text once and with both parts, and what the query's words weigh (sum of idf)."""
    by_meaning = [] if asked.vector is None else searcher.meaning(asked.vector, pool, asked.resolved, plan)
    if not asked.query:
        return [_Found(hit, hit.similarity, None) for hit in by_meaning], 0.0
    by_words = searcher.words(asked.query, pool, asked.resolved, plan)
    known = {(hit.text_id, hit.node_id) for hit in by_meaning}
    unmeasured = [hit for hit in by_words if (hit.text_id, hit.node_id) not in known]
    unmeasured_texts = [hit.text_id for hit in unmeasured]
    similar = {} if asked.vector is None else _similarities(searcher, conn, asked.vector, unmeasured_texts)
    lexical = {hit.text_id: hit.lexical for hit in by_words}
    weight, more = searcher.said(asked.query, [hit.text_id for hit in by_meaning if hit.text_id not in lexical])
    lexical |= more
    found = [_Found(hit, hit.similarity, lexical.get(hit.text_id, 0.0)) for hit in by_meaning]
    return found + [_Found(hit, similar.get(hit.text_id), hit.lexical) for hit in unmeasured], weight


def _similarities(
    searcher: Searcher, conn: sqlite3.Connection, vector: NDArray[np.float32], text_ids: list[int]
) -> dict[int, float]:
    model = searcher.model
    if model is None or model.dim != len(vector) or not text_ids:
        return {}
    ids, found = vectors.of_texts(conn, model.id, text_ids)
    return dict(zip(ids.tolist(), (found @ vector).tolist(), strict=True))


def _scored(
    conn: sqlite3.Connection, settings: Settings, asked: Asked, found: Sequence[_Found], weight: float
) -> list[tuple[float, _Found]]:
    """Score and hit, the best first; importance and recency are those of the hit's newest row."""
    relevant = [relevance(one.similarity, one.lexical, weight) for one in found]
    if settings.importance_weight or settings.recency_weight:
        worth = _worth(conn, settings, asked.now, [one.hit.node_ids[0] for one in found])
        relevant = [
            fused(settings, value, *worth.get(one.hit.node_ids[0], (0.0, 0.0)))
            for value, one in zip(relevant, found, strict=True)
        ]
    scored = list(zip(relevant, found, strict=True))
    # Opposite meanings all have relevance 0, and are still more or less alike.
    scored.sort(key=lambda pair: (-pair[0], -(pair[1].similarity or 0.0), -pair[1].hit.node_ids[0]))
    return scored


def _worth(
    conn: sqlite3.Connection, settings: Settings, now: int, ids: Iterable[int]
) -> dict[int, tuple[float, float]]:
    """Importance and recency of each row by id; use raises both, see housekeeping/importance.py."""
    worth = {}
    for id_, importance, last_stamp, blocks, recalled in usage.of(conn, ids):
        fresh = recency((now - last_stamp) / SECOND, settings.recency_halflife)
        if blocks and recalled <= now:  # one that is still to come is of a clock that has gone back
            fresh = max(fresh, retrievability(stability(blocks), (now - recalled) / SECOND))
        worth[id_] = (earned_importance(importance, blocks), min(fresh, 1.0))
    return worth


def _told(
    searcher: Searcher,
    conn: sqlite3.Connection,
    settings: Settings,
    asked: Asked,
    scored: Sequence[tuple[float, _Found]],
    limit: int,
) -> list[Ranked]:
    """The best hits as answers: a text at several places is several, near-identical ones are one."""
    answers: list[Ranked] = []
    at = 0
    # Most often the first round fills the list; another follows where answers became one.
    while len(answers) < limit and at < len(scored):
        some, at = scored[at : at + limit + SPARE], at + limit + SPARE
        folds: list[tuple[float, _Found, Fold]] = []
        for score, found in some:
            if found.hit.total == 1:
                folds.append((score, found, Fold(found.hit.node_ids[0], 1, 0, 0)))
            elif len(folds) < 2 * limit:
                folds += [(score, found, one) for one in searcher.folds(found.hit.text_id, asked.resolved, limit)]
        rows = {node.id: node for node in nodes.fetch(conn, [one.node_id for _, _, one in folds])}
        worth = _worth(conn, settings, asked.now, rows)
        there = (row for row in folds if row[2].node_id in rows)
        answers += [_ranked(rows[one.node_id], one, score, found, *worth[one.node_id]) for score, found, one in there]
        answers = _distinct(answers)
    answers.sort(key=lambda answer: -answer.score)
    return answers[:limit]


def _ranked(node: Node, one: Fold, score: float, found: _Found, importance: float, recency: float) -> Ranked:
    single = one.count == 1
    score *= SUMMARY if node.kind is Kind.GIST else 1.0
    return Ranked(
        node=node,
        count=node.repeats if single else max(one.count, node.repeats),
        first=node.stamp if single else one.first,
        last=node.last_stamp if single else one.last,
        score=min(max(score, 0.0), 1.0),
        similarity=found.similarity,
        lexical=found.lexical,
        importance=importance,
        recency=recency,
    )


def _distinct(answers: Sequence[Ranked]) -> list[Ranked]:
    """Answers, with observations of one layer, the same words and the same place counted on the best of them."""
    kept: list[Ranked] = []
    known: dict[tuple[str, ...], list[int]] = {}
    for new in answers:
        said = (new.node.layer, *_WORD.findall((new.node.text or "").casefold()))
        alike = known.setdefault(said, [])
        for place in alike:
            old = kept[place]
            if _together(old.node, new.node):
                first, last = min(old.first, new.first), max(old.last, new.last)
                kept[place] = replace(old, count=old.count + new.count, first=first, last=last)
                break
        else:
            if new.node.kind is Kind.OBSERVATION:
                alike.append(len(kept))
            kept.append(new)
    return kept


def _together(one: Node, other: Node) -> bool:
    """Whether an observation is where another kept one is."""
    if other.kind is not Kind.OBSERVATION or one.map_id != other.map_id:
        return False
    if one.position is None or other.position is None:
        return one.position is other.position
    seen_from = one.position_source is other.position_source is PositionSource.OBSERVER
    return math.dist(one.position, other.position) <= (SAME_VIEW if seen_from else SAME_PLACE)
