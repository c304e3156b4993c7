"""Which summaries mean, or say, something like the query?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memory_node.graph import Filter, Gist, Kind
from memory_node.tools import summaries
from memory_node.tools.arguments import AHEAD, checked_limit, checked_query
from memory_node.tools.asking import ask, best_parts
from memory_node.tools.by_id import id_in
from memory_node.tools.by_now import gists_by_now
from memory_node.tools.context import ToolContext
from memory_node.tools.matches import ranked_gists
from memory_node.tools.results import SearchGistsResult
from memory_node.tools.wording import QUOTED, SHORT, WHOLE, Wording, counted, left_over, shortened, told

if TYPE_CHECKING:
    from memory_node.retrieval.filters import Resolved
    from memory_node.retrieval.ranking import Ranked


def search_gists(
    context: ToolContext, query: str = "", limit: int = 0, filter: Filter | None = None
) -> SearchGistsResult:
    """Return gists, the best first; with a blank query the newest first.

    Args:
        limit: most gists, 0 is 10.
        filter: its layers hold when one of the gist's layers is among them, its region when it meets the gist's circle.

    Raises:
        InvalidArgument: naming the argument.
    """
    limit, query = checked_limit(limit), checked_query(query)
    filter = Filter() if filter is None else filter
    resolved = context.resolve(filter, (Kind.GIST,))
    answers: list[Ranked] = []
    if query:
        answers, message = ask(context, query, None, resolved, limit + 1, layers=filter.layers)
        with context.db.read() as conn:
            found = ranked_gists(conn, answers)
    else:
        found, message = _newest(context, resolved, filter.layers, limit + AHEAD), ""
    gists = gists_by_now(context, resolved, found[:limit])
    context.note_recall(gist.id for gist in gists)
    about = f' for "{shortened(query, 80)}"' if query else ""
    if not gists:
        text = f"No summary{about}."
    else:
        words = Wording(context.now_ns(), context.settings.time_zone)
        head = f"{counted(len(gists), 'summary')}{about}, {'best' if query else 'newest'} first"
        more = 0 if len(found) <= limit else None if query else len(found) - limit
        tail = left_over(more, "raise limit, or narrow the filter", at_least=more == AHEAD)
        most = QUOTED if id_in(query) is None else WHOLE
        parts = best_parts(context, query, None, answers, SHORT)
        text = told(head, gists, lambda one: words.gist(one, parts.get(one.id, query)), tail, most)
    return SearchGistsResult(message=message, text=text + (f" ({message})" if message else ""), gists=gists)


def _newest(context: ToolContext, resolved: Resolved, layers: tuple[str, ...], limit: int) -> tuple[Gist, ...]:
    """The newest gists that cover something of the region and of the layers."""
    if int(Kind.GIST) not in resolved.kinds:
        return ()
    wanted = limit
    with context.db.read() as conn:
        wide = summaries.of_any_layer(context, conn, resolved)
        while True:
            ids = context.searcher.in_time(wide, True, wanted)
            kept = summaries.fitting(conn, ids, resolved, layers)
            if len(kept) >= limit or len(ids) < wanted:
                return tuple(kept[:limit])
            # Gists of other layers, or beside the region, took places.
            wanted *= 4
