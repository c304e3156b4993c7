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

from memory_node.graph import EdgeType, Kind, Node, PositionSource
from memory_node.housekeeping.importance import earned_importance, retrievability, stability
from memory_node.ingest.entity_table import ELSEWHERE
from memory_node.retrieval.filters import Resolved
from memory_node.retrieval.folding import SAME_PLACE, Fold
from memory_node.retrieval.groups import NEWEST
from memory_node.storage import edges, nodes, usage, vectors

if TYPE_CHECKING:
    import sqlite3

    import numpy as np
    from numpy.typing import NDArray

    from memory_node.config import Settings
    from memory_node.retrieval.findings import Findings
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
SPARE = 1
"""Answers prepared beyond the limit, in case some become one or change places."""
SAME_VIEW = 2.0
"""m: the same words said from places nearer to each other than this are told as one; a robot sees a room from many."""
_NOTHING = (0.0, 0.0)
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Ranked:
    """One answer: the row that leads, how many readings it stands for and their span (ns), and its score, 0..1.

    Attributes:
        similarity, lexical, importance, recency: parts of the score, of this row; None where one had no part.
        shown: of an entity, the observations there that say no more than its name; they are no answers besides it.
    """

    node: Node
    count: int
    first: int
    last: int
    score: float
    similarity: float | None
    lexical: float | None
    importance: float
    recency: float | None
    shown: tuple[Ranked, ...] = ()


@dataclass(frozen=True)
class Asked:
    """A question: words ("" for none), unit vector (D,) or None, filter, moment it is asked at (ns), what was found."""

    query: str
    vector: NDArray[np.float32] | None
    resolved: Resolved
    now: int
    seen: Findings | None = None


class _Found(NamedTuple):
    """A hit with both parts; None where a part had no part."""

    hit: Hit
    similarity: float | None
    lexical: float | None


class _Scored(NamedTuple):
    """What was found, its relevance, and where in the order the best of its rows stands."""

    order: tuple[float, float, int]
    relevance: float
    found: _Found


def rank(
    searcher: Searcher, db: Database, settings: Settings, asked: Asked, limit: int, plan: Plan | None = None
) -> list[Ranked]:
    """Return the best answers of all kinds that the filter passes, the best first; of equals the newest first.

    Args:
        limit: most answers.
        plan: filled with what the searches did.
    """
    wide = max(POOL, 2 * limit)
    # By meaning alone the order is the index's own, unless importance, recency or summaries change it.
    pool = wide if asked.query or _weighed(settings) else limit + SPARE
    with db.read() as conn:
        while True:
            found, weight = _found(searcher, conn, asked, pool, plan)
            if pool < wide and any(one.hit.kind == Kind.GIST for one in found):
                pool = wide
                continue
            scored = _scored(conn, settings, asked, found, weight)
            answers = _told(searcher, conn, settings, asked, scored, limit)
            if len(answers) >= limit or len(found) < pool:
                return answers
            pool *= 4  # many became one


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
    by_meaning: list[Hit] = []
    if asked.vector is not None:
        by_meaning = searcher.meaning(asked.vector, pool, asked.resolved, plan, seen=asked.seen)
    if not asked.query:
        return [_Found(hit, hit.similarity, None) for hit in by_meaning], 0.0
    by_words = searcher.words(asked.query, pool, asked.resolved, plan, seen=asked.seen)
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
    conn: sqlite3.Connection,
    settings: Settings,
    asked: Asked,
    found: Sequence[_Found],
    weight: float,
) -> list[_Scored]:
    """What was found by the best that any of its newest rows can be, the best first."""
    worth = {}
    if _weighed(settings):
        worth = _worth(conn, settings, asked.now, [id_ for one in found for id_ in one.hit.node_ids])
    gains = {id_: fused(settings, 0.0, *parts) for id_, parts in worth.items()}
    scored = []
    for one in found:
        value = relevance(one.similarity, one.lexical, weight)
        id_ = max(one.hit.node_ids, key=lambda id_: (gains.get(id_, 0.0), id_))
        best = _score(settings, value, worth.get(id_, _NOTHING), one.hit.kind == Kind.GIST)
        scored.append(_Scored(_order(best, one.similarity, id_), value, one))
    return sorted(scored, key=lambda one: one.order)


def _weighed(settings: Settings) -> bool:
    return settings.importance_weight > 0.0 or settings.recency_weight > 0.0


def _score(settings: Settings, relevance: float, worth: tuple[float, float], is_gist: bool) -> float:
    """Score of a row from its own parts; worth is its importance and recency."""
    return min(max(fused(settings, relevance, *worth) * (SUMMARY if is_gist else 1.0), 0.0), 1.0)


def _order(score: float, similarity: float | None, id_: int) -> tuple[float, float, int]:
    """The best first; opposite meanings all have relevance 0, and are still more or less alike; then the newest."""
    return -score, -(similarity or 0.0), -id_


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
    scored: Sequence[_Scored],
    limit: int,
) -> list[Ranked]:
    """The best as answers: a text at several places is several, near-identical ones are one."""
    answers: list[Ranked] = []
    at = 0
    # The newest place of a text is its best, unless rows are weighed; then it is among those of the rows of the hit.
    places = max(limit, NEWEST) if _weighed(settings) else limit
    # Most often the first round fills the list; another follows where answers became one, or some may still be better.
    while at < len(scored) and (len(answers) < limit or scored[at].order < _place(answers[limit - 1])):
        folds: list[tuple[_Scored, Fold]] = []
        end = min(at + limit + SPARE, len(scored))
        while at < end and len(folds) < 2 * limit + SPARE:
            folds += [(scored[at], one) for one in _folds(searcher, asked, scored[at].found.hit, places)]
            at += 1
        rows = {node.id: node for node in nodes.fetch(conn, [one.node_id for _, one in folds])}
        worth = _worth(conn, settings, asked.now, rows)
        there = (pair for pair in folds if pair[1].node_id in rows)
        answers += [_ranked(settings, rows[fold.node_id], fold, of, worth[fold.node_id]) for of, fold in there]
        answers = _led_by_things(conn, distinct(sorted(answers, key=_place)), asked.resolved)
    return answers[:limit]


def _folds(searcher: Searcher, asked: Asked, hit: Hit, most: int) -> list[Fold]:
    """A hit place by place; what is one row is told by that row."""
    return [Fold(hit.node_ids[0], 0, 0, 0)] if hit.total == 1 else searcher.folds(hit.text_id, asked.resolved, most)


def _ranked(settings: Settings, node: Node, fold: Fold, of: _Scored, worth: tuple[float, float]) -> Ranked:
    alone = fold.count == 0
    return Ranked(
        node=node,
        count=node.repeats if alone else fold.count,
        first=node.stamp if alone else fold.first,
        last=node.last_stamp if alone else fold.last,
        score=_score(settings, of.relevance, worth, node.kind is Kind.GIST),
        similarity=of.found.similarity,
        lexical=of.found.lexical,
        importance=worth[0],
        recency=worth[1],
    )


def _place(answer: Ranked) -> tuple[float, float, int]:
    return _order(answer.score, answer.similarity, answer.node.id)


def _led_by_things(conn: sqlite3.Connection, answers: Sequence[Ranked], resolved: Resolved) -> list[Ranked]:
    """Answers, with sightings of an entity at its place that say its name told by the entity alone.

    An entity has the count and span of all its sightings, and of those in the window where the filter has one.
    """
    things = {one.node.id: one for one in answers if one.node.kind is Kind.ENTITY}
    others = {one.node.id: one for one in answers if one.node.kind is Kind.OBSERVATION} if things else {}
    shown: dict[int, list[Ranked]] = {}
    for thing, id_ in edges.pairs(conn, others, EdgeType.OBSERVED_IN) if others else ():
        if thing in things and id_ in others and _shows(others[id_].node, things[thing].node):
            shown.setdefault(thing, []).append(others.pop(id_))
    windowed = not (resolved.after is resolved.before is resolved.episodes is None)
    told = []
    for answer in answers:
        new = shown.get(answer.node.id)
        if new:
            answer = replace(answer, shown=(*answer.shown, *new))
            if windowed:
                first, last = min(one.first for one in answer.shown), max(one.last for one in answer.shown)
                answer = replace(answer, count=sum(one.count for one in answer.shown), first=first, last=last)
        if answer.node.kind is not Kind.OBSERVATION or answer.node.id in others or not things:
            told.append(answer)
    return told


def _shows(sighting: Node, thing: Node) -> bool:
    """Whether a sighting of an entity says its name alone, and is where the entity is now."""
    if _words(sighting) != _words(thing) or sighting.map_id != thing.map_id:
        return False
    if sighting.position is None or thing.position is None:
        return sighting.position is thing.position
    seen_from = sighting.position_source is thing.position_source is PositionSource.OBSERVER
    return math.dist(sighting.position, thing.position) <= (SAME_VIEW if seen_from else ELSEWHERE)


def distinct(answers: Iterable[Ranked], told: Iterable[Ranked] = ()) -> list[Ranked]:
    """Answers, with observations of one layer, the same words and the same place counted on the first of them.

    Args:
        told: answers besides; what one of them says is left out.
    """
    kept: list[Ranked] = []
    known: dict[tuple[str, ...], list[tuple[Node, int | None]]] = {}
    for one in told:
        if one.node.kind is Kind.OBSERVATION:
            known.setdefault(_said(one.node), []).append((one.node, None))
    for new in answers:
        alike = known.setdefault(_said(new.node), []) if new.node.kind is Kind.OBSERVATION else []
        place = next((at for node, at in alike if _together(node, new.node)), len(kept))
        if place == len(kept):
            alike.append((new.node, place))
            kept.append(new)
        elif place is not None:
            old = kept[place]
            first, last = min(old.first, new.first), max(old.last, new.last)
            kept[place] = replace(old, count=old.count + new.count, first=first, last=last)
    return kept


def _said(node: Node) -> tuple[str, ...]:
    return (node.layer, *_words(node))


def _words(node: Node) -> list[str]:
    return _WORD.findall((node.text or "").casefold())


def _together(one: Node, other: Node) -> bool:
    """Whether two observations are at one place."""
    if one.map_id != other.map_id:
        return False
    if one.position is None or other.position is None:
        return one.position is other.position
    seen_from = one.position_source is other.position_source is PositionSource.OBSERVER
    return math.dist(one.position, other.position) <= (SAME_VIEW if seen_from else SAME_PLACE)
