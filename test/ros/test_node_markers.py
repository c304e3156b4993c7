"""`~/markers` changes when what it shows changes, and only then."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from geometry_msgs.msg import Point
from nav_msgs.msg import Odometry
from rclpy.qos import DurabilityPolicy, QoSProfile
from robot_memory.msg import Detection, DetectionArray
from support.ros_harness import Peer, layer, node_here, peer, stamp, wait_until
from visualization_msgs.msg import Marker, MarkerArray

from memory_node.graph import Entity, Gist
from memory_node.ros.markers import marker_array

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
PARAMETERS: dict[str, Any] = {
    "layers": ["detections"],
    "detections": layer("/detections", "robot_memory/msg/DetectionArray"),
    "markers_period": 0.1,
    "path_minutes": 0.05,
}


def listen(other: Peer, take: Callable[[MarkerArray], None]) -> None:
    other.node.create_subscription(MarkerArray, "/memory/markers", take, LATCHED)


def path(array: MarkerArray) -> list[float]:
    """Where the line has its corners, along x."""
    return [point.x for marker in array.markers if marker.ns == "path" for point in marker.points]


def labels(array: MarkerArray) -> list[str]:
    return [marker.text for marker in array.markers if marker.type == Marker.TEXT_VIEW_FACING]


def cup(**more: Any) -> Entity:
    seen = Entity(7, "cup", "cup", (1.0, 2.0, 0.5), "measured", 0.1, "map", 0, 0, 5, 0.9, tentative=False)
    return seen._replace(**more)


@pytest.mark.parametrize(
    ("entity", "label", "alpha"),
    [(cup(), "cup", 0.9), (cup(tentative=True), "cup", 0.4), (cup(missing=True), "cup (missing)", 0.4)],
)
def test_what_is_doubted_or_gone_is_pale_and_says_so(entity: Entity, label: str, alpha: float) -> None:
    _, sphere, text = marker_array([entity, cup(position=None)], [], [], "map", 0).markers
    assert (sphere.ns, sphere.id, sphere.color.a, text.text) == ("entities", 7, pytest.approx(alpha), label)


@pytest.mark.parametrize(("radius", "width"), [(1.5, 3.0), (0.0, 0.4)])
def test_a_disc_is_as_wide_as_its_gist(radius: float, width: float) -> None:
    gist = Gist(3, "chairs", ("seen",), 0, 0, 2, (1.0, 2.0, 0.7), "map", radius)
    _, disc = marker_array([], [gist, gist._replace(position=None)], [], "map", 0).markers
    assert (disc.scale.x, disc.scale.y, disc.pose.position.z) == (width, width, 0.0)


def test_markers_change_with_what_they_show_and_only_then(tmp_path: Path) -> None:
    with node_here(tmp_path, PARAMETERS) as _, peer() as other:
        arrays: list[MarkerArray] = []
        listen(other, arrays.append)

        def be_at(x: float) -> None:
            pose = Odometry(child_frame_id="base_link")
            pose.header.frame_id, pose.header.stamp = "map", stamp(time.time())
            pose.pose.pose.position.x, pose.pose.pose.orientation.w = x, 1.0
            other.publish("/odom", pose)
            time.sleep(0.1)

        def see(*names: str) -> None:
            found = [Detection(label=n, confidence=0.9, has_position=True, position=Point(x=1.0)) for n in names]
            look = DetectionArray(detections=found)
            look.header.frame_id, look.header.stamp = "map", stamp(time.time())
            other.publish("/detections", look)

        for i in range(12):
            be_at(0.5 * i)
        wait_until(lambda: arrays and len(path(arrays[-1])) > 1, "the path is shown")

        def stands() -> bool:
            be_at(5.5)
            return not path(arrays[-1])

        wait_until(stands, "the path of the last three seconds is one place")
        see("cup")
        wait_until(lambda: labels(arrays[-1]) == ["cup"], "the cup is shown")

        def solid() -> bool:
            see("cup")
            be_at(5.5)
            return any(marker.ns == "entities" and marker.color.a > 0.8 for marker in arrays[-1].markers)

        wait_until(solid, "it is believed once it was seen again")

        before = len(arrays)
        for _ in range(10):
            see("cup")
            be_at(5.5)
        assert len(arrays) == before, "the same cup, and a robot that stands"
        see("cup", "plate")
        wait_until(lambda: sorted(labels(arrays[-1])) == ["cup", "plate"], "the plate is shown as well")

        late: list[MarkerArray] = []
        listen(other, late.append)
        wait_until(lambda: late, "who comes late is told as well")
        assert sorted(labels(late[-1])) == ["cup", "plate"]
