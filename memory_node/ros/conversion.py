"""Between the engine's records and ROS messages."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
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
    if ns is None:
        return Time()
    sec, nanosec = divmod(ns, NS)
    return Time(sec=sec, nanosec=nanosec) if abs(sec) <= _INT32 else Time()


def stamp_ns(stamp: Time) -> int | None:
    """Return a Time as ns; exactly 0 is unset and gives None."""
    ns = stamp.sec * NS + stamp.nanosec
    return ns if ns else None


def number(value: float | None) -> float:
    """Return a figure, NaN for one that is not known."""
    return math.nan if value is None else float(value)


def count(value: int) -> int:
    """Return a count as uint32 holds it."""
    return min(max(int(value), 0), _UINT32)


def point_message(position: graph.Position | None, frame: str, stamp: int | None) -> PointStamped:
    """Return a position with frame and stamp; an unknown one is all zero, beside a flag that says so."""
    message = PointStamped()
    if position is not None:
        message.header.frame_id = frame
        message.header.stamp = time_message(stamp)
        message.point.x, message.point.y, message.point.z = (float(value) for value in position)
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
    return msg.Match(
        kind=match.kind,
        id=match.id,
        text=match.text or "",
        layer=match.layer,
        stamp=time_message(match.stamp),
        last_stamp=time_message(match.last_stamp),
        repeats=count(match.repeats - 1),
        stamp_source=match.stamp_source,
        has_position=match.position is not None,
        position=point_message(match.position, match.frame, match.stamp),
        position_source=match.position_source,
        map_id=match.map_id if match.position is not None else "",
        confidence=float(match.confidence),
        score=float(match.score),
        similarity=number(match.similarity),
        lexical=number(match.lexical),
        importance=float(match.importance),
        recency=number(match.recency),
        tier=match.tier,
        episode_id=match.episode_id,
        metadata=json.dumps(dict(match.metadata)),
    )


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
        metadata=json.dumps(dict(episode.metadata)),
    )


def gist_message(gist: graph.Gist) -> msg.Gist:
    """Return a Gist."""
    return msg.Gist(
        id=gist.id,
        text=gist.text,
        layers=sorted(gist.layers),
        start=time_message(gist.start),
        end=time_message(gist.end),
        observation_count=count(gist.observation_count),
        has_position=gist.position is not None,
        position=point_message(gist.position, gist.frame, gist.start),
        radius=float(gist.radius),
        episode_id=gist.episode_id,
        score=float(gist.score),
    )


def place_message(place: graph.Place | None) -> msg.Place:
    """Return a Place; None is an empty one."""
    if place is None:
        return msg.Place()
    return msg.Place(
        position=point_message(place.position, place.frame, place.last_seen),
        position_source=place.position_source.label,
        radius=float(place.radius),
        confidence=float(place.confidence),
        support=count(place.support),
        first_seen=time_message(place.first_seen),
        last_seen=time_message(place.last_seen),
        entity_id=place.entity_id,
        label=place.label,
    )


def entity_message(entity: graph.Entity) -> msg.Entity:
    """Return an Entity."""
    return msg.Entity(
        id=entity.id,
        name=entity.name,
        entity_type=entity.entity_type,
        position=point_message(entity.position, entity.frame, entity.last_seen),
        position_source=entity.position_source.label,
        position_stddev=number(entity.position_stddev if entity.position is not None else None),
        first_seen=time_message(entity.first_seen),
        last_seen=time_message(entity.last_seen),
        sightings=count(entity.sightings),
        confidence=float(entity.confidence),
        tentative=entity.tentative,
        moved=entity.moved,
        missing=entity.missing,
        history=[place_message(place) for place in entity.history],
    )


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
