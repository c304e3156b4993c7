"""What a message says: converters by ROS type name, without any ROS import.

Messages are read by their field names alone, so those of rclpy and those that `rosbags` reads from a file are the
same here.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from memory_node.graph import Detection, Position
from memory_node.ingest.layers import LayerSettings, layer_table

UNSET: Position = (0.0, 0.0, 0.0)
"""What a position says that nobody set."""


@dataclass(frozen=True)
class Origin:
    """The header of a message.

    Attributes:
        stamp: ns as the message has it, 0 included, or None when its type has no header.
        frame: frame_id without a leading slash, "" when there is none.
    """

    stamp: int | None = None
    frame: str = ""


@dataclass(frozen=True)
class TextPercept:
    """Something said or read: a sentence for perception, a reading for the body.

    Attributes:
        value: the reading as a finite number in `unit`, or None when it is not one or not known.
        values: every number of a reading that has several, finite, in their order; `min_change` looks at each.
        words: what a reading says besides its numbers, such as a state: any change of it is news, whatever min_change.
        doubt: what seems wrong with the layer's settings by this message, and which may mend it; "": nothing.
        position: (x, y, z) m in the header's frame when the message itself says where, else None.
    """

    origin: Origin
    text: str
    value: float | None = None
    unit: str = ""
    position: Position | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    values: tuple[float, ...] = ()
    words: str = ""
    doubt: str = ""


@dataclass(frozen=True)
class DetectionsPercept:
    """One look: detections, none of them when nothing was seen.

    Attributes:
        skipped: reasons of the detections that were left out, one each.
        frames: frame of each detection's position, "" for the header's; empty: the header's for all.
        is_foreign: of another package: (0, 0, 0) means that the sender gave no position, in any frame but the
            memory's, and no frame is an unknown one; in our own messages it is the memory's.
    """

    origin: Origin
    detections: tuple[Detection, ...]
    skipped: tuple[str, ...] = ()
    frames: tuple[str, ...] = ()
    is_foreign: bool = False


@dataclass(frozen=True)
class PosePercept:
    """Where the robot says it is: position (m, unchecked), yaw (rad) or None, stddev (m) or None, frame of its base."""

    origin: Origin
    position: Position
    yaw: float | None
    stddev: float | None
    base_frame: str = ""


Percept = TextPercept | DetectionsPercept | PosePercept
Converter = Callable[[Any, LayerSettings], Percept]


class Refused(Exception):
    """A message holds nothing that can be kept; the text is the reason, the same for every such message."""


_MODULES = {
    "robot_memory/msg/Detection": "own_detections",
    "robot_memory/msg/DetectionArray": "own_detections",
    "vision_msgs/msg/Detection2DArray": "vision_detections",
    "vision_msgs/msg/Detection3DArray": "vision_detections",
    "std_msgs/msg/String": "string",
    "std_msgs/msg/Bool": "scalar",
    "std_msgs/msg/Int32": "scalar",
    "std_msgs/msg/Float32": "scalar",
    "std_msgs/msg/Float64": "scalar",
    "sensor_msgs/msg/BatteryState": "battery",
    "sensor_msgs/msg/Temperature": "temperature",
    "sensor_msgs/msg/Range": "range_reading",
    "sensor_msgs/msg/NavSatFix": "nav_sat_fix",
    "sensor_msgs/msg/JointState": "joint_state",
    "sensor_msgs/msg/LaserScan": "laser_scan",
    "diagnostic_msgs/msg/DiagnosticArray": "diagnostics",
    "geometry_msgs/msg/PoseStamped": "pose_stamped",
}
POSE_TYPES = (
    "nav_msgs/msg/Odometry",
    "geometry_msgs/msg/PoseStamped",
    "geometry_msgs/msg/PoseWithCovarianceStamped",
)
"""Types in which the odometry layer may tell where the robot is; of any other layer they are what it reads."""
DETECTION_TYPES = tuple(name for name, module in _MODULES.items() if module.endswith("_detections"))


def supported_types() -> tuple[str, ...]:
    """ROS type names with a converter of their own; every other type is read field by field."""
    return tuple(_MODULES)


def converter_docs() -> dict[str, str]:
    """Return what is kept of each supported type, in a sentence."""
    return {name: (_convert(module).__doc__ or "").strip().splitlines()[0] for name, module in _MODULES.items()}


def _convert(module: str) -> Converter:
    convert: Converter = importlib.import_module(f"{__name__}.{module}").convert
    return convert


def converter(type_name: str, layer: LayerSettings) -> Converter:
    """Return what reads messages of this type for the layer: its own converter, or field by field.

    A layer that names `fields` is always read field by field.
    """
    return _convert(_module(type_name, layer))


def _module(type_name: str, layer: LayerSettings) -> str:
    return "general" if layer.fields else _MODULES.get(type_name, "general")


def without_effect(layer: LayerSettings, type_name: str) -> dict[str, str]:
    """Return the settings that were given and do nothing beside the others or for messages of a type, each with why.

    Args:
        type_name: "" while it is not known; then only what no type changes is told.
    """
    reasons: dict[str, str] = {}
    if layer.trigger and layer.max_rate_hz > 0.0:  # 0 asks for no limit, and there is none
        reasons["max_rate_hz"] = "`trigger` says when"
    if layer.tells_of_body(type_name) is False:
        reasons |= dict.fromkeys(("min_change", "max_silence", "stale_after"), "it is for internal state")
    if type_name or layer.fields:
        module = _module(type_name, layer)
        of_fields = " and without `fields`" if layer.fields else ""
        if not module.endswith("_detections"):
            for name in ("label_map", "min_confidence", "sensor_range", "sensor_fov"):
                reasons[name] = f"it is for detections{of_fields}"
        if module != "battery":
            reasons["percentage_scale"] = f"it is for sensor_msgs/msg/BatteryState{of_fields}"
    table = layer_table()
    return {name: why for name, why in reasons.items() if getattr(layer, name) != table[name].default}
