"""Real recordings played over DDS to the running executable."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sensor_msgs.msg import Range
from std_msgs.msg import Header, String
from support.bags import BAGS, messages, odometry_of
from support.ros_harness import layer, peer, process, ready, wait_until

from examples.home_patrol.player import play

pytestmark = [
    pytest.mark.process,
    pytest.mark.usefixtures("domain"),
    pytest.mark.skipif(not BAGS.is_dir(), reason=f"no recordings in {BAGS}"),
]


def parameters(folder: Path, odometry: str, **more: Any) -> dict[str, Any]:
    return {
        "db_path": str(folder / "memory.db"),
        "embedder": {"model": ""},
        "odometry": {"topic": odometry},
        "diagnostics_period": 0.0,
        "fold_repeats": False,
    } | more


def ranges_of(bag: str, topic: str, number: int) -> list[Range]:
    """The first messages of a topic of Range, as this distribution has them."""
    found = []
    for _, _, _, read in itertools.islice((m for m in messages(bag) if m[0] == topic), number):
        header = Header(frame_id=read.header.frame_id)
        header.stamp.sec, header.stamp.nanosec = read.header.stamp.sec, read.header.stamp.nanosec
        found.append(Range(header=header, range=read.range, min_range=read.min_range, max_range=read.max_range))
    return found


def test_turtlebot_each_text_lies_within_five_centimetres_of_the_recorded_pose(tmp_path: Path) -> None:
    bag = BAGS / "turtlebot3_walker_sim"
    given = parameters(
        tmp_path,
        "/odom",
        frame="odom",
        use_sim_time=True,
        layers=["scene", "scan"],
        scene=layer("/scene", "std_msgs/msg/String"),
        scan=layer("/scan", "sensor_msgs/msg/LaserScan"),
    )
    with process(tmp_path, given) as node, peer() as other:
        ready(other, node)
        said = other.publisher("/scene", String)
        ticks = [0]

        def on_time(nanoseconds: int) -> None:
            ticks[0] += 1
            if ticks[0] % 10 == 5:
                said.publish(String(data=f"view {ticks[0]}"))

        play(bag, 5.0, other.node, ("/clock", "/odom", "/scan"), on_time=on_time, wait_for=("/clock", "/odom", "/scan"))
        wait_until(lambda: other.layer("odometry").received == 543, "all odometry")
        assert other.layer("odometry").refused <= 15, "only what came before the clock"
        rows = other.wait_rows(ticks[0] // 10, "scene")
        assert len(rows) >= 17
        stamps, positions = odometry_of("turtlebot3_walker_sim", "/odom")
        for row in rows:
            stamp = row.stamp.sec * 1_000_000_000 + row.stamp.nanosec
            expected = [np.interp(stamp, stamps, positions[:, axis]) for axis in range(3)]
            point = row.position.point
            assert row.has_position and row.position.header.frame_id == "odom"
            assert math.dist((point.x, point.y, point.z), expected) < 0.05
        assert len(other.rows("scan")) >= 90
        assert node.stop() == 0, node.output


def test_cougars_a_vehicle_whose_topics_are_all_wrong(tmp_path: Path) -> None:
    given = parameters(
        tmp_path,
        "/coug2/odom",
        layers=["battery", "fix", "modem"],
        battery=layer("/coug2/battery/data", "sensor_msgs/msg/BatteryState", is_internal_state=True),
        fix=layer("/coug2/fix"),
        modem=layer("/coug2/modem_status", "seatrac_interfaces/msg/ModemStatus"),
    )
    with process(tmp_path, given) as node, peer() as other:
        ready(other, node)
        topics = ("/coug2/odom", "/coug2/battery/data", "/coug2/fix")
        played = play(BAGS / "cougars_auv_battery_short", 10.0, other.node, topics, wait_for=topics)
        wait_until(lambda: other.layer("battery").received == 334, "all readings")
        assert (other.layer("odometry").received, other.layer("odometry").refused) == (3, 3)
        reading = other.call("body_status").readings[0]
        assert math.isnan(reading.value) and "charge unknown" in reading.text
        assert reading.age < 60.0, "stamp 0 is the time of arrival"
        assert {row.stamp_source for row in other.rows("fix")} == {"receive: stamp too old"}
        warnings = other.call("get_status").status.warnings
        assert any("seatrac_interfaces/msg/ModemStatus cannot be read here" in warning for warning in warnings)
        assert not other.call("get_current_context").has_position and played.sent["/coug2/odom"] == 3
        assert node.stop() == 0, node.output


def test_plotjuggler_and_the_empty_bag(tmp_path: Path) -> None:
    given = parameters(
        tmp_path,
        "/pose",
        use_sim_time=True,
        layers=["battery"],
        battery=layer("/battery", "sensor_msgs/msg/BatteryState", is_internal_state=True),
    )
    given["odometry"]["type"] = "geometry_msgs/msg/PoseStamped"
    with process(tmp_path, given) as node, peer() as other:
        ready(other, node)
        play(BAGS / "plotjuggler_battery_imu_pose", 12.0, other.node, ("/pose", "/battery"))
        wait_until(lambda: other.layer("odometry").received > 1000, "poses")
        reading = other.call("body_status").readings[0]
        assert math.isnan(reading.value) and "charge unknown" in reading.text
        assert other.call("get_current_context").has_position
        assert sum(play(BAGS / "zero_messages_bag", 1.0, other.node).sent.values()) == 0
        assert node.stop() == 0, node.output


def test_webots_time_near_zero_and_bytes_of_an_older_distribution(tmp_path: Path) -> None:
    given = parameters(
        tmp_path,
        "/odom",
        frame="odom",
        use_sim_time=True,
        layers=["joints", "front", "read", "description"],
        joints=layer("/joint_states", "sensor_msgs/msg/JointState", is_internal_state=False),
        front=layer("/ps0", "sensor_msgs/msg/Range"),
        read=layer("/ps0_read", "sensor_msgs/msg/Range"),
        description=layer("/robot_description", durability="transient_local"),
    )
    with process(tmp_path, given) as node, peer() as other:
        ready(other, node)
        topics = ("/odom", "/joint_states", "/ps0", "/robot_description")
        play(BAGS / "webots_epuck_sim", 4.0, other.node, ("/clock", *topics), wait_for=("/clock", *topics))
        wait_until(lambda: other.layer("joints").received > 600, "joint states")
        rows = other.rows("joints")
        assert 0 <= rows[0].stamp.sec < 3 and rows[-1].stamp.sec <= 17 and len(rows) > 500
        assert all(row.stamp.sec + row.stamp.nanosec > 0 for row in rows)
        assert other.call("get_current_context").has_position
        # The robot describes itself twice, at first as an empty one, before there is a time to store that at.
        description = other.layer("description")
        assert (description.received, description.type) == (2, "std_msgs/msg/String")
        assert description.refused_because == ["the clock has not started: 2"]
        recorded = [m[3].data for m in messages("webots_epuck_sim") if m[0] == "/robot_description"]
        other.publish("/robot_description", *(String(data=text) for text in recorded), latched=True)
        rows = other.wait_rows(2, "description")
        assert [row.text for row in rows] == [text.strip()[:65_536] for text in recorded]
        assert rows[0].text == '<robot name=""><link name=""/></robot>' and 15 <= rows[0].stamp.sec <= 17
        # Range was recorded without the field `variance` that newer distributions have: then no byte of it can be read.
        front = other.layer("front")
        if "variance" in Range.get_fields_and_field_types():
            assert front.received > 500 and front.refused == front.received
            assert all(reason.startswith("not readable: ") for reason in front.refused_because)
        else:
            assert len(other.rows("front")) > 500
        # The same messages field by field: the first has stamp 0, and the clock stands at the end of the recording.
        other.publish("/ps0_read", *ranges_of("webots_epuck_sim", "/ps0", 3))
        rows = other.wait_rows(3, "read")
        assert sorted(row.stamp_source for row in rows) == ["header", "header", "receive: stamp 0"]
        unset = next(row for row in rows if row.stamp_source == "receive: stamp 0")
        assert 15 <= unset.stamp.sec <= 17 and all(row.stamp.sec == 0 for row in rows if row is not unset)
        assert node.stop() == 0, node.output
