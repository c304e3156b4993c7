"""Which things are known: by name, kind, place and last sighting; and how many."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from memory_node.graph import Entity, Filter, Kind
from memory_node.ingest.association import normalise_label
from memory_node.retrieval import naming, times
from memory_node.storage import entities
from memory_node.tools.arguments import checked_limit, checked_query
from memory_node.tools.context import ToolContext
from memory_node.tools.results import EntityQueryResult
from memory_node.tools.wording import Wording, counted, listed, shortened

if TYPE_CHECKING:
    import sqlite3

    import numpy as np
    from numpy.typing import NDArray

MOST = 100_000
"""Entities that are looked through, the latest seen first."""
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
        name: part of a name, or what it means; blank: any.
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
    vector = context.embed_query(concept) if name else None
    passing = context.searcher.in_time(context.resolve(filter, (Kind.ENTITY,)), True, MOST)
    with context.db.read() as conn:
        fits = _fits(conn, name, concept, vector) if name else None
        labels = dict(entities.labels_of(conn, passing))
        ids = [id_ for id_ in passing if id_ in labels and (fits is None or fits.get(labels[id_], 0.0) > 0.0)]
        found = [
            entity
            for entity in entities.get_many(conn, ids)
            if kind in ("", entity.entity_type, labels[entity.id]) and (after is None or entity.last_seen >= after)
        ]
    scored = [replace(entity, score=1.0 if fits is None else fits[labels[entity.id]]) for entity in found]
    scored.sort(key=lambda entity: (-entity.score, -entity.last_seen, entity.id))
    context.note_recall(entity.id for entity in scored[:limit])
    return EntityQueryResult(
        text=_text(context, name or kind, scored, limit), entities=tuple(scored[:limit]), total=len(scored)
    )


def _after(context: ToolContext, text: int | str | None) -> int | None:
    if text is None or text == "":
        return None
    return times.parse_time(text, context.now_ns(), context.settings.time_zone, "last_seen_after")


def _fits(
    conn: sqlite3.Connection, name: str, concept: str, vector: NDArray[np.float32] | None
) -> dict[str, float]:
    """Return how well each label fits, those that do not left out."""
    labels = entities.labels(conn)
    cosines = naming.cosines(conn, vector, labels)
    fits = {}
    for label in labels:
        score = naming.fit(concept, label, cosines.get(label), NEAR)
        if name in label or concept in label:
            score = max(score, naming.PART)
        if score > 0.0:
            fits[label] = score
    return fits


def _text(context: ToolContext, asked: str, found: list[Entity], limit: int) -> str:
    about = f' named "{shortened(asked, 80)}"' if asked else ""
    if not found:
        return f"No entity{about} is known."
    sure = sum(not entity.tentative for entity in found)
    missing = sum(entity.missing for entity in found)
    names = Counter(entity.name for entity in found)
    kinds = ", ".join(f"{number} {name}" for name, number in names.most_common(8)) if len(names) > 1 else ""
    parts = [f"{sure} confirmed", f"{len(found) - sure} tentative (seen once or doubtful)"]
    parts += [f"{missing} missing from where they were seen"] if missing else []
    head = f"{counted(len(found), 'thing')}{about}: {', '.join(parts)}" + (f"; {kinds}" if kinds else "") + "."
    words = Wording(context.now_ns(), context.settings.time_zone)
    lines = [words.entity(entity) + _before(words, entity) for entity in found[:limit]]
    return listed(head, lines, f"({len(found) - limit} more)" if len(found) > limit else "")


def _before(words: Wording, entity: Entity) -> str:
    if not entity.history:
        return ""
    old = entity.history[0]
    x, y, z = old.position
    return f", before that at ({x:.2f}, {y:.2f}, {z:.2f}) until {words.when(old.last_seen)}"
