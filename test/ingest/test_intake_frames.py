"""F23: positions in frames of sensors, late transforms, and frames that nothing knows."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import pytest
from support import ros_messages as ros
from support.fakes import FakeClock
from support.intake_bench import DETECTIONS, GOAL, Bench, cup, scene, seen, wait_for

from memory_node.graph import Detection
from memory_node.ingest import clockwatch
from memory_node.ingest.clockwatch import TICKING
from memory_node.ingest.delivery import ODOMETRY
from memory_node.ingest.frames import IDENTITY, StaticMounts, Transform
from memory_node.ingest.layers import LayerSettings
from memory_node.ingest.stamps import NS


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
    assert counts.problem == "stored without position: frame 'gripper' unknown"
    assert [record.getMessage() for record in caplog.records] == [
        f"layer detections: stored without position: {no_pose}",
        "layer detections: stored without position: frame 'gripper' unknown",
    ]
    bench.intake.put("detections", ros.own_array(1000.0, "map", ros.own("cup", 0.9, (2.0, 0.0, 0.0))), DETECTIONS)
    assert bench.work().intake.counts["detections"].problem == ""


@pytest.mark.parametrize("frame", ["/map", "map", ""])
def test_f23_a_leading_slash_and_no_frame_are_the_memorys(frame: str) -> None:
    bench = Bench(seen())
    bench.intake.put("detections", ros.own_array(1000.0, frame, ros.own("cup", 0.9, (2.0, 0.0, 0.0))), DETECTIONS)
    assert bench.work().sink.looks[0][0] == [Detection("cup", 0.9, (2.0, 0.0, 0.0))]


def box(label: str, frame: str, at: tuple[float, float, float], edge: float = 0.0) -> Any:
    """vision_msgs/msg/Detection3D in a frame of its own."""
    said = ros.make("vision_msgs/msg/ObjectHypothesis", class_id=label, score=0.9)
    result = ros.make("vision_msgs/msg/ObjectHypothesisWithPose", hypothesis=said)
    size = ros.make("geometry_msgs/msg/Vector3", x=edge, y=edge, z=edge)
    bounds = ros.make("vision_msgs/msg/BoundingBox3D", center=ros.pose(*at), size=size)
    return ros.make("vision_msgs/msg/Detection3D", header=ros.header(1000.0, frame), results=[result], bbox=bounds)


SEEN_AT = "geometry_msgs/msg/PoseWithCovarianceStamped"


def test_where_the_robot_is_is_told_by_the_odometry_layer_alone() -> None:
    bench = Bench(scene(), LayerSettings("wheels", topic="/wheel_odom", is_internal_state=True))
    bench.drive(1.0)
    person = ros.make("geometry_msgs/msg/PoseWithCovariance", pose=ros.pose(42.0, 0.0))
    bench.intake.put("scene", ros.make(SEEN_AT, header=ros.header(1000.0, "map"), pose=person), SEEN_AT)
    bench.intake.put("wheels", ros.odometry(1000.0, 99.0, 0.0), "nav_msgs/msg/Odometry")
    latest = bench.work().sink.track.latest
    assert latest is not None and latest.position == (1.0, 0.0, 0.0)
    texts = sorted(bench.texts)
    assert [text[:47] for text in texts] == [
        "scene: pose.pose.position.x 42, pose.pose.posit", "wheels: child_frame_id base_link, pose.pose.pos"
    ]
    assert [bench.intake.counts[name].taken for name in ("scene", "wheels")] == [1, 1]


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


def test_f4_an_array_without_stamp_was_seen_when_its_first_detection_was() -> None:
    bench = Bench(seen())
    cups = [box("cup", "map", (1.0, 0.0, 0.0)) for _ in range(2)]
    cups[0].header.stamp.sec, cups[1].header.stamp.sec = 0, 998
    bench.intake.put("detections", ros.make(VISION, detections=cups), VISION)
    assert [stamp for _, stamp, _ in bench.work().sink.looks] == [998 * NS]


@dataclass
class Tally:
    """A message of another package whose `detections` is a number."""

    detections: int = 3


def test_a_field_called_detections_need_not_be_an_array_of_them() -> None:
    bench = Bench(scene())
    bench.intake.put("scene", Tally(), "tally_msgs/msg/Tally")
    assert bench.work().texts == ["scene: 3"]


def test_f23_one_unknown_frame_leaves_the_others_their_places() -> None:
    found = boxes("map", box("a", "gripper", (2.0, 0.0, 0.0)), box("b", "left", (2.0, 0.0, 0.0)))
    assert [d.position for d in found] == [None, (12.0, 1.0, 0.0)]


@pytest.mark.parametrize(
    ("frame", "edge", "at"),
    [("map", 0.5, (0.0, 0.0, 0.0)), ("map", 0.0, None), ("left", 0.5, None), ("left", 0.0, None), ("", 0.5, None)],
)
def test_a_box_at_zero_is_unset_but_one_with_a_size_in_the_memorys_frame(frame: str, edge: float, at: Any) -> None:
    assert [d.position for d in boxes(frame, box("dock", "", (0.0, 0.0, 0.0), edge))] == [at]


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

    known = False
    resets = 0

    def transform(self, frame: str, stamp: int, pose: Any, hold: float = 0.0) -> Transform | None:
        return IDENTITY if self.known or frame in ("", "map") else None

    @property
    def patience(self) -> float:
        return 1.0

    def reset(self) -> None:
        self.resets += 1


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


def test_f23_transforms_are_forgotten_once_when_the_clock_goes_back_not_again_with_the_next_message() -> None:
    frames = LateFrames()
    bench = Bench(seen(), scene(), resolver=frames)
    bench.say("before")
    bench.intake.work()
    bench.clock.advance(-100.0)
    bench.intake.work()
    assert frames.resets == 1
    # What is heard from here on is of the new time.
    bench.say("after")
    bench.intake.work()
    assert frames.resets == 1 and bench.texts == ["before", "after"]
    bench.clock.advance(-2.0)
    bench.say("went back by less than a session's worth")
    bench.intake.work()
    assert frames.resets == 2


def test_transforms_stay_known_while_two_clocks_quarrel(monkeypatch: pytest.MonkeyPatch) -> None:
    steady, frames = FakeClock(), LateFrames()
    monkeypatch.setattr(clockwatch, "_since_boot", steady.now_ns)
    bench = Bench(seen(), resolver=frames, steady=steady.now_ns, clock_kind=TICKING)
    bench.intake.work()

    def turns(count: int) -> None:
        for turn in range(count):
            for clock, seconds in ((bench.clock, -100.0 if turn % 2 else 100.0), (steady, 0.05)):
                clock.advance(seconds)
            bench.intake.work()

    turns(20)
    assert frames.resets == 3 == len(bench.sink.sessions), "the first jumps back may have been real"
    bench.intake.put("detections", cup(bench), DETECTIONS)
    turns(3)
    bench.intake.put("detections", cup(bench), DETECTIONS)
    turns(3)
    assert bench.sink.looks == [] and bench.intake.waiting == 2, "both wait for their transform"
    frames.known = True
    turns(2)
    assert [found for found, _, _ in bench.sink.looks] == [[Detection("cup", 0.9, (2.0, 0.0, 0.0))]] * 2
    assert frames.resets == 3
    for clock in (steady, bench.clock):
        clock.advance(6.0)
    bench.intake.work()
    assert frames.resets == 4, "of two clocks one is left, and what the other dated is forgotten"


def test_f23_odometry_that_waited_in_vain_is_refused_with_the_reason() -> None:
    bench = Bench(resolver=LateFrames())
    bench.drive(1.0, frame="odom")
    bench.work()
    reasons = list(bench.intake.counts[ODOMETRY].refusals)
    assert reasons == ["frame 'odom' unknown; without localization set frame: odom"]


class CountingFrames(LateFrames):
    """Counts how often it was asked."""

    asked = 0

    def transform(self, frame: str, stamp: int, pose: Any, hold: float = 0.0) -> Transform | None:
        self.asked += 1
        return super().transform(frame, stamp, pose)


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
