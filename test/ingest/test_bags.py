"""Real recordings through the intake into a real memory: what is odd about each is handled."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import ros_messages as ros
from support.bags import BAGS, messages, odometry_of
from support.fakes import FakeClock

from memory_node.graph import Filter
from memory_node.ingest.converters.reading import origin_of
from memory_node.ingest.counts import MessageCounts
from memory_node.ingest.delivery import ODOMETRY
from memory_node.ingest.frames import StaticMounts
from memory_node.ingest.intake import Intake
from memory_node.ingest.layers import LayerSettings
from memory_node.memory import Memory

CLOCK = "/clock"
STRING = "std_msgs/msg/String"

pytestmark = pytest.mark.skipif(not BAGS.is_dir(), reason=f"no recordings in {BAGS}")


class Replay:
    """Plays a bag into a memory; the clock is the recorded one, or record time when there is none."""

    def __init__(self, folder: Path, frame: str, *layers: LayerSettings, mounts: Any = None) -> None:
        self.clock = FakeClock(0.0)
        self.memory = Memory.open(folder / "memory.db", clock=self.clock, settings={"frame": frame})
        resolver = StaticMounts(frame, "base_link", mounts)
        self.intake = Intake(self.memory, layers, self.clock, resolver, steady=self.clock.now_ns)

    def play(self, bag: str, say_every: int = 0) -> Replay:
        """Play; with say_every a sentence is said at each so many-th odometry message."""
        topics = {layer.topic: layer for layer in self.intake.layers.values()}
        simulated, spoken = any(topic == CLOCK for topic, *_ in messages(bag)), 0
        for topic, type_name, received, message in messages(bag):
            if topic == CLOCK:
                self.clock.ns = message.clock.sec * 1_000_000_000 + message.clock.nanosec
            elif not simulated:
                self.clock.ns = received
            if topic not in topics:
                continue
            self.intake.put(topics[topic].name, message, type_name)
            if say_every and topics[topic].name == ODOMETRY:
                spoken += 1
                if spoken % say_every == 0:
                    self.intake.put("scene", ros.string(f"view {spoken}"), STRING)
            # A text waits for nothing here, so poses are let in ahead of it.
            if self.intake.waiting > 500:
                self.intake.drain()
        self.intake.release()
        self.memory.flush()
        return self

    def counts(self, layer: str) -> MessageCounts:
        return self.intake.counts[layer]

    def rows(self, layer: str) -> list[Any]:
        found = self.memory.temporal_query(Filter(layers=(layer,)), order="oldest", limit=1000)
        return list(found.matches)


def layer(name: str, topic: str, **more: Any) -> LayerSettings:
    return LayerSettings(name, topic=topic, **({"max_rate_hz": 0.0} | more))


def odometry(topic: str) -> LayerSettings:
    return layer(ODOMETRY, topic)


def test_turtlebot_each_text_lies_on_the_recorded_path(tmp_path: Path) -> None:
    layers = odometry("/odom"), layer("scene", "/none"), layer("scan", "/scan"), layer("joints", "/joint_states")
    replay = Replay(tmp_path, "odom", *layers).play("turtlebot3_walker_sim", say_every=20)
    assert replay.counts(ODOMETRY).received == 543
    refusals = replay.counts(ODOMETRY).refusals
    stamps, positions = odometry_of("turtlebot3_walker_sim", "/odom")
    rows = replay.rows("scene")
    assert len(rows) >= 25 and set(refusals) <= {"the clock has not started"}
    for row in rows:
        expected = [np.interp(row.stamp, stamps, positions[:, axis]) for axis in range(3)]
        assert math.dist(row.position, expected) < 0.05
        assert 4203 <= row.stamp / 1e9 <= 4222 and row.frame == "odom"
    scans = replay.rows("scan")
    assert len(scans) >= 91 and all(" m" in row.text for row in scans)


def test_turtlebot_what_is_infinitely_far_is_free(tmp_path: Path) -> None:
    scans = [message for topic, _, _, message in messages("turtlebot3_walker_sim") if topic == "/scan"]
    free = {origin_of(scan).stamp: np.isinf(scan.ranges[scan.ranges >= scan.range_min]) for scan in scans}
    assert sum(int(far.sum()) for far in free.values()) == 2571
    rows = Replay(tmp_path, "odom", layer("scan", "/scan")).play("turtlebot3_walker_sim").rows("scan")
    assert len(rows) >= 91 and len({row.text for row in rows}) > 50
    told = [float(row.text.removesuffix(" % of the view free").rpartition(", ")[2]) for row in rows]
    assert told == pytest.approx([100.0 * free[row.stamp].mean() for row in rows], abs=0.51)


def test_cougars_nan_odometry_stamp_zero_and_an_absent_battery(tmp_path: Path) -> None:
    layers = (
        odometry("/coug2/odom"),
        layer("battery", "/coug2/battery/data", is_internal_state=True),
        layer("fix", "/coug2/fix"),
        layer("safety", "/coug2/safety_status"),
        layer("depth", "/coug2/pressure/data", fields=("fluid_pressure",), max_rate_hz=2.0),
    )
    replay = Replay(tmp_path, "gps", *layers).play("cougars_auv_battery_short")
    assert dict(replay.counts(ODOMETRY).refusals) == {"position not finite or out of range": 3}
    battery = replay.memory.body_status(["battery"]).readings[0]
    assert battery.value is None and "charge unknown" in battery.text and " V" in battery.text
    assert replay.counts("battery").taken == 334 and battery.stamp / 1e9 > 1_744_320_598
    fixes = replay.rows("fix")
    # Its clock was never set: the stamps are six days behind.
    assert {row.stamp_source for row in fixes} == {"receive: stamp too old"}
    assert len(fixes) + replay.counts("fix").refused == 29 and replay.counts("fix").refused == 3
    assert all(row.position is None and row.stamp / 1e9 > 1_744_320_598 for row in fixes)
    assert len(replay.rows("safety")) == 3
    depth = replay.counts("depth")
    assert depth.taken + depth.thinned == depth.received == 201 and depth.taken < 40


def test_cougars_odometry_twenty_kilometres_away_is_legal(tmp_path: Path) -> None:
    layers = odometry("/coug2/gps_odom"), layer("safety", "/coug2/safety_status")
    replay = Replay(tmp_path, "map", *layers).play("cougars_auv_battery_short")
    assert replay.counts(ODOMETRY).taken == 11
    latest = replay.memory.track.latest
    assert latest is not None
    assert latest.position[:2] == pytest.approx((12_086, -18_569), abs=100)


def test_plotjuggler_eight_is_not_eight_hundred_percent(tmp_path: Path) -> None:
    layers = odometry("/pose"), layer("battery", "/battery", is_internal_state=True)
    replay = Replay(tmp_path, "map", *layers).play("plotjuggler_battery_imu_pose")
    assert replay.counts(ODOMETRY).taken == 1565
    battery = replay.memory.body_status(["battery"]).readings[0]
    assert battery.value is None and "charge unknown" in battery.text


def test_plotjuggler_with_the_scale_of_percent_it_is_eight_percent(tmp_path: Path) -> None:
    battery = layer("battery", "/battery", is_internal_state=True, percentage_scale=100.0)
    replay = Replay(tmp_path, "map", battery).play("plotjuggler_battery_imu_pose")
    reading = replay.memory.body_status(["battery"]).readings[0]
    assert reading.value == pytest.approx(0.08) and "8 %" in reading.text


def test_webots_simulation_time_near_zero_is_legal_and_zero_falls_back(tmp_path: Path) -> None:
    layers = odometry("/odom"), layer("front", "/ps0"), layer("description", "/robot_description")
    replay = Replay(tmp_path, "odom", *layers).play("webots_epuck_sim")
    assert replay.counts(ODOMETRY).received == 780
    front = replay.counts("front")
    assert front.taken + front.refused == front.received == 809
    # Before the clock begins there is no time to tell; one of these messages is the one with stamp 0.
    assert set(front.refusals) <= {"the clock has not started"} and front.refused < 10
    rows = replay.rows("front")
    stamps = [row.stamp / 1e9 for row in rows]
    assert 0.0 < min(stamps) < 1.0 and max(stamps) < 17.0
    assert {row.stamp_source for row in rows} <= {"header", "receive: stamp 0"}


def test_webots_names_with_blanks_are_names(tmp_path: Path) -> None:
    wheel = next(
        transform
        for topic, _, _, message in messages("webots_epuck_sim")
        if topic.startswith("/tf")
        for transform in message.transforms
        if transform.child_frame_id == "left wheel"
    )
    at = wheel.transform.translation
    assert wheel.header.frame_id == "base_link" and abs(at.y) > 0.01
    layers = odometry("/odom"), layer("joints", "/joint_states"), layer("seen", "/none")
    replay = Replay(tmp_path, "odom", *layers, mounts={"left wheel": [at.x, at.y, at.z, 0.0, 0.0, 0.0]})
    replay.play("webots_epuck_sim")
    joints = [row.text for row in replay.rows("joints")]
    assert joints[0] == "joints: right wheel motor 0.00, left wheel motor 0.00"
    assert all(text.startswith("joints: right wheel motor ") and ", left wheel motor " in text for text in joints)
    pose = replay.memory.track.latest
    assert pose is not None and pose.yaw is not None
    mud = ros.own_array(pose.stamp / 1e9, "left wheel", ros.own("mud", 0.9, (0.0, 0.0, 0.0)))
    replay.intake.put("seen", mud, "robot_memory/msg/DetectionArray")
    replay.intake.drain()
    replay.memory.flush()
    x, y, z = pose.position
    sin, cos = math.sin(pose.yaw), math.cos(pose.yaw)
    expected = x + cos * at.x - sin * at.y, y + sin * at.x + cos * at.y, z + at.z
    assert replay.rows("seen")[0].position == pytest.approx(expected)


def test_the_empty_bag_ends_cleanly(tmp_path: Path) -> None:
    replay = Replay(tmp_path, "map", odometry("/odom")).play("zero_messages_bag")
    assert replay.counts(ODOMETRY).received == 0 and replay.memory.status().observations == 0
