"""Timers that tell how the memory is: `/diagnostics`, `~/markers` and logged warnings."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.clock import Clock, ClockType
from rclpy.exceptions import InvalidHandle
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.timer import Timer
from robot_memory.msg import LayerStatus
from visualization_msgs.msg import MarkerArray

from memory_node.errors import ClosedError, MemoryNodeError
from memory_node.ingest.intake import Intake
from memory_node.memory import Memory
from memory_node.ros.clocks import SilentClockWatch
from memory_node.ros.diagnostics import diagnostic_array, layer_statuses
from memory_node.ros.markers import MOST, line_of, looks_of, marker_array
from memory_node.ros.subscriptions import Subscriptions
from memory_node.status import MemoryStatus

if TYPE_CHECKING:
    from memory_node.ros.node import MemoryNode

_MINUTE = 60_000_000_000


def guarded(node: Node, callback: Callable[[], object]) -> Callable[[], None]:
    """Return a timer's callback that logs what goes wrong instead of ending the executor's spin."""

    def run() -> None:
        try:
            callback()
        except (ClosedError, InvalidHandle):
            pass  # the timer was on its way when the memory was closed, or its publisher destroyed
        except MemoryNodeError as error:
            node.get_logger().warning(str(error), throttle_duration_sec=30.0)
        except Exception:
            node.get_logger().error(traceback.format_exc(), throttle_duration_sec=30.0)

    return run


class Reporting:
    """Publishes on steady timers: under simulated time a ROS timer stands still whenever the clock does."""

    def __init__(
        self,
        node: MemoryNode,
        memory: Memory,
        intake: Intake,
        subscriptions: Subscriptions,
        clock_watch: SilentClockWatch,
    ) -> None:
        self._node = node
        self._memory = memory
        self._intake = intake
        self._subscriptions = subscriptions
        self._clock_watch = clock_watch
        self._shown: object = None
        steady, group = Clock(clock_type=ClockType.STEADY_TIME), MutuallyExclusiveCallbackGroup()
        latched = QoSProfile(
            depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL
        )
        self._diagnostics = node.create_publisher(DiagnosticArray, "/diagnostics", 10)
        self._markers = node.create_publisher(MarkerArray, "~/markers", latched)
        self._timers: list[Timer] = [node.create_timer(1.0, guarded(node, clock_watch.look), group, steady)]
        for name, report in (("diagnostics_period", self._diagnose), ("markers_period", self._mark)):
            if (period := node.parameters[name]) > 0.0:
                self._timers.append(node.create_timer(period, guarded(node, report), group, steady))

    def close(self) -> None:
        """Stop the timers and the publishers."""
        for timer in self._timers:
            self._node.destroy_timer(timer)
        self._node.destroy_publisher(self._diagnostics)
        self._node.destroy_publisher(self._markers)

    def layers(self, status: MemoryStatus) -> list[LayerStatus]:
        """The layers as the node sees them."""
        stored = {layer.name: layer for layer in status.layers}
        return layer_statuses(stored, self._intake.counts, self._subscriptions)

    def warnings(self) -> list[str]:
        """What needs attention besides what the memory itself and the layers say, a sentence each."""
        silent = self._clock_watch.look()
        return [silent] if silent else []

    def _diagnose(self) -> None:
        now, name = self._node.clock.now_ns(), self._node.get_fully_qualified_name()
        status, jobs = self._memory.status(), self._memory.jobs()
        self._diagnostics.publish(diagnostic_array(name, status, self.layers(status), jobs, self.warnings(), now))

    def _mark(self) -> None:
        now = self._node.clock.now_ns()
        entities = self._memory.entity_query(limit=MOST).entities
        gists = self._memory.search_gists(limit=MOST).gists
        path = self._memory.track.path(now - round(self._node.parameters["path_minutes"] * _MINUTE))
        line = line_of(path)
        shown = looks_of(entities, gists, line)
        if shown != self._shown:
            self._shown = shown
            self._markers.publish(marker_array(entities, gists, line, self._memory.settings.frame, now))
