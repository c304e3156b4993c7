"""Which summaries mean, or say, something like the query?"""

from __future__ import annotations

from dataclasses import replace

from memory_node.graph import Filter, Kind
from memory_node.storage import gists as gist_rows
from memory_node.tools.arguments import checked_limit, checked_query
from memory_node.tools.asking import ask
from memory_node.tools.context import ToolContext
from memory_node.tools.matches import ranked_gists
from memory_node.tools.results import SearchGistsResult
from memory_node.tools.wording import Wording, counted, shortened, told


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
    layers = set(filter.layers)
    resolved = context.resolve(replace(filter, layers=()), (Kind.GIST,))
    wanted = limit if not layers else 4 * limit
    answers, message = ask(context, query, None, resolved, wanted) if query else ([], "")
    with context.db.read() as conn:
        if query:
            found = ranked_gists(conn, answers)
        else:
            found = tuple(gist_rows.get_many(conn, context.searcher.in_time(resolved, True, wanted)))
    gists = tuple(gist for gist in found if not layers or layers & set(gist.layers))[:limit]
    about = f' for "{shortened(query, 80)}"' if query else ""
    if not gists:
        return SearchGistsResult(message=message, text=f"No summary{about}.")
    words = Wording(context.now_ns(), context.settings.time_zone)
    order = "best first" if query else "newest first"
    more = "There may be more: raise limit, or narrow the filter." if len(gists) == limit else "That is all."
    head = f"{counted(len(gists), 'summary')}{about}, {order}"
    text = told(head, gists, words.gist, more)
    return SearchGistsResult(message=message, text=text + (f" ({message})" if message else ""), gists=gists)
