"""Which summaries mean, or say, something like the query?"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from memory_node.graph import Filter, Gist, Kind
from memory_node.storage import gists as gist_rows
from memory_node.tools.arguments import checked_limit, checked_query
from memory_node.tools.asking import ask
from memory_node.tools.context import ToolContext
from memory_node.tools.matches import ranked_gists
from memory_node.tools.results import SearchGistsResult
from memory_node.tools.wording import Wording, counted, left_over, shortened, told

if TYPE_CHECKING:
    from memory_node.retrieval.filters import Resolved
    from memory_node.retrieval.ranking import Ranked


def search_gists(
    context: ToolContext, query: str = "", limit: int = 0, filter: Filter | None = None
) -> SearchGistsResult:
    """Return gists, the best first; with a blank query the newest first.

    Args:
        limit: most gists, 0 is 10.
        filter: its layers hold when one of the gist's layers is among them.

    Raises:
        InvalidArgument: naming the argument.
    """
    limit, query = checked_limit(limit), checked_query(query)
    filter = filter or Filter()
    context.resolve(filter, (Kind.GIST,))
    resolved = context.resolve(replace(filter, layers=()), (Kind.GIST,))
    found, message = _found(context, query, resolved, set(filter.layers), limit + 1)
    gists = found[:limit]
    context.note_recall(gist.id for gist in gists)
    about = f' for "{shortened(query, 80)}"' if query else ""
    if not gists:
        text = f"No summary{about}."
    else:
        words = Wording(context.now_ns(), context.settings.time_zone)
        head = f"{counted(len(gists), 'summary')}{about}, {'best' if query else 'newest'} first"
        more = left_over(None if len(found) > limit else 0, "raise limit, or narrow the filter")
        text = told(head, gists, words.gist, more)
    return SearchGistsResult(message=message, text=text + (f" ({message})" if message else ""), gists=gists)


def _found(
    context: ToolContext, query: str, resolved: Resolved, layers: set[str], limit: int
) -> tuple[tuple[Gist, ...], str]:
    """The best or the newest gists of the layers (none: any), and the message."""
    wanted, message = limit, ""
    while True:
        answers: list[Ranked] = []
        if query:
            answers, message = ask(context, query, None, resolved, wanted)
        with context.db.read() as conn:
            if query:
                found = ranked_gists(conn, answers)
            else:
                found = tuple(gist_rows.get_many(conn, context.searcher.in_time(resolved, True, wanted)))
        kept = tuple(gist for gist in found if not layers or layers & set(gist.layers))
        if len(kept) >= limit or len(found) < wanted:
            return kept[:limit], message
        # Gists of other layers took places.
        wanted *= 4
