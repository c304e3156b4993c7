"""What was seen near a point?"""

from __future__ import annotations

from collections.abc import Sequence

from memory_node.graph import Filter, Kind
from memory_node.tools import matches as as_matches
from memory_node.tools.arguments import checked_amount, checked_center, checked_limit
from memory_node.tools.context import ToolContext
from memory_node.tools.results import SpatialQueryResult
from memory_node.tools.wording import Wording, counted, point, told


def spatial_query(
    context: ToolContext, center: Sequence[float], radius: float, limit: int = 0, filter: Filter | None = None
) -> SpatialQueryResult:
    """Return observations within a circle (x, y) of any height or a sphere (x, y, z), the nearest first.

    Where all observations are archived, the gists centred there stand in.

    Args:
        center: m, in the memory's frame. radius: m, more than 0.
        limit: most matches, 0 is 10.
        filter: its own region, when set, holds as well.

    Raises:
        InvalidArgument: naming the argument.
    """
    limit, where, within = checked_limit(limit), checked_center(center), checked_amount(radius, "radius")
    resolved = context.resolve(filter, (Kind.OBSERVATION,))
    near = context.searcher.near(where, within, limit + 1, resolved)
    remark = ""
    if not near and not (filter and filter.kinds):
        near = context.searcher.near(where, within, limit + 1, context.resolve(filter, (Kind.GIST,)))
        remark = "; observations are archived, these are summaries" if near else ""
    with context.db.read() as conn:
        matches = as_matches.of_near(conn, near[:limit])
    context.note_recall(match.id for match in matches)
    around = f"within {within:.2f} m of {point(where)} {context.frame}"
    if not matches:
        return SpatialQueryResult(text=f"Nothing was seen {around}.")
    words = Wording(context.now_ns(), context.settings.time_zone)
    more = "There are more: raise limit, or make the radius smaller." if len(near) > limit else "That is all."
    head = f"{counted(len(matches), 'match')} {around}, nearest first{remark}"
    return SpatialQueryResult(text=told(head, matches, words.match, more), matches=matches)
