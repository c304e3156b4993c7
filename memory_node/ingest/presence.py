"""How one sighting, or one look that missed, changes what is believed of a thing: whether it is there, and where.

Belief is a probability with odds that each sighting multiplies and each miss divides (a binary Bayes filter with
constant likelihoods, Thrun, Burgard and Fox, Probabilistic Robotics, ch. 4.2).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memory_node.graph import PositionSource
from memory_node.ingest.association import PLACE_NOISE, UNMATCHED, measured_variance, normalise_label, usable, walks
from memory_node.storage.entities import EntityState

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memory_node.graph import Look, Position

SEEN_ODDS = 30.0
"""A sighting of full score is this much likelier where the thing is than as a false one of that class just there."""
MISSED_ODDS = 0.25
"""A look that should show a thing and does not is this much less likely when it is there."""
UNSURE_ODDS = 0.5
"""The same for a look that shows the place not for certain."""
MOST_ODDS = 32.0
"""Belief is capped, so that three misses in a row are enough to doubt what was seen a thousand times."""
LEAST_ODDS = 0.02
CONFIRMED = 0.75
"""Belief from which a thing seen twice is no longer tentative."""
MISSING = 0.5
"""Belief under which a confirmed thing is missing."""
GONE = 0.05
"""Belief under which a thing is gone beyond doubt: two more misses than make it missing."""
FLOOR = 0.05
"""m: no running mean makes a measured place more certain than the map is."""
OBSERVER_FLOOR = 1.0
"""m: the same for a thing that is known only by where it was seen from."""


@dataclass(frozen=True)
class Sighting:
    """A detection made ready for association; variance in m²."""

    label: str
    score: float
    position: Position | None
    source: PositionSource
    variance: float
    track_id: str
    observation_id: int
    entity_type: str = ""


def sightings(look: Look, observer_radius: float, types: Sequence[str] = ()) -> list[Sighting]:
    """Return what a look can say about things: detections with a label and a score that is a number.

    Args:
        observer_radius: m around the observer in which a thing of unknown position may be.
        types: type of each thing; without them a thing's type is its label.
    """
    found = []
    kinds = types or [""] * len(look.detections)
    for detection, id_, kind in zip(look.detections, look.observation_ids, kinds, strict=True):
        label = normalise_label(detection.label)
        if not label or not math.isfinite(detection.confidence):
            continue
        place, source, variance = usable(detection.position), PositionSource.MEASURED, 0.0
        if place is not None:
            variance = measured_variance(place, look.pose)
        elif look.pose is not None and (place := usable(look.pose.position)) is not None:
            source, variance = PositionSource.OBSERVER, (observer_radius / 2.0) ** 2
        else:
            source = PositionSource.NONE
        score = min(1.0, max(0.0, detection.confidence))
        track_id, kind = detection.track_id.strip(), normalise_label(kind) or label
        found.append(Sighting(label, score, place, source, variance, track_id, id_, kind))
    return found


def born(id_: int, sighting: Sighting, look: tuple[int, int], offset: NDArray[np.float64]) -> EntityState:
    """Return the entity of a first sighting; look and offset as `see` takes them."""
    state = EntityState(
        id=id_, label=sighting.label, position=None, source=PositionSource.NONE, weight=0.0, stddev=0.0,
        first_seen=look[1], last_seen=look[1], sightings=0, confidence=0.0, entity_type=sighting.entity_type,
        session_id=look[0],
    )  # fmt: skip
    see(state, sighting, look, offset)
    return state


def see(state: EntityState, sighting: Sighting, look: tuple[int, int], offset: NDArray[np.float64]) -> None:
    """Change an entity by one more sighting.

    Args:
        look: session and stamp. offset: what registration takes from measured positions, m.
    """
    if state.sightings == 0:
        state.confidence = 0.3 + 0.3 * sighting.score
    else:
        state.confidence = _updated(state.confidence, 1.0 + (SEEN_ODDS - 1.0) * sighting.score)
    state.sightings += 1
    state.first_seen = min(state.first_seen, look[1])
    state.session_id, state.last_seen = max(state.newest, look)
    state.missed, state.missing = 0, False
    if state.sightings >= 2 and state.confidence >= CONFIRMED:
        state.tentative = False
    if sighting.track_id:
        state.track_id, state.track_stamp = sighting.track_id, look[1]
    _place(state, sighting, offset)


def miss(state: EntityState, sure: bool = True) -> bool:
    """Change an entity by a look that should have shown it, for sure or perhaps; tell whether anything changed."""
    confidence = _updated(state.confidence, MISSED_ODDS if sure else UNSURE_ODDS)
    missing = not state.tentative and confidence < MISSING
    if confidence == state.confidence and missing == state.missing:
        return False
    state.confidence, state.missing = confidence, missing
    state.missed += 1
    return True


def is_ghost(state: EntityState) -> bool:
    """Tell whether it was never confirmed and is believed not to be there: what is seen of it now is something new."""
    return state.tentative and state.confidence <= GONE


def join(weights: tuple[float, float], places: tuple[Position, Position]) -> Position:
    """Return the weighted mean of two positions."""
    share = weights[1] / (weights[0] + weights[1])
    (ax, ay, az), (bx, by, bz) = places
    return ax + share * (bx - ax), ay + share * (by - ay), az + share * (bz - az)


def deviation(weight: float, source: PositionSource) -> float:
    """Return the deviation (m) of a place of that weight (1/m²)."""
    if source is PositionSource.NONE or weight <= 0.0:
        return 0.0
    return max(weight**-0.5, FLOOR if source is PositionSource.MEASURED else OBSERVER_FLOOR)


def _updated(confidence: float, ratio: float) -> float:
    odds = min(MOST_ODDS, max(LEAST_ODDS, confidence / max(1e-9, 1.0 - confidence)))
    odds = min(MOST_ODDS, max(LEAST_ODDS, odds * ratio))
    return odds / (1.0 + odds)


def _place(state: EntityState, sighting: Sighting, offset: NDArray[np.float64]) -> None:
    """Weigh in where it was seen; a measured place is never diluted by one that is only the observer's."""
    if sighting.position is None or (
        state.source is PositionSource.MEASURED and sighting.source is PositionSource.OBSERVER
    ):
        return
    place, weight = sighting.position, 1.0 / sighting.variance
    if sighting.source is PositionSource.MEASURED:
        place = (place[0] - float(offset[0]), place[1] - float(offset[1]), place[2] - float(offset[2]))
    if state.position is None or state.source is not sighting.source or _walked(state, place, sighting):
        state.position, state.weight, state.source = place, weight, sighting.source
    else:
        state.position = join((state.weight, weight), (state.position, place))
        state.weight += weight
    state.stddev = deviation(state.weight, state.source)


def _walked(state: EntityState, place: Position, sighting: Sighting) -> bool:
    """Tell whether a thing that its track id holds together, or that walks, has left the place it had."""
    assert state.position is not None
    if not (sighting.track_id or walks(sighting.label)) or sighting.source is not PositionSource.MEASURED:
        return False
    variance = sighting.variance + state.stddev**2 + PLACE_NOISE**2
    return math.dist(state.position, place) ** 2 > UNMATCHED * variance
