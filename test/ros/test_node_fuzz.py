"""Extreme values of every supported type, published to the running node: it outlives them, and the counts add up."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point, PointStamped
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from nav_msgs.msg import Odometry
from robot_memory.msg import Detection, DetectionArray, Filter
from support.ros_harness import Peer, layer, node_here, peer, stamp, wait_until

from memory_node.ingest.converters import POSE_TYPES, supported_types
from memory_node.ros.subscriptions import message_class

pytest.importorskip("vision_msgs.msg", reason="vision_msgs is not installed")

TYPES = {f"layer{i}": name for i, name in enumerate((*supported_types(), "geometry_msgs/msg/TwistStamped"))}
ODD_FLOATS = [0.0, -0.0, 1.0, -1.0, 8.0, 86.0, math.nan, math.inf, -math.inf, 1e8, -1e9]
MOST_OF_FLOAT = 2.0**128 - 2.0**105
"""The largest float32 but one: the checks of fields refuse the largest."""
FLOATS = {
    "float": st.sampled_from([*ODD_FLOATS, 2.0**-149]) | st.floats(-MOST_OF_FLOAT, MOST_OF_FLOAT, width=32),
    "double": st.sampled_from([*ODD_FLOATS, 1e300, 5e-324]) | st.floats(),
}
# rclpy publishes no lone surrogate; bytes that are no UTF-8 have a test of their own, F7.
ODD_TEXTS = ["", " ", "\x00", "caf\u00e9", "a" * 1_000_000, "/map", "map", "base_link", "\u202e", "\U0001f600"]
ODD_SECONDS = [0, 1, -1, 2**31 - 1, -(2**31), round(time.time())]
EXAMPLES = 20
CHECKED = {"check_fields": True} if hasattr(Time(), "_check_fields") else {}
"""What lets constructors check each field's type, as ROS_PYTHON_CHECK_FIELDS=1 does; Humble's always do."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, Peer]]:
    parameters: dict[str, Any] = {"layers": list(TYPES)}
    parameters |= {name: layer(f"/{name}", type_name, depth=1000) for name, type_name in TYPES.items()}
    with node_here(tmp_path_factory.mktemp("fuzz"), parameters) as node, peer() as other:
        yield node, other


def values(kind: Any) -> st.SearchStrategy[Any]:
    """Values of a field's type, which is a class of rosidl_parser."""
    if type(kind).__name__.endswith("String"):
        return st.one_of(st.sampled_from(ODD_TEXTS), st.text(max_size=20))
    if hasattr(kind, "typename"):
        name = kind.typename
        if name == "boolean":
            return st.booleans()
        if name in FLOATS:
            return FLOATS[name]
        if name == "octet":
            return st.binary(min_size=1, max_size=1)
        bits = int(name.lstrip("uint") or 8)
        low, high = (0, 2**bits - 1) if name.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        return st.one_of(st.sampled_from([low, high, 0]), st.integers(low, high))
    if hasattr(kind, "value_type"):
        item = values(kind.value_type)
        if type(kind).__name__ == "Array":
            return st.lists(item, min_size=kind.size, max_size=kind.size)
        few = st.lists(item, max_size=3)
        is_number = hasattr(kind.value_type, "typename")
        return st.one_of(few, few, few, item.map(lambda value: [value] * 100_000)) if is_number else few
    return messages("/".join((*kind.namespaces, kind.name)))


def messages(type_name: str) -> st.SearchStrategy[Any]:
    """Messages of a type."""
    if type_name == "builtin_interfaces/msg/Time":
        seconds = st.sampled_from(ODD_SECONDS)
        nanoseconds = st.sampled_from([0, 1, 999_999_999, 2**32 - 1])
        return st.builds(partial(Time, **CHECKED), sec=seconds, nanosec=nanoseconds)
    cls = message_class(type_name)
    fields = zip(cls.get_fields_and_field_types(), cls.SLOT_TYPES, strict=True)
    return st.builds(partial(cls, **CHECKED), **{name: values(kind) for name, kind in fields})


def assert_counts_add_up(node: Any, sent: dict[str, int]) -> None:
    counts = node._rooms.intake.counts
    wait_until(lambda: all(counts[name].received == number for name, number in sent.items()), "all came", 30.0)
    node.flush()
    for name, count in counts.items():
        assert count.received == count.taken + count.thinned + count.dropped + count.refused, name
        assert count.dropped == 0 and not any(reason.startswith("not readable") for reason in count.refusals), count


SENT: dict[str, int] = dict.fromkeys((*TYPES, "odometry"), 0)


def publish(other: Peer, topic: str, type_name: str) -> int:
    """Publish messages of a type; returns how many. None is looked for that is simpler: nothing is judged here."""
    sent: list[Any] = []

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        derandomize=True,
        phases=[Phase.generate],
    )
    @given(message=messages(type_name))
    def one(message: Any) -> None:
        sent.append(message)

    one()
    other.publish(topic, *sent)
    return len(sent)


def test_whatever_is_published_is_stored_or_refused_and_counted(world: tuple[Any, Peer]) -> None:
    node, other = world
    for name, type_name in TYPES.items():
        SENT[name] += publish(other, f"/{name}", type_name)
    SENT["odometry"] += publish(other, "/odom", POSE_TYPES[0])
    assert min(SENT.values()) >= 2 and sum(SENT.values()) >= 300  # a Bool is one of two
    assert_counts_add_up(node, SENT)
    answer = other.call("temporal_query", filter=Filter(any_map=True), limit=1000)
    assert answer.success and answer.matches
    for match in answer.matches:
        assert match.text.strip() and match.stamp.sec >= 0
        at = match.position.point
        assert all(map(math.isfinite, (at.x, at.y, at.z, match.confidence)))
    assert other.call("get_current_context").success and other.call("get_status").success


def test_f22_poses_with_zero_quaternions_have_a_place_without_heading(world: tuple[Any, Peer]) -> None:
    node, other = world
    node.memory.track.clear()
    message = Odometry(child_frame_id="base_link")
    message.header.frame_id, message.header.stamp = "map", stamp(time.time())
    message.pose.pose.position.x, message.pose.pose.orientation.w = 3.0, 0.0
    other.publish("/odom", message)
    SENT["odometry"] += 1
    assert_counts_add_up(node, SENT)
    context = other.call("get_current_context")
    assert context.has_position and context.position.point.x == 3.0 and math.isnan(context.heading)


def test_a_huge_array_of_detections_is_one_look(world: tuple[Any, Peer]) -> None:
    node, other = world
    name = next(name for name, kind in TYPES.items() if kind == "robot_memory/msg/DetectionArray")
    found = [
        Detection(label=f"thing {i}", confidence=0.9, has_position=True, position=Point(x=float(i), y=1.0, z=0.0))
        for i in range(2000)
    ]
    look = DetectionArray(detections=found)
    look.header.frame_id, look.header.stamp = "map", stamp(time.time())
    before = other.layer(name).stored
    other.publish(f"/{name}", look)
    SENT[name] += 1
    assert_counts_add_up(node, SENT)
    assert other.layer(name).stored == before + 2000
    near = other.call("spatial_query", center=PointStamped(point=Point(x=1999.0, y=1.0)), radius=0.5)
    assert [match.text for match in near.matches] == ["thing 1999"]
