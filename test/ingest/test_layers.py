from __future__ import annotations

from typing import Any

import pytest

from memory_node.errors import InvalidArgument
from memory_node.ingest.layers import LayerSettings, check_names, layer_from, layer_table

JOINTS = "sensor_msgs/msg/JointState"


def test_defaults_suit_a_fast_detector() -> None:
    layer = layer_from("detections", {"topic": "/detections"})
    assert (layer.max_rate_hz, layer.depth, layer.reliability, layer.type) == (2.0, 100, "auto", "")
    assert not layer.is_internal_state


def test_f15_empty_lists_are_unset_and_integers_are_numbers() -> None:
    layer = layer_from("a", {"topic": "/a", "fields": [], "label_map": [], "max_rate_hz": 5})
    assert layer.fields == () and layer.label_map == ()
    assert layer.max_rate_hz == 5.0 and isinstance(layer.max_rate_hz, float)


@pytest.mark.parametrize(
    ("setting", "value", "said"),
    [
        ("max_rate_hz", -1.0, "a.max_rate_hz: got -1.0, allowed is a number at least 0"),
        ("max_rate_hz", "fast", "a.max_rate_hz: got 'fast'"),
        ("min_confidence", 1.5, "a.min_confidence: got 1.5, allowed is a number at least 0 and at most 1"),
        ("is_internal_state", 1, "a.is_internal_state: got 1, allowed is true or false"),
        ("reliability", "maybe", "allowed is one of auto, reliable, best_effort"),
        ("depth", 0, "a.depth: got 0, allowed is a whole number at least 1"),
        ("fields", [1, 2], "a.fields: got [1, 2], allowed is a list of strings"),
        ("label_map", ["tv"], "a.label_map: got 'tv', allowed is \"from: to\""),
        ("trigger", "often", "a.trigger: got 'often', allowed is \"/topic\" or \"0.2 Hz\""),
        ("trigger", "/1st", "a.trigger: got '/1st', allowed is"),
        *(
            ("topic", name, f"a.topic: got {name!r}, allowed is a topic's name such as \"/camera/found\"")
            for name in ("bad topic", "/a/", "//a", "/1st", "/a/2nd", "~a", "/caf\u00e9", "a.b", "/")
        ),
        ("type", "std_msgs/String", "a.type: got 'std_msgs/String', allowed is \"package/msg/Type\""),
        ("topics", "/b", "a.topics: no such setting of a layer; there are: topic, type"),
    ],
)
def test_wrong_values_are_refused_by_name(setting: str, value: Any, said: str) -> None:
    with pytest.raises(InvalidArgument) as error:
        layer_from("a", {"topic": "/a", setting: value})
    assert said in str(error.value)
    assert error.value.argument == f"a.{setting}"


@pytest.mark.parametrize("name", ["a", "/a", "/a/b_1", "~/a", "_a/B2", "/{node}/a", "a__b"])
def test_names_of_topics_are_those_of_ros(name: str) -> None:
    assert layer_from("a", {"topic": name}).topic == name


@pytest.mark.parametrize(
    ("more", "internal"),
    [({}, True), ({"is_internal_state": False}, False), ({"is_internal_state": True}, True)],
)
def test_joints_are_of_the_body_unless_said_otherwise(more: dict[str, bool], internal: bool) -> None:
    joints = layer_from("joints", {"topic": "/joint_states", "type": JOINTS, **more})
    assert joints.is_internal_state is internal and joints.tells_of_body() is internal
    found_out = layer_from("joints", {"topic": "/joint_states", **more})
    assert found_out.tells_of_body(JOINTS) is internal
    assert found_out.tells_of_body("std_msgs/msg/String") is more.get("is_internal_state", False)
    assert found_out.tells_of_body() is more.get("is_internal_state")


def test_a_layer_without_topic_is_refused_with_the_right_form() -> None:
    with pytest.raises(InvalidArgument, match=r"a\.topic: missing; write  a: \{topic: /some_topic\}"):
        layer_from("a", {})


@pytest.mark.parametrize(
    ("trigger", "rate", "topic"),
    [("", None, ""), ("0.5", 0.5, ""), ("2 Hz", 2.0, ""), ("/snapshot", None, "/snapshot"), ("~/now", None, "~/now")],
)
def test_a_trigger_is_a_rate_or_a_topic(trigger: str, rate: float | None, topic: str) -> None:
    layer = LayerSettings("a", topic="/a", trigger=trigger)
    assert (layer.trigger_rate, layer.trigger_topic) == (rate, topic)


def test_labels_map_names_and_leave_out() -> None:
    layer = LayerSettings("a", topic="/a", label_map=("62: dining table", "junk:"))
    assert layer.labels == {"62": "dining table", "junk": ""}


@pytest.mark.parametrize(
    ("rule", "source", "target"),
    [
        ("62:tv", "62", "tv"),
        (": tv", "", "tv"),
        ("62: lab:tv", "62", "lab:tv"),
        ("coco:62: tv", "coco:62", "tv"),
        ("coco:62:tv", "coco:62", "tv"),
        ("coco: 62: tv", "coco: 62", "tv"),
        ("coco:person:", "coco:person", ""),
        ("coco: person:", "coco: person", ""),
        ("coco: person: ", "coco: person", ""),
    ],
)
def test_a_label_may_hold_a_colon(rule: str, source: str, target: str) -> None:
    assert LayerSettings("a", topic="/a", label_map=(rule,)).labels == {source: target}


@pytest.mark.parametrize(("names", "said"), [(["a", "a"], "twice"), ([" "], "without dots"), (["a.b"], "without dots")])
def test_names_of_layers_are_checked(names: list[str], said: str) -> None:
    with pytest.raises(InvalidArgument, match=said):
        check_names(names)
    check_names(["a", "b"])


def test_every_setting_has_a_description() -> None:
    assert all(spec.doc.endswith(".") for spec in layer_table().values())
    assert "name" not in layer_table()
