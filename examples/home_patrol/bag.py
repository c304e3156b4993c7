"""Write the patrol as a rosbag2 folder.

Metadata version 8 with sqlite3 storage in one zstd file is what rosbag2 reads with its stock plug-ins from Humble on.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from rosbags.typesys.store import Typestore

from examples.home_patrol import robot, world
from examples.home_patrol.recording import Recording
from examples.home_patrol.senses import POSITION_SIGMA, Look, Sighting

VARIANTS = ("robot_memory", "vision_msgs")
"""Package whose message carries the detections."""

_MSG_FOLDER = Path(__file__).resolve().parents[2] / "msg"

# The published definitions of vision_msgs from Humble on; that package has no wheel to read them from.
_VISION_MSGS = {
    "ObjectHypothesis": "string class_id\nfloat64 score\n",
    "ObjectHypothesisWithPose": "vision_msgs/ObjectHypothesis hypothesis\ngeometry_msgs/PoseWithCovariance pose\n",
    "BoundingBox3D": "geometry_msgs/Pose center\ngeometry_msgs/Vector3 size\n",
    "Detection3D": (
        "std_msgs/Header header\nvision_msgs/ObjectHypothesisWithPose[] results\n"
        "vision_msgs/BoundingBox3D bbox\nstring id\n"
    ),
    "Detection3DArray": "std_msgs/Header header\nvision_msgs/Detection3D[] detections\n",
}
_THING_SIZE = 0.3
"""Edge of the box that the 3-D detector draws, in metres."""


def typestore(variant: str = "robot_memory") -> Typestore:
    """Message types of Humble together with the variant's own.

    Raises:
        ValueError: The variant is not one of `VARIANTS`.
    """
    if variant not in VARIANTS:
        raise ValueError(f"variant {variant!r} is not one of {', '.join(VARIANTS)}")
    store = get_typestore(Stores.ROS2_HUMBLE)
    if variant == "vision_msgs":
        texts = _VISION_MSGS
    else:
        texts = {name: (_MSG_FOLDER / f"{name}.msg").read_text("utf-8") for name in ("Detection", "DetectionArray")}
    types: dict[str, Any] = {}
    for name, text in texts.items():
        types.update(get_types_from_msg(text, f"{variant}/msg/{name}"))
    store.register(types)
    return store


def nanoseconds(stamp: float) -> int:
    """A stamp in seconds as integer nanoseconds, to the microsecond."""
    return round(stamp * 1e6) * 1000


class Messages:
    """Builds the messages of one variant; every method returns a message of the typestore."""

    def __init__(self, store: Typestore) -> None:
        self._types = store.types

    def _make(self, name: str, **fields: Any) -> Any:
        return self._types[name](**fields)

    def _header(self, stamp: float, frame: str = world.FRAME) -> Any:
        sec, nanosec = divmod(nanoseconds(stamp), 1_000_000_000)
        return self._make(
            "std_msgs/msg/Header",
            stamp=self._make("builtin_interfaces/msg/Time", sec=sec, nanosec=nanosec),
            frame_id=frame,
        )

    def _pose(self, position: world.Point, yaw: float = 0.0, pitch: float = 0.0) -> Any:
        cy, sy, cp, sp = math.cos(yaw / 2), math.sin(yaw / 2), math.cos(pitch / 2), math.sin(pitch / 2)
        x, y, z = position
        return self._make(
            "geometry_msgs/msg/Pose",
            position=self._make("geometry_msgs/msg/Point", x=x, y=y, z=z),
            orientation=self._make("geometry_msgs/msg/Quaternion", x=-sy * sp, y=cy * sp, z=sy * cp, w=cy * cp),
        )

    def _vector(self, x: float, y: float, z: float) -> Any:
        return self._make("geometry_msgs/msg/Vector3", x=x, y=y, z=z)

    def odometry(self, pose: robot.Pose) -> Any:
        """nav_msgs/msg/Odometry in frame map, child frame base_link."""
        return self._make(
            "nav_msgs/msg/Odometry",
            header=self._header(pose.stamp),
            child_frame_id="base_link",
            pose=self._make(
                "geometry_msgs/msg/PoseWithCovariance",
                pose=self._pose((pose.x, pose.y, pose.z), pose.yaw, pose.pitch),
                covariance=np.diag([1e-4, 1e-4, 1e-4, 1e-5, 1e-5, 1e-5]).ravel(),
            ),
            twist=self._make(
                "geometry_msgs/msg/TwistWithCovariance",
                twist=self._make(
                    "geometry_msgs/msg/Twist",
                    linear=self._vector(pose.speed, 0.0, 0.0),
                    angular=self._vector(0.0, 0.0, pose.turn),
                ),
                covariance=np.zeros(36),
            ),
        )

    def battery(self, charge: robot.Charge) -> Any:
        """sensor_msgs/msg/BatteryState of a 20 Ah pack; what is not measured is NaN."""
        return self._make(
            "sensor_msgs/msg/BatteryState",
            header=self._header(charge.stamp, "base_link"),
            voltage=22.0 + 3.2 * charge.percentage,
            temperature=math.nan,
            current=charge.current,
            charge=20.0 * charge.percentage,
            capacity=20.0,
            design_capacity=20.0,
            percentage=charge.percentage,
            power_supply_status=1 if charge.charging else 2,
            power_supply_health=1,
            power_supply_technology=2,
            present=True,
            cell_voltage=np.zeros(0, dtype=np.float32),
            cell_temperature=np.zeros(0, dtype=np.float32),
            location="base",
            serial_number="",
        )

    def sentence(self, text: str) -> Any:
        """std_msgs/msg/String."""
        return self._make("std_msgs/msg/String", data=text)

    def detection_array(self, look: Look) -> Any:
        """robot_memory/msg/DetectionArray in frame map."""
        detections = [
            self._make(
                "robot_memory/msg/Detection",
                label=sighting.label,
                confidence=sighting.confidence,
                has_position=True,
                position=self._pose(sighting.position).position,
                track_id=sighting.track_id,
            )
            for sighting in look.sightings
        ]
        return self._make("robot_memory/msg/DetectionArray", header=self._header(look.stamp), detections=detections)

    def detection_3d_array(self, look: Look) -> Any:
        """vision_msgs/msg/Detection3DArray in frame map."""
        detections = [self._detection_3d(look.stamp, sighting) for sighting in look.sightings]
        return self._make("vision_msgs/msg/Detection3DArray", header=self._header(look.stamp), detections=detections)

    def _detection_3d(self, stamp: float, sighting: Sighting) -> Any:
        pose = self._pose(sighting.position)
        covariance = np.diag([POSITION_SIGMA**2] * 3 + [0.0] * 3).ravel()
        hypothesis = self._make("vision_msgs/msg/ObjectHypothesis", class_id=sighting.label, score=sighting.confidence)
        return self._make(
            "vision_msgs/msg/Detection3D",
            header=self._header(stamp),
            results=[
                self._make(
                    "vision_msgs/msg/ObjectHypothesisWithPose",
                    hypothesis=hypothesis,
                    pose=self._make("geometry_msgs/msg/PoseWithCovariance", pose=pose, covariance=covariance),
                )
            ],
            bbox=self._make(
                "vision_msgs/msg/BoundingBox3D", center=pose, size=self._vector(_THING_SIZE, _THING_SIZE, _THING_SIZE)
            ),
            id=sighting.track_id,
        )


Entry = tuple[int, str, str, Any]


def entries(recording: Recording, store: Typestore, variant: str = "robot_memory") -> list[Entry]:
    """Record time in nanoseconds, topic, type and message of everything, in the order of time.

    Args:
        store: Message types, see `typestore`.
    """
    # The sort is stable: of one instant the odometry comes first, so the pose is known when a perception arrives.
    return sorted(_by_topic(recording, Messages(store), variant), key=lambda entry: entry[0])


def _by_topic(recording: Recording, build: Messages, variant: str) -> Iterator[Entry]:
    for pose in recording.poses:
        yield nanoseconds(pose.stamp), "/odom", "nav_msgs/msg/Odometry", build.odometry(pose)
    for charge in recording.charges:
        yield nanoseconds(charge.stamp), "/battery_state", "sensor_msgs/msg/BatteryState", build.battery(charge)
    detect: Callable[[Look], Any]
    if variant == "robot_memory":
        topic, kind, detect = "/detections", "robot_memory/msg/DetectionArray", build.detection_array
    else:
        topic, kind, detect = "/detections_3d", "vision_msgs/msg/Detection3DArray", build.detection_3d_array
    for look in recording.looks:
        yield nanoseconds(look.stamp), topic, kind, detect(look)
    for scene in recording.scenes:
        yield nanoseconds(scene.pose.stamp), "/scene_description", "std_msgs/msg/String", build.sentence(scene.text)


def write(recording: Recording, folder: Path, variant: str = "robot_memory") -> dict[str, int]:
    """Write the recording as a new rosbag2 folder.

    Args:
        recording: What the robot did and perceived.
        folder: Where the bag goes; must not exist.
        variant: One of `VARIANTS`.

    Returns:
        Number of messages, by topic.

    Raises:
        ValueError: The variant is unknown.
        rosbags.rosbag2.WriterError: The folder exists.
    """
    store = typestore(variant)
    messages = entries(recording, store, variant)
    counts: Counter[str] = Counter()
    writer = Writer(folder, version=8, storage_plugin=StoragePlugin.SQLITE3)
    writer.set_compression(CompressionMode.FILE, CompressionFormat.ZSTD)
    with writer:
        connections = {
            topic: writer.add_connection(topic, kind, typestore=store)
            for topic, kind in dict.fromkeys((entry[1], entry[2]) for entry in messages)
        }
        for stamp, topic, kind, message in messages:
            writer.write(connections[topic], stamp, store.serialize_cdr(message, kind, little_endian=True))
            counts[topic] += 1
    return dict(counts)
