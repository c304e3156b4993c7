"""Transforms by tf2 where it imports, behind the static mounts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from geometry_msgs.msg import TransformStamped
from rclpy.node import Node
from rclpy.time import Time

from memory_node.graph import Pose
from memory_node.ingest.frames import FrameResolver, StaticMounts, Transform
from memory_node.ros.listener import Listener

try:
    import tf2_ros
except ImportError:  # no wheel of it; sensor_frames then say where sensors are
    tf2_ros = None


NS = 1_000_000_000


class TfFrames(StaticMounts):
    """Mounts given as parameters go first; every other frame is asked of tf2 at the message's stamp.

    Of the robot's pose only the yaw is known, so the base is asked of tf2 too; where tf2 is silent the pose counts.
    """

    def __init__(
        self,
        node: Node,
        memory_frame: str,
        base_frame: str,
        mounts: Mapping[str, Sequence[float]],
    ) -> None:
        """Listen to /tf and /tf_static in a node of their own: they come hundreds of times a second."""
        super().__init__(memory_frame, base_frame, mounts)
        self._buffer = tf2_ros.Buffer()
        self._listener = Listener(node, "tf", resolve=("/tf", "/tf_static"))
        self._transforms = tf2_ros.TransformListener(self._buffer, self._listener.node)

    def transform(self, frame: str, stamp: int, pose: Pose | None, hold: float = 0.0) -> Transform | None:
        """See FrameResolver."""
        by_pose = super().transform(frame, stamp, pose, hold)
        if stamp < 0 or (by_pose is not None and frame not in self._bases):  # rclpy has no negative times
            return by_pose
        try:
            return _transform(self._buffer.lookup_transform(self.memory_frame, frame, Time(nanoseconds=stamp)))
        except tf2_ros.ExtrapolationException:
            return self._newest(frame, stamp, by_pose, hold)
        except tf2_ros.TransformException:
            return by_pose

    def _newest(self, frame: str, stamp: int, by_pose: Transform | None, hold: float) -> Transform | None:
        """The newest transform while it holds, None while one of the stamp may come, else what the pose tells."""
        try:
            newest = self._buffer.lookup_transform(self.memory_frame, frame, Time())
        except tf2_ros.TransformException:
            return by_pose
        late = (stamp - Time.from_msg(newest.header.stamp).nanoseconds) / NS
        if 0.0 < late <= hold:
            return _transform(newest)
        return None if 0.0 < late <= self.wait else by_pose

    def why_unknown(self, frame: str, stamp: int, pose: Pose | None = None) -> str:
        """See FrameResolver."""
        if not frame or frame in self._mounts:
            return super().why_unknown(frame, stamp, pose)
        try:
            newest = self._buffer.lookup_transform(frame, self.memory_frame, Time())  # tf2 looks for the target first
        except tf2_ros.LookupException as error:
            if f'"{self.memory_frame}"' in str(error):
                return f"frame {self.memory_frame!r} unknown"
            return super().why_unknown(frame, stamp, pose)
        except tf2_ros.TransformException:
            return f"frame {frame!r} not connected to {self.memory_frame!r}"
        if stamp < Time.from_msg(newest.header.stamp).nanoseconds:
            return f"older than what tf2 keeps of frame {frame!r}"
        return f"transform of frame {frame!r} too late"

    @property
    def patience(self) -> float:
        """See FrameResolver."""
        return self.wait

    def reset(self) -> None:
        """Forget all transforms but the static ones."""
        self._buffer.clear()

    def close(self) -> None:
        """See FrameResolver."""
        self._listener.close()


def _transform(found: TransformStamped) -> Transform:
    at, turn = found.transform.translation, found.transform.rotation
    return Transform.of_quaternion((at.x, at.y, at.z), turn.x, turn.y, turn.z, turn.w)


def frame_resolver(
    node: Node, memory_frame: str, base_frame: str, mounts: Mapping[str, Sequence[float]]
) -> FrameResolver:
    """Return what finds the way from a sensor's frame to the memory's, with tf2 when it is installed."""
    if tf2_ros is None:
        return StaticMounts(memory_frame, base_frame, mounts)
    return TfFrames(node, memory_frame, base_frame, mounts)
