"""One node with a layer of each kind takes in what peers publish."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Any

import pytest
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point
from nav_msgs.msg import Odometry
from rclpy.qos import QoSProfile, ReliabilityPolicy
from robot_memory.msg import Detection, DetectionArray
from sensor_msgs.msg import BatteryState, JointState
from std_msgs.msg import Empty, Float32, Float64, String
from support.ros_harness import Peer, layer, node_here, peer, stamp, wait_until

STRING = "std_msgs/msg/String"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, Peer]]:
    parameters = {
        "layers": [
            "scene",
            "speech",
            "found",
            "detections",
            "battery",
            "snapshot",
            "wrong",
            "unknown",
            "lone",
            "strict",
            "changing",
            "reasons",
            "joints",
            "mixed",
        ],
        "scene": layer("/scene", STRING),
        "speech": layer("/speech", STRING),
        "found": layer("/found"),
        "changing": layer("/changing"),
        "mixed": layer("/mixed", STRING),
        "joints": {"topic": "/joint_states", "max_rate_hz": 0.0, "stale_after": 123.0},
        "reasons": layer("/reasons", "robot_memory/msg/DetectionArray"),
        "detections": layer("/detections", "robot_memory/msg/DetectionArray"),
        "battery": layer("/battery", "sensor_msgs/msg/BatteryState", is_internal_state=True),
        "snapshot": layer("/snapshot", STRING, trigger="/shutter"),
        "wrong": layer("/wrong", STRING),
        "unknown": layer("/unknown", "no_such_msgs/msg/Thing"),
        "strict": layer("/strict", STRING, reliability="reliable"),
        "lone": layer("/scenes", STRING),
        "sensor_frames": {"camera": [0.5, 0.0, 1.0, 0.0, 0.0, 0.0]},
    }
    with node_here(tmp_path_factory.mktemp("ingest"), parameters) as node, peer() as other:
        yield node, other


def odometry(x: float, y: float = 0.0, at: Time | None = None, frame: str = "map") -> Odometry:
    message = Odometry(child_frame_id="base_link")
    message.header.frame_id, message.header.stamp = frame, at or stamp(time.time())
    message.pose.pose.position.x, message.pose.pose.position.y = x, y
    message.pose.pose.orientation.w = 1.0
    return message


def look(label: str, position: tuple[float, float, float] | None, frame: str = "map", at: Time | None = None) -> Any:
    seen = Detection(label=label, has_position=position is not None)
    if position:
        seen.position = Point(x=position[0], y=position[1], z=position[2])
    message = DetectionArray(detections=[seen])
    message.header.frame_id, message.header.stamp = frame, at or stamp(time.time())
    return message


def test_f24_before_odometry_the_place_of_a_text_is_unknown(world: tuple[Any, Peer]) -> None:
    _, other = world
    other.publish("/scene", String(data="a dark corridor"))
    row = other.wait_rows(1, "scene")[0]
    assert (row.text, row.has_position, row.position_source) == ("a dark corridor", False, "")
    assert row.stamp_source == "receive"


def test_a_text_lies_where_the_robot_was(world: tuple[Any, Peer]) -> None:
    node, other = world
    other.publish("/odom", odometry(1.0, 2.0))
    wait_until(lambda: node.memory.track.latest, "a pose")
    other.publish("/speech", String(data="hello robot"))
    row = other.wait_rows(1, "speech")[0]
    assert row.has_position and (row.position.point.x, row.position.point.y) == (1.0, 2.0)
    assert row.position.header.frame_id == "map" and row.position_source == "observer"


def test_f21_a_pose_that_is_not_finite_is_refused_and_the_last_good_one_kept(world: tuple[Any, Peer]) -> None:
    node, other = world
    refused = other.layer("odometry").refused
    other.publish("/odom", odometry(math.nan), odometry(math.inf), odometry(1e256))
    wait_until(lambda: other.layer("odometry").refused == refused + 3, "three poses refused")
    assert node.memory.track.latest.position == (1.0, 2.0, 0.0)


def test_detections_of_a_mounted_camera_become_places(world: tuple[Any, Peer]) -> None:
    _, other = world
    at = stamp(time.time())
    other.publish("/odom", odometry(10.0, 5.0, at))
    other.publish("/detections", look("cup", (2.0, 0.5, -0.2), "camera", at))
    row = other.wait_rows(1, "detections")[0]
    assert row.text == "cup" and row.position_source == "measured"
    assert (row.position.point.x, row.position.point.y, row.position.point.z) == pytest.approx((12.5, 5.5, 0.8))
    assert row.stamp == at and row.stamp_source == "header"


def test_f23_detections_in_an_unknown_frame_have_no_place(world: tuple[Any, Peer]) -> None:
    _, other = world
    other.publish("/detections", look("vase", (2.0, 0.5, -0.2), "gripper"))
    rows = wait_until(lambda: [r for r in other.rows("detections") if r.text == "vase"], "the vase")
    assert not rows[0].has_position
    assert "frame 'gripper' unknown: 1" in other.layer("detections").left_out


def test_f4_f5_insane_stamps_become_the_time_of_arrival(world: tuple[Any, Peer]) -> None:
    _, other = world
    now = time.time()
    refused = other.layer("detections").refused
    other.publish("/detections", look("lamp", None, at=Time()), look("clock", None, at=stamp(now + 3600.0)))
    other.publish("/detections", look("ghost", None, at=Time(sec=-1)))
    wait_until(lambda: other.layer("detections").refused == refused + 1, "the negative stamp refused")
    rows = {row.text: row for row in other.rows("detections")}
    assert rows["lamp"].stamp_source == "receive: stamp 0"
    assert rows["clock"].stamp_source == "receive: stamp ahead of the clock"
    for name in ("lamp", "clock"):
        assert abs(rows[name].stamp.sec - now) < 30
    assert "ghost" not in rows


def test_the_body_is_kept_apart(world: tuple[Any, Peer]) -> None:
    _, other = world
    other.publish("/battery", BatteryState(percentage=0.55, present=True, voltage=12.5))
    readings = wait_until(lambda: other.call("body_status").readings, "a reading")
    assert [(r.layer, r.unit) for r in readings] == [("battery", "fraction")]
    assert readings[0].value == pytest.approx(0.55) and "55 %" in readings[0].text
    assert all(row.layer != "battery" for row in other.rows())


def test_joints_are_of_the_body_also_when_their_type_is_found_out(world: tuple[Any, Peer]) -> None:
    node, other = world
    other.publish("/joint_states", JointState(name=["elbow"], position=[0.5]))
    assert other.rows("joints") == []
    readings = wait_until(lambda: other.call("body_status", layers=["joints"]).readings, "a reading")
    assert [(r.layer, r.text) for r in readings] == [("joints", "joints: elbow 0.50")]
    assert node.memory._rooms.context.stale_limits["joints"] == 123.0
    assert not node.has_parameter("joints.is_internal_state"), "read back it would be taken as given"


def test_f6_a_best_effort_publisher_is_heard(world: tuple[Any, Peer]) -> None:
    node, other = world
    publisher = other.publisher("/found", Float32, reliable=False)
    wait_until(lambda: not node._rooms.subscriptions["found"].reliable, "best effort")
    publisher.publish(Float32(data=21.5))
    row = other.wait_rows(1, "found")[0]
    assert row.text == "found: 21.5"
    assert other.layer("found").type == "std_msgs/msg/Float32"


def test_f6_publishers_of_both_kinds_are_heard_and_the_change_between_them_followed(world: tuple[Any, Peer]) -> None:
    node, other = world
    feed = node._rooms.subscriptions["mixed"]
    publishers: dict[str, Any] = {}

    def offer(kind: ReliabilityPolicy) -> Any:
        return other.node.create_publisher(String, "/mixed", QoSProfile(depth=50, reliability=kind))

    def say(text: str, reliable: bool) -> None:
        """Each publisher says something, which must arrive once they are listened to as fits them all."""
        wait_until(lambda: feed.reliable == reliable, f"reliable: {reliable}")
        wait_until(lambda: all(p.get_subscription_count() == 1 for p in publishers.values()), "all are listened to")
        for name, publisher in publishers.items():
            before = other.layer("mixed").received

            def heard(p: Any = publisher, said: str = f"{name} {text}", before: int = before) -> bool:
                p.publish(String(data=said))  # best effort: one may be lost
                return bool(other.layer("mixed").received > before)

            wait_until(heard, f"{name} is heard")

    publishers["reliable"] = offer(ReliabilityPolicy.RELIABLE)
    say("alone", reliable=True)
    publishers["best effort"] = offer(ReliabilityPolicy.BEST_EFFORT)
    say("both", reliable=False)
    other.node.destroy_publisher(publishers.pop("best effort"))
    say("alone again", reliable=True)
    texts = {row.text for row in other.rows("mixed")}
    assert texts == {"reliable alone", "reliable both", "best effort both", "reliable alone again"}
    wait_until(lambda: other.layer("mixed").problem == "", "nothing is wrong")
    other.node.destroy_publisher(publishers.pop("reliable"))


def test_f17_a_type_found_out_follows_its_publisher(world: tuple[Any, Peer]) -> None:
    _, other = world
    messages = (String(data="one"), STRING), (Float64(data=2.0), "std_msgs/msg/Float64")
    for number, (message, type_name) in enumerate(messages):
        publisher = other.node.create_publisher(type(message), "/changing", 10)
        wait_until(lambda name=type_name: other.layer("changing").type == name, "its type is found out")
        wait_until(lambda p=publisher: p.get_subscription_count() == 1, "it is listened to")
        publisher.publish(message)
        wait_until(lambda n=number: other.layer("changing").stored == n + 1, "it is stored")
        other.node.destroy_publisher(publisher)
        wait_until(lambda: other.layer("changing").publishers == 0, "it is gone")
    assert [row.text for row in other.rows("changing")] == ["one", "changing: 2"]


def test_what_was_refused_and_left_out_is_told_with_reasons(world: tuple[Any, Peer]) -> None:
    _, other = world
    other.publish("/reasons", DetectionArray(detections=[Detection(label="cup"), Detection(label="")]))
    other.publish("/reasons", DetectionArray(detections=[Detection(label="cup", confidence=2.0)]))
    wait_until(lambda: other.layer("reasons").refused == 1, "the second is refused")
    wait_until(lambda: other.layer("reasons").left_out, "a detection of the first is left out")
    layer = other.layer("reasons")
    assert layer.refused_because == ["every detection left out: confidence outside 0..1: 1"]
    assert layer.left_out == ["no label: 1", "stamp 0: 1"]
    wait_until(lambda: other.layer("reasons").problem == "", "its publisher is seen")
    assert "has no publisher" in other.layer("lone").problem


def test_f6_qos_that_does_not_fit_is_told_with_the_topic(world: tuple[Any, Peer]) -> None:
    _, other = world
    other.publisher("/strict", String, reliable=False, expect=False)
    said = "layer strict: a publisher of /strict offers best effort only; the layer asks for reliable"
    wait_until(lambda: said in other.call("get_status").status.warnings, "the fault is told")


def test_a_trigger_stores_the_newest(world: tuple[Any, Peer]) -> None:
    _, other = world
    other.publish("/snapshot", String(data="one"), String(data="two"))
    wait_until(lambda: other.layer("snapshot").received == 2, "both came")
    other.publish("/shutter", Empty())
    assert [row.text for row in other.wait_rows(1, "snapshot")] == ["two"]


def test_f17_faults_of_layers_are_told_and_do_no_harm(world: tuple[Any, Peer]) -> None:
    _, other = world
    other.publisher("/wrong", Float32, expect=False)
    other.publisher("/scene", String)

    def warnings() -> str:
        return "\n".join(other.call("get_status").status.warnings)

    wait_until(lambda: "/wrong is published as std_msgs/msg/Float32, not as std_msgs/msg/String" in warnings(), "told")
    assert "type no_such_msgs/msg/Thing cannot be read here" in warnings()
    assert "/scenes has no publisher; nearest topics: /scene" in warnings()


def test_f7_bytes_that_are_not_utf8_do_not_end_the_node(world: tuple[Any, Peer]) -> None:
    _, other = world
    publisher = other.publisher("/scene", String)
    text = b"caf\xe9\x00"
    publisher.publish(b"\x00\x01\x00\x00" + len(text).to_bytes(4, "little") + text)
    publisher.publish(String(data="still here"))
    texts = [row.text for row in other.wait_rows(3, "scene")]
    assert texts[-1] == "still here" and texts[-2] == "caf\ufffd"


def test_messages_add_up(world: tuple[Any, Peer]) -> None:
    node, other = world
    other.rows()
    for name, counts in node._rooms.intake.counts.items():
        assert counts.received == counts.taken + counts.thinned + counts.dropped + counts.refused, name
