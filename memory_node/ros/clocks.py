"""The node's clock, and a watch for one that never starts."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from rclpy.clock import Clock
from rclpy.node import Node
from rclpy.subscription import Subscription

from memory_node.ingest.clockwatch import TICKING

CLOCK_TOPIC = "/clock"
"""What rclpy listens to under use_sim_time."""

_PATIENCE = 3.0


class RosClock:
    """ROS time: wall time, or `/clock` under use_sim_time, which can be set at run time."""

    def __init__(self, clock: Clock, publisher: Callable[[], bytes | None] = lambda: None) -> None:
        """Args: publisher: the gid of the one that `/clock` came from last, None where that is not known."""
        self._clock = clock
        self._publisher = publisher

    @property
    def kind(self) -> str:
        """Either "ros" or "ros_sim", see `memory_node.ingest.clockwatch`."""
        return TICKING if self._clock.ros_time_is_active else "ros"

    @property
    def source(self) -> bytes | None:
        """Whose `/clock` it shows, None for wall time and where that is not known."""
        return self._publisher() if self._clock.ros_time_is_active else None

    def now_ns(self) -> int:
        """Nanoseconds; 0 while `/clock` has not begun."""
        now: int = self._clock.now().nanoseconds
        return now


def with_publisher(hear: Callable[[Any, bytes | None], None]) -> Callable[..., None]:
    """Return a callback of a subscription that gives a message and the gid of its publisher.

    rclpy of Humble gives nothing beside the message, and many later ones no gid; it is None then.
    """
    if not hasattr(Subscription, "CallbackType"):
        return lambda message: hear(message, None)

    def callback(message: Any, info: Any) -> None:
        gid = info.get("publisher_gid")
        hear(message, gid and gid["data"])

    return callback


class SilentClockWatch:
    """Warns once when `/clock` does not come, or no longer comes, under use_sim_time; a steady timer calls `look`."""

    def __init__(self, node: Node, clock: RosClock, ticks: Callable[[], int]) -> None:
        """Args: ticks: how many times `/clock` has come; the time itself stands still in a paused simulation."""
        self._node = node
        self._clock = clock
        self._ticks = ticks
        self._last = 0
        self._heard = time.monotonic()
        self._warned = False

    def look(self) -> str:
        """Return a warning while the clock is silent, else ""."""
        now, ticks, steady = self._clock.now_ns(), self._ticks(), time.monotonic()
        if ticks != self._last:
            self._last, self._heard, self._warned = ticks, steady, False
        silent = steady - self._heard > _PATIENCE
        if self._clock.kind != TICKING or (now > 0 and not silent):
            return ""
        if now > 0:
            warning = f"nothing comes on /clock any more: the time stands still at {now / 1e9:.3f} s"
        elif ticks:
            warning = "use_sim_time is true and /clock says 0: nothing is stored"
        else:
            warning = "use_sim_time is true and nothing publishes /clock: the time is 0 and nothing is stored"
        if silent and not self._warned:
            self._warned = True
            self._node.get_logger().warning(warning)
        return warning
