"""Transforms of tf2, of which no wheel exists: a stand-in with the same calls listens to topics of the same names.

It takes single transforms straight into the memory's frame, each valid from its stamp to that of the next.
"""

from __future__ import annotations

import importlib
import math
import sys
import time
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from geometry_msgs.msg import Point, PointStamped, TransformStamped
from nav_msgs.msg import Odometry
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.time import Time
from robot_memory.msg import Detection, DetectionArray
from support.ros_harness import Peer, layer, node_here, peer, stamp, wait_until

from memory_node.ros import frames


class TransformException(Exception):
    """There is no transform."""


class LookupException(TransformException):
    """No such frame."""


class ExtrapolationException(TransformException):
    """The frame is not known at that time."""


class Buffer:
    """Keeps transforms by child frame."""

    def __init__(self) -> None:
        self.known: dict[str, list[TransformStamped]] = {}
        self.fixed: set[str] = set()

    def lookup_transform(self, target: str, source: str, when: Any) -> TransformStamped:
        for name in (target, source):
            if name not in (*self.known, "map" if self.known else ""):
                raise LookupException(f'"{name}" passed to lookupTransform argument … does not exist. ')
        known = self.known[source if target == "map" else target]  # the way back has the same stamps
        if when.nanoseconds == 0 or known[-1].child_frame_id in self.fixed:
            return known[-1]
        stamps = [Time.from_msg(transform.header.stamp).nanoseconds for transform in known]
        if not stamps[0] <= when.nanoseconds <= stamps[-1]:
            raise ExtrapolationException(source)
        return known[bisect_right(stamps, when.nanoseconds) - 1]

    def clear(self) -> None:
        self.known = {frame: known for frame, known in self.known.items() if frame in self.fixed}


class TransformListener:
    """Fills a buffer from /tf and /tf_static."""

    def __init__(self, buffer: Buffer, node: Any) -> None:
        self._buffer = buffer
        latched = QoSProfile(depth=100, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        node.create_subscription(TransformStamped, "/tf", self._take, 100)
        node.create_subscription(TransformStamped, "/tf_static", self._take_fixed, latched)

    def _take(self, transform: TransformStamped) -> None:
        self._buffer.known.setdefault(transform.child_frame_id, []).append(transform)

    def _take_fixed(self, transform: TransformStamped) -> None:
        self._buffer.fixed.add(transform.child_frame_id)
        self._take(transform)


@pytest.fixture
def tf2(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    module = ModuleType("tf2_ros")
    for name in (Buffer, TransformListener, TransformException, LookupException, ExtrapolationException):
        setattr(module, name.__name__, name)
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "tf2_ros", module)
        importlib.reload(frames)
        yield
    importlib.reload(frames)


PARAMETERS: dict[str, Any] = {
    "layers": ["detections"],
    "detections": layer("/detections", "robot_memory/msg/DetectionArray"),
    "frame_timeout": 60.0,
    "sensor_frames": {"camera": [0.5, 0.0, 1.0, 0.0, 0.0, 0.0]},
}


def look(label: str, frame: str, at: float) -> DetectionArray:
    found = Detection(label=label, confidence=0.9, has_position=True, position=Point(x=2.0))
    message = DetectionArray(detections=[found])
    message.header.frame_id, message.header.stamp = frame, stamp(at)
    return message


def arm(at: float, x: float = 7.0) -> TransformStamped:
    """The arm's frame, turned to the left by a quarter."""
    transform = TransformStamped(child_frame_id="arm")
    transform.header.frame_id, transform.header.stamp = "map", stamp(at)
    transform.transform.translation.x = x
    transform.transform.rotation.z = transform.transform.rotation.w = 0.5**0.5
    return transform


def places(other: Peer) -> dict[str, tuple[float, float] | None]:
    rows = other.rows("detections")
    return {r.text: (r.position.point.x, r.position.point.y) if r.has_position else None for r in rows}


@pytest.mark.usefixtures("tf2")
def test_f23_a_transform_that_is_late_is_waited_for_and_one_that_never_comes_is_told(tmp_path: Path) -> None:
    with node_here(tmp_path, PARAMETERS) as node, peer() as other:
        assert isinstance(node._rooms.resolver, frames.TfFrames)
        # What is sent before both sides know each other comes with a heartbeat, seconds later.
        other.publisher("/tf", TransformStamped)
        wait_until(lambda: node.count_publishers("/tf") == 1, "who sends transforms is known")
        now = time.time()
        other.publish("/detections", look("cup", "arm", now))
        wait_until(lambda: node._rooms.intake.waiting == 1, "it waits for its frame")
        other.publish("/tf", arm(now - 1.0), arm(now + 1.0))
        wait_until(lambda: node._rooms.resolver._buffer.known.get("arm", [])[1:], "tf2 knows the arm")
        wait_until(lambda: places(other).get("cup") == pytest.approx((7.0, 2.0)), "the cup has its place")
        node._change({"frame_timeout": 0.0})
        other.publish("/detections", look("vase", "gripper", now))
        wait_until(lambda: "vase" in places(other), "the vase is stored")
        assert places(other)["vase"] is None
        assert other.layer("detections").left_out == ["frame 'gripper' unknown: 1"]
        shelf = arm(0.0, x=3.0)
        shelf.child_frame_id = "shelf"
        other.publish("/tf_static", shelf, latched=True)
        wait_until(lambda: "shelf" in node._rooms.resolver._buffer.known, "tf2 knows the shelf")
        node._rooms.resolver.reset()
        other.publish("/detections", look("plate", "arm", now), look("book", "shelf", now))
        wait_until(lambda: {"plate", "book"} <= places(other).keys(), "both are stored")
        assert places(other)["plate"] is None, "after a jump of the clock the old transforms mean nothing"
        assert places(other)["book"] == pytest.approx((3.0, 2.0)), "but what is fixed stays so"


@pytest.mark.usefixtures("tf2")
def test_f23_the_base_is_where_tf2_says_of_which_the_pose_knows_only_the_yaw(tmp_path: Path) -> None:
    with node_here(tmp_path, PARAMETERS | {"odometry": {"topic": "/odom"}}) as node, peer() as other:
        now = time.time()
        odometry = Odometry(child_frame_id="base_link")
        odometry.header.frame_id, odometry.header.stamp = "map", stamp(now)
        odometry.pose.pose.orientation.w = 1.0
        other.publish("/odom", odometry)
        wait_until(lambda: node.memory.track.latest, "the pose is known")
        other.publish("/detections", look("cup", "base_link", now))
        wait_until(lambda: places(other).get("cup") == (2.0, 0.0), "without tf it is the pose that counts")
        nosed_up = arm(now - 1.0), arm(now + 1.0)
        for transform in nosed_up:
            transform.child_frame_id = "base_link"
            turn = transform.transform.rotation
            turn.y, turn.z = -math.sin(math.pi / 6.0), 0.0
            turn.w = math.cos(math.pi / 6.0)
        other.publish("/tf", *nosed_up)
        wait_until(lambda: node._rooms.resolver._buffer.known.get("base_link", [])[1:], "tf2 knows the base")
        other.publish("/detections", look("vase", "base_link", now))
        wait_until(lambda: places(other).get("vase") == pytest.approx((8.0, 0.0)), "pitched by a third of half a turn")


@pytest.mark.parametrize("pose_age", [0.0, 600.0])
@pytest.mark.usefixtures("tf2")
def test_a_center_takes_the_newest_transform_for_stale_after_however_long_a_pose_holds(
    tmp_path: Path, pose_age: float
) -> None:
    parameters = PARAMETERS | {"stale_after": 10.0, "position_max_age": pose_age}
    with node_here(tmp_path, parameters) as node, peer() as other:
        now = time.time()
        other.publish("/detections", look("cup", "map", now))
        other.wait_rows(1, "detections")
        other.publish("/tf", arm(now - 5.0), arm(now - 0.5, x=2.0))
        wait_until(lambda: node._rooms.resolver._buffer.known.get("arm", [])[1:], "tf2 knows the arm")
        center = PointStamped()
        center.header.frame_id = "arm"
        for at, problem in (
            (0.0, ""),
            (now, ""),
            (now - 4.0, "no match"),  # the arm was elsewhere then
            (now + 60.0, "transform of frame 'arm' too late"),
            (now - 60.0, "older than what tf2 keeps of frame 'arm'"),
            (-5.0, "older than what tf2 keeps of frame 'arm'"),
        ):
            center.header.stamp = stamp(at)
            found = other.call("spatial_query", center=center, radius=0.01)
            if not problem:
                assert [match.text for match in found.matches] == ["cup"], found
            elif problem == "no match":
                assert found.success and not found.matches
            else:
                assert found.message == f"center: frame 'arm' cannot be transformed to 'map': {problem}"


@pytest.mark.usefixtures("tf2")
def test_f8_tf_is_heard_in_a_node_of_its_own_that_ends_with_it(tmp_path: Path) -> None:
    with node_here(tmp_path, PARAMETERS) as node, peer() as other:
        for _ in range(3):
            wait_until(lambda: other.node.count_subscribers("/tf") == 1, "one listens")
            assert not {"/tf", "/tf_static"} & {subscription.topic_name for subscription in node.subscriptions}
            node.trigger_deactivate()
            node.trigger_cleanup()
            wait_until(lambda: other.node.count_subscribers("/tf") == 0, "nobody listens")
            assert node.bring_up(), node.failure


@pytest.mark.usefixtures("tf2")
def test_remaps_of_tf_hold(tmp_path: Path) -> None:
    with node_here(tmp_path, PARAMETERS, arguments=("-r", "/tf:=/robot1/tf")) as _, peer() as other:
        wait_until(lambda: other.node.count_subscribers("/robot1/tf") == 1, "the remapped topic is listened to")
        assert other.node.count_subscribers("/tf") == 0
