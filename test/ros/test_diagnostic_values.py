"""Each value of /diagnostics under its own key, and the level that its faults have."""

from __future__ import annotations

import math
import time
from types import SimpleNamespace
from typing import Any

import pytest
from diagnostic_msgs.msg import DiagnosticStatus
from robot_memory.msg import LayerStatus

from memory_node.housekeeping.runtime import JobState
from memory_node.ingest.counts import MessageCounts
from memory_node.ingest.layers import LayerSettings
from memory_node.ros.diagnostics import diagnostic_array, layer_statuses
from memory_node.ros.subscriptions import Feed
from memory_node.status import LayerStatus as Stored

NOW = 1000 * 10**9
LAYER: dict[str, Any] = {
    "name": "scene", "topic": "/scene", "type": "std_msgs/msg/String", "received": 21, "rate": 2.25, "age": 1.75,
    "stored": 3, "folded": 4, "thinned": 5, "dropped": 6, "refused": 7,
    "refused_because": ["empty text: 5", "negative stamp: 2"], "left_out": ["no frame given: 8"], "publishers": 9,
}  # fmt: skip
MEMORY: dict[str, Any] = {
    "observations": 1, "entities": 2, "gists": 3, "working": 4, "backlog": 5, "index_state": "ready",
    "model": "words", "db_bytes": 6_700_000, "wal_bytes": 800_000, "position_age": 9.0, "map_id": "floor-2",
    "session": 10, "warnings": [],
}  # fmt: skip


def told(
    kind: str,
    of_the_node: tuple[str, ...] = (),
    layer: LayerStatus | None = None,
    jobs: list[JobState] | None = None,
    **memory: Any,
) -> DiagnosticStatus:
    array = diagnostic_array(
        "/r1/memory",
        SimpleNamespace(**MEMORY | memory),  # type: ignore[arg-type]
        [layer or LayerStatus(**LAYER)],
        jobs or [],
        list(of_the_node),
        NOW,
    )
    assert (array.header.stamp.sec, array.header.stamp.nanosec) == (1000, 0)
    return next(status for status in array.status if status.name == f"/r1/memory: {kind}")


def values(status: DiagnosticStatus) -> dict[str, str]:
    return {pair.key: pair.value for pair in status.values}


def test_a_layer_tells_what_became_of_its_messages() -> None:
    status = told("layer scene")
    assert (status.level, status.message) == (DiagnosticStatus.OK, "ok")
    assert values(status) == {
        "topic": "/scene", "type": "std_msgs/msg/String", "received": "21", "rate_hz": "2.2", "age_s": "1.8",
        "stored": "3", "folded": "4", "thinned": "5", "dropped": "6", "refused": "7",
        "refused_because": "empty text: 5; negative stamp: 2", "left_out": "no frame given: 8", "publishers": "9",
    }  # fmt: skip
    silent = told("layer scene", layer=LayerStatus(**LAYER | {"age": math.nan, "problem": "/scene has no publisher"}))
    assert (silent.level, silent.message) == (DiagnosticStatus.WARN, "/scene has no publisher")
    assert values(silent)["age_s"] == "never"


def test_the_memory_tells_its_state() -> None:
    assert values(told("memory")) == {
        "observations": "1", "entities": "2", "gists": "3", "working": "4", "backlog": "5", "index": "ready",
        "model": "words", "db_mb": "6.7", "wal_mb": "0.8", "position_age_s": "9.0", "map_id": "floor-2",
        "session": "10",
    }  # fmt: skip
    assert (told("memory").level, told("memory").message) == (DiagnosticStatus.OK, "ok")
    status = told("memory", ("nothing comes on /clock",), warnings=["the disk is full"], position_age=None)
    assert (status.level, status.message) == (DiagnosticStatus.WARN, "the disk is full; nothing comes on /clock")
    assert values(status)["position_age_s"] == "never"


@pytest.mark.parametrize(
    ("job", "said", "level"),
    [
        (JobState("gists"), "idle, never ran", DiagnosticStatus.OK),
        (
            JobState("gists", last_run=NOW - 30 * 10**9, scanned=70, wrote=8, used_ms=12.4, budget_ms=200.0),
            "idle, ran 30 s ago, read 70, wrote 8, 12 of 200 ms",
            DiagnosticStatus.OK,
        ),
        (JobState("gists", "failed", error="disk full"), "failed, never ran", DiagnosticStatus.ERROR),
    ],
)
def test_a_job_tells_its_last_run_and_an_error_when_it_failed(job: JobState, said: str, level: bytes) -> None:
    status = told("jobs", jobs=[job])
    assert values(status) == {"gists": said} and status.level == level
    assert ("gists: " in status.message and "disk full" in status.message) == (level == DiagnosticStatus.ERROR)


def test_messages_are_counted_by_the_intake_and_rows_by_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    counts, now = MessageCounts(thinned=5, dropped=6), 100 * 10**9
    monkeypatch.setattr(time, "monotonic_ns", lambda: now)
    for i in range(20):
        counts.arrive(now - 2 * 10**9 + i * 10**8, "std_msgs/msg/String")
    counts.refuse("empty text")
    counts.skip("no frame given")
    settings = LayerSettings("scene", topic="scene")
    feed = Feed(settings, "/scene", lambda data, name: None, type_name="std_msgs/msg/String", publishers=9, problem="")
    rows = Stored("scene", received=99, stored=3, folded=4, refused=98)
    (status,) = layer_statuses({"scene": rows}, {"scene": counts}, {"scene": feed})  # type: ignore[arg-type]
    assert (status.name, status.topic, status.type) == ("scene", "/scene", "std_msgs/msg/String")
    assert (status.received, status.stored, status.folded) == (20, 3, 4)
    assert (status.thinned, status.dropped, status.refused, status.publishers) == (5, 6, 1, 9)
    assert (status.refused_because, status.left_out) == (["empty text: 1"], ["no frame given: 1"])
    assert (status.rate, status.age) == (10.0, pytest.approx(0.1))
