"""What was seen in a span of time?"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from memory_node.errors import InvalidArgument, shown
from memory_node.graph import Filter, Kind
from memory_node.tools import matches as as_matches
from memory_node.tools import summaries
from memory_node.tools.arguments import AHEAD, LONGEST_SPAN, checked_limit
from memory_node.tools.by_now import matches_by_now
from memory_node.tools.context import ToolContext
from memory_node.tools.results import Match, TemporalQueryResult
from memory_node.tools.wording import Wording, counted, left_over, told

if TYPE_CHECKING:
    import sqlite3

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

    What is archived is told by the gists that overlap the window, in their place among the rest; their kind is "gist".

    Args:
        filter: time_after and time_before give the window; every other condition holds as well.
        order: "newest" or "oldest" first; "" is newest.
        last_n_minutes: only so far back; 0: no such bound.
        limit: most matches, 0 is 10.

    Raises:
        InvalidArgument: naming the argument.
    """
    limit, newest_first = checked_limit(limit), _newest_first(order)
    filter = Filter() if filter is None else filter
    now = context.now_ns()
    window = _since(context.resolve(filter, (Kind.OBSERVATION,)), last_n_minutes, now)
    rows = summaries.without_gists(window)
    ids = context.searcher.in_time(rows, newest_first, limit + AHEAD) if rows.kinds else []
    more = len(ids[limit:])
    at_least = more == AHEAD
    if at_least and (every := context.searcher.beyond(rows, limit)) is not None:
        more, at_least = every, False
    with context.db.read() as conn:
        matches = as_matches.of_ids(conn, ids[:limit])
        if summaries.wanted(conn, filter):
            wide = summaries.of_any_layer(context, conn, window)
            nearer = _before_last(wide, matches, newest_first, limit)
            told, looked_at = _summaries(context, conn, nearer, window, filter, newest_first, limit)
            matches = _in_order((*matches, *told), newest_first)
            more += max(0, len(matches) - limit)
            at_least = at_least or (more > 0 and context.searcher.beyond(wide, looked_at) != 0)
    matches = matches_by_now(context, window, matches[:limit])
    context.note_recall(match.id for match in matches)
    tail = left_over(more, "raise limit, or narrow the window", at_least)
    return TemporalQueryResult(text=_text(context, now, matches, newest_first, tail), matches=matches)


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


def _before_last(resolved: Resolved, live: tuple[Match, ...], newest_first: bool, limit: int) -> Resolved:
    """The filter, bounded to what comes before the last of a full list of matches."""
    if len(live) < limit:
        return resolved
    if newest_first:
        last = live[-1].last_stamp
        return replace(resolved, after=last if resolved.after is None else max(last, resolved.after))
    last = live[-1].stamp
    return replace(resolved, before=last if resolved.before is None else min(last, resolved.before))


def _summaries(
    context: ToolContext,
    conn: sqlite3.Connection,
    nearer: Resolved,
    window: Resolved,
    filter: Filter,
    newest_first: bool,
    limit: int,
) -> tuple[tuple[Match, ...], int]:
    """The first gists that are wanted, and how many were looked at.

    Args:
        nearer: filter of the rows of gists. window: the filter as it was asked.
    """
    wanted = 2 * limit
    while True:
        ids = context.searcher.in_time(nearer, newest_first, wanted)
        kept = summaries.told_in_place(conn, ids, window, filter)
        if len(kept) >= limit or len(ids) < wanted:
            return as_matches.of_ids(conn, [gist.id for gist in kept]), len(ids)
        # Gists whose rows are all there, and others, took places.
        wanted *= 4


def _in_order(matches: Iterable[Match], newest_first: bool) -> tuple[Match, ...]:
    if newest_first:
        return tuple(sorted(matches, key=lambda match: (match.last_stamp, match.id), reverse=True))
    return tuple(sorted(matches, key=lambda match: (match.stamp, match.id)))


def _text(context: ToolContext, now: int, matches: tuple[Match, ...], newest_first: bool, tail: str) -> str:
    if not matches:
        return "Nothing was seen in that time."
    words = Wording(now, context.settings.time_zone)
    summaries = sum(match.kind == "gist" for match in matches)
    remark = f"; {counted(summaries, 'summary')} of archived observations" if summaries else ""
    head = f"{counted(len(matches), 'match')}, {'newest' if newest_first else 'oldest'} first{remark}"
    return told(head, matches, words.match, tail)
