from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support import ros_messages as ros
from support.fakes import FakeClock
from support.sink import KeepingSink

from memory_node.errors import StorageError
from memory_node.graph import Detection
from memory_node.ingest.delivery import ODOMETRY
from memory_node.ingest.frames import IDENTITY, StaticMounts, Transform
from memory_node.ingest.intake import Intake
from memory_node.ingest.layers import LayerSettings
from memory_node.ingest.stamps import NS

STRING, DETECTIONS = "std_msgs/msg/String", "robot_memory/msg/DetectionArray"
FLOAT, BATTERY, ODOM = "std_msgs/msg/Float32", "sensor_msgs/msg/BatteryState", "nav_msgs/msg/Odometry"


class Bench:
    """An intake without its thread: what was put is worked off by `work`."""

    def __init__(self, *layers: LayerSettings, seconds: float = 1000.0, **more: Any) -> None:
        self.clock = FakeClock(seconds)
        self.sink = KeepingSink(self.clock)
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
    return LayerSettings("scene", topic="/scene", **{"max_rate_hz": 0.0, **more})


def body(**more: Any) -> LayerSettings:
    return LayerSettings("battery", topic="/battery", is_internal_state=True, **{"max_rate_hz": 0.0, **more})


def seen(**more: Any) -> LayerSettings:
    return LayerSettings("detections", topic="/detections", **{"max_rate_hz": 0.0, **more})


# ---- position


def test_a_text_gets_the_pose_of_its_own_moment() -> None:
    bench = Bench(scene())
    bench.drive(0.0)
    bench.clock.advance(1.0)
    bench.say("half way")
    bench.clock.advance(1.0)
    bench.drive(4.0)  # later than the text, and yet before it in the track
    row = bench.work().sink.rows[0]
    assert row.position == pytest.approx((2.0, 0.0, 0.0))
    assert (row.stamp, row.stamp_source, row.position_source) == (1001 * NS, "receive", "observer")


def test_f24_before_any_pose_the_place_is_unknown() -> None:
    bench = Bench(scene(), body())
    bench.say("early")
    bench.intake.put("battery", ros.make(BATTERY, percentage=0.5, present=True), BATTERY)
    bench.work()
    bench.drive(1.0)
    bench.work()
    assert [row.position for row in bench.sink.rows] == [None, None]


@pytest.mark.parametrize("bad", [math.nan, math.inf, 1e256])
def test_f21_a_bad_pose_is_refused_and_counted_and_the_last_good_one_kept(bad: float) -> None:
    bench = Bench(scene())
    bench.drive(1.0)
    bench.work()
    bench.clock.advance(0.05)
    bench.drive(bad)
    bench.say("here")
    bench.work()
    counts = bench.intake.counts[ODOMETRY]
    assert dict(counts.refusals) == {"position not finite or out of range": 1} and counts.taken == 1
    assert bench.sink.rows[0].position == (1.0, 0.0, 0.0)


def test_f23_odometry_of_another_frame_is_refused_with_what_to_do() -> None:
    bench = Bench()
    bench.drive(1.0, frame="odom")
    bench.work()
    assert list(bench.intake.counts[ODOMETRY].refusals) == ["frame 'odom' is not the memory's; set frame: odom"]
    assert bench.sink.track.latest is None


def test_f22_a_zero_quaternion_gives_a_place_without_heading() -> None:
    bench = Bench()
    bench.drive(3.0, turn=(0.0, 0.0, 0.0, 0.0))
    latest = bench.work().sink.track.latest
    assert latest is not None and latest.position == (3.0, 0.0, 0.0) and latest.yaw is None


# ---- frames


def test_detections_are_moved_into_the_memorys_frame() -> None:
    mounts = StaticMounts("map", "base_link", {"camera": [0.5, 0.0, 1.0, 0.0, 0.0, 0.0]})
    bench = Bench(seen(), resolver=mounts)
    bench.drive(10.0, turn=(0.0, 0.0, 1.0, 1.0))
    bench.intake.put(
        "detections", ros.own_array(1000.0, "camera", ros.own("cup", 0.9, (2.0, 0.0, 0.0), "1")), DETECTIONS
    )
    detections, stamp, pose = bench.work().sink.looks[0]
    assert detections == [Detection("cup", 0.9, pytest.approx((10.0, 2.5, 1.0)), "1")]
    assert stamp == 1000 * NS and pose is not None and pose.position == (10.0, 0.0, 0.0)


def test_f23_numbers_of_an_unknown_frame_are_never_stored_and_that_is_told(caplog: pytest.LogCaptureFixture) -> None:
    mounts = StaticMounts("map", "base_link", {"camera": [0.5, 0.0, 1.0, 0.0, 0.0, 0.0]})
    bench = Bench(seen(), resolver=mounts)
    for frame in ("camera", "gripper", "gripper"):
        cup = ros.own("cup", 0.9, (2.0, 0.0, 0.0))
        bench.intake.put("detections", ros.own_array(1000.0, frame, cup, cup, ros.own("door")), DETECTIONS)
    looks = bench.work().sink.looks
    for detections, _, pose in looks:
        assert [d.position for d in detections] == [None] * 3 and pose is None
    counts = bench.intake.counts["detections"]
    assert len(looks) == 3 == counts.taken
    no_pose = "frame 'camera' known, the robot's pose is not"
    assert dict(counts.skipped) == {no_pose: 2, "frame 'gripper' unknown": 4}
    assert [record.getMessage() for record in caplog.records] == [
        f"layer detections: stored without position: {no_pose}",
        "layer detections: stored without position: frame 'gripper' unknown",
    ]


@pytest.mark.parametrize("frame", ["/map", "map", ""])
def test_f23_a_leading_slash_and_no_frame_are_the_memorys(frame: str) -> None:
    bench = Bench(seen())
    bench.intake.put("detections", ros.own_array(1000.0, frame, ros.own("cup", 0.9, (2.0, 0.0, 0.0))), DETECTIONS)
    assert bench.work().sink.looks[0][0] == [Detection("cup", 0.9, (2.0, 0.0, 0.0))]


def box(label: str, frame: str, at: tuple[float, float, float]) -> Any:
    """vision_msgs/msg/Detection3D in a frame of its own."""
    said = ros.make("vision_msgs/msg/ObjectHypothesis", class_id=label, score=0.9)
    result = ros.make("vision_msgs/msg/ObjectHypothesisWithPose", hypothesis=said)
    bounds = ros.make("vision_msgs/msg/BoundingBox3D", center=ros.pose(*at))
    return ros.make("vision_msgs/msg/Detection3D", header=ros.header(1000.0, frame), results=[result], bbox=bounds)


GOAL = "geometry_msgs/msg/PoseStamped"


def test_f23_without_a_frame_the_numbers_of_other_packages_mean_nothing(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench(seen(), scene())
    bench.drive(50.0)
    array = ros.make(VISION, header=ros.header(1000.0, ""), detections=[box("cup", "", (0.1, 0.2, 2.0))])
    bench.intake.put("detections", array, VISION)
    goal = ros.make(GOAL, header=ros.header(1000.0, ""), pose=ros.pose(0.1, 0.2, 2.0))
    bench.intake.put("scene", goal, GOAL)
    bench.work()
    assert bench.sink.looks[0][0] == [Detection("cup", 0.9, None)] and bench.sink.looks[0][2] is None
    assert [(row.position, row.text) for row in bench.sink.rows] == [
        (None, "scene: (0.10, 0.20, 2.00) in an unnamed frame")
    ]
    for name in ("detections", "scene"):
        assert dict(bench.intake.counts[name].skipped) == {"no frame given": 1}
        assert f"layer {name}: stored without position: no frame given" in caplog.messages


@pytest.mark.parametrize(
    ("frame", "position", "told"),
    [("map", (2.0, 1.0, 0.0), ""), ("base_link", (52.0, 1.0, 0.0), " in base_link"), ("gripper", None, " in gripper")],
)
def test_f23_a_place_of_another_frame_says_whose_numbers_it_tells(frame: str, position: Any, told: str) -> None:
    bench = Bench(scene())
    bench.drive(50.0)
    bench.intake.put("scene", ros.make(GOAL, header=ros.header(1000.0, frame), pose=ros.pose(2.0, 1.0)), GOAL)
    row = bench.work().sink.rows[0]
    assert (row.text, row.position) == (f"scene: (2.00, 1.00, 0.00){told}", position)


def boxes(frame: str, *found: Any) -> list[Detection]:
    """What becomes of a Detection3DArray seen by two mounted cameras from (10, 0), looking along x."""
    mounts = {"left": [0.0, 1.0, 0.0, 0.0, 0.0, 0.0], "right": [0.0, -1.0, 0.0, 0.0, 0.0, 0.0]}
    bench = Bench(seen(), resolver=StaticMounts("map", "base_link", mounts))
    bench.drive(10.0)
    array = ros.make(VISION, header=ros.header(1000.0, frame), detections=list(found))
    bench.intake.put("detections", array, VISION)
    detections, _, pose = bench.work().sink.looks[0]
    assert (pose is None) is any(d.header.frame_id == "gripper" for d in found)
    return detections


VISION = "vision_msgs/msg/Detection3DArray"


def test_f23_each_detection_is_moved_out_of_its_own_frame() -> None:
    cameras = box("a", "left", (2.0, 0.0, 0.0)), box("b", "/right", (2.0, 0.0, 0.0))
    found = boxes("map", *cameras, box("c", "", (5.0, 5.0, 0.0)))
    assert [d.position for d in found] == [(12.0, 1.0, 0.0), (12.0, -1.0, 0.0), (5.0, 5.0, 0.0)]
    found = boxes("", *cameras)
    assert [d.position for d in found] == [(12.0, 1.0, 0.0), (12.0, -1.0, 0.0)]


def test_f23_one_unknown_frame_leaves_the_others_their_places() -> None:
    found = boxes("map", box("a", "gripper", (2.0, 0.0, 0.0)), box("b", "left", (2.0, 0.0, 0.0)))
    assert [d.position for d in found] == [None, (12.0, 1.0, 0.0)]


@pytest.mark.parametrize(("frame", "at"), [("map", (0.0, 0.0, 0.0)), ("left", None), ("", None)])
def test_a_box_at_zero_is_unset_but_in_the_memorys_frame(frame: str, at: Any) -> None:
    assert [d.position for d in boxes(frame, box("dock", "", (0.0, 0.0, 0.0)))] == [at]


def test_detections_of_an_internal_layer_are_refused_with_the_reason() -> None:
    bench = Bench(seen(is_internal_state=True))
    bench.intake.put("detections", ros.own_array(1000.0, "map", ros.own("cup")), DETECTIONS)
    assert bench.work().sink.looks == []
    reasons = dict(bench.intake.counts["detections"].refusals)
    assert reasons == {"detections are perception, not internal state": 1}


def test_2d_detections_lie_where_the_robot_was() -> None:
    bench = Bench(seen())
    bench.drive(10.0)
    bench.intake.put("detections", ros.own_array(1000.0, "camera", ros.own("cup")), DETECTIONS)
    detections, _, pose = bench.work().sink.looks[0]
    assert detections == [Detection("cup", 0.9)] and pose is not None and pose.position == (10.0, 0.0, 0.0)


class LateFrames(StaticMounts):
    """Knows every frame once it was told to."""

    patience = 1.0
    known = False

    def transform(self, frame: str, stamp: int, pose: Any) -> Transform | None:
        return IDENTITY if self.known or frame in ("", "map") else None


def test_f23_a_late_transform_is_waited_for_without_holding_up_the_rest() -> None:
    steady = FakeClock()
    frames = LateFrames()
    bench = Bench(seen(), scene(), resolver=frames, steady=steady.now_ns)
    intake = bench.intake
    intake.put("detections", ros.own_array(1000.0, "camera", ros.own("cup", 0.9, (2.0, 0.0, 0.0))), DETECTIONS)
    bench.say("meanwhile")
    intake.work()
    assert bench.texts == ["meanwhile"] and bench.sink.looks == [] and intake.waiting == 1
    frames.known = True
    intake.work()
    assert bench.sink.looks[0][0] == [Detection("cup", 0.9, (2.0, 0.0, 0.0))]


def test_f23_a_transform_that_never_comes_costs_its_patience_only() -> None:
    steady = FakeClock()
    bench = Bench(seen(), resolver=LateFrames(), steady=steady.now_ns)
    bench.intake.put("detections", ros.own_array(1000.0, "camera", ros.own("cup", 0.9, (2.0, 0.0, 0.0))), DETECTIONS)
    bench.intake.work()
    assert bench.sink.looks == []
    steady.advance(1.0)
    bench.intake.work()
    assert bench.sink.looks[0][0] == [Detection("cup", 0.9, None)]


class CountingFrames(LateFrames):
    """Counts how often it was asked."""

    asked = 0

    def transform(self, frame: str, stamp: int, pose: Any) -> Transform | None:
        self.asked += 1
        return super().transform(frame, stamp, pose)


def cup(bench: Bench) -> Any:
    return ros.own_array(bench.clock.ns / 1e9, "camera", ros.own("cup", 0.9, (2.0, 0.0, 0.0)))


def test_f8_what_waits_aside_counts_in_the_queue() -> None:
    bench = Bench(seen(), scene(), resolver=LateFrames(), steady=FakeClock().now_ns, queue_size=10)
    for i in range(30):
        bench.intake.put("detections", cup(bench), DETECTIONS)
        bench.say(f"view {i}")
        bench.intake.work()
        bench.clock.advance(1.0)
    # One place is the text's, which arrives while ten of the others wait.
    assert bench.intake.waiting == 9 and bench.intake.counts["detections"].dropped == 21
    assert len(bench.texts) == 30 and bench.intake.counts["scene"].dropped == 0
    bench.work()
    assert [stamp // NS for _, stamp, _ in bench.sink.looks] == list(range(1021, 1030))
    assert bench.total("detections") == 30


def test_f23_a_message_that_waits_for_its_transform_is_converted_once() -> None:
    class Watched:
        """A message that counts how often its detections are read."""

        reads = 0

        def __init__(self, message: Any) -> None:
            self.header, self._found = message.header, message.detections

        @property
        def detections(self) -> Any:
            Watched.reads += 1
            return self._found

    frames = CountingFrames()
    bench = Bench(seen(), resolver=frames, steady=FakeClock().now_ns)
    bench.intake.put("detections", Watched(cup(bench)), DETECTIONS)
    bench.intake.work()
    once = Watched.reads
    for _ in range(10):
        bench.intake.work()
    assert frames.asked == 11 and Watched.reads == once


def test_f23_what_waits_aside_is_not_looked_at_with_every_message() -> None:
    frames = CountingFrames()
    bench = Bench(seen(), scene(), resolver=frames, queue_size=5000)
    bench.intake.start()
    began = time.monotonic()
    bench.intake.put("detections", cup(bench), DETECTIONS)
    for i in range(100):
        bench.say(f"view {i}")
        wait_for(lambda n=i + 1: len(bench.sink.rows) == n)  # type: ignore[misc]
    ticks = (time.monotonic() - began) / 0.05
    asked = frames.asked
    bench.intake.stop()
    assert asked <= ticks + 2


def test_what_came_before_a_change_of_the_map_is_stored_before_it() -> None:
    bench = Bench(
        seen(), scene(max_rate_hz=2.0), LayerSettings("shot", topic="/shot", trigger="/shutter"),
        resolver=LateFrames(), steady=FakeClock().now_ns,
    )  # fmt: skip
    bench.intake.put("detections", cup(bench), DETECTIONS)
    bench.say("passes")
    bench.clock.advance(0.1)
    bench.say("held by the rate")
    bench.say("waits for its trigger", "shot")
    bench.intake.work()
    bench.say("in the queue")
    found: list[tuple[list[str], int]] = []
    bench.intake.settle(lambda: found.append((bench.texts, len(bench.sink.looks))))
    assert found == [(["passes", "in the queue"], 1)]
    assert bench.intake.waiting == 0 and bench.intake.counts["shot"].thinned == 1
    bench.intake.fire("/shutter")
    bench.work()
    assert bench.texts == ["passes", "in the queue"]


def test_a_change_of_the_map_stores_nothing_while_auto_store_is_off() -> None:
    bench = Bench(scene(), auto_store=False)
    bench.say("of the old map")
    bench.intake.settle(lambda: None)
    bench.intake.release()
    assert bench.texts == [] and bench.intake.counts["scene"].thinned == 1


# ---- time


def test_f4_stamp_zero_is_the_time_of_arrival_and_marked() -> None:
    bench = Bench(seen(), body())
    bench.intake.put("battery", ros.make(BATTERY, percentage=0.5, present=True), BATTERY)
    row = bench.work().sink.rows[0]
    assert (row.stamp, row.stamp_source) == (1000 * NS, "receive: stamp 0")


def test_f5_a_stamp_an_hour_ahead_and_a_negative_one() -> None:
    bench = Bench(seen())
    for seconds in (4600.0, -1.0):
        bench.intake.put("detections", ros.own_array(seconds, "map", ros.own("cup")), DETECTIONS)
    bench.work()
    assert [stamp for _, stamp, _ in bench.sink.looks] == [1000 * NS]
    assert dict(bench.intake.counts["detections"].refusals) == {"negative stamp": 1}


def test_f3_without_a_clock_nothing_is_stored() -> None:
    bench = Bench(scene(), seen(), seconds=0.0)
    bench.say("too early")
    bench.intake.put("detections", ros.own_array(5.0, "map", ros.own("cup")), DETECTIONS)
    bench.work()
    assert bench.sink.rows == [] and bench.sink.looks == []
    assert dict(bench.intake.counts["scene"].refusals) == {"the clock has not started": 1}


def test_f1_when_the_clock_goes_back_the_old_poses_are_forgotten_and_storing_goes_on() -> None:
    bench = Bench(scene())
    bench.drive(5.0)
    bench.say("first loop")
    bench.work()
    bench.clock.set(900.0)
    bench.say("second loop, no pose yet")
    bench.work()
    bench.clock.advance(1.0)
    bench.drive(7.0)
    bench.say("second loop")
    bench.work()
    assert bench.sink.sessions == ["clock went back"]
    assert [(row.stamp // NS, row.position) for row in bench.sink.rows] == [
        (1000, (5.0, 0.0, 0.0)),
        (900, None),
        (901, (7.0, 0.0, 0.0)),
    ]


def test_f1_what_came_before_the_jump_is_stored_before_the_new_session() -> None:
    bench = Bench(scene(max_rate_hz=1.0))
    bench.say("passes")
    bench.clock.advance(0.1)
    bench.say("held by the rate")
    bench.work()
    bench.clock.set(900.0)
    bench.say("after")
    bench.work()
    assert bench.texts == ["passes", "held by the rate", "after"]
    assert [row.stamp for row in bench.sink.rows] == [1000 * NS, 1000 * NS + 100_000_000, 900 * NS]


def test_two_clocks_on_one_topic_do_not_mix() -> None:
    bench = Bench(seen(), seconds=1_000_000.0)
    for seconds in (1_000_000.0, 12.0):
        bench.intake.put("detections", ros.own_array(seconds, "map", ros.own("cup")), DETECTIONS)
    bench.work()
    assert [stamp for _, stamp, _ in bench.sink.looks] == [1_000_000 * NS, 1_000_000 * NS]


# ---- rates


def test_at_most_so_many_messages_a_second_the_newest_kept() -> None:
    bench = Bench(scene(max_rate_hz=2.0))
    for i in range(31):  # one second at 30 Hz
        bench.say(f"frame {i}")
        bench.work()
        bench.clock.advance(1 / 30)
    bench.clock.advance(1.0)
    bench.work()
    assert bench.texts == ["frame 0", "frame 15", "frame 30"]
    counts = bench.intake.counts["scene"]
    assert (counts.received, counts.taken, counts.thinned) == (31, 3, 28)


@pytest.mark.parametrize("early", [0, 1])
@pytest.mark.parametrize("at_once", [True, False])
def test_a_publisher_of_just_the_allowed_rate_is_not_thinned(early: int, at_once: bool) -> None:
    bench = Bench(scene(max_rate_hz=2.0))
    for i in range(10):
        bench.say(f"frame {i}")
        if at_once:
            bench.work()
        bench.clock.advance(0.48 if i % 2 == early else 0.52)
    bench.work()
    assert bench.texts == [f"frame {i}" for i in range(10)]


def look_for_a_minute(stamp_at: Callable[[int, float], float], hertz: float = 30.0, work_every: int = 1) -> Bench:
    """A minute of looks with the default settings of a layer; each has the stamp that its number and time give it."""
    bench = Bench(LayerSettings("detections", topic="/detections"))
    for number in range(round(60 * hertz)):
        now = bench.clock.ns / 1e9
        found = ros.own_array(stamp_at(number, now), "map", ros.own(f"thing {number}"))
        bench.intake.put("detections", found, DETECTIONS)
        if number % work_every == 0:
            bench.intake.work()
        bench.clock.advance(1.0 / hertz)
    bench.clock.advance(1.0)
    bench.work()
    assert bench.total("detections") == round(60 * hertz)
    return bench


@pytest.mark.parametrize("hertz", [2.0, 2.2, 3.0, 10.0, 30.0, 50.0])
@pytest.mark.parametrize("work_every", [1, 40])
def test_at_most_two_messages_a_second_for_a_minute(hertz: float, work_every: int) -> None:
    bench = look_for_a_minute(lambda number, now: now, hertz, work_every)
    assert 118 <= bench.intake.counts["detections"].taken <= 121
    stamps = [stamp for _, stamp, _ in bench.sink.looks]
    assert all(sum(start <= stamp < start + 10 * NS for stamp in stamps) <= 21 for start in stamps)


@pytest.mark.parametrize(
    "stamp_at",
    [
        lambda number, now: 1000.0,
        lambda number, now: 1000.0 + number / 300.0,
        lambda number, now: now - 100.0 * (number % 2),
        lambda number, now: now - 700.0 * (number % 2),
    ],
    ids=["a stamp that stands still", "a clock ten times too slow", "two clocks near each other", "two clocks"],
)
def test_f5_strange_stamps_neither_starve_a_layer_nor_flood_it(stamp_at: Callable[[int, float], float]) -> None:
    bench = look_for_a_minute(stamp_at)
    assert 118 <= bench.intake.counts["detections"].taken <= 121
    seen = [int(detections[0].label.split()[1]) for detections, _, _ in bench.sink.looks]
    assert all(0 < b - a <= 30 for a, b in zip(seen, seen[1:], strict=False)), "spread over the whole minute"


def test_without_a_limit_a_clock_that_is_set_back_a_little_holds_nothing() -> None:
    bench = Bench(scene())
    for i, seconds in enumerate((1000.0, 999.5, 999.6)):
        bench.clock.set(seconds)
        bench.say(f"frame {i}")
    bench.work()
    assert bench.texts == ["frame 0", "frame 1", "frame 2"]


def test_what_flush_lets_pass_early_does_not_put_off_what_follows() -> None:
    bench = Bench(scene(max_rate_hz=2.0))
    for i in range(10):
        bench.say(f"flushed {i}")
        bench.intake.release()
        bench.clock.advance(0.01)
    bench.clock.advance(0.5)
    bench.say("half a second later")
    bench.work()
    assert bench.texts[-1] == "half a second later"


def test_body_readings_are_stored_when_they_move_or_after_a_silence() -> None:
    bench = Bench(body(min_change=0.05, max_silence=10.0))
    for percentage in (0.80, 0.79, 0.76, 0.75, 0.74, 0.74):
        bench.intake.put("battery", ros.make(BATTERY, percentage=percentage, present=True), BATTERY)
        bench.work()
        bench.clock.advance(3.0)
    for _ in range(3):
        bench.intake.put("battery", ros.make(BATTERY, percentage=0.74, present=True), BATTERY)
        bench.work()
        bench.clock.advance(3.0)
    assert [row.value for row in bench.sink.rows] == [0.80, 0.75, 0.74]
    assert bench.intake.counts["battery"].thinned == 6


JOINTS, TWIST = "sensor_msgs/msg/JointState", "geometry_msgs/msg/Twist"


def joints(i: int) -> Any:
    return ros.make(JOINTS, name=["arm_1", "arm_2"], position=np.array([0.01 * i, 1.0]))


def twist(i: int) -> Any:
    return ros.make(TWIST, linear=ros.make("geometry_msgs/msg/Vector3", x=0.01 * i))


def voltage(i: int) -> Any:
    return ros.make(BATTERY, percentage=math.nan, voltage=15.0 + 0.01 * i)


@pytest.mark.parametrize(
    ("type_name", "message", "more"),
    [
        (JOINTS, joints, {}),
        (TWIST, twist, {}),
        (TWIST, twist, {"fields": ("linear.y", "linear.x")}),
        (TWIST, twist, {"fields": ("linear",)}),
        (BATTERY, voltage, {}),
    ],
)
def test_min_change_looks_at_every_number_of_a_reading(type_name: str, message: Any, more: dict[str, Any]) -> None:
    bench = Bench(body(min_change=0.095, max_silence=1000.0, **more))
    for i in range(31):
        bench.intake.put("battery", message(i), type_name)
        bench.clock.advance(1.0)
    bench.work()
    assert [row.stamp // NS for row in bench.sink.rows] == [1000, 1010, 1020, 1030]


def test_another_joint_or_another_word_is_a_change() -> None:
    bench = Bench(body(min_change=0.5, max_silence=1000.0))
    for name in ("arm_1", "arm_1", "gripper"):
        bench.intake.put("battery", ros.make(JOINTS, name=[name], position=np.array([1.0])), JOINTS)
        bench.clock.advance(1.0)
    bench.work()
    assert bench.texts == ["battery: arm_1 1.00", "battery: gripper 1.00"]


def test_a_trigger_topic_stores_the_newest_message() -> None:
    bench = Bench(scene(trigger="/snapshot"))
    bench.say("one")
    bench.say("two")
    bench.work()
    assert bench.texts == []
    bench.intake.fire("/snapshot")
    bench.intake.fire("/other")
    bench.intake.fire("/snapshot")
    bench.work()
    assert bench.texts == ["two"]


def test_a_trigger_rate_stores_the_newest_message_of_each_period() -> None:
    bench = Bench(scene(trigger="1 Hz"))
    for i in range(25):
        bench.say(f"frame {i}")
        bench.work()
        bench.clock.advance(0.1)
    assert bench.texts == ["frame 0", "frame 10", "frame 20"]


def test_auto_store_off_holds_the_newest_until_it_is_released() -> None:
    bench = Bench(scene(), auto_store=False)
    bench.say("one")
    bench.say("two")
    bench.work()
    assert bench.texts == []
    bench.intake.release()
    assert bench.texts == ["two"]


# ---- load and faults


def test_f8_a_full_queue_drops_the_oldest_of_the_busiest_layer() -> None:
    bench = Bench(scene(), body(), queue_size=10)
    bench.intake.put("battery", ros.make(BATTERY, percentage=0.5, present=True), BATTERY)
    for i in range(20):
        bench.say(f"frame {i}")
    bench.work()
    assert bench.texts[1:] == [f"frame {i}" for i in range(11, 20)]
    assert bench.intake.counts["scene"].dropped == 11 and bench.intake.counts["battery"].dropped == 0


def test_f8_a_row_has_the_time_of_its_message_not_of_its_turn() -> None:
    bench = Bench(scene())
    bench.say("now")
    bench.clock.advance(60.0)
    assert bench.work().sink.rows[0].stamp == 1000 * NS


def test_f17_layers_of_one_type_are_independent() -> None:
    bench = Bench(scene(), LayerSettings("speech", topic="/speech", max_rate_hz=0.0))
    bench.say("a door", "scene")
    bench.say("hello", "speech")
    bench.say("", "speech")
    bench.work()
    assert [(row.layer, row.text) for row in bench.sink.rows] == [("scene", "a door"), ("speech", "hello")]
    assert bench.intake.counts["scene"].refused == 0 and bench.intake.counts["speech"].refused == 1


def test_what_the_disk_does_not_take_is_counted_as_dropped() -> None:
    bench = Bench(scene())
    bench.sink.fails = StorageError("disk full")
    bench.say("lost")
    bench.work()
    bench.sink.fails = None
    bench.say("kept")
    bench.work()
    assert bench.texts == ["kept"]
    assert (bench.intake.counts["scene"].dropped, bench.intake.counts["scene"].taken) == (1, 1)


def test_a_message_that_is_not_what_its_type_says_is_refused() -> None:
    bench = Bench(scene())
    for wrong in (None, 7, object()):
        bench.intake.put("scene", wrong, STRING)
    bench.work()
    assert bench.intake.counts["scene"].refused == 3 == bench.total("scene")


def test_the_worker_takes_what_many_threads_bring_and_nothing_is_lost() -> None:
    bench = Bench(scene(), queue_size=10_000)
    bench.intake.start()

    def bring(name: str) -> None:
        for i in range(200):
            bench.say(f"{name} {i}")

    threads = [threading.Thread(target=bring, args=(str(n),)) for n in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    bench.intake.stop()
    assert len(set(bench.texts)) == 1000 == bench.total("scene")
    for n in range(5):
        assert [t for t in bench.texts if t.startswith(f"{n} ")] == [f"{n} {i}" for i in range(200)]


def test_the_worker_waits_a_moment_for_the_pose_after_the_message() -> None:
    bench = Bench(scene())
    bench.drive(0.0)
    bench.clock.advance(1.0)
    bench.intake.start()
    bench.say("half way")
    bench.clock.advance(1.0)
    bench.drive(4.0)
    wait_for(lambda: bool(bench.sink.rows))
    bench.intake.stop()
    assert bench.sink.rows[0].position == pytest.approx((2.0, 0.0, 0.0))


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait for a condition that a thread brings about."""
    done = threading.Event()
    for _ in range(500):
        if condition():
            return
        done.wait(0.01)
    pytest.fail("it did not come")


def test_reports_are_throttled(caplog: pytest.LogCaptureFixture) -> None:
    steady = FakeClock()
    bench = Bench(scene(), steady=steady.now_ns)
    for seconds in (0.0, 1.0, 60.0):
        steady.advance(seconds)
        for _ in range(100):
            bench.say("")
        bench.work()
    assert [record.getMessage() for record in caplog.records] == ["layer scene: message refused: empty text"] * 2


def test_f5_a_skew_is_reported_once_for_each_layer(caplog: pytest.LogCaptureFixture) -> None:
    """Rows say it themselves; a driver that never sets its stamps would fill the log for as long as the robot runs."""
    steady = FakeClock()
    bench = Bench(seen(), LayerSettings("others", topic="/others", max_rate_hz=0.0), steady=steady.now_ns)
    for _ in range(100):
        for name in ("detections", "others"):
            bench.intake.put(name, ros.own_array(9000.0, "map", ros.own("cup")), DETECTIONS)
        bench.intake.put("others", ros.own_array(0.0, "map", ros.own("cup")), DETECTIONS)
        bench.work()
        steady.advance(60.0)
        bench.clock.advance(60.0)
    assert caplog.messages == [
        f"layer {name}: stamps are not usable (receive: {why}), using the time of arrival"
        for name, why in (
            ("detections", "stamp ahead of the clock"),
            ("others", "stamp ahead of the clock"),
            ("others", "stamp 0"),
        )
    ]


@pytest.mark.parametrize(("age", "known"), [(0.1, True), (0.5, False)])
def test_an_old_pose_gives_a_look_its_place_but_no_heading(age: float, known: bool) -> None:
    """What a robot that turns should see isn't told by where it looked half a second ago."""
    bench = Bench(seen())
    bench.drive(1.0, turn=(0.0, 0.0, 0.0, 1.0))
    bench.work()
    bench.clock.advance(age)
    bench.intake.put(
        "detections", ros.own_array(bench.clock.ns / 1e9, "map", ros.own("cup", 0.9, (2.0, 0.0, 0.0), "1")), DETECTIONS
    )
    _, _, pose = bench.work().sink.looks[0]
    assert pose is not None
    assert (pose.position, pose.yaw is not None) == ((1.0, 0.0, 0.0), known)
