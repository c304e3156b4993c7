"""Transforms by the real tf2, where it is installed: a robot that moves on a map that moves below it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from geometry_msgs.msg import Point, PointStamped, TransformStamped
from robot_memory.msg import Detection, DetectionArray
from support.ros_harness import layer, node_here, peer, stamp, wait_until

tf2_ros = pytest.importorskip("tf2_ros", reason="tf2_ros is not installed: there is no wheel of it")
HALF = 0.5**0.5
LEFT, DOWN = (0.0, 0.0, HALF, HALF), (0.0, HALF, 0.0, HALF)
"""Quarter turns about z and about y."""


def edge(parent: str, child: str, at: float, x: float, z: float, turn: tuple[float, ...]) -> TransformStamped:
    transform = TransformStamped(child_frame_id=child)
    transform.header.frame_id, transform.header.stamp = parent, stamp(at)
    transform.transform.translation.x, transform.transform.translation.z = x, z
    rotation = transform.transform.rotation
    rotation.x, rotation.y, rotation.z, rotation.w = turn
    return transform


def look(label: str, frame: str, at: float) -> DetectionArray:
    message = DetectionArray(detections=[Detection(label=label, has_position=True, position=Point(x=2.0, y=0.5))])
    message.header.frame_id, message.header.stamp = frame, stamp(at)
    return message


def test_real_tf2_places_what_it_can_and_tells_why_not_of_the_rest(tmp_path: Path) -> None:
    parameters: dict[str, Any] = {
        "layers": ["detections"],
        "detections": layer("/detections", "robot_memory/msg/DetectionArray"),
        "frame_timeout": 2.0,
    }
    now = float(int(time.time()))  # a float of today counts in steps of 0.2 µs
    start, end = now - 4.0, now + 1.0

    def expected(at: float, camera: bool) -> tuple[float, float, float]:
        """(2, 0.5, 0) in the camera, 1 m above the base, which looks down; odom is turned to the left in the map."""
        x, y, z = 2.0, 0.5, 1.0 if camera else 0.0
        x, y, z = z + (at - start), y, -x
        return -y + 2.0 * (at - start), x, z

    seen = {
        "past": ("camera", now - 1.25), "now": ("/camera", now), "base": ("base_link", now - 0.5),
        "ahead": ("camera", now + 1.5), "old": ("camera", now - 60.0),
        "unknown": ("gripper", now), "lost": ("island", now), "unturned": ("zero", now),
    }  # fmt: skip
    with node_here(tmp_path, parameters) as node, peer() as other:
        fixed = edge("base_link", "camera", 0.0, 0.0, 1.0, (0.0, 0.0, 0.0, 1.0))
        tf2_ros.StaticTransformBroadcaster(other.node).sendTransform(fixed)
        broadcaster = tf2_ros.TransformBroadcaster(other.node)
        wait_until(broadcaster.pub_tf.get_subscription_count, "one listens to /tf")
        for at in (start, end):
            passed = at - start
            moving = edge("map", "odom", at, 2.0 * passed, 0.0, LEFT), edge("odom", "base_link", at, passed, 0.0, DOWN)
            odd = edge("sea", "island", at, 0.0, 0.0, LEFT), edge("map", "zero", at, 0.0, 0.0, (0.0,) * 4)
            broadcaster.sendTransform([*moving, *odd])
        for label, (frame, at) in seen.items():
            other.publish("/detections", look(label, frame, at))
        wait_until(lambda: node._rooms.intake.counts["detections"].taken == len(seen), "all are stored")
        rows = {row.text: row for row in other.rows("detections")}
        for label in ("past", "now", "base"):
            frame, at = seen[label]
            point = rows[label].position.point
            assert (point.x, point.y, point.z) == pytest.approx(expected(at, "camera" in frame), abs=1e-6), label
        assert not any(rows[label].has_position for label in ("ahead", "old", "unknown", "lost", "unturned"))
        assert sorted(other.layer("detections").left_out) == [
            "frame 'gripper' unknown: 1",
            "frame 'island' not connected to 'map': 1",
            "frame 'zero' unknown: 1",
            "older than what tf2 keeps of frame 'camera': 1",
            "transform of frame 'camera' too late: 1",
        ]
        center = PointStamped(point=Point(x=2.0, y=0.5))
        center.header.frame_id = "base_link"
        newest = other.call("spatial_query", center=center, radius=0.1)
        x, y, _ = expected(end, False)
        assert newest.success and f"({x:.2f}, {y:.2f})" in newest.text
        shelf = edge("map", "shelf", 0.0, 3.0, 0.0, LEFT)
        tf2_ros.StaticTransformBroadcaster(other.node).sendTransform(shelf)
        wait_until(lambda: node._rooms.resolver.transform("shelf", round(now * 1e9), None), "the shelf is known")
        node._rooms.resolver.reset()
        other.publish("/detections", look("book", "shelf", now), look("gone", "camera", now))
        wait_until(lambda: node._rooms.intake.counts["detections"].taken == len(seen) + 2, "both are stored")
        rows = {row.text: row for row in other.rows("detections")}
        point = rows["book"].position.point
        assert (point.x, point.y) == pytest.approx((2.5, 2.0)) and not rows["gone"].has_position
