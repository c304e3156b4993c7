"""What was seen near a point?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from memory_node.graph import Filter, Kind
from memory_node.storage import gists
from memory_node.tools import matches as as_matches
from memory_node.tools.arguments import checked_amount, checked_center, checked_limit
from memory_node.tools.context import ToolContext
from memory_node.tools.results import Match, SpatialQueryResult
from memory_node.tools.wording import Wording, counted, left_over, point, told

if TYPE_CHECKING:
    from memory_node.retrieval.filters import Resolved


def spatial_query(
    context: ToolContext, center: Sequence[float], radius: float, limit: int = 0, filter: Filter | None = None
) -> SpatialQueryResult:
    """Return observations within a circle (x, y) of any height or a sphere (x, y, z), the nearest first.

    What is archived is told by the gists centred there, in their place among the rest; their kind is "gist".

    Args:
        center: m, in the memory's frame. radius: m, more than 0.
        limit: most matches, 0 is 10.
        filter: its own region, when set, holds as well.

    Raises:
        InvalidArgument: naming the argument.
    """
    limit, where, within = checked_limit(limit), checked_center(center), checked_amount(radius, "radius")
    filter = filter or Filter()
    resolved = context.resolve(filter, (Kind.OBSERVATION,))
    near = context.searcher.near(where, within, limit + 1, resolved)
    more: int | None = 0
    if len(near) > limit:
        circle = replace(resolved, center=where, radius=within)
        # A filter with a region of its own can't be counted with the circle as well.
        more = context.searcher.beyond(circle, limit) if filter.center is None else None
    at_least = False
    near = near[:limit]
    with context.db.read() as conn:
        with_gists = not filter.kinds and gists.exist(conn)
    if with_gists:
        summaries = replace(resolved, kinds=(int(Kind.GIST),), layers=None)
        nearer = within if len(near) < limit else min(within, near[-1][1])
        told, looked_at = _summaries(context, summaries, filter.layers, where, nearer, limit)
        near = sorted([*near, *told], key=lambda pair: pair[1])
        if more is not None:
            more += max(0, len(near) - limit)
            circle = replace(summaries, center=where, radius=within)
            at_least = more > 0 and context.searcher.beyond(circle, looked_at) != 0
    with context.db.read() as conn:
        matches = as_matches.of_near(conn, near[:limit])
    context.note_recall(match.id for match in matches)
    around = f"within {within:.2f} m of {point(where)} {context.frame}"
    tail = left_over(more, "raise limit, or make the radius smaller", at_least)
    return SpatialQueryResult(text=_text(context, around, matches, tail), matches=matches)


def _summaries(
    context: ToolContext,
    resolved: Resolved,
    layers: tuple[str, ...],
    where: tuple[float, ...],
    within: float,
    limit: int,
) -> tuple[list[tuple[int, float]], int]:
    """The nearest gists, id and distance (m), that tell of archived rows of the layers; and how many were looked at."""
    wanted = 2 * limit
    while True:
        near = context.searcher.near(where, within, wanted, resolved)
        distances = dict(near)
        with context.db.read() as conn:
            kept = gists.standing_in(conn, distances, layers)
        if len(kept) >= limit or len(near) < wanted:
            return [(id_, distances[id_]) for id_ in kept], len(near)
        # Gists whose rows are all there took places.
        wanted *= 4


def _text(context: ToolContext, around: str, matches: tuple[Match, ...], tail: str) -> str:
    if not matches:
        return f"Nothing was seen {around}."
    words = Wording(context.now_ns(), context.settings.time_zone)
    summaries = sum(match.kind == "gist" for match in matches)
    remark = f"; {counted(summaries, 'summary')} of archived observations" if summaries else ""
    head = f"{counted(len(matches), 'match')} {around}, nearest first{remark}"
    return told(head, matches, words.match, tail)
