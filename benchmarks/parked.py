"""A parked robot is consolidated: time and memory, ours beside the peer's.

The robot stands still for hours while its detectors go on: every row lies within a few centimetres of every other. Ours
is the job `gists` on a database; the peer's is its own clustering step on the same rows. Each has a process of its own.

    python -m benchmarks.parked --n 20000 --peer emem --json parked.json
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

PEERS = ("emem", "none")
PACKAGES = Path("build/bench_packages")
"""Where `make bench` lays the peer."""

PEER = """
import json, sys, time
from types import SimpleNamespace
import numpy as np
from benchmarks.peak_memory import PeakMemory
import sklearn.cluster
from emem.config import SpatioTemporalMemoryConfig
from emem.consolidation import ConsolidationEngine
n = int(sys.argv[1])
places = np.random.default_rng(0).normal((3.0, 4.0), 0.05, (n, 2))
rows = [SimpleNamespace(coordinates=np.array([x, y, 0.0])) for x, y in places]
engine = ConsolidationEngine.__new__(ConsolidationEngine)
engine.config = SpatioTemporalMemoryConfig()
with PeakMemory() as peak:
    started = time.perf_counter()
    found = engine._spatial_cluster(rows)
    seconds = time.perf_counter() - started
print(json.dumps({"seconds": seconds, "peak_mb": peak.growth_mb, "clusters": len(found)}))
"""


def ours(n: int) -> dict[str, Any]:
    """Consolidate n rows of a parked robot with the job; seconds, peak_mb (growth over what was resident), clusters."""
    import time

    import numpy as np
    import sklearn.cluster  # noqa: F401  # imported before the clock starts, as for the peer

    from benchmarks.peak_memory import PeakMemory
    from memory_node.config import Settings
    from memory_node.graph import Kind, Node, PositionSource
    from memory_node.housekeeping.gists import Gists
    from memory_node.housekeeping.runtime import JobContext, JobRunner
    from memory_node.storage import nodes, sessions
    from memory_node.storage.database import Database

    settings = Settings()
    step, start = 500_000_000, 86_400_000_000_000
    now = start + n * step + 7_200_000_000_000
    places = np.random.default_rng(0).normal((3.0, 4.0), 0.05, (n, 2))
    with tempfile.TemporaryDirectory() as folder:
        db = Database.open(Path(folder) / "parked.db")
        session = db.write(lambda tx: sessions.open_session(tx, clock="system", stamp=start, wall=0, frame="map"))
        for first in range(0, n, 5000):
            rows = [
                Node(
                    id=0, kind=Kind.OBSERVATION, layer="detections", text=f"chair {i % 7}", text_id=None,
                    stamp=start + i * step, last_stamp=start + i * step, position=(x, y, 0.0), frame="map",
                    position_source=PositionSource.OBSERVER, session_id=session,
                )
                for i, (x, y) in enumerate(places[first : first + 5000].tolist(), first)
            ]  # fmt: skip
            db.write(lambda tx, rows=rows: nodes.insert_many(tx, rows))
        db.checkpoint()
        context = JobContext(db=db, settings=lambda: settings, now_ns=lambda: now, session_id=lambda: session)
        runner = JobRunner(context, [Gists()])
        with PeakMemory() as peak:
            started = time.perf_counter()
            state = runner.run("gists")
            seconds = time.perf_counter() - started
        with db.read() as conn:
            gists, members = conn.execute("SELECT count(*), sum(observation_count) FROM gist").fetchone()
        db.close()
    if state.error or members != n:
        raise RuntimeError(state.error or f"{members} of {n} rows were summarised")
    return {"seconds": seconds, "peak_mb": peak.growth_mb, "clusters": gists}


def peer(n: int, python: str) -> dict[str, Any]:
    """The peer's clustering of the same rows, in its own interpreter."""
    path = [str(Path.cwd()), *(str(folder.resolve()) for folder in [PACKAGES] if folder.is_dir())]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*path, os.environ.get("PYTHONPATH", "")])}
    return _measured([python, "-c", PEER, str(n)], environment)


def _measured(command: list[str], environment: dict[str, str] | None = None) -> dict[str, Any]:
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{command[0]} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def table(result: dict[str, Any]) -> str:
    """The result as lines for people."""
    lines = [f"{'':10}{'seconds':>12}{'peak MB':>12}"]
    for name, figures in result.items():
        if isinstance(figures, dict):
            lines.append(f"{name:10}{figures['seconds']:>12.3f}{figures['peak_mb']:>12.1f}")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Measure, print a table, write the JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.parked", description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=20_000, help="rows (20000)")
    parser.add_argument("--peer", choices=PEERS, default="emem")
    parser.add_argument(
        "--peer-python", default=os.environ.get("ROBOT_MEMORY_PEER_PYTHON", sys.executable),
        help="interpreter that has the peer (ROBOT_MEMORY_PEER_PYTHON, else this one)",
    )
    parser.add_argument("--json", type=Path, help="where the figures go")
    parser.add_argument("--ours-only", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.ours_only:
        print(json.dumps(ours(chosen.n)))
        return 0
    own = [sys.executable, "-m", "benchmarks.parked", "--ours-only", "--n", str(chosen.n)]
    result: dict[str, Any] = {"n": chosen.n, "cores": os.cpu_count(), "ours": _measured(own)}
    if chosen.peer != "none":
        result["emem"] = peer(chosen.n, chosen.peer_python)
        # A peak under the resolution of a page is one page.
        result["ratio"] = {
            key: result["emem"][key] / max(result["ours"][key], 0.004) for key in ("seconds", "peak_mb")
        }
    print(table(result))
    if chosen.json:
        chosen.json.write_text(json.dumps(result, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
