"""Where something is: places of entities first, then where observations and gists speak of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from memory_node.errors import InvalidArgument
from memory_node.graph import NO_ID, EdgeType, Entity, Filter, Kind, Place
from memory_node.ingest.association import normalise_label
from memory_node.ingest.entity_table import ELSEWHERE
from memory_node.ingest.presence import CONFIRMED
from memory_node.retrieval import concepts, naming, places, scoring, thresholds
from memory_node.retrieval.findings import Findings
from memory_node.retrieval.places import Clusters, Evidence, Scored
from memory_node.retrieval.thresholds import Thresholds
from memory_node.storage import edges, entities, texts
from memory_node.storage.seen import as_of
from memory_node.storage.told import told
from memory_node.storage.vectors import of_texts
from memory_node.tools.arguments import checked_query
from memory_node.tools.asking import remark
from memory_node.tools.by_id import id_in, row_of
from memory_node.tools.context import ToolContext
from memory_node.tools.results import LocateResult
from memory_node.tools.wording import Wording, counted, listed, shortened

if TYPE_CHECKING:
    import sqlite3

    from numpy.typing import NDArray

    from memory_node.graph import Node
    from memory_node.retrieval.filters import Resolved
    from memory_node.retrieval.search import Hit
    from memory_node.retrieval.things import Things
    from memory_node.storage.vectors import Model

KINDS = (Kind.ENTITY, Kind.OBSERVATION, Kind.GIST)
HITS = 50
"""Texts that are looked at for each way of asking."""
NAMES = 6
"""Names of the thing that texts are searched for."""
SPOKEN = 0.9
"""Relevance of a text that has all words of a name."""
ALL = 0.99
"""Share of the words of a name from which on a text has all of them."""
SHORT = 3
"""Words up to which a text is a label and is judged as one."""
ROUNDING = 1e-6
"""By how much a cosine of single precision may be off."""
ALTERNATIVES = 10
BEST = ALTERNATIVES + 1
FADED = 0.1
"""Belief under which a thing that was never confirmed is held to have been a false detection, and is nowhere."""
LEFT = 200
"""Earlier places of a thing that are looked through for those that differ."""
HISTORY = 0.1
"""Share of a moved thing's confidence that it is back at an earlier place."""
SAME_PLACE = 2.0
"""m: where texts speak of a thing this near to an entity of it, they mean that."""


@dataclass(frozen=True)
class Question:
    """What is asked, with all that is embedded for it: the normalised concept, or the id of a row; and the filter.

    Attributes:
        least: from when a cosine is believed. seen: what was found. labels: that the concept names, and how well.
    """

    concept: str
    id: int | None
    resolved: Resolved
    vector: NDArray[np.float32] | None
    least: Thresholds
    seen: Findings
    labels: dict[str, float]

    def anywhere(self) -> Question:
        """The same without a region."""
        return replace(self, resolved=replace(self.resolved, center=None))


class Located(NamedTuple):
    """Where something is.

    Attributes:
        place: the likeliest, None where nothing was found. alternatives: other ones, best first.
        best: all these as they were ranked. more: how many there are beside them.
        message: what part meaning had. things: the entities that were read, with LEFT earlier places.
    """

    place: Place | None
    alternatives: tuple[Place, ...]
    best: Sequence[Scored]
    more: int
    message: str
    things: Sequence[Entity] = ()


def locate(context: ToolContext, concept: str, filter: Filter | None = None) -> LocateResult:
    """Return the likeliest place of something, and the other places it may be at.

    Evidence is clustered in space; clusters are never averaged. Nothing relevant enough, see `thresholds`: not found.

    Args:
        concept: a name, with or without a question around it; or "#12", the row of that id; not blank.

    Raises:
        InvalidArgument: naming the argument.
    """
    asked = checked_query(concept, "concept")
    if not naming.concept_of(asked):
        raise InvalidArgument("concept", "must not be blank")
    found = find(context, understand(context, asked, context.resolve(filter, KINDS)), whole=True)
    return LocateResult(
        message=found.message,
        text=_text(context, asked, found) + (f" ({found.message})" if found.message else ""),
        found=found.place is not None,
        place=found.place,
        alternatives=found.alternatives,
    )


def understand(context: ToolContext, asked: str, resolved: Resolved, seen: Findings | None = None) -> Question:
    """Return what is asked: checked, with a concept in it. Not inside a read, as it may wait for the embedder.

    Args:
        seen: what was found already of a question.
    """
    name, id_, model = naming.concept_of(asked), id_in(asked), context.searcher.model
    least = thresholds.of_model(model.name if model else None, context.settings.locate_threshold)
    vector = context.embed_query(name) if id_ is None else None
    named = id_ is None and int(Kind.ENTITY) in resolved.kinds
    labels = _fits(context, name, vector, least.label) if named else {}
    return Question(name, id_, resolved, vector, least, seen if seen and seen.query == name else Findings(name), labels)


def find(context: ToolContext, question: Question, whole: bool = False) -> Located:
    """Return the places of something as `locate` tells them.

    Args:
        whole: with message, and more counted, which cost something.
    """
    until = context.until(question.resolved)
    if question.id is not None:
        return _by_id(context, row_of(context, question.id, question.resolved), until)
    with context.db.read() as conn:
        things = _things(context, conn, question)
        # What was seen in a region and is known to be outside by now is not in the region.
        known = things if question.resolved.center is None else _things(context, conn, question.anywhere())
        clusters = places.clusters(_texts(context, conn, question, known))
        spoken = _elsewhere(clusters, things)
        halflife = context.settings.recency_halflife
        read, fits = _read(conn, things, clusters.last_seen[spoken], halflife, until)
        more = _more(conn, things) if whole else 0
        message = remark(context, question.vector, []) if whole else ""
    sure = [one for one in read if not one.tentative or one.confidence >= FADED]
    named = [place for one in sure for place in _places(one, fits[one.id])]
    best = _best(named, clusters, spoken, halflife)
    more += len(named) + len(spoken) - len(best)
    return _located(context, best, message, more, read)


def _by_id(context: ToolContext, row: Node | None, until: int | None) -> Located:
    """The places of a row that was asked for by its id."""
    found: list[Scored] = []
    if row is not None and row.kind is Kind.ENTITY:
        with context.db.read() as conn:
            read = entities.get_many(conn, [row.id], history=LEFT)
            found = [one for entity in as_of(conn, read, until) for one in _places(entity, 1.0)]
    elif row is not None and row.position is not None:
        with context.db.read() as conn:
            rows = told(conn, [row.id], 1, until)
        clusters = places.clusters(Evidence.of_rows(rows, np.ones(len(rows.ids))))
        found = [_shown(clusters, number) for number in range(len(clusters))]
    return _located(context, places.ranked(found, context.settings.recency_halflife), "")


def _located(
    context: ToolContext, ranked: Sequence[Scored], message: str, more: int = 0, things: Sequence[Entity] = ()
) -> Located:
    """The best of what was found; more: how many places there are beside those ranked."""
    best = ranked[:BEST]
    used = {id_ for scored in best for id_ in (*scored.ids, scored.place.entity_id)}
    context.note_recall(used - {NO_ID})
    return Located(
        place=best[0].place._replace(confidence=min(1.0, best[0].place.confidence)) if best else None,
        alternatives=tuple(scored.place for scored in best[1:]),
        best=best,
        more=len(ranked) - len(best) + more,
        message=message,
        things=things,
    )


def _fits(context: ToolContext, concept: str, vector: NDArray[np.float32] | None, least: float) -> dict[str, float]:
    """Labels of entities that the concept names, and how well; nothing is read while names are embedded."""
    with context.db.read() as conn:
        said = {label: naming.fit_of_words(concept, label) for label in entities.labels(conn)}
        unsaid = [label for label, fit in said.items() if fit is None]
        # Of a name that the vocabulary lacks all labels are compared: those nearest are looked at more closely.
        compared = unsaid if concepts.things(concept) else said
        plain = naming.cosines(conn, context.searcher.model, vector, compared) if unsaid else {}
    cosines = naming.sharpened(context.embed_names, concept, plain)
    fits = {label: naming.fit_of_meaning(concept, label, cosines.get(label), least) for label in unsaid}
    return {label: fit for label, fit in {**said, **fits}.items() if fit}


def _things(context: ToolContext, conn: sqlite3.Connection, question: Question) -> Things:
    """Entities of the labels that name the concept and whose place is known."""
    kinds = tuple({int(Kind.ENTITY)} & set(question.resolved.kinds))
    fits = {text_id: question.labels[label] for label, text_id in texts.ids_of(conn, question.labels).items()}
    things = context.searcher.things(replace(question.resolved, kinds=kinds), fits)
    return things.as_of(conn, context.until(question.resolved)).placed()


def _read(
    conn: sqlite3.Connection, things: Things, spoken: NDArray[np.int64], halflife: float, until: int | None
) -> tuple[list[Entity], dict[int, float]]:
    """The entities whose places may be among the best, BEST at most, and how well their labels fit.

    Args:
        spoken: when the places that texts speak of were last seen (ns). until: time (ns) up to which is told.
    """
    if not len(things):
        return [], {}
    newest = max(int(spoken.max(initial=0)), int(things.last_seen.max()))
    scores = places.scores(things.fits * things.confidence, things.last_seen, newest, halflife)
    best = np.arange(len(scores))
    if len(scores) > BEST:  # few of many are put in order
        best = np.flatnonzero(scores >= np.partition(scores, -BEST)[-BEST])
    best = best[np.lexsort((things.ids[best], -things.last_seen[best], -scores[best]))[:BEST]]
    fits = dict(zip(things.ids[best].tolist(), things.fits[best].tolist(), strict=True))
    return as_of(conn, entities.get_many(conn, fits, history=LEFT), until), fits


def _more(conn: sqlite3.Connection, things: Things) -> int:
    """How many things beside the BEST have a place worth telling."""
    if len(things) <= BEST:
        return 0
    faded, once = things.confidence < FADED, things.sightings <= 1
    # What was seen once was never confirmed.
    doubted = int((faded & once).sum()) + entities.count_tentative(conn, things.ids[faded & ~once].tolist())
    return max(0, len(things) - BEST - doubted)


def _best(named: Sequence[Scored], clusters: Clusters, spoken: NDArray[np.int64], halflife: float) -> list[Scored]:
    """The BEST of the places of entities and of those that texts speak of; more of the latter are not made."""
    last_seen = clusters.last_seen[spoken]
    newest = max([scored.place.last_seen for scored in named] + [int(last_seen.max(initial=0))])
    scores = places.scores(clusters.confidence[spoken], last_seen, newest, halflife)
    best = spoken[np.lexsort((-last_seen, -scores))[:BEST]].tolist()
    return places.ranked([*named, *(_shown(clusters, number) for number in best)], halflife, newest)[:BEST]


def _shown(clusters: Clusters, number: int) -> Scored:
    """One of the places, its label as long as it is told."""
    found = clusters.told(number)
    return found._replace(place=found.place._replace(label=shortened(found.place.label, 60)))


def _places(entity: Entity, fit: float) -> list[Scored]:
    """The place of an entity and the earlier ones, each once; none when it is unknown."""
    scored = places.of_entity(entity, fit)
    if scored is None:
        return []
    less, here = HISTORY * scored.place.confidence, scored.place.position
    old = (place for place in entity.history if math.dist(place.position, here) > ELSEWHERE)
    earlier = (place._replace(confidence=less) for place in places.distinct(old, ELSEWHERE))
    return [scored, *(Scored(place, "earlier") for place in earlier)]


def _texts(context: ToolContext, conn: sqlite3.Connection, question: Question, known: Things) -> Evidence:
    """Evidence of observations and gists that speak of the concept; sightings of the entities at hand are no more."""
    kinds = tuple(kind for kind in question.resolved.kinds if kind in (int(Kind.OBSERVATION), int(Kind.GIST)))
    if not kinds:
        return Evidence.of_rows(told(conn, [], 0), np.empty(0))
    resolved = replace(question.resolved, kinds=kinds)
    relevance: dict[int, float] = {}
    for words in concepts.names(question.concept)[:NAMES]:
        seen = question.seen if words == question.concept else None
        found = context.searcher.words(words, HITS, resolved, least=ALL, seen=seen)
        hits = [hit for hit in found if (hit.lexical or 0.0) >= ALL]
        meant = _meant(conn, context.searcher.model, question, words, hits)
        relevance |= dict.fromkeys((id_ for hit in meant for id_ in hit.node_ids), SPOKEN)
    for hit, score in _alike(context, conn, question, resolved):
        relevance |= {id_: max(score, relevance.get(id_, 0.0)) for id_ in hit.node_ids}
    sightings = edges.pairs(conn, relevance, EdgeType.OBSERVED_IN) if len(known) else []
    if sightings:
        ids = {entity for entity, _ in sightings}.intersection(known.ids.tolist())
        for id_ in {observation for entity, observation in sightings if entity in ids}:
            del relevance[id_]
    best = sorted(sorted(relevance, reverse=True), key=relevance.__getitem__, reverse=True)  # of equals the newest
    rows = told(conn, best, places.MOST, context.until(resolved))
    said = [(text, relevance[id_]) for text, id_ in zip(rows.texts, rows.ids, strict=True)]
    judged = {one: _judged(question, *one) for one in set(said)}
    return Evidence.of_rows(rows, np.array([judged[one] for one in said], dtype=np.float64))


def _meant(conn: sqlite3.Connection, model: Model | None, question: Question, words: str, hits: list[Hit]) -> list[Hit]:
    """Those of the texts with another name of the thing that mean the thing, as far as their cosine tells.

    A tree has a trunk, and a window may have shades: words of several meanings need as much as a text without them.
    """
    if words == question.concept or not hits:
        return hits
    several = words in concepts.HOMONYMS
    least = question.least.sentence if several else question.least.named
    if question.vector is None or model is None:
        return [] if several else hits
    ids, vectors = of_texts(conn, model.id, [hit.text_id for hit in hits])
    cosines = dict(zip(ids.tolist(), (vectors @ question.vector).tolist(), strict=True))
    return [hit for hit in hits if cosines.get(hit.text_id, -1.0 if several else 1.0) >= least]


def _alike(
    context: ToolContext, conn: sqlite3.Connection, question: Question, resolved: Resolved
) -> list[tuple[Hit, float]]:
    """Texts near enough to the concept, by meaning alone or with the words they share, and how relevant they are.

    A text is judged by whichever says more: the words of a question are evidence, those of a name are not expected.
    """
    if question.vector is None:
        return []
    least = question.least.sentence
    if concepts.things(question.concept) and not concepts.is_room(question.concept):
        least = question.least.strict
    said = context.searcher.said(question.concept, [])
    alike = _least_alike(said.weight, least)
    hits = context.searcher.meaning(question.vector, HITS, resolved, least=alike, seen=question.seen)
    text_ids = np.array([hit.text_id for hit in hits], dtype=np.int64)
    shares = said.query.shares(conn, text_ids) if said.query else np.zeros(len(hits))
    found = []
    for hit, share in zip(hits, shares.tolist(), strict=True):
        score = max(hit.similarity or 0.0, scoring.relevance(hit.similarity, share, said.weight))
        if score >= least:
            found.append((hit, score))
    return found


def _least_alike(weight: float, least: float) -> float:
    """Cosine under which a text is not relevant enough even where it has all words of the question, of that weight."""
    said = scoring.WORDS * scoring.relevance(None, 1.0, weight)
    alike = min(least, (least - said) / (1.0 - scoring.WORDS)) - ROUNDING
    return alike if alike > 0.0 else -1.0  # what is less alike than 0 counts as 0


def _judged(question: Question, text: str, relevance: float) -> float:
    """Relevance of a text; one of few words is a label and is judged as those of entities are."""
    if len(text.split(maxsplit=SHORT)) > SHORT:
        return relevance
    label = normalise_label(text)
    if len(label.split()) > SHORT:
        return relevance
    return naming.fit(question.concept, label, relevance, question.least.label)


def _elsewhere(spoken: Clusters, things: Things) -> NDArray[np.int64]:
    """Numbers of the places that texts speak of and that are not those of the entities at hand.

    As far as observers' places tell. Texts newer than the last sighting of a thing that is doubted tell of something
    that the thing does not.
    """
    from scipy.spatial.distance import cdist

    if not len(spoken):
        return np.empty(0, dtype=np.int64)
    things = things.where((things.confidence >= CONFIRMED) | (things.last_seen >= spoken.last_seen.min()))
    reach = SAME_PLACE + spoken.radii
    squares = cdist(spoken.positions[:, :2], things.positions, "sqeuclidean")
    # `np.nonzero` takes ten times as long.
    one, thing = np.divmod(np.flatnonzero(squares <= reach[:, None] ** 2), max(1, len(things)))
    same = spoken.evidence.maps[spoken.leads[one]] == things.maps[thing]
    same &= (things.confidence[thing] >= CONFIRMED) | (spoken.last_seen[one] <= things.last_seen[thing])
    told_of = np.zeros(len(spoken), dtype=bool)
    told_of[one[same]] = True
    return np.flatnonzero(~told_of)


def _text(context: ToolContext, asked: str, found: Located) -> str:
    """The answer in words."""
    about = f'"{shortened(asked, 80)}"'
    if not found.best:
        return f"It is not known where {about} is: nothing remembered is close enough to it."
    words = Wording(context.now_ns(), context.settings.time_zone)
    likeliest, *others = found.best
    is_here = "is missing, and was last here" if likeliest.state == "missing" else "is most likely here"
    head = f"{about} {is_here}:\n{words.place(likeliest.place, likeliest.state)}"
    if not others:
        return head
    lines = [words.place(scored.place, scored.state) for scored in others]
    more = f"({counted(found.more, 'more place')})" if found.more else ""
    return listed(f"{head}\nOther places:", lines, more)
