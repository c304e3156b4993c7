"""Every service answers, whatever it is asked; parameters, markers and diagnostics of a running node."""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import Point, PointStamped
from nav_msgs.msg import Odometry
from rcl_interfaces.msg import Parameter as ParameterMessage
from rcl_interfaces.msg import ParameterType, ParameterValue
from rcl_interfaces.srv import DescribeParameters, SetParameters
from rclpy.qos import DurabilityPolicy, QoSProfile
from robot_memory.msg import Detection, DetectionArray, Filter
from std_msgs.msg import String
from support.ros_harness import Peer, layer, node_here, peer, stamp, wait_until
from visualization_msgs.msg import Marker, MarkerArray

from memory_node.ros.markers import type_color
from memory_node.ros.services import SERVICES


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, Peer]]:
    parameters = {
        "layers": ["scene", "detections"],
        "scene": layer("/scene", "std_msgs/msg/String"),
        "detections": layer("/detections", "robot_memory/msg/DetectionArray"),
        "sensor_frames": {"camera": [0.5, 0.0, 1.0, 0.0, 0.0, 0.0]},
        "markers_period": 0.2,
        "diagnostics_period": 0.2,
    }
    with node_here(tmp_path_factory.mktemp("services"), parameters) as node, peer() as other:
        pose = Odometry(child_frame_id="base_link")
        pose.header.frame_id, pose.header.stamp = "map", stamp(time.time())
        pose.pose.pose.position.x, pose.pose.pose.orientation.w = 2.0, 1.0
        other.publish("/odom", pose)
        wait_until(lambda: node.memory.track.latest, "a pose")
        for _ in range(3):
            seen = Detection(label="chair", has_position=True, position=Point(x=3.0, y=1.0, z=0.4))
            look = DetectionArray(detections=[seen])
            look.header.frame_id, look.header.stamp = "map", stamp(time.time())
            other.publish("/detections", look)
        other.publish("/scene", String(data="a red chair beside the window"))
        other.wait_rows(4, "scene", "detections")
        yield node, other


def at(x: float, y: float, z: float = 0.0, frame: str = "map") -> PointStamped:
    point = PointStamped(point=Point(x=x, y=y, z=z))
    point.header.frame_id = frame
    return point


def test_every_service_answers_a_default_request(world: tuple[Any, Peer]) -> None:
    _, other = world
    for spec in SERVICES:
        response = other.call(spec.name)
        assert response.success == (response.message == "" or response.success), spec.name
        assert response.success or response.message, spec.name


def test_the_tools_tell_what_is_known(world: tuple[Any, Peer]) -> None:
    _, other = world
    found = other.call("semantic_search", query="red chair")
    assert found.success and found.matches[0].text == "a red chair beside the window"
    assert found.matches[0].lexical > 0.0 and "red chair" in found.text
    near = other.call("spatial_query", center=at(3.0, 1.0), radius=0.5)
    assert [match.text for match in near.matches][:1] == ["chair"]
    chairs = other.call("entity_query", name="chair").entities
    assert len(chairs) == 1 and chairs[0].sightings == 3
    place = other.call("locate", concept="chair")
    assert place.found and (place.place.position.point.x, place.place.position.point.y) == pytest.approx((3.0, 1.0))
    context = other.call("get_current_context")
    assert context.has_position and context.position.point.x == 2.0 and context.heading == pytest.approx(0.0)
    assert context.position_age >= 0.0


def test_store_specific_memory_is_there_when_it_answers(world: tuple[Any, Peer]) -> None:
    _, other = world
    answer = other.call(
        "store_specific_memory", text="the key is under the mat", layer="notes", has_position=True,
        position=at(1.0, 1.0), importance=0.9, metadata='{"by": "user"}',
    )  # fmt: skip
    assert answer.success and answer.id > 0
    match = other.call("semantic_search", query="key mat").matches[0]
    assert (match.id, match.layer, match.importance) == (answer.id, "notes", 0.9)
    assert json.loads(match.metadata) == {"by": "user"} and math.isnan(match.similarity)
    unplaced = other.call("store_specific_memory", text="here I am")
    row = next(m for m in other.call("semantic_search", query="here").matches if m.id == unplaced.id)
    assert row.has_position and row.position.point.x == 2.0 and row.position_source == "observer"


def test_positions_of_another_frame_are_transformed_or_refused_by_name(world: tuple[Any, Peer]) -> None:
    _, other = world
    # The camera is half a metre ahead of and one above the robot at (2, 0).
    near = other.call("spatial_query", center=at(0.5, 1.0, -0.6, "camera"), radius=0.05, use_z=True)
    assert near.success and near.matches[0].text == "chair"
    unknown = Filter(center=at(1.0, 1.0, frame="gripper"), radius=1.0)
    refused = other.call("semantic_search", query="chair", filter=unknown)
    assert (refused.success, refused.message) == (
        False,
        "filter.center: frame 'gripper' cannot be transformed to 'map': frame 'gripper' unknown",
    )


BAD: list[tuple[str, dict[str, Any], str]] = [
    ("semantic_search", {"query": "chair", "limit": -1}, "limit"),
    ("semantic_search", {"query": "chair", "filter": Filter(radius=-1.0)}, "filter.radius"),
    ("semantic_search", {"query": "chair", "filter": Filter(radius=math.nan)}, "filter.radius"),
    ("semantic_search", {"query": "chair", "filter": Filter(radius=1.0, center=at(math.nan, 0.0))}, "center"),
    ("semantic_search", {"query": "chair", "filter": Filter(layers=["no such layer"])}, "layer"),
    ("temporal_query", {"filter": Filter(time_after="-1m", time_before="-2m")}, "time_"),
    ("temporal_query", {"filter": Filter(time_after="the other day")}, "time_after"),
    ("temporal_query", {"order": "sideways"}, "order"),
    ("spatial_query", {"radius": 0.0}, "radius"),
    ("spatial_query", {"radius": math.inf}, "radius"),
    ("store_specific_memory", {"text": "  "}, "text"),
    ("store_specific_memory", {"text": "x", "metadata": "{"}, "metadata"),
    ("store_specific_memory", {"text": "x", "metadata": "[1]"}, "metadata"),
    ("store_specific_memory", {"text": "x", "confidence": math.nan}, "confidence"),
    ("store_specific_memory", {"text": "x", "has_position": True, "position": at(math.inf, 0.0)}, "position"),
    ("end_episode", {"id": 4711}, "id"),
    ("end_episode", {"status": "so so"}, "status"),
    ("start_episode", {"name": ""}, "name"),
    ("locate", {"concept": ""}, "concept"),
    ("body_status", {"layers": ["no such layer"]}, "layers"),
]


@pytest.mark.parametrize(("service", "fields", "named"), BAD)
def test_f11_a_bad_request_gets_a_reason(
    world: tuple[Any, Peer], service: str, fields: dict[str, Any], named: str
) -> None:
    _, other = world
    response = other.call(service, **fields)
    assert not response.success and named in response.message
    assert "internal error" not in response.message


def test_f11_a_query_of_a_megabyte_and_syntax_of_the_word_index_are_answered(world: tuple[Any, Peer]) -> None:
    _, other = world
    for query in ("chair " * 170_000, '"mug', "AND", "NOT mug", "(mug", "*", "", "   "):
        response = other.call("semantic_search", query=query)
        assert response.success or response.message


def set_parameter(other: Peer, name: str, **value: Any) -> Any:
    kinds = {
        "double_value": ParameterType.PARAMETER_DOUBLE,
        "integer_value": ParameterType.PARAMETER_INTEGER,
        "string_value": ParameterType.PARAMETER_STRING,
    }
    message = ParameterMessage(name=name, value=ParameterValue(type=kinds[next(iter(value))], **value))
    return other.call("set_parameters", kind=SetParameters, parameters=[message]).results[0]


def test_weights_change_at_run_time_and_wrong_values_are_refused(world: tuple[Any, Peer]) -> None:
    node, other = world
    assert set_parameter(other, "recency_weight", double_value=0.5).successful
    assert node.memory.settings.recency_weight == 0.5
    assert set_parameter(other, "recency_weight", integer_value=0).successful
    assert node.memory.settings.recency_weight == 0.0
    wrong = set_parameter(other, "recency_weight", double_value=11.0)
    assert not wrong.successful and "recency_weight" in wrong.reason and "11" in wrong.reason and "10" in wrong.reason
    kind = set_parameter(other, "recency_weight", string_value="much")
    assert not kind.successful and "recency_weight: got 'much', allowed is a number" in kind.reason
    fixed = set_parameter(other, "db_path", string_value="other.db")
    assert not fixed.successful and "db_path" in fixed.reason
    assert node.memory.settings.recency_weight == 0.0


def test_metadata_nested_without_end_is_named(world: tuple[Any, Peer]) -> None:
    _, other = world
    for service in ("store_specific_memory", "start_episode"):
        more = {"text": "x"} if service == "store_specific_memory" else {"name": "x"}
        answer = other.call(service, metadata='{"a": ' * 100_000 + "1" + "}" * 100_000, **more)
        assert not answer.success and answer.message == "metadata: is nested too deep"


def test_f7_half_a_surrogate_pair_in_metadata_is_repaired(world: tuple[Any, Peer]) -> None:
    _, other = world
    metadata = '{"who": "\\ud800"}'  # legal JSON, but no text
    stored = other.call("store_specific_memory", text="left by a stranger", metadata=metadata)
    assert stored.success, stored.message
    found = other.call("semantic_search", query="stranger", limit=1).matches[0]
    assert (found.id, json.loads(found.metadata)) == (stored.id, {"who": "?"})
    started = other.call("start_episode", name="strange", metadata=metadata)
    assert started.success, started.message
    assert other.call("end_episode", id=started.id).success


@pytest.mark.parametrize(
    ("service", "fields"),
    [
        ("spatial_query", {"center": at(0.0, 0.0, frame="x" * 100_000), "radius": 1.0}),
        ("semantic_search", {"query": "x", "filter": Filter(radius=1.0, center=at(0.0, 0.0, frame="x" * 100_000))}),
        ("end_episode", {"status": "x" * 100_000}),
    ],
)
def test_f11_a_reason_shows_a_huge_argument_cut(world: tuple[Any, Peer], service: str, fields: dict[str, Any]) -> None:
    _, other = world
    response = other.call(service, **fields)
    assert not response.success and len(response.message) < 500


def test_an_endless_span_is_all_the_time_there_was(world: tuple[Any, Peer]) -> None:
    _, other = world
    assert other.call("get_current_context", recent_minutes=1e300).recent


def test_a_note_is_refused_in_a_layer_of_the_body(world: tuple[Any, Peer]) -> None:
    node, other = world
    node.memory.declare_layer("battery", True)
    refused = other.call("store_specific_memory", text="swapped", layer="battery")
    assert not refused.success and "layer: 'battery' tells of the robot's own body" in refused.message


def test_every_parameter_describes_itself(world: tuple[Any, Peer]) -> None:
    _, other = world
    names = ["flush_interval", "db_path", "scene.topic"]
    described = other.call("describe_parameters", kind=DescribeParameters, names=names).descriptors
    assert [d.read_only for d in described] == [False, True, True]
    assert "[s]" in described[0].description and described[0].floating_point_range[0].from_value == 0.01


def test_auto_store_off_leaves_storing_to_flush(world: tuple[Any, Peer]) -> None:
    node, other = world
    node._change({"auto_store": False})
    try:
        before = other.layer("scene").received
        other.publish("/scene", String(data="first view"), String(data="second view"))
        wait_until(lambda: other.layer("scene").received == before + 2, "both came")
        time.sleep(0.2)
        assert (
            not other.call("temporal_query", filter=Filter(layers=["scene"]), limit=1).matches[0].text.endswith("view")
        )
        assert other.call("flush").success
        newest = other.call("temporal_query", filter=Filter(layers=["scene"]), limit=1).matches[0]
        assert newest.text == "second view"
    finally:
        node._change({"auto_store": True})


def test_f25_answers_of_another_map_are_left_out_unless_asked_for(world: tuple[Any, Peer]) -> None:
    _, other = world
    assert other.call("set_map", map_id="upstairs").success
    try:
        assert other.call("get_status").status.map_id == "upstairs"
        assert not other.call("spatial_query", center=at(3.0, 1.0), radius=0.5).matches
        anywhere = other.call("spatial_query", center=at(3.0, 1.0), radius=0.5, filter=Filter(any_map=True))
        assert anywhere.matches and anywhere.matches[0].map_id == ""
    finally:
        assert other.call("set_map", map_id="").success or other.call("set_map", map_id="ground").success


def test_markers_show_things_as_spheres_gists_as_discs_and_the_path_as_a_line(tmp_path: Path) -> None:
    parameters = {
        "layers": ["detections"],
        "detections": layer("/detections", "robot_memory/msg/DetectionArray"),
        "markers_period": 0.2,
        "consolidation_window": 0.0,
        "consolidation_min_samples": 2,
        "consolidation_interval": 3600.0,
    }
    places = {"chair": (3.0, 1.0, 0.4), "table": (5.0, -1.0, 0.7)}
    with node_here(tmp_path, parameters) as node, peer() as other:
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        arrays: list[MarkerArray] = []
        other.node.create_subscription(MarkerArray, "/memory/markers", arrays.append, latched)
        began = time.time() - 2.0
        for i in range(3):
            pose = Odometry(child_frame_id="base_link")
            pose.header.frame_id, pose.header.stamp = "map", stamp(began + 0.6 * i)
            pose.pose.pose.position.x, pose.pose.pose.orientation.w = float(i), 1.0
            other.publish("/odom", pose)
            found = [
                Detection(label=label, confidence=0.9, has_position=True, position=Point(x=x, y=y, z=z))
                for label, (x, y, z) in places.items()
            ]
            look = DetectionArray(detections=found)
            look.header.frame_id, look.header.stamp = "map", stamp(began + 0.6 * i)
            other.publish("/detections", look)
        wait_until(lambda: len(node.memory.track) == 3 and len(other.rows("detections")) == 6, "all came")
        assert other.call("consolidate").gists
        gists = other.call("search_gists").gists

        def shown() -> dict[tuple[str, int], list[Marker]]:
            result: dict[tuple[str, int], list[Marker]] = {}
            for marker in arrays[-1].markers if arrays else []:
                if marker.action == Marker.ADD:
                    result.setdefault((marker.ns, marker.type), []).append(marker)
            return result

        # Some may have been shown while the job was at work on the others.
        wait_until(lambda: len(shown().get(("gists", Marker.CYLINDER), [])) == len(gists), "every gist")
        wait_until(lambda: len(shown()) == 4, "four kinds of markers")
        markers = shown()
        assert arrays[-1].markers[0].action == Marker.DELETEALL
        assert all(marker.header.frame_id == "map" for marker in arrays[-1].markers)
        spheres = markers["entities", Marker.SPHERE]
        labels = {m.text: place(m) for m in markers["labels", Marker.TEXT_VIEW_FACING]}
        assert set(labels) == set(places)
        for label, (x, y, z) in places.items():
            assert labels[label] == pytest.approx((x, y, z + 0.3))
            sphere = next(m for m in spheres if place(m) == pytest.approx((x, y, z)))
            wanted = type_color(label)
            assert (sphere.color.r, sphere.color.g, sphere.color.b, sphere.color.a) == pytest.approx(
                (wanted.r, wanted.g, wanted.b, wanted.a)
            )
            assert sphere.scale.x == sphere.scale.y == sphere.scale.z > 0.0
        assert len(spheres) == 2 and spheres[0].color != spheres[1].color
        discs = markers["gists", Marker.CYLINDER]
        assert discs and all(disc.scale.z < 0.1 < disc.scale.x and disc.pose.position.z == 0.0 for disc in discs)
        assert sorted(place(d)[:2] for d in discs) == [
            pytest.approx(at) for at in sorted((g.position.point.x, g.position.point.y) for g in gists)
        ]
        (line,) = markers["path", Marker.LINE_STRIP]
        assert [(p.x, p.y, p.z) for p in line.points] == [(0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (2.0, 0.0, 0.0)]


def place(marker: Marker) -> tuple[float, float, float]:
    return marker.pose.position.x, marker.pose.position.y, marker.pose.position.z


def test_diagnostics_tell_of_every_layer(world: tuple[Any, Peer]) -> None:
    _, other = world
    arrays: list[DiagnosticArray] = []
    subscription = other.node.create_subscription(DiagnosticArray, "/diagnostics", arrays.append, 10)
    wait_until(lambda: arrays, "diagnostics")
    statuses = {status.name: status for status in arrays[-1].status}
    assert set(statuses) == {
        "/memory: memory",
        "/memory: jobs",
        "/memory: layer odometry",
        "/memory: layer scene",
        "/memory: layer detections",
    }
    values = {pair.key: pair.value for pair in statuses["/memory: layer detections"].values}
    assert values["received"] == "3" and values["topic"] == "/detections" and values["publishers"] == "1"
    jobs = {pair.key: pair.value for pair in statuses["/memory: jobs"].values}
    assert set(jobs) >= {"episodes", "gists", "archive", "snapshots"}
    told = re.compile(r"idle, (never ran|ran \d+ s ago, read \d+, wrote \d+, \d+ of \d+ ms)")
    assert [value for value in jobs.values() if not told.fullmatch(value)] == []
    other.node.destroy_subscription(subscription)


def test_the_status_has_every_layer(world: tuple[Any, Peer]) -> None:
    _, other = world
    status = other.call("get_status").status
    assert [layer.name for layer in status.layers] == ["odometry", "scene", "detections"]
    assert status.frame_id == "map" and status.observations >= 4 and status.session >= 1
    assert {job.name for job in other.call("get_jobs").jobs} >= {"episodes", "gists"}


def test_thresholds_of_the_node_and_of_layers_change_at_run_time(world: tuple[Any, Peer]) -> None:
    node, other = world
    before = node.parameters
    try:
        for name in ("position_max_stddev", "frame_timeout", "stamp_max_ahead", "stamp_max_age", "stale_after"):
            assert set_parameter(other, name, double_value=7.0).successful, name
        rooms = node._rooms
        assert (rooms.memory.track.max_stddev, rooms.memory.track.max_age) == (7.0, 7.0)
        assert (rooms.intake.limits.max_ahead, rooms.intake.limits.max_age) == (7.0, 7.0)
        assert set_parameter(other, "detections.min_confidence", double_value=0.5).successful
        found = [Detection(label="sure", confidence=0.6), Detection(label="unsure", confidence=0.4)]
        other.publish("/detections", DetectionArray(detections=found))
        wait_until(lambda: [r for r in other.rows("detections") if r.text == "sure"], "the sure one")
        assert not [r for r in other.rows("detections") if r.text == "unsure"]
        wrong = set_parameter(other, "detections.min_confidence", double_value=1.5)
        assert not wrong.successful and "detections.min_confidence" in wrong.reason and "1.5" in wrong.reason
        fixed = set_parameter(other, "detections.topic", string_value="/other")
        assert not fixed.successful and "detections.topic" in fixed.reason
    finally:
        names = ("position_max_stddev", "frame_timeout", "stamp_max_ahead", "stamp_max_age", "stale_after")
        node._change({name: before[name] for name in names} | {"detections.min_confidence": 0.0})
