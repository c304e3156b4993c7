"""What a memory made of the world of entities_world.py, judged against the truth.

Things of a class look alike. Of two that change before the same pass nobody can tell which of them is now where, so a
change is judged twice: strictly, and under the best one-to-one exchange of things of a class that changed together.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import linear_sum_assignment

from benchmarks.entities_systems import System
from benchmarks.entities_world import CLASSES, PASSES, Thing, World

RIGHT = 1.0
"""m: a found place is right when a thing of the class asked for is this near to it; drift is half of that."""
AT_NEW, AT_OLD = 0.75, 0.75
"""m: how near a moved thing's place and history must be to where it is and was, drift included."""


@dataclass
class Truth:
    """What each sighting was of (-1: nothing), and in which pass it was made."""

    owner: dict[object, int] = field(default_factory=dict)
    tour: dict[object, int] = field(default_factory=dict)

    def add(self, ids: Iterable[object], owners: Iterable[int], tour: int) -> None:
        """Note the sightings of a message."""
        for id_, owner in zip(ids, owners, strict=True):
            self.owner[id_], self.tour[id_] = owner, tour

    def entities(self, grouped: dict[object, object], before: int = PASSES) -> dict[int, object]:
        """Return the entity that got most of each thing's sightings of the passes before one."""
        votes: dict[int, Counter[object]] = defaultdict(Counter)
        for id_, entity in grouped.items():
            if self.tour[id_] < before:
                votes[self.owner[id_]][entity] += 1
        return {thing: counter.most_common(1)[0][0] for thing, counter in votes.items()}


@dataclass
class Changes:
    """How many changes there were, and how many a memory told: strictly, exchangeably, and by the best guess."""

    asked: int = 0
    strict: int = 0
    exchanged: int = 0
    guessed: float = 0.0

    def add(self, told: np.ndarray, itself: Sequence[int]) -> None:
        """Take the changes of one class before one pass.

        Args:
            told: (changes asked for, things that changed) whether the change is told as one of that thing.
            itself: column of the thing that did change, for each row.
        """
        rows, columns = linear_sum_assignment(told, maximize=True)
        self.asked += len(told)
        self.exchanged += int(told[rows, columns].sum())
        self.strict += sum(bool(told[row, column]) for row, column in enumerate(itself))
        self.guessed += len(told) / told.shape[1]

    def share(self, count: float) -> float:
        """Return a count as a share of the changes."""
        return count / self.asked if self.asked else 0.0


def moved(system: System, world: World) -> Changes:
    """Whether an entity at each moved thing's new place says, by the newest of its history, where it came from."""
    changes, drift = Changes(), world.drift(0.5)
    for together in _together(world, lambda thing: thing.moved_at or thing.gone_at):
        came = [thing for thing in together if thing.moved_to is not None]
        known = system.moved(together[0].label)
        told = np.array([[_came(known, new, old, drift) for old in together] for new in came])
        if came:
            changes.add(told, [together.index(thing) for thing in came])
    return changes


def _came(
    known: Sequence[tuple[tuple[float, ...], Sequence[tuple[float, ...]]]], new: Thing, old: Thing, drift: np.ndarray
) -> bool:
    assert new.moved_to is not None
    here, before = np.asarray(new.moved_to) + drift, np.asarray(old.home) + 0.5 * drift
    return any(
        flat(place, here) <= AT_NEW and bool(history) and flat(history[0], before) <= AT_OLD
        for place, history in known
    )


def missing(system: System, world: World, truth: Truth, tour: int, changes: Changes) -> None:
    """Judge what vanished a pass ago, two passes having gone by without it: is it known to be missing?"""
    grouped = system.groups(truth.owner)
    ever, before = truth.entities(grouped), truth.entities(grouped, tour - 1)

    def is_missing(entities: dict[int, object], thing: Thing) -> bool:
        return thing.id in entities and system.is_missing(entities[thing.id])

    for together in _together(world, lambda thing: thing.moved_at or thing.gone_at, tour - 1):
        gone = [thing for thing in together if thing.gone_at is not None]
        if gone:
            exchanged = min(len(gone), sum(is_missing(before, thing) for thing in together))
            changes.asked += len(gone)
            changes.strict += sum(is_missing(ever, thing) for thing in gone)
            changes.exchanged += exchanged
            changes.guessed += len(gone) ** 2 / len(together)


def _together(world: World, when: Callable[[Thing], int | None], tour: int | None = None) -> list[list[Thing]]:
    """Return the things of a class that changed before the same pass."""
    found: dict[tuple[str, int], list[Thing]] = defaultdict(list)
    for thing in world.things:
        at = when(thing)
        if at is not None and tour in (None, at):
            found[thing.label, at].append(thing)
    return list(found.values())


def pairwise_f1(grouped: dict[object, object], truth: Truth) -> float:
    """F1 of "these two sightings are of one thing"; a false detection is a thing of its own."""
    owner = {id_: thing if thing >= 0 else ("false", id_) for id_, thing in truth.owner.items()}
    joint = Counter((grouped.get(id_, ("none", id_)), owner[id_]) for id_ in owner)
    right = _pairs(joint.values())
    found = _pairs(Counter(grouped.get(id_, ("none", id_)) for id_ in owner).values())
    true = _pairs(Counter(owner.values()).values())
    return 2.0 * right / (found + true) if found + true else 0.0


def _pairs(counts: Iterable[int]) -> int:
    return sum(n * (n - 1) // 2 for n in counts)


def locate_error(system: System, world: World) -> float:
    """Median over the classes of how far the first place given is from the nearest thing of the class, on the floor."""
    errors = []
    for label in CLASSES:
        there = [place for thing, place in world.present(PASSES - 1) if thing.label == label]
        if there:
            found = system.locate(label)
            errors.append(min(flat(found[0], place) for place in there) if found else math.inf)
    return float(np.median(errors))


def right(system: System, world: World, word: str, label: str) -> bool:
    """Whether the first place given for another word is where a thing of the class is."""
    found = system.locate(word)
    there = [place for thing, place in world.present(PASSES - 1) if thing.label == label]
    return bool(found) and any(flat(found[0], place) <= RIGHT for place in there)


def flat(a: Sequence[float] | np.ndarray, b: Sequence[float] | np.ndarray) -> float:
    """Return the horizontal distance of two positions, m."""
    return math.dist(tuple(a)[:2], tuple(b)[:2])
