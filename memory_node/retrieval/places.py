"""Evidence of where something is, gathered into real places: clusters in space, scored, never averaged with others."""

from __future__ import annotations

from collections.abc import Sequence
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
    """Something that tells of a place. relevance: 0..1; support: observations behind it; stamps in ns."""

    position: Position
    source: PositionSource
    relevance: float
    first_seen: int
    last_seen: int
    support: int = 1
    frame: str = ""
    map_id: str = ""
    label: str = ""


@dataclass(frozen=True)
class Scored:
    """A place, how relevant what tells of it is, and its score; both 0..1."""

    place: Place
    relevance: float
    score: float = 0.0


def of_entity(entity: Entity, relevance: float) -> Scored | None:
    """Return the place of an entity, None when that is unknown."""
    if entity.position is None:
        return None
    here = max(1, entity.sightings - sum(old.support for old in entity.history))
    since = entity.history[0].last_seen if entity.history else entity.first_seen
    place = Place(
        position=entity.position, frame=entity.frame, position_source=entity.position_source,
        radius=entity.position_stddev, confidence=relevance * entity.confidence, support=here,
        first_seen=since, last_seen=entity.last_seen, entity_id=entity.id, label=entity.name,
        map_id=entity.map_id,
    )
    return Scored(place, relevance)


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
    points = np.array([piece.position for piece in group])
    numbers = _numbers(points)
    spots = _spots(points, group, numbers)
    found = []
    for number, spot in enumerate(spots):
        inside = np.flatnonzero(numbers == number).tolist()
        radius = float(np.linalg.norm(points[inside] - spot, axis=1).max())
        x, y, z = spot.tolist()
        found.append(_gathered([group[i] for i in inside], (x, y, z), radius))
    return found


def _numbers(points: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the number of the cluster, from 0 on, that each of points (N, 3) belongs to."""
    from scipy.cluster.hierarchy import fcluster, linkage

    if len(points) == 1:
        return np.zeros(1, dtype=np.int64)
    return np.asarray(fcluster(linkage(points, method="average"), t=REACH, criterion="distance"), dtype=np.int64) - 1


def _gathered(members: Sequence[Evidence], position: Position, radius: float) -> Scored:
    support = sum(piece.support for piece in members)
    relevance = max(piece.relevance for piece in members)
    place = Place(
        position=position, frame=members[0].frame, position_source=_source(members), radius=radius,
        confidence=relevance * support / (support + 1.0), support=support,
        first_seen=min(piece.first_seen for piece in members), last_seen=max(piece.last_seen for piece in members),
        entity_id=NO_ID, label=members[0].label, map_id=members[0].map_id,
    )
    return Scored(place, relevance)


def _spots(
    points: NDArray[np.float64], pieces: Sequence[Evidence], numbers: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return where the evidence of each cluster, (C, 3), weighed by its relevance, is densest.

    A mean over all would lie between the good evidence and the middle of the weak: this is a mean shift from the best
    supported piece. Comaniciu and Meer, Mean Shift: A Robust Approach Toward Feature Space Analysis (2002).
    """
    relevance = np.array([piece.relevance for piece in pieces])
    inside = numbers == np.arange(numbers.max() + 1)[:, None]
    best = np.where(inside, relevance, 0.0).max(axis=1)[numbers]
    weights = np.exp((relevance - best) / SHARPNESS) * np.log1p([piece.support for piece in pieces])
    density = (_kernel(points, points) * (numbers[:, None] == numbers)) @ weights
    spots: NDArray[np.float64] = points[np.where(inside, density, -1.0).argmax(axis=1)]
    for _ in range(SHIFTS):
        pull = _kernel(spots, points) * inside * weights
        spots = pull @ points / pull.sum(axis=1, keepdims=True)
    return spots


def _kernel(one: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
    """How much points (M, 3) and (N, 3) are one spot, (M, N)."""
    apart = ((one[:, None, :] - other[None, :, :]) ** 2).sum(axis=2)
    return np.asarray(np.exp(-0.5 * apart / SPREAD**2))


def _source(members: Sequence[Evidence]) -> PositionSource:
    measured = all(piece.source is PositionSource.MEASURED for piece in members)
    return PositionSource.MEASURED if measured else PositionSource.OBSERVER
