"""Between the engine's records and ROS messages."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from builtin_interfaces.msg import Time
from geometry_msgs.msg import PointStamped
from robot_memory import msg

from memory_node import graph
from memory_node.errors import InvalidArgument
from memory_node.housekeeping.runtime import JobState
from memory_node.status import MemoryStatus
from memory_node.tools import results

NS = 1_000_000_000
_INT32 = 2**31 - 1
_UINT32 = 2**32 - 1

ToMemoryFrame = Callable[[str, PointStamped], graph.Position]
"""Takes an argument's name and a point; returns it in the memory's frame, or raises InvalidArgument by that name."""


def time_message(ns: int | None) -> Time:
    """Return ns as Time; None, and what Time cannot hold, is 0."""
    message = Time()
    _set_time(message, ns)
    return message


def _set_time(message: Time, ns: int | None) -> None:
    sec, nanosec = divmod(ns or 0, NS)
    if abs(sec) <= _INT32:
        message.sec, message.nanosec = sec, nanosec


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
    message = PointStamped()
    _set_point(message, position, frame, time_message(stamp))
    return message


def _set_point(message: PointStamped, position: graph.Position | None, frame: str, stamp: Time) -> None:
    """Fill a position in; its stamp is the message given, which another field may share."""
    if position is not None:
        header, point = message.header, message.point
        header.frame_id, header.stamp = frame, stamp
        point.x, point.y, point.z = map(float, position)


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
    # A constructor makes every field anew before it takes the one that is given: filling them in takes half the time.
    message = msg.Match()
    message.kind, message.id, message.text, message.layer = match.kind, match.id, match.text or "", match.layer
    _set_time(message.stamp, match.stamp)
    _set_time(message.last_stamp, match.last_stamp)
    message.repeats, message.stamp_source = count(match.repeats - 1), match.stamp_source
    message.position_source = match.position_source
    if match.position is not None:
        message.has_position, message.map_id = True, match.map_id
        _set_point(message.position, match.position, match.frame, message.stamp)
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
    message = msg.Gist()
    message.id, message.text, message.layers = gist.id, gist.text, sorted(gist.layers)
    _set_time(message.start, gist.start)
    _set_time(message.end, gist.end)
    message.observation_count, message.episode_id = count(gist.observation_count), gist.episode_id
    message.has_position = gist.position is not None
    _set_point(message.position, gist.position, gist.frame, message.start)
    message.radius, message.score = float(gist.radius), float(gist.score)
    return message


def place_message(place: graph.Place | None) -> msg.Place:
    """Return a Place; None is an empty one."""
    message = msg.Place()
    if place is None:
        return message
    message.position_source, message.label = place.position_source.label, place.label
    message.radius, message.confidence = float(place.radius), float(place.confidence)
    message.support, message.entity_id = count(place.support), place.entity_id
    _set_time(message.first_seen, place.first_seen)
    _set_time(message.last_seen, place.last_seen)
    _set_point(message.position, place.position, place.frame, message.last_seen)
    return message


def entity_message(entity: graph.Entity) -> msg.Entity:
    """Return an Entity."""
    message = msg.Entity()
    message.id, message.name, message.entity_type = entity.id, entity.name, entity.entity_type
    message.position_source = entity.position_source.label
    message.position_stddev = number(entity.position_stddev if entity.position is not None else None)
    _set_time(message.first_seen, entity.first_seen)
    _set_time(message.last_seen, entity.last_seen)
    _set_point(message.position, entity.position, entity.frame, message.last_seen)
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
