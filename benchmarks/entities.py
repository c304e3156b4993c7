"""Entities and places, measured in a generated world: `python -m benchmarks.entities --json PATH`.

Ours and emem see the same detections, emem with the true label of each as its extractor's output. A figure that a
system has no notion of is 0. The world is in entities_world.py; seeds 1 to 5 are reported, others were used for tuning.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from benchmarks.entities_systems import Emem, Ours, System, load_embedder
from benchmarks.entities_world import ABSENT, CLASSES, PASSES, SECOND, SYNONYMS, Message, Thing, World
from memory_node.graph import Detection, Pose, Position

SEEDS = (1, 2, 3, 4, 5)
RIGHT = 1.0
"""m: a found place is right when a thing of the class asked for is this near to it; drift is half of that."""
AT_NEW, AT_OLD = 0.75, 0.75
"""m: how near a moved thing's place and history must be to where it is and was, drift included."""
MANY = 10_000
"""Entities there are when the cost of a message is measured."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run both systems over the seeds, print the means and write them as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS))
    parser.add_argument("--only", choices=("ours", "emem"))
    options = parser.parse_args(arguments)
    embedder = load_embedder()
    kinds: dict[str, type[System]] = {"ours": Ours, "emem": Emem}
    report: dict[str, object] = {}
    for name, kind in kinds.items():
        if options.only not in (None, name):
            continue
        if not kind.available():
            print(f"{name} is not installed", file=sys.stderr)
            continue
        runs = [_run(kind, embedder, seed) for seed in options.seeds]
        figures = {key: statistics.fmean(run[key] for run in runs) for key in runs[0]}
        figures["kitchens_ok"] = float(_kitchens(kind, embedder))
        figures["ms_per_message"] = _message_cost(kind, embedder)
        report[name] = {key: round(value, 4) for key, value in figures.items()}
        print(name, json.dumps(report[name], indent=2))
    if options.json is not None:
        options.json.write_text(json.dumps({**report, "seeds": options.seeds}, indent=2) + "\n", encoding="utf-8")
    return 0


def _run(kind: type[System], embedder: object, seed: int) -> dict[str, float]:
    world = World(seed)
    missing: list[bool] = []
    with tempfile.TemporaryDirectory() as folder, kind(Path(folder), embedder) as system:
        truth: dict[object, int] = {}
        tour = 0
        for message in world.messages():
            if message.tour != tour:
                system.end_pass()
                missing += _missing(system, world, truth, tour)
                tour = message.tour
            _record(system, message, truth)
        system.end_pass()
        missing += _missing(system, world, truth, tour)
        grouped = system.groups(truth)
        return {
            "count_error": abs(system.count() - len(world.things)) / len(world.things),
            "pairwise_f1": _pairwise_f1(grouped, truth),
            "moved_found": _share(_moved(system, thing, world) for thing in world.things if thing.moved_at),
            "missing_found": _share(missing),
            "locate_median_m": _locate_error(system, world),
            "absent_refused": _share(not system.locate(name) for name in ABSENT),
            "synonym_found": _share(_right(system, world, word, label) for word, label in SYNONYMS),
        }


def _record(system: System, message: Message, truth: dict[object, int]) -> None:
    for id_, thing in zip(system.record(message.detections, message.pose), message.truth, strict=True):
        truth[id_] = thing


def _share(answers: Iterable[bool]) -> float:
    given = list(answers)
    return sum(given) / len(given) if given else 0.0


def _missing(system: System, world: World, truth: dict[object, int], tour: int) -> list[bool]:
    """Whether each thing that vanished a pass ago is known to be missing, two passes having gone by without it."""
    gone = [thing for thing in world.things if thing.gone_at is not None and thing.gone_at == tour - 1]
    if not gone:
        return []
    votes: dict[int, Counter[object]] = defaultdict(Counter)
    for id_, group in system.groups(truth).items():
        votes[truth[id_]][group] += 1
    return [bool(votes[thing.id]) and system.is_missing(votes[thing.id].most_common(1)[0][0]) for thing in gone]


def _pairwise_f1(grouped: dict[object, object], truth: dict[object, int]) -> float:
    """F1 of "these two sightings are of one thing"; a false detection is a thing of its own."""
    owner = {id_: thing if thing >= 0 else ("false", id_) for id_, thing in truth.items()}
    joint = Counter((grouped.get(id_, ("none", id_)), owner[id_]) for id_ in truth)
    right = _pairs(joint.values())
    found = _pairs(Counter(grouped.get(id_, ("none", id_)) for id_ in truth).values())
    true = _pairs(Counter(owner.values()).values())
    return 2.0 * right / (found + true) if found + true else 0.0


def _pairs(counts: Iterable[int]) -> int:
    return sum(n * (n - 1) // 2 for n in counts)


def _moved(system: System, thing: Thing, world: World) -> bool:
    """Whether there is an entity at the thing's new place that says it moved there from the thing's old one."""
    assert thing.moved_to is not None
    drift = world.drift(0.5)
    return any(
        _flat(place, np.asarray(thing.moved_to) + drift) <= AT_NEW
        and any(_flat(old, np.asarray(thing.home) + 0.5 * drift) <= AT_OLD for old in history)
        for place, history in system.moved(thing.label)
    )


def _flat(a: Sequence[float] | np.ndarray, b: Sequence[float] | np.ndarray) -> float:
    return math.dist(tuple(a)[:2], tuple(b)[:2])


def _locate_error(system: System, world: World) -> float:
    """Median distance from each thing that is there to the nearest place given for its class, on the floor."""
    answers = {label: system.locate(label) for label in CLASSES}
    errors = [
        min((_flat(found, place) for found in answers[thing.label]), default=math.inf)
        for thing, place in world.present(PASSES - 1)
    ]
    return float(np.median(errors))


def _right(system: System, world: World, word: str, label: str) -> bool:
    """Whether the first place given for another word is where a thing of the class is."""
    found = system.locate(word)
    there = [place for thing, place in world.present(PASSES - 1) if thing.label == label]
    return bool(found) and any(_flat(found[0], place) <= RIGHT for place in there)


def _kitchens(kind: type[System], embedder: object) -> bool:
    """Whether two kitchens 40 m apart are both places, and neither is near the middle."""
    with tempfile.TemporaryDirectory() as folder, kind(Path(folder), embedder) as system:
        rng = np.random.default_rng(7)
        for number in range(20):
            x = 40.0 * (number % 2) + float(rng.normal(0.0, 1.0))
            system.say("a kitchen with a stove and a sink", (x, float(rng.normal(0.0, 1.0)), 0.0), number)
            system.say("a long hallway with doors", (20.0 + float(rng.normal(0.0, 3.0)), 0.0, 0.0), number)
        system.end_pass()
        places = system.locate("kitchen")
    both = all(any(_flat(place, (x, 0.0)) < 3.0 for place in places) for x in (0.0, 40.0))
    return both and not any(_flat(place, (20.0, 0.0)) < 5.0 for place in places)


def _message_cost(kind: type[System], embedder: object) -> float:
    """Median ms that a message of 20 things costs, until it is committed, with MANY entities known."""
    rng = np.random.default_rng(3)
    with tempfile.TemporaryDirectory() as folder, kind(Path(folder), embedder) as system:
        places = [(2.0 * (i % 100), 2.0 * (i // 100), 0.5) for i in range(MANY)]
        labels = [CLASSES[i % len(CLASSES)] for i in range(MANY)]
        system.know(labels, places)
        costs = []
        for number in range(60):
            first = int(rng.integers(0, MANY - 20))
            seen = tuple(Detection(labels[i], 0.9, _noisy(rng, places[i])) for i in range(first, first + 20))
            x, y, _ = places[first]
            began = time.perf_counter()
            system.record(seen, Pose((100_000 + number) * SECOND, (x, y - 1.0, 0.0), 0.8))
            system.commit()
            costs.append(1000.0 * (time.perf_counter() - began))
    return float(np.median(costs))


def _noisy(rng: np.random.Generator, place: Position) -> Position:
    x, y, z = np.asarray(place) + rng.normal(0.0, 0.1, 3)
    return float(x), float(y), float(z)


if __name__ == "__main__":
    sys.exit(main())
