"""What an operator sees: `/diagnostics` and the layers' part of `~/get_status`."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from robot_memory.msg import LayerStatus

from memory_node.housekeeping.runtime import JobState
from memory_node.ingest.counts import NS, MessageCounts
from memory_node.ros.conversion import time_message
from memory_node.ros.subscriptions import Feed, Subscriptions
from memory_node.status import LayerStatus as Stored
from memory_node.status import MemoryStatus

VALUES = {
    "layer": (
        "topic",
        "type",
        "received",
        "rate_hz",
        "age_s",
        "stored",
        "folded",
        "thinned",
        "dropped",
        "refused",
        "refused_because",
        "left_out",
        "publishers",
    ),
    "memory": (
        "observations",
        "entities",
        "gists",
        "working",
        "backlog",
        "index",
        "model",
        "db_mb",
        "wal_mb",
        "position_age_s",
        "map_id",
        "session",
    ),
    "jobs": ("<job>: state, age of the last run (s), rows it read and wrote, time it used of its budget (ms)",),
}
"""Keys of each kind of status, in their order."""


def layer_statuses(
    stored: Mapping[str, Stored], counts: Mapping[str, MessageCounts], feeds: Subscriptions
) -> list[LayerStatus]:
    """Return the layers as the node sees them: messages from the intake's counts, rows from the memory's."""
    steady = time.monotonic_ns()
    result = []
    for name, count in counts.items():
        feed, rows = feeds[name], stored.get(name, Stored(name))
        age = count.age(steady)
        result.append(
            LayerStatus(
                name=name,
                topic=feed.topic,
                type=feed.type_name or feed.layer.type,
                received=count.received,
                stored=rows.stored,
                folded=rows.folded,
                thinned=count.thinned,
                dropped=count.dropped,
                refused=count.refused,
                refused_because=_reasons(count.refusals),
                left_out=_reasons(count.skipped),
                rate=count.rate(steady),
                age=math.nan if age is None else age,
                publishers=feed.publishers,
                problem=_problem(feed, count, feeds),
            )
        )
    return result


def _problem(feed: Feed, count: MessageCounts, feeds: Subscriptions) -> str:
    """What is wrong with a layer in a sentence, or ""."""
    if feed.problem:
        return feed.problem
    if feed.publishers and count.received:
        return f"{feed.topic}: {count.problem}" if count.problem else ""
    nearest = ", ".join(feeds.nearest_topics(feed))
    silent = "has a publisher, and no message ever came" if feed.publishers else "has no publisher"
    return f"{feed.topic} {silent}" + (f"; nearest topics: {nearest}" if nearest else "")


def diagnostic_array(
    node_name: str,
    status: MemoryStatus,
    layers: list[LayerStatus],
    jobs: list[JobState],
    warnings: list[str],
    now: int,
) -> DiagnosticArray:
    """Return one status for the memory, one for its jobs, and one for each layer."""
    array = DiagnosticArray()
    array.header.stamp = time_message(now)
    array.status = [
        _memory(node_name, status, warnings),
        _jobs(node_name, jobs, now),
        *(_layer(node_name, layer) for layer in layers),
    ]
    return array


def without_own(array: DiagnosticArray, node_name: str) -> DiagnosticArray | None:
    """Return an array of others without the statuses that the node published; None when there are no others.

    An aggregator's array has them under a path, of which it says a status of its own that is left as it is.
    """
    names = {status.name for status in array.status}
    others = [status for status in array.status if not _is_own(status.name, node_name, names)]
    if array.status and not others:
        return None
    array.status = others
    return array


def _is_own(name: str, node_name: str, names: set[str]) -> bool:
    """Whether the node published a status, alone or as an aggregator names it: <path>/<name, "/" made blank>."""
    if name.startswith(f"{node_name}: ") or f"/{node_name.replace('/', ' ')}: " in name:
        return True
    # Without the path itself among the names it would be a node of the same name in a namespace.
    path, found, _ = name.partition(f"{node_name}: ")
    return bool(found) and path in names


def _status(name: str, problem: str, values: Mapping[str, object], error: bool = False) -> DiagnosticStatus:
    level = DiagnosticStatus.OK
    if problem:
        level = DiagnosticStatus.ERROR if error else DiagnosticStatus.WARN
    pairs = [KeyValue(key=key, value=str(value)) for key, value in values.items()]
    return DiagnosticStatus(level=level, name=name, message=problem or "ok", hardware_id="memory", values=pairs)


def _memory(node_name: str, status: MemoryStatus, warnings: list[str]) -> DiagnosticStatus:
    values = (
        status.observations,
        status.entities,
        status.gists,
        status.working,
        status.backlog,
        status.index_state,
        status.model,
        f"{status.db_bytes / 1e6:.1f}",
        f"{status.wal_bytes / 1e6:.1f}",
        "never" if status.position_age is None else f"{status.position_age:.1f}",
        status.map_id,
        status.session,
    )
    problem = "; ".join([*status.warnings, *warnings])
    return _status(f"{node_name}: memory", problem, dict(zip(VALUES["memory"], values, strict=True)))


def _jobs(node_name: str, jobs: list[JobState], now: int) -> DiagnosticStatus:
    failed = "; ".join(f"{job.name}: {job.problem}" for job in jobs if job.state == "failed")
    return _status(f"{node_name}: jobs", failed, {job.name: _job(job, now) for job in jobs}, error=True)


def _job(job: JobState, now: int) -> str:
    if not job.last_run:
        return f"{job.state}, never ran"
    return (
        f"{job.state}, ran {max(0.0, (now - job.last_run) / NS):.0f} s ago, read {job.scanned}, wrote {job.wrote},"
        f" {job.used_ms:.0f} of {job.budget_ms:.0f} ms"
    )


def _layer(node_name: str, layer: LayerStatus) -> DiagnosticStatus:
    values = (
        layer.topic,
        layer.type,
        layer.received,
        f"{layer.rate:.1f}",
        "never" if math.isnan(layer.age) else f"{layer.age:.1f}",
        layer.stored,
        layer.folded,
        layer.thinned,
        layer.dropped,
        layer.refused,
        "; ".join(layer.refused_because),
        "; ".join(layer.left_out),
        layer.publishers,
    )
    return _status(f"{node_name}: layer {layer.name}", layer.problem, dict(zip(VALUES["layer"], values, strict=True)))


def _reasons(counter: Mapping[str, int]) -> list[str]:
    return [f"{reason}: {number}" for reason, number in list(counter.items())]
