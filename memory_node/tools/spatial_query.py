"""What was seen near a point?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from memory_node.graph import Filter, Kind
from memory_node.tools import matches as as_matches
from memory_node.tools import summaries
from memory_node.tools.arguments import AHEAD, checked_amount, checked_center, checked_limit
from memory_node.tools.by_now import matches_by_now
from memory_node.tools.context import ToolContext
from memory_node.tools.results import Match, SpatialQueryResult
from memory_node.tools.wording import Wording, counted, left_over, point, told

if TYPE_CHECKING:
    import sqlite3

    from memory_node.retrieval.filters import Resolved


def spatial_query(
    context: ToolContext, center: Sequence[float], radius: float, limit: int = 0, filter: Filter | None = None
) -> SpatialQueryResult:
    """Return observations within a circle (x, y) of any height or a sphere (x, y, z), the nearest first.

    What is archived is told by the gists whose circle reaches there; their kind is "gist", their distance that to the
    edge of the circle, 0 inside.

    Args:
        center: m, in the memory's frame. radius: m, more than 0.
        limit: most matches, 0 is 10.
        filter: its own region, when set, holds as well.

    Raises:
        InvalidArgument: naming the argument.
    """
    limit, where, within = checked_limit(limit), checked_center(center), checked_amount(radius, "radius")
    filter = Filter() if filter is None else filter
    resolved = context.resolve(filter, (Kind.OBSERVATION,))
    rows = summaries.without_gists(resolved)
    near = context.searcher.near(where, within, limit + AHEAD, rows) if rows.kinds else []
    more = len(near[limit:])
    at_least = more == AHEAD
    # A filter with a region of its own can't be counted with the circle as well.
    if at_least and filter.center is None:
        circle = replace(rows, center=where, radius=within)
        if (every := context.searcher.beyond(circle, limit)) is not None:
            more, at_least = every, False
    near = near[:limit]
    with context.db.read() as conn:
        if summaries.wanted(conn, filter):
            told = _summaries(context, conn, resolved, filter, where, within)
            near = sorted([*near, *told], key=lambda pair: pair[1])
            more += max(0, len(near) - limit)
        matches = matches_by_now(context, resolved, as_matches.of_near(conn, near[:limit]))
    context.note_recall(match.id for match in matches)
    around = f"within {within:.2f} m of {point(where)} {context.frame}"
    tail = left_over(more, "raise limit, or make the radius smaller", at_least)
    return SpatialQueryResult(text=_text(context, around, matches, tail), matches=matches)


def _summaries(
    context: ToolContext,
    conn: sqlite3.Connection,
    resolved: Resolved,
    filter: Filter,
    where: tuple[float, ...],
    within: float,
) -> list[tuple[int, float]]:
    """The gists that are wanted there, nearest first: id, and m to the edge of the circle, 0 inside."""
    apart = summaries.around(context, conn, where, within, resolved)
    kept = summaries.told_in_place(conn, apart, resolved, filter)
    return [(gist.id, apart[gist.id]) for gist in kept]


def _text(context: ToolContext, around: str, matches: tuple[Match, ...], tail: str) -> str:
    if not matches:
        return f"Nothing was seen {around}."
    words = Wording(context.now_ns(), context.settings.time_zone)
    summaries = sum(match.kind == "gist" for match in matches)
    remark = f"; {counted(summaries, 'summary')} of archived observations" if summaries else ""
    head = f"{counted(len(matches), 'match')} {around}, nearest first{remark}"
    return told(head, matches, words.match, tail)
