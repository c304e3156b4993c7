"""How many messages of a layer are kept, and which."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support import ros_messages as ros
from support.fakes import FakeClock
from support.intake_bench import BATTERY, DETECTIONS, GOAL, Bench, body, scene

from memory_node.ingest import clockwatch
from memory_node.ingest.clockwatch import TICKING
from memory_node.ingest.layers import LayerSettings
from memory_node.ingest.stamps import NS


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


@pytest.mark.parametrize("more", [{}, {"trigger": "2 Hz"}])
def test_two_clocks_that_quarrel_do_not_flood_a_layer(monkeypatch: pytest.MonkeyPatch, more: dict[str, Any]) -> None:
    steady = FakeClock()
    monkeypatch.setattr(clockwatch, "_since_boot", steady.now_ns)
    bench = Bench(scene(max_rate_hz=2.0, **more), steady=steady.now_ns, clock_kind=TICKING)

    def frames(seconds: int, step: Callable[[int], float]) -> int:
        """Texts stored of 30 a second, while the clock steps so far (s) before each."""
        before = len(bench.texts)
        for number in range(30 * seconds):
            bench.clock.advance(step(number))
            steady.advance(1 / 30)
            bench.say(f"frame {number}")
            bench.intake.work()
        return len(bench.texts) - before

    assert frames(10, lambda number: 1 / 30) in (19, 20, 21)
    assert frames(10, lambda number: -4000.0 if number % 2 else 4000.0) <= 20 + 5, "5: each clock's first, and jumps"
    assert frames(10, lambda number: -4000.0 if number % 2 else 4000.0) in (19, 20, 21)
    steady.advance(6.0)
    bench.intake.work()
    assert not bench.sink.has_two_clocks
    assert frames(10, lambda number: 1 / 30) in (19, 20, 21)


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
        (GOAL, lambda i: goal("map", 0.01 * i), {}),
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


DIAGNOSTICS, FIX, STATE = "diagnostic_msgs/msg/DiagnosticArray", "sensor_msgs/msg/NavSatFix", "tf2_msgs/msg/TF2Error"


def charge(voltage: float, status: int, health: int = 1) -> Any:
    return ros.make(
        BATTERY, percentage=0.5, present=True, voltage=voltage, power_supply_status=status, power_supply_health=health
    )


def goal(frame: str, x: float = 1.0) -> Any:
    return ros.make(GOAL, header=ros.header(0.0, frame), pose=ros.pose(x, 2.0))


def fault(name: str, message: str, level: int = 2) -> Any:
    status = ros.make("diagnostic_msgs/msg/DiagnosticStatus", level=level, name=name, message=message)
    return ros.make(DIAGNOSTICS, status=[status])


@pytest.mark.parametrize(
    ("type_name", "messages", "stored"),
    [
        (BATTERY, [charge(12.0, 2), charge(12.1, 2), charge(12.0, 1), charge(14.0, 1), charge(12.0, 3)], [0, 2, 4]),
        (BATTERY, [charge(12.0, 2), charge(12.0, 2, 2), charge(12.0, 2, 2), charge(12.0, 2, 3)], [0, 1, 3]),
        (BATTERY, [ros.make(BATTERY, percentage=0.0, present=there) for there in (True, True, False, True)], [0, 2, 3]),
        (GOAL, [goal(frame) for frame in ("map", "map", "odom")], [0, 2]),
        (
            DIAGNOSTICS,
            [
                fault("motor 1", "81.2 degC, limit 80"), fault("motor 1", "82 degC, limit 80"),
                fault("motor 2", "82 degC, limit 80"), fault("motor 2", "stalled"), fault("motor 2", "stalled", 1),
            ],
            [0, 2, 3, 4],
        ),
        ("std_msgs/msg/Bool", [ros.make("std_msgs/msg/Bool", data=data) for data in (True, True, False)], [0, 2]),
        (STATE, [ros.make(STATE, error=1, error_string=text) for text in ("at 1.5 s", "at 1.6 s", "gone")], [0, 2]),
        (
            JOINTS,
            [ros.make(JOINTS, name=[name], position=np.array([1.0])) for name in ("arm_1", "arm_1", "arm_2")],
            [0, 2],
        ),
    ],
)  # fmt: skip
def test_another_state_is_news_whatever_min_change_is_and_a_number_said_in_words_is_not(
    type_name: str, messages: list[Any], stored: list[int]
) -> None:
    bench = Bench(body(min_change=100.0, max_silence=1000.0))
    for message in messages:
        bench.intake.put("battery", message, type_name)
        bench.clock.advance(1.0)
    bench.work()
    assert [row.stamp // NS - 1000 for row in bench.sink.rows] == stored


@pytest.mark.parametrize(
    ("latitude", "step"),
    [(48.0, (1e-5, 0.0, 0.0)), (-60.0, (0.0, 2e-5, 0.0)), (48.0, (0.0, 0.0, 1.112)), (48.0, (-1e-5, 0.0, 0.5))],
)
def test_min_change_of_a_fix_is_in_metres_north_east_or_up(latitude: float, step: tuple[float, float, float]) -> None:
    """Each step is 1.112 m."""
    bench = Bench(body(min_change=5.0, max_silence=1000.0))
    for i in range(20):
        at = {"latitude": latitude + i * step[0], "longitude": 11.5 + i * step[1], "altitude": 520.0 + i * step[2]}
        bench.intake.put("battery", ros.make(FIX, **at), FIX)
        bench.clock.advance(1.0)
    bench.work()
    assert [row.stamp // NS - 1000 for row in bench.sink.rows] == [0, 5, 10, 15]


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
