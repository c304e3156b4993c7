from __future__ import annotations

import math
from itertools import pairwise

import pytest

from memory_node.config import Settings
from memory_node.graph import Pose
from memory_node.ingest.track import NS, PositionTrack, yaw_of


def pose(seconds: float, x: float = 0.0, y: float = 0.0, yaw: float | None = 0.0, **more: object) -> Pose:
    return Pose(round(seconds * NS), (x, y, 0.0), yaw, **more)


def test_position_and_yaw_are_interpolated_at_the_stamp() -> None:
    track = PositionTrack()
    track.add(pose(10.0, 1.0, 2.0, 0.0))
    track.add(pose(11.0, 3.0, 6.0, 1.0))
    found = track.at(round(10.25 * NS))
    assert found is not None
    assert found.position == pytest.approx((1.5, 3.0, 0.0))
    assert found.yaw == pytest.approx(0.25)
    assert found.stamp == round(10.25 * NS)


def test_yaw_goes_the_short_way_round() -> None:
    track = PositionTrack()
    track.add(pose(1.0, yaw=math.radians(170)))
    track.add(pose(2.0, yaw=math.radians(-170)))
    found = track.at(round(1.75 * NS))
    assert found is not None and found.yaw is not None
    assert math.degrees(found.yaw) == pytest.approx(-175.0)


def test_f24_before_the_first_pose_nothing_is_known() -> None:
    track = PositionTrack()
    assert track.at(5 * NS) is None
    track.add(pose(10.0, 3.0))
    assert track.at(round(9.99 * NS)) is None


def test_the_newest_pose_holds_for_max_age_only() -> None:
    track = PositionTrack(max_age=2.0)
    track.add(pose(10.0, 3.0))
    held = track.at(12 * NS)
    assert held is not None and held.position == (3.0, 0.0, 0.0) and held.stamp == 10 * NS
    assert track.at(12 * NS + 1) is None


def test_while_a_localisation_is_silent_the_robot_stands_where_it_stood_and_looks_where_it_looked() -> None:
    """AMCL publishes where the robot has moved, and nothing while it stands."""
    track = PositionTrack()
    track.follow(Settings(position_max_age=600.0))
    track.add(Pose(10 * NS, (3.0, 0.0, 0.0), 1.5))
    assert track.at(610 * NS) == Pose(610 * NS, (3.0, 0.0, 0.0), 1.5)
    assert track.at(610 * NS + 1) is None
    track.add(Pose(400 * NS, (3.2, 0.0, 0.0), 1.5))
    assert track.at(500 * NS) == Pose(500 * NS, (3.2, 0.0, 0.0), 1.5), "until the next says otherwise"
    track.follow(Settings(stale_after=5.0))
    assert track.at(402 * NS) == Pose(400 * NS, (3.2, 0.0, 0.0), 1.5) and track.at(406 * NS) is None


def test_a_gap_longer_than_max_age_is_not_bridged() -> None:
    track = PositionTrack(max_age=2.0)
    track.add(pose(10.0, 0.0))
    track.add(pose(20.0, 10.0))
    near = track.at(11 * NS)
    assert near is not None and near.position == (0.0, 0.0, 0.0)
    assert track.at(15 * NS) is None


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e256])
def test_f21_a_pose_that_is_not_finite_is_refused_and_the_last_good_one_kept(bad: float) -> None:
    track = PositionTrack()
    track.add(pose(10.0, 1.0))
    assert track.add(pose(10.5, bad)) == "position not finite or out of range"
    latest = track.latest
    assert latest is not None and latest.position == (1.0, 0.0, 0.0) and latest.stamp == 10 * NS


def test_f21_covariance_beyond_all_numbers_is_refused() -> None:
    track = PositionTrack()
    assert track.add(pose(1.0, stddev=math.inf)) == "covariance not finite"
    assert len(track) == 0


def test_untrusted_localisation_is_refused() -> None:
    track = PositionTrack(max_stddev=0.5)
    assert track.add(pose(1.0, stddev=0.6)) == "position_max_stddev exceeded"
    assert track.add(pose(2.0, stddev=0.4)) == ""
    assert track.add(pose(3.0, stddev=None)) == ""
    assert len(track) == 2


def test_f22_zero_quaternion_has_no_heading_and_length_does_not_matter() -> None:
    assert yaw_of(0.0, 0.0, 0.0, 0.0) is None
    assert yaw_of(math.nan, 0.0, 0.0, 1.0) is None
    assert yaw_of(0.0, 0.0, 5.0, 5.0) == pytest.approx(math.pi / 2)


def test_f22_unknown_heading_stays_unknown_between_poses() -> None:
    track = PositionTrack()
    track.add(pose(1.0, 0.0, yaw=None))
    track.add(pose(2.0, 2.0, yaw=1.0))
    found = track.at(round(1.5 * NS))
    assert found is not None and found.yaw is None and found.position == (1.0, 0.0, 0.0)


def test_late_poses_are_put_in_their_place_and_equal_stamps_replace() -> None:
    track = PositionTrack()
    for seconds, x in ((1.0, 1.0), (3.0, 3.0), (2.0, 5.0), (3.0, 4.0)):
        track.add(pose(seconds, x))
    found = [track.at(seconds * NS) for seconds in (1, 2, 3)]
    assert [p and p.position[0] for p in found] == [1.0, 5.0, 4.0] and len(track) == 3


def test_the_track_is_bounded() -> None:
    track = PositionTrack(capacity=10)
    for i in range(1000):
        track.add(pose(float(i), float(i)))
    assert 10 <= len(track) <= 20
    latest = track.latest
    assert latest is not None and latest.position[0] == 999.0


def test_clear_forgets_everything() -> None:
    track = PositionTrack()
    track.add(pose(1.0))
    track.clear()
    assert track.latest is None and track.at(NS) is None and len(track) == 0


@pytest.mark.parametrize("rate", [20, 100])
def test_the_path_goes_back_an_hour_at_any_rate(rate: int) -> None:
    track = PositionTrack(capacity=64)
    for i in range(rate * 600):
        track.add(Pose(i * NS // rate, (float(i), 0.0, 0.0), 0.0))
    path = track.path(300 * NS)
    assert path[0].stamp == 300 * NS and path[-1].stamp == (rate * 600 - 1) * NS // rate
    assert len(path) == 601
    assert all(b.stamp - a.stamp == NS // 2 for a, b in pairwise(path[:-1]))
    track.clear()
    assert track.path(0) == []


def test_the_path_ends_with_the_newest_pose_once() -> None:
    track = PositionTrack()
    for seconds in (0.0, 0.5, 0.7):
        track.add(pose(seconds))
    assert [p.stamp for p in track.path(0)] == [0, NS // 2, 7 * NS // 10]
    assert [p.stamp for p in track.path(6 * NS // 10)] == [7 * NS // 10] and track.path(NS) == []
    track.add(pose(1.0))
    assert [p.stamp for p in track.path(0)] == [0, NS // 2, NS]


@pytest.mark.parametrize(
    ("gap", "turn", "halfway"), [(2.0, 1.0, 0.5), (2.1, 1.0, None), (9.0, -0.1, -0.05), (9.0, -0.2, None)]
)
def test_when_a_robot_turned_in_a_long_gap_is_not_known(gap: float, turn: float, halfway: float | None) -> None:
    track = PositionTrack()
    track.add(Pose(0, (0.0, 0.0, 0.0), 0.0))
    track.add(Pose(int(gap * NS), (1.0, 0.0, 0.0), turn))
    between = track.at(int(gap * NS / 2))
    assert between is not None and between.position == (0.5, 0.0, 0.0)
    assert between.yaw == (None if halfway is None else pytest.approx(halfway))


def test_a_heading_of_the_moment_holds_in_a_long_gap() -> None:
    track = PositionTrack()
    track.add(pose(0.0, yaw=0.0))
    track.add(pose(5.0, yaw=2.0))  # of a sender whose clock is ahead, for once
    headings = [(found := track.at(round(at * NS))) and found.yaw for at in (0.2, 0.3, 4.7, 4.8)]
    assert headings == [0.0, None, None, 2.0]
