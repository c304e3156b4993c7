"""How often the first answers are right, ours beside the closest peer, with the same model and data.

    python -m benchmarks.retrieval --json PATH

`sqa3d`: sentences of one person, asked for with another's, one store a scene; `sqa3d_pooled`: all scenes in one store.
`home`: 300 questions about three simulated days. What is asked of whom, and which field is judged:

what              search(question)                           one of 5 texts holds the fact
when              search(question)                           one of 5 spans begins or ends within 60 s of the truth
last time         search(question)                           one of 5 spans ends within 60 s of the truth
before and after  search(question, 1), then timeline of the scene layer from its time on, or back
                                                             one of 5 texts is the neighbour's
where             locate(name)                               position within 1 m
how many          entity_query(name)                         number of entities, ours neither tentative nor missing
body              recall(question) in a window of time       one of 5 texts is what was nearest to the event
                  body_status(layer)                         value within 0.01 (or 0.1 degC), change likewise
episode           episode_summary(name)                      start and end within 5 s
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from benchmarks.retrieval_home import BodyRow, Home, LookRow, Question, Row, build
from benchmarks.retrieval_systems import SECOND, Answer, CachedEmbedder, System, systems

DATASETS = Path(os.environ.get("ROBOT_MEMORY_DATASETS", Path(__file__).resolve().parents[2] / "shared" / "datasets"))
TUNING_SEEDS = (1, 2, 3, 4, 5)
"""Seeds that constants were chosen with; the reported seed is another."""
REPORTED_SEED = 2026
FIRST = 5
NEAR_TIME = 60 * SECOND
NOW = 1_770_000_000 * SECOND

Make = Callable[[Path, CachedEmbedder, int], System]


def main() -> None:
    """Run all sets for every memory that is here and print one table."""
    parser = argparse.ArgumentParser(description="measure how often the first answers are right")
    parser.add_argument("--json", type=Path, help="file for the figures")
    parser.add_argument("--seed", type=int, default=REPORTED_SEED, help=f"of the home; {TUNING_SEEDS} are for tuning")
    parser.add_argument("--no-peer", action="store_true", help="ours alone")
    args = parser.parse_args()
    from memory_node.models.sentence_transformer import SentenceTransformerEmbedder

    embedder = CachedEmbedder(SentenceTransformerEmbedder())
    chosen = systems()
    if args.no_peer or "emem" not in chosen:
        print("without the peer" + ("" if args.no_peer else ": emem is not installed (make build/bench_packages)"))
        chosen = {"ours": chosen["ours"]}
    figures = {name: _measure(make, embedder, args.seed) for name, make in chosen.items()}
    _print(figures)
    if args.json:
        args.json.parent.mkdir(parents=True, exist_ok=True)
        args.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


def _measure(make: Make, embedder: CachedEmbedder, seed: int) -> dict[str, float]:
    figures = {}
    folder = DATASETS / "sqa3d_dev"
    if folder.is_dir():
        memories, queries = (_json_lines(folder / f"{name}.jsonl") for name in ("memories", "queries"))
        scenes = sorted({row["scene"] for row in memories})
        figures.update(_sqa3d("sqa3d", make, embedder, memories, queries, [[scene] for scene in scenes]))
        figures.update(_sqa3d("sqa3d_pooled", make, embedder, memories, queries, [scenes]))
    else:
        print(f"no data at {folder}: sqa3d is left out; say where with ROBOT_MEMORY_DATASETS")
    figures.update(_home(make, embedder, build(seed)))
    return figures


# sentences of rooms


def _sqa3d(
    name: str, make: Make, embedder: CachedEmbedder, memories: list[Any], queries: list[Any], stores: list[list[str]]
) -> dict[str, float]:
    ranks: list[float] = []
    errors: list[float] = []
    for scenes in stores:
        with tempfile.TemporaryDirectory() as folder:
            system = make(Path(folder), embedder, NOW)
            texts = {}
            for number, row in enumerate(row for row in memories if row["scene"] in scenes):
                stamp = NOW - (10_000 - number) * SECOND
                texts[row["mem_id"]] = (row["text"], stamp)
                system.add(Row(stamp, "scene", row["text"], (row["x"], row["y"], float(row["z"]))))
            system.settle()
            for query in (query for query in queries if query["scene"] in scenes):
                gold = [texts[id_] for id_ in query["gold"]]
                ranks.append(_rank(system.search(query["query"], 10), gold))
                found = system.locate(query["query"])
                errors.append(math.dist(found[:2], query["gold_xyz"][:2]) if found else math.inf)
            system.close()
    hits = {f"{name}.hit{n}": sum(rank <= n for rank in ranks) / len(ranks) for n in (1, 5, 10)}
    return {**hits, f"{name}.locate_median_m": statistics.median(errors)}


def _rank(answers: Iterable[Answer], gold: list[tuple[str, int]]) -> float:
    for place, answer in enumerate(answers, 1):
        if any(text == answer.text and answer.first - SECOND <= stamp <= answer.last + SECOND for text, stamp in gold):
            return place
    return math.inf


# three days at home


def _home(make: Make, embedder: CachedEmbedder, home: Home) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        system = make(Path(folder), embedder, home.events[0].stamp)
        _live(system, home)
        right: dict[str, list[bool]] = defaultdict(list)
        for question in home.questions:
            right[question.kind].append(_is_right(system, question))
        system.close()
    kinds = {f"home.{kind.replace(' ', '_')}": sum(found) / len(found) for kind, found in right.items()}
    return {"home.answered": sum(map(sum, right.values())) / len(home.questions), **kinds}


def _live(system: System, home: Home) -> None:
    tasks = iter(home.tasks)
    task = next(tasks, None)
    running = False
    for event in home.events:
        if running and task is not None and event.stamp > task.end:
            system.clock.ns = task.end
            system.end_episode()
            running, task = False, next(tasks, None)
        if not running and task is not None and event.stamp >= task.start:
            system.clock.ns = task.start
            system.start_episode(task.name)
            running = True
        system.clock.ns = event.stamp
        if isinstance(event, LookRow):
            system.look(event)
        elif isinstance(event, BodyRow):
            system.feel(event)
        else:
            system.add(event)
    if running and task is not None:
        system.clock.ns = task.end
        system.end_episode()
    system.clock.ns = home.now
    system.settle()


def _is_right(system: System, question: Question) -> bool:
    return _JUDGES[question.kind](system, question)


def _what(system: System, question: Question) -> bool:
    return any(question.text in answer.text for answer in system.search(question.asked, FIRST))


def _when(system: System, question: Question) -> bool:
    found = system.search(question.asked, FIRST)
    return any(min(abs(a.first - question.stamp), abs(a.last - question.stamp)) <= NEAR_TIME for a in found)


def _last_time(system: System, question: Question) -> bool:
    return any(abs(answer.last - question.stamp) <= NEAR_TIME for answer in system.search(question.asked, FIRST))


def _neighbour(system: System, question: Question) -> bool:
    event = system.search(question.asked, 1)
    if not event:
        return False
    if question.number == 1:
        found = system.timeline(event[0].last + 1000, None, False, FIRST)
    else:
        found = system.timeline(None, event[0].first - 1000, True, FIRST)
    return any(answer.text == question.text for answer in found)


def _where(system: System, question: Question) -> bool:
    found = system.locate(question.asked)
    return found is not None and question.position is not None and math.dist(found[:2], question.position[:2]) <= 1.0


def _how_many(system: System, question: Question) -> bool:
    return system.count(question.asked) == question.number


def _body(system: System, question: Question) -> bool:
    if question.after is not None and question.before is not None:
        found = system.happening(question.asked, question.after, question.before, FIRST)
        return any(answer.text == question.text for answer in found)
    value, change = system.body(question.layer)
    figure = value if question.asked == "value" else change
    near = 0.01 if question.layer == "battery" else 0.1
    return figure is not None and question.number is not None and abs(figure - question.number) <= near


def _episode(system: System, question: Question) -> bool:
    found = system.episode(question.asked)
    truth = (question.stamp, question.end)
    return found is not None and all(abs(a - b) <= 5 * SECOND for a, b in zip(found, truth, strict=True))


_JUDGES: dict[str, Callable[[System, Question], bool]] = {
    "what": _what, "where": _where, "when": _when, "how many": _how_many, "last time": _last_time,
    "before and after": _neighbour, "body": _body, "episode": _episode,
}  # fmt: skip


def _json_lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def _print(figures: dict[str, dict[str, float]]) -> None:
    print(f"{'figure':30}" + "".join(f"{name:>10}" for name in figures))
    for key in figures["ours"]:
        print(f"{key:30}" + "".join(f"{values.get(key, math.nan):10.3f}" for values in figures.values()))


if __name__ == "__main__":
    main()
