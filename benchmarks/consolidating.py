"""How long a search takes while the whole memory is being consolidated, beside one while nothing else runs.

An embedder that costs nothing; rows that are all due, of a robot that drives through its rooms. Searches come from a
thread of their own, one after another, as long as the jobs `episodes`, `gists` and `archive` run.

    python -m benchmarks.consolidating --n 100000 --json consolidating.json
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.robot_life import DAY, SECOND, HashEmbedder, SimulatedClock, life
from memory_node.memory import Memory
from memory_node.process import preload

JOBS = ("episodes", "gists", "archive")
PAUSE = 0.01
"""s between two searches: a robot asks, it does not flood."""
ALONE = 300
"""Searches while nothing else runs."""
QUERIES = ("a person reads a newspaper", "the kitchen looks tidy", "who carries a box", "it is dark", "object 7")


def measure(n: int) -> dict[str, Any]:
    """Fill a memory with n rows and search it, first alone and then while the jobs run; times in ms."""
    preload()  # as the node does
    clock = SimulatedClock()
    with (
        tempfile.TemporaryDirectory() as folder,
        Memory.open(Path(folder) / "m.db", embedder=HashEmbedder(), clock=clock) as memory,
    ):
        _fill(memory, clock, n)
        alone = [_search(memory, number) for number in range(ALONE)]
        busy: list[float] = []
        worker = threading.Thread(target=lambda: [memory.run_job(name) for name in JOBS])
        began = time.monotonic()
        worker.start()
        while worker.is_alive():
            busy.append(_search(memory, len(busy)))
            time.sleep(PAUSE)
        seconds = time.monotonic() - began
        status, errors = memory.status(), [job.error for job in memory.jobs() if job.error]
    if errors or status.archived < n:
        raise RuntimeError(f"{errors or status.archived} of {n} rows were archived")
    return {
        "n": n, "cores": os.cpu_count(), "load": os.getloadavg()[0], "seconds": seconds, "gists": status.gists,
        "alone": _figures(alone), "consolidating": _figures(busy),
    }  # fmt: skip


def _fill(memory: Memory, clock: SimulatedClock, n: int) -> None:
    """Rows two a moment, a second apart, and then a day of silence, so that all of them are due."""
    for number, moment in enumerate(life(n // (2 * DAY) + 1, 1.0)):
        if 2 * number >= n:
            break
        clock.ns = round(moment.seconds * SECOND)
        place = (*moment.pose, 0.0)
        memory.record(moment.caption, layer="scene", position=place, position_source="observer")
        memory.record(moment.thing, layer="detections", position=moment.thing_at)
    memory.flush()
    memory.wait_embedded(600.0)
    clock.ns += DAY * SECOND


def _search(memory: Memory, number: int) -> float:
    began = time.perf_counter()
    memory.semantic_search(QUERIES[number % len(QUERIES)])
    return (time.perf_counter() - began) * 1000.0


def _figures(times: list[float]) -> dict[str, float]:
    p50, p95, p99 = np.percentile(times, (50, 95, 99)).tolist()
    return {"searches": len(times), "p50": p50, "p95": p95, "p99": p99, "max": max(times)}


def main(arguments: list[str] | None = None) -> int:
    """Measure, print a table, write the JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.consolidating", description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=100_000, help="rows (100000)")
    parser.add_argument("--json", type=Path, help="where the figures go")
    chosen = parser.parse_args(arguments)
    result = measure(chosen.n)
    print(f"{result['n']} rows became {result['gists']} gists in {result['seconds']:.1f} s; load {result['load']:.1f}")
    print(f"{'search (ms)':16}" + "".join(f"{name:>10}" for name in result["alone"]))
    for name in ("alone", "consolidating"):
        print(f"{name:16}" + "".join(f"{value:>10.1f}" for value in result[name].values()))
    if chosen.json:
        chosen.json.write_text(json.dumps(result, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
