"""What an operator sees in `/diagnostics` and `~/get_status`: each value that they promise, and each fault."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from nav_msgs.msg import Odometry
from sensor_msgs.msg import BatteryState
from std_msgs.msg import Float32, String
from support.fakes import WordEmbedder
from support.ros_harness import Peer, layer, node_here, peer, stamp, wait_until

from memory_node.errors import EmbedderError
from memory_node.ingest.parameters import node_table

STRING = "std_msgs/msg/String"
PARAMETERS: dict[str, Any] = {
    "layers": ["scene", "battery", "silent", "empty", "found_out"],
    "scene": layer("/scene", STRING),
    "battery": layer("/battery_state", "sensor_msgs/msg/BatteryState", is_internal_state=True),
    "silent": layer("/silent", STRING),
    "empty": layer("/empty", STRING),
    "found_out": layer("/front/range"),
    "diagnostics_period": 0.2,
}


class SlowEmbedder(WordEmbedder):
    """Gives no vector until it is told to."""

    ready = False

    def embed(self, texts: list[str]) -> Any:
        if not self.ready:
            raise EmbedderError("not yet")
        return super().embed(texts)


class Board:
    """The newest /diagnostics by name of its statuses."""

    def __init__(self, other: Peer) -> None:
        self.arrays: list[DiagnosticArray] = []
        other.node.create_subscription(DiagnosticArray, "/diagnostics", self.arrays.append, 10)
        wait_until(lambda: self.arrays, "diagnostics")

    def __call__(self, name: str) -> DiagnosticStatus:
        return next(status for status in self.arrays[-1].status if status.name == f"/memory: {name}")

    def values(self, name: str) -> dict[str, str]:
        return {pair.key: pair.value for pair in self(name).values}

    def wait(self, name: str, message: str) -> DiagnosticStatus:
        wait_until(lambda: self(name).message == message, f"{name}: {message}; it says {self(name).message}")
        return self(name)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, Peer, Board, SlowEmbedder]]:
    embedder = SlowEmbedder()
    with node_here(tmp_path_factory.mktemp("board"), PARAMETERS, embedder=embedder) as node, peer() as other:
        yield node, other, Board(other), embedder


def test_they_come_once_a_second_unless_said_otherwise(world: tuple[Any, Peer, Board, SlowEmbedder]) -> None:
    node, *_ = world
    assert node_table()["diagnostics_period"].default == 1.0
    assert 200_000_000 in [timer.timer_period_ns for timer in node.timers]


def test_the_memory_tells_its_backlog_its_size_and_how_old_the_position_is(
    world: tuple[Any, Peer, Board, SlowEmbedder],
) -> None:
    node, other, board, embedder = world
    assert board.values("memory")["position_age_s"] == "never"
    pose = Odometry(child_frame_id="base_link")
    pose.header.frame_id, pose.header.stamp = "map", stamp(time.time() - 5.0)
    pose.pose.pose.orientation.w = 1.0
    other.publish("/odom", pose)
    wait_until(lambda: board.values("memory")["position_age_s"] != "never", "a position")
    assert 5.0 <= float(board.values("memory")["position_age_s"]) < 15.0

    other.publish("/scene", String(data="a red chair"), String(data="a green door"))
    other.wait_rows(2, "scene")
    wait_until(lambda: board.values("memory")["backlog"] == "2", "both texts wait for their vectors")
    embedder.ready = True
    wait_until(lambda: board.values("memory")["backlog"] == "0", "they have them", 30.0)
    told, status = board.values("memory"), other.call("get_status").status
    assert float(told["db_mb"]) == pytest.approx(status.db_bytes / 1e6, abs=0.2) and status.db_bytes > 50_000
    assert (told["observations"], told["model"], told["session"]) == ("2", "words", str(status.session))


def test_the_status_tells_the_jobs_that_diagnostics_tell(world: tuple[Any, Peer, Board, SlowEmbedder]) -> None:
    _, other, board, _ = world
    jobs = other.call("get_status").status.jobs
    assert [job.name for job in jobs] == [pair.key for pair in board("jobs").values]
    assert [(job.name, job.budget_ms) for job in jobs] == [
        (job.name, job.budget_ms) for job in other.call("get_jobs").jobs
    ]


def test_a_layer_without_publisher_names_topics_of_its_type_first(
    world: tuple[Any, Peer, Board, SlowEmbedder],
) -> None:
    node, other, board, _ = world
    for topic, kind in (
        ("/robot1/battery_state", BatteryState), ("/power", BatteryState), ("/battery_states", Float32),
        ("/odometry/filtered", Odometry), ("/elsewhere", Float32),
    ):  # fmt: skip
        other.publisher(topic, kind, expect=False)
    other.node.create_subscription(BatteryState, "/battery_state2", print, 1)  # nothing comes from one who listens
    wait_until(lambda: node.count_subscribers("/battery_state2"), "it is known")
    nearest = "/robot1/battery_state, /power, /battery_states"
    status = board.wait("layer battery", f"/battery_state has no publisher; nearest topics: {nearest}")
    assert status.level == DiagnosticStatus.WARN and status.hardware_id == "memory"
    other.node.destroy_publisher(other._publishers.pop("/odom"))
    board.wait("layer odometry", "/odom has no publisher; nearest topics: /odometry/filtered")


def test_f6_a_layer_whose_publisher_never_says_anything_names_topics_as_well(
    world: tuple[Any, Peer, Board, SlowEmbedder],
) -> None:
    _, other, board, _ = world
    other.publisher("/front/range", Float32)
    other.publisher("/front/ranges", String, expect=False)
    status = board.wait(
        "layer found_out",
        "/front/range has a publisher, and no message ever came; nearest topics: /battery_states, /elsewhere,"
        " /front/ranges",
    )
    assert status.level == DiagnosticStatus.WARN
    other.publish("/front/range", Float32(data=1.0))
    assert board.wait("layer found_out", "ok").level == DiagnosticStatus.OK


def test_a_layer_that_refuses_every_message_is_not_ok(world: tuple[Any, Peer, Board, SlowEmbedder]) -> None:
    _, other, board, _ = world
    other.publish("/empty", String(data=" "))
    status = board.wait("layer empty", "/empty: every message was refused: empty text")
    assert status.level == DiagnosticStatus.WARN
    assert f"layer empty: {status.message}" in other.call("get_status").status.warnings
    other.publish("/empty", String(data="a word"))
    board.wait("layer empty", "ok")
    other.publish("/empty", String(data=""), String(data=""))
    wait_until(lambda: board.values("layer empty")["refused"] == "3", "two more are refused")
    assert board("layer empty").message == "ok", "one now and then is no fault of the layer"
    other.publish("/empty", String(data=""))
    board.wait("layer empty", "/empty: the last 3 refused: empty text")
    other.publish("/empty", String(data="another word"))
    assert board.wait("layer empty", "ok").level == DiagnosticStatus.OK
