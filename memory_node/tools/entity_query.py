"""Which things are known: by name, kind, place and last sighting; and how many."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from memory_node.graph import NO_ID, Entity, Filter, Kind
from memory_node.ingest.association import normalise_label
from memory_node.retrieval import concepts, naming, times
from memory_node.storage import entities, seen, texts
from memory_node.tools.arguments import checked_limit, checked_query
from memory_node.tools.asking import remark
from memory_node.tools.by_id import id_in, row_of
from memory_node.tools.context import ToolContext
from memory_node.tools.results import EntityQueryResult
from memory_node.tools.wording import Wording, counted, listed, point, shortened

if TYPE_CHECKING:
    import sqlite3

    from numpy.typing import NDArray

    from memory_node.retrieval.things import Things
    from memory_node.storage.vectors import Model

MOST_NAMES = 8
"""Names whose numbers are told."""
NEAR = 0.45
"""Cosine from which a label fits a name that is not another word for it, such as "furniture"."""


def entity_query(
    context: ToolContext,
    name: str = "",
    entity_type: str = "",
    filter: Filter | None = None,
    last_seen_after: int | str | None = None,
    limit: int = 0,
) -> EntityQueryResult:
    """Return the entities that fit, the best name first, then the latest seen.

    Args:
        name: part of a name, or what it means; or "#12", the thing of that id; blank: any.
        entity_type: class of the thing; blank: any.
        last_seen_after: only what was seen since, ns or "-10m", ISO 8601, Unix seconds; None or blank: any time.
        limit: most results, 0 is 10; the count in text and total is of all that fit.

    Raises:
        InvalidArgument: naming the argument.
    """
    limit = checked_limit(limit)
    name = normalise_label(checked_query(name, "name"))
    kind = normalise_label(checked_query(entity_type, "entity_type"))
    after = _after(context, last_seen_after)
    concept = naming.concept_of(name)
    resolved = context.resolve(filter, (Kind.ENTITY,))
    until = context.until(resolved) if after is None or after <= context.now_ns() else None
    id_ = id_in(name)
    by_name = bool(name) and id_ is None
    vector = context.embed_query(concept) if by_name else None
    with context.db.read() as conn:
        fits, measured = _fits(conn, name, concept, context.searcher.model, vector) if by_name else (None, [])
        things = context.searcher.things(resolved, fits)
        if id_ is not None:
            row = row_of(context, id_, resolved)
            things = things.where(things.ids == (row.id if row else NO_ID))
        if kind:
            things = things.where(np.isin(things.ids, entities.of_type(conn, [kind, *concepts.singulars(kind)])))
        things = things.as_of(conn, until)
        if after is not None:
            things = things.where(things.last_seen >= after)
        best = things.where(np.lexsort((things.ids, -things.last_seen, -things.fits))[:limit])
        fits = dict(zip(best.ids.tolist(), best.fits.tolist(), strict=True))
        found = tuple(seen.as_of(conn, entities.get_many(conn, fits, fits), until))
        head = _head(conn, name or kind, things)
    context.note_recall(fits)
    words = Wording(context.now_ns(), context.settings.time_zone)
    lines = [words.entity(entity) + _before(words, entity) for entity in found]
    left = len(things) - len(found)
    text = listed(head, lines, f"({left} more)" if left else "") if found else head
    message = remark(context, vector, measured) if by_name else ""
    text += f" ({message})" if message else ""
    return EntityQueryResult(message=message, text=text, entities=found, total=len(things))


def _after(context: ToolContext, text: int | str | None) -> int | None:
    if text is None or text == "":
        return None
    return times.parse_time(text, context.now_ns(), context.settings.time_zone, "last_seen_after")


def _fits(
    conn: sqlite3.Connection, name: str, concept: str, model: Model | None, vector: NDArray[np.float32] | None
) -> tuple[dict[int, float], list[bool]]:
    """Return how well each label fits by its text's id, those that do not left out; and which labels have a vector."""
    labels = entities.labels(conn)
    parts = {name, concept, *concepts.singulars(concept)}
    cosines = naming.cosines(conn, model, vector, labels)
    scores = {}
    for label in labels:
        score = naming.fit(concept, label, cosines.get(label), NEAR)
        if any(part in label for part in parts):
            score = max(score, naming.PART)
        if score > 0.0:
            scores[label] = score
    fits = {text_id: scores[label] for label, text_id in texts.ids_of(conn, scores).items()}
    return fits, [label in cosines for label in labels]


def _head(conn: sqlite3.Connection, asked: str, things: Things) -> str:
    about = f' named "{shortened(asked, 80)}"' if asked else ""
    if not len(things):
        return f"No entity{about} is known."
    # What was seen once was never confirmed.
    once = things.sightings <= 1
    known = entities.tally(conn, things.ids[~once].tolist())
    there, tentative, missing = map(sum, zip((0, int(once.sum()), 0), *known.values(), strict=True))
    most = [(label, counts.there) for label, counts in known.items() if counts.there][:MOST_NAMES]
    kinds = ": " + ", ".join(f"{number} {shortened(label, 40)}" for label, number in most) if len(most) > 1 else ""
    more = [f"{tentative} more tentative (seen once or doubtful)"] if tentative else []
    more += [f"{missing} missing from where they were seen"] if missing else []
    rest = "; " + ", ".join(more) if more else ""
    return f"{counted(there, 'thing')}{about} (confirmed){kinds}{rest}."


def _before(words: Wording, entity: Entity) -> str:
    if not entity.history:
        return ""
    old = entity.history[0]
    more = entity.places_left - 1
    rest = f" and at {counted(more, 'more place')} before" if more else ""
    return f", before that at {point(old.position)} {entity.frame} until {words.when(old.last_seen)}{rest}"
