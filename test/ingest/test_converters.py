"""Texts, scalars, readings of the body, poses, and any other type."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from ingest.converting import read, read_new
from support import ros_messages as ros

from memory_node.ingest.converters import (
    DetectionsPercept,
    Origin,
    PosePercept,
    Refused,
    TextPercept,
    robot_pose,
    supported_types,
)
from memory_node.ingest.layers import LayerSettings


def battery(layer: dict[str, Any] | None = None, **fields: Any) -> TextPercept:
    return read_new("sensor_msgs/msg/BatteryState", layer, **{"present": True, "voltage": 12.0, **fields})


# ---- text and scalars


def test_string_is_its_text() -> None:
    assert read("std_msgs/msg/String", ros.string("  a red chair \n")) == TextPercept(Origin(None, ""), "a red chair")


@pytest.mark.parametrize("blank", ["", "   ", "\n\t", "\x00"])
def test_blank_text_is_refused(blank: str) -> None:
    with pytest.raises(Refused, match="empty text"):
        read("std_msgs/msg/String", ros.string(blank))


def test_f7_surrogates_and_nul_are_repaired_and_long_text_is_cut() -> None:
    assert read("std_msgs/msg/String", ros.string("caf\udce9\x00!")).text == "caf\ufffd!"
    long = read("std_msgs/msg/String", ros.string("x" * 1_000_000))
    assert len(long.text) == 65_536 and long.metadata == {"cut_from": 1_000_000}


@pytest.mark.parametrize(
    ("type_name", "data", "text", "value"),
    [
        ("std_msgs/msg/Bool", True, "sense: true", 1.0),
        ("std_msgs/msg/Bool", np.bool_(False), "sense: false", 0.0),
        ("std_msgs/msg/Int32", -7, "sense: -7", -7.0),
        ("std_msgs/msg/Float32", np.float32(21.5), "sense: 21.5", 21.5),
        ("std_msgs/msg/Float64", 1.0 / 3.0, "sense: 0.333333", 1.0 / 3.0),
    ],
)
def test_scalars(type_name: str, data: Any, text: str, value: float) -> None:
    percept = read_new(type_name, data=data)
    assert (percept.text, percept.value) == (text, value)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_scalars_that_are_not_finite_are_refused(bad: float) -> None:
    with pytest.raises(Refused, match="not finite"):
        read_new("std_msgs/msg/Float32", data=bad)


# ---- the body


@pytest.mark.parametrize(
    ("percentage", "scale", "fraction"),
    [
        (0.86, 1.0, 0.86),
        (1.0, 1.0, 1.0),
        (1.0000001, 1.0, 1.0),
        (0.0, 1.0, 0.0),
        (86.0, 100.0, 0.86),
        (1.0, 100.0, 0.01),
        (100.0, 100.0, 1.0),
        (86.0, 1.0, None),
        (8.0, 1.0, None),
        (-0.01, 1.0, None),
        (math.nan, 1.0, None),
        (math.inf, 100.0, None),
    ],
)
def test_f20_percentage(percentage: float, scale: float, fraction: float | None) -> None:
    percept = battery({"percentage_scale": scale}, percentage=percentage)
    assert percept.value == (None if fraction is None else pytest.approx(fraction))
    assert percept.unit == ("" if fraction is None else "fraction")
    said = "charge unknown" if fraction is None else f"{fraction * 100:.0f} %"
    assert percept.text == f"sense: {said}, 12.0 V"


def test_f20_zero_of_a_battery_that_is_not_present_is_unknown() -> None:
    assert battery(present=False, percentage=0.0, voltage=15.8).text == "sense: charge unknown, 15.8 V"
    assert battery(present=False, percentage=0.0).value is None
    assert battery(present=False, percentage=0.5).value == 0.5


def test_battery_says_whether_it_charges() -> None:
    assert battery(percentage=0.5, power_supply_status=1).text == "sense: 50 %, 12.0 V, charging"
    assert battery(percentage=0.5, power_supply_status=0, voltage=math.nan).text == "sense: 50 %"


def test_battery_says_what_is_wrong_with_it() -> None:
    said = [battery(percentage=0.5, power_supply_health=health).text for health in range(9)]
    faults = ("overheated", "dead", "overvoltage", "failure", "cold", "watchdog timer expired", "safety timer expired")
    assert said == ["sense: 50 %, 12.0 V"] * 2 + [f"sense: 50 %, 12.0 V, {fault}" for fault in faults]
    assert battery(present=False, percentage=math.nan, voltage=0.0).text == "sense: charge unknown, not present"


@pytest.mark.parametrize("percentage", [0.5, math.nan])
def test_f20_a_voltage_that_was_not_set_is_not_told(percentage: float) -> None:
    assert battery(percentage=percentage, voltage=0.0).text in ("sense: 50 %", "sense: charge unknown")


def test_battery_by_a_named_field_is_that_field() -> None:
    percept = battery({"fields": ("voltage",)}, percentage=math.nan, voltage=15.5)
    assert (percept.text, percept.value) == ("sense: 15.5", 15.5)


def test_temperature() -> None:
    percept = read_new("sensor_msgs/msg/Temperature", temperature=36.64, header=ros.header(3.0, "cpu"))
    assert percept == TextPercept(Origin(3_000_000_000, "cpu"), "sense: 36.6 °C", 36.64, "degC")
    with pytest.raises(Refused):
        read_new("sensor_msgs/msg/Temperature", temperature=math.nan)


@pytest.mark.parametrize(
    ("distance", "text", "value"),
    [
        (0.42, "sense: 0.42 m", 0.42),
        (math.inf, "sense: nothing within 2 m", None),
        (5.0, "sense: nothing within 2 m", None),
        (-math.inf, "sense: too near to measure", None),
        (0.01, "sense: too near to measure", None),
    ],
)
def test_range(distance: float, text: str, value: float | None) -> None:
    percept = read_new("sensor_msgs/msg/Range", range=distance, min_range=0.05, max_range=2.0)
    assert (percept.text, percept.value) == (text, value)


def test_range_that_is_nan_is_refused() -> None:
    with pytest.raises(Refused):
        read_new("sensor_msgs/msg/Range", range=math.nan)


def test_nav_sat_fix() -> None:
    status = ros.make("sensor_msgs/msg/NavSatStatus", status=0)
    percept = read_new(
        "sensor_msgs/msg/NavSatFix", status=status, latitude=40.23612, longitude=-111.65743, altitude=1410.4
    )
    assert percept.text == "sense: 40.23612° N, 111.65743° W, altitude 1410 m"
    assert percept.position is None
    no_fix = ros.make("sensor_msgs/msg/NavSatStatus", status=-1)
    assert read_new("sensor_msgs/msg/NavSatFix", status=no_fix, latitude=math.nan).text == "sense: no fix"
    with pytest.raises(Refused, match="globe"):
        read_new("sensor_msgs/msg/NavSatFix", status=status, latitude=math.nan)


def test_joint_state() -> None:
    type_name = "sensor_msgs/msg/JointState"
    percept = read_new(type_name, name=["a", "b", "c"], position=np.array([0.125, math.nan, 2.0]))
    assert percept.text == "sense: a 0.12, c 2.00" and percept.value is None
    assert read_new(type_name, name=["lift"], position=np.array([0.3])).value == 0.3
    many = read_new(type_name, name=[f"j{i}" for i in range(20)], position=np.zeros(20))
    assert many.text.endswith("j11 0.00 and 8 more")
    with pytest.raises(Refused):
        read_new(type_name, name=["a"], position=np.zeros(0))


def test_laser_scan_in_one_line() -> None:
    scan = {"angle_min": -math.pi / 2, "angle_increment": math.pi / 4, "range_min": 0.1, "range_max": 10.0}
    type_name = "sensor_msgs/msg/LaserScan"
    percept = read_new(type_name, ranges=np.array([math.inf, 0.05, 3.0, 0.44, math.nan]), **scan)
    # 0.05 m is below range_min, so it is noise; three of five ranges are known, two of them hits.
    assert percept.text == "sense: nearest 0.4 m at 40° left, 33 % of the view free"
    assert percept.value == 0.44
    assert read_new(type_name, ranges=np.full(5, math.inf), **scan).text == "sense: nothing within 10 m"
    with pytest.raises(Refused, match="no ranges"):
        read_new(type_name, ranges=np.zeros(0), **scan)


@pytest.mark.parametrize("as_bytes", [False, True])
def test_diagnostics_the_worst_first(as_bytes: bool) -> None:
    def status(level: int, name: str, message: str) -> Any:
        sent = bytes([level]) if as_bytes else level
        return ros.make("diagnostic_msgs/msg/DiagnosticStatus", level=sent, name=name, message=message)

    percept = read_new(
        "diagnostic_msgs/msg/DiagnosticArray",
        status=[status(0, "imu", "fine"), status(1, "disk", "nearly full"), status(2, "motor", "too hot")],
    )
    assert percept.text == "sense: error motor: too hot; warning disk: nearly full; 1 ok"
    assert percept.value == 2.0


# ---- poses


def test_pose_stamped_is_a_place_in_its_frame() -> None:
    percept = read_new("geometry_msgs/msg/PoseStamped", header=ros.header(1.0, "/map"), pose=ros.pose(1.0, 2.0))
    at = (1.0, 2.0, 0.0)
    said = "sense: (1.00, 2.00, 0.00)"
    assert percept == TextPercept(Origin(1_000_000_000, "map"), said, position=at, values=at, words="map")
    with pytest.raises(Refused):
        read_new("geometry_msgs/msg/PoseStamped", pose=ros.pose(math.nan, 0.0))


def pose_of(message: Any) -> PosePercept:
    """What the odometry layer makes of a message."""
    return robot_pose.convert(message, LayerSettings("odometry", topic="/odom"))


def test_odometry_is_the_robots_pose() -> None:
    covariance = [0.0] * 36
    covariance[0], covariance[7] = 0.04, 0.09
    message = ros.odometry(2.0, 3.0, 4.0, turn=(0.0, 0.0, 1.0, 1.0), covariance=covariance, child="base_footprint")
    assert pose_of(message) == PosePercept(
        Origin(2_000_000_000, "map"),
        (3.0, 4.0, 0.0),
        pytest.approx(math.pi / 2),
        pytest.approx(0.3),
        "base_footprint",
    )


@pytest.mark.parametrize(
    ("variance", "stddev"), [(0.0, None), (-1.0, None), (math.inf, math.inf), (math.nan, math.inf)]
)
def test_f21_covariance(variance: float, stddev: float | None) -> None:
    covariance = [variance] + [0.0] * 6 + [variance] + [0.0] * 28
    assert pose_of(ros.odometry(1.0, 0.0, 0.0, covariance=covariance)).stddev == stddev


def test_f22_zero_quaternion_has_no_heading() -> None:
    assert pose_of(ros.odometry(1.0, 5.0, 6.0, turn=(0.0,) * 4)).yaw is None


@pytest.mark.parametrize(
    ("variances", "stddev"),
    [
        ((0.04, 0.25), 0.5),
        ((0.0, 0.0), None),
        ((-1.0, -1.0), None),
        ((math.nan, 0.1), math.inf),
        ((math.inf, 0.1), math.inf),
    ],
)
def test_a_pose_with_covariance_says_how_far_it_is_trusted(
    variances: tuple[float, float], stddev: float | None
) -> None:
    covariance = np.zeros(36)
    covariance[0], covariance[7] = variances
    at = ros.pose(1.0, 2.0, 0.0, (0.0, 0.0, 1.0, 1.0))
    where = ros.make("geometry_msgs/msg/PoseWithCovariance", pose=at, covariance=covariance)
    type_name = "geometry_msgs/msg/PoseWithCovarianceStamped"
    percept = pose_of(ros.make(type_name, header=ros.header(3.0, "/map"), pose=where))
    expected = pytest.approx(stddev) if stddev is not None else None
    assert percept == PosePercept(Origin(3_000_000_000, "map"), (1.0, 2.0, 0.0), pytest.approx(math.pi / 2), expected)


# ---- any other type


@pytest.mark.parametrize("type_name", ["nav_msgs/msg/Odometry", "geometry_msgs/msg/PoseWithCovarianceStamped"])
def test_a_pose_of_another_layer_is_read_field_by_field(type_name: str) -> None:
    where = ros.make("geometry_msgs/msg/PoseWithCovariance", pose=ros.pose(42.0, 1.5))
    percept = read(type_name, ros.make(type_name, header=ros.header(3.0, "map"), pose=where))
    assert isinstance(percept, TextPercept) and percept.origin == Origin(3_000_000_000, "map")
    assert "pose.pose.position.x 42, pose.pose.position.y 1.5" in percept.text

def test_general_converter_reads_all_scalars_and_strings() -> None:
    twist = ros.make("geometry_msgs/msg/Twist", linear=ros.make("geometry_msgs/msg/Vector3", x=0.5))
    percept = read("geometry_msgs/msg/Twist", twist)
    assert percept.text == (
        "sense: linear.x 0.5, linear.y 0, linear.z 0, angular.x 0, angular.y 0, angular.z 0"
    )
    assert percept.value is None


def test_general_converter_reads_named_fields_and_the_first_number_is_the_value() -> None:
    twist = ros.make("geometry_msgs/msg/Twist", linear=ros.make("geometry_msgs/msg/Vector3", x=0.5, y=math.nan))
    percept = read("geometry_msgs/msg/Twist", twist, fields=("linear.y", "linear.x", "angular.z"))
    assert (percept.text, percept.value) == ("sense: linear.x 0.5, angular.z 0", 0.5)


def test_general_converter_reads_items_of_lists() -> None:
    joints = ros.make("sensor_msgs/msg/JointState", name=["a", "b"], position=np.array([1.0, 2.0]))
    assert read("sensor_msgs/msg/JointState", joints, fields=("name.1", "position")).text == (
        "sense: name.1 b, position [1, 2]"
    )


@pytest.mark.parametrize("data", [b"\x05", 5])
def test_a_byte_is_a_number_as_rclpy_and_as_rosbags_give_it(data: Any) -> None:
    percept = read_new("std_msgs/msg/Byte", data=data)
    assert (percept.text, percept.value) == ("sense: 5", 5.0)
    assert read_new("std_msgs/msg/Byte", {"fields": ("data",)}, data=data).text == "sense: 5"
    assert read_new("std_msgs/msg/ByteMultiArray", {"fields": ("data",)}, data=[data, data]).text == "sense: [5, 5]"


def test_general_converter_names_a_field_that_is_not_there() -> None:
    with pytest.raises(Refused, match=r"no field 'speed'; there are: linear, angular"):
        read_new("geometry_msgs/msg/Twist", {"fields": ("speed",)})


def test_every_supported_type_has_a_converter_that_reads_its_default_message() -> None:
    types = supported_types()
    assert len(types) == 17
    for type_name in types:
        try:
            percept = read_new(type_name)
        except Refused as refusal:
            assert str(refusal)
        else:
            assert isinstance(percept, (TextPercept, DetectionsPercept))
