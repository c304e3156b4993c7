"""One store through all the figures, in a process of its own: `python -m benchmarks.engine_figures STORE OPTIONS`."""

from __future__ import annotations

import argparse
import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.engine_stores import NS, STORES, Ours, OursByDefault, Store
from benchmarks.engine_work import LAYERS, SIDE, START, STEP, Work, resident_mb

SETTLE = 900.0  # s that a store may take for what it does in the background
QUERIES = 200
Figures = dict[str, Any]


def times_ms(call: Callable[[int], Any], count: int = QUERIES) -> np.ndarray:
    """Milliseconds of call(0), call(1), ... after a few that warm up."""
    for i in range(min(5, count)):
        call(i)
    taken = np.empty(count)
    for i in range(count):
        start = time.perf_counter()
        call(i)
        taken[i] = time.perf_counter() - start
    return taken * 1000.0


def ingest(store: Store, n: int) -> float:
    """Rows a second, until every row is found by meaning."""
    start = time.perf_counter()
    for row in range(n):
        store.add(row)
    store.flush()
    return n / (time.perf_counter() - start)


def query_figures(store: Any, work: Work, count: int) -> Figures:
    """Times and recall of every kind of query."""
    taken = times_ms(store.meaning, count)
    passing = work.filtered()
    figures = {
        "semantic_p50_ms": np.percentile(taken, 50),
        "semantic_p99_ms": np.percentile(taken, 99),
        "filtered_p50_ms": np.median(times_ms(lambda i: store.meaning(i, filtered=True), count)),
        "recall_at_10": np.mean([work.recall(i, store.meaning(i)) for i in range(count)]),
        "filtered_recall_at_10": np.mean(
            [work.recall(i, store.meaning(i, filtered=True), passing) for i in range(count)]
        ),
        "spatial_r2_p50_ms": np.median(times_ms(lambda i: store.spatial(2.0), 50)),
        "spatial_r30_p50_ms": np.median(times_ms(lambda i: store.spatial(30.0), 50)),
        "temporal_p50_ms": np.median(times_ms(lambda i: store.temporal(), 50)),
    }
    if store.hybrid_known:
        figures["hybrid_p50_ms"] = np.median(times_ms(store.hybrid, count))
        figures["hybrid_filtered_p50_ms"] = np.median(times_ms(lambda i: store.hybrid(i, filtered=True), count))
    return figures


def reopen_figure(make: Any, work: Work, folder: Path) -> float | None:
    """Seconds from opening to the first answer by meaning; None when there is no answer."""
    start = time.perf_counter()
    try:
        store = make(work, folder)
        found = store.meaning(0)
    except Exception as error:
        print(f"reopening failed: {type(error).__name__}: {error}", file=sys.stderr)
        return None
    taken = time.perf_counter() - start
    store.close()
    return taken if found else None


def record_p99(make: Any, work: Work, seconds: float = 3.0) -> float:
    """99th percentile of one call at 1 000 rows a second, ms."""
    with tempfile.TemporaryDirectory() as folder:
        store = make(work, Path(folder))
        taken = []
        begin = time.perf_counter()
        for row in range(min(work.n, int(1000 * seconds))):
            time.sleep(max(0.0, begin + row / 1000.0 - time.perf_counter()))
            start = time.perf_counter()
            store.add(row)
            taken.append(time.perf_counter() - start)
        store.flush()
        store.close()
    return float(np.percentile(taken, 99)) * 1000.0


def after_kill(name: str, work: Work) -> float | None:
    """Seconds to reopen what a process left that was killed as soon as its last row was committed."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "benchmarks.engine_figures", name, "--n", str(work.n), "--kill-in", folder]
        child = subprocess.Popen([*command, "--distinct", str(work.distinct)], stdout=subprocess.PIPE)
        assert child.stdout is not None
        child.stdout.readline()
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        return reopen_figure(STORES[name], work, Path(folder))


def while_ingesting(work: Work, seconds: float = 5.0) -> Figures:
    """Search by meaning while another thread stores rows as fast as it can; nothing when it was done at once."""
    with tempfile.TemporaryDirectory() as folder:
        store = Ours(work, Path(folder))
        stop, begun = threading.Event(), threading.Event()
        stored = [0]

        def write() -> None:
            for row in range(work.n):
                if stop.is_set():
                    break
                store.add(row)
                stored[0] = row
                if row >= min(work.n // 10, 5000):
                    begun.set()
            store.flush()

        writer = threading.Thread(target=write)
        writer.start()
        begun.wait()
        taken: list[float] = []
        begin = time.perf_counter()
        while writer.is_alive() and time.perf_counter() - begin < seconds:
            start = time.perf_counter()
            store.meaning(len(taken) % QUERIES)
            taken.append((time.perf_counter() - start) * 1000.0)
        rows = stored[0]
        stop.set()
        writer.join()
        store.close()
    if not taken:
        return {}
    return {
        "ingesting_semantic_p50_ms": np.percentile(taken, 50),
        "ingesting_semantic_p99_ms": np.percentile(taken, 99),
        "ingesting_rows": rows,
    }


def default_ingest(work: Work) -> float:
    """Rows a second with the settings that nobody changed, which commit every five rows."""
    with tempfile.TemporaryDirectory() as folder:
        store = OursByDefault(work, Path(folder))
        found = ingest(store, work.n)
        store.close()
    return found


def decades(store: Ours, work: Work, each: int = 25) -> Figures:
    """Recall with random filters, by the share of rows that passes."""
    rng = np.random.default_rng(3)
    rows = np.arange(work.n)
    recalls: dict[str, list[float]] = {}
    for turn in range(each * 16):
        share = 10.0 ** rng.uniform(-4.0, -0.05)
        passing = np.ones(work.n, dtype=bool)
        given: dict[str, Any] = {}
        if rng.random() < 0.3:
            layer = int(rng.integers(len(LAYERS)))
            given["layers"] = (LAYERS[layer],)
            passing &= rows % len(LAYERS) == layer
            share = min(1.0, share * len(LAYERS))
        side = rng.choice(["time", "place"]) if share > 0.0 else "time"
        if side == "time":
            first = int(rng.integers(0, max(1, int(work.n * (1.0 - share)))))
            last = min(work.n - 1, first + int(work.n * share))
            given.update(time_after=round((START + first * STEP) * NS), time_before=round((START + last * STEP) * NS))
            passing &= (rows >= first) & (rows <= last)
        else:
            center = tuple(rng.random(2) * SIDE)
            radius = float(np.sqrt(share * SIDE**2 / np.pi))
            given.update(center=center, radius=radius)
            passing &= np.hypot(*(work.positions - center).T) <= radius
        query = turn % QUERIES
        found = work.recall(query, store.search("", query, store.filter(**given)), passing)
        if passing.any():
            decade = max(-4, int(np.floor(np.log10(passing.mean()))))
            recalls.setdefault(f"1e{decade}", []).append(found)
    return {decade: float(np.mean(values)) for decade, values in sorted(recalls.items())}


def all_figures(name: str, n: int, distinct: int) -> Figures:
    """Every figure of one store."""
    make = STORES[name]
    work = Work(n, distinct)
    gc.collect()
    count = QUERIES if name == "ours" or n <= 100_000 else 50
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        before = resident_mb()
        store = make(work, place)
        start = time.perf_counter()
        figures: Figures = {"ingest_per_s": ingest(store, n)}
        store.settle(SETTLE)
        figures["indexed_per_s"] = n / (time.perf_counter() - start)
        figures.update(query_figures(store, work, count))
        if name == "ours":
            figures["decade_recall_at_10"] = decades(store, work)
        gc.collect()
        figures["rss_mb"] = resident_mb() - before
        store.close()
        figures["disk_mb"] = sum(file.stat().st_size for file in place.iterdir()) / 1e6
        figures["reopen_s"] = reopen_figure(make, work, place)
    figures["record_p99_ms"] = record_p99(make, work)
    figures["reopen_after_kill_s"] = after_kill(name, work)
    if name == "ours":
        figures["ingest_default_per_s"] = default_ingest(work)
        figures.update(while_ingesting(work))
        figures.update(growth(figures, n))
    del work
    figures.update(hard_figures(make, min(n, 50_000)))
    return figures


def growth(figures: Figures, n: int, small: int = 10_000) -> Figures:
    """How many times longer a query takes than over 10 000 rows."""
    if n <= small:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        work = Work(small, small)
        store = Ours(work, Path(folder))
        ingest(store, small)
        store.settle(SETTLE)
        base = query_figures(store, work, QUERIES)
        store.close()
    names = [name for name in base if name.endswith("p50_ms")]
    return {"growth_from_10000": {name: figures[name] / base[name] for name in names}}


def hard_figures(make: Any, n: int) -> Figures:
    """Recall and time on unit centres, where a graph alone finds a fifth."""
    with tempfile.TemporaryDirectory() as folder:
        work = Work(n, n, hard=True)
        store = make(work, Path(folder))
        ingest(store, n)
        store.settle(SETTLE)
        taken = times_ms(store.meaning, 100)
        recall = np.mean([work.recall(i, store.meaning(i)) for i in range(100)])
        store.close()
    return {"hard_recall_at_10": recall, "hard_p50_ms": np.median(taken)}


def main() -> None:
    """Print the figures of one store as JSON, or fill a folder and wait to be killed."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("store", choices=STORES)
    parser.add_argument("--n", type=int, required=True)
    parser.add_argument("--distinct", type=int, required=True)
    parser.add_argument("--kill-in", default="")
    given = parser.parse_args()
    if given.kill_in:
        store = STORES[given.store](Work(given.n, given.distinct), Path(given.kill_in))
        ingest(store, given.n)
        print("committed", flush=True)
        time.sleep(600.0)
    figures = all_figures(given.store, given.n, given.distinct)
    print(json.dumps(figures, default=float))


if __name__ == "__main__":
    main()
