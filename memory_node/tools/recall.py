"""Everything known about a query: things, what shows them and speaks of them, summaries and the place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import TYPE_CHECKING

from memory_node.errors import InvalidArgument
from memory_node.graph import EVENTS_LAYER, EdgeType, Entity, Filter, Gist, Kind, Place
from memory_node.ingest.association import normalise_label
from memory_node.retrieval import concepts, naming, places, thresholds
from memory_node.retrieval.ranking import SUMMARY
from memory_node.storage import edges, entities, gists
from memory_node.tools import matches as as_matches
from memory_node.tools.arguments import checked_limit, checked_query
from memory_node.tools.asking import ask
from memory_node.tools.context import ToolContext
from memory_node.tools.locate import NAMES, SAME_PLACE, SHORT, locate
from memory_node.tools.results import LocateResult, Match, RecallResult
from memory_node.tools.wording import LONGEST, Wording, shortened

if TYPE_CHECKING:
    import sqlite3

    from memory_node.retrieval.filters import Resolved
    from memory_node.retrieval.ranking import Ranked

KINDS = (Kind.OBSERVATION, Kind.GIST, Kind.ENTITY)
NEAR_BEST = 0.6
"""What scores less than this share of the best answer is about something else."""
MOSTLY = 0.5
"""Share of the query's words, by what they weigh, from which a text is about it whatever its meaning."""
ALL = 0.99
"""The same, of one name of what is asked for."""
SHOWN_BY = 3
"""Observations added for each entity that no answer shows, the newest that saw it."""
SIGHTINGS = 1000
"""Newest sightings of an entity that are looked through for those that pass the filter."""
OF_PLACE = 3
"""Summaries of a place that are told."""
WIDEST = 20.0
"""m around the place in which centres of summaries are looked for; NEARBY of them at most."""
NEARBY = 50
MERELY_THERE = 0.3
"""Score of a summary of the place, which need not speak of the thing, as a share of the place's confidence."""


@dataclass(frozen=True)
class _Found:
    matches: tuple[Match, ...]
    gists: tuple[Gist, ...]
    entities: tuple[Entity, ...]


def recall(context: ToolContext, query: str, limit: int = 0, filter: Filter | None = None) -> RecallResult:
    """Return all that is known about a query, each kind ranked and at most `limit` long.

    Things are those of all places that `locate` gives. What shows them, and what is joined to an event of the body,
    comes with what speaks of the query, on one scale; then the summaries of all these and of the place. Everything
    passes the filter. Rows that are merely near the place have no part, nor have answers that `thresholds` refuses.

    Args:
        query: question or words, not blank. limit: most results of each kind, 0 is 10.

    Raises:
        InvalidArgument: naming the argument.
    """
    limit, query = checked_limit(limit), checked_query(query)
    if not naming.concept_of(query):
        raise InvalidArgument("query", "must not be blank")
    resolved = context.resolve(filter, KINDS)
    answers, message = ask(context, query, None, resolved, 3 * limit)
    place = locate(context, query, filter)
    with context.db.read() as conn:
        answers = _about(context, query, answers)
        things = _things(conn, answers, place, limit)
        matches = _matches(context, conn, answers, things, resolved, limit)
        summaries = _summaries(context, conn, answers, matches, place.place, resolved)
        layers = set(filter.layers) if filter else set()
        summaries = [gist for gist in summaries if not layers or layers & set(gist.layers)]
        found = _Found(tuple(matches), tuple(summaries[:limit]), tuple(entities.get_many(conn, things)))
    told: tuple[Match | Gist | Entity, ...] = (*found.matches, *found.gists, *found.entities)
    context.note_recall(one.id for one in told)
    return RecallResult(
        message=message,
        text=_text(context, query, found, place) + (f" ({message})" if message else ""),
        matches=found.matches,
        gists=found.gists,
        entities=found.entities,
        place=place.place,
        found=place.found,
    )


def _about(context: ToolContext, query: str, answers: Sequence[Ranked]) -> list[Ranked]:
    """Answers that name what is asked for, and those near the best that are about it at all, as `locate` judges."""
    model = context.searcher.model
    least = thresholds.of_model(model.name if model else None, context.settings.locate_threshold)
    concept = naming.concept_of(query)
    sentence = least.strict if concepts.things(concept) and not concepts.is_room(concept) else least.sentence
    text_ids = [answer.node.text_id for answer in answers if answer.node.text_id is not None]
    said: set[int] = set()
    for name in concepts.names(concept)[:NAMES]:
        _, shares = context.searcher.said(name, text_ids)
        said.update(id_ for id_, share in shares.items() if share >= ALL)

    def is_about(answer: Ranked) -> bool:
        if answer.node.text_id in said or (answer.lexical or 0.0) >= MOSTLY:
            return True
        label = normalise_label(answer.node.text or "")
        if len(label.split()) <= SHORT:
            return naming.fit(concept, label, answer.similarity, least.label) > 0.0
        return (answer.similarity or 0.0) >= sentence

    about = [answer for answer in answers if is_about(answer)]
    return [answer for answer in about if answer.node.text_id in said or answer.score >= NEAR_BEST * about[0].score]


def _things(
    conn: sqlite3.Connection, answers: Sequence[Ranked], place: LocateResult, limit: int
) -> dict[int, float]:
    """Ids of the entities at the places, the likeliest first, and of those among the answers; with their relevance."""
    things: dict[int, float] = {}
    for there in (place.place, *place.alternatives):
        if there is not None and (id_ := entities.resolve(conn, there.entity_id)):
            things[id_] = max(there.confidence, things.get(id_, 0.0))
    for answer in answers:
        if answer.node.kind is Kind.ENTITY:
            things[answer.node.id] = max(answer.score, things.get(answer.node.id, 0.0))
    return dict(list(things.items())[:limit])


def _matches(
    context: ToolContext,
    conn: sqlite3.Connection,
    answers: Sequence[Ranked],
    things: Mapping[int, float],
    resolved: Resolved,
    limit: int,
) -> list[Match]:
    """Observations that speak of the query, with those joined to an event, and those that show the things; by score."""
    if int(Kind.OBSERVATION) not in resolved.kinds:
        return []
    kept: dict[int, Match] = {}
    spoken = [one for answer in answers for one in (answer, *answer.shown) if one.node.kind is Kind.OBSERVATION]
    for match in map(as_matches.of_ranked, spoken[:limit]):
        kept.setdefault(match.id, match)
        if match.layer == EVENTS_LAYER:
            for other in _around_event(context, conn, match, resolved, limit):
                kept.setdefault(other.id, replace(other, score=match.score))
    shown = _sightings(context, conn, things, resolved, kept, max(limit - len(kept), limit // 2))
    best = [*list(kept.values())[: limit - len(shown)], *shown]
    return sorted(best, key=lambda match: -match.score)


def _sightings(
    context: ToolContext,
    conn: sqlite3.Connection,
    things: Mapping[int, float],
    resolved: Resolved,
    kept: Iterable[int],
    room: int,
) -> list[Match]:
    """The newest sightings of each thing that none of kept shows, in turn, as relevant as the thing; at most room."""
    only = replace(resolved, kinds=(int(Kind.OBSERVATION),))
    of_things = []
    for thing, score in things.items():
        newest = edges.last_targets(conn, thing, EdgeType.OBSERVED_IN, SIGHTINGS)
        if not set(newest).intersection(kept):
            of_things.append([(id_, score) for id_ in context.searcher.passing(only, newest)[:SHOWN_BY]])
    turns = [sighting for turn in zip_longest(*of_things) for sighting in turn if sighting is not None]
    scores: dict[int, float] = {}
    for id_, score in turns:
        if id_ in scores or len(scores) < room:
            scores[id_] = max(score, scores.get(id_, 0.0))
    return [replace(match, score=min(1.0, scores[match.id])) for match in as_matches.of_ids(conn, scores)]


def _summaries(
    context: ToolContext,
    conn: sqlite3.Connection,
    answers: Sequence[Ranked],
    matches: Sequence[Match],
    place: Place | None,
    resolved: Resolved,
) -> list[Gist]:
    """Summaries among the answers, of the matches, and of the place; the best first."""
    if int(Kind.GIST) not in resolved.kinds:
        return []
    only = replace(resolved, kinds=(int(Kind.GIST),), layers=None)
    scores = {answer.node.id: answer.score for answer in answers if answer.node.kind is Kind.GIST}
    over = {
        id_: SUMMARY * match.score
        for match in reversed(matches)
        for id_ in edges.sources(conn, match.id, EdgeType.SUMMARIZES)
    }
    for id_ in context.searcher.passing(only, list(over)):
        scores.setdefault(id_, over[id_])
    if place is not None:
        for gist in _of_place(context, conn, place, only):
            scores.setdefault(gist.id, MERELY_THERE * place.confidence)
    found = [replace(gist, score=scores[gist.id]) for gist in gists.get_many(conn, scores)]
    return sorted(found, key=lambda gist: -gist.score)


def _of_place(context: ToolContext, conn: sqlite3.Connection, place: Place, only: Resolved) -> list[Gist]:
    """The nearest summaries whose circle holds a place, as far as the places of observers tell."""
    apart = dict(context.searcher.near(place.position[:2], WIDEST, NEARBY, only))
    near = gists.get_many(conn, apart)
    holding = [g for g in near if g.map_id == place.map_id and apart[g.id] <= g.radius + SAME_PLACE]
    return holding[:OF_PLACE]


def _around_event(
    context: ToolContext, conn: sqlite3.Connection, event: Match, resolved: Resolved, limit: int
) -> Iterable[Match]:
    """Observations joined to an event that the filter passes too, those nearest in time first."""
    window = round(context.settings.event_window * 1e9)
    took = round(float(event.metadata.get("seconds", 0.0)) * 1e9)
    after, before = event.stamp - took - window, event.last_stamp + window
    if resolved.after is not None:
        after = max(after, resolved.after)
    if resolved.before is not None:
        before = min(before, resolved.before)
    only = replace(resolved, kinds=(int(Kind.OBSERVATION),), after=after, before=before)
    passing = context.searcher.in_time(only, True, 100 * limit)
    joined = set(edges.sources(conn, event.id, EdgeType.NEAR_EVENT)).intersection(passing)
    others = as_matches.of_ids(conn, joined)
    return sorted(others, key=lambda match: abs(match.last_stamp - event.stamp))[:limit]


def _text(context: ToolContext, query: str, found: _Found, place: LocateResult) -> str:
    words = Wording(context.now_ns(), context.settings.time_zone)
    about = f'"{shortened(query, 80)}"'
    if not (found.matches or found.gists or found.entities):
        return f"Nothing is known about {about}."
    lines = [f"About {about}:"]
    if place.place is not None:
        states = {entity.id: places.state_of(entity) for entity in found.entities}
        lines.append(f"Place: {words.place(place.place, states.get(place.place.entity_id, ''))}")
    sections = (
        ("Things:", [words.entity(entity) for entity in found.entities[:5]]),
        ("Seen:", [words.match(match, 60) for match in found.matches]),
        ("Summaries:", [words.gist(gist, 120) for gist in found.gists[:3]]),
    )
    left = LONGEST - sum(map(len, lines))
    for title, told in sections:
        if told:
            lines.append(title)
        for number, line in enumerate(told):
            left -= len(line) + 3
            if left < 0:
                lines.append(f"- {len(told) - number} more")
                break
            lines.append(f"- {line}")
    return "\n".join(lines)
