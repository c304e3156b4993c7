"""Evidence of where something is, gathered into real places: clusters in space, scored, never averaged with others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from memory_node.graph import NO_ID, Place, Position, PositionSource

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
    return [_gathered(members) for group in groups.values() for members in _divided(group)]


def ranked(places: Sequence[Scored], halflife: float) -> list[Scored]:
    """Return places by score, the best first: relevance, confidence, and how recently something was seen there.

    Args:
        halflife: s after which recency, against the newest of the places, is a half.
    """
    if not places:
        return []
    newest = max(scored.place.last_seen for scored in places)
    rated = [replace(scored, score=_score(scored.place, newest, halflife)) for scored in places]
    return sorted(rated, key=lambda scored: (-scored.score, -scored.place.last_seen, scored.place.entity_id))


def _divided(group: list[Evidence]) -> list[list[Evidence]]:
    from scipy.cluster.hierarchy import fcluster, linkage

    if len(group) == 1:
        return [group]
    points = np.array([piece.position for piece in group])
    numbers = fcluster(linkage(points, method="average"), t=REACH, criterion="distance")
    return [[piece for piece, n in zip(group, numbers, strict=True) if n == number] for number in np.unique(numbers)]


def _gathered(members: list[Evidence]) -> Scored:
    points = np.array([piece.position for piece in members])
    x, y, z = _spot(points, members)
    support = sum(piece.support for piece in members)
    relevance = max(piece.relevance for piece in members)
    place = Place(
        position=(x, y, z), frame=members[0].frame, position_source=_source(members),
        radius=float(np.linalg.norm(points - (x, y, z), axis=1).max()),
        confidence=relevance * support / (support + 1.0), support=support,
        first_seen=min(piece.first_seen for piece in members), last_seen=max(piece.last_seen for piece in members),
        entity_id=NO_ID, label=members[0].label, map_id=members[0].map_id,
    )
    return Scored(place, relevance)


def _spot(points: NDArray[np.float64], members: Sequence[Evidence]) -> Position:
    """Return where evidence (N, 3), weighed by its relevance, is densest: a mean shift from the best supported piece.

    A mean over all would lie between the good evidence and the middle of the weak. Comaniciu and Meer, Mean Shift: A
    Robust Approach Toward Feature Space Analysis (2002).
    """
    relevance = np.array([piece.relevance for piece in members])
    weights = np.exp((relevance - relevance.max()) / SHARPNESS) * np.log1p([piece.support for piece in members])
    apart = np.linalg.norm(points[:, None, :] - points[None, :, :], axis=2)
    spot = points[(_kernel(apart) @ weights).argmax()]
    for _ in range(SHIFTS):
        spot = np.average(points, axis=0, weights=weights * _kernel(np.linalg.norm(points - spot, axis=1)))
    x, y, z = spot
    return float(x), float(y), float(z)


def _kernel(distance: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.exp(-0.5 * (distance / SPREAD) ** 2))


def _source(members: list[Evidence]) -> PositionSource:
    measured = all(piece.source is PositionSource.MEASURED for piece in members)
    return PositionSource.MEASURED if measured else PositionSource.OBSERVER


def _score(place: Place, newest: int, halflife: float) -> float:
    recency = 0.5 ** ((newest - place.last_seen) / 1e9 / halflife)
    return place.confidence * (1.0 - _RECENT + _RECENT * recency)
