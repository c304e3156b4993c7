"""From a sensor's frame to the memory's: static mounts on the base, and the robot's pose."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from memory_node.errors import InvalidArgument
from memory_node.graph import Pose, Position
from memory_node.ingest.track import HEADING_AGE

NS = 1_000_000_000
Rotation = tuple[Position, Position, Position]

_UNTURNED: Rotation = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


@dataclass(frozen=True)
class Transform:
    """A rotation (rows of its matrix) followed by a translation (m)."""

    rotation: Rotation
    translation: Position

    @classmethod
    def of(cls, x: float, y: float, z: float, roll: float, pitch: float, yaw: float) -> Transform:
        """Build it of metres and radians; fixed axes x, y, z in that order (REP-103)."""
        (sr, cr), (sp, cp), (sy, cy) = ((math.sin(a), math.cos(a)) for a in (roll, pitch, yaw))
        rotation = (
            (cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr),
            (sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr),
            (-sp, cp * sr, cp * cr),
        )
        return cls(rotation, (x, y, z))

    @classmethod
    def of_quaternion(cls, translation: Position, x: float, y: float, z: float, w: float) -> Transform:
        """Build it of a quaternion of any length; one of none has no direction, and what it moves is NaN."""
        length = x * x + y * y + z * z + w * w
        s = 2.0 / length if length > 0.0 else math.nan
        rotation = (
            (1.0 - s * (y * y + z * z), s * (x * y - z * w), s * (x * z + y * w)),
            (s * (x * y + z * w), 1.0 - s * (x * x + z * z), s * (y * z - x * w)),
            (s * (x * z - y * w), s * (y * z + x * w), 1.0 - s * (x * x + y * y)),
        )
        return cls(rotation, translation)

    def apply(self, point: Position) -> Position:
        """Return the point (m) in the target frame."""
        x, y, z = (
            sum(r * p for r, p in zip(row, point, strict=True)) + t
            for row, t in zip(self.rotation, self.translation, strict=True)
        )
        return x, y, z

    @property
    def yaw(self) -> float:
        """The rotation about z, rad."""
        return math.atan2(self.rotation[1][0], self.rotation[0][0])


IDENTITY = Transform(_UNTURNED, (0.0, 0.0, 0.0))


class FrameResolver(Protocol):
    """Finds the way from a frame to the memory's frame.

    Attributes:
        memory_frame: frame that positions are kept in.
        wait: s that poses and transforms may come after the message that needs them.
    """

    memory_frame: str
    wait: float

    @property
    def patience(self) -> float:
        """For how many s a missing transform is worth waiting for; 0 when none can come."""
        ...

    def transform(self, frame: str, stamp: int, pose: Pose | None, hold: float = 0.0) -> Transform | None:
        """Return the transform from `frame` ("" is the memory's) at `stamp` (ns), or None while it is not known.

        Args:
            pose: the robot's at that stamp, when known; it may be older, and its heading then holds for HEADING_AGE.
            hold: s that the newest transform and a heading hold, for who can't wait for those of the stamp.
        """
        ...

    def why_unknown(self, frame: str, stamp: int, pose: Pose | None = None) -> str:
        """Say in a few words why there is no transform from a frame at `stamp` (ns) with the robot at `pose`."""
        ...

    def add_base(self, frame: str) -> None:
        """Learn a name of the robot's base, as odometry gives it (child_frame_id)."""
        ...

    def is_on_robot(self, frame: str) -> bool:
        """Whether a frame is the base or has a mount on it."""
        ...

    def base_of(self, frame: str, position: Position, yaw: float) -> tuple[Position, float]:
        """Return where the base is, and its yaw, when what odometry tells of (child_frame_id) is at a position."""
        ...

    def reset(self) -> None:
        """Forget what depends on the clock."""
        ...

    def close(self) -> None:
        """Stop listening to transforms."""
        ...


class StaticMounts:
    """Sensors fixed on the base, [x, y, z, roll, pitch, yaw] each in m and rad; the robot's pose does the rest.

    Of that pose the position and the yaw count: poses are tracked without pitch and roll.
    """

    wait = 0.0

    def __init__(
        self,
        memory_frame: str = "map",
        base_frame: str = "base_link",
        mounts: Mapping[str, Sequence[float]] | None = None,
    ) -> None:
        """Raises InvalidArgument naming "sensor_frames.<frame>" when a mount is not six finite numbers."""
        self.memory_frame = memory_frame
        self._bases = {base_frame}
        self._mounts: dict[str, Transform] = {}
        for frame, numbers in (mounts or {}).items():
            if len(numbers) != 6 or not all(math.isfinite(n) for n in numbers):
                raise InvalidArgument(
                    f"sensor_frames.{frame}",
                    f"got {list(numbers)}, allowed are [x, y, z, roll, pitch, yaw], six numbers in m and rad",
                )
            self._mounts[frame] = Transform.of(*numbers)

    def transform(self, frame: str, stamp: int, pose: Pose | None, hold: float = 0.0) -> Transform | None:
        """See FrameResolver. A sensor on the base needs a pose with a heading, one of the stamp or hardly older."""
        if frame in ("", self.memory_frame):
            return IDENTITY
        mount = IDENTITY if frame in self._bases else self._mounts.get(frame)
        if mount is None or pose is None or pose.yaw is None:
            return None
        if abs(stamp - pose.stamp) > max(HEADING_AGE, hold * NS):
            return None
        base = Transform.of(*pose.position, 0.0, 0.0, pose.yaw)
        columns = list(zip(*mount.rotation, strict=True))
        turned = [tuple(sum(a * b for a, b in zip(row, c, strict=True)) for c in columns) for row in base.rotation]
        rotation = tuple((row[0], row[1], row[2]) for row in turned)
        return Transform((rotation[0], rotation[1], rotation[2]), base.apply(mount.translation))

    def why_unknown(self, frame: str, stamp: int, pose: Pose | None = None) -> str:
        """See FrameResolver."""
        if not frame:
            return "no frame given"
        if not self.is_on_robot(frame):
            return f"frame {frame!r} unknown"
        if pose is None:
            return f"frame {frame!r} known, the robot's pose is not"
        return f"frame {frame!r} known, the robot's heading is {'not' if pose.yaw is None else 'too old'}"

    @property
    def patience(self) -> float:
        """See FrameResolver; mounts are known from the start."""
        return 0.0

    def is_on_robot(self, frame: str) -> bool:
        """See FrameResolver."""
        return frame in self._bases or frame in self._mounts

    def add_base(self, frame: str) -> None:
        """See FrameResolver. A frame with a mount of its own stays a sensor."""
        if frame and frame not in self._mounts and len(self._bases) < 8:
            self._bases.add(frame)

    def base_of(self, frame: str, position: Position, yaw: float) -> tuple[Position, float]:
        """See FrameResolver; a frame without a mount is the base's."""
        if frame in self._bases or frame not in self._mounts:
            return position, yaw
        mount = self._mounts[frame]
        yaw -= mount.yaw
        x, y, z = Transform.of(0.0, 0.0, 0.0, 0.0, 0.0, yaw).apply(mount.translation)
        return (position[0] - x, position[1] - y, position[2] - z), yaw

    def reset(self) -> None:
        """See FrameResolver; mounts don't change with the clock."""

    def close(self) -> None:
        """See FrameResolver; nothing is listened to."""
