"""nav_msgs/msg/Odometry, geometry_msgs/msg/PoseStamped and PoseWithCovarianceStamped: where the robot is."""

from __future__ import annotations

import math
from typing import Any

from memory_node.ingest.converters import PosePercept
from memory_node.ingest.converters.reading import clean, origin_of, raw_point
from memory_node.ingest.layers import LayerSettings
from memory_node.ingest.track import yaw_of


def convert(message: Any, layer: LayerSettings) -> PosePercept:
    """Return the pose as it is: the track checks it. The heading of a zero quaternion is None."""
    pose, covariance = message.pose, None
    if hasattr(pose, "pose"):
        pose, covariance = pose.pose, pose.covariance
    turn = pose.orientation
    yaw = yaw_of(float(turn.x), float(turn.y), float(turn.z), float(turn.w))
    base = clean(getattr(message, "child_frame_id", "")).strip().lstrip("/")
    return PosePercept(origin_of(message), raw_point(pose.position), yaw, _stddev(covariance), base)


def _stddev(covariance: Any) -> float | None:
    """Larger deviation of x and y (m); None: variances unset (0) or unknown (negative); inf: not finite."""
    if covariance is None:
        return None
    variances = [float(covariance[0]), float(covariance[7])]
    if not all(math.isfinite(v) for v in variances):
        return math.inf
    return math.sqrt(max(variances)) if max(variances) > 0.0 else None
