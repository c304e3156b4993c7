"""F23: sensors mounted on a robot that turns, and what odometry tells of its base."""

from __future__ import annotations

import math
from typing import Any

import pytest
from support import ros_messages as ros
from support.fakes import FakeClock
from support.intake_bench import DETECTIONS, GOAL, Bench, cup, scene, seen

from memory_node.config import Settings
from memory_node.graph import Detection
from memory_node.ingest.delivery import ODOMETRY
from memory_node.ingest.frames import IDENTITY, StaticMounts, Transform

MOUNTED = {"camera": [0.5, 0.0, 1.0, 0.0, 0.0, 0.0]}
TURNED = (0.0, 0.0, 1.0, 1.0)
"""To the left by a quarter."""


def wait(bench: Bench, steady: FakeClock, seconds: float) -> None:
    """Let time pass on both clocks, and what waits be looked at again."""
    for clock in (bench.clock, steady):
        clock.advance(seconds)
    bench.intake.work()


def look_of_the_camera(bench: Bench, steady: FakeClock, seconds: float) -> None:
    """A cup two metres before the camera, seen so long after what the clock shows."""
    for clock in (bench.clock, steady):
        clock.advance(seconds)
    bench.intake.put("detections", cup(bench), DETECTIONS)
    bench.intake.work()


def test_a_mounted_sensor_of_a_robot_that_may_have_turned_since_places_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    steady, mounts = FakeClock(), StaticMounts("map", "base_link", MOUNTED)
    bench = Bench(seen(), scene(), resolver=mounts, steady=steady.now_ns)
    bench.drive(10.0)
    look_of_the_camera(bench, steady, 5.0)
    goal = ros.make(GOAL, header=ros.header(1005.0, "base_link"), pose=ros.pose(2.0, 1.0))
    bench.intake.put("scene", goal, GOAL)
    bench.work()
    ((found, _, pose),) = bench.sink.looks
    assert found == [Detection("cup", 0.9, None)] and pose is None
    assert [row.position for row in bench.sink.rows] == [None]
    for name, frame in (("detections", "camera"), ("scene", "base_link")):
        why = f"frame {frame!r} known, the robot's heading is too old"
        assert dict(bench.intake.counts[name].skipped) == {why: 1}
        assert f"layer {name}: stored without position: {why}" in caplog.messages


def test_a_pose_hardly_older_still_tells_how_a_mounted_sensor_is_turned() -> None:
    steady, mounts = FakeClock(), StaticMounts("map", "base_link", MOUNTED)
    bench = Bench(seen(), resolver=mounts, steady=steady.now_ns)
    bench.drive(10.0)
    look_of_the_camera(bench, steady, 0.2)
    assert bench.work().sink.looks[0][0] == [Detection("cup", 0.9, (12.5, 0.0, 1.0))]


def test_a_mounted_sensor_of_a_robot_that_stands_places_what_it_sees_where_poses_hold() -> None:
    steady, mounts = FakeClock(), StaticMounts("map", "base_link", MOUNTED)
    bench = Bench(seen(), resolver=mounts, steady=steady.now_ns)
    bench.sink.track.follow(Settings(position_max_age=600.0))
    bench.drive(10.0)
    look_of_the_camera(bench, steady, 300.0)
    ((found, _, pose),) = bench.work().sink.looks
    assert found == [Detection("cup", 0.9, (12.5, 0.0, 1.0))]
    assert pose is not None and (pose.position, pose.yaw) == ((10.0, 0.0, 0.0), 0.0)


def test_a_mounted_sensor_waits_for_the_next_of_poses_that_come_once_a_second() -> None:
    steady, mounts = FakeClock(), StaticMounts("map", "base_link", MOUNTED)
    mounts.wait = 1.0
    bench = Bench(seen(), resolver=mounts, steady=steady.now_ns)
    bench.drive(10.0)
    look_of_the_camera(bench, steady, 0.5)
    wait(bench, steady, 0.5)
    assert bench.sink.looks == [] and bench.intake.waiting == 1
    bench.drive(10.0, turn=TURNED)
    bench.intake.work()
    bench.intake.work()
    ((found, _, _),) = bench.sink.looks
    # Half of the quarter was turned by then.
    assert found == [Detection("cup", 0.9, pytest.approx((10.0 + 2.5 * 0.5**0.5, 2.5 * 0.5**0.5, 1.0)))]
    look_of_the_camera(bench, steady, 0.5)
    wait(bench, steady, 1.0)
    assert bench.sink.looks[1][0] == [Detection("cup", 0.9, None)], "none came within frame_timeout"


def test_a_mounted_sensor_waits_for_the_next_pose_also_where_the_last_is_fresh() -> None:
    """A robot that turns by a quarter a second has turned by 9 degrees in 0.1 s: 0.4 m at 2.5 m."""
    steady, mounts = FakeClock(), StaticMounts("map", "base_link", MOUNTED)
    mounts.wait = 1.0
    bench = Bench(seen(), resolver=mounts, steady=steady.now_ns)
    bench.drive(10.0)
    look_of_the_camera(bench, steady, 0.1)
    wait(bench, steady, 0.9)
    bench.drive(10.0, turn=TURNED)
    bench.intake.work()
    bench.intake.work()
    ((found, _, _),) = bench.sink.looks
    turned = math.radians(9.0)
    at = (10.0 + 2.5 * math.cos(turned), 2.5 * math.sin(turned), 1.0)
    assert found == [Detection("cup", 0.9, pytest.approx(at))]


class FixedFrames(StaticMounts):
    """Knows one transform from every other frame."""

    def __init__(self, known: Transform) -> None:
        super().__init__()
        self._known = known

    def transform(self, frame: str, stamp: int, pose: Any, hold: float = 0.0) -> Transform | None:
        return IDENTITY if frame in ("", "map") else self._known


@pytest.mark.parametrize(
    "broken",
    [
        Transform.of_quaternion((math.inf, 0.0, 0.0), 0.0, 0.0, 0.0, 1.0),
        Transform.of_quaternion((0.0, 0.0, 0.0), math.nan, 0.0, 0.0, 1.0),
        Transform.of_quaternion((0.0, 0.0, 0.0), 0.0, 0.0, 0.0, 0.0),
        Transform.of_quaternion((1e9, 0.0, 0.0), 0.0, 0.0, 0.0, 1.0),
    ],
)
def test_a_transform_that_is_not_finite_leaves_things_without_position(broken: Transform) -> None:
    bench = Bench(seen(), scene(), resolver=FixedFrames(broken))
    bench.drive(10.0)
    bench.intake.put("detections", cup(bench), DETECTIONS)
    bench.intake.put("scene", ros.make(GOAL, header=ros.header(1000.0, "camera"), pose=ros.pose(1.0, 2.0)), GOAL)
    ((found, _, pose),) = bench.work().sink.looks
    assert found == [Detection("cup", 0.9, None)] and pose is None, "not at the observer's place"
    assert [(row.text, row.position) for row in bench.sink.rows] == [("scene: (1.00, 2.00, 0.00) in camera", None)]
    for name in ("detections", "scene"):
        counts = bench.intake.counts[name]
        assert dict(counts.skipped) == {"transform of frame 'camera' not finite, or out of range": 1}
        assert (counts.taken, counts.refused) == (1, 0)


def test_a_heading_is_kept_between_half_a_turn_to_either_side() -> None:
    bench = Bench(resolver=FixedFrames(Transform.of(0.0, 0.0, 0.0, 0.0, 0.0, 2.0)))
    bench.drive(1.0, frame="odom", turn=(0.0, 0.0, math.sin(1.25), math.cos(1.25)))
    latest = bench.work().sink.track.latest
    assert latest is not None and latest.yaw == pytest.approx(4.5 - 2.0 * math.pi)


def test_odometry_of_a_mounted_sensor_tells_where_the_base_is() -> None:
    mounts = {"tracker": [0.5, 0.2, 1.0, 0.0, 0.0, math.pi / 2]}
    bench = Bench(seen(), resolver=StaticMounts("map", "base_link", mounts))
    bench.drive(10.0, turn=(0.0, 0.0, 1.0, 0.0), child="tracker")  # it looks along -x, so the base along y
    look = ros.own_array(1000.0, "tracker", ros.own("cup", 0.9, (2.0, 0.0, 0.0)))
    bench.intake.put("detections", look, DETECTIONS)
    ((found, _, pose),) = bench.work().sink.looks
    assert pose is not None and pose.position == pytest.approx((10.2, -0.5, -1.0)) and pose.yaw == pytest.approx(
        math.pi / 2
    )
    assert found == [Detection("cup", 0.9, pytest.approx((8.0, 0.0, 0.0)))]


@pytest.mark.parametrize("child", ["base_link", "odom", ""])
def test_odometry_in_the_frame_of_the_base_itself_tells_nothing(child: str) -> None:
    bench = Bench(resolver=FixedFrames(Transform.of(5.0, 0.0, 0.0, 0.0, 0.0, 0.0)))  # tf2 knows where the base is
    bench.drive(1.0, frame="base_link", child=child)
    assert bench.work().sink.track.latest is None
    assert dict(bench.intake.counts[ODOMETRY].refusals) == {
        "frame 'base_link' moves with the robot: a pose in it does not tell where that is": 1
    }


def test_odometry_that_repeats_its_frame_as_child_tells_no_name_of_the_base() -> None:
    mounts = StaticMounts("map", "base_link")
    bench = Bench(seen(), resolver=mounts)
    bench.drive(1.0, frame="odom", child="odom")
    bench.drive(1.0)
    bench.intake.put("detections", ros.own_array(1000.0, "odom", ros.own("cup", 0.9, (2.0, 0.0, 0.0))), DETECTIONS)
    assert bench.work().sink.looks[0][0] == [Detection("cup", 0.9, None)]
    assert dict(bench.intake.counts["detections"].skipped) == {"frame 'odom' unknown": 1}
    assert list(bench.intake.counts[ODOMETRY].refusals) == ["frame 'odom' is not the memory's; set frame: odom"]
