"""Round trip of each tool over DDS beside that of an empty service, in one run.

The node is a process with a memory of so many rows and an embedder that costs nothing: what is measured is the way
there and back, the conversion of messages and the tool itself.

    python -m benchmarks.service --rows 50000 --json service.json
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
from geometry_msgs.msg import Point, PointStamped
from numpy.typing import NDArray
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.node import Node
from robot_memory import srv
from robot_memory.msg import Filter
from std_srvs.srv import Trigger

from benchmarks.robot_life import HashEmbedder
from memory_node.graph import Detection, Pose
from memory_node.memory import Memory
from memory_node.retrieval.naming import forms
from memory_node.ros.executor import Spinner
from memory_node.ros.node import MemoryNode

SECOND = 1_000_000_000
WARM = 20
THINGS = ("chair", "table", "cup", "plant", "lamp", "shelf", "door", "person", "bottle", "book")
COLOURS = ("red", "green", "blue", "black", "white", "brown", "grey", "yellow")
ROOMS = ("kitchen", "hall", "office", "bedroom", "workshop", "store")


class RosTime:
    """Wall time under the name of the node's clock, so that the node compares its own readings with these."""

    kind = "ros"

    def now_ns(self) -> int:
        """Current time, ns."""
        return time.time_ns()


def fill(path: Path, rows: int) -> None:
    """Make a memory of so many rows over two hours and 60 x 60 m: sentences, detections, readings, gists."""
    chance, now = random.Random(0), time.time_ns()
    step = 7200 * SECOND // rows
    settings = {"working_memory_size": 5000}
    with Memory.open(path, embedder=HashEmbedder(384), clock=RosTime(), settings=settings) as memory:
        for i in range(rows):
            stamp = now - (rows - i) * step
            x, y = 60.0 * chance.random(), 60.0 * chance.random()
            thing = chance.choice(THINGS)
            if i % 5 == 0:
                seen = [Detection(thing, 0.9, (x, y, 0.5))]
                memory.record_detections(seen, stamp=stamp, pose=Pose(stamp, (x - 1.0, y, 0.0), 0.0))
            elif i % 50 == 1:
                memory.record_body_state(f"battery: {i % 100} %", "battery", (i % 100) / 100, "fraction", stamp=stamp)
            else:
                text = f"a {chance.choice(COLOURS)} {thing} number {i % 5000} in the {chance.choice(ROOMS)}"
                memory.record(text, "scene", (x, y, 0.0), stamp)
        memory.flush()
        memory.consolidate()
        memory.wait_embedded(600.0)


class Prepared(HashEmbedder):
    """Costs nothing: the vectors of all questions, in both forms, are there before the first of them comes."""

    def __init__(self, dim: int) -> None:
        super().__init__(dim)
        texts = forms([asked(*words) for words in itertools.product(COLOURS, THINGS, ROOMS)])
        self._known = dict(zip(texts, super().embed(texts), strict=True))

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        """Unit vectors (N, dim)."""
        if all(text in self._known for text in texts):
            return np.stack([self._known[text] for text in texts])
        return super().embed(texts)


def serve(path: Path) -> None:
    """Be the node, with an empty service beside its own."""
    rclpy.init(args=["benchmark", "--ros-args", "-p", f"db_path:={path}"])
    node = MemoryNode(embedder=Prepared(384))
    assert node.bring_up(), node.failure
    node.memory.update_pose(Pose(time.time_ns(), (30.0, 30.0, 0.0), 0.0))
    node.create_service(Trigger, "~/empty", lambda request, response: response, callback_group=ReentrantCallbackGroup())
    Spinner(node, node.parameters["num_threads"]).join()


def point(x: float, y: float) -> PointStamped:
    """A point in the memory's frame."""
    return PointStamped(point=Point(x=x, y=y))


def asked(colour: str, thing: str, room: str) -> str:
    """What is searched for."""
    return f"{colour} {thing} in the {room}"


def questions(chance: random.Random) -> dict[str, tuple[Any, Any]]:
    """Service -> its type and a request such as a planner's."""
    thing, colour, room = chance.choice(THINGS), chance.choice(COLOURS), chance.choice(ROOMS)
    x, y = 60.0 * chance.random(), 60.0 * chance.random()
    query = asked(colour, thing, room)
    return {
        "empty": (Trigger, Trigger.Request()),
        "semantic_search": (srv.SemanticSearch, srv.SemanticSearch.Request(query=query)),
        "spatial_query": (srv.SpatialQuery, srv.SpatialQuery.Request(center=point(x, y), radius=3.0)),
        "temporal_query": (srv.TemporalQuery, srv.TemporalQuery.Request(last_n_minutes=10.0)),
        "episode_summary": (srv.EpisodeSummary, srv.EpisodeSummary.Request()),
        "get_current_context": (srv.GetCurrentContext, srv.GetCurrentContext.Request()),
        "search_gists": (srv.SearchGists, srv.SearchGists.Request(query=query)),
        "entity_query": (srv.EntityQuery, srv.EntityQuery.Request(name=thing)),
        "locate": (srv.Locate, srv.Locate.Request(concept=thing, filter=Filter())),
        "recall": (srv.Recall, srv.Recall.Request(query=query)),
        "body_status": (srv.BodyStatus, srv.BodyStatus.Request()),
    }


def ask(node: Node, client: Any, request: Any) -> tuple[float, Any]:
    """Round trip in ms, and the response."""
    began = time.perf_counter()
    future = client.call_async(request)
    rclpy.spin_until_future_complete(node, future, timeout_sec=30.0)
    return (time.perf_counter() - began) * 1000.0, future.result()


def measure(calls: int) -> dict[str, list[float]]:
    """Ask every service in turn, so that all meet the same load; returns round trips in ms."""
    rclpy.init()
    node = rclpy.create_node("benchmark_client")
    chance = random.Random(1)
    clients = {name: node.create_client(kind, f"/memory/{name}") for name, (kind, _) in questions(chance).items()}
    for name, client in clients.items():
        assert client.wait_for_service(60.0), name
    times: dict[str, list[float]] = {name: [] for name in clients}
    for turn in range(calls + WARM):
        for name, (_, request) in questions(chance).items():
            took, response = ask(node, clients[name], request)
            assert name == "empty" or response.success, f"{name}: {response.message}"
            if turn >= WARM:
                times[name].append(took)
    node.destroy_node()
    rclpy.try_shutdown()
    return times


def main() -> int:
    """Command line; 1 when a tool costs more than the limit beyond the empty service."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--calls", type=int, default=200, help="calls of each service")
    parser.add_argument("--limit", type=float, default=3.0, help="ms that the median may lie above the empty service's")
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve is not None:
        serve(options.serve)
        return 0
    os.environ.setdefault("ROS_DOMAIN_ID", str(random.SystemRandom().randint(20, 100)))
    os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.db"
        fill(path, options.rows)
        node = subprocess.Popen([sys.executable, "-m", "benchmarks.service", "--serve", str(path)])
        try:
            times = measure(options.calls)
        finally:
            node.kill()
            node.wait()
    figures: dict[str, float] = {"rows": options.rows}
    for (name, found), share in itertools.product(times.items(), (50, 99)):
        figures[f"p{share}_ms.{name}"] = round(float(np.percentile(found, share)), 3)
    print(f"{'service':22}{'p50 ms':>10}{'p99 ms':>10}{'above empty':>14}")
    for name in times:
        p50, p99 = figures[f"p50_ms.{name}"], figures[f"p99_ms.{name}"]
        print(f"{name:22}{p50:10.2f}{p99:10.2f}{p50 - figures['p50_ms.empty']:14.2f}")
    if options.json is not None:
        options.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    slow = [n for n in times if figures[f"p50_ms.{n}"] - figures["p50_ms.empty"] > options.limit]
    if slow:
        print(f"more than {options.limit} ms above the empty service: {', '.join(slow)}")
    return 1 if slow else 0


if __name__ == "__main__":
    raise SystemExit(main())
