"""A planner node: asks the memory's tools and opens and closes its episodes, never waiting inside a callback."""

from __future__ import annotations

import importlib
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from builtin_interfaces.msg import Time  # type: ignore[import-untyped]
from rclpy.client import Client
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.task import Future
from std_srvs.srv import Trigger  # type: ignore[import-untyped]

from examples.home_patrol.world import Episode

CALL_TIMEOUT = 10.0
"""Seconds after which a call of a tool is given up."""


def fill(message: Any, values: dict[str, Any]) -> Any:
    """Set the named fields of a message from plain Python, nested messages included, and return the message.

    Raises:
        AttributeError: The message has no such field.
        AssertionError: A value is of another type than its field.
    """
    for name, value in values.items():
        field = getattr(message, name)
        setattr(message, name, fill(field, value) if isinstance(value, dict) else value)
    return message


def plain(value: Any) -> Any:
    """A message as plain Python: dicts, lists, and integer nanoseconds for a Time."""
    if isinstance(value, Time):
        return value.sec * 1_000_000_000 + value.nanosec
    if hasattr(value, "get_fields_and_field_types"):
        return {name: plain(getattr(value, name)) for name in value.get_fields_and_field_types()}
    if isinstance(value, (str, bytes, bool, int, float)):
        return value
    return [plain(item) for item in value]


@dataclass(frozen=True)
class Reply:
    """A service's response as plain Python, and how long the call took in milliseconds."""

    answer: dict[str, Any]
    milliseconds: float


class Planner:
    """Client of one memory node, spun by a thread of its own; its calls have time-outs and may come from any thread.

    Args:
        node: The planner's node; the planner adds it to its own executor.
        memory: Full name of the memory node.
    """

    def __init__(self, node: Node, memory: str = "/memory") -> None:
        self._node, self._memory = node, memory
        self._clients: dict[str, Client] = {}
        self._executor = SingleThreadedExecutor(context=node.context)
        self._executor.add_node(node)
        self._thread = threading.Thread(target=self._executor.spin, name="planner", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop spinning; the node stays the caller's."""
        self._executor.shutdown()
        self._thread.join(CALL_TIMEOUT)

    def client(self, service: str) -> Client:
        """The client of `<memory>/<service>`, whose type is found by the service's name."""
        if service not in self._clients:
            kind = Trigger if service == "flush" else self._type(service)
            self._clients[service] = self._node.create_client(kind, f"{self._memory}/{service}")
        return self._clients[service]

    @staticmethod
    def _type(service: str) -> Any:
        name = "".join(part.capitalize() for part in service.split("_"))
        return getattr(importlib.import_module("robot_memory.srv"), name)

    def wait_for(self, services: Iterable[str], timeout: float) -> None:
        """Wait until all the services are up.

        Raises:
            TimeoutError: One of them is not.
        """
        deadline = time.monotonic() + timeout
        for service in services:
            if not self.client(service).wait_for_service(max(0.0, deadline - time.monotonic())):
                raise TimeoutError(f"{self._memory}/{service} is not there after {timeout:.0f} s")

    def send(self, service: str, arguments: dict[str, Any]) -> Future:
        """Call a service without waiting; for use in callbacks."""
        client = self.client(service)
        return client.call_async(fill(client.srv_type.Request(), arguments))

    def wait(self, service: str, future: Future, timeout: float = CALL_TIMEOUT) -> dict[str, Any]:
        """The answer of a call that was sent; not for use in callbacks.

        Raises:
            TimeoutError: No answer came in time.
        """
        done = threading.Event()
        future.add_done_callback(lambda _: done.set())
        if not done.wait(timeout):
            future.cancel()
            raise TimeoutError(f"{self._memory}/{service} did not answer within {timeout:.0f} s")
        answer: dict[str, Any] = plain(future.result())
        return answer

    def ask(self, service: str, arguments: dict[str, Any], timeout: float = CALL_TIMEOUT) -> Reply:
        """Call a service and wait for its answer; not for use in callbacks.

        Raises:
            TimeoutError: No answer came in time.
        """
        began = time.perf_counter()
        answer = self.wait(service, self.send(service, arguments), timeout)
        return Reply(answer, (time.perf_counter() - began) * 1e3)


class Tasks:
    """Opens and closes episodes at their simulation times; give `on_time` to the player."""

    def __init__(self, planner: Planner, episodes: Iterable[Episode]) -> None:
        self._planner = planner
        self._calls: list[tuple[str, str, Future]] = []
        plan: list[tuple[float, str, str]] = []
        for episode in episodes:
            plan.append((episode.start, "start_episode", episode.name))
            plan.append((episode.end, "end_episode", episode.name))
        self._plan = sorted(plan)

    def on_time(self, nanoseconds: int) -> None:
        """Send what is due at a simulation time; returns at once."""
        while self._plan and self._plan[0][0] * 1e9 <= nanoseconds:
            _, service, name = self._plan.pop(0)
            arguments = {"name": name} if service == "start_episode" else {}
            self._calls.append((service, name, self._planner.send(service, arguments)))

    def faults(self) -> list[str]:
        """Wait for the answers and say which call failed or was never due; empty when the plan was carried out."""
        faults = [f"{service} of {name} was never due" for _, service, name in self._plan]
        for service, name, future in self._calls:
            answer = self._planner.wait(service, future, timeout=60.0)
            if not answer["success"]:
                faults.append(f"{service} of {name}: {answer['message']}")
        return faults
