"""Messages of every supported type with extreme values: each is stored or refused, and the counts add up."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import ros_messages as ros
from support.fakes import FakeClock

from memory_node.graph import Filter
from memory_node.ingest.converters import POSE_TYPES, supported_types
from memory_node.ingest.delivery import ODOMETRY
from memory_node.ingest.intake import Intake
from memory_node.ingest.layers import LayerSettings
from memory_node.memory import Memory

ODD_FLOATS = [0.0, -0.0, 1.0, -1.0, 8.0, 86.0, math.nan, math.inf, -math.inf, 1e256, 1.7e308, 5e-324, 1e8, -1e9]
ODD_TEXTS = [
    "",
    " ",
    "\x00",
    "\udce9 lone",
    "caf\u00e9",
    "a" * 1_000_000,
    "/map",
    "map",
    "base_link",
    "DROP TABLE node; --",
]
ODD_STAMPS = [0, 1, -1, 1000 * 10**9, 4600 * 10**9, 10**6 * 10**9, -(2**31) * 10**9, (2**31 - 1) * 10**9]
OTHER_TYPES = ("geometry_msgs/msg/TwistStamped", "sensor_msgs/msg/Imu", "std_msgs/msg/ByteMultiArray", *POSE_TYPES)

floats = st.one_of(st.sampled_from(ODD_FLOATS), st.floats())
texts = st.one_of(st.sampled_from(ODD_TEXTS), st.text(max_size=20))


@st.composite
def fields(draw: st.DrawFn, kind: Any) -> Any:
    """A value of a field's type in the typestore's own notation."""
    node, detail = kind
    if node.name == "NAME":
        return draw(messages(detail))
    if node.name == "BASE":
        name = detail[0]
        if name == "string":
            return draw(texts)
        if name == "bool":
            return draw(st.booleans())
        if name.startswith("float"):
            return draw(floats)
        bits = 8 if name in ("octet", "byte", "char") else int(name.lstrip("uint"))
        low, high = (
            (0, 2**bits - 1) if name.startswith(("u", "o", "b", "c")) else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        )
        return draw(st.integers(low, high))
    length = detail[1] if node.name == "ARRAY" else draw(st.sampled_from([0, 0, 1, 2, 3]))
    if detail[0][0].name == "BASE" and detail[0][1][0].startswith("float"):
        many = draw(st.sampled_from([False] * 9 + [True])) and node.name != "ARRAY"
        return np.full(100_000, draw(floats)) if many else np.array([draw(floats) for _ in range(length)])
    return [draw(fields(detail[0])) for _ in range(length)]


@st.composite
def messages(draw: st.DrawFn, type_name: str) -> Any:
    """A message of a type."""
    if type_name == "builtin_interfaces/msg/Time":
        sec, nanosec = divmod(draw(st.sampled_from(ODD_STAMPS)), 10**9)
        return ros.make(type_name, sec=sec, nanosec=nanosec)
    values = {name: draw(fields(kind)) for name, kind in ros.store().fielddefs[type_name][1]}
    return ros.make(type_name, **values)


@st.composite
def any_message(draw: st.DrawFn) -> tuple[str, Any]:
    """A type with a message of it."""
    type_name = draw(st.sampled_from([*supported_types(), *OTHER_TYPES]))
    return type_name, draw(messages(type_name))


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(sent=st.lists(any_message(), min_size=1, max_size=8), internal=st.booleans())
def test_whatever_is_sent_is_stored_or_refused_and_counted(
    tmp_path_factory: Any, sent: list[tuple[str, Any]], internal: bool
) -> None:
    clock = FakeClock(1000.0)
    path = Path(tmp_path_factory.mktemp("fuzz")) / "memory.db"
    layers = [
        LayerSettings("any", topic="/any", max_rate_hz=0.0, is_internal_state=internal),
        LayerSettings(ODOMETRY, topic="/odom", max_rate_hz=0.0),
    ]
    with Memory.open(path, clock=clock) as memory:
        intake = Intake(memory, layers, clock)
        for type_name, message in sent:
            intake.put(ODOMETRY if type_name in POSE_TYPES else "any", message, type_name)
            clock.advance(0.1)
        intake.drain()
        memory.flush()
        total = 0
        for counts in intake.counts.values():
            assert counts.received == counts.taken + counts.thinned + counts.dropped + counts.refused
            assert counts.dropped == 0
            assert not any(reason.startswith("not readable") for reason in counts.refusals), counts.refusals
            total += counts.received
        assert total == len(sent)
        for row in memory.temporal_query(Filter(any_map=True), limit=1000).matches:
            assert row.stamp > 0 and row.text.strip()
            assert row.position is None or all(math.isfinite(value) for value in row.position)
        latest = memory.track.latest
        assert latest is None or (all(map(math.isfinite, latest.position)) and latest.stamp > 0)
        assert latest is None or latest.yaw is None or math.isfinite(latest.yaw)
