"""The planner's calls against real services, and what the demo prints."""

from __future__ import annotations

import importlib
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("rosbags", reason="rosbags reads the bag and is not installed")
rclpy = pytest.importorskip("rclpy", reason="ROS is neither installed nor sourced")
services = pytest.importorskip("robot_memory.srv", reason="the interfaces are not built; `make build` builds them")

from rclpy.executors import SingleThreadedExecutor  # noqa: E402
from robot_memory.msg import Match, Place  # noqa: E402
from std_srvs.srv import Trigger  # noqa: E402

from examples.home_patrol.demo import side_by_side  # noqa: E402
from examples.home_patrol.generate import SEED  # noqa: E402
from examples.home_patrol.planner import Planner, Tasks, fill, plain  # noqa: E402
from examples.home_patrol.questions import questions  # noqa: E402
from examples.home_patrol.recording import record  # noqa: E402
from examples.home_patrol.world import Episode  # noqa: E402


class Desk:
    """A node `memory` that answers three services and writes down what it was asked."""

    def __init__(self, context: Any) -> None:
        self.asked: list[Any] = []
        self.hold = threading.Event()
        self.hold.set()
        self._node = rclpy.create_node("memory", context=context)
        self._node.create_service(services.StartEpisode, "~/start_episode", self._start)
        self._node.create_service(services.EndEpisode, "~/end_episode", self._end)
        self._node.create_service(Trigger, "~/flush", self._flush)
        self._executor = SingleThreadedExecutor(context=context)
        self._executor.add_node(self._node)
        self._thread = threading.Thread(target=self._executor.spin, daemon=True)
        self._thread.start()

    def _start(self, request: Any, response: Any) -> Any:
        self.asked.append(("start", request.name))
        response.success, response.id = True, 5
        return response

    def _end(self, request: Any, response: Any) -> Any:
        self.asked.append(("end", request.id))
        response.success, response.message = False, "no episode is active"
        return response

    def _flush(self, _request: Any, response: Any) -> Any:
        self.hold.wait(10.0)
        response.success = True
        return response

    def wait(self, number: int) -> None:
        """Wait until it was asked so often, 10 s at most."""
        deadline = time.monotonic() + 10.0
        while len(self.asked) < number and time.monotonic() < deadline:
            time.sleep(0.01)

    def close(self) -> None:
        """Stop answering."""
        self.hold.set()
        self._executor.shutdown()
        self._thread.join(5.0)
        self._node.destroy_node()


@pytest.fixture
def desk(ros_context: Any) -> Iterator[Desk]:
    """The answering node."""
    node = Desk(ros_context)
    yield node
    node.close()


@pytest.fixture
def planner(ros_context: Any) -> Iterator[Planner]:
    """The asking node."""
    node = rclpy.create_node("planner", context=ros_context)
    asking = Planner(node)
    yield asking
    asking.close()
    node.destroy_node()


def test_a_call_returns_plain_python_and_its_time(desk: Desk, planner: Planner) -> None:
    planner.wait_for(["start_episode"], timeout=10.0)
    reply = planner.ask("start_episode", {"name": "tidy up"})
    assert reply.answer == {"success": True, "message": "", "id": 5}
    assert reply.milliseconds > 0.0
    assert desk.asked == [("start", "tidy up")]


def test_a_call_without_an_answer_ends_after_its_time(desk: Desk, planner: Planner) -> None:
    """F9: the client has a time-out, and the planner goes on working."""
    planner.wait_for(["flush", "start_episode"], timeout=10.0)
    desk.hold.clear()
    with pytest.raises(TimeoutError, match="/memory/flush did not answer within 0 s"):
        planner.ask("flush", {}, timeout=0.2)
    desk.hold.set()
    assert planner.ask("start_episode", {"name": "again"}).answer["success"]


def test_a_missing_service_is_named(planner: Planner) -> None:
    with pytest.raises(TimeoutError, match="/memory/locate is not there"):
        planner.wait_for(["locate"], timeout=0.1)


def test_tasks_are_sent_at_their_times_in_order_and_refusals_are_told(desk: Desk, planner: Planner) -> None:
    planner.wait_for(["start_episode", "end_episode"], timeout=10.0)
    tasks = Tasks(planner, [Episode("first", 10.0, 12.0), Episode("second", 12.5, 99.0)])
    tasks.on_time(9_990_000_000)
    time.sleep(0.1)
    assert desk.asked == []
    for number, stamp in enumerate((10.0, 12.0, 13.0), start=1):
        tasks.on_time(round(stamp * 1e9))
        desk.wait(number)
    assert tasks.faults() == ["end_episode of second was never due", "end_episode of first: no episode is active"]
    assert desk.asked == [("start", "first"), ("end", 0), ("start", "second")]


def test_every_question_fits_its_service() -> None:
    for question in questions(record(SEED)):
        request = getattr(services, "".join(part.capitalize() for part in question["tool"].split("_"))).Request()
        filled = plain(fill(request, question["arguments"]))
        for name, value in question["arguments"].items():
            if not isinstance(value, dict):
                assert filled[name] == value


def test_every_path_of_every_check_is_a_field_of_its_service() -> None:
    """The judge would call a misspelt field a wrong answer; here the service's own type says what exists."""
    for question in questions(record(SEED)):
        response = getattr(services, "".join(part.capitalize() for part in question["tool"].split("_"))).Response
        for check in question["expect"]:
            ends = check.get("paths") or [check["path"]] if "path" in check or "paths" in check else []
            paths = [f"{check['items']}.0.{end}" if "items" in check else end for end in ends]
            if check["check"] == "fraction":
                paths = [f"{check['items']}.0.{end}" for end in ("layer", "value", "unit")]
            for path in paths or [check["items"]]:
                follow(response, path)


def follow(kind: Any, path: str) -> None:
    """Follow a dotted path through the types of messages."""
    for part in path.split("."):
        if part.isdigit():
            continue
        declared = kind.get_fields_and_field_types()
        assert part in declared, f"{kind.__name__} has no field {part}"
        package, _, name = declared[part].removeprefix("sequence<").rstrip(">").partition("/")
        kind = getattr(importlib.import_module(f"{package}.msg"), name) if name else None


def test_an_unknown_field_of_a_request_is_an_error() -> None:
    with pytest.raises(AttributeError, match="concepts"):
        fill(services.Locate.Request(), {"concepts": "cup"})


def test_messages_become_plain_python() -> None:
    response = services.Locate.Response(found=True, place=Place(label="cup", support=3))
    response.place.position.point.x = 1.5
    response.place.last_seen.sec, response.place.last_seen.nanosec = 12, 5
    response.alternatives = [Place(label="mug")]
    answer = plain(response)
    assert answer["place"]["position"]["point"] == {"x": 1.5, "y": 0.0, "z": 0.0}
    assert answer["place"]["last_seen"] == 12_000_000_005
    assert [place["label"] for place in answer["alternatives"]] == ["mug"]
    assert plain(Match(kind="gist"))["kind"] == "gist"


def test_two_texts_stand_side_by_side() -> None:
    lines = list(side_by_side("one\ntwo", "truth"))
    assert [line.split("|")[0].strip() for line in lines] == ["one", "two"]
    assert [line.split("|")[1].strip() for line in lines] == ["truth", ""]
    assert len({line.index("|") for line in lines}) == 1
