"""Evidence of where something is, gathered into real places: clusters in space, scored, never averaged with others."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from memory_node.graph import NO_ID, Place, Position, PositionSource

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from memory_node.graph import Entity

REACH = 4.0
"""m: mean distance at which two groups of evidence are one place."""
MOST = 256
"""Pieces of evidence that are clustered, the most relevant first; their distances are compared pair by pair."""
SPREAD = 0.5
"""m: deviation of where evidence of one spot lies; what is farther apart hardly supports each other."""
SHARPNESS = 0.1
"""Relevance by which evidence is e times weightier in where a place is; weak matches are many, and lie anywhere."""
SHIFTS = 10
"""Steps to where evidence is densest; each halves the way, or better."""
_RECENT = 0.3
"""Share of a place's score that recency has."""


@dataclass(frozen=True)
class Evidence:
    """A row that tells of a place.

    Attributes:
        relevance: 0..1. first_seen, last_seen: ns. support: observations behind it. id: of the row.
        radius: m within which what it tells of lies.
    """

    position: Position
    source: PositionSource
    relevance: float
    first_seen: int
    last_seen: int
    support: int = 1
    frame: str = ""
    map_id: str = ""
    label: str = ""
    id: int = NO_ID
    radius: float = 0.0


@dataclass(frozen=True)
class Scored:
    """A place, how relevant what tells of it is, and its score; both 0..1.

    Attributes:
        ids: of the rows that tell of it; none for an entity's place.
        state: of the entity there: "missing", "tentative", "earlier" (it has moved since), or "".
    """

    place: Place
    relevance: float
    score: float = 0.0
    state: str = ""
    ids: tuple[int, ...] = ()


def of_entity(entity: Entity, relevance: float) -> Scored | None:
    """Return the place of an entity, None when that is unknown."""
    if entity.position is None:
        return None
    since = min(entity.last_seen, entity.history[0].last_seen) if entity.history else entity.first_seen
    place = Place(
        position=entity.position, frame=entity.frame, position_source=entity.position_source,
        radius=entity.position_stddev, confidence=relevance * entity.confidence, support=entity.sightings_here,
        first_seen=since, last_seen=entity.last_seen, entity_id=entity.id, label=entity.name,
        map_id=entity.map_id,
    )
    return Scored(place, relevance, state=state_of(entity))


def distinct(places: Iterable[Place], apart: float) -> list[Place]:
    """Return places, given the newest first, each once: with the support of all within apart (m) of it."""
    kept: list[Place] = []
    for place in places:
        same = next((i for i, one in enumerate(kept) if math.dist(one.position, place.position) <= apart), None)
        if same is None:
            kept.append(place)
            continue
        one = kept[same]
        first = min(one.first_seen, place.first_seen)
        kept[same] = replace(one, support=one.support + place.support, first_seen=first)
    return kept


def state_of(entity: Entity) -> str:
    """Return what holds of an entity's present place: "missing", "tentative", or "" when it is there."""
    return "missing" if entity.missing else "tentative" if entity.tentative else ""


def clusters(evidence: Sequence[Evidence]) -> list[Scored]:
    """Return the places that evidence lies at, those of each map and frame by themselves.

    A place's position is the best supported spot in its cluster, and all its evidence lies within its radius.
    Confidence is the relevance of the best piece, less when few stand behind it.
    """
    best = sorted(evidence, key=lambda piece: (-piece.relevance, -piece.last_seen))[:MOST]
    groups: dict[tuple[str, str], list[Evidence]] = {}
    for piece in best:
        groups.setdefault((piece.map_id, piece.frame), []).append(piece)
    return [scored for group in groups.values() for scored in _places(group)]


def ranked(places: Sequence[Scored], halflife: float) -> list[Scored]:
    """Return places by score, the best first: relevance, confidence, and how recently something was seen there.

    Args:
        halflife: s after which recency, against the newest of the places, is a half.
    """
    if not places:
        return []
    newest = max(scored.place.last_seen for scored in places)
    rated = [
        replace(scored, score=float(scores(scored.place.confidence, scored.place.last_seen, newest, halflife)))
        for scored in places
    ]
    return sorted(rated, key=lambda scored: (-scored.score, -scored.place.last_seen, scored.place.entity_id))


def scores(confidence: ArrayLike, last_seen: ArrayLike, newest: int, halflife: float) -> NDArray[np.float64]:
    """Return the scores of places, 0..1, of their confidence and last_seen (ns); see `ranked`."""
    recency = 0.5 ** ((newest - np.asarray(last_seen)) / 1e9 / halflife)
    return np.asarray(np.asarray(confidence) * (1.0 - _RECENT + _RECENT * recency))


def _places(group: Sequence[Evidence]) -> list[Scored]:
    from scipy.spatial.distance import pdist, squareform

    points = np.array([piece.position for piece in group])
    distances = pdist(points)
    numbers = _numbers(distances) if len(group) > 1 else np.zeros(1, dtype=np.int64)
    spots = _spots(points, squareform(distances), group, numbers)
    apart = np.linalg.norm(points - spots[numbers], axis=1).clip([piece.radius for piece in group])
    radii = np.zeros(len(spots))
    np.maximum.at(radii, numbers, apart)
    members: list[list[Evidence]] = [[] for _ in spots]
    for number, piece in zip(numbers.tolist(), group, strict=True):
        members[number].append(piece)
    told = zip(members, spots.tolist(), radii.tolist(), strict=True)
    return [_gathered(pieces, (x, y, z), radius) for pieces, (x, y, z), radius in told]


def _numbers(distances: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the number of the cluster, from 0 on, that each point belongs to, of their pairwise distances."""
    from scipy.cluster.hierarchy import fcluster, linkage

    clusters = fcluster(linkage(distances, method="average"), t=REACH, criterion="distance")
    return np.asarray(clusters, dtype=np.int64) - 1


def _gathered(members: Sequence[Evidence], position: Position, radius: float) -> Scored:
    support = sum(piece.support for piece in members)
    relevance = max(piece.relevance for piece in members)
    place = Place(
        position=position, frame=members[0].frame, position_source=_source(members), radius=radius,
        confidence=relevance * support / (support + 1.0), support=support,
        first_seen=min(piece.first_seen for piece in members), last_seen=max(piece.last_seen for piece in members),
        entity_id=NO_ID, label=members[0].label, map_id=members[0].map_id,
    )
    return Scored(place, relevance, ids=tuple(piece.id for piece in members))


def _spots(
    points: NDArray[np.float64],
    distances: NDArray[np.float64],
    pieces: Sequence[Evidence],
    numbers: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Return where the evidence of each cluster, (C, 3), weighed by its relevance, is densest.

    A mean over all would lie between the good evidence and the middle of the weak: this is a mean shift from the best
    supported piece. Comaniciu and Meer, Mean Shift: A Robust Approach Toward Feature Space Analysis (2002).
    """
    count = int(numbers.max()) + 1
    relevance = np.array([piece.relevance for piece in pieces])
    best = np.zeros(count)
    np.maximum.at(best, numbers, relevance)
    weights = np.exp((relevance - best[numbers]) / SHARPNESS) * np.log1p([piece.support for piece in pieces])
    density = (_kernel(distances**2) * (numbers[:, None] == numbers)) @ weights
    spots: NDArray[np.float64] = np.empty((count, 3))
    rising = np.argsort(density, kind="stable")
    spots[numbers[rising]] = points[rising]  # the densest of each cluster is written last
    for _ in range(SHIFTS):
        pull = weights * _kernel(((points - spots[numbers]) ** 2).sum(axis=1))
        total = np.bincount(numbers, pull, count)
        spots = np.stack([np.bincount(numbers, pull * axis, count) / total for axis in points.T], axis=1)
    return spots


def _kernel(squares: NDArray[np.float64]) -> NDArray[np.float64]:
    """How much points at squared distances (m²) are one spot, 0..1."""
    return np.asarray(np.exp(squares * (-0.5 / SPREAD**2)))


def _source(members: Sequence[Evidence]) -> PositionSource:
    measured = all(piece.source is PositionSource.MEASURED for piece in members)
    return PositionSource.MEASURED if measured else PositionSource.OBSERVER
