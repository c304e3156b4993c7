"""Runs the node in this process or as the real executable, and talks to it over DDS; all waiting is bounded."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import rclpy
import yaml
from builtin_interfaces.msg import Time
from lifecycle_msgs.srv import GetState
from rclpy.context import Context
from rclpy.executors import ExternalShutdownException
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

from memory_node.ros.executor import Spinner
from memory_node.ros.node import MemoryNode
from memory_node.ros.services import SERVICES
from support.domains import next_domain

ROOT = Path(__file__).resolve().parents[2]
TYPES = {spec.name: spec.type for spec in SERVICES}
QUIET: dict[str, Any] = {
    "embedder": {"model": ""},
    "markers_period": 0.0,
    "diagnostics_period": 0.0,
    "fold_repeats": False,
}
"""Parameters of a node that loads no model, publishes nothing by itself and makes a row of each message."""


def fresh_domain() -> None:
    """Begin a DDS domain of its own on this machine alone: what an earlier test leaves behind is not seen."""
    os.environ["ROS_DOMAIN_ID"] = str(next_domain())
    os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"


def wait_until(condition: Callable[[], Any], what: str, timeout: float = 10.0) -> Any:
    """Return the condition's first true value; fails the test after the timeout."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        if value := condition():
            return value
        time.sleep(0.02)
    return pytest.fail(f"after {timeout:.0f} s still not: {what}")


def parameter_file(folder: Path, parameters: dict[str, Any], name: str = "params.yaml") -> Path:
    """Write parameters for every node into a file."""
    path = folder / name
    path.write_text(yaml.safe_dump({"/**": {"ros__parameters": parameters}}), encoding="utf-8")
    return path


def layer(topic: str, type_name: str = "", **more: Any) -> dict[str, Any]:
    """Parameters of a layer without a limit of its rate."""
    return {"topic": topic, "type": type_name, "max_rate_hz": 0.0} | more


def stamp(seconds: float) -> Time:
    """builtin_interfaces/msg/Time."""
    sec, nanosec = divmod(round(seconds * 1e9), 1_000_000_000)
    return Time(sec=sec, nanosec=nanosec)


class Peer:
    """Another node of the robot: publishes, and asks the memory as a planner would."""

    def __init__(self, memory: str = "/memory") -> None:
        self.memory = memory
        self.context = Context()
        rclpy.init(context=self.context)
        self.node = rclpy.create_node("peer", context=self.context)
        self._spinner = Spinner(self.node, 2)
        self._publishers: dict[str, Any] = {}
        self._clients: dict[str, Any] = {}

    def close(self) -> None:
        self._spinner.close()
        self.node.destroy_node()
        rclpy.try_shutdown(context=self.context)

    def publisher(
        self, topic: str, kind: Any, reliable: bool = True, latched: bool = False, expect: bool = True
    ) -> Any:
        """Return the publisher of a topic; waits until the memory listens to it."""
        if topic not in self._publishers:
            qos = QoSProfile(
                depth=200,
                reliability=ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT,
                durability=DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE,
            )
            self._publishers[topic] = self.node.create_publisher(kind, topic, qos)
        publisher = self._publishers[topic]
        if expect:
            wait_until(lambda: publisher.get_subscription_count() > 0, f"somebody listens to {topic}")
        return publisher

    def publish(self, topic: str, *messages: Any, **qos: bool) -> None:
        publisher = self.publisher(topic, type(messages[0]), **qos)
        for message in messages:
            publisher.publish(message)

    def call(self, service: str, timeout: float = 15.0, memory: str = "", kind: Any = None, **fields: Any) -> Any:
        """Call `~/<service>` and return its response."""
        future = self.ask(service, timeout, memory, kind, **fields)
        wait_until(future.done, f"an answer of {memory or self.memory}/{service}", timeout)
        return future.result()

    def ask(self, service: str, timeout: float = 15.0, memory: str = "", kind: Any = None, **fields: Any) -> Any:
        """Call `~/<service>` once it is there, and return the future of its response."""
        kind, name = kind or TYPES[service], f"{memory or self.memory}/{service}"
        if name not in self._clients:
            self._clients[name] = self.node.create_client(kind, name)
        client = self._clients[name]
        assert client.wait_for_service(timeout), f"no service {name}"
        return client.call_async(kind.Request(**fields))

    def layer(self, name: str) -> Any:
        """LayerStatus of a layer."""
        status = self.call("get_status").status
        return next(found for found in status.layers if found.name == name)

    def rows(self, *layers: str, limit: int = 1000) -> list[Any]:
        """Matches of the layers, oldest first, once all that came is committed."""
        from robot_memory.msg import Filter

        assert self.call("flush").success
        found = self.call("temporal_query", filter=Filter(layers=list(layers)), order="oldest", limit=limit)
        assert found.success, found.message
        return list(found.matches)

    def wait_rows(self, number: int, *layers: str, timeout: float = 10.0) -> list[Any]:
        """Wait until so many rows are there, and return them."""
        rows: list[Any] = []

        def enough() -> bool:
            rows[:] = self.rows(*layers)
            return len(rows) >= number

        wait_until(enough, f"{number} rows of {layers}", timeout)
        return rows


@contextmanager
def peer(memory: str = "/memory") -> Iterator[Peer]:
    """A peer, closed at the end."""
    found = Peer(memory)
    try:
        yield found
    finally:
        found.close()


@contextmanager
def node_here(
    folder: Path, parameters: dict[str, Any], up: bool = True, embedder: Any = None, arguments: tuple[str, ...] = ()
) -> Iterator[MemoryNode]:
    """The node in this process, configured and active when `up`; its database lies in the folder."""
    fresh_domain()
    given = QUIET | {"db_path": str(folder / "memory.db")} | parameters
    context = Context()
    file = str(parameter_file(folder, given))
    rclpy.init(context=context, args=["test", "--ros-args", "--params-file", file, *arguments])
    try:
        node = MemoryNode(embedder=embedder, context=context)
        spinner = Spinner(node, 8)
        try:
            if up:
                assert node.bring_up(), node.failure
            yield node
        finally:
            spinner.close()
            node.close()
            node.destroy_node()
    except ExternalShutdownException:
        pass
    finally:
        rclpy.try_shutdown(context=context)


class Process:
    """The real executable."""

    def __init__(self, folder: Path, parameters: dict[str, Any] | Path, *arguments: str, name: str = "node") -> None:
        path = parameters if isinstance(parameters, Path) else parameter_file(folder, parameters, f"{name}.yaml")
        self.log = folder / f"{name}.log"
        self._log_file = self.log.open("wb")
        command = [str(executable()), "--ros-args", "--params-file", str(path), *arguments]
        environment = os.environ | {"ROS_HOME": str(folder / "ros_home")}
        self._process = subprocess.Popen(command, stdout=self._log_file, stderr=subprocess.STDOUT, env=environment)

    def send(self, number: int = signal.SIGTERM) -> None:
        self._process.send_signal(number)

    def wait(self, timeout: float = 20.0) -> int:
        """Exit code."""
        return self._process.wait(timeout)

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Stop by a signal; returns the exit code."""
        self.send(number)
        return self.wait()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    @property
    def output(self) -> str:
        return self.log.read_text("utf-8", "replace")

    def close(self) -> None:
        if self.running:
            self._process.kill()
            self._process.wait()
        self._log_file.close()


@contextmanager
def process(folder: Path, parameters: dict[str, Any] | Path, *arguments: str, name: str = "node") -> Iterator[Process]:
    """The real executable, killed at the end if it is still there."""
    started = Process(folder, parameters, *arguments, name=name)
    try:
        yield started
    finally:
        started.close()


def ready(other: Peer, started: Process) -> None:
    """Wait until the node is active; fails with its output when it ended."""

    def active() -> bool:
        assert started.running, started.output
        names = {name for name, _ in other.node.get_service_names_and_types()}
        if f"{other.memory}/get_state" not in names:
            return False
        answer, until = other.ask("get_state", kind=GetState), time.monotonic() + 2.0
        while not answer.done() and time.monotonic() < until:
            time.sleep(0.02)
        # Without an answer it is asked again: what the node answers before it has heard of the client is lost.
        return bool(answer.done() and answer.result().current_state.label == "active")

    wait_until(active, "the node is active", 30.0)


def executable() -> Path:
    """The installed entry point."""
    from ament_index_python.packages import get_package_prefix

    return Path(get_package_prefix("robot_memory")) / "lib" / "robot_memory" / "memory_node"
