"""What becomes of messages on their way to the memory."""

from __future__ import annotations

import math
import threading

import numpy as np
import pytest
from support import ros_messages as ros
from support.fakes import FakeClock
from support.intake_bench import BATTERY, DETECTIONS, STRING, Bench, body, scene, seen

from memory_node.errors import StorageError
from memory_node.ingest.converters import POSE_TYPES
from memory_node.ingest.delivery import ODOMETRY
from memory_node.ingest.frames import StaticMounts
from memory_node.ingest.layers import LayerSettings
from memory_node.ingest.stamps import NS

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


@pytest.mark.parametrize("type_name", ["geometry_msgs/msg/TwistStamped", "nav_msgs/msg/Path", "geometry_msgs/msg/Pose"])
def test_odometry_of_a_type_that_tells_no_pose_is_told_with_those_that_do(type_name: str) -> None:
    bench = Bench()
    bench.intake.put(ODOMETRY, ros.make(type_name), type_name)
    counts = bench.work().intake.counts[ODOMETRY]
    assert list(counts.refusals) == [f"{type_name} does not tell where the robot is; {', '.join(POSE_TYPES)} do"]


def test_f22_a_zero_quaternion_gives_a_place_without_heading() -> None:
    bench = Bench()
    bench.drive(3.0, turn=(0.0, 0.0, 0.0, 0.0))
    latest = bench.work().sink.track.latest
    assert latest is not None and latest.position == (3.0, 0.0, 0.0) and latest.yaw is None


def test_looks_of_which_the_settings_leave_nothing_are_empty_looks_and_no_fault() -> None:
    bench = Bench(seen(min_confidence=0.5, label_map=("person:",)))
    for _ in range(4):
        found = ros.own_array(1000.0, "map", ros.own("cup", 0.3, (1.0, 0.0, 0.0)), ros.own("person", 0.9))
        bench.intake.put("detections", found, DETECTIONS)
    bench.work()
    counts = bench.intake.counts["detections"]
    assert [detections for detections, _, _ in bench.sink.looks] == [[]] * 4
    assert (counts.taken, counts.refused, counts.problem) == (4, 0, "")
    assert dict(counts.skipped) == {"below min_confidence": 4, "left out by label_map": 4}


@pytest.mark.parametrize("internal", [True, False])
def test_f20_a_battery_that_sends_per_cent_is_told_with_the_setting_that_mends_it(
    internal: bool, caplog: pytest.LogCaptureFixture
) -> None:
    bench = Bench(LayerSettings("battery", topic="/battery", is_internal_state=internal, max_rate_hz=0.0))
    counts = bench.intake.counts["battery"]
    for percentage in (86.0, 85.0):
        bench.intake.put("battery", ros.make(BATTERY, percentage=percentage, present=True), BATTERY)
    bench.work()
    assert bench.texts == ["battery: charge unknown"] * 2
    assert "set percentage_scale: 100.0" in counts.problem and counts.skipped[counts.problem] == 2
    assert caplog.messages.count(f"layer battery: {counts.problem}") == 1
    for percentage in (-1.0, math.nan, 0.5):
        bench.intake.put("battery", ros.make(BATTERY, percentage=percentage, present=True), BATTERY)
        assert bench.work().intake.counts["battery"].problem == ""
    assert counts.taken == 5


def test_a_setting_that_does_nothing_for_the_type_that_was_found_out_is_the_layers_problem(
    caplog: pytest.LogCaptureFixture,
) -> None:
    layers = [LayerSettings(name, topic=f"/{name}", min_change=0.5, side_is_known=False) for name in ("a", "b", "c")]
    bench = Bench(*layers)
    bench.say("a chair", "a")
    bench.intake.put("b", ros.own_array(1000.0, "map", ros.own("cup")), DETECTIONS)
    joints = "sensor_msgs/msg/JointState"
    bench.intake.put("c", ros.make(joints, name=["lift"], position=np.array([0.3])), joints)
    bench.work()
    said = "min_change has no effect here: it is for internal state"
    assert [bench.intake.counts[name].problem for name in "abc"] == [said, said, ""]
    assert [line for line in caplog.messages if "min_change" in line] == [f"layer a: {said}", f"layer b: {said}"]
    assert [bench.intake.counts[name].taken for name in "abc"] == [1, 1, 1]


# ---- time


def test_f4_stamp_zero_is_the_time_of_arrival_and_marked() -> None:
    bench = Bench(seen(), body())
    bench.intake.put("battery", ros.make(BATTERY, percentage=0.5, present=True), BATTERY)
    row = bench.work().sink.rows[0]
    assert (row.stamp, row.stamp_source) == (1000 * NS, "receive: stamp 0")
    assert dict(bench.intake.counts["battery"].skipped) == {"stamp 0": 1}


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


def test_a_text_waits_for_the_pose_after_it() -> None:
    steady, mounts = FakeClock(), StaticMounts()
    mounts.wait = 1.0
    bench = Bench(scene(), resolver=mounts, steady=steady.now_ns)
    bench.drive(0.0)
    bench.clock.advance(1.0)
    bench.say("half way")
    bench.intake.work()
    steady.advance(0.9)  # poses may come once a second, and late
    bench.intake.work()
    assert bench.sink.rows == [] and bench.intake.waiting == 1
    bench.clock.advance(1.0)
    bench.drive(4.0)
    bench.intake.work()
    bench.intake.work()  # what waits is tried before the pose is taken in
    assert bench.sink.rows[0].position == pytest.approx((2.0, 0.0, 0.0))
    bench.clock.advance(1.0)
    bench.say("the robot does not go on")
    bench.intake.work()
    steady.advance(mounts.wait)
    bench.intake.work()
    assert bench.sink.rows[1].position == (4.0, 0.0, 0.0)
    bench.clock.advance(bench.sink.track.max_age)
    bench.say("long after the last pose")
    bench.intake.work()
    assert bench.sink.rows[2].position is None


def test_reports_are_throttled(caplog: pytest.LogCaptureFixture) -> None:
    steady = FakeClock()
    bench = Bench(scene(), steady=steady.now_ns)
    for seconds in (0.0, 1.0, 60.0):
        steady.advance(seconds)
        for _ in range(100):
            bench.say("")
        bench.work()
    assert [record.getMessage() for record in caplog.records] == ["layer scene: message refused: empty text"] * 2


def test_ever_new_faults_of_one_layer_neither_fill_the_log_nor_end_it(caplog: pytest.LogCaptureFixture) -> None:
    steady = FakeClock()
    bench = Bench(seen(), scene(), steady=steady.now_ns)

    def see(frame: str) -> None:
        bench.intake.put("detections", ros.own_array(1000.0, frame, ros.own("cup", at=(1.0, 0.0, 0.0))), DETECTIONS)
        bench.work()

    for minute in range(3):
        for number in range(1100):
            see(f"frame{minute}x{number}")
        bench.say("")
        bench.work()
        assert caplog.messages[-1] == "layer scene: message refused: empty text", "another layer's is told"
        assert len(caplog.messages) == 21
        assert "frame" + str(minute) + "x0'" in caplog.messages[0]
        caplog.clear()
        steady.advance(60.0)


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
