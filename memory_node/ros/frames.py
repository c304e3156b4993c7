"""Transforms by tf2 where it imports, behind the static mounts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rclpy.node import Node
from rclpy.time import Time

from memory_node.graph import Pose
from memory_node.ingest.frames import FrameResolver, StaticMounts, Transform
from memory_node.ros.listener import Listener

try:
    import tf2_ros
except ImportError:  # no wheel of it; sensor_frames then say where sensors are
    tf2_ros = None


class TfFrames(StaticMounts):
    """Mounts given as parameters go first; every other frame is asked of tf2 at the message's stamp."""

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

    def transform(self, frame: str, stamp: int, pose: Pose | None) -> Transform | None:
        """See FrameResolver."""
        known = super().transform(frame, stamp, pose)
        if known is not None:
            return known
        try:
            found = self._buffer.lookup_transform(self.memory_frame, frame, Time(nanoseconds=stamp)).transform
        except tf2_ros.TransformException:
            return None
        at, turn = found.translation, found.rotation
        return Transform.of_quaternion((at.x, at.y, at.z), turn.x, turn.y, turn.z, turn.w)

    def wait_for(self, seconds: float) -> None:
        """See FrameResolver."""
        self.patience = seconds

    def reset(self) -> None:
        """Forget all transforms but the static ones."""
        self._buffer.clear()

    def close(self) -> None:
        """See FrameResolver."""
        self._listener.close()


def frame_resolver(
    node: Node, memory_frame: str, base_frame: str, mounts: Mapping[str, Sequence[float]]
) -> FrameResolver:
    """Return what finds the way from a sensor's frame to the memory's, with tf2 when it is installed."""
    if tf2_ros is None:
        return StaticMounts(memory_frame, base_frame, mounts)
    return TfFrames(node, memory_frame, base_frame, mounts)
