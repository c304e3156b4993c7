"""Messages as rosbags makes them: what the converters read is the field names, the same as rclpy's."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

_VISION = {
    "ObjectHypothesis": "string class_id\nfloat64 score\n",
    "ObjectHypothesisWithPose": "vision_msgs/ObjectHypothesis hypothesis\ngeometry_msgs/PoseWithCovariance pose\n",
    "BoundingBox2D": "geometry_msgs/Pose2D center\nfloat64 size_x\nfloat64 size_y\n",
    "BoundingBox3D": "geometry_msgs/Pose center\ngeometry_msgs/Vector3 size\n",
    "Detection2D": (
        "std_msgs/Header header\nvision_msgs/ObjectHypothesisWithPose[] results\n"
        "vision_msgs/BoundingBox2D bbox\nstring id\n"
    ),
    "Detection3D": (
        "std_msgs/Header header\nvision_msgs/ObjectHypothesisWithPose[] results\n"
        "vision_msgs/BoundingBox3D bbox\nstring id\n"
    ),
    "Detection2DArray": "std_msgs/Header header\nvision_msgs/Detection2D[] detections\n",
    "Detection3DArray": "std_msgs/Header header\nvision_msgs/Detection3D[] detections\n",
}
_FOXY_VISION = {
    **{name: text for name, text in _VISION.items() if name.startswith("Bounding") or name.endswith("Array")},
    "ObjectHypothesisWithPose": "string id\nfloat64 score\ngeometry_msgs/PoseWithCovariance pose\n",
    "Detection2D": (
        "std_msgs/Header header\nvision_msgs/ObjectHypothesisWithPose[] results\n"
        "vision_msgs/BoundingBox2D bbox\nbool is_tracking\nstring tracking_id\n"
    ),
    "Detection3D": (
        "std_msgs/Header header\nvision_msgs/ObjectHypothesisWithPose[] results\n"
        "vision_msgs/BoundingBox3D bbox\nbool is_tracking\nstring tracking_id\n"
    ),
}
_OWN = {
    "Detection": (
        "string label\nfloat64 confidence\nbool has_position\ngeometry_msgs/Point position\nstring track_id\n"
    ),
    "DetectionArray": "std_msgs/Header header\nrobot_memory/Detection[] detections\n",
}


@cache
def store(foxy: bool = False) -> Any:
    """Typestore of Humble with the detection messages of either era."""
    result = get_typestore(Stores.ROS2_HUMBLE)
    types: dict[str, Any] = {}
    for package, texts in (("vision_msgs", _FOXY_VISION if foxy else _VISION), ("robot_memory", _OWN)):
        for name, text in texts.items():
            types.update(get_types_from_msg(text, f"{package}/msg/{name}"))
    result.register(types)
    return result


def make(type_name: str, /, foxy: bool = False, **fields: Any) -> Any:
    """Build a message of `package/msg/Type`; fields not given have the zero of their type."""
    types = store(foxy)
    values = {}
    for field, kind in types.fielddefs[type_name][1]:
        values[field] = fields.pop(field) if field in fields else _zero(kind, foxy)
    assert not fields, f"{type_name} has no {sorted(fields)}"
    return types.types[type_name](**values)


def _zero(kind: Any, foxy: bool) -> Any:
    node, detail = kind
    if node.name == "BASE":
        return {"string": "", "bool": False}.get(detail[0], 0.0 if detail[0].startswith("float") else 0)
    if node.name == "NAME":
        return make(detail, foxy)
    if node.name == "ARRAY":
        of_numbers = detail[0][0].name == "BASE"
        return np.zeros(detail[1]) if of_numbers else [_zero(detail[0], foxy) for _ in range(detail[1])]
    return []


def header(seconds: float | None = 0.0, frame: str = "", ns: int | None = None) -> Any:
    """std_msgs/msg/Header; ns goes before seconds."""
    sec, nanosec = divmod(round((seconds or 0.0) * 1e9) if ns is None else ns, 1_000_000_000)
    return make(
        "std_msgs/msg/Header", stamp=make("builtin_interfaces/msg/Time", sec=sec, nanosec=nanosec), frame_id=frame
    )


def point(x: float, y: float, z: float) -> Any:
    """geometry_msgs/msg/Point."""
    return make("geometry_msgs/msg/Point", x=x, y=y, z=z)


def pose(x: float, y: float, z: float = 0.0, turn: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 1.0)) -> Any:
    """geometry_msgs/msg/Pose; turn is the quaternion x, y, z, w."""
    quaternion = make("geometry_msgs/msg/Quaternion", x=turn[0], y=turn[1], z=turn[2], w=turn[3])
    return make("geometry_msgs/msg/Pose", position=point(x, y, z), orientation=quaternion)


def odometry(seconds: float, x: float, y: float, z: float = 0.0, frame: str = "map", **more: Any) -> Any:
    """nav_msgs/msg/Odometry; more: turn, covariance (36 numbers), child."""
    with_covariance = make(
        "geometry_msgs/msg/PoseWithCovariance",
        pose=pose(x, y, z, more.get("turn", (0.0, 0.0, 0.0, 1.0))),
        covariance=np.asarray(more.get("covariance", [0.0] * 36), dtype=float),
    )
    return make(
        "nav_msgs/msg/Odometry",
        header=header(seconds, frame),
        child_frame_id=more.get("child", "base_link"),
        pose=with_covariance,
    )


def string(text: str) -> Any:
    """std_msgs/msg/String."""
    return make("std_msgs/msg/String", data=text)


def own_array(seconds: float, frame: str, *detections: Any) -> Any:
    """robot_memory/msg/DetectionArray."""
    return make("robot_memory/msg/DetectionArray", header=header(seconds, frame), detections=list(detections))


def own(label: str, confidence: float = 0.9, at: tuple[float, float, float] | None = None, track: str = "") -> Any:
    """robot_memory/msg/Detection."""
    return make(
        "robot_memory/msg/Detection",
        label=label,
        confidence=confidence,
        has_position=at is not None,
        position=point(*(at or (0.0, 0.0, 0.0))),
        track_id=track,
    )
