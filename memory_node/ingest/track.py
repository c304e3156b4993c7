"""The robot's recent poses, and where it was at a stamp."""

from __future__ import annotations

import bisect
import math
import threading
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING

from memory_node.graph import Pose, Position

if TYPE_CHECKING:
    from memory_node.config import Settings

NS = 1_000_000_000
MAX_COORDINATE = 1e8
"""Farthest believable coordinate, m: beyond any projected map of the Earth, so whatever lies farther is a fault."""

HEADING_AGE = 200_000_000
"""ns: an older pose still tells about where the robot is, but a robot that turns looks elsewhere by now."""
_HEADING_GAP = 2 * NS
_SAME_HEADING = 0.1
"""rad: who turned by more between poses farther apart than _HEADING_GAP did so at some time, and this way or that."""

_PATH_PERIOD = NS // 2
_PATH_POSES = 7200


def is_sane_position(position: Position) -> bool:
    """Whether all three coordinates are finite and on this planet."""
    return all(math.isfinite(c) and abs(c) <= MAX_COORDINATE for c in position)


def yaw_of(x: float, y: float, z: float, w: float) -> float | None:
    """Return the yaw (rad, counter-clockwise about z, REP-103) of a quaternion, or None when it has no direction.

    The quaternion need not be of unit length. All zero, or not finite, is no orientation.
    """
    norm = x * x + y * y + z * z + w * w
    if not math.isfinite(norm) or norm < 1e-12:
        return None
    return math.atan2(2.0 * (w * z + x * y), w * w + x * x - y * y - z * z)


class PositionTrack:
    """A bounded track of poses in the order of their stamps. Safe to use from several threads.

    Attributes:
        max_age: s; a pose tells where the robot is for no longer than this.
        holds: whether the robot stands, and looks where it looked, as long as no newer pose says otherwise.
        max_stddev: m; poses whose deviation is known and larger are refused. 0: no limit.
    """

    def __init__(self, max_age: float = 10.0, max_stddev: float = 0.0, capacity: int = 4096) -> None:
        """Args: capacity: poses kept, the newest ones (20 Hz: three minutes and a half)."""
        self.max_age = max_age
        self.max_stddev = max_stddev
        self.holds = False
        self._capacity = capacity
        self._lock = threading.Lock()
        self._stamps: list[int] = []
        self._poses: list[Pose] = []
        self._path: deque[Pose] = deque(maxlen=_PATH_POSES)

    def add(self, pose: Pose) -> str:
        """Take a pose; return "" or the reason why it was refused. A late pose is put in its place."""
        reason = self._fault(pose)
        if reason:
            return reason
        if pose.yaw is not None and not math.isfinite(pose.yaw):
            pose = Pose(pose.stamp, pose.position, None, pose.frame, pose.stddev)
        with self._lock:
            at = bisect.bisect_left(self._stamps, pose.stamp)
            if at < len(self._stamps) and self._stamps[at] == pose.stamp:
                self._poses[at] = pose
                return ""
            self._stamps.insert(at, pose.stamp)
            self._poses.insert(at, pose)
            if not self._path or pose.stamp - self._path[-1].stamp >= _PATH_PERIOD:
                self._path.append(pose)
            if len(self._stamps) > 2 * self._capacity:  # now and then: dropping the first of a list each time is slow
                del self._stamps[: -self._capacity], self._poses[: -self._capacity]
        return ""

    def _fault(self, pose: Pose) -> str:
        if not is_sane_position(pose.position):
            return "position not finite or out of range"
        if pose.stddev is None:
            return ""
        if not math.isfinite(pose.stddev):
            return "covariance not finite"
        if self.max_stddev > 0.0 and pose.stddev > self.max_stddev:
            return "position_max_stddev exceeded"
        return ""

    def at(self, stamp: int) -> Pose | None:
        """Return where the robot was at `stamp` (ns), or None when that is not known.

        Between two poses no farther apart than `max_age` position and yaw are interpolated linearly, yaw the short
        way round; in a gap of more than two seconds a yaw that changed is not known. After the newest pose, or in a
        longer gap, the pose before holds for `max_age`, as of `stamp` where it `holds`. Before the oldest pose nothing
        is known.
        """
        with self._lock:
            after = bisect.bisect_left(self._stamps, stamp)
            if after < len(self._stamps) and self._stamps[after] == stamp:
                return self._poses[after]
            if after == 0:
                return None
            before = self._poses[after - 1]
            later = self._poses[after] if after < len(self._poses) else None
        limit = self.max_age * NS
        if later is not None and later.stamp - before.stamp <= limit and later.frame == before.frame:
            return _between(before, later, stamp)
        if stamp - before.stamp > limit:
            return None
        return replace(before, stamp=stamp) if self.holds else before

    def follow(self, settings: Settings) -> None:
        """Let poses hold as long as the settings say."""
        self.max_age, self.holds = settings.pose_age, settings.position_max_age > 0.0

    @property
    def latest(self) -> Pose | None:
        """The newest pose by stamp, however old, or None."""
        with self._lock:
            return self._poses[-1] if self._poses else None

    def latest_at(self, stamp: int) -> Pose | None:
        """The newest pose stamped at or before `stamp` (ns), however old, or None."""
        with self._lock:
            after = bisect.bisect_right(self._stamps, stamp)
            return self._poses[after - 1] if after else None

    def path(self, start: int) -> list[Pose]:
        """Return poses from `start` (ns) on, two a second of up to the last hour, oldest first, and the newest."""
        with self._lock:
            poses = [pose for pose in self._path if pose.stamp >= start]
            newest = self._poses[-1] if self._poses else None
        if newest is not None and newest.stamp >= start and (not poses or newest.stamp > poses[-1].stamp):
            poses.append(newest)
        return poses

    def clear(self) -> None:
        """Forget all poses: the clock or the frame is another one now."""
        with self._lock:
            self._stamps.clear()
            self._poses.clear()
            self._path.clear()

    def __len__(self) -> int:
        with self._lock:
            return len(self._poses)


def _between(a: Pose, b: Pose, stamp: int) -> Pose:
    share = (stamp - a.stamp) / (b.stamp - a.stamp)
    x, y, z = (p + share * (q - p) for p, q in zip(a.position, b.position, strict=True))
    deviations = [d for d in (a.stddev, b.stddev) if d is not None]
    return Pose(stamp, (x, y, z), _yaw_between(a, b, stamp, share), a.frame, max(deviations, default=None))


def _yaw_between(a: Pose, b: Pose, stamp: int, share: float) -> float | None:
    """The heading between two poses, else that of one hardly older or younger."""
    if a.yaw is not None and b.yaw is not None:
        turn = math.remainder(b.yaw - a.yaw, 2.0 * math.pi)
        if b.stamp - a.stamp <= _HEADING_GAP or abs(turn) <= _SAME_HEADING:
            return math.remainder(a.yaw + share * turn, 2.0 * math.pi)
    if a.yaw is not None and stamp - a.stamp <= HEADING_AGE:
        return a.yaw
    return b.yaw if b.stamp - stamp <= HEADING_AGE else None
