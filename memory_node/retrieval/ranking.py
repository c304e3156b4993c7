"""From what was found to one ranked list, in which what is one is told once and things stand for their sightings."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from memory_node.graph import EdgeType, Kind, Node, PositionSource
from memory_node.ingest.entity_table import ELSEWHERE
from memory_node.retrieval import scoring
from memory_node.retrieval.candidates import Asked, Candidate, Candidates
from memory_node.retrieval.filters import Resolved
from memory_node.retrieval.folding import SAME_PLACE, Fold
from memory_node.retrieval.groups import NEWEST
from memory_node.storage import edges, nodes

if TYPE_CHECKING:
    import sqlite3

    from memory_node.config import Settings
    from memory_node.retrieval.plan import Plan
    from memory_node.retrieval.search import Hit, Searcher
    from memory_node.storage.database import Database

POOL = 30
"""Texts that meaning and words each bring into the ranking, at least."""
WIDE_POOL = 40
"""The same where importance or recency may lift what is less alike, or where only gists are asked for: one tells of
many things, and may be far from a question about one of them."""
SPARE = 1
"""Answers prepared beyond the limit, in case some become one or change places."""
SAME_VIEW = 2.0
"""m: the same words said from places nearer to each other than this are told as one; a robot sees a room from many."""
_WORD = re.compile(r"\w+")


class Ranked(NamedTuple):
    """One answer: the row that leads, how many readings it stands for and their span (ns), and its score, 0..1.

    Attributes:
        similarity, lexical, importance, recency: parts of the score, of this row; None where one had no part.
        shown: of an entity, the observations there that say no more than its name; they are no answers besides it.
    """

    node: Node
    repeats: int
    first: int
    last: int
    score: float
    similarity: float | None
    lexical: float | None
    importance: float
    recency: float | None
    shown: tuple[Ranked, ...] = ()


def rank(
    searcher: Searcher, db: Database, settings: Settings, asked: Asked, limit: int, plan: Plan | None = None
) -> list[Ranked]:
    """Return the best answers of all kinds that the filter passes, the best first; of equals the newest first.

    Args:
        limit: most answers.
        plan: filled with what the searches did.
    """
    weighed = scoring.weighed(settings)
    least = WIDE_POOL if weighed or asked.resolved.kinds == (int(Kind.GIST),) else POOL
    wide = max(least, 2 * limit)
    # By meaning alone the order is the index's own, unless importance, recency or summaries change it.
    pool = wide if asked.query or weighed else limit + SPARE
    with db.read() as conn:
        while True:
            candidates = Candidates(searcher, conn, settings, asked, pool, plan)
            if pool < wide and candidates.has_gists:
                pool = wide
                continue
            answers = _told(searcher, conn, settings, asked, candidates, limit)
            if len(answers) >= limit or candidates.found < pool:
                return answers
            pool *= 4  # many became one


def _told(
    searcher: Searcher,
    conn: sqlite3.Connection,
    settings: Settings,
    asked: Asked,
    candidates: Candidates,
    limit: int,
) -> list[Ranked]:
    """The best as answers: a text at several places is several, near-identical ones are one."""
    answers: list[Ranked] = []
    # The newest place of a text is its best, unless rows are weighed; then it is among those of the rows of the hit.
    places = max(limit, NEWEST) if scoring.weighed(settings) else limit
    # Most often the first round fills the list; another follows where answers became one, or some may still be better.
    while candidates.any_before(_place(answers[limit - 1]) if len(answers) >= limit else None):
        folds: list[tuple[Candidate, Fold]] = []
        for _ in range(limit + SPARE):
            if len(folds) >= 2 * limit + SPARE or not candidates.any_before(None):
                break
            best = candidates.take()
            folds += [(best, one) for one in _folds(searcher, asked, best.hit, places)]
        rows = {node.id: node for node in nodes.fetch(conn, [one.node_id for _, one in folds])}
        worth = scoring.worth_of(conn, settings, asked.now, rows)
        there = (pair for pair in folds if pair[1].node_id in rows)
        answers += [_ranked(settings, rows[fold.node_id], fold, of, worth[fold.node_id]) for of, fold in there]
        answers = _led_by_things(conn, distinct(sorted(answers, key=_place)), asked.resolved)
    return answers[:limit]


def _folds(searcher: Searcher, asked: Asked, hit: Hit, most: int) -> list[Fold]:
    """A hit place by place; what is one row is told by that row."""
    return [Fold(hit.node_ids[0], 0, 0, 0)] if hit.total == 1 else searcher.folds(hit.text_id, asked.resolved, most)


def _ranked(settings: Settings, node: Node, fold: Fold, of: Candidate, worth: scoring.Worth) -> Ranked:
    alone = fold.repeats == 0
    return Ranked(
        node=node,
        repeats=node.repeats if alone else fold.repeats,
        first=node.stamp if alone else fold.first,
        last=node.last_stamp if alone else fold.last,
        score=scoring.score(settings, of.relevance, worth, node.kind is Kind.GIST),
        similarity=of.similarity,
        lexical=of.lexical,
        importance=worth[0],
        recency=worth[1],
    )


def _place(answer: Ranked) -> scoring.Order:
    return scoring.order(answer.score, answer.similarity, answer.node.id)


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
            answer = answer._replace(shown=(*answer.shown, *new))
            if windowed:
                first, last = min(one.first for one in answer.shown), max(one.last for one in answer.shown)
                answer = answer._replace(repeats=sum(one.repeats for one in answer.shown), first=first, last=last)
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
            kept[place] = old._replace(repeats=old.repeats + new.repeats, first=first, last=last)
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
