"""Between the engine's records and ROS messages."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point, PointStamped
from robot_memory import msg
from std_msgs.msg import Header

from memory_node import graph
from memory_node.errors import InvalidArgument
from memory_node.housekeeping.runtime import JobState
from memory_node.status import MemoryStatus
from memory_node.tools import results

NS = 1_000_000_000
_INT32 = 2**31 - 1
_UINT32 = 2**32 - 1

# Whether setters check what they are given: kept in each message, in Humble nowhere.
_CHECKS = getattr(Time(), "_check_fields", None)
M = TypeVar("M")

ToMemoryFrame = Callable[[str, PointStamped], graph.Position]
"""Takes an argument's name and a point; returns it in the memory's frame, or raises InvalidArgument by that name."""


def _unset(kind: type[M]) -> M:
    """A message whose every field is still to be set: a constructor makes each first, which is half of all the time."""
    message = kind.__new__(kind)
    if _CHECKS is not None:
        message._check_fields = _CHECKS  # type: ignore[attr-defined]
    return message


def time_message(ns: int | None) -> Time:
    """Return ns as Time; None, and what Time cannot hold, is 0."""
    message = _unset(Time)
    sec, nanosec = divmod(ns or 0, NS)
    message.sec, message.nanosec = (sec, nanosec) if abs(sec) <= _INT32 else (0, 0)
    return message


def stamp_ns(stamp: Time) -> int | None:
    """Return a Time as ns; exactly 0 is unset and gives None."""
    ns = stamp.sec * NS + stamp.nanosec
    return ns if ns else None


def number(value: float | None) -> float:
    """Return a figure, NaN for one that is not known."""
    return math.nan if value is None else float(value)


def count(value: int) -> int:
    """Return a count as uint32 holds it."""
    return int(value) if 0 <= value <= _UINT32 else min(max(int(value), 0), _UINT32)


def point_message(position: graph.Position | None, frame: str, stamp: int | None) -> PointStamped:
    """Return a position with frame and stamp; an unknown one is all zero, beside a flag that says so."""
    return _point(position, frame, time_message(stamp))


def _point(position: graph.Position | None, frame: str, stamp: Time) -> PointStamped:
    """The same; its stamp is the message given, which another field may share."""
    if position is None:
        return PointStamped()
    message, header, point = _unset(PointStamped), _unset(Header), _unset(Point)
    message.header, message.point = header, point
    header.frame_id, header.stamp = frame, stamp
    point.x, point.y, point.z = map(float, position)
    return message


def parsed_metadata(argument: str, text: str) -> dict[str, Any] | None:
    """Return a JSON object, None when blank. Raises InvalidArgument."""
    if not text.strip():
        return None
    try:
        value = json.loads(text)
    except ValueError as error:
        raise InvalidArgument(argument, f"is no JSON: {error}") from error
    except RecursionError:
        raise InvalidArgument(argument, "is nested too deep") from None
    if not isinstance(value, dict):
        raise InvalidArgument(argument, 'must be a JSON object such as {"key": 1}')
    return value


def filter_of(message: msg.Filter, to_memory_frame: ToMemoryFrame) -> graph.Filter:
    """Return the filter; a center in another frame is transformed. Raises InvalidArgument."""
    center: tuple[float, ...] | None = None
    if message.radius > 0.0:
        center = to_memory_frame("filter.center", message.center)[: 3 if message.use_z else 2]
    elif message.radius < 0.0 or math.isnan(message.radius):
        raise InvalidArgument("filter.radius", f"got {message.radius}, allowed is 0 (no region) or more, in m")
    return graph.Filter(
        kinds=tuple(message.kinds),
        layers=tuple(message.layers),
        time_after=message.time_after,
        time_before=message.time_before,
        center=center,
        radius=message.radius if center else None,
        episode_id=message.episode_id,
        min_confidence=message.min_confidence,
        map_id=message.map_id or None,
        any_map=message.any_map,
    )


def match_message(match: results.Match) -> msg.Match:
    """Return a Match."""
    message = _unset(msg.Match)
    message.kind, message.id, message.text, message.layer = match.kind, match.id, match.text or "", match.layer
    message.stamp, message.last_stamp = time_message(match.stamp), time_message(match.last_stamp)
    message.repeats, message.stamp_source = count(match.repeats - 1), match.stamp_source
    message.position_source = match.position_source
    message.has_position = match.position is not None
    message.map_id = match.map_id if message.has_position else ""
    message.position = _point(match.position, match.frame, message.stamp)
    message.confidence, message.score = float(match.confidence), float(match.score)
    message.similarity, message.lexical = number(match.similarity), number(match.lexical)
    message.importance, message.recency = float(match.importance), number(match.recency)
    message.tier, message.episode_id = match.tier, match.episode_id
    message.metadata = _json(match.metadata)
    return message


def _json(metadata: Mapping[str, Any]) -> str:
    return json.dumps(dict(metadata)) if metadata else "{}"


def episode_message(episode: graph.Episode) -> msg.Episode:
    """Return an Episode."""
    return msg.Episode(
        id=episode.id,
        name=episode.name,
        status=episode.status,
        start=time_message(episode.start),
        end=time_message(episode.end),
        parent_id=episode.parent_id,
        depth=count(episode.depth),
        observation_count=count(episode.observation_count),
        summary=episode.summary,
        has_position=episode.position is not None,
        position=point_message(episode.position, episode.frame, episode.start),
        radius=float(episode.radius),
        metadata=_json(episode.metadata),
    )


def gist_message(gist: graph.Gist) -> msg.Gist:
    """Return a Gist."""
    message = _unset(msg.Gist)
    message.id, message.text, message.layers = gist.id, gist.text, sorted(gist.layers)
    message.start, message.end = time_message(gist.start), time_message(gist.end)
    message.observation_count, message.episode_id = count(gist.observation_count), gist.episode_id
    message.has_position = gist.position is not None
    message.position = _point(gist.position, gist.frame, message.start)
    message.radius, message.score = float(gist.radius), float(gist.score)
    return message


def place_message(place: graph.Place | None) -> msg.Place:
    """Return a Place; None is an empty one."""
    if place is None:
        return msg.Place()
    message = _unset(msg.Place)
    message.position_source, message.label = place.position_source.label, place.label
    message.radius, message.confidence = float(place.radius), float(place.confidence)
    message.support, message.entity_id = count(place.support), place.entity_id
    message.first_seen, message.last_seen = time_message(place.first_seen), time_message(place.last_seen)
    message.position = _point(place.position, place.frame, message.last_seen)
    return message


def entity_message(entity: graph.Entity) -> msg.Entity:
    """Return an Entity."""
    message = _unset(msg.Entity)
    message.id, message.name, message.entity_type = entity.id, entity.name, entity.entity_type
    message.position_source = entity.position_source.label
    message.position_stddev = number(entity.position_stddev if entity.position is not None else None)
    message.first_seen, message.last_seen = time_message(entity.first_seen), time_message(entity.last_seen)
    message.position = _point(entity.position, entity.frame, message.last_seen)
    message.sightings, message.confidence = count(entity.sightings), float(entity.confidence)
    message.tentative, message.moved, message.missing = entity.tentative, entity.moved, entity.missing
    message.history = [place_message(place) for place in entity.history]
    return message


def reading_message(reading: results.BodyReading) -> msg.BodyReading:
    """Return a BodyReading."""
    return msg.BodyReading(
        layer=reading.layer,
        text=reading.text,
        value=number(reading.value),
        unit=reading.unit,
        stamp=time_message(reading.stamp),
        age=max(0.0, reading.age),
        is_stale=reading.is_stale,
        change=number(reading.change),
        window=float(reading.window),
    )


def job_message(job: JobState) -> msg.JobStatus:
    """Return a JobStatus; its error says when the job is tried again."""
    return msg.JobStatus(
        name=job.name,
        state=job.state,
        last_run=time_message(job.last_run),
        runs=job.runs,
        scanned=job.scanned,
        wrote=job.wrote,
        budget_ms=float(job.budget_ms),
        used_ms=float(job.used_ms),
        cursor=job.cursor,
        error=job.problem,
    )


def status_message(status: MemoryStatus, layers: list[msg.LayerStatus], warnings: list[str]) -> msg.MemoryStatus:
    """Return a MemoryStatus with the layers as the node sees them, and its warnings after the memory's."""
    return msg.MemoryStatus(
        observations=status.observations,
        episodes=status.episodes,
        gists=status.gists,
        entities=status.entities,
        working=status.working,
        short_term=status.short_term,
        long_term=status.long_term,
        archived=status.archived,
        vectors=status.vectors,
        backlog=status.backlog,
        layers=layers,
        session=status.session,
        frame_id=status.frame_id,
        map_id=status.map_id,
        model=status.model,
        dimension=status.dimension,
        index_state=status.index_state,
        db_bytes=status.db_bytes,
        wal_bytes=status.wal_bytes,
        position_age=number(status.position_age),
        warnings=[*status.warnings, *warnings],
    )
