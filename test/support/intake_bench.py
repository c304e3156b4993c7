"""An intake on a bench: a clock that is set by hand, and a sink that keeps what it is given."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from memory_node.ingest.delivery import ODOMETRY
from memory_node.ingest.intake import Intake
from memory_node.ingest.layers import LayerSettings
from support import ros_messages as ros
from support.fakes import FakeClock
from support.sink import KeepingSink

STRING, DETECTIONS = "std_msgs/msg/String", "robot_memory/msg/DetectionArray"
GOAL = "geometry_msgs/msg/PoseStamped"
FLOAT, BATTERY, ODOM = "std_msgs/msg/Float32", "sensor_msgs/msg/BatteryState", "nav_msgs/msg/Odometry"


class Bench:
    """An intake without its thread: what was put is worked off by `work`."""

    def __init__(
        self, *layers: LayerSettings, seconds: float = 1000.0, clock_kind: str = "simulated", **more: Any
    ) -> None:
        self.clock = FakeClock(seconds)
        self.sink = KeepingSink(self.clock, clock_kind=clock_kind)
        odometry = LayerSettings(ODOMETRY, topic="/odom", max_rate_hz=0.0)
        self.intake = Intake(self.sink, [odometry, *layers], self.clock, **more)

    def say(self, text: str, layer: str = "scene") -> None:
        self.intake.put(layer, ros.string(text), STRING)

    def drive(self, x: float, y: float = 0.0, **more: Any) -> None:
        self.intake.put(ODOMETRY, ros.odometry(self.clock.ns / 1e9, x, y, **more), ODOM)

    def work(self) -> Bench:
        self.intake.drain()
        return self

    @property
    def texts(self) -> list[str]:
        return [row.text for row in self.sink.rows]

    def total(self, layer: str) -> int:
        counts = self.intake.counts[layer]
        return counts.taken + counts.thinned + counts.dropped + counts.refused


def scene(**more: Any) -> LayerSettings:
    """A layer of texts, not limited in its rate."""
    return LayerSettings("scene", topic="/scene", **{"max_rate_hz": 0.0, **more})


def body(**more: Any) -> LayerSettings:
    """A layer of the body, not limited in its rate."""
    return LayerSettings("battery", topic="/battery", is_internal_state=True, **{"max_rate_hz": 0.0, **more})


def seen(**more: Any) -> LayerSettings:
    """A layer of detections, not limited in its rate."""
    return LayerSettings("detections", topic="/detections", **{"max_rate_hz": 0.0, **more})


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait for a condition that a thread brings about."""
    done = threading.Event()
    for _ in range(500):
        if condition():
            return
        done.wait(0.01)
    pytest.fail("it did not come")


def cup(bench: Bench) -> Any:
    """A cup 2 m ahead of the camera, seen now."""
    return ros.own_array(bench.clock.ns / 1e9, "camera", ros.own("cup", 0.9, (2.0, 0.0, 0.0)))
