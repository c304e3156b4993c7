"""Parameters of the running node: what refuses a change says why, and what the node shows can be read back."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rcl_interfaces.msg import Parameter as ParameterMessage
from rcl_interfaces.srv import GetParameters, ListParameters, SetParameters, SetParametersAtomically
from rclpy.parameter import Parameter, parameter_value_to_python
from support.ros_harness import Peer, layer, node_here, peer

from memory_node.ingest.parameters import node_table, read
from memory_node.ros.declare import descriptor_of

PARAMETERS: dict[str, Any] = {
    "layers": ["scene", "joints"],
    "scene": layer("/scene", "std_msgs/msg/String"),
    "joints": layer("/joint_states"),
    "sensor_frames": {"camera": [0.5, 0.0, 1.0, 0.0, 0.0, 0.0]},
}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, Peer]]:
    with node_here(tmp_path_factory.mktemp("parameters"), PARAMETERS) as node, peer() as other:
        yield node, other


def asked(name: str, value: Any) -> ParameterMessage:
    return Parameter(name, value=value).to_parameter_msg()


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("flush_batch_size", 2.5, "flush_batch_size: got 2.5, allowed is a whole number at least 1"),
        ("flush_batch_size", "many", "flush_batch_size: got 'many', allowed is a whole number at least 1"),
        ("flush_batch_size", 0, "flush_batch_size: got 0, allowed is a whole number at least 1"),
        ("fold_repeats", "no", "fold_repeats: got 'no', allowed is true or false"),
        ("auto_store", 3, "auto_store: got 3, allowed is true or false"),
        ("time_zone", 7, "time_zone: got 7, allowed is an IANA name such as Europe/Berlin"),
        ("position_max_stddev", True, "position_max_stddev: got True, allowed is a number at least 0"),
        ("position_max_stddev", -1.0, "position_max_stddev: got -1.0, allowed is a number at least 0"),
        ("flush_interval", None, "flush_interval: got None, allowed is a number at least 0.01"),
        ("scene.min_confidence", "low", "scene.min_confidence: got 'low', allowed is a number at least 0"),
        ("db_path", "x", "db_path: got 'x', it cannot change while the node runs; allowed is the path of a file"),
        ("num_threads", 7, "num_threads: got 7, it cannot change while the node runs; allowed is a whole number"),
        ("layers", ["a"], "layers: got ['a'], it cannot change while the node runs; allowed is a list of strings"),
        ("scene.topic", 5, "scene.topic: got 5, it cannot change while the node runs; allowed is a string"),
        ("scene.label_map", ["tv"], "scene.label_map: got ['tv'], it cannot change while the node runs; allowed is a"),
        ("sensor_frames.camera", 1.0, "sensor_frames.camera: got 1.0, it cannot change while the node runs"),
        ("sensor_frames.camera", [1.0, 2.0], "sensor_frames.camera: got [1.0, 2.0], it cannot change while the node"),
        ("start_type_description_service", 3, "start_type_description_service: got 3, it cannot change while the"),
        ("fold_window", 1e300, "fold_window: got 1e+300, allowed is a number at least 0 and at most 1e+07"),
        ("recency_weight", math.nan, "recency_weight: got nan, allowed is a number at least 0 and at most 10"),
        ("recency_weight", math.inf, "recency_weight: got inf, allowed is a number at least 0 and at most 10"),
        ("scene.max_silence", 60.0, "scene.max_silence: got 60.0, it has no effect here: it is for internal state"),
        ("use_sim_time", "yes", "use_sim_time: got 'yes', allowed is true or false"),
        ("use_sim_time", 5, "use_sim_time: got 5, allowed is true or false"),
        ("nonsense", 1.0, "nonsense: no such parameter"),
        ("flush_intervall", 1.0, "flush_intervall: no such parameter; did you mean 'flush_interval'?"),
        ("scene.topics", 1.0, "scene.topics: no such parameter; did you mean 'scene.topic'?"),
    ],
)
def test_what_is_refused_says_which_what_came_and_what_is_allowed(
    world: tuple[Any, Peer], name: str, value: Any, said: str
) -> None:
    node, other = world
    before = node.get_parameters_by_prefix("")
    for service, kind in (("set_parameters", SetParameters), ("set_parameters_atomically", SetParametersAtomically)):
        answer = other.call(service, kind=kind, parameters=[asked(name, value)])
        result = answer.result if hasattr(answer, "result") else answer.results[0]
        assert not result.successful and result.reason.startswith(said)
    assert {n: p.value for n, p in node.get_parameters_by_prefix("").items()} == {n: p.value for n, p in before.items()}


def test_a_descriptor_tells_what_is_allowed_in_words_and_as_a_range() -> None:
    table = node_table()
    threads = descriptor_of(table["num_threads"])
    assert threads.read_only and threads.additional_constraints == "a whole number at least 6 and at most 64"
    assert [(r.from_value, r.to_value) for r in threads.integer_range] == [(6, 64)]
    radius = descriptor_of(table["fold_radius"])
    assert not radius.read_only and radius.description == "A repeat lies within this of the last. [m]"
    assert [(r.from_value, r.to_value) for r in radius.floating_point_range] == [(0.0, 10_000.0)]
    assert descriptor_of(table["durability"]).additional_constraints == "one of normal, full"


def test_of_several_changes_at_once_all_are_made_or_none(world: tuple[Any, Peer]) -> None:
    node, other = world
    both = [asked("recency_weight", 0.7), asked("flush_interval", -1.0)]
    result = other.call("set_parameters_atomically", kind=SetParametersAtomically, parameters=both).result
    assert not result.successful and result.reason.startswith("flush_interval: got -1.0")
    assert node.memory.settings.recency_weight == 0.0
    both[1] = asked("flush_interval", 1)
    assert other.call("set_parameters_atomically", kind=SetParametersAtomically, parameters=both).result.successful
    assert (node.memory.settings.recency_weight, node.memory.settings.flush_interval) == (0.7, 1.0)


def shown(other: Peer) -> dict[str, Any]:
    """What `ros2 param dump` writes: names and values."""
    names = list(other.call("list_parameters", kind=ListParameters).result.names)
    found = other.call("get_parameters", kind=GetParameters, names=names).values
    values = map(parameter_value_to_python, found)
    plain = (value if isinstance(value, (str, bool, int, float)) else list(value) for value in values)
    return dict(zip(names, plain, strict=True))


def nested(flat: dict[str, Any]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for name, value in flat.items():
        *groups, last = name.split(".")
        place = tree
        for group in groups:
            place = place.setdefault(group, {})
        place[last] = value
    return tree


def test_f15_what_a_running_node_shows_can_be_read_back(world: tuple[Any, Peer], tmp_path: Path) -> None:
    node, other = world
    dump = shown(other)
    assert dump["scene.fields"] == [""] and dump["layers"] == ["scene", "joints"]
    again = read(dump)
    assert (again.values, again.layers, again.mounts, again.unread) == (
        node.parameters.values, node.parameters.layers, node.parameters.mounts, {},
    )  # fmt: skip


def test_f15_a_dumped_file_starts_the_same_node(tmp_path: Path) -> None:
    with node_here(tmp_path, {"layers": []}) as node, peer() as other:
        before, dump = node.parameters, shown(other)
        assert dump["layers"] == [""]
    with node_here(tmp_path, nested(dump)) as node:
        assert (node.parameters.values, node.parameters.layers) == (before.values, before.layers)
