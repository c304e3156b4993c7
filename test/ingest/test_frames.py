from __future__ import annotations

import math
from functools import reduce

import numpy as np
import pytest

from memory_node.errors import InvalidArgument
from memory_node.graph import Pose
from memory_node.ingest.frames import IDENTITY, NS, StaticMounts, Transform

QUARTER = math.pi / 2
POSE = Pose(0, (10.0, 20.0, 0.0), QUARTER)
MOUNTS = StaticMounts("map", "base_link", {"camera": [0.5, 0.0, 1.0, 0.0, 0.0, 0.0]})


def test_the_memorys_own_frame_needs_no_pose() -> None:
    assert MOUNTS.transform("map", 0, None) == IDENTITY
    assert MOUNTS.transform("", 0, None) == IDENTITY


def test_a_mounted_sensor_turns_with_the_robot() -> None:
    transform = MOUNTS.transform("camera", 0, POSE)
    assert transform is not None
    # Two metres ahead of the camera; the robot looks along y of the map.
    assert transform.apply((2.0, 0.0, 0.0)) == pytest.approx((10.0, 22.5, 1.0))
    assert transform.yaw == pytest.approx(QUARTER)


def test_an_optical_frame_looks_along_its_z() -> None:
    mounts = StaticMounts("map", "base_link", {"optical": [0.0, 0.0, 1.0, -QUARTER, 0.0, -QUARTER]})
    transform = mounts.transform("optical", 0, Pose(0, (0.0, 0.0, 0.0), 0.0))
    assert transform is not None
    assert transform.apply((0.0, 0.0, 3.0)) == pytest.approx((3.0, 0.0, 1.0))  # ahead
    assert transform.apply((1.0, 0.0, 3.0)) == pytest.approx((3.0, -1.0, 1.0))  # x of the image is to the right
    assert transform.apply((0.0, 1.0, 3.0)) == pytest.approx((3.0, 0.0, 0.0))  # y of the image is down


def test_the_base_itself_is_a_frame_under_every_name_that_odometry_gives_it() -> None:
    mounts = StaticMounts("map", "base_link")
    assert mounts.transform("base_footprint", 0, POSE) is None
    mounts.add_base("base_footprint")
    for frame in ("base_link", "base_footprint"):
        transform = mounts.transform(frame, 0, POSE)
        assert transform is not None
        assert transform.apply((1.0, 0.0, 0.0)) == pytest.approx((10.0, 21.0, 0.0))


def test_a_heading_holds_for_as_long_as_one_who_asks_lets_it() -> None:
    assert MOUNTS.transform("camera", 5 * NS, POSE) is None
    assert MOUNTS.transform("camera", 5 * NS, POSE, hold=4.9) is None
    assert MOUNTS.transform("camera", 5 * NS, POSE, hold=5.0) is not None


def test_f23_unknown_frames_and_unknown_headings_give_nothing() -> None:
    assert MOUNTS.transform("gripper", 0, POSE) is None
    assert MOUNTS.transform("camera", 0, None) is None
    assert MOUNTS.transform("camera", 0, Pose(0, (1.0, 1.0, 0.0), None)) is None


@pytest.mark.parametrize("mount", [[], [0.0] * 5, [math.nan] + [0.0] * 5])
def test_a_wrong_mount_is_refused_by_name(mount: list[float]) -> None:
    with pytest.raises(InvalidArgument, match=r"sensor_frames\.camera: .* \[x, y, z, roll, pitch, yaw\]"):
        StaticMounts("map", "base_link", {"camera": mount})


@pytest.mark.parametrize(
    "angles", [(0.4, 0.0, 0.0), (0.0, -0.7, 0.0), (0.0, 0.0, 2.5), (0.4, -0.7, 2.5), (-2.0, 1.2, -0.3)]
)
def test_quaternion_and_angles_turn_about_the_fixed_axes_x_y_z(angles: tuple[float, float, float]) -> None:
    (cr, sr), (cp, sp), (cy, sy) = ((math.cos(angle), math.sin(angle)) for angle in angles)
    turns = [
        [[1, 0, 0], [0, cr, -sr], [0, sr, cr]],
        [[cp, 0, sp], [0, 1, 0], [-sp, 0, cp]],
        [[cy, -sy, 0], [sy, cy, 0], [0, 0, 1]],
    ]
    expected = np.array([1.0, 2.0, 3.0]) + reduce(
        lambda point, turn: np.array(turn) @ point, turns, np.array([5.0, 6.0, 7.0])
    )
    (cr, sr), (cp, sp), (cy, sy) = ((math.cos(angle / 2), math.sin(angle / 2)) for angle in angles)
    quaternion = (
        sr * cp * cy - cr * sp * sy,
        cr * sp * cy + sr * cp * sy,
        cr * cp * sy - sr * sp * cy,
        cr * cp * cy + sr * sp * sy,
    )
    for transform in (Transform.of(1.0, 2.0, 3.0, *angles), Transform.of_quaternion((1.0, 2.0, 3.0), *quaternion)):
        assert transform.apply((5.0, 6.0, 7.0)) == pytest.approx(expected)


def test_a_mount_that_is_turned_turns_with_the_robot() -> None:
    tilted = [0.5, 0.1, 1.0, 0.4, -0.7, 2.5]
    transform = StaticMounts("map", "base_link", {"camera": tilted}).transform("camera", 0, POSE)
    assert transform is not None
    on_base = Transform.of(*tilted).apply((2.0, 3.0, 4.0))
    assert transform.apply((2.0, 3.0, 4.0)) == pytest.approx((10.0 - on_base[1], 20.0 + on_base[0], on_base[2]))


def test_a_quaternion_need_not_be_of_unit_length() -> None:
    turned = Transform.of_quaternion((0.0, 0.0, 0.0), 0.0, 0.0, 2.0, 2.0)
    assert turned.apply((2.0, 0.0, 1.0)) == pytest.approx((0.0, 2.0, 1.0))
