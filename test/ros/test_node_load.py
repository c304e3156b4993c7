"""Many messages, long jobs and many askers at once; real vision_msgs; meaning through the node."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.qos import QoSProfile
from robot_memory.msg import Filter
from std_msgs.msg import String
from support.fakes import WordEmbedder
from support.ros_harness import TYPES, Peer, layer, node_here, peer, stamp, wait_until

from memory_node.ros.services import SERVICES

LAYERS = [f"layer{i}" for i in range(5)]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, Peer]]:
    parameters: dict[str, Any] = {
        "layers": [*LAYERS, "seen", "battery"],
        "seen": layer("/seen", "vision_msgs/msg/Detection3DArray"),
        "battery": layer("/charge", "std_msgs/msg/Float32", is_internal_state=True, stale_after=0.2),
        "consolidation_window": 0.0,
    } | {name: layer(f"/{name}", "std_msgs/msg/String") for name in LAYERS}
    embedder = WordEmbedder(same={"stool": "chair"})
    with node_here(tmp_path_factory.mktemp("load"), parameters, embedder=embedder) as node, peer() as other:
        yield node, other


def test_f8_five_layers_of_fifty_hertz_lose_nothing(world: tuple[Any, Peer]) -> None:
    node, other = world
    publishers = [other.publisher(f"/{name}", String) for name in LAYERS]
    began = time.monotonic()
    for i in range(150):
        for number, publisher in enumerate(publishers):
            publisher.publish(String(data=f"layer {number} says {i}"))
        time.sleep(max(0.0, began + (i + 1) / 50.0 - time.monotonic()))
    for name in LAYERS:
        wait_until(lambda n=name: other.layer(n).received == 150, f"all of {name}")
    rows = other.rows(*LAYERS)
    assert len({row.text for row in rows}) == 750
    for name in LAYERS:
        status = other.layer(name)
        assert (status.stored, status.dropped, status.refused, status.thinned) == (150, 0, 0, 0)
    # A row has the time of its message: none waited for its turn.
    first = [row for row in rows if row.layer == "layer0"]
    assert [row.text for row in first] == [f"layer 0 says {i}" for i in range(150)]
    assert all(
        a.stamp.sec + a.stamp.nanosec / 1e9 <= b.stamp.sec + b.stamp.nanosec / 1e9
        for a, b in zip(first, first[1:], strict=False)
    )


def test_f10_questions_are_answered_while_memories_are_summarised(world: tuple[Any, Peer]) -> None:
    _, other = world
    done: list[Any] = []
    consolidating = threading.Thread(target=lambda: done.append(other.call("consolidate", timeout=60.0)))
    consolidating.start()
    answers = []
    while consolidating.is_alive() and len(answers) < 500:
        answers.append(other.call("semantic_search", query="layer 3 says 77"))
    consolidating.join()
    assert done[0].success, done[0].message
    assert answers and all(answer.success for answer in answers)


def test_f10_a_job_of_any_length_holds_up_neither_answers_nor_timers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parameters = {"layers": ["scene"], "scene": layer("/scene", "std_msgs/msg/String"), "diagnostics_period": 0.1}
    with node_here(tmp_path, parameters) as node, peer() as other:
        begun, go_on = threading.Event(), threading.Event()
        job = node.memory._rooms.runner.jobs["gists"]
        step = job.step

        def blocked(context: Any) -> Any:
            begun.set()
            assert go_on.wait(120.0)
            return step(context)

        monkeypatch.setattr(job, "step", blocked)
        kind = TYPES["consolidate"]
        client = other.node.create_client(kind, "/memory/consolidate")
        assert client.wait_for_service(30.0)
        consolidating = client.call_async(kind.Request())
        assert begun.wait(30.0)

        reads = [spec.name for spec in SERVICES if not spec.writes]
        assert all(other.call(name, timeout=60.0) for name in reads)
        assert other.call("store_specific_memory", text="a note", timeout=60.0).success
        other.publish("/scene", String(data="a red chair"))
        assert [row.text for row in other.wait_rows(1, "scene")] == ["a red chair"]

        told: list[DiagnosticArray] = []
        other.node.create_subscription(DiagnosticArray, "/diagnostics", told.append, 10)
        wait_until(lambda: told, "diagnostics")
        streams = [Stream(other) for _ in range(4)]
        before = len(told)
        wait_until(lambda: len(told) >= before + 10, "the timer keeps its turn under a stream of questions", 60.0)
        for stream in streams:
            stream.stop()
        assert all(stream.answered >= 10 for stream in streams), "and the questions theirs"
        assert not consolidating.done() and node.memory._rooms.runner.jobs["gists"] is job
        go_on.set()
        wait_until(consolidating.done, "the job is done", 60.0)
        assert consolidating.result().success, consolidating.result().message


class Stream:
    """Asks again as soon as the answer is there."""

    def __init__(self, other: Peer) -> None:
        self.answered = 0
        self._kind = TYPES["temporal_query"]
        self._client = other.node.create_client(self._kind, "/memory/temporal_query", qos_profile=QoSProfile(depth=100))
        assert self._client.wait_for_service(30.0)
        self._going = True
        self._ask()

    def _ask(self) -> None:
        self._client.call_async(self._kind.Request(limit=5)).add_done_callback(self._next)

    def _next(self, answer: Any) -> None:
        assert answer.result().success
        self.answered += 1
        if self._going:
            self._ask()

    def stop(self) -> None:
        self._going = False


def test_f9_f10_many_askers_at_once(world: tuple[Any, Peer]) -> None:
    _, other = world
    kind = TYPES["temporal_query"]
    # Every client hears the answers to all of them: its own depth must hold a burst.
    deep = QoSProfile(depth=100)
    clients = [other.node.create_client(kind, "/memory/temporal_query", qos_profile=deep) for _ in range(30)]
    assert all(client.wait_for_service(10.0) for client in clients)
    futures = [client.call_async(kind.Request(limit=5)) for client in clients]
    wait_until(lambda: all(future.done() for future in futures), "every answer", 30.0)
    assert all(future.result().success for future in futures)
    for client in clients:
        other.node.destroy_client(client)


def test_meaning_answers_once_texts_have_vectors(world: tuple[Any, Peer]) -> None:
    node, other = world
    other.call("store_specific_memory", text="a wooden stool", layer="notes")
    assert node.memory.wait_embedded(30.0)
    found = other.call("semantic_search", query="chair", limit=1, filter=Filter(layers=["notes"]))
    assert found.matches[0].text == "a wooden stool" and found.matches[0].similarity > 0.5
    status = other.call("get_status").status
    assert (status.model, status.dimension, status.backlog) == ("words", 64, 0)


def test_f18_vision_msgs_as_they_are_published(world: tuple[Any, Peer]) -> None:
    vision = pytest.importorskip("vision_msgs.msg", reason="vision_msgs is not installed")
    _, other = world
    seen = vision.Detection3D(results=[vision.ObjectHypothesisWithPose(), vision.ObjectHypothesisWithPose()], id="7")
    seen.results[0].hypothesis.class_id, seen.results[0].hypothesis.score = "dog", 0.3
    seen.results[1].hypothesis.class_id, seen.results[1].hypothesis.score = "cat", 0.6
    seen.bbox.center.position.x, seen.bbox.center.position.y = 4.0, 5.0
    array = vision.Detection3DArray(detections=[seen, vision.Detection3D()])
    array.header.frame_id, array.header.stamp = "map", stamp(time.time())
    other.publish("/seen", array)
    row = other.wait_rows(1, "seen")[0]
    assert (row.text, row.position.point.x, row.position.point.y) == ("cat", 4.0, 5.0)
    assert row.confidence == pytest.approx(0.6) and row.position_source == "measured"


def test_a_layer_says_when_its_readings_are_stale(world: tuple[Any, Peer]) -> None:
    from std_msgs.msg import Float32

    _, other = world
    other.publish("/charge", Float32(data=0.5))
    wait_until(lambda: other.call("body_status").readings, "a reading")
    reading = wait_until(
        lambda: next((r for r in other.call("body_status").readings if r.is_stale), None), "it is stale", 5.0
    )
    assert reading.layer == "battery" and 0.2 < reading.age < 8.0
