"""From messages to answers: what a sensor does not know is told as unknown, and makes nothing happen."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from support import ros_messages as ros
from support.fakes import FakeClock

from memory_node.ingest.delivery import ODOMETRY
from memory_node.ingest.intake import Intake
from memory_node.ingest.layers import LayerSettings
from memory_node.memory import Memory

BATTERY, ODOM = "sensor_msgs/msg/BatteryState", "nav_msgs/msg/Odometry"
DETECTIONS = "robot_memory/msg/DetectionArray"


@pytest.mark.parametrize(
    ("percentage", "present", "told"),
    [(0.0, False, []), (math.nan, True, []), (0.1, True, ["battery dropped from 80% to 10%"])],
)
def test_f20_a_battery_that_is_not_there_is_no_event(
    tmp_path: Path, percentage: float, present: bool, told: list[str]
) -> None:
    clock = FakeClock()
    battery = LayerSettings("battery", topic="/battery", is_internal_state=True, max_rate_hz=0.0)
    with Memory.open(tmp_path / "memory.db", clock=clock) as memory:
        intake = Intake(memory, [battery], clock)
        for value, there in [(0.8, True)] * 60 + [(percentage, present)] * 120:
            intake.put("battery", ros.make(BATTERY, percentage=value, present=there), BATTERY)
            clock.advance(1.0)
            intake.drain()
        memory.flush()
        assert intake.counts["battery"].taken == 180
        events = [match.text for match in memory.temporal_query(limit=100).matches]
        assert len(events) == len(told) and all(a.startswith(b) for a, b in zip(events, told, strict=True)), events
        reading = memory.body_status(["battery"]).readings[0]
        unknown = not told
        assert (reading.value is None) is unknown and ("charge unknown" in reading.text) is unknown


def test_f22_without_a_heading_no_side_is_told(tmp_path: Path) -> None:
    clock = FakeClock()
    layers = [
        LayerSettings(ODOMETRY, topic="/odom", max_rate_hz=0.0),
        LayerSettings("detections", topic="/detections", max_rate_hz=0.0),
    ]
    with Memory.open(tmp_path / "memory.db", clock=clock) as memory:
        intake = Intake(memory, layers, clock)
        for turn in ((0.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0)):
            clock.advance(1.0)
            now = clock.ns / 1e9
            intake.put(ODOMETRY, ros.odometry(now, 1.0, 1.0, turn=turn), ODOM)
            for i in range(3):
                cup = ros.own("cup", 0.9, (1.0, 3.0, 0.0))
                intake.put("detections", ros.own_array(now - 0.5 + 0.1 * i, "map", cup), DETECTIONS)
            intake.drain()
            memory.flush()
            context = memory.get_current_context()
            known = turn != (0.0, 0.0, 0.0, 0.0)
            assert (context.heading == 0.0) if known else context.heading is None
            assert ("heading unknown" in context.text) is not known
            assert ("left" in context.text) is known and "nan" not in context.text.lower()
            assert "cup" in context.text and "2.0 m" in context.text


@pytest.mark.parametrize(
    ("score", "label", "missing"),
    [(0.9, "cup", False), (0.3, "cup", True), (0.9, "person", True), (math.nan, "x", False)],
)
def test_looks_of_which_the_settings_leave_nothing_show_that_a_thing_is_gone(
    tmp_path: Path, score: float, label: str, missing: bool
) -> None:
    clock, at = FakeClock(), (2.0, 0.0, 0.5)
    found = LayerSettings("found", topic="/found", min_confidence=0.5, label_map=("person:",), max_rate_hz=0.0)
    with Memory.open(tmp_path / "memory.db", clock=clock) as memory:
        intake = Intake(memory, [LayerSettings(ODOMETRY, topic="/odom", max_rate_hz=0.0), found], clock)
        for i in range(32):
            clock.advance(1.0)
            now = clock.now_ns() / 1e9
            intake.put(ODOMETRY, ros.odometry(now, 0.0, 0.0, turn=(0.0, 0.0, 0.0, 1.0)), ODOM)
            thing = ros.own(label, score, at) if i >= 2 else ros.own("cup", 0.9, at)
            intake.put("found", ros.own_array(now, "map", thing), DETECTIONS)
            intake.drain()
        assert [cup.missing for cup in memory.entity_query("cup").entities] == [missing]
