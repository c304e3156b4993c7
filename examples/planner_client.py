"""How a planner asks the memory from inside its callbacks, without ever waiting there.

`MemoryClient.ask` takes a tool's name and JSON arguments, as a language model gives them, and returns a future that is
always done in time. From a shell: `python -m examples.planner_client locate '{"concept": "cup"}'`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from typing import Any

import rclpy
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point, PointStamped
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.task import Future
from robot_memory import srv

SERVICES: dict[str, Any] = {
    "semantic_search": srv.SemanticSearch,
    "spatial_query": srv.SpatialQuery,
    "temporal_query": srv.TemporalQuery,
    "episode_summary": srv.EpisodeSummary,
    "get_current_context": srv.GetCurrentContext,
    "search_gists": srv.SearchGists,
    "entity_query": srv.EntityQuery,
    "locate": srv.Locate,
    "recall": srv.Recall,
    "body_status": srv.BodyStatus,
    "store_specific_memory": srv.StoreMemory,
    "start_episode": srv.StartEpisode,
    "end_episode": srv.EndEpisode,
}
"""The tools that `memory tools` describes, by name."""


class MemoryClient:
    """Asks one memory node. Nothing here spins or waits, so it may be used in any callback of a node that is spun.

    Args:
        node: the planner's node.
        memory: full name of the memory node.
        timeout: s of the steady clock after which a question is given up.
    """

    def __init__(self, node: Node, memory: str = "/memory", timeout: float = 5.0) -> None:
        self._node, self._memory, self._timeout = node, memory, timeout
        # A group of its own: the callback that awaits an answer does not keep the answer or the time-out from coming.
        self._group = ReentrantCallbackGroup()
        self._steady = Clock(clock_type=ClockType.STEADY_TIME)  # ROS time may stand still
        self._clients = {
            name: node.create_client(kind, f"{memory}/{name}", callback_group=self._group)
            for name, kind in SERVICES.items()
        }

    def ask(self, tool: str, arguments: Mapping[str, Any] | None = None) -> Future:
        """Ask and return at once.

        Returns:
            A future of the answer's text, or of "Error: ..." when the call was refused, failed or came too late.
            It never raises: hand the text to the language model, which can mend its arguments.
        """
        answer = Future()
        if tool not in SERVICES:
            return _done(answer, f"Error: no tool {tool!r}; there are {', '.join(SERVICES)}")
        client = self._clients[tool]
        try:
            request = fill(SERVICES[tool].Request(), arguments or {})
        except (AttributeError, AssertionError, TypeError, ValueError) as error:
            return _done(answer, f"Error: {tool}: {error}")
        if not client.service_is_ready():
            return _done(answer, f"Error: {self._memory}/{tool} is not there")
        call = client.call_async(request)
        timer = self._node.create_timer(self._timeout, call.cancel, self._group, self._steady)

        def finish(call: Future) -> None:
            self._node.destroy_timer(timer)
            late = f"Error: {self._memory}/{tool} did not answer within {self._timeout:g} s"
            _done(answer, late if call.cancelled() else text_of(call.result()))

        call.add_done_callback(finish)
        return answer

    def wait_for(self, tool: str, timeout: float) -> bool:
        """Wait until the memory is there; before spinning, never in a callback."""
        return bool(self._clients[tool].wait_for_service(timeout))


def fill(message: Any, arguments: Mapping[str, Any]) -> Any:
    """Set the fields of a request from JSON and return it.

    [x, y, z], or [x, y] of a region, is a point in the memory's frame, a number as a time is Unix seconds, null leaves
    a default.

    Raises:
        AttributeError, AssertionError, TypeError, ValueError: no such field, or a value that does not fit.
    """
    for name, value in arguments.items():
        field = getattr(message, name)
        if value is None:
            continue
        if isinstance(field, PointStamped):
            least = 2 if hasattr(message, "use_z") else 3
            if not least <= len(value) <= 3:
                raise ValueError(f"{name}: got {value}, allowed is {'[x, y] or ' if least == 2 else ''}[x, y, z]")
            field.point = Point(**{axis: float(number) for axis, number in zip("xyz", value, strict=False)})
            for flag, on in (("use_z", len(value) > 2), ("has_position", True)):
                if hasattr(message, flag):
                    setattr(message, flag, on)
        elif isinstance(field, Time):
            field.sec, field.nanosec = divmod(round(float(value) * 1e9), 1_000_000_000)
        elif name == "metadata":
            message.metadata = json.dumps(value)
        elif isinstance(value, Mapping):
            fill(field, value)
        else:
            setattr(message, name, type(field)(value))
    return message


def text_of(response: Any) -> str:
    """A response as one text."""
    if not response.success:
        return f"Error: {response.message}"
    if hasattr(response, "text"):
        return str(response.text)
    return f"Done: #{response.id}. {getattr(response, 'summary', '')}".strip()


def _done(future: Future, text: str) -> Future:
    future.set_result(text)
    return future


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line; returns 0 when the memory answered."""
    parser = argparse.ArgumentParser(description="Ask a memory node one question.")
    parser.add_argument("tool", choices=SERVICES, metavar="TOOL", help=", ".join(SERVICES))
    parser.add_argument("arguments", nargs="?", default="{}", type=json.loads, help="JSON object")
    parser.add_argument("--memory", default="/memory", help="full name of the node (default %(default)s)")
    options = parser.parse_args(arguments)
    rclpy.init()
    node = rclpy.create_node("planner_client")
    client = MemoryClient(node, options.memory)
    client.wait_for(options.tool, 5.0)
    answer = client.ask(options.tool, options.arguments)
    rclpy.spin_until_future_complete(node, answer)  # main is no callback
    print(answer.result())
    node.destroy_node()
    rclpy.try_shutdown()
    return int(answer.result().startswith("Error:"))


if __name__ == "__main__":
    raise SystemExit(main())
