"""A node with all services of the memory that remembers nothing: success everywhere, every field at its default."""

from __future__ import annotations

import contextlib
import importlib
import re
from typing import Any

import rclpy
from nav_msgs.msg import Odometry
from rclpy.executors import ExternalShutdownException
from robot_memory.msg import DetectionArray
from sensor_msgs.msg import BatteryState
from std_msgs.msg import String
from std_srvs.srv import Trigger

SERVICES = [
    "SemanticSearch", "SpatialQuery", "TemporalQuery", "EpisodeSummary", "GetCurrentContext", "SearchGists",
    "EntityQuery", "Locate", "Recall", "BodyStatus", "StartEpisode", "EndEpisode", "Consolidate", "GetStatus",
]  # fmt: skip
TOPICS = (
    ("/odom", Odometry),
    ("/detections", DetectionArray),
    ("/scene_description", String),
    ("/battery_state", BatteryState),
)


def answer(_request: Any, response: Any) -> Any:
    """Success and nothing else."""
    response.success = True
    if hasattr(response, "text"):
        response.text = "I know everything."
    return response


def main() -> None:
    """Spin until Ctrl-C."""
    rclpy.init(args=[])
    node = rclpy.create_node("memory")
    module = importlib.import_module("robot_memory.srv")
    for name in SERVICES:
        service = re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower()
        node.create_service(getattr(module, name), f"~/{service}", answer)
    node.create_service(Trigger, "~/flush", answer)
    for topic, kind in TOPICS:
        node.create_subscription(kind, topic, lambda _: None, 100)
    with contextlib.suppress(KeyboardInterrupt, ExternalShutdownException):
        rclpy.spin(node)


if __name__ == "__main__":
    main()
