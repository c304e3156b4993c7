"""Entities and places, measured in a generated world: `python -m benchmarks.entities --json PATH`.

Ours and emem see the same detections, emem with the true label of each as its extractor's output. A figure that a
system has no notion of is 0. The world is in entities_world.py; seeds 1 to 5 are reported, others were used for tuning.

`moved_found` and `missing_found` allow things of a class that changed before the same pass to be taken for each other,
`_strict` does not, and `_by_chance` is what guessing which is which reaches; see entities_judge.py. `_unseen` is of
names that the vocabulary lacks, in naming_unseen.py.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from benchmarks import entities_judge as judge
from benchmarks import naming, naming_unseen
from benchmarks.entities_systems import Cached, Emem, Ours, System, load_embedder
from benchmarks.entities_world import ABSENT, CLASSES, SECOND, SYNONYMS, World
from memory_node.graph import Detection, Pose, Position

SEEDS = (1, 2, 3, 4, 5)
MANY = 10_000
"""Entities there are when the cost of a message is measured."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run both systems over the seeds, print the means and write them as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS))
    parser.add_argument("--only", choices=("ours", "emem"))
    parser.add_argument("--world-only", action="store_true")
    options = parser.parse_args(arguments)
    # So that no text of the labels is still being embedded in the background while messages are timed.
    embedder = Cached(load_embedder())
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
        if options.world_only:
            print(name, json.dumps({key: round(value, 4) for key, value in figures.items()}, indent=2))
            continue
        if name == "ours":
            unseen = naming.measure(embedder, naming_unseen.PAIRS, naming_unseen.ABSENT)
            figures["synonym_found_unseen"], figures["absent_refused_unseen"] = unseen
        figures["kitchens_ok"] = float(_kitchens(kind, embedder))
        figures["ms_per_message"] = _message_cost(kind, embedder)
        report[name] = {key: round(value, 4) for key, value in figures.items()}
        print(name, json.dumps(report[name], indent=2))
    if options.json is not None:
        options.json.write_text(json.dumps({**report, "seeds": options.seeds}, indent=2) + "\n", encoding="utf-8")
    return 0


def _run(kind: type[System], embedder: Cached, seed: int) -> dict[str, float]:
    world = World(seed)
    gone = judge.Changes()
    with tempfile.TemporaryDirectory() as folder, kind(Path(folder), embedder) as system:
        truth = judge.Truth()
        tour = 0
        for message in world.messages():
            if message.tour != tour:
                system.end_pass()
                judge.missing(system, world, truth, tour, gone)
                tour = message.tour
            truth.add(system.record(message.detections, message.pose), message.truth, tour)
        system.end_pass()
        judge.missing(system, world, truth, tour, gone)
        moved = judge.moved(system, world)
        return {
            "count_error": abs(system.count() - len(world.things)) / len(world.things),
            "pairwise_f1": judge.pairwise_f1(system.groups(truth.owner), truth),
            "moved_found": moved.share(moved.exchanged),
            "moved_found_strict": moved.share(moved.strict),
            "moved_strict_by_chance": moved.share(moved.guessed),
            "missing_found": gone.share(gone.exchanged),
            "missing_found_strict": gone.share(gone.strict),
            "missing_strict_by_chance": gone.share(gone.guessed),
            "locate_median_m": judge.locate_error(system, world),
            "absent_refused": _share(not system.locate(name) for name in ABSENT),
            "synonym_found": _share(judge.right(system, world, word, label) for word, label in SYNONYMS),
        }


def _share(answers: Iterable[bool]) -> float:
    given = list(answers)
    return sum(given) / len(given) if given else 0.0


def _kitchens(kind: type[System], embedder: Cached) -> bool:
    """Whether two kitchens 40 m apart are both places, and neither is near the middle."""
    with tempfile.TemporaryDirectory() as folder, kind(Path(folder), embedder) as system:
        rng = np.random.default_rng(7)
        for number in range(20):
            x = 40.0 * (number % 2) + float(rng.normal(0.0, 1.0))
            system.say("a kitchen with a stove and a sink", (x, float(rng.normal(0.0, 1.0)), 0.0), number)
            system.say("a long hallway with doors", (20.0 + float(rng.normal(0.0, 3.0)), 0.0, 0.0), number)
        system.end_pass()
        places = system.locate("kitchen")
    both = all(any(judge.flat(place, (x, 0.0)) < 3.0 for place in places) for x in (0.0, 40.0))
    return both and not any(judge.flat(place, (20.0, 0.0)) < 5.0 for place in places)


def _message_cost(kind: type[System], embedder: Cached) -> float:
    """Median ms that a message of 20 things of one view costs, until it is committed, with MANY entities known.

    They are those nearest to a point 2.5 m ahead, 0.7 m apart, several of a class.
    """
    rng = np.random.default_rng(3)
    with tempfile.TemporaryDirectory() as folder, kind(Path(folder), embedder) as system:
        places = [(0.7 * (i % 100), 0.7 * (i // 100), 0.5) for i in range(MANY)]
        labels = [CLASSES[i % len(CLASSES)] for i in range(MANY)]
        system.know(labels, places)
        flat = np.asarray(places)[:, :2]
        costs = []
        for number in range(60):
            here = rng.uniform(5.0, 60.0, 2)
            ahead = here + np.array([2.5, 0.0])
            nearest = np.hypot(*(flat - ahead).T).argsort()[:20].tolist()
            seen = tuple(Detection(labels[i], 0.9, _noisy(rng, places[i])) for i in nearest)
            pose = Pose((100_000 + number) * SECOND, (float(here[0]), float(here[1]), 0.0), 0.0)
            began = time.perf_counter()
            system.record(seen, pose)
            system.commit()
            costs.append(1000.0 * (time.perf_counter() - began))
    return float(np.median(costs))


def _noisy(rng: np.random.Generator, place: Position) -> Position:
    x, y, z = np.asarray(place) + rng.normal(0.0, 0.1, 3)
    return float(x), float(y), float(z)


if __name__ == "__main__":
    sys.exit(main())
