"""The example client against the real node, and against one that never answers (F9)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

rclpy = pytest.importorskip("rclpy", reason="ROS is neither installed nor sourced")
pytest.importorskip("robot_memory", reason="the interfaces are not built, see `make build`")

from rclpy.executors import SingleThreadedExecutor  # noqa: E402
from rclpy.task import Future  # noqa: E402
from robot_memory import srv  # noqa: E402
from support.ros_harness import node_here, wait_until  # noqa: E402

from examples.planner_client import SERVICES, MemoryClient, fill, text_of  # noqa: E402
from memory_node.ros.executor import Spinner  # noqa: E402
from memory_node.ros.services import SERVICES as OFFERED  # noqa: E402
from memory_node.tools.catalogue import TOOLS  # noqa: E402


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with node_here(tmp_path_factory.mktemp("planner_client"), {}) as node:
        yield node


@pytest.fixture
def planner(memory: Any) -> Iterator[tuple[Any, MemoryClient]]:
    """A planner's node with a single-threaded executor, the hardest case, and its client."""
    context = rclpy.Context()
    rclpy.init(context=context)
    node = rclpy.create_node("planner", context=context)
    client = MemoryClient(node)
    assert client.wait_for("locate", 10.0)
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(node)
    thread = threading.Thread(target=executor.spin, daemon=True)
    thread.start()
    yield node, client
    executor.shutdown()
    thread.join(5.0)
    rclpy.try_shutdown(context=context)


def answer(future: Future) -> str:
    wait_until(future.done, "an answer", 10.0)
    return str(future.result())


def test_the_client_has_every_tool_with_the_nodes_type() -> None:
    offered = {spec.name: spec.type for spec in OFFERED}
    assert {tool.name: offered[tool.name] for tool in TOOLS} == SERVICES


def test_every_argument_of_a_tool_fits_its_request() -> None:
    examples = {"string": "2", "number": 2.5, "integer": 2, "boolean": True, "array": [], "object": {}}
    for tool in TOOLS:
        for name, schema in tool.parameters.items():
            kind = schema["type"] if isinstance(schema["type"], str) else schema["type"][0]
            value = [1, 2, 3] if schema.get("maxItems") == 3 else examples[kind]
            fill(SERVICES[tool.name].Request(), {name: value})


def test_json_becomes_fields() -> None:
    request = fill(
        srv.SpatialQuery.Request(), {"center": [1, 2], "radius": 3, "filter": {"time_after": 12, "radius": 2}}
    )
    assert (request.center.point.x, request.center.point.y, request.use_z, request.radius) == (1.0, 2.0, False, 3.0)
    assert request.filter.time_after == "12" and request.filter.radius == 2.0
    assert fill(srv.SpatialQuery.Request(), {"center": [1, 2, 3]}).use_z
    note = fill(srv.StoreMemory.Request(), {"position": [1, 2, 3], "stamp": 1.5, "metadata": {"a": 1}, "layer": None})
    assert note.has_position and note.position.point.z == 3.0 and note.metadata == '{"a": 1}'
    for wrong in ([1, 2], [1, 2, 3, 4], [1]):
        with pytest.raises(ValueError, match="position: got"):
            fill(srv.StoreMemory.Request(), {"position": wrong})
    assert (note.stamp.sec, note.stamp.nanosec) == (1, 500_000_000)


def test_a_tool_answers(planner: tuple[Any, MemoryClient]) -> None:
    _, client = planner
    assert answer(client.ask("store_specific_memory", {"text": "the key is under the mat"})).startswith("Done: #")
    assert "the key is under the mat" in answer(client.ask("semantic_search", {"query": "key"}))
    assert answer(client.ask("start_episode", {"name": "fetch the key"})).startswith("Done: #")
    assert answer(client.ask("end_episode")).startswith("Done: #")


def test_what_is_wrong_comes_back_as_text(planner: tuple[Any, MemoryClient]) -> None:
    _, client = planner
    assert "no tool 'find'" in answer(client.ask("find"))
    assert answer(client.ask("locate", {"thing": "cup"})).startswith("Error: locate: ")
    assert answer(client.ask("spatial_query", {"center": ["here"]})).startswith("Error: spatial_query: ")
    refused = answer(client.ask("spatial_query", {"center": [0, 0], "radius": -1}))
    assert refused.startswith("Error: ") and "radius" in refused


def test_asking_in_a_callback_does_not_block_it(planner: tuple[Any, MemoryClient]) -> None:
    """F9: a callback awaits two answers in turn, on an executor with one thread."""
    node, client = planner
    told: list[str] = []

    async def think() -> None:
        timer.cancel()
        told.append(await client.ask("body_status"))
        told.append(await client.ask("get_current_context"))

    timer = node.create_timer(0.01, think)
    wait_until(lambda: len(told) == 2, "both answers")
    assert not any(text.startswith("Error:") for text in told)


def test_a_memory_that_never_answers_is_given_up(ros_context: Any) -> None:
    """F9: the future is done after the time-out, and a missing memory is told at once."""
    stop = threading.Event()
    node, silent = (rclpy.create_node(name, context=ros_context) for name in ("planner", "memory"))

    def never(request: Any, response: Any) -> Any:
        stop.wait(20.0)
        return response

    silent.create_service(srv.Locate, "~/locate", never)
    spinners = [Spinner(one, 2) for one in (node, silent)]
    try:
        client = MemoryClient(node, timeout=0.2)
        assert client.wait_for("locate", 10.0)
        assert answer(client.ask("locate", {"concept": "cup"})) == "Error: /memory/locate did not answer within 0.2 s"
        assert answer(client.ask("recall", {"query": "cup"})) == "Error: /memory/recall is not there"
    finally:
        stop.set()
        for spinner in spinners:
            spinner.close()


def test_text_of_a_refusal() -> None:
    assert text_of(srv.Locate.Response(success=False, message="concept: blank")) == "Error: concept: blank"
