"""Where something is: places of entities first, then where observations and gists speak of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from memory_node.errors import InvalidArgument
from memory_node.graph import EdgeType, Filter, Kind, Node, PositionSource
from memory_node.ingest.association import normalise_label
from memory_node.retrieval import concepts, naming, places, ranking, thresholds
from memory_node.retrieval.places import Evidence, Scored
from memory_node.retrieval.thresholds import Thresholds
from memory_node.storage import edges, entities, nodes, vectors
from memory_node.tools.arguments import checked_query
from memory_node.tools.context import WORDS_ONLY, ToolContext
from memory_node.tools.results import LocateResult
from memory_node.tools.wording import Wording, listed, shortened

if TYPE_CHECKING:
    import sqlite3

    import numpy as np
    from numpy.typing import NDArray

    from memory_node.retrieval.filters import Resolved
    from memory_node.retrieval.search import Hit

KINDS = (Kind.ENTITY, Kind.OBSERVATION, Kind.GIST)
HITS = 50
"""Texts that are looked at for each way of asking."""
NAMES = 6
"""Names of the thing that texts are searched for."""
MOST_ENTITIES = 100_000
SPOKEN = 0.9
"""Relevance of a text that has all words of a name."""
SHORT = 3
"""Words up to which a text is a label and is judged as one."""
ALTERNATIVES = 10
HISTORY = 0.1
"""Share of a moved thing's confidence that it is back at an earlier place."""
SAME_PLACE = 2.0
"""m: where texts speak of a thing this near to an entity of it, they mean that."""


@dataclass(frozen=True)
class _Question:
    """What is asked: the normalised concept, its vector, what passes the filter, from when a cosine is believed."""

    concept: str
    vector: NDArray[np.float32] | None
    resolved: Resolved
    least: Thresholds


def locate(context: ToolContext, concept: str, filter: Filter | None = None) -> LocateResult:
    """Return the likeliest place of something, and the other places it may be at.

    Evidence is clustered in space; clusters are never averaged. Nothing relevant enough, see `thresholds`: not found.

    Args:
        concept: a name, with or without a question around it; not blank.

    Raises:
        InvalidArgument: naming the argument.
    """
    asked = checked_query(concept, "concept")
    name = naming.concept_of(asked)
    if not name:
        raise InvalidArgument("concept", "must not be blank")
    resolved = context.resolve(filter, KINDS)
    vector = context.embed_query(name)
    with context.db.read() as conn:
        model = vectors.active_model(conn)
        least = thresholds.of_model(model.name if model else None, context.settings.locate_threshold)
        question = _Question(name, vector, resolved, least)
        things = _things(context, conn, question)
        texts = _texts(context, conn, question, {scored.place.entity_id for scored in things})
    spoken = [scored for scored in places.clusters(texts) if not _at(scored, things)]
    found = places.ranked([*things, *spoken], context.settings.recency_halflife)[: ALTERNATIVES + 1]
    context.note_recall(dict.fromkeys(scored.place.entity_id for scored in found if scored.place.entity_id))
    message = WORDS_ONLY if vector is None else ""
    return LocateResult(
        message=message,
        text=_text(context, asked, found) + (f" ({message})" if message else ""),
        found=bool(found),
        place=replace(found[0].place, confidence=min(1.0, found[0].place.confidence)) if found else None,
        alternatives=tuple(scored.place for scored in found[1:]),
    )


def _things(context: ToolContext, conn: sqlite3.Connection, question: _Question) -> list[Scored]:
    """Places of the entities that the concept names, and the earlier places of those that moved."""
    if int(Kind.ENTITY) not in question.resolved.kinds:
        return []
    labels = entities.labels(conn)
    cosines = naming.cosines(conn, question.vector, labels)
    fits = {label: naming.fit(question.concept, label, cosines.get(label), question.least.label) for label in labels}
    wanted = [label for label, score in fits.items() if score > 0.0]
    if not wanted:
        return []
    only = replace(question.resolved, kinds=(int(Kind.ENTITY),))
    passing = set(context.searcher.in_time(only, True, MOST_ENTITIES))
    label_of = {id_: label for id_, label in entities.with_labels(conn, wanted) if id_ in passing}
    found: list[Scored] = []
    for entity in entities.get_many(conn, label_of):
        scored = places.of_entity(entity, fits[label_of[entity.id]])
        if scored is None:
            continue
        found.append(scored)
        found += [
            replace(scored, place=replace(old, confidence=HISTORY * scored.place.confidence)) for old in entity.history
        ]
    return found


def _texts(
    context: ToolContext, conn: sqlite3.Connection, question: _Question, known: set[int]
) -> list[Evidence]:
    """Evidence of observations and gists that speak of the concept; sightings of the entities at hand are no more."""
    kinds = tuple(kind for kind in question.resolved.kinds if kind in (int(Kind.OBSERVATION), int(Kind.GIST)))
    if not kinds:
        return []
    resolved = replace(question.resolved, kinds=kinds)
    relevance: dict[int, float] = {}
    for words in concepts.names(question.concept)[:NAMES]:
        for hit in context.searcher.words(words, HITS, resolved):
            if hit.lexical is not None and hit.lexical >= 0.99:
                _keep_best(relevance, hit.node_ids, SPOKEN)
    for hit, score in _alike(context, question, resolved):
        _keep_best(relevance, hit.node_ids, score)
    rows = [node for node in nodes.fetch(conn, relevance) if node.position is not None]
    return [
        _evidence(node, score)
        for node in rows
        if (score := _judged(question, node, relevance[node.id])) > 0.0 and not _shows(conn, node.id, known)
    ]


def _alike(context: ToolContext, question: _Question, resolved: Resolved) -> list[tuple[Hit, float]]:
    """Texts near enough to the concept, by meaning alone or with the words they share, and how relevant they are.

    A text is judged by whichever says more: the words of a question are evidence, those of a name are not expected.
    """
    if question.vector is None:
        return []
    least = question.least.sentence
    if concepts.things(question.concept) and not concepts.is_room(question.concept):
        least = question.least.strict
    hits = context.searcher.meaning(question.vector, HITS, resolved)
    weight, said = context.searcher.said(question.concept, [hit.text_id for hit in hits])
    scores = [
        max(hit.similarity or 0.0, ranking.relevance(hit.similarity, said.get(hit.text_id, 0.0), weight))
        for hit in hits
    ]
    return [(hit, score) for hit, score in zip(hits, scores, strict=True) if score >= least]


def _keep_best(relevance: dict[int, float], ids: Iterable[int], value: float) -> None:
    for id_ in ids:
        relevance[id_] = max(value, relevance.get(id_, 0.0))


def _judged(question: _Question, node: Node, relevance: float) -> float:
    """Relevance of a text; one of few words is a label and is judged as those of entities are."""
    label = normalise_label(node.text or "")
    if len(label.split()) > SHORT:
        return relevance
    return naming.fit(question.concept, label, relevance, question.least.label)


def _shows(conn: sqlite3.Connection, observation_id: int, known: set[int]) -> bool:
    return bool(known) and not known.isdisjoint(edges.sources(conn, observation_id, EdgeType.OBSERVED_IN))


def _evidence(node: Node, relevance: float) -> Evidence:
    assert node.position is not None
    return Evidence(
        position=node.position, source=node.position_source or PositionSource.OBSERVER,
        relevance=relevance * node.confidence, first_seen=node.stamp, last_seen=node.last_stamp, support=node.repeats,
        frame=node.frame, map_id=node.map_id, label=shortened(node.text or "", 60),
    )


def _at(spoken: Scored, things: Sequence[Scored]) -> bool:
    """Tell whether a place that texts speak of is that of an entity at hand, as far as the observers' places tell."""
    x, y, _ = spoken.place.position
    return any(
        (x - thing.place.position[0]) ** 2 + (y - thing.place.position[1]) ** 2
        <= (SAME_PLACE + spoken.place.radius) ** 2
        for thing in things
        if thing.place.map_id == spoken.place.map_id
    )


def _text(context: ToolContext, asked: str, found: Sequence[Scored]) -> str:
    about = f'"{shortened(asked, 80)}"'
    if not found:
        return f"It is not known where {about} is: nothing remembered is close enough to it."
    words = Wording(context.now_ns(), context.settings.time_zone)
    head = f"{about} is most likely here:\n{words.place(found[0].place)}"
    if len(found) == 1:
        return head
    return head + "\n" + listed("Other places:", [words.place(scored.place) for scored in found[1:]])
