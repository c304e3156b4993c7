"""The real executable as a process."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Any

import pytest
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import Point
from nav_msgs.msg import Odometry
from rcl_interfaces.msg import Log, Parameter, ParameterValue
from rcl_interfaces.srv import SetParameters
from robot_memory.msg import Detection, DetectionArray
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import BatteryState
from std_msgs.msg import Header, String
from support.ros_harness import ROOT, Peer, layer, parameter_file, peer, process, ready, stamp, wait_until
from visualization_msgs.msg import MarkerArray

pytestmark = [pytest.mark.process, pytest.mark.usefixtures("domain")]

NO_MODEL = {"embedder": {"model": ""}}
SCENE: dict[str, Any] = NO_MODEL | {"layers": ["scene"], "scene": layer("scene", "std_msgs/msg/String")}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_f12_f13_f14_what_was_accepted_before_a_signal_is_there_after_it(tmp_path: Path, number: int) -> None:
    parameters = SCENE | {"db_path": str(tmp_path / "memory.db"), "flush_interval": 60.0, "flush_batch_size": 1000}
    texts = [f"view {i}" for i in range(20)]
    with process(tmp_path, parameters, name="first") as node, peer() as other:
        ready(other, node)
        other.publish("/scene", *(String(data=text) for text in texts[:19]))
        wait_until(lambda: other.layer("scene").received == 19, "all came")
        other.rows("scene")
        asked = [other.call("semantic_search", query=f"view {i}").matches[0].id for i in (3, 17)]
        other.publish("/scene", String(data=texts[19]))
        wait_until(lambda: other.layer("scene").received == 20, "one more came, and nothing commits it")
        began = time.monotonic()
        node.send(number)
        node.send(number)
        assert node.wait() == 0, node.output
        assert time.monotonic() - began < 2.0
        assert "Traceback" not in node.output
    with process(tmp_path, parameters, name="second") as node, peer() as other:
        ready(other, node)
        assert [row.text for row in other.rows("scene")] == texts
        assert [other.call("semantic_search", query=f"view {i}").matches[0].id for i in (3, 17)] == asked
        assert node.stop() == 0, node.output


def test_f12_what_a_service_said_is_stored_is_there_after_kill_9(tmp_path: Path) -> None:
    parameters = NO_MODEL | {"db_path": str(tmp_path / "memory.db"), "flush_interval": 60.0, "flush_batch_size": 1000}
    stored: dict[int, str] = {}
    for number in range(4):
        with process(tmp_path, parameters, name=f"life{number}") as node, peer() as other:
            ready(other, node)
            assert not number or {row.id: row.text for row in other.rows("notes")} == stored
            for i in range(number + 1):
                answer = other.call("store_specific_memory", text=f"note n{number}x{i}")
                assert answer.success and answer.id not in stored
                stored[answer.id] = f"note n{number}x{i}"
            node.send(signal.SIGKILL)
            assert node.wait() == -signal.SIGKILL, node.output
    with process(tmp_path, parameters, name="last") as node, peer() as other:
        ready(other, node)
        assert {row.id: row.text for row in other.rows("notes")} == stored
        for id_, text in stored.items():
            assert other.call("semantic_search", query=text, limit=1).matches[0].id == id_
        assert node.stop() == 0, node.output


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_f12_a_signal_while_the_node_imports_ends_it_with_0(tmp_path: Path, number: int) -> None:
    with process(tmp_path, NO_MODEL | {"db_path": str(tmp_path / "memory.db")}) as node:
        maps = Path(f"/proc/{node.pid}/maps")
        wait_until(lambda: "rclpy" in maps.read_text("utf-8"), "it imports")
        assert node.stop(number) == 0, node.output
        assert "Traceback" not in node.output


def test_two_namespaces_have_two_databases_and_two_answers(tmp_path: Path) -> None:
    with (
        process(tmp_path, SCENE, "-r", "__ns:=/robot1", name="one") as one,
        process(tmp_path, SCENE, "-r", "__ns:=/robot2", name="two") as two,
        peer("/robot1/memory") as other,
    ):
        ready(other, one)
        for robot in ("robot1", "robot2"):
            other.memory = f"/{robot}/memory"
            ready(other, one if robot == "robot1" else two)
            other.publish(f"/{robot}/scene", String(data=f"seen by {robot}"))
            assert [row.text for row in other.wait_rows(1, "scene")] == [f"seen by {robot}"]
        assert one.stop() == 0 and two.stop() == 0
    for robot in ("robot1", "robot2"):
        assert (tmp_path / "ros_home" / robot / "memory.db").is_file()


def test_what_the_engine_logs_reaches_rosout_under_the_name_of_the_node(tmp_path: Path) -> None:
    with process(tmp_path, SCENE, "-r", "__ns:=/r1", name="named") as node, peer("/r1/memory") as other:
        logs: list[Log] = []
        other.node.create_subscription(Log, "/rosout", logs.append, 100)
        ready(other, node)
        other.publish("/r1/scene", String(data=" "))
        said = "layer scene: message refused: empty text"
        log = wait_until(lambda: next((log for log in logs if log.msg == said), None), "the refusal on /rosout")
        assert log.name == "r1.memory"
        assert f"[r1.memory]: {said}" in node.output
        assert node.stop() == 0, node.output


def test_the_shipped_configuration_starts_and_stops_while_the_model_loads(tmp_path: Path) -> None:
    with process(tmp_path, ROOT / "config" / "memory.yaml") as node, peer() as other:
        ready(other, node)
        assert other.call("get_status").status.index_state in ("loading", "ready")
        assert other.call("temporal_query").success
        assert node.stop() == 0, node.output
        assert "is not read by this node" not in node.output


def see_a_mug(other: Peer) -> None:
    """Send of each kind of message something, in an episode that is left open."""
    now = Header(frame_id="map", stamp=stamp(time.time()))
    pose = Odometry(header=now, child_frame_id="base_link")
    pose.pose.pose.orientation.w = 1.0
    other.publish("/odom", pose)
    other.publish("/battery", BatteryState(header=now, percentage=0.5))
    assert other.call("start_episode", name="tea").success
    mug = Detection(label="mug", confidence=0.9, has_position=True, position=Point(x=1.0, y=2.0))
    for _ in range(3):
        other.publish("/detections", DetectionArray(header=now, detections=[mug]))
    other.publish("/scene", *(String(data=f"a mug on table {i}") for i in range(5)))
    other.wait_rows(8, "scene", "detections")


def test_where_rclpy_checks_each_field_of_a_message_all_that_the_node_sends_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROS_PYTHON_CHECK_FIELDS", "1")
    parameters = SCENE | {
        "db_path": str(tmp_path / "memory.db"),
        "layers": ["scene", "detections", "battery"],
        "detections": layer("/detections", "robot_memory/msg/DetectionArray"),
        "battery": layer("/battery", "sensor_msgs/msg/BatteryState", is_internal_state=True),
        "fold_repeats": False,
        "markers_period": 0.1,
        "diagnostics_period": 0.1,
    }
    with process(tmp_path, parameters) as node, peer() as other:
        told: list[DiagnosticArray] = []
        marked: list[MarkerArray] = []
        other.node.create_subscription(DiagnosticArray, "/diagnostics", told.append, 10)
        other.node.create_subscription(MarkerArray, "/memory/markers", marked.append, 10)
        ready(other, node)
        see_a_mug(other)
        assert other.call("end_episode").gist_ids
        answers = {
            "semantic_search": other.call("semantic_search", query="mug").matches,
            "recall": other.call("recall", query="mug").entities,
            "search_gists": other.call("search_gists", query="mug").gists,
            "locate": [place for place in [other.call("locate", concept="mug")] if place.found],
            "entity_query": other.call("entity_query", name="mug").entities,
            "episode_summary": other.call("episode_summary", task_name="tea").episodes,
            "get_current_context": other.call("get_current_context").nearby,
            "body_status": other.call("body_status").readings,
            "get_status": other.call("get_status").status.layers,
            "get_jobs": other.call("get_jobs").jobs,
        }
        assert [service for service, answer in answers.items() if not answer] == [], node.output
        wait_until(lambda: told and any(array.markers for array in marked), "diagnostics and markers")
        assert node.stop() == 0, node.output
        assert "Traceback" not in node.output and "failed" not in node.output, node.output


def wrong(folder: Path, text: str) -> str:
    """Start with a parameter file of this text, which must fail; returns what was said."""
    path = folder / "wrong.yaml"
    path.write_text(text, encoding="utf-8")
    with process(folder, path) as node:
        assert node.wait(30.0) == 1
        assert "Traceback" not in node.output
        return node.output


HEAD = "/**:\n  ros__parameters:\n    "


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (HEAD + "layers: [{topic: /a, type: x}, {topic: /b, type: y}]\n", "layers: a list of maps or lists is no ROS"),
        (HEAD + "layers: [[a, b], [c]]\n", "write  layers: [scene]  and beside it  scene: {topic: /scene_description"),
        (HEAD + "layers: [a,\n  b\n", "wrong.yaml:5: while parsing a flow sequence, expected ',' or ']'"),
        (HEAD + "layers: [a]\n   x: 1\n", "wrong.yaml:4: while parsing a block mapping"),
        (HEAD + "sensor_frames: {cam: [1, 0.5, 0.0, 0.0, 0.0, 0.0]}\n", "sensor_frames.cam: all items of a list"),
        ("layers: [a]\n", "the top level is a node's name"),
        (HEAD + "flush_interval: fast\n", "wrong parameter: flush_interval: got 'fast', allowed is a number"),
        (HEAD + "layers: [a]\n", "wrong parameter: a.topic: missing"),
        (HEAD + "use_sim_time: 5\n", "wrong parameter: use_sim_time: got 5, allowed is true or false"),
        (HEAD + "db_path: /proc/no/memory.db\n", "cannot start: /proc/no"),
    ],
)
def test_f16_f39_what_cannot_start_says_why_in_a_line(tmp_path: Path, text: str, said: str) -> None:
    output = wrong(tmp_path, text)
    assert said in output
    assert "wrong.yaml:" not in said or len(output.splitlines()) == 1, "one error, one line"


def test_a_parameter_file_that_is_not_there(tmp_path: Path) -> None:
    with process(tmp_path, tmp_path / "none.yaml") as node:
        assert node.wait(30.0) == 1
        assert "none.yaml: No such file or directory" in node.output and "Traceback" not in node.output


def test_f15_empty_lists_whole_numbers_and_unread_names_are_accepted(tmp_path: Path) -> None:
    parameters = NO_MODEL | {
        "layers": [],
        "flush_interval": 1,
        "flush_intervall": 2.0,
        "db_path": str(tmp_path / "memory.db"),
    }
    with process(tmp_path, parameter_file(tmp_path, parameters)) as node, peer() as other:
        ready(other, node)
        assert other.call("temporal_query").success
        wait_until(
            lambda: "'flush_intervall' is not read by this node; did you mean 'flush_interval'" in node.output,
            "the name is told",
        )
        assert node.output.count("layers: none is given") == 1
        assert node.stop() == 0


def test_a_second_node_on_the_same_database_stops_with_one_line(tmp_path: Path) -> None:
    parameters = NO_MODEL | {"db_path": str(tmp_path / "memory.db")}
    with process(tmp_path, parameters, name="first") as first, peer() as other:
        ready(other, first)
        with process(tmp_path, parameters, "-r", "__node:=other", name="second") as second:
            assert second.wait(30.0) == 1
            assert "cannot start" in second.output and "memory.db" in second.output
        assert other.call("temporal_query").success
        assert first.stop() == 0


def test_f3_without_clock_nothing_is_stored_one_warning_is_given_and_services_answer(tmp_path: Path) -> None:
    parameters = SCENE | {"db_path": str(tmp_path / "memory.db"), "use_sim_time": True}
    with process(tmp_path, parameters) as node, peer() as other:
        ready(other, node)
        other.publish("/scene", String(data="at no time"))
        wait_until(lambda: other.layer("scene").refused == 1, "refused")
        wait_until(lambda: "nothing publishes /clock" in node.output, "the warning")
        assert other.call("temporal_query").success and not other.rows("scene")
        for service, arguments in (("start_episode", {"name": "x"}), ("store_specific_memory", {"text": "x"})):
            refused = other.call(service, **arguments)
            assert not refused.success and "the clock has not started" in refused.message
        time.sleep(1.5)
        assert node.output.count("nothing publishes /clock") == 1
        assert node.stop(signal.SIGINT) == 0, node.output


def is_heard(other: Peer, seconds: float) -> bool:
    """Publish a time, and say whether it came: /clock is best effort, so it may not."""
    other.publish("/clock", Clock(clock=stamp(seconds)))
    time.sleep(0.1)
    return not any("/clock" in warning for warning in other.call("get_status").status.warnings)


def test_f3_a_clock_that_stops_is_told_once_and_again_when_it_stops_again(tmp_path: Path) -> None:
    parameters = SCENE | {"db_path": str(tmp_path / "memory.db"), "use_sim_time": True}
    with process(tmp_path, parameters) as node, peer() as other:
        ready(other, node)
        other.publisher("/clock", Clock)

        def stop_at(seconds: float) -> list[str]:
            wait_until(lambda: is_heard(other, seconds), "the clock goes on")
            said = f"nothing comes on /clock any more: the time stands still at {seconds:.3f} s"
            wait_until(lambda: said in node.output, said)
            return list(other.call("get_status").status.warnings)

        assert stop_at(100.0)[0].startswith("nothing comes on /clock any more")
        other.publish("/scene", String(data="a view"))
        wait_until(lambda: other.layer("scene").received == 1, "it came")
        time.sleep(1.0)
        assert other.layer("scene").age >= 1.0, "the age goes on while the clock stands still"
        stop_at(101.0)
        assert node.output.count("nothing comes on /clock any more") == 2
        wait_until(lambda: is_heard(other, 102.0), "all is well")
        assert node.stop() == 0, node.output


def test_f3_simulated_time_that_is_set_at_run_time_without_a_clock_is_told(tmp_path: Path) -> None:
    with process(tmp_path, SCENE | {"db_path": str(tmp_path / "memory.db")}) as node, peer() as other:
        ready(other, node)
        other.publish("/scene", String(data="a view"))
        wait_until(lambda: other.layer("scene").stored == 1, "it is stored")
        simulated = Parameter(name="use_sim_time", value=ParameterValue(type=1, bool_value=True))
        assert other.call("set_parameters", kind=SetParameters, parameters=[simulated]).results[0].successful
        wait_until(lambda: "nothing publishes /clock" in node.output, "the warning")
        assert any("nothing publishes /clock" in warning for warning in other.call("get_status").status.warnings)
        other.publish("/scene", String(data="at no time"))
        wait_until(lambda: other.layer("scene").refused == 1, "refused")
        assert other.layer("scene").refused_because == ["the clock has not started: 1"]
        other.publisher("/clock", Clock)
        wait_until(lambda: is_heard(other, 50.0), "all is well")
        other.publish("/scene", String(data="in the simulation"))
        wait_until(lambda: [row for row in other.rows("scene") if row.stamp.sec == 50], "stored at its time")
        assert node.stop() == 0, node.output


def test_f1_f2_a_looping_clock_begins_a_new_session_and_storing_goes_on(tmp_path: Path) -> None:
    parameters = SCENE | {
        "db_path": str(tmp_path / "memory.db"),
        "use_sim_time": True,
        "consolidation_interval": 0.5,
        "consolidation_window": 0.0,
        "consolidation_min_samples": 2,
    }
    with process(tmp_path, parameters) as node, peer() as other:
        ready(other, node)
        clock = other.publisher("/clock", Clock)

        def tick(seconds: float) -> None:
            clock.publish(Clock(clock=stamp(seconds)))
            time.sleep(0.1)

        def begun() -> bool:
            tick(100.0)  # best effort, so it may not arrive
            return bool(other.call("start_episode", name="first loop").success)

        wait_until(begun, "the clock is heard")
        session = other.call("get_status").status.session
        for loop in range(2):
            for i in range(3):
                tick(100.0 + i)
                other.publish("/scene", String(data=f"loop {loop} view {i}"))
                wait_until(lambda n=loop * 3 + i + 1: other.layer("scene").received == n, "it came")
        rows = other.wait_rows(6, "scene")
        assert {row.text for row in rows} == {f"loop {n} view {i}" for n in range(2) for i in range(3)}
        assert all(100 <= row.stamp.sec <= 103 for row in rows)
        assert other.call("get_status").status.session > session
        assert "clock went back" in node.output
        episodes = other.call("episode_summary", task_name="first loop").episodes
        assert [episode.status for episode in episodes] == ["abandoned"]
        runs = max(job.runs for job in other.call("get_jobs").jobs)
        wait_until(lambda: max(job.runs for job in other.call("get_jobs").jobs) > runs, "housekeeping goes on")
        assert node.stop() == 0, node.output
