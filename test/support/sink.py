"""A sink of the intake that keeps what it is given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from memory_node.config import Settings
from memory_node.graph import Detection, Pose
from memory_node.ingest.clockwatch import ClockWatch
from memory_node.ingest.track import PositionTrack


@dataclass(frozen=True)
class Row:
    """One call."""

    layer: str
    text: str
    position: Any
    stamp: int
    position_source: str = ""
    stamp_source: str = ""
    value: float | None = None
    unit: str = ""
    metadata: Any = None


@dataclass
class KeepingSink:
    """Has the methods of Memory that the intake calls; `fails` raises instead."""

    clock: Any
    settings: Settings = field(default_factory=Settings)
    track: PositionTrack = field(default_factory=PositionTrack)
    rows: list[Row] = field(default_factory=list)
    looks: list[tuple[list[Detection], int, Pose | None]] = field(default_factory=list)
    sessions: list[str] = field(default_factory=list)
    fails: Exception | None = None
    clock_kind: str = "simulated"

    def __post_init__(self) -> None:
        self._watch = ClockWatch(lambda: self.clock_kind)

    def record(self, text: str, layer: str, position: Any, stamp: int, **more: Any) -> int:
        if self.fails:
            raise self.fails
        self.rows.append(Row(layer, text, position, stamp, **more))
        return len(self.rows)

    def record_detections(
        self, detections: Sequence[Detection], layer: str, stamp: int, pose: Pose | None, **more: Any
    ) -> list[int]:
        self.looks.append((list(detections), stamp, pose))
        return [0] * len(detections)

    def record_body_state(
        self, text: str, layer: str, value: float | None, unit: str, position: Any, stamp: int, stamp_source: str
    ) -> int:
        self.rows.append(Row(layer, text, position, stamp, stamp_source=stamp_source, value=value, unit=unit))
        return len(self.rows)

    def update_pose(self, pose: Pose) -> str:
        return self.track.add(pose)

    @property
    def has_two_clocks(self) -> bool:
        return bool(self._watch.warning)

    def check_clock(self) -> str:
        if reason := self._watch.look(self.clock.now_ns()):
            self.sessions.append(reason)
            self.track.clear()
        return reason
