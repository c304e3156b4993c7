"""Evidence of where something is, gathered into real places: clusters in space, scored, never averaged with others."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from memory_node.graph import NO_ID, Place, PositionSource

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from memory_node.graph import Entity
    from memory_node.storage.told import Told

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
_BEYOND = 1e12
"""m: farther apart than what has coordinates is."""


@dataclass(frozen=True)
class Evidence:
    """Rows that tell of places, the most relevant first, of equals the latest seen; one a place of every array.

    Attributes:
        rows: what they tell. at: (N,) which of the rows each is.
        positions: (N, 3) m. relevance: 0..1. first_seen, last_seen: ns. support: observations behind it.
        radii: m within which what it tells of lies. maps: ids.
    """

    rows: Told
    at: NDArray[np.int64]
    positions: NDArray[np.float64]
    relevance: NDArray[np.float64]
    first_seen: NDArray[np.int64]
    last_seen: NDArray[np.int64]
    support: NDArray[np.int64]
    radii: NDArray[np.float64]
    maps: NDArray[np.int64]

    @classmethod
    def of_rows(cls, rows: Told, relevance: NDArray[np.float64]) -> Evidence:
        """Those rows that are of some relevance (N,), which is less where they are doubted; MOST at most."""
        figures = np.array((rows.x, rows.y, rows.z, rows.radii, rows.confidence), dtype=np.float64)
        counts = np.array((rows.first_seen, rows.last_seen, rows.repeats, rows.maps), dtype=np.int64)
        believed = relevance * figures[4]
        at = np.lexsort((-counts[1], -believed))
        at = at[relevance[at] > 0.0][:MOST]
        figures, (first_seen, last_seen, support, maps) = figures[:, at], counts[:, at]
        return cls(rows, at, figures[:3].T, believed[at], first_seen, last_seen, support, figures[3], maps)

    def __len__(self) -> int:
        return len(self.at)


class Scored(NamedTuple):
    """A place among others that are ranked.

    Attributes:
        state: of the entity there: "missing", "tentative", "earlier" (it has moved since), or "".
        ids: of the rows that tell of it; none for an entity's place.
    """

    place: Place
    state: str = ""
    ids: tuple[int, ...] = ()


@dataclass(frozen=True)
class Clusters:
    """Places that evidence lies at, one a place of every array; few are ever told, so each is made when it is.

    Attributes:
        evidence: the most relevant first. numbers: (N,) which place each piece of it tells of. leads: the first piece.
        positions: (C, 3) m. radii: m. support: observations. first_seen, last_seen: ns.
    """

    evidence: Evidence
    numbers: NDArray[np.int64]
    leads: NDArray[np.int64]
    positions: NDArray[np.float64]
    radii: NDArray[np.float64]
    support: NDArray[np.int64]
    first_seen: NDArray[np.int64]
    last_seen: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.leads)

    @cached_property
    def confidence(self) -> NDArray[np.float64]:
        """Relevance of the best piece, less when few stand behind it; 0..1."""
        return np.asarray(self.evidence.relevance[self.leads] * self.support / (self.support + 1.0))

    def told(self, number: int) -> Scored:
        """One of the places; its label is that of the best piece."""
        rows, at = self.evidence.rows, self.evidence.at
        lead, members = at[self.leads[number]], at[self.numbers == number].tolist()
        measured = all(rows.sources[member] == PositionSource.MEASURED for member in members)
        x, y, z = self.positions[number].tolist()
        place = Place(
            position=(x, y, z), frame=rows.frames[lead],
            position_source=PositionSource.MEASURED if measured else PositionSource.OBSERVER,
            radius=float(self.radii[number]), confidence=float(self.confidence[number]),
            support=int(self.support[number]), first_seen=int(self.first_seen[number]),
            last_seen=int(self.last_seen[number]), entity_id=NO_ID, label=rows.texts[lead],
            map_id=rows.map_names[lead],
        )  # fmt: skip
        return Scored(place, ids=tuple(rows.ids[member] for member in members))


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
    return Scored(place, state_of(entity))


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
        kept[same] = one._replace(support=one.support + place.support, first_seen=first)
    return kept


def state_of(entity: Entity) -> str:
    """Return what holds of an entity's present place: "missing", "tentative", or "" when it is there."""
    return "missing" if entity.missing else "tentative" if entity.tentative else ""


def clusters(evidence: Evidence) -> Clusters:
    """Return the places that evidence lies at, those of each map and frame by themselves.

    A place's position is the best supported spot in its cluster, and all its evidence lies within its radius.
    """
    distances = _distances(evidence)
    leads, numbers = _numbered(distances)
    spots = _spots(evidence, distances, numbers)
    apart = np.linalg.norm(evidence.positions - spots[numbers], axis=1)
    radii, first, last = np.zeros(len(leads)), evidence.first_seen[leads], evidence.last_seen[leads]
    np.maximum.at(radii, numbers, np.maximum(apart, evidence.radii))
    np.minimum.at(first, numbers, evidence.first_seen)
    np.maximum.at(last, numbers, evidence.last_seen)
    support = np.bincount(numbers, evidence.support, len(leads)).astype(np.int64)
    return Clusters(evidence, numbers, leads, spots, radii, support, first, last)


def ranked(places: Sequence[Scored], halflife: float, newest: int = 0) -> list[Scored]:
    """Return places by score, the best first: relevance, confidence, and how recently something was seen there.

    Args:
        halflife: s after which recency, against the newest of the places, is a half.
        newest: ns, of places that are not among these.
    """
    if not places:
        return []
    told = [scored.place for scored in places]
    last_seen = [place.last_seen for place in told]
    rated = scores([place.confidence for place in told], last_seen, max(newest, *last_seen), halflife).tolist()
    order = sorted(range(len(told)), key=lambda at: (-rated[at], -last_seen[at], told[at].entity_id))
    return [places[at] for at in order]


def scores(confidence: ArrayLike, last_seen: ArrayLike, newest: int, halflife: float) -> NDArray[np.float64]:
    """Return the scores of places, 0..1, of their confidence and last_seen (ns); see `ranked`."""
    recency = 0.5 ** ((newest - np.asarray(last_seen)) / 1e9 / halflife)
    return np.asarray(np.asarray(confidence) * (1.0 - _RECENT + _RECENT * recency))


def _distances(evidence: Evidence) -> NDArray[np.float64]:
    """Distances (N, N) in m; what is of two maps or frames is as far apart as nothing is."""
    from scipy.spatial.distance import cdist

    distances: NDArray[np.float64] = cdist(evidence.positions, evidence.positions)
    keys = list(zip(evidence.rows.maps, evidence.rows.frames, strict=True))
    spaces = {key: number for number, key in enumerate(set(keys))}
    if len(spaces) > 1:
        space = np.array([spaces[key] for key in keys])[evidence.at]
        distances[space[:, None] != space] = _BEYOND
    return distances


def _numbered(distances: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first point of each cluster (C,), and the number of the cluster that each point belongs to (N,)."""
    points = np.arange(len(distances))
    if not len(points):
        return points, points
    near = distances <= REACH
    firsts = near.argmax(axis=1)
    # What is near to each other and to nothing else is a cluster, whatever the others are; that is most often all.
    alike = (near == near[firsts]).all(axis=1)
    closed = alike & (np.bincount(firsts[alike], minlength=len(near))[firsts] == np.count_nonzero(near, axis=1))
    crowd = np.flatnonzero(~closed)
    if len(crowd):
        from scipy.cluster.hierarchy import linkage

        groups = {number: [point] for number, point in enumerate(crowd.tolist())}
        pairs = distances[crowd][:, crowd][~np.tri(len(crowd), dtype=bool)]
        for number, (one, other, apart, _) in enumerate(linkage(pairs, method="average").tolist(), len(crowd)):
            if apart > REACH:
                break
            groups[number] = groups.pop(int(one)) + groups.pop(int(other))
        members = [point for group in groups.values() for point in group]
        firsts[members] = [min(group) for group in groups.values() for _ in group]
    leads = firsts == points
    return np.flatnonzero(leads), (np.cumsum(leads) - 1)[firsts]


def _spots(
    evidence: Evidence, distances: NDArray[np.float64], numbers: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return where the evidence of each cluster, (C, 3), weighed by its relevance, is densest.

    A mean over all would lie between the good evidence and the middle of the weak: this is a mean shift from the best
    supported piece. Comaniciu and Meer, Mean Shift: A Robust Approach Toward Feature Space Analysis (2002).
    """
    points, count = evidence.positions, int(numbers.max(initial=-1)) + 1
    best = np.zeros(count)
    np.maximum.at(best, numbers, evidence.relevance)
    weights = np.exp((evidence.relevance - best[numbers]) / SHARPNESS) * np.log1p(evidence.support)
    one, other = np.divmod(np.flatnonzero(numbers[:, None] == numbers), max(1, len(points)))
    density = np.bincount(one, _kernel(distances[one, other] ** 2) * weights[other], len(points))
    spots: NDArray[np.float64] = np.empty((count, 3))
    rising = np.argsort(density, kind="stable")
    spots[numbers[rising]] = points[rising]  # the densest of each cluster is written last
    bins = (4 * numbers[:, None] + np.arange(4)).ravel()  # of each point: x, y, z and its weight
    weighed = np.column_stack([points, np.ones(len(points))])
    for _ in range(SHIFTS):
        pull = weights * _kernel(((points - spots[numbers]) ** 2).sum(axis=1))
        sums = np.bincount(bins, (pull[:, None] * weighed).ravel(), 4 * count).reshape(count, 4)
        before, spots = spots, sums[:, :3] / sums[:, 3:]
        if (spots == before).all():
            break
    return spots


def _kernel(squares: NDArray[np.float64]) -> NDArray[np.float64]:
    """How much points at squared distances (m²) are one spot, 0..1."""
    return np.asarray(np.exp(squares * (-0.5 / SPREAD**2)))
