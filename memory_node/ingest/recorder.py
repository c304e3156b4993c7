"""From a call to entries of the working buffer: checks, marks, ids and repeats."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from memory_node.errors import InvalidArgument
from memory_node.graph import NO_ID, Detection, Kind, Look, Node, Pose, Position, PositionSource
from memory_node.ingest.arguments import (
    checked_metadata,
    checked_name,
    checked_position,
    checked_share,
    checked_stamp,
    checked_text,
    checked_vector,
    repaired,
)
from memory_node.ingest.buffer import Entry, Repeat, WorkingBuffer
from memory_node.ingest.repeats import Held, ReadingFolder, RepeatFolder, Sought
from memory_node.ingest.situation import LayerCounts, Situation
from memory_node.ingest.track import is_sane_position

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memory_node.config import Settings

_SECOND = 1_000_000_000


class Recorder:
    """Turns what callers bring into entries. Safe to use from several threads.

    Args:
        new_id: gives the next id of the one id space.
        dim: returns the length that given vectors must have, or None while none is known.
        stored: looks up stored rows that a reading could repeat.
        now_ns: the node's clock.
    """

    def __init__(
        self,
        buffer: WorkingBuffer,
        situation: Situation,
        settings: Callable[[], Settings],
        new_id: Callable[[], int],
        dim: Callable[[], int | None],
        stored: Callable[[Sought], Iterable[Held]],
        now_ns: Callable[[], int],
    ) -> None:
        self._buffer = buffer
        self._situation = situation
        self._settings = settings
        self._new_id = new_id
        self._dim = dim
        self._stored = stored
        self._now_ns = now_ns
        self._folder = RepeatFolder(self._committed)
        self._readings = ReadingFolder()

    def wait_for_own(self) -> None:
        """Wait until the calling thread's rows have left the buffer: a thread reads its own writes."""
        self._buffer.wait_own()

    def take_refusals(self) -> None:
        """Count what was refused since the last call as refused, and let no later reading repeat it."""
        refused = self._buffer.take_refusals()
        if not refused:
            return
        with self._situation.lock:
            self._folder.forget({node.id for entry in refused for node in entry.nodes})
            for entry in refused:
                for node in entry.nodes:
                    self._readings.forget(node.layer)
                    self._refused(node.layer, entry.internal).stored -= 1
                for repeat in entry.repeats:
                    self._refused(repeat.node.layer, entry.internal).folded -= 1

    def _refused(self, layer: str, internal: bool) -> LayerCounts:
        counts = self._situation.counts(layer, internal)
        counts.received -= 1
        counts.refused += 1
        return counts

    def forget_repeats(self) -> None:
        """Let no later reading repeat an earlier one: the session, map or episode is another one."""
        with self._situation.lock:
            self._folder.clear()
            self._readings.clear()

    def observation(
        self,
        text: str,
        *,
        layer: str,
        stamp: int,
        position: Sequence[float] | None,
        frame: str,
        position_source: str,
        confidence: float,
        importance: float,
        metadata: Mapping[str, Any] | None,
        vector: Sequence[float] | NDArray[np.float32] | None,
        stamp_source: str,
    ) -> int:
        """Record one perception; returns its id, or that of the row it repeats."""
        place = checked_position("position", position)
        self._check_frame(frame)
        node = Node(
            id=NO_ID,
            kind=Kind.OBSERVATION,
            layer=checked_name("layer", layer),
            text=checked_text("text", text),
            text_id=None,
            stamp=checked_stamp("stamp", stamp),
            last_stamp=stamp,
            stamp_source=stamp_source,
            position=place,
            position_source=_source(place, position_source),
            confidence=checked_share("confidence", confidence),
            importance=checked_share("importance", importance),
            metadata=checked_metadata("metadata", metadata),
        )
        given = None if vector is None else (checked_vector("vector", vector, self._dim()),)
        return self._enter([node], vectors=given)[0]

    def detections(
        self,
        detections: Sequence[Detection],
        *,
        layer: str,
        stamp: int,
        pose: Pose | Sequence[float] | None,
        frame: str,
        stamp_source: str,
        sensor_range: float | None,
        sensor_fov: float | None,
    ) -> list[int]:
        """Record one message of a detector, and the look that it was; one id a detection, 0 for an unusable one.

        Unusable is a blank label and a confidence that is not a number. A position that is not finite is unknown.

        Raises:
            InvalidArgument: the pose is none, or a position has another shape; nothing of the message is kept.
        """
        layer, stamp = checked_name("layer", layer), checked_stamp("stamp", stamp)
        self._check_frame(frame)
        seen_from = _pose(pose, stamp, self._situation.frame)
        settings = self._settings()
        usable = {place: clean for place, d in enumerate(detections) if (clean := _usable(d))}
        nodes = [_detection_node(d, layer, stamp, seen_from, stamp_source) for d in usable.values()]

        def look(ids: Sequence[int]) -> Look:
            return Look(
                layer=layer,
                stamp=self._situation.seen_at(stamp, self._now_ns()),
                map_id=self._situation.map_id,
                detections=tuple(usable.values()),
                observation_ids=tuple(ids),
                pose=seen_from,
                sensor_range=settings.sensor_range if sensor_range is None else sensor_range,
                sensor_fov=settings.sensor_fov if sensor_fov is None else sensor_fov,
                session_id=self._situation.session_id,
            )

        with self._situation.lock:
            self._situation.counts(layer).refused += len(detections) - len(usable)
        ids = dict(zip(usable, self._enter(nodes, look=look, layer=layer), strict=True))
        return [ids.get(place, NO_ID) for place in range(len(detections))]

    def reading(
        self,
        text: str,
        *,
        layer: str,
        value: float | None,
        unit: str,
        stamp: int,
        position: Sequence[float] | None,
        stamp_source: str,
    ) -> int:
        """Record one reading of the body; returns its id, or that of the row it repeats.

        A value that is not finite is unknown.
        """
        place = checked_position("position", position)
        node = Node(
            id=NO_ID,
            kind=Kind.OBSERVATION,
            layer=checked_name("layer", layer),
            text=checked_text("text", text),
            text_id=None,
            stamp=checked_stamp("stamp", stamp),
            last_stamp=stamp,
            stamp_source=stamp_source,
            position=place,
            position_source=_source(place, "observer"),
            value=None if value is None or not math.isfinite(value) else float(value),
            unit=repaired(unit),
        )
        return self._enter([node], internal=True)[0]

    def _check_frame(self, frame: str) -> None:
        if frame and frame != self._situation.frame:
            raise InvalidArgument("frame", f"got {frame!r}, positions are kept in {self._situation.frame!r}")

    def _check_side(self, layer: str, internal: bool) -> None:
        """Refuse perception in a layer of the body, and the reverse: all rows of the layer would change sides."""
        if self._situation.internal.setdefault(layer, internal) is not internal:
            side = "is a layer of perception" if internal else "tells of the robot's own body"
            raise InvalidArgument("layer", f"{layer!r} {side}, which only its declaration changes")

    def _enter(
        self,
        nodes: list[Node],
        *,
        vectors: tuple[NDArray[np.float32] | None, ...] | None = None,
        look: Callable[[Sequence[int]], Look] | None = None,
        layer: str | None = None,
        internal: bool = False,
    ) -> list[int]:
        """Give nodes ids and marks, or find the rows they repeat, and put them in the buffer as one entry."""
        situation = self._situation
        name = layer or nodes[0].layer
        with situation.lock:
            self._check_side(name, internal)
            counts = situation.counts(name, internal)
            fresh: list[Node] = []
            repeats: list[Repeat] = []
            ids: list[int] = []
            self.take_refusals()
            repeated = self._repeated(nodes, internal)
            given: list[NDArray[np.float32] | None] = []
            for node, known, vector in zip(nodes, repeated, vectors or [None] * len(nodes), strict=True):
                row = self._marked(node, self._new_id() if known is None else known)
                ids.append(row.id)
                if known is None:
                    fresh.append(row)
                    given.append(vector)
                else:
                    seen = situation.seen_at(row.stamp, self._now_ns())
                    repeats.append(Repeat(row._replace(stamp=seen, last_stamp=seen), vector))
            counts.received += len(nodes)
            counts.stored += len(fresh)
            counts.folded += len(repeats)
            if nodes:
                counts.last_stamp = nodes[-1].stamp
            self._remember(fresh, internal)
            entry = Entry(tuple(fresh), tuple(repeats), look(ids) if look else None, tuple(given), internal)
            # Under the lock, so that a row is in the buffer before its repeats are.
            self._buffer.add(entry)
        return ids

    def _repeated(self, nodes: Sequence[Node], internal: bool) -> list[int | None]:
        settings = self._settings()
        if not settings.fold_repeats:
            return [None] * len(nodes)
        radius, window = settings.fold_radius, round(settings.fold_window * _SECOND)
        if internal:
            return [self._readings.find(node, radius, window) for node in nodes]
        return self._folder.find(nodes, radius, window)

    def _remember(self, rows: Sequence[Node], internal: bool) -> None:
        if self._settings().fold_repeats:
            folder = self._readings if internal else self._folder
            for row in rows:
                folder.remember(row)

    def _committed(self, sought: Sought) -> Iterable[Held]:
        """Rows that a reading could repeat and that the folder let go of; some of them may still wait."""
        self._buffer.drain()
        return self._stored(sought)

    def _marked(self, node: Node, id: int) -> Node:
        situation = self._situation
        return node._replace(
            id=id,
            frame=situation.frame if node.position is not None else "",
            map_id=situation.map_id,
            session_id=situation.session_id,
            episode_id=situation.episode_id,
        )


def _source(position: Position | None, source: str) -> PositionSource:
    if source not in ("measured", "observer"):
        raise InvalidArgument("position_source", f"got {source!r}, allowed is measured or observer")
    if position is None:
        return PositionSource.NONE
    return PositionSource.MEASURED if source == "measured" else PositionSource.OBSERVER


def _usable(detection: Detection) -> Detection | None:
    """Return a detection with its faults taken out, or None when nothing of it is left."""
    try:
        label = checked_name("label", detection.label)
        confidence = float(detection.confidence)
    except (InvalidArgument, TypeError, ValueError):
        return None
    if math.isnan(confidence):
        return None
    return Detection(
        label, min(1.0, max(0.0, confidence)), _thing_position(detection), repaired(str(detection.track_id))
    )


def _thing_position(detection: Detection) -> Position | None:
    """Return where a thing was measured, None when that is not known or not finite; raise for another shape."""
    try:
        x, y, z = (0.0, 0.0, math.nan) if detection.position is None else map(float, detection.position)
    except (TypeError, ValueError, OverflowError):
        raise InvalidArgument("position", f"got {detection.position!r}, allowed is (x, y, z) in m, or None") from None
    return (x, y, z) if is_sane_position((x, y, z)) else None


def _detection_node(detection: Detection, layer: str, stamp: int, pose: Pose | None, stamp_source: str) -> Node:
    source = PositionSource.NONE
    position = detection.position
    if position is not None:
        source = PositionSource.MEASURED
    elif pose is not None:
        position, source = pose.position, PositionSource.OBSERVER
    return Node(
        id=NO_ID,
        kind=Kind.OBSERVATION,
        layer=layer,
        text=detection.label,
        text_id=None,
        stamp=stamp,
        last_stamp=stamp,
        stamp_source=stamp_source,
        position=position,
        position_source=source,
        confidence=detection.confidence,
        metadata={"track_id": detection.track_id} if detection.track_id else {},
    )


def _pose(pose: Pose | Sequence[float] | None, stamp: int, frame: str) -> Pose | None:
    """Return the robot's pose; a sequence is (x, y, z, yaw) in m and rad. A yaw that is not finite is unknown."""
    if pose is None:
        return None
    try:
        if not isinstance(pose, Pose):
            x, y, z, heading = pose
            pose = Pose(stamp, (x, y, z), heading, frame)
        yaw = math.nan if pose.yaw is None else float(pose.yaw)
        stddev = None if pose.stddev is None else float(pose.stddev)
    except (TypeError, ValueError, OverflowError):
        raise InvalidArgument("pose", f"got {pose!r}, allowed is (x, y, z, yaw) in m and rad, or None") from None
    place = checked_position("pose", pose.position)
    if place is None or (stddev is not None and not 0.0 <= stddev < math.inf):
        raise InvalidArgument("pose", f"got {pose!r}, its position must be known and its stddev finite")
    return Pose(pose.stamp, place, yaw if math.isfinite(yaw) else None, pose.frame, stddev)
