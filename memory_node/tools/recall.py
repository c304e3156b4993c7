"""Everything known about a query: things, what shows them and speaks of them, summaries and the place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from memory_node.errors import InvalidArgument
from memory_node.graph import EVENTS_LAYER, EdgeType, Entity, Filter, Gist, Kind
from memory_node.storage import edges, entities, gists
from memory_node.tools import matches as as_matches
from memory_node.tools.arguments import checked_limit, checked_query
from memory_node.tools.asking import ask
from memory_node.tools.context import ToolContext
from memory_node.tools.locate import locate
from memory_node.tools.results import LocateResult, Match, RecallResult
from memory_node.tools.wording import LONGEST, Wording, shortened

if TYPE_CHECKING:
    import sqlite3

    from memory_node.retrieval.ranking import Ranked

KINDS = (Kind.OBSERVATION, Kind.GIST, Kind.ENTITY)
NEAR_BEST = 0.6
"""What scores less than this share of the best answer is about something else."""
SHOWN_BY = 3
"""Observations added for each entity, the newest that saw it."""


@dataclass(frozen=True)
class _Found:
    matches: tuple[Match, ...]
    gists: tuple[Gist, ...]
    entities: tuple[Entity, ...]


def recall(context: ToolContext, query: str, limit: int = 0, filter: Filter | None = None) -> RecallResult:
    """Return all that is known about a query, each kind ranked and at most `limit` long.

    An event of the body brings the observations joined to it; an entity those that saw it; both bring their summaries.
    Rows that are merely near the place have no part.

    Args:
        query: question or words, not blank. limit: most results of each kind, 0 is 10.

    Raises:
        InvalidArgument: naming the argument.
    """
    limit, query = checked_limit(limit), checked_query(query)
    if not query:
        raise InvalidArgument("query", "must not be blank")
    answers, message = ask(context, query, None, context.resolve(filter, KINDS), 3 * limit)
    best = answers[0].score if answers else 0.0
    answers = [answer for answer in answers if answer.score >= NEAR_BEST * best]
    place = locate(context, query, filter)
    found = _joined(context, answers, place, filter, limit)
    return RecallResult(
        message=message,
        text=_text(context, query, found, place) + (f" ({message})" if message else ""),
        matches=found.matches,
        gists=found.gists,
        entities=found.entities,
        place=place.place,
        found=place.found,
    )


def _joined(
    context: ToolContext, answers: Sequence[Ranked], place: LocateResult, filter: Filter | None, limit: int
) -> _Found:
    with context.db.read() as conn:
        things = [answer.node.id for answer in answers if answer.node.kind is Kind.ENTITY]
        if place.place is not None and place.place.entity_id:
            things.insert(0, entities.resolve(conn, place.place.entity_id))
        things = list(dict.fromkeys(things))[:limit]
        ranked = [as_matches.of_ranked(answer) for answer in answers if answer.node.kind is Kind.OBSERVATION]
        matches = _with_joined(context, conn, ranked, things, filter, limit)
        summaries = as_matches.ranked_gists(conn, answers)
        known = {gist.id for gist in summaries}
        over = [id_ for match in matches for id_ in edges.sources(conn, match.id, EdgeType.SUMMARIZES)]
        more = gists.get_many(conn, [id_ for id_ in dict.fromkeys(over) if id_ not in known])
        return _Found(matches, (*summaries, *more)[:limit], tuple(entities.get_many(conn, things)))


def _with_joined(
    context: ToolContext,
    conn: sqlite3.Connection,
    ranked: Sequence[Match],
    things: Sequence[int],
    filter: Filter | None,
    limit: int,
) -> tuple[Match, ...]:
    """Ranked observations, after each event those joined to it, at the end those that saw the things."""
    kept: dict[int, Match] = {}
    for match in ranked[:limit]:
        kept.setdefault(match.id, match)
        if match.layer == EVENTS_LAYER:
            for other in _around_event(context, conn, match, filter, limit):
                kept.setdefault(other.id, replace(other, score=match.score))
    if not (filter and (filter.layers or filter.kinds)):
        for thing in things:
            seen = sorted(entities.observations(conn, thing), reverse=True)[:SHOWN_BY]
            for other in as_matches.of_ids(conn, [id_ for id_ in seen if id_ not in kept]):
                kept.setdefault(other.id, other)
    return tuple(kept.values())[:limit]


def _around_event(
    context: ToolContext, conn: sqlite3.Connection, event: Match, filter: Filter | None, limit: int
) -> Iterable[Match]:
    """Observations joined to an event that the filter passes too, those nearest in time first."""
    window = round(context.settings.event_window * 1e9)
    resolved = context.resolve(filter, (Kind.OBSERVATION,))
    after, before = event.stamp - window, event.last_stamp + window
    if resolved.after is not None:
        after = max(after, resolved.after)
    if resolved.before is not None:
        before = min(before, resolved.before)
    passing = context.searcher.in_time(replace(resolved, after=after, before=before), True, 100 * limit)
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
        lines.append(f"Place: {words.place(place.place)}")
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
