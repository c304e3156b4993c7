"""Everything known about a query: things, what shows them and speaks of them, summaries and the place."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, zip_longest
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from memory_node.errors import InvalidArgument
from memory_node.graph import EVENTS_LAYER, EdgeType, Entity, Filter, Gist, Kind, Place
from memory_node.ingest.association import normalise_label
from memory_node.retrieval import concepts, naming, places, thresholds
from memory_node.retrieval.findings import Findings
from memory_node.retrieval.ranking import Ranked, distinct
from memory_node.retrieval.scoring import SUMMARY
from memory_node.storage import edges, entities, gists, identity, nodes
from memory_node.storage.seen import as_of
from memory_node.tools import matches as as_matches
from memory_node.tools import summaries as as_summaries
from memory_node.tools.arguments import checked_limit, checked_query
from memory_node.tools.asking import answers_to
from memory_node.tools.by_now import gists_by_now, matches_by_now
from memory_node.tools.context import ToolContext
from memory_node.tools.locate import ALL, ALTERNATIVES, NAMES, SAME_PLACE, SHORT, Located, understand
from memory_node.tools.locate import find as find_places
from memory_node.tools.results import Match, RecallResult
from memory_node.tools.wording import LONGEST, Wording, shortened
from memory_node.tools.wording import place as place_of

if TYPE_CHECKING:
    import sqlite3

    from memory_node.retrieval.filters import Resolved
    from memory_node.retrieval.folding import Fold

KINDS = (Kind.OBSERVATION, Kind.GIST, Kind.ENTITY)
NEAR_BEST = 0.6
"""What scores less than this share of the best answer is about something else."""
MOSTLY = 0.5
"""Share of the query's words, by what they weigh, from which a text is about it whatever its meaning."""
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


OTHERS = 3
"""Other places that are told of."""
ROOM = 60
"""Characters of a text that a line quotes; twice as many of a summary."""
T = TypeVar("T")


class _More(NamedTuple):
    """How many results there are beyond the limit; at_least: they were not all looked for."""

    number: int
    at_least: bool


@dataclass(frozen=True)
class _Found:
    """Results within the limit, and how many more there are of each kind."""

    matches: tuple[Match, ...]
    gists: tuple[Gist, ...]
    entities: tuple[Entity, ...]
    more_matches: _More
    more_gists: _More
    more_entities: _More


class _Asked(NamedTuple):
    """The filter, the names of its layers, and the most results of a kind."""

    resolved: Resolved
    layers: tuple[str, ...]
    limit: int


class _Section(NamedTuple):
    """A part of the text: title, lines, made when they are asked for, how many, results beyond, and lines a turn."""

    title: str
    lines: Iterator[str]
    number: int
    more: _More
    turn: int


def recall(context: ToolContext, query: str, limit: int = 0, filter: Filter | None = None) -> RecallResult:
    """Return all that is known about a query, each kind ranked and at most `limit` long.

    Things are those of all places that `locate` gives. What shows them, and what is joined to an event of the body,
    comes with what speaks of the query, on one scale, what is the same at one place once; then the summaries of all
    these and of the place. Everything passes the filter. Rows that are merely near the place have no part, nor have
    answers that `thresholds` refuses.

    Args:
        query: question or words, not blank. limit: most results of each kind, 0 is 10.

    Raises:
        InvalidArgument: naming the argument.
    """
    limit, query = checked_limit(limit), checked_query(query)
    if not naming.concept_of(query):
        raise InvalidArgument("query", "must not be blank")
    resolved = context.resolve(filter, KINDS)
    layers = filter.layers if filter else ()
    seen = Findings(query)
    question = understand(context, query, resolved, seen)
    vector = context.embed_query(query) if question.id is None else None
    with context.db.read() as conn:  # one for all, so that what is told is of one state
        answers, message = answers_to(context, query, vector, resolved, 3 * limit, seen, layers=layers)
        place = find_places(context, question)
        found = _found(context, conn, query, answers, place, _Asked(resolved, tuple(layers), limit))
    told: tuple[Match | Gist | Entity, ...] = (*found.matches, *found.gists, *found.entities)
    context.note_recall(one.id for one in told)
    return RecallResult(
        message=message,
        text=_text(context, query, found, place) + (f" ({message})" if message else ""),
        matches=found.matches,
        gists=found.gists,
        entities=found.entities,
        place=place.place,
        found=place.place is not None,
    )


def _found(
    context: ToolContext,
    conn: sqlite3.Connection,
    query: str,
    answers: Sequence[Ranked],
    place: Located,
    asked: _Asked,
) -> _Found:
    about = _about(context, query, answers)
    # What is not about the query ends the answers, so more were about it only where the last one is.
    cut = len(answers) >= 3 * asked.limit and about[-1:] == answers[-1:]
    things = _things(conn, about, place)
    told = dict(islice(things.items(), asked.limit))
    matches, more = _matches(context, conn, about, told, asked)
    summaries = _summaries(context, conn, about, matches, place.place, asked)
    return _Found(
        matches=matches_by_now(context, asked.resolved, tuple(map(as_matches.of_ranked, matches))),
        gists=gists_by_now(context, asked.resolved, summaries[: asked.limit]),
        entities=_entities(conn, told, place.things, context.until(asked.resolved)),
        more_matches=more._replace(at_least=more.at_least or cut),
        more_gists=_More(max(0, len(summaries) - asked.limit), cut),
        more_entities=_More(len(things) - len(told), cut or len(place.alternatives) >= ALTERNATIVES),
    )


def _about(context: ToolContext, query: str, answers: Sequence[Ranked]) -> list[Ranked]:
    """Answers that name what is asked for, and those near the best that are about it at all, as `locate` judges."""
    model = context.searcher.model
    least = thresholds.of_model(model.name if model else None, context.settings.locate_threshold)
    concept = naming.concept_of(query)
    sentence = least.strict if concepts.things(concept) and not concepts.is_room(concept) else least.sentence
    text_ids = [answer.node.text_id for answer in answers if answer.node.text_id is not None]
    said: set[int | None] = set()
    for name in concepts.names(concept)[:NAMES]:
        if name == query:
            said.update(answer.node.text_id for answer in answers if (answer.lexical or 0.0) >= ALL)
        else:
            shares = context.searcher.said(name, text_ids).shares
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


def _things(conn: sqlite3.Connection, answers: Sequence[Ranked], place: Located) -> dict[int, float]:
    """Ids of the entities at the places, the likeliest first, and of those among the answers; with their relevance."""
    there = [one for one in (place.place, *place.alternatives) if one is not None and one.entity_id]
    found = [(one.entity_id, one.confidence) for one in there]
    named = {answer.node.id: answer.score for answer in answers if answer.node.kind is Kind.ENTITY}
    known_as = identity.resolve_many(conn, named) if named else {}
    found += [(known_as[id_], score) for id_, score in named.items() if id_ in known_as]
    things: dict[int, float] = {}
    for id_, relevance in found:
        things[id_] = max(relevance, things.get(id_, 0.0))
    return things


def _entities(
    conn: sqlite3.Connection, ids: Collection[int], read: Iterable[Entity], until: int | None
) -> tuple[Entity, ...]:
    """Entities in the order of ids, most of which `locate` has read, with more earlier places than are told."""
    known = {one.id: one._replace(history=one.history[: entities.HISTORY]) for one in read}
    others = entities.get_many(conn, [id_ for id_ in ids if id_ not in known])
    known |= {one.id: one for one in as_of(conn, others, until)}
    return tuple(known[id_] for id_ in ids if id_ in known)


def _matches(
    context: ToolContext,
    conn: sqlite3.Connection,
    answers: Sequence[Ranked],
    things: Mapping[int, float],
    asked: _Asked,
) -> tuple[list[Ranked], _More]:
    """Observations that speak of the query, with those joined to an event, and those that show the things; by score."""
    limit = asked.limit
    if int(Kind.OBSERVATION) not in asked.resolved.kinds:
        return [], _More(0, False)
    spoken = [one for answer in answers for one in (answer, *answer.shown) if one.node.kind is Kind.OBSERVATION]
    events = [one for one in spoken[:limit] if one.node.layer == EVENTS_LAYER]
    around = [_around_event(context, conn, event, asked) for event in events]
    cut = any(len(of_event) >= limit for of_event in around)
    told = spoken[:limit]
    for at, of_event in enumerate(around):  # what two events share is told with the first
        around[at] = distinct(of_event, told)
        told += around[at]
    joined = _in_turn(around)
    room = max(limit - len(spoken), limit // 2)
    kept = sorted([*spoken[: limit - len(joined[:room])], *joined[:room]], key=lambda one: -one.score)
    sightings = _sightings(context, conn, things, asked.resolved, kept)
    shown = sightings[: max(limit - len(kept), limit // 2)]
    best = sorted([*kept[: limit - len(shown)], *shown], key=lambda one: -one.score)
    return best, _More(len(spoken) + len(joined) + len(sightings) - len(best), cut)


def _in_turn(groups: Iterable[Sequence[T]]) -> list[T]:
    """The first of each, then the second of each, and so on."""
    return [one for turn in zip_longest(*groups) for one in turn if one is not None]


def _around_event(context: ToolContext, conn: sqlite3.Connection, event: Ranked, asked: _Asked) -> list[Ranked]:
    """Observations joined to an event that the filter passes too, those nearest in time first, as relevant as it is."""
    row = event.node
    window = round(context.settings.event_window * 1e9)
    took = round(float(row.metadata.get("seconds", 0.0)) * 1e9)
    after, before = row.stamp - took - window, row.last_stamp + window
    if asked.resolved.after is not None:
        after = max(after, asked.resolved.after)
    if asked.resolved.before is not None:
        before = min(before, asked.resolved.before)
    only = replace(asked.resolved, kinds=(int(Kind.OBSERVATION),), after=after, before=before)
    joined = edges.sources(conn, row.id, EdgeType.NEAR_EVENT)
    return _of_folds(conn, context.searcher.nearest_folds(joined, only, row.stamp, asked.limit), event.score)


def _sightings(
    context: ToolContext,
    conn: sqlite3.Connection,
    things: Mapping[int, float],
    resolved: Resolved,
    kept: Sequence[Ranked],
) -> list[Ranked]:
    """The newest sightings of each thing that none of kept shows, in turn, as relevant as the thing."""
    only = replace(resolved, kinds=(int(Kind.OBSERVATION),))
    ids = {one.node.id for one in kept}
    newest = edges.last_targets(conn, things, EdgeType.OBSERVED_IN, SIGHTINGS)
    unseen = [id_ for id_, rows in newest.items() if ids.isdisjoint(rows)]
    folds = context.searcher.newest_folds([newest[id_] for id_ in unseen], only, SHOWN_BY)
    of_things = [[(fold, things[id_]) for fold in some] for id_, some in zip(unseen, folds, strict=True)]
    best: dict[int, tuple[Fold, float]] = {}
    for fold, score in _in_turn(of_things):
        if fold.node_id not in best or score > best[fold.node_id][1]:
            best[fold.node_id] = fold, score
    shown = _of_folds(conn, [fold for fold, _ in best.values()], 0.0)
    return distinct([one._replace(score=min(1.0, best[one.node.id][1])) for one in shown], kept)


def _of_folds(conn: sqlite3.Connection, folds: Iterable[Fold], score: float) -> list[Ranked]:
    """Folds as answers without parts of a score."""
    by_id = {fold.node_id: fold for fold in folds}
    return [
        Ranked(node, fold.repeats, fold.first, fold.last, score, None, None, node.importance, None)
        for node in nodes.fetch(conn, by_id)
        for fold in (by_id[node.id],)
    ]


def _summaries(
    context: ToolContext,
    conn: sqlite3.Connection,
    answers: Sequence[Ranked],
    matches: Sequence[Ranked],
    place: Place | None,
    asked: _Asked,
) -> list[Gist]:
    """Summaries among the answers, of the matches, and of the place; the best first."""
    if int(Kind.GIST) not in asked.resolved.kinds:
        return []
    only = as_summaries.of_any_layer(context, conn, asked.resolved)
    scores = {answer.node.id: answer.score for answer in answers if answer.node.kind is Kind.GIST}
    # The best match of a summary comes last.
    of_rows = {match.node.id: match.score for match in reversed(matches)}
    over = {id_: SUMMARY * of_rows[row] for id_, row in edges.pairs(conn, of_rows, EdgeType.SUMMARIZES)}
    for id_ in context.searcher.passing(only, list(over)):
        scores.setdefault(id_, over[id_])
    if place is not None:
        for id_ in _of_place(context, conn, place, only):
            scores.setdefault(id_, MERELY_THERE * place.confidence)
    fitting = as_summaries.fitting(conn, scores, asked.resolved, asked.layers, scores)
    return sorted(fitting, key=lambda gist: -gist.score)


def _of_place(context: ToolContext, conn: sqlite3.Connection, place: Place, only: Resolved) -> list[int]:
    """The nearest summaries whose circle holds a place, as far as the places of observers tell."""
    ids, distances = context.searcher.nearest(place.position[:2], WIDEST, NEARBY, only)
    holding = ids[distances <= context.searcher.reach.of(conn, ids) + SAME_PLACE]
    return gists.on_map(conn, holding.tolist(), place.map_id, OF_PLACE)


def _text(context: ToolContext, query: str, found: _Found, place: Located) -> str:
    words = Wording(context.now_ns(), context.settings.time_zone)
    about = f'"{shortened(query, 80)}"'
    if not (found.matches or found.gists or found.entities):
        return f"Nothing is known about {about}."
    lines = [f"About {about}:"]
    known = {entity.id: entity for entity in found.entities}
    if place.place is not None:
        entity = known.get(place.place.entity_id)
        lines.append(f"Place: {words.place(place.place, places.state_of(entity) if entity else '')}")
    others = _untold(place.alternatives, known)
    if others:
        lines.append(f"Other places: {_others(others, known)}")
    things = (words.entity(entity) for entity in found.entities)
    seen = (words.match(match, query).within(ROOM) for match in found.matches)
    summaries = (words.gist(gist, query).within(2 * ROOM) for gist in found.gists)
    sections = (
        _Section("Things:", things, len(found.entities), found.more_entities, 1),
        _Section("Seen:", seen, len(found.matches), found.more_matches, 2),
        _Section("Summaries:", summaries, len(found.gists), found.more_gists, 1),
    )
    return "\n".join([*lines, *_fitted(sections, LONGEST - sum(len(line) + 1 for line in lines))])


def _untold(others: Sequence[Place], things: Mapping[int, Entity]) -> list[Place]:
    """Places that are not those of the things, which are told with them."""
    return [one for one in others if one.entity_id not in things or things[one.entity_id].position != one.position]


def _others(others: Sequence[Place], things: Mapping[int, Entity]) -> str:
    """The first of other places in a line, and how many more there are; one of a thing that is told is one it left."""
    told = []
    for one in others[:OTHERS]:
        thing = f", where #{one.entity_id} was earlier" if one.entity_id in things else f", entity #{one.entity_id}"
        where = place_of(one.position, one.frame, one.position_source.label)
        told.append(f"{where}{thing if one.entity_id else ''}, confidence {one.confidence:.2f}")
    more = len(others) - len(told)
    return "; ".join([*told, f"{more} more"] if more else told)


def _fitted(sections: Sequence[_Section], room: int) -> list[str]:
    """Lines of the sections, in turn until the room (characters) is full, with how many more there are of each."""
    some = [section for section in sections if section.number]
    room -= sum(len(section.title) + len("\n- at least 99999 more\n") for section in some)
    kept: list[list[str]] = [[] for _ in some]
    waiting = list(range(len(some)))
    while waiting:
        for at in tuple(waiting):
            for line in islice(some[at].lines, some[at].turn):
                if len(line) + 3 > room:
                    waiting.remove(at)
                    break
                room -= len(line) + 3
                kept[at].append(f"- {line}")
            else:
                if len(kept[at]) == some[at].number:
                    waiting.remove(at)
    told = []
    for section, lines in zip(some, kept, strict=True):
        told += [section.title, *lines]
        more = section.number - len(lines) + section.more.number
        if more:
            told.append(f"- {'at least ' if section.more.at_least else ''}{more} more")
    return told
