"""The node's clock, and a watch for one that never starts."""

from __future__ import annotations

import time

from rclpy.clock import Clock
from rclpy.node import Node

CLOCK_TOPIC = "/clock"
"""What rclpy listens to under use_sim_time."""

_PATIENCE = 3.0


class RosClock:
    """ROS time: wall time, or `/clock` under use_sim_time.

    Attributes:
        kind: "ros" or "sim", see `memory_node.ingest.clockwatch`.
    """

    def __init__(self, clock: Clock, simulated: bool) -> None:
        self._clock = clock
        self.kind = "sim" if simulated else "ros"

    def now_ns(self) -> int:
        """Nanoseconds; 0 while `/clock` has not begun."""
        now: int = self._clock.now().nanoseconds
        return now


class SilentClockWatch:
    """Warns once when use_sim_time is set and nothing publishes `/clock`. `look` is called on a steady timer."""

    def __init__(self, node: Node, clock: RosClock) -> None:
        self._node = node
        self._clock = clock
        self._since = time.monotonic()
        self._warned = False

    def look(self) -> str:
        """Return a warning while the clock is silent, else ""."""
        if self._clock.kind != "sim" or self._clock.now_ns() > 0:
            return ""
        warning = "use_sim_time is true and nothing publishes /clock: the time is 0 and nothing is stored"
        if not self._warned and time.monotonic() - self._since > _PATIENCE:
            self._warned = True
            self._node.get_logger().warning(warning)
        return warning
