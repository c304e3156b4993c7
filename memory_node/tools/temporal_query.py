"""What was seen in a span of time?"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from memory_node.errors import InvalidArgument, shown
from memory_node.graph import Filter, Gist, Kind
from memory_node.storage import gists
from memory_node.tools import matches as as_matches
from memory_node.tools.arguments import LONGEST_SPAN, checked_limit
from memory_node.tools.context import ToolContext
from memory_node.tools.results import Match, TemporalQueryResult
from memory_node.tools.wording import Wording, counted, told

if TYPE_CHECKING:
    from memory_node.retrieval.filters import Resolved

ORDERS = ("newest", "oldest")


def temporal_query(
    context: ToolContext,
    filter: Filter | None = None,
    order: str = "newest",
    last_n_minutes: float = 0.0,
    limit: int = 0,
) -> TemporalQueryResult:
    """Return observations whose span meets the window, in order of time.

    What is archived is told by the gists that overlap the window; their kind is "gist".

    Args:
        filter: time_after and time_before give the window; every other condition holds as well.
        order: "newest" or "oldest" first; "" is newest.
        last_n_minutes: only so far back; 0: no such bound.
        limit: most matches, 0 is 10.

    Raises:
        InvalidArgument: naming the argument.
    """
    limit, newest_first = checked_limit(limit), _newest_first(order)
    filter = filter or Filter()
    now = context.now_ns()
    resolved = _since(context.resolve(filter, (Kind.OBSERVATION,)), last_n_minutes, now)
    ids = context.searcher.in_time(resolved, newest_first, limit + 1)
    with context.db.read() as conn:
        matches = as_matches.of_ids(conn, ids[:limit])
    more = len(ids) > limit
    told = () if filter.kinds else _gists_before(context, filter, last_n_minutes, matches, newest_first, limit)
    if told:
        both = (*matches, *told) if newest_first else (*told, *matches)
        more, matches = more or len(both) > limit, both[:limit]
    context.note_recall(match.id for match in matches)
    return TemporalQueryResult(text=_text(context, now, matches, newest_first, more), matches=matches)


def _newest_first(order: str) -> bool:
    if (order or "newest") not in ORDERS:
        raise InvalidArgument("order", f"got {shown(order)}, allowed is newest or oldest")
    return order != "oldest"


def _since(resolved: Resolved, minutes: float, now: int) -> Resolved:
    """The filter, bounded to the last so many minutes."""
    if isinstance(minutes, bool) or not isinstance(minutes, (int, float)) or not 0.0 <= minutes < math.inf:
        raise InvalidArgument("last_n_minutes", f"got {shown(minutes)}, allowed is a finite number of at least 0")
    if minutes == 0:
        return resolved
    after = max(now - round(min(minutes, LONGEST_SPAN) * 60e9), -(2**62))
    return replace(resolved, after=after if resolved.after is None else max(after, resolved.after))


def _gists_before(
    context: ToolContext, filter: Filter, minutes: float, live: tuple[Match, ...], newest_first: bool, limit: int
) -> tuple[Match, ...]:
    """Gists of the window that ended before the oldest observation left in it: what they tell of is archived."""
    if newest_first and len(live) >= limit:
        return ()
    resolved = _since(context.resolve(replace(filter, layers=()), (Kind.GIST,)), minutes, context.now_ns())
    oldest = min((match.stamp for match in live), default=None)
    with context.db.read() as conn:
        found = gists.get_many(conn, context.searcher.in_time(resolved, newest_first, limit))
        kept = [gist.id for gist in found if _tells(gist, filter.layers, oldest)]
        return as_matches.of_ids(conn, kept)


def _tells(gist: Gist, layers: tuple[str, ...], oldest: int | None) -> bool:
    return (oldest is None or gist.end < oldest) and (not layers or bool(set(layers) & set(gist.layers)))


def _text(context: ToolContext, now: int, matches: tuple[Match, ...], newest_first: bool, more: bool) -> str:
    if not matches:
        return "Nothing was seen in that time."
    words = Wording(now, context.settings.time_zone)
    summaries = sum(match.kind == "gist" for match in matches)
    remark = f"; {counted(summaries, 'summary')} of archived observations" if summaries else ""
    head = f"{counted(len(matches), 'match')}, {'newest' if newest_first else 'oldest'} first{remark}"
    tail = "There are more: raise limit, or narrow the window." if more else "That is all."
    return told(head, matches, words.match, tail)
