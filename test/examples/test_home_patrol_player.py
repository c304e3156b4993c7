"""The player over real DDS: everything arrives in order, with a clock that leads; foreign bags play too."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("rosbags", reason="rosbags reads the bags and is not installed")
rclpy = pytest.importorskip("rclpy", reason="ROS is neither installed nor sourced")

from rclpy.executors import SingleThreadedExecutor  # noqa: E402
from rclpy.node import Node  # noqa: E402
from rclpy.qos import QoSProfile, ReliabilityPolicy  # noqa: E402
from rosbags.rosbag2 import Writer  # noqa: E402
from rosgraph_msgs.msg import Clock  # noqa: E402
from sensor_msgs.msg import BatteryState  # noqa: E402
from std_msgs.msg import String  # noqa: E402
from support.domains import next_domain  # noqa: E402

from examples.home_patrol import bag, player  # noqa: E402
from examples.home_patrol.generate import generate  # noqa: E402
from examples.home_patrol.truth import load  # noqa: E402

BAGS = Path(__file__).resolve().parents[3] / "shared" / "bags"


class Ear:
    """A node that hears topics in a thread of its own; `heard` holds (topic, message) in the order of arrival."""

    def __init__(self, context: Any, topics: dict[str, type], reliable: bool = True) -> None:
        self.heard: list[tuple[str, Any]] = []
        self._node = rclpy.create_node("ear", context=context)
        policy = ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT
        for topic, kind in topics.items():
            self._node.create_subscription(kind, topic, self._hear(topic), QoSProfile(depth=1000, reliability=policy))
        self._executor = SingleThreadedExecutor(context=context)
        self._executor.add_node(self._node)
        self._thread = threading.Thread(target=self._executor.spin, daemon=True)
        self._thread.start()

    def _hear(self, topic: str) -> Callable[[Any], None]:
        return lambda message: self.heard.append((topic, message))

    def of(self, topic: str) -> list[Any]:
        """The messages of a topic."""
        return [message for heard, message in list(self.heard) if heard == topic]

    def wait(self, topic: str, number: int) -> list[Any]:
        """The messages of a topic, once there are so many or 10 s have passed."""
        return self.wait_until(topic, lambda heard: len(heard) >= number)

    def wait_until(self, topic: str, is_enough: Callable[[list[Any]], bool]) -> list[Any]:
        """The messages of a topic, once they are enough or 10 s have passed."""
        deadline = time.monotonic() + 10.0
        while not is_enough(self.of(topic)) and time.monotonic() < deadline:
            time.sleep(0.02)
        return self.of(topic)

    def close(self) -> None:
        """Stop hearing."""
        self._executor.shutdown()
        self._thread.join(5.0)
        self._node.destroy_node()


@pytest.fixture
def speaker(ros_context: Any) -> Iterator[Node]:
    """A node for the player to publish with."""
    node = rclpy.create_node("speaker", context=ros_context)
    yield node
    node.destroy_node()


def seconds(clock: Clock) -> float:
    """A clock's time in seconds."""
    return clock.clock.sec + clock.clock.nanosec / 1e9


def sentences(folder: Path, times: list[float], topic: str = "/said", clocks: bool = False) -> Path:
    """A bag of sentences at times in seconds; with `clocks`, a recorded clock that runs 500 s ahead of them."""
    store = bag.typestore()
    build = bag.Messages(store)
    with Writer(folder, version=8) as writer:
        said = writer.add_connection(topic, "std_msgs/msg/String", typestore=store)
        if clocks:
            clock = writer.add_connection("/clock", "rosgraph_msgs/msg/Clock", typestore=store)
        for stamp in times:
            if clocks:
                writer.write(clock, round(stamp * 1e9), player.clock_bytes(round((stamp + 500.0) * 1e9)))
            text = build.sentence(f"at {stamp:g}")
            writer.write(said, round(stamp * 1e9), store.serialize_cdr(text, "std_msgs/msg/String"))
    return folder


def test_the_patrol_arrives_whole_and_in_order(ros_context: Any, speaker: Node, tmp_path: Path) -> None:
    written = generate(tmp_path)
    truth = load(written.truth)
    topics = {"/scene_description": String, "/battery_state": BatteryState, "/clock": Clock}
    ear = Ear(ros_context, topics)
    times: list[int] = []
    wanted = ("/scene_description", "/battery_state")
    played = player.play(written.bag, 200.0, speaker, wanted, start_delay=0.2, on_time=times.append)
    heard = ear.wait("/scene_description", 60)
    # The start of the clock is shown more than once, so that their number does not tell whether the last is there.
    ticks = ear.wait_until("/clock", lambda heard: bool(heard) and seconds(heard[-1]) == 1299.95)
    ear.close()
    assert [message.data for message in heard] == [scene["text"] for scene in truth["scenes"]]
    levels = [message.percentage for message in ear.of("/battery_state")]
    assert levels == pytest.approx([entry["percentage"] for entry in truth["battery"]], abs=1e-4)
    assert played.sent["/scene_description"] == 60 and played.sent["/battery_state"] == 300
    assert "/odom" not in played.sent and played.skipped == {}
    assert times[0] == 1000 * 10**9
    assert {after - before for before, after in zip(times, times[1:], strict=False)} == {50_000_000}
    assert times[-1] == 1_299_950_000_000
    clocks = [seconds(clock) for clock in ticks]
    assert clocks == sorted(clocks) and clocks[-1] == 1299.95


def test_the_detections_arrive_as_the_package_s_own_type(ros_context: Any, speaker: Node, tmp_path: Path) -> None:
    messages = pytest.importorskip("robot_memory.msg", reason="the interfaces are not built; `make build` builds them")
    written = generate(tmp_path)
    ear = Ear(ros_context, {"/detections": messages.DetectionArray})
    sent = player.play(written.bag, 200.0, speaker, ["/detections"], start_delay=0.2).sent["/detections"]
    heard = ear.wait("/detections", sent)
    ear.close()
    assert len(heard) == sent
    cups = [seen for array in heard for seen in array.detections if seen.label == "cup"]
    assert len(cups) == load(written.truth)["sightings"]["cup"]["count"]
    assert {array.header.frame_id for array in heard} == {"map"}
    assert cups[0].has_position and cups[0].position.x == pytest.approx(9.8, abs=0.3)


def test_the_3d_detections_arrive_as_the_published_type(ros_context: Any, speaker: Node, tmp_path: Path) -> None:
    """F18: the field layout of vision_msgs from Humble on."""
    published = pytest.importorskip("vision_msgs.msg", reason="vision_msgs is neither installed nor built")
    written = generate(tmp_path, variant="vision_msgs")
    ear = Ear(ros_context, {"/detections_3d": published.Detection3DArray})
    sent = player.play(written.bag, 200.0, speaker, ["/detections_3d"], start_delay=0.2).sent["/detections_3d"]
    heard = ear.wait("/detections_3d", sent)
    ear.close()
    assert len(heard) == sent
    cups = [seen for array in heard for seen in array.detections if seen.results[0].hypothesis.class_id == "cup"]
    assert len(cups) == load(written.truth)["sightings"]["cup"]["count"]
    assert cups[0].bbox.center.position.x == pytest.approx(9.8, abs=0.3) and cups[0].id


def test_the_command_plays_and_tells_what_it_sent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    monkeypatch.setenv("ROS_DOMAIN_ID", str(next_domain()))
    folder = sentences(tmp_path / "bag", [1.0, 1.1])
    assert player.main([str(folder), "--rate", "5", "--loop", "2", "--delay", "0"]) == 0
    assert "4 /said" in capsys.readouterr().out
    with pytest.raises(SystemExit) as stopped:
        player.main([str(tmp_path / "missing")])
    assert stopped.value.code == 1
    assert "does not exist" in capsys.readouterr().err


def test_a_best_effort_subscriber_hears_the_player(ros_context: Any, speaker: Node, tmp_path: Path) -> None:
    """F6: both kinds of subscriber receive."""
    ear = Ear(ros_context, {"/said": String}, reliable=False)
    player.play(sentences(tmp_path / "bag", [1.0, 2.0]), 10.0, speaker, ["/said"], start_delay=0.3)
    heard = ear.wait("/said", 2)
    ear.close()
    assert [message.data for message in heard] == ["at 1", "at 2"]


def test_the_clock_starts_again_with_each_loop(ros_context: Any, speaker: Node, tmp_path: Path) -> None:
    """F1: the clock jumps back as with `ros2 bag play --loop`."""
    times: list[float] = []
    folder = sentences(tmp_path / "bag", [10.0, 10.4])
    played = player.play(
        folder, 50.0, speaker, start_delay=0.0, clock_hz=5.0, loops=2, on_time=lambda now: times.append(now / 1e9)
    )
    assert times == pytest.approx([10.0, 10.2, 10.4, 10.0, 10.2, 10.4])
    assert played.sent["/said"] == 4


def test_a_recorded_clock_is_the_clock(ros_context: Any, speaker: Node, tmp_path: Path) -> None:
    times: list[float] = []
    folder = sentences(tmp_path / "bag", [10.0, 10.4], clocks=True)
    played = player.play(folder, 50.0, speaker, start_delay=0.2, on_time=lambda now: times.append(now / 1e9))
    assert times == pytest.approx([510.0, 510.4])
    assert played.sent["/clock"] == 2


def test_a_topic_that_nobody_hears_is_named(ros_context: Any, speaker: Node, tmp_path: Path) -> None:
    with pytest.raises(TimeoutError, match="nobody subscribes to /said after 0 s"):
        player.play(sentences(tmp_path / "bag", [1.0]), 10.0, speaker, ["/said"], discovery_timeout=0.1)


@pytest.mark.parametrize("wrong", [{"rate": 0.0}, {"clock_hz": -1.0}, {"loops": 0}])
def test_speeds_and_loops_must_be_positive(speaker: Node, tmp_path: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} {next(iter(wrong.values()))}"):
        player.play(sentences(tmp_path / "bag", [1.0]), node=speaker, **wrong)


def recording(name: str) -> Path:
    """A recording of another robot."""
    if not (BAGS / name).is_dir():
        pytest.skip(f"the recording {name} is not on this machine")
    return BAGS / name


def test_a_bag_without_messages_ends_at_once(speaker: Node) -> None:
    assert player.play(recording("zero_messages_bag"), node=speaker).sent == {}


def test_a_foreign_recording_plays_without_the_types_that_are_missing(ros_context: Any, speaker: Node) -> None:
    """Its clock is the recorded one, at 4203 s, and not the time of the recording."""
    times: list[int] = []
    played = player.play(recording("turtlebot3_walker_sim"), 100.0, speaker, start_delay=0.0, on_time=times.append)
    assert played.sent["/odom"] == 543 and played.sent["/clock"] == 184 == len(times)
    assert played.skipped["/performance_metrics"].startswith("gazebo_msgs/msg/PerformanceMetrics: ")
    assert 4203.0 <= times[0] / 1e9 <= times[-1] / 1e9 <= 4223.0
