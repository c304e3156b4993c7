"""Results as they were by now: where the clock went back, what stands for many readings lasts until later than now."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from memory_node.graph import Gist, Kind
from memory_node.storage import entities
from memory_node.storage.seen import as_of
from memory_node.tools.context import ToolContext
from memory_node.tools.results import Match

if TYPE_CHECKING:
    from memory_node.retrieval.filters import Resolved


def matches_by_now(context: ToolContext, resolved: Resolved, matches: tuple[Match, ...]) -> tuple[Match, ...]:
    """Return matches that end with now; entities with the place and time of their last sighting no later than now.

    Those of a filter that asks for a later time are returned as they are.
    """
    until = context.until(resolved)
    if until is None or all(match.last_stamp <= until for match in matches):
        return matches
    late = [match.id for match in matches if match.kind == Kind.ENTITY.label and match.last_stamp > until]
    with context.db.read() as conn:
        things = {thing.id: thing for thing in as_of(conn, entities.get_many(conn, late), until)}
    ended = []
    for match in matches:
        if thing := things.get(match.id):
            match = match._replace(position=thing.position, position_source=thing.position_source.label)
        last = thing.last_seen if thing else match.last_stamp
        ended.append(match._replace(last_stamp=min(last, until)))
    return tuple(ended)


def gists_by_now(context: ToolContext, resolved: Resolved, gists: Iterable[Gist]) -> tuple[Gist, ...]:
    """Return gists that end with now; those of a filter that asks for a later time as they are."""
    until = context.until(resolved)
    return tuple(gist if until is None or gist.end <= until else gist._replace(end=until) for gist in gists)
