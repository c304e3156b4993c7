"""Which topic a layer hears, and what of it: remapped, latched, or said by the node itself."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from std_msgs.msg import Float32, String
from support.ros_harness import layer, node_here, peer, wait_until

from memory_node.ros.diagnostics import without_own

STRING = "std_msgs/msg/String"
DIAGNOSTICS = "diagnostic_msgs/msg/DiagnosticArray"
HASTY = QoSProfile(
    depth=1, reliability=ReliabilityPolicy.BEST_EFFORT, durability=DurabilityPolicy.TRANSIENT_LOCAL
)


@pytest.mark.parametrize(("type_name", "second"), [("", "/nothing"), (STRING, "/rear")])
def test_f6_a_name_that_a_remap_gave_is_not_remapped_again(tmp_path: Path, type_name: str, second: str) -> None:
    parameters = {"layers": ["front"], "front": layer("/front", type_name)}
    remaps = ("-r", "/front:=/back", "-r", f"/back:={second}")
    with node_here(tmp_path, parameters, arguments=remaps), peer() as other:
        other.publisher("/rear", Float32, expect=False)
        other.publish("/back", String(data="a red chair"))
        assert [row.text for row in other.wait_rows(1, "front")] == ["a red chair"]
        wait_until(lambda: other.layer("front").publishers == 1, "its publishers were counted")
        status = other.layer("front")
        assert (status.topic, status.type, status.problem) == ("/back", STRING, "")


def test_a_layer_listens_with_the_quality_that_its_settings_say(tmp_path: Path) -> None:
    given = {"depth": 7, "reliability": "best_effort", "durability": "transient_local"}
    parameters = {
        "layers": ["plain", "scene"],
        "plain": layer("/plain", STRING),
        "scene": layer("/scene", STRING, **given),
        "odometry": {"depth": 9},
    }
    with node_here(tmp_path, parameters) as node:
        for name, depth, reliable, latched in (
            ("plain", 100, True, False), ("scene", 7, False, True), ("odometry", 9, True, False),
        ):  # fmt: skip
            quality = node._rooms.subscriptions[name].subscription.qos_profile
            assert quality.depth == depth, name
            assert (quality.reliability == ReliabilityPolicy.RELIABLE) == reliable, name
            assert (quality.durability == DurabilityPolicy.TRANSIENT_LOCAL) == latched, name


class BrokenMeta(type):
    """Of a message whose package was built for another Python: rosidl finds no library for it, and says nothing."""

    _TYPE_SUPPORT = None

    @classmethod
    def __import_type_support__(cls) -> None:
        pass


class Broken(metaclass=BrokenMeta):
    pass


class Unwilling(ModuleType):
    """A package that raises what it likes as it is imported."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError("built against numpy 1")


def test_f17_a_package_that_is_broken_here_keeps_no_other_layer_from_being_heard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = ModuleType("broken_msgs.msg")
    package.Broken = Broken  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "broken_msgs.msg", package)
    monkeypatch.setitem(sys.modules, "unwilling_msgs.msg", Unwilling("unwilling_msgs.msg"))
    parameters = {
        "layers": ["broken", "unwilling", "scene"],
        "broken": layer("/broken", "broken_msgs/msg/Broken"),
        "unwilling": layer("/unwilling", "unwilling_msgs/msg/Thing"),
        "scene": layer("/scene", STRING),
    }
    with node_here(tmp_path, parameters), peer() as other:
        other.publish("/scene", String(data="a red chair"))
        assert [row.text for row in other.wait_rows(1)] == ["a red chair"]
        cannot = "type {} cannot be read here: {}"
        assert other.layer("broken").problem == cannot.format("broken_msgs/msg/Broken", "no type_support imported")
        assert other.layer("unwilling").problem == cannot.format("unwilling_msgs/msg/Thing", "built against numpy 1")


@pytest.mark.parametrize("layers", [["scene", "wrong", "other"], ["wrong", "scene", "other"]])
@pytest.mark.parametrize("type_name", ["", STRING])
def test_f17_layers_of_one_topic_with_two_types_do_not_end_the_listening_of_others(
    tmp_path: Path, layers: list[str], type_name: str
) -> None:
    parameters = {
        "layers": layers,
        "scene": layer("/scene", type_name),
        "wrong": layer("/scene", "std_msgs/msg/Bool"),
        "other": layer("/other"),
    }
    with node_here(tmp_path, parameters), peer() as other:
        other.publish("/scene", String(data="a red chair"))
        other.publish("/other", String(data="a blue chair"))
        assert {row.text for row in other.wait_rows(2)} == {"a red chair", "a blue chair"}
        told = "/scene is published as std_msgs/msg/String, not as std_msgs/msg/Bool"
        wait_until(lambda: other.layer("wrong").problem == told, "both types")
        assert (other.layer("scene").problem, other.layer("other").problem) == ("", "")


def test_f17_a_topic_that_the_node_knows_as_another_type_is_told_without_a_publisher(tmp_path: Path) -> None:
    parameters = {
        "layers": ["scene", "wrong"],
        "scene": layer("/scene", STRING),
        "wrong": layer("/scene", "std_msgs/msg/Bool"),
    }
    with node_here(tmp_path, parameters), peer() as other:
        wait_until(lambda: other.layer("wrong").problem.startswith("cannot listen to /scene as std_msgs/msg/Bool"), "")


def found(name: str, message: str, level: bytes = DiagnosticStatus.WARN) -> DiagnosticStatus:
    return DiagnosticStatus(name=name, message=message, level=level)


def test_a_layer_of_diagnostics_leaves_out_what_the_node_says_itself(tmp_path: Path) -> None:
    parameters: dict[str, Any] = {
        "layers": ["diag"],
        "diag": layer("/diagnostics", DIAGNOSTICS, is_internal_state=True),
        "diagnostics_period": 0.1,
    }
    with node_here(tmp_path, parameters), peer() as other:
        wait_until(lambda: other.layer("diag").thinned >= 3, "it hears itself")
        status = other.layer("diag")
        assert (status.stored, status.refused, status.problem) == (0, 0, "")
        assert not other.call("body_status").readings
        mixed = [
            found("/memory: layer front", "no publisher"),
            found("motor", "too hot", DiagnosticStatus.ERROR),
            found("/r2/memory: jobs", "late"),
        ]
        other.publish("/diagnostics", DiagnosticArray(status=mixed), DiagnosticArray())
        readings = wait_until(lambda: other.call("body_status").readings, "a reading")
        assert [r.text for r in readings] == ["diag: error motor: too hot; warning /r2/memory: jobs: late"]
        wait_until(lambda: other.layer("diag").refused == 1, "one that was empty from the start is refused as ever")
        assert other.layer("diag").stored == 1


@pytest.mark.parametrize(
    ("node", "own"),
    [
        ("/memory", ["/Other/ memory: layer front", "/ memory: jobs", "/Other/memory: memory", "/memory: memory"]),
        ("/r1/memory", ["/Robot/Mind/ r1 memory: layer front", "/Other/r1/memory: jobs", "/r1/memory: memory"]),
    ],
)
def test_what_an_aggregator_makes_of_the_nodes_own_statuses_is_recognised(node: str, own: list[str]) -> None:
    paths, others = ["/Other", "/Robot", "/Robot/Mind"], ["/Robot/ r2 memory: jobs", "/r2/memory: jobs", "/Other/motor"]
    array = DiagnosticArray(status=[found(name, "late") for name in (*own, *paths, *others)])
    left = without_own(array, node)
    assert left is not None and [status.name for status in left.status] == [*paths, *others]
    assert without_own(DiagnosticArray(status=[found(name, "late") for name in own[:1]]), node) is None


def test_f6_a_latched_message_that_comes_again_is_the_same_one(tmp_path: Path) -> None:
    parameters = {"layers": ["signs"], "signs": layer("/signs", STRING, durability="transient_local")}
    with node_here(tmp_path, parameters) as node, peer() as other:
        other.publish("/signs", String(data="exit"), String(data="exit"), latched=True)
        wait_until(lambda: other.layer("signs").received == 2, "both came, alike as they are")
        feed = node._rooms.subscriptions["signs"]
        hasty = other.node.create_publisher(String, "/signs", HASTY)
        wait_until(lambda: not feed.reliable, "a best effort publisher makes it one")
        other.node.destroy_publisher(hasty)
        wait_until(lambda: feed.reliable, "without that it is reliable again")
        other.publish("/signs", String(data="way in"))
        wait_until(lambda: "way in" in [row.text for row in other.rows("signs")], "the next one")
        assert [row.text for row in other.rows("signs")] == ["exit", "exit", "way in"]
        assert other.layer("signs").received == 3
