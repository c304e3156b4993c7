"""Five layers of 50 Hz for a minute: what is lost, how long callbacks and searches take, how resident memory goes.

The node is a process; texts are all distinct, so that meaning lags behind. `--embedder free` costs nothing, `model` is
the node's default.

    python -m benchmarks.load --seconds 60 --embedder free --json load.json
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
import yaml
from rclpy.node import Node
from robot_memory import srv
from std_msgs.msg import String
from std_srvs.srv import Trigger

from benchmarks.robot_life import HashEmbedder
from benchmarks.service import ask
from benchmarks.soak_node import resident_mb
from memory_node.ingest.intake import Intake
from memory_node.process import share_heap
from memory_node.ros.executor import Spinner
from memory_node.ros.node import MemoryNode

LAYERS = [f"layer{i}" for i in range(5)]
HZ = 50.0
PAUSE = 0.2
"""s between two searches."""
LIMITS = {"free": 20.0, "model": 60.0}
"""ms that the 99th percentile of a search may take."""


def serve(parameters: Path, embedder: str) -> None:
    """Be the node."""
    share_heap()
    rclpy.init(args=["benchmark", "--ros-args", "--params-file", str(parameters)])
    node = MemoryNode(embedder=HashEmbedder(384) if embedder == "free" else None)
    times = timed_callbacks()
    assert node.bring_up(), node.failure

    def tell(_: Any, response: Any) -> Any:
        response.message = json.dumps(np.percentile(times, (50, 99)).tolist())
        return response

    node.create_service(Trigger, "~/callbacks", tell)
    Spinner(node, node.parameters["num_threads"]).join()


def timed_callbacks() -> deque[float]:
    """From now on, how long each message is taken in for by the callback of its subscription, ms."""
    times: deque[float] = deque(maxlen=100_000)
    put = Intake.put

    def timed(intake: Intake, *message: Any) -> None:
        began = time.perf_counter()
        put(intake, *message)
        times.append((time.perf_counter() - began) * 1000.0)

    Intake.put = timed  # type: ignore[method-assign]
    return times


def parameter_file(folder: Path) -> Path:
    """Layers of which every message becomes a row."""
    layer = {"type": "std_msgs/msg/String", "max_rate_hz": 0.0, "reliability": "reliable", "depth": 100}
    given: dict[str, Any] = {"layers": LAYERS, "db_path": str(folder / "memory.db")}
    given |= {name: layer | {"topic": f"/{name}"} for name in LAYERS}
    path = folder / "params.yaml"
    path.write_text(yaml.safe_dump({"/**": {"ros__parameters": given}}), encoding="utf-8")
    return path


def publish(node: Node, seconds: float) -> None:
    """Send all layers at their rate; no text comes twice."""
    publishers = [node.create_publisher(String, f"/{name}", 100) for name in LAYERS]
    while any(publisher.get_subscription_count() == 0 for publisher in publishers):
        time.sleep(0.05)
    began = time.monotonic()
    for i in range(round(seconds * HZ)):
        for number, publisher in enumerate(publishers):
            publisher.publish(String(data=f"view {i} of room {number}"))
        time.sleep(max(0.0, began + (i + 1) / HZ - time.monotonic()))


def measure(pid: int, seconds: float) -> dict[str, Any]:
    """Publish in a thread and ask meanwhile; returns the figures."""
    rclpy.init()
    node = rclpy.create_node("benchmark_client")
    search = node.create_client(srv.SemanticSearch, "/memory/semantic_search")
    status = node.create_client(srv.GetStatus, "/memory/get_status")
    assert search.wait_for_service(60.0) and status.wait_for_service(60.0)
    while "by words only" in ask(node, search, srv.SemanticSearch.Request(query="ready"))[1].message:
        time.sleep(0.2)
    sender = threading.Thread(target=publish, args=(node, seconds))
    sender.start()
    times, memory = [], []
    while sender.is_alive():
        took, response = ask(node, search, srv.SemanticSearch.Request(query=f"view {len(times)} of a room"))
        assert response.success, response.message
        times.append(took)
        memory.append(resident_mb(pid))
        time.sleep(PAUSE)
    time.sleep(5.0)
    layers = ask(node, status, srv.GetStatus.Request())[1].status.layers
    callbacks = node.create_client(Trigger, "/memory/callbacks")
    assert callbacks.wait_for_service(60.0)
    taken_p50, taken_p99 = json.loads(ask(node, callbacks, Trigger.Request())[1].message)
    told = {layer.name: (layer.received, layer.stored, layer.dropped) for layer in layers if layer.name in LAYERS}
    half = memory[len(memory) // 2 :]
    return {
        "sent": round(seconds * HZ) * len(LAYERS),
        "received": sum(row[0] for row in told.values()),
        "stored": sum(row[1] for row in told.values()),
        "dropped": sum(row[2] for row in told.values()),
        "callback_p50_ms": taken_p50,
        "callback_p99_ms": taken_p99,
        "searches": len(times),
        "p50_ms": float(np.percentile(times, 50)),
        "p99_ms": float(np.percentile(times, 99)),
        "mb_at_half": half[0],
        "mb_at_end": half[-1],
    }


def main() -> int:
    """Command line; 1 when something was lost or a search took too long."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--embedder", choices=list(LIMITS), default="free")
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve is not None:
        serve(options.serve, options.embedder)
        return 0
    os.environ.setdefault("ROS_DOMAIN_ID", str(random.SystemRandom().randint(20, 100)))
    os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    with tempfile.TemporaryDirectory() as folder:
        path = parameter_file(Path(folder))
        command = [sys.executable, "-m", "benchmarks.load", "--embedder", options.embedder, "--serve", str(path)]
        node = subprocess.Popen(command)
        try:
            figures = measure(node.pid, options.seconds)
        finally:
            node.kill()
            node.wait()
    for name, value in figures.items():
        print(f"{name:16}{value:12.{3 if name.startswith('callback') else 1}f}")
    if options.json is not None:
        options.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    whole = figures["stored"] == figures["sent"]
    return 0 if whole and figures["p99_ms"] <= LIMITS[options.embedder] else 1


if __name__ == "__main__":
    raise SystemExit(main())
