"""From a message to calls of the memory: conversion, place, change, and the call itself."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from memory_node.config import Settings
from memory_node.graph import Detection, Pose, Position
from memory_node.ingest.converters import (
    POSE_TYPES,
    UNSET,
    Converter,
    DetectionsPercept,
    Percept,
    PosePercept,
    Refused,
    TextPercept,
    converter,
    without_effect,
)
from memory_node.ingest.converters.robot_pose import convert as convert_pose
from memory_node.ingest.counts import MessageCounts
from memory_node.ingest.frames import IDENTITY, FrameResolver, Transform
from memory_node.ingest.layers import LayerSettings
from memory_node.ingest.stamps import Stamped
from memory_node.ingest.track import HEADING_AGE, PositionTrack, is_sane_position

NS = 1_000_000_000
NOT_INTERNAL = "detections are perception, not internal state"
ODOMETRY = "odometry"
"""Name of the layer that tells where the robot is."""


class Sink(Protocol):
    """What the intake needs of the memory; `memory_node.memory.Memory` is one."""

    @property
    def settings(self) -> Settings: ...

    @property
    def track(self) -> PositionTrack: ...

    def record(
        self,
        text: str,
        layer: str,
        position: Sequence[float] | None,
        stamp: int,
        *,
        metadata: Mapping[str, Any] | None,
        position_source: str,
        stamp_source: str,
    ) -> int: ...

    def record_detections(
        self,
        detections: Sequence[Detection],
        layer: str,
        stamp: int,
        pose: Pose | None,
        *,
        stamp_source: str,
        sensor_range: float | None,
        sensor_fov: float | None,
    ) -> list[int]: ...

    def record_body_state(
        self,
        text: str,
        layer: str,
        value: float | None,
        unit: str,
        position: Sequence[float] | None,
        stamp: int,
        stamp_source: str,
    ) -> int: ...

    def update_pose(self, pose: Pose) -> str: ...

    def check_clock(self) -> str: ...

    @property
    def has_two_clocks(self) -> bool: ...


class Later(Exception):
    """A pose or a transform is late; the message may be tried again in a moment."""


class Delivery:
    """Brings messages to the memory one by one. Not thread-safe: the intake's lock covers it."""

    def __init__(
        self,
        sink: Sink,
        resolver: FrameResolver,
        counts: Mapping[str, MessageCounts],
        report: Callable[[str, str], None],
    ) -> None:
        """Args: report: logs for a layer what is wrong with it, throttled."""
        self._sink = sink
        self._resolver = resolver
        self._counts = counts
        self._report = report
        self._converters: dict[tuple[str, str], Converter] = {}
        self._stored: dict[str, tuple[TextPercept, int]] = {}

    def reset(self) -> None:
        """Forget the last readings: the clock is another one."""
        self._stored.clear()

    def is_pose(self, layer: LayerSettings, type_name: str) -> bool:
        """Whether messages of this layer and type tell where the robot is."""
        return self._converter(layer, type_name) is convert_pose

    def _converter(self, layer: LayerSettings, type_name: str) -> Converter:
        key = (layer.name, type_name)
        if key not in self._converters:
            self._converters[key] = convert_pose if layer.name == ODOMETRY else converter(type_name, layer)
        return self._converters[key]

    def convert(self, message: Any, layer: LayerSettings, type_name: str) -> Percept:
        """Return what a message says. Raises Refused, or whatever a message that is not of its type makes fail."""
        if layer.name == ODOMETRY and type_name not in POSE_TYPES:
            raise Refused(f"{type_name} does not tell where the robot is; {', '.join(POSE_TYPES)} do")
        return self._converter(layer, type_name)(message, layer)

    def deliver(
        self, percept: Percept, layer: LayerSettings, type_name: str, stamped: Stamped, waited: float | None
    ) -> bool:
        """Hand what a message says to the memory; returns False when it was passed over as unchanged.

        Args:
            type_name: the message's.
            waited: s since the message arrived; None: it has waited long enough.

        Raises:
            Later: it should be tried again.
            Refused: nothing in it can be kept.
            MemoryNodeError: the memory did not take it.
        """
        if isinstance(percept, PosePercept):
            self._pose(percept, stamped, waited)
            return True
        is_body, taken = layer.tells_of_body(type_name), True
        if isinstance(percept, DetectionsPercept):
            if is_body:
                raise Refused(NOT_INTERNAL)
            lost = self._detections(percept, layer, stamped, waited)
        elif is_body:
            taken, lost = self._reading(percept, layer, stamped, waited), []
        else:
            lost = self._text(percept, layer, stamped, waited)
        self._doubt(percept, lost, layer, type_name)
        return taken

    def _doubt(self, percept: Percept, lost: Sequence[str], layer: LayerSettings, type_name: str) -> None:
        """Count and tell what a message makes doubt, else which settings do nothing for its type.

        Args:
            lost: why positions that it gave are not known, one for each.
        """
        counts = self._counts[layer.name]
        doubts = [percept.doubt] if isinstance(percept, TextPercept) and percept.doubt else []
        for reason in (*lost, *doubts):
            counts.skip(reason)
        doubts = [f"stored without position: {reason}" for reason in lost[:1]] or doubts
        idle = (f"{name} has no effect here: {why}" for name, why in without_effect(layer, type_name).items())
        counts.doubt = next(itertools.chain(doubts, idle), "")
        if counts.doubt:
            self._report(layer.name, counts.doubt)

    def _pose(self, percept: PosePercept, stamped: Stamped, waited: float | None) -> None:
        frame = percept.origin.frame
        if percept.base_frame != frame:
            self._resolver.add_base(percept.base_frame)
        if not is_sane_position(percept.position):
            raise Refused("position not finite or out of range")
        if frame != self._resolver.memory_frame and self._resolver.is_on_robot(frame):
            raise Refused(f"frame {frame!r} moves with the robot: a pose in it does not tell where that is")
        transform = self._transform(frame, stamped.stamp, None, waited, is_foreign=False)
        if transform is None:
            if self._resolver.patience == 0.0:
                raise Refused(f"frame {frame!r} is not the memory's; set frame: {frame}")
            why = self._resolver.why_unknown(frame, stamped.stamp)
            raise Refused(f"{why}; without localization set frame: {frame}")
        position, yaw = transform.apply(percept.position), percept.yaw
        if yaw is not None:
            position, yaw = self._resolver.base_of(percept.base_frame, position, yaw + transform.yaw)
            yaw = math.remainder(yaw, math.tau) if math.isfinite(yaw) else None
        pose = Pose(stamped.stamp, position, yaw, self._resolver.memory_frame, percept.stddev)
        if reason := self._sink.update_pose(pose):
            raise Refused(reason)

    def _detections(
        self, percept: DetectionsPercept, layer: LayerSettings, stamped: Stamped, waited: float | None
    ) -> list[str]:
        """Record a look; returns why positions that it gave are not known."""
        pose = self._pose_at(stamped.stamp, waited)
        detections, unplaced = self._in_memory_frame(percept, stamped.stamp, pose, waited)
        if unplaced:
            # Where the things are was said, only not understood: the observer's place would be another claim.
            pose = None
        self._sink.record_detections(
            detections,
            layer.name,
            stamped.stamp,
            _fresh(pose, stamped.stamp),
            stamp_source=stamped.source,
            sensor_range=layer.sensor_range or None,
            sensor_fov=layer.sensor_fov or None,
        )
        for reason in percept.skipped:
            self._counts[layer.name].skip(reason)
        return unplaced

    def _in_memory_frame(
        self, percept: DetectionsPercept, stamp: int, pose: Pose | None, waited: float | None
    ) -> tuple[list[Detection], list[str]]:
        """Return the detections with positions in the memory's frame, and for each that lost its own the reason."""
        frames = [frame or percept.origin.frame for frame in percept.frames or ("",) * len(percept.detections)]
        transforms: dict[str, Transform | None] = {}
        moved: list[Detection] = []
        unplaced: list[str] = []
        for detection, frame in zip(percept.detections, frames, strict=True):
            at = detection.position
            if at == UNSET and percept.is_foreign and frame != self._resolver.memory_frame:
                at = None
            if at is not None:
                if frame not in transforms:
                    transforms[frame] = self._transform(frame, stamp, pose, waited, percept.is_foreign)
                at = _moved_by(transforms[frame], at)
                if at is None:
                    unplaced.append(self._why_unplaced(transforms[frame], frame, stamp, pose))
            moved.append(replace(detection, position=at))
        return moved, unplaced

    def _text(self, percept: TextPercept, layer: LayerSettings, stamped: Stamped, waited: float | None) -> list[str]:
        """Record what was said; returns why a position that it gave is not known."""
        pose = self._pose_at(stamped.stamp, waited)
        position: Position | None = pose.position if pose else None
        text, lost = percept.text, []
        if percept.position is not None:
            frame = percept.origin.frame
            transform = self._transform(frame, stamped.stamp, pose, waited, is_foreign=True)
            position = _moved_by(transform, percept.position)
            if transform is not IDENTITY:
                text += f" in {frame or 'an unnamed frame'}"  # the numbers said are not those of the position
            if position is None:
                lost.append(self._why_unplaced(transform, frame, stamped.stamp, pose))
        self._sink.record(
            text,
            layer.name,
            position,
            stamped.stamp,
            metadata=percept.metadata or None,
            position_source="observer" if percept.position is None else "measured",
            stamp_source=stamped.source,
        )
        return lost

    def _reading(
        self, percept: TextPercept, layer: LayerSettings, stamped: Stamped, waited: float | None
    ) -> bool:
        if not self._is_news(percept, layer, stamped.stamp):
            return False
        pose = self._pose_at(stamped.stamp, waited)
        self._sink.record_body_state(
            percept.text,
            layer.name,
            percept.value,
            percept.unit,
            pose.position if pose else None,
            stamped.stamp,
            stamped.source,
        )
        self._stored[layer.name] = (percept, stamped.stamp)
        return True

    def _is_news(self, percept: TextPercept, layer: LayerSettings, stamp: int) -> bool:
        """Whether a number of a reading moved by min_change, its words changed, or nothing came for max_silence."""
        last = self._stored.get(layer.name)
        if layer.min_change <= 0.0 or last is None or abs(stamp - last[1]) >= layer.max_silence * NS:
            return True
        return _moved(last[0], percept, layer.min_change)

    def _pose_at(self, stamp: int, waited: float | None) -> Pose | None:
        """Where the robot was; waits for the pose after the stamp, so that it can be interpolated."""
        track = self._sink.track
        latest = track.latest
        may_wait = waited is not None and waited < self._resolver.wait
        if may_wait and latest is not None and 0 < stamp - latest.stamp <= track.max_age * NS:
            raise Later
        return track.at(stamp)

    def _transform(
        self, frame: str, stamp: int, pose: Pose | None, waited: float | None, is_foreign: bool
    ) -> Transform | None:
        if is_foreign and not frame:
            return None  # a camera's driver that left it unset; of our own messages it is the memory's
        transform = self._resolver.transform(frame, stamp, pose)
        if transform is None and waited is not None and waited < self._resolver.patience:
            raise Later
        return transform

    def _why_unplaced(self, transform: Transform | None, frame: str, stamp: int, pose: Pose | None) -> str:
        if transform is None:
            return self._resolver.why_unknown(frame, stamp, pose)
        return f"transform of frame {frame!r} not finite, or out of range"


def _moved_by(transform: Transform | None, position: Position) -> Position | None:
    """Return a position in the memory's frame, None when it is not known there."""
    if transform is None:
        return None
    moved = transform.apply(position)
    return moved if is_sane_position(moved) else None


def _moved(before: TextPercept, now: TextPercept, least: float) -> bool:
    """Whether any number differs by `least`, or its unit, or the words beside; without numbers its text."""
    values = [p.values or (() if p.value is None else (p.value,)) for p in (before, now)]
    if not values[1] or len(values[0]) != len(values[1]):
        return before.text != now.text
    if before.unit != now.unit or before.words != now.words:
        return True
    return any(abs(a - b) >= least for a, b in zip(*values, strict=True))


def _fresh(pose: Pose | None, stamp: int) -> Pose | None:
    """Return a pose without its heading when it is too old to tell what a look at `stamp` (ns) should have shown."""
    if pose is None or abs(stamp - pose.stamp) <= HEADING_AGE:
        return pose
    return replace(pose, yaw=None)
