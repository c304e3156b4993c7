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
from memory_node.tools.wording import Wording, counted, point, told

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
    left = _left(context, filter, replace(resolved, center=where, radius=within), len(near), limit)
    near = near[:limit]
    if not filter.kinds:
        nearer = within if len(near) < limit else min(within, near[-1][1])
        near = sorted([*near, *_summaries(context, filter, where, nearer, limit)], key=lambda pair: pair[1])
    if left is not None:
        left += max(0, len(near) - limit)
    with context.db.read() as conn:
        matches = as_matches.of_near(conn, near[:limit])
    context.note_recall(match.id for match in matches)
    around = f"within {within:.2f} m of {point(where)} {context.frame}"
    return SpatialQueryResult(text=_text(context, around, matches, left), matches=matches)


def _left(context: ToolContext, filter: Filter, circle: Resolved, found: int, limit: int) -> int | None:
    """How many rows of the circle are beyond the limit, None when some are and the filter has a region of its own."""
    if found <= limit:
        return 0
    return None if filter.center is not None else context.searcher.count(circle) - limit


def _summaries(
    context: ToolContext, filter: Filter, where: tuple[float, ...], within: float, limit: int
) -> list[tuple[int, float]]:
    """The nearest gists, id and distance (m), that tell of archived observations."""
    resolved = context.resolve(replace(filter, layers=()), (Kind.GIST,))
    wanted = 2 * limit
    while True:
        near = context.searcher.near(where, within, wanted, resolved)
        distances = dict(near)
        with context.db.read() as conn:
            kept = gists.standing_in(conn, distances, filter.layers)
        if len(kept) >= limit or len(near) < wanted:
            return [(id_, distances[id_]) for id_ in kept]
        # Gists whose rows are all there took places.
        wanted *= 4


def _text(context: ToolContext, around: str, matches: tuple[Match, ...], left: int | None) -> str:
    if not matches:
        return f"Nothing was seen {around}."
    words = Wording(context.now_ns(), context.settings.time_zone)
    summaries = sum(match.kind == "gist" for match in matches)
    remark = f"; {counted(summaries, 'summary')} of archived observations" if summaries else ""
    head = f"{counted(len(matches), 'match')} {around}, nearest first{remark}"
    number = "more" if left is None else f"{left} more"
    more = "That is all." if left == 0 else f"There are {number}: raise limit, or make the radius smaller."
    return told(head, matches, words.match, more)
