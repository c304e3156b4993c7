"""Readings at the edges of what their types allow: limits that nobody set, too near, too many, too many digits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from support import ros_messages as ros

from memory_node.ingest.converters import Origin, Refused, TextPercept, converter
from memory_node.ingest.layers import LayerSettings


def read_new(type_name: str, layer: dict[str, Any] | None = None, **fields: Any) -> TextPercept:
    settings = LayerSettings("sense", topic="/sense", **(layer or {}))
    percept = converter(type_name, settings)(ros.make(type_name, **fields), settings)
    assert isinstance(percept, TextPercept)
    return percept


# ---- scans


def scan(*ranges: float, low: float = 0.1, high: float = 10.0) -> TextPercept:
    """Rays from 90 degrees right to 90 degrees left when there are five."""
    return read_new(
        "sensor_msgs/msg/LaserScan", ranges=np.array(ranges), range_min=low, range_max=high,
        angle_min=-math.pi / 2, angle_increment=math.pi / 4,
    )  # fmt: skip


def test_what_is_too_near_to_be_measured_is_not_free() -> None:
    near = -math.inf
    assert scan(near, near, near, near, near).text == "sense: too near to measure ahead"
    assert scan(near, near, near, near, near).value is None
    beside = scan(near, math.inf, math.inf, 3.0, math.inf)
    near_right = "too near to measure at 90° right"
    assert beside.text == f"sense: {near_right}, nearest else 3.0 m at 40° left, 75 % of the view free"
    assert beside.value is None, "the nearest obstacle has no range"
    assert scan(math.inf, near, math.inf, math.inf, math.inf).text == (
        "sense: too near to measure at 40° right, nothing else within 10 m"
    )


@pytest.mark.parametrize("invalid", [0.0, 0.05, -1.0, math.nan])
def test_ranges_below_the_least_tell_nothing(invalid: float) -> None:
    assert scan(invalid, invalid, 5.0, math.inf).text == "sense: nearest 5.0 m ahead, 50 % of the view free"
    with pytest.raises(Refused, match="no ranges"):
        scan(invalid, invalid)


def test_a_zero_is_no_range_even_when_no_least_is_given() -> None:
    assert scan(0.0, 0.0, 5.0, low=0.0).text == "sense: nearest 5.0 m ahead, 0 % of the view free"


def test_a_scan_whose_limits_nobody_set() -> None:
    assert scan(0.42, 2.0, low=0.0, high=0.0).text == "sense: nearest 0.4 m at 90° right, 0 % of the view free"
    assert scan(math.inf, math.inf, low=0.0, high=0.0).text == "sense: nothing"


def test_a_range_whose_limits_nobody_set() -> None:
    near = read_new("sensor_msgs/msg/Range", range=0.42)
    assert (near.text, near.value) == ("sense: 0.42 m", 0.42)
    assert read_new("sensor_msgs/msg/Range", range=math.inf).text == "sense: nothing"


# ---- fixes


@pytest.mark.parametrize(
    ("longitude", "said"),
    [(359.0, "1.00000° W"), (181.5, "178.50000° W"), (-190.0, "170.00000° E"), (180.0, "180.00000° E")],
)
def test_longitudes_beyond_half_a_turn_are_the_other_side(longitude: float, said: str) -> None:
    fix = read_new("sensor_msgs/msg/NavSatFix", latitude=10.0, longitude=longitude, altitude=1.0)
    assert fix.text == f"sense: 10.00000° N, {said}, altitude 1 m"


def test_longitudes_of_no_globe_are_refused() -> None:
    with pytest.raises(Refused, match="not on the globe"):
        read_new("sensor_msgs/msg/NavSatFix", latitude=10.0, longitude=361.0)


# ---- numbers


@pytest.mark.parametrize("data", [1_234_567, -2_147_483_648, np.int32(2_147_483_647)])
def test_whole_numbers_keep_every_digit(data: Any) -> None:
    percept = read_new("std_msgs/msg/Int32", data=data)
    assert (percept.text, percept.value) == (f"sense: {int(data)}", float(data))


# ---- any other type


def test_what_is_too_much_to_say_is_counted() -> None:
    """A Marker has 30 numbers and words besides its header and its constants; empty words are none."""
    marker = read_new("visualization_msgs/msg/Marker", text="here")
    assert marker.text.startswith("sense: id 0, type 0, action 0, pose.position.x 0, ")
    assert marker.text.count(",") == 15 and marker.text.endswith("color.r 0, color.g 0, color.b 0 and 8 more")
    assert len(marker.values) == 23, "min_change looks at every number, also at those not said"


@dataclass
class Deep:
    inner: Any


def test_fields_are_read_however_deep_they_lie() -> None:
    message: Any = Deep(3.5)
    for _ in range(5):
        message = Deep(message)
    settings = LayerSettings("sense", topic="/sense")
    percept = converter("deep_msgs/msg/Deep", settings)(message, settings)
    assert percept == TextPercept(Origin(), "sense: 3.5", 3.5, values=(3.5,))


def test_a_long_list_says_how_many_items_it_has_besides() -> None:
    joints = {"name": ["a"], "position": np.arange(20.0)}
    percept = read_new("sensor_msgs/msg/JointState", {"fields": ("position",)}, **joints)
    assert percept.text == "sense: [0, 1, 2, 3, 4, 5, 6, 7 and 12 more]"
    assert read_new("sensor_msgs/msg/JointState", {"fields": ("name",)}, **joints).text == "sense: [a]"
