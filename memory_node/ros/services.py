"""The node's services: one table, and a wrapper that always answers."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from geometry_msgs.msg import PointStamped
from rclpy.impl.rcutils_logger import RcutilsLogger
from robot_memory import srv
from std_srvs.srv import Trigger

from memory_node.errors import MemoryNodeError
from memory_node.graph import Position
from memory_node.memory import Memory
from memory_node.ros import conversion as to
from memory_node.tools.results import Result


class Host(Protocol):
    """What handlers need of the node."""

    memory: Memory
    has_time: bool

    def to_memory_frame(self, argument: str, point: PointStamped) -> Position: ...

    def flush(self) -> None: ...

    def set_map(self, map_id: str) -> None: ...

    def status_message(self) -> Any: ...


Handler = Callable[[Host, Any, Any], None]


def _told(response: Any, result: Result) -> None:
    response.success, response.message, response.text = result.success, result.message, result.text


def _semantic_search(host: Host, request: Any, response: Any) -> None:
    found = host.memory.semantic_search(
        request.query, request.limit, to.filter_of(request.filter, host.to_memory_frame)
    )
    _told(response, found)
    response.matches = [to.match_message(match) for match in found.matches]


def _spatial_query(host: Host, request: Any, response: Any) -> None:
    center = host.to_memory_frame("center", request.center)
    found = host.memory.spatial_query(
        center if request.use_z else center[:2],
        request.radius,
        request.limit,
        to.filter_of(request.filter, host.to_memory_frame),
    )
    _told(response, found)
    response.matches = [to.match_message(match) for match in found.matches]


def _temporal_query(host: Host, request: Any, response: Any) -> None:
    found = host.memory.temporal_query(
        to.filter_of(request.filter, host.to_memory_frame),
        request.order or "newest",
        request.last_n_minutes,
        request.limit,
    )
    _told(response, found)
    response.matches = [to.match_message(match) for match in found.matches]


def _episode_summary(host: Host, request: Any, response: Any) -> None:
    found = host.memory.episode_summary(request.episode_id, request.task_name, request.last_n)
    _told(response, found)
    response.episodes = [to.episode_message(episode) for episode in found.episodes]


def _get_current_context(host: Host, request: Any, response: Any) -> None:
    found = host.memory.get_current_context(request.radius, request.recent_minutes)
    _told(response, found)
    response.has_position = found.position is not None
    response.position = to.point_message(found.position, found.frame, found.position_stamp)
    response.position_age = to.number(found.position_age)
    response.heading = to.number(found.heading)
    response.nearby = [to.match_message(match) for match in found.nearby]
    response.recent = [to.match_message(match) for match in found.recent]
    response.gists = [to.gist_message(gist) for gist in found.gists]
    response.entities = [to.entity_message(entity) for entity in found.entities]
    response.body = [to.reading_message(reading) for reading in found.body]


def _search_gists(host: Host, request: Any, response: Any) -> None:
    found = host.memory.search_gists(request.query, request.limit, to.filter_of(request.filter, host.to_memory_frame))
    _told(response, found)
    response.gists = [to.gist_message(gist) for gist in found.gists]


def _entity_query(host: Host, request: Any, response: Any) -> None:
    found = host.memory.entity_query(
        request.name,
        request.entity_type,
        to.filter_of(request.filter, host.to_memory_frame),
        request.last_seen_after or None,
        request.limit,
    )
    _told(response, found)
    response.entities = [to.entity_message(entity) for entity in found.entities]


def _locate(host: Host, request: Any, response: Any) -> None:
    found = host.memory.locate(request.concept, to.filter_of(request.filter, host.to_memory_frame))
    _told(response, found)
    response.found, response.place = found.found, to.place_message(found.place)
    response.alternatives = [to.place_message(place) for place in found.alternatives]


def _recall(host: Host, request: Any, response: Any) -> None:
    found = host.memory.recall(request.query, request.limit, to.filter_of(request.filter, host.to_memory_frame))
    _told(response, found)
    response.matches = [to.match_message(match) for match in found.matches]
    response.gists = [to.gist_message(gist) for gist in found.gists]
    response.entities = [to.entity_message(entity) for entity in found.entities]
    response.found, response.place = found.found, to.place_message(found.place)


def _body_status(host: Host, request: Any, response: Any) -> None:
    found = host.memory.body_status(list(request.layers))
    _told(response, found)
    response.readings = [to.reading_message(reading) for reading in found.readings]


def _store_specific_memory(host: Host, request: Any, response: Any) -> None:
    position = host.to_memory_frame("position", request.position) if request.has_position else None
    response.id = host.memory.store_specific_memory(
        request.text,
        request.layer or "notes",
        position,
        to.stamp_ns(request.stamp),
        request.confidence,
        request.importance,
        to.parsed_metadata("metadata", request.metadata),
    )


def _flush(host: Host, request: Any, response: Any) -> None:
    host.flush()


def _start_episode(host: Host, request: Any, response: Any) -> None:
    response.id = host.memory.start_episode(
        request.name, request.parent_id, to.parsed_metadata("metadata", request.metadata)
    )


def _end_episode(host: Host, request: Any, response: Any) -> None:
    ended = host.memory.end_episode(request.id, request.status or "completed")
    response.id, response.gist_ids, response.summary = ended.id, list(ended.gist_ids), ended.summary


def _consolidate(host: Host, request: Any, response: Any) -> None:
    done = host.memory.consolidate(request.dry_run)
    response.gists = [to.gist_message(gist) for gist in done.gists]
    response.clusters = to.count(done.clusters)


def _get_jobs(host: Host, request: Any, response: Any) -> None:
    response.jobs = [to.job_message(job) for job in host.memory.jobs()]


def _get_status(host: Host, request: Any, response: Any) -> None:
    response.status = host.status_message()


def _set_map(host: Host, request: Any, response: Any) -> None:
    host.set_map(request.map_id)


@dataclass(frozen=True)
class ServiceSpec:
    """One service: private name, type, handler; whether it writes, stamps what it writes, and may take long."""

    name: str
    type: Any
    handler: Handler
    writes: bool = False
    stamps: bool = False
    long: bool = False


SERVICES = (
    ServiceSpec("semantic_search", srv.SemanticSearch, _semantic_search),
    ServiceSpec("spatial_query", srv.SpatialQuery, _spatial_query),
    ServiceSpec("temporal_query", srv.TemporalQuery, _temporal_query),
    ServiceSpec("episode_summary", srv.EpisodeSummary, _episode_summary),
    ServiceSpec("get_current_context", srv.GetCurrentContext, _get_current_context),
    ServiceSpec("search_gists", srv.SearchGists, _search_gists),
    ServiceSpec("entity_query", srv.EntityQuery, _entity_query),
    ServiceSpec("locate", srv.Locate, _locate),
    ServiceSpec("recall", srv.Recall, _recall),
    ServiceSpec("body_status", srv.BodyStatus, _body_status),
    ServiceSpec("store_specific_memory", srv.StoreMemory, _store_specific_memory, writes=True, stamps=True),
    ServiceSpec("flush", Trigger, _flush, writes=True),
    ServiceSpec("start_episode", srv.StartEpisode, _start_episode, writes=True, stamps=True),
    ServiceSpec("end_episode", srv.EndEpisode, _end_episode, writes=True, stamps=True, long=True),
    ServiceSpec("consolidate", srv.Consolidate, _consolidate, writes=True, long=True),
    ServiceSpec("set_map", srv.SetMap, _set_map, writes=True),
    ServiceSpec("get_jobs", srv.GetJobs, _get_jobs),
    ServiceSpec("get_status", srv.GetStatus, _get_status),
)


def answer(spec: ServiceSpec, host: Host, active: bool, request: Any, response: Any, log: RcutilsLogger) -> Any:
    """Answer a request; whatever goes wrong becomes success false and a sentence."""
    if spec.writes and not active:
        response.success, response.message = False, "the node is not active: it answers questions but stores nothing"
        return response
    if spec.stamps and not host.has_time:
        response.success, response.message = False, "the clock has not started: use_sim_time is set without a /clock"
        return response
    response.success = True
    try:
        spec.handler(host, request, response)
        return response
    except MemoryNodeError as error:
        return _failed(spec, str(error))
    except BaseException as error:  # also SystemExit: who asked would wait for ever
        log.error(f"service {spec.name} failed on {str(request)[:500]}: {traceback.format_exc()}")
        return _failed(spec, f"internal error, see the log: {type(error).__name__}")


def _failed(spec: ServiceSpec, reason: str) -> Any:
    response = spec.type.Response()
    response.success, response.message = False, reason
    return response
