"""Measure the engine beside its closest peer on the same work: `python -m benchmarks.engine --n 50000 --peer emem`."""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

KEYS = (
    "ingest_per_s", "record_p99_ms", "semantic_p50_ms", "semantic_p99_ms", "hybrid_p50_ms", "filtered_p50_ms",
    "hybrid_filtered_p50_ms", "hard_recall_at_10", "recall_at_10", "filtered_recall_at_10", "spatial_r2_p50_ms",
    "spatial_r30_p50_ms", "temporal_p50_ms", "reopen_s", "reopen_after_kill_s", "rss_mb", "disk_mb",
)  # fmt: skip
MORE_IS_BETTER = ("ingest_per_s", "hard_recall_at_10", "recall_at_10", "filtered_recall_at_10")
INSTEAD = {"hybrid_p50_ms": "semantic_p50_ms", "hybrid_filtered_p50_ms": "semantic_p50_ms"}
"""What the peer cannot do is compared with its nearest."""

Figures = dict[str, Any]


def measure(store: str, python: str, n: int, distinct: int) -> Figures:
    """Figures of one store, from a process of its own."""
    command = [python, "-m", "benchmarks.engine_figures", store, "--n", str(n), "--distinct", str(distinct)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, cwd=Path(__file__).resolve().parent.parent)
    figures: Figures = json.loads(done.stdout.splitlines()[-1])
    return figures


def ratios(ours: Figures, peer: Figures) -> Figures:
    """How many times better ours is; None where either has no figure."""
    found: Figures = {}
    for key in KEYS:
        mine, other = ours.get(key), peer.get(key, peer.get(INSTEAD.get(key, "")))
        if mine is None or other is None:
            found[key] = None
        else:
            better, worse = (mine, other) if key in MORE_IS_BETTER else (other, mine)
            found[key] = better / worse if worse else None
    return found


def table(ours: Figures, peer: Figures, ratio: Figures, name: str) -> str:
    """The figures as one Markdown table; what only ours has follows."""
    lines = [f"| figure | ours | {name} | times better |", "| --- | ---: | ---: | ---: |"]
    lines += [f"| {key} | {_text(ours.get(key))} | {_text(peer.get(key))} | {_text(ratio.get(key))} |" for key in KEYS]
    for key, value in ours.items():
        if isinstance(value, dict):
            lines += [f"| {key} {part} | {_text(one)} | | |" for part, one in value.items()]
        elif key not in KEYS:
            lines.append(f"| {key} | {_text(value)} | {_text(peer.get(key))} | |")
    return "\n".join(lines)


def _text(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def main() -> None:
    """Run both stores and print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=50_000, help="rows")
    parser.add_argument("--distinct", type=int, default=0, help="distinct texts; 0: all")
    parser.add_argument("--peer", default="emem", choices=["emem"])
    parser.add_argument("--no-peer", action="store_true")
    parser.add_argument("--peer-python", default=sys.executable, help="interpreter that imports the peer")
    parser.add_argument("--json", type=Path, help="file for the figures")
    given = parser.parse_args()
    distinct = min(given.distinct or given.n, given.n)
    ours = measure("ours", sys.executable, given.n, distinct)
    peer = {} if given.no_peer else measure(given.peer, given.peer_python, given.n, distinct)
    ratio = ratios(ours, peer)
    machine = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
    print(f"{given.n} rows, {distinct} distinct texts; {machine}\n")
    print(table(ours, peer, ratio, given.peer))
    if given.json:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        result: Figures = {"n": given.n, "distinct": distinct, "machine": machine}
        result.update({"ours": ours, given.peer: peer, "ratio": ratio})
        given.json.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
