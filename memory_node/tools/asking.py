"""What tools that rank share: the question's vector, the ranking, and the remark when meaning had no part."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from memory_node.errors import InvalidArgument
from memory_node.graph import Kind
from memory_node.retrieval.candidates import Asked
from memory_node.retrieval.chunks import split
from memory_node.retrieval.findings import Findings
from memory_node.retrieval.ranking import Ranked, rank
from memory_node.retrieval.scoring import recency
from memory_node.storage import texts, vectors
from memory_node.tools import summaries
from memory_node.tools.by_id import id_in, row_of
from memory_node.tools.context import WORDS_ONLY, ToolContext

PARTLY = f"partly {WORDS_ONLY}"

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memory_node.graph import Node
    from memory_node.retrieval.filters import Resolved
    from memory_node.retrieval.plan import Plan


def ask(
    context: ToolContext,
    query: str,
    vector: NDArray[np.float32] | None,
    resolved: Resolved,
    limit: int,
    plan: Plan | None = None,
    layers: Sequence[str] = (),
) -> tuple[list[Ranked], str]:
    """Return what `answers_to` does; the embedder is asked for the vector, unless the caller brought it."""
    if vector is None and query and id_in(query) is None:
        vector = context.embed_query(query)
    return answers_to(context, query, vector, resolved, limit, Findings(query), plan, layers)


def answers_to(
    context: ToolContext,
    query: str,
    vector: NDArray[np.float32] | None,
    resolved: Resolved,
    limit: int,
    seen: Findings,
    plan: Plan | None = None,
    layers: Sequence[str] = (),
) -> tuple[list[Ranked], str]:
    """Return ranked answers and the message: what part meaning had in them, see `remark`.

    A filter by layer or region takes gists by what they cover, see `summaries.fitting`.

    Args:
        query: checked words, "" for none; or "#12", which is that row.
        vector: of the question, None where there is none.
        seen: of this question, filled in. layers: names of the filter's layers.
    """
    covers = int(Kind.GIST) in resolved.kinds and (bool(layers) or resolved.center is not None)
    id_ = id_in(query)
    if id_ is not None:
        row = row_of(context, id_, resolved) or (covers and _gist_of(context, id_, resolved, layers)) or None
        return [_alone(context, row)] if row else [], ""
    others = summaries.without_gists(resolved) if covers else resolved
    asked = Asked(query, vector, others, context.now_ns(), seen)
    answers: list[Ranked] = []
    if asked.resolved.kinds:
        answers = rank(context.searcher, context.db, context.settings, asked, limit, plan)
    if covers:
        answers += _gists(context, replace(asked, resolved=resolved), layers, limit)
        answers = sorted(answers, key=lambda one: -one.score)[:limit]
    return answers, remark(context, vector, [one.similarity is not None for one in answers]) if query else ""


def _gists(context: ToolContext, asked: Asked, layers: Sequence[str], limit: int) -> list[Ranked]:
    """The best gists that cover something of the region and of the layers."""
    wanted = 2 * limit
    with context.db.read() as conn:
        wide = replace(asked, resolved=summaries.of_any_layer(context, conn, asked.resolved))
        while True:
            found = rank(context.searcher, context.db, context.settings, wide, wanted)
            fits = {g.id for g in summaries.fitting(conn, [one.node.id for one in found], asked.resolved, layers)}
            kept = [one for one in found if one.node.id in fits]
            if len(kept) >= limit or len(found) < wanted:
                return kept[:limit]
            # Gists of other layers, or beside the region, took places.
            wanted *= 4


def _gist_of(context: ToolContext, id_: int, resolved: Resolved, layers: Sequence[str]) -> Node | None:
    """The gist of an id, None when there is none that covers something of the region and of the layers."""
    with context.db.read() as conn:
        row = row_of(context, id_, summaries.of_any_layer(context, conn, resolved))
        return row if row and summaries.fitting(conn, [row.id], resolved, layers) else None


def _alone(context: ToolContext, row: Node) -> Ranked:
    """A row that was asked for by its id."""
    fresh = recency((context.now_ns() - row.last_stamp) / 1e9, context.settings.recency_halflife)
    return Ranked(row, row.repeats, row.stamp, row.last_stamp, 1.0, None, 1.0, row.importance, fresh)


def best_parts(
    context: ToolContext, query: str, vector: NDArray[np.float32] | None, answers: Iterable[Ranked], short: int
) -> dict[int, str]:
    """Return the part that means most like the query, by the id of the row, of texts longer than `short`.

    Args:
        vector: of the question, when the caller brought it.
    """
    long = [one.node for one in answers if len(one.node.text or "") > short]
    model = context.searcher.model
    if not long or model is None or not (query or vector is not None) or id_in(query) is not None:
        return {}
    vector = context.embed_query(query) if vector is None else vector
    if vector is None or len(vector) != model.dim:
        return {}
    best = {}
    with context.db.read() as conn:
        several = vectors.in_parts(conn, model.id, [node.text_id or 0 for node in long])
        for node in long:
            if node.text_id in several:
                part = vectors.best_part(conn, model.id, node.text_id, vector)
                parts = split(node.text or "")
                if part is not None and part < len(parts):
                    best[node.id] = parts[part]
    return best


def remark(context: ToolContext, vector: NDArray[np.float32] | None, measured: Sequence[bool]) -> str:
    """Return "" where meaning had its part, "by words only" where it had none, "partly by words only" between.

    Args:
        vector: of the question, None without an embedder that answers.
        measured: of each thing that was compared, whether its text has a vector. None at all: of the texts there are.
    """
    if vector is None or (measured and not any(measured)):
        return WORDS_ONLY
    if measured:
        return "" if all(measured) else PARTLY
    model = context.searcher.model
    with context.db.read() as conn:
        return PARTLY if model is not None and texts.are_waiting(conn, model.id) else ""


def checked_vector(
    context: ToolContext, vector: Sequence[float] | NDArray[np.float32] | None
) -> NDArray[np.float32] | None:
    """Return the caller's vector at unit length, float32 (D,); raise InvalidArgument when it can't be compared."""
    if vector is None:
        return None
    try:
        array = np.asarray(vector, dtype=np.float32)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidArgument("vector", "allowed is a list of numbers") from error
    if array.ndim != 1 or not array.size or not np.isfinite(array).all() or not array.any():
        raise InvalidArgument("vector", "allowed is one row of finite numbers, not all of them 0")
    model = context.searcher.model
    if model is not None and model.dim != array.size:
        raise InvalidArgument("vector", f"has {array.size} numbers, those stored have {model.dim}")
    length = float(np.linalg.norm(array.astype(np.float64)))
    return array / np.float32(length)
