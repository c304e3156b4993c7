"""Frozen records of the graph's nodes and edges, and of what callers hand in.

Times are integer nanoseconds of the node's clock; positions are metres in a named frame (REP-103), None when unknown.
What is read by the dozen for an answer is a named tuple, which is made in a third of the time of a frozen dataclass.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

Position = tuple[float, float, float]

NO_ID = 0
"""Ids start at 1; 0 means none."""
NO_METADATA: Mapping[str, Any] = MappingProxyType({})


class Kind(IntEnum):
    """What a node is; the integer is what SQLite holds."""

    OBSERVATION = 1
    EPISODE = 2
    GIST = 3
    ENTITY = 4
    BELIEF = 5

    @cached_property
    def label(self) -> str:
        """Name as callers write it: observation, episode, gist, entity, belief."""
        return self.name.lower()


class EdgeType(IntEnum):
    """What joins two nodes; an edge is unique in (source, target, type)."""

    BELONGS_TO = 1  # observation -> episode
    FOLLOWS = 2  # episode -> the episode before it
    SUBTASK_OF = 3  # episode -> parent episode
    SUMMARIZES = 4  # gist -> observation (or gist of gists -> gist)
    OBSERVED_IN = 5  # entity -> observation
    COOCCURS_WITH = 6  # entity -> entity, smaller id first, with a count
    DERIVED_FROM = 7  # belief -> source
    SUPERSEDES = 8  # newer node -> the one it replaced
    NEAR_EVENT = 9  # observation -> observation of layer `events`


class Tier(IntEnum):
    """Where a node is in its life; working rows are in the buffer and not in SQLite yet."""

    WORKING = 0
    SHORT_TERM = 1
    LONG_TERM = 2
    ARCHIVED = 3

    @cached_property
    def label(self) -> str:
        """working, short_term, long_term or archived."""
        return self.name.lower()


class PositionSource(IntEnum):
    """Whose place a position is: unknown, the thing's own (measured), or the robot's that saw it (observer)."""

    NONE = 0
    MEASURED = 1
    OBSERVER = 2

    @cached_property
    def label(self) -> str:
        """Empty, measured or observer."""
        return "" if self is PositionSource.NONE else self.name.lower()


EVENTS_LAYER = "events"
"""Perception layer that holds significant changes of the body."""


@dataclass(frozen=True)
class Pose:
    """Where the robot was: stamp (ns), position (m), yaw (rad, REP-103) or None when unknown, frame, deviation (m)."""

    stamp: int
    position: Position
    yaw: float | None = None
    frame: str = "map"
    stddev: float | None = None


@dataclass(frozen=True)
class Detection:
    """One thing seen by a detector.

    Attributes:
        label: class name as the detector gives it.
        confidence: 0..1.
        position: (x, y, z) m of the thing, in the message's frame, or None when only the observer's pose is known.
        track_id: the detector's own id, "" when it has none; a hint, never trusted alone.
    """

    label: str
    confidence: float = 1.0
    position: Position | None = None
    track_id: str = ""


@dataclass(frozen=True)
class Filter:
    """What a query may return. A default Filter selects all perception of the present map.

    Attributes:
        kinds: names of node kinds; empty: whatever the tool returns by default.
        layers: names of layers; empty: all perception layers.
        time_after, time_before: int is nanoseconds; a string is "-10m", ISO 8601, Unix seconds ...; None or "" is open.
            A row matches when its span [stamp, last_stamp] meets the window, both ends included.
        center: (x, y) is a circle of any height, (x, y, z) a sphere; needs radius.
        radius: m, more than 0.
        episode_id: rows of that episode and of its nested ones; 0: any.
        min_confidence: 0..1.
        map_id: None: the present map.
        any_map: rows of every map.
        frame: frame of center; "" is the memory's own.
    """

    kinds: tuple[str, ...] = ()
    layers: tuple[str, ...] = ()
    time_after: int | str | None = None
    time_before: int | str | None = None
    center: tuple[float, ...] | None = None
    radius: float | None = None
    episode_id: int = NO_ID
    min_confidence: float = 0.0
    map_id: str | None = None
    any_map: bool = False
    frame: str = ""


class Node(NamedTuple):
    """One row of the graph, whatever its kind; what the kind adds lies in the kind's own record.

    Attributes:
        text: None when archived.
        stamp, last_stamp: span of repeats, of an episode, of a gist's members, or of an entity's sightings (ns).
        stamp_source: "header", "receive" (with reason after a colon), "caller" or "" .
        repeats: how many readings this row counts.
        value, unit: of a body reading, else None and "".
    """

    id: int
    kind: Kind
    layer: str
    text: str | None
    text_id: int | None
    stamp: int
    last_stamp: int
    repeats: int = 1
    stamp_source: str = ""
    position: Position | None = None
    position_source: PositionSource = PositionSource.NONE
    frame: str = ""
    map_id: str = ""
    confidence: float = 1.0
    importance: float = 0.5
    tier: Tier = Tier.SHORT_TERM
    session_id: int = NO_ID
    episode_id: int = NO_ID
    metadata: Mapping[str, Any] = NO_METADATA
    value: float | None = None
    unit: str = ""


class Place(NamedTuple):
    """A real cluster of evidence in space, ready for a navigation goal.

    Attributes:
        position: (x, y, z) m in frame; of the thing (measured) or where it was seen from (observer).
        radius: m, how far the evidence spreads.
        confidence: 0..1.
        support: how many observations stand behind it.
        entity_id: 0 when no entity is known there.
    """

    position: Position
    frame: str
    position_source: PositionSource
    radius: float
    confidence: float
    support: int
    first_seen: int
    last_seen: int
    entity_id: int = NO_ID
    label: str = ""
    map_id: str = ""


@dataclass(frozen=True)
class Episode:
    """A stretch of time with a name. end is None while it runs; status: active, completed or abandoned."""

    id: int
    name: str
    status: str
    start: int
    end: int | None
    parent_id: int = NO_ID
    depth: int = 0
    observation_count: int = 0
    summary: str = ""
    position: Position | None = None
    frame: str = ""
    radius: float = 0.0
    explicit: bool = True
    metadata: Mapping[str, Any] = field(default_factory=dict)


class Gist(NamedTuple):
    """What a cluster of observations had in common. level 0 summarises observations, 1 gists of a day."""

    id: int
    text: str
    layers: tuple[str, ...]
    start: int
    end: int
    observation_count: int
    position: Position | None
    frame: str
    radius: float
    episode_id: int = NO_ID
    level: int = 0
    author: str = "extractive"
    map_id: str = ""
    score: float = 0.0


class Entity(NamedTuple):
    """One thing of the world, as sightings tell.

    Attributes:
        history: earlier places, the newest first, ten at most; places_left: how many there are in all.
        sightings_here: how many of the sightings were at the present place.
    """

    id: int
    name: str
    entity_type: str
    position: Position | None
    position_source: PositionSource
    position_stddev: float
    frame: str
    first_seen: int
    last_seen: int
    sightings: int
    confidence: float
    tentative: bool = True
    moved: bool = False
    missing: bool = False
    history: tuple[Place, ...] = ()
    places_left: int = 0
    sightings_here: int = 1
    map_id: str = ""
    score: float = 0.0


@dataclass(frozen=True)
class Edge:
    """A directed edge; count is how often it was seen (COOCCURS_WITH), 1 elsewhere."""

    source: int
    target: int
    type: EdgeType
    count: int = 1


@dataclass(frozen=True)
class Look:
    """One detection message as it is stored; an empty one is a look that saw nothing.

    Attributes:
        observation_ids: id of each detection's observation, in the order of detections.
        detections: positions are in the memory's frame, or None.
        pose: of the robot at stamp, or None.
        sensor_range: m; sensor_fov: rad, the whole horizontal angle around the robot's heading.
        session_id: whose clock stamp is of.
    """

    layer: str
    stamp: int
    map_id: str
    detections: tuple[Detection, ...]
    observation_ids: tuple[int, ...]
    pose: Pose | None
    sensor_range: float
    sensor_fov: float
    session_id: int
