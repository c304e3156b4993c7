"""Which detection of a message is which known thing: costs, and one assignment for the whole message.

A cost is a squared Mahalanobis distance with small terms for label and track id; UNMATCHED is what a thing never seen
before costs, so a detection is matched exactly where that explains it better than a new thing does.
"""

from __future__ import annotations

import math
import unicodedata
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memory_node.graph import Pose, Position

UNMATCHED = 11.3
"""99 % of the chi-square distribution of three degrees: farther than that a sighting is of another thing."""
IMPOSSIBLE = 1e6
MEASURED_NOISE = 0.15
"""m: deviation of a measured position, whatever the range."""
RANGE_NOISE = 0.02
"""Deviation that each metre of range adds, m/m."""
PLACE_NOISE = 0.1
"""m: what a thing's remembered place may be off by beyond its own deviation: drift that registration missed."""
TRACKED_STEP = 0.5
"""m: deviation of what a tracked thing moves between two messages."""
TRACK_BONUS = 2.0
OTHER_WORD = 2.0
"""Cost of a label that is another word for the entity's."""
DETECTED = 0.9
"""How likely a look shows a thing that is there."""
DOUBTLESS, MOST_DOUBT = 0.5, 8.0
"""Cost that even the surest thing has, and is spared; and the most that doubt costs."""
NO_PLACE = 0.6 * UNMATCHED
"""Cost of a match that place has no say in."""


_OPPOSITES = """
left right; front back rear; upper lower middle; top bottom; inner outer; inside outside; north south east west;
first second third fourth fifth last; male female; man woman; boy girl; big large small little;
black white red green blue yellow orange brown grey gray purple pink
"""
OPPOSITES = tuple(frozenset(family.split()) for family in _OPPOSITES.split(";"))
"""Words of which a thing has one of a family for good; open and closed, full and empty are states, which change."""
_OPPOSED = frozenset(word for family in OPPOSITES for word in family)
_WALKERS = """
person human pedestrian people man woman child kid boy girl baby visitor worker nurse patient customer
dog cat puppy kitten animal pet robot
"""
WALKERS = frozenset(_WALKERS.split())
"""What is a step away from where it was, when it is seen again soon after."""
_SAME = {"large": "big", "little": "small", "gray": "grey"}
ARTICLES = ("a", "an", "the")


def normalise_label(label: str) -> str:
    """Return a class name as labels are compared: NFKC, lower case, blanks for hyphens and underscores, no article."""
    text = unicodedata.normalize("NFKC", label).casefold()
    words = text.replace("_", " ").replace("-", " ").split()
    while len(words) > 1 and words[0] in ARTICLES:
        del words[0]
    return " ".join(words)


def walks(label: str) -> bool:
    """Tell whether a normalised label names what moves by itself: "person", "delivery man", "dog"."""
    return label[label.rfind(" ") + 1 :] in WALKERS


def may_be_one(label: str, other: str) -> bool:
    """Tell whether two normalised labels can name one thing, however near they are in meaning.

    They can't when their numbers or single letters differ ("chair 1", "chair 2"), or when one says of its thing what
    the other denies of its own ("left door", "right door").
    """
    ids, others = ({word for word in name.split() if is_id(word)} for name in (label, other))
    return ids == others and not differ(label, other)


def differ(name: str, other: str) -> bool:
    """Tell whether two normalised names say different numbers, sides, colours and the like of their things."""
    (ids, words), (other_ids, others) = _telling(name), _telling(other)
    if ids and other_ids and ids != other_ids:
        return True
    if not words or not others:
        return False
    return any(words & family and others & family and words & family != others & family for family in OPPOSITES)


@lru_cache(maxsize=4096)
def _telling(name: str) -> tuple[frozenset[str], frozenset[str]]:
    """The words of a name that tell its thing from others of the kind: ids, and those that have an opposite."""
    words = {_SAME.get(word, word) for word in name.split()}
    return frozenset(filter(is_id, words)), frozenset(words & _OPPOSED)


def is_id(word: str) -> bool:
    """Tell whether a word of a name tells one thing of a kind from another: "2", "b", "r2d2"."""
    return len(word) == 1 or any(character.isdigit() for character in word)


def usable(position: Position | None) -> Position | None:
    """Return a position of three finite numbers as floats, else None."""
    if position is None or len(position) != 3 or not all(math.isfinite(v) and abs(v) < 1e9 for v in position):
        return None
    return float(position[0]), float(position[1]), float(position[2])


def measured_variance(position: Position, pose: Pose | None) -> float:
    """Return the variance (m²) of a measured position: sensor, range and the robot's own pose."""
    variance = MEASURED_NOISE**2
    if pose is not None:
        variance += (RANGE_NOISE * math.dist(position[:2], pose.position[:2])) ** 2 + (pose.stddev or 0.0) ** 2
    return variance


def measured_costs(
    points: NDArray[np.float64],
    variances: NDArray[np.float64],
    places: NDArray[np.float64],
    deviations: NDArray[np.float64],
    gate: float,
) -> NDArray[np.float64]:
    """Return costs (D, E) of measured positions (D, 3) for known places (E, 3); IMPOSSIBLE beyond gate (m).

    Args:
        variances: (D,) m². deviations: (E,) m.
    """
    squared = ((points[:, None, :] - places[None, :, :]) ** 2).sum(axis=2)
    total = variances[:, None] + deviations[None, :] ** 2 + PLACE_NOISE**2
    return np.where(squared <= gate**2, squared / total, IMPOSSIBLE)


def tracked_costs(
    points: NDArray[np.float64], places: NDArray[np.float64], gate: float
) -> NDArray[np.float64]:
    """Return costs (D, E) of what may have moved a step since it was last seen: its track id agrees, or it walks."""
    squared = ((points[:, None, :] - places[None, :, :]) ** 2).sum(axis=2)
    return np.where(squared <= gate**2, squared / TRACKED_STEP**2 - TRACK_BONUS, IMPOSSIBLE)


def observer_costs(
    points: NDArray[np.float64], places: NDArray[np.float64], gate: float
) -> NDArray[np.float64]:
    """Return costs (D, E) when either is only the observer's place: horizontal distance in parts of gate (m)."""
    squared = ((points[:, None, :2] - places[None, :, :2]) ** 2).sum(axis=2)
    return np.where(squared <= gate**2, UNMATCHED * squared / gate**2, IMPOSSIBLE)


def doubt_costs(confidence: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what a match with things of that confidence (E,) costs, 0 for one that is there beyond doubt.

    A thing that is there is rarely passed over by the look that shows its neighbour, one that is gone always: so it is
    the odds that count.
    """
    shown = DETECTED * confidence
    cost = 2.0 * np.log(DETECTED / (1.0 - DETECTED)) - 2.0 * np.log(np.maximum(shown, 1e-6) / (1.0 - shown))
    return np.asarray(np.clip(cost - DOUBTLESS, 0.0, MOST_DOUBT))


def assign(costs: NDArray[np.float64], alone: float = UNMATCHED) -> list[int]:
    """Return for each row the column it is matched with, no column twice, or -1; the sum of costs is the least.

    Args:
        costs: (rows, columns); IMPOSSIBLE is never chosen.
        alone: cost of a row without a column.
    """
    from scipy.optimize import linear_sum_assignment

    rows, columns = costs.shape
    unmatched = np.full((rows, rows), IMPOSSIBLE)
    np.fill_diagonal(unmatched, alone)
    _, chosen = linear_sum_assignment(np.hstack([np.minimum(costs, IMPOSSIBLE), unmatched]))
    return [int(column) if column < columns else -1 for column in chosen]
