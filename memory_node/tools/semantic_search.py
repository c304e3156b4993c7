"""What was seen that means, or says, something like the query?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from memory_node.graph import Filter, Kind
from memory_node.retrieval.plan import Plan
from memory_node.tools import matches as as_matches
from memory_node.tools.arguments import checked_limit, checked_query
from memory_node.tools.asking import ask, best_parts, checked_vector
from memory_node.tools.by_id import id_in
from memory_node.tools.by_now import matches_by_now
from memory_node.tools.context import ToolContext
from memory_node.tools.results import SemanticSearchResult
from memory_node.tools.wording import QUOTED, SHORT, WHOLE, Wording, counted, left_over, shortened, told

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

KINDS = (Kind.OBSERVATION, Kind.GIST, Kind.ENTITY)


def semantic_search(
    context: ToolContext,
    query: str = "",
    limit: int = 0,
    filter: Filter | None = None,
    vector: Sequence[float] | NDArray[np.float32] | None = None,
    explain: bool = False,
) -> SemanticSearchResult:
    """Return observations, gists and entities in one ranked list, the best first.

    Args:
        query: words; blank with a vector: by meaning alone; blank without: no match.
        limit: most matches, 0 is 10.
        filter: layers and region take the gists that tell of one of the layers and of some of the region.
        vector: of the question, (D,), when the caller has it.
        explain: whether the result's plan is filled.

    Raises:
        InvalidArgument: naming the argument.
    """
    limit, query = checked_limit(limit), checked_query(query)
    direction = checked_vector(context, vector)
    filter = Filter() if filter is None else filter
    resolved = context.resolve(filter, KINDS)
    plan = Plan()
    answers, message = ask(context, query, direction, resolved, limit + 1, plan, filter.layers)
    matches = matches_by_now(context, resolved, tuple(map(as_matches.of_ranked, answers[:limit])))
    context.note_recall(match.id for match in matches)
    about = f' for "{shortened(query, 80)}"' if query else ""
    if not matches:
        text = f"No match{about}."
    else:
        words = Wording(context.now_ns(), context.settings.time_zone)
        head = f"{counted(len(matches), 'match')}{about}, best first; now {words.clock(words.now)}"
        more = left_over(None if len(answers) > limit else 0, "raise limit, or narrow the filter")
        most = QUOTED if id_in(query) is None else WHOLE
        parts = best_parts(context, query, direction, answers[:limit], SHORT)
        text = told(head, matches, lambda one: words.match(one, parts.get(one.id, query)), more, most)
    text += f" ({message})" if message else ""
    return SemanticSearchResult(message=message, text=text, matches=matches, plan=plan.as_dict() if explain else None)
