"""The generated bag and the ground truth: deterministic, complete, and true to the world."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("rosbags", reason="rosbags writes the sample bag and is not installed")

from rosbags.rosbag2 import Reader  # noqa: E402

from examples.home_patrol import bag, robot, world  # noqa: E402
from examples.home_patrol.generate import SEED, Written, generate, main  # noqa: E402
from examples.home_patrol.recording import record  # noqa: E402
from examples.home_patrol.truth import load  # noqa: E402


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """The shipped world."""
    return generate(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="module")
def truth(written: Written) -> dict[str, Any]:
    """Its ground truth."""
    return load(written.truth)


def rows(folder: Path) -> list[tuple[str, int, bytes]]:
    """Topic, record time and bytes of every message of a bag."""
    with Reader(folder) as reader:
        return [(connection.topic, stamp, bytes(data)) for connection, stamp, data in reader.messages()]


def messages(folder: Path, topic: str, variant: str = "robot_memory") -> list[tuple[int, Any]]:
    """Record time and message of a topic."""
    store = bag.typestore(variant)
    with Reader(folder) as reader:
        chosen = [connection for connection in reader.connections if connection.topic == topic]
        return [
            (stamp, store.deserialize_cdr(data, connection.msgtype))
            for connection, stamp, data in reader.messages(chosen)
        ]


@pytest.mark.parametrize("variant", bag.VARIANTS)
def test_the_same_seed_gives_the_same_bytes(tmp_path: Path, variant: str) -> None:
    first, second = (generate(tmp_path / name, seed=3, variant=variant) for name in ("a", "b"))
    assert rows(first.bag) == rows(second.bag)
    assert first.truth.read_bytes() == second.truth.read_bytes()


def test_another_seed_gives_other_noise_on_the_same_path(tmp_path: Path, written: Written) -> None:
    other = generate(tmp_path, seed=SEED + 1)
    ours, theirs = rows(written.bag), rows(other.bag)
    assert [row for row in ours if row[0] == "/odom"] == [row for row in theirs if row[0] == "/odom"]
    assert [row for row in ours if row[0] == "/detections"] != [row for row in theirs if row[0] == "/detections"]


def test_the_bag_is_small_and_its_counts_are_those_of_the_truth(written: Written, truth: dict[str, Any]) -> None:
    assert sum(file.stat().st_size for file in written.bag.iterdir()) < 3_000_000
    assert Counter(topic for topic, _, _ in rows(written.bag)) == truth["messages"]
    assert truth["messages"]["/odom"] == 6000
    assert truth["messages"]["/battery_state"] == 300
    assert truth["messages"]["/scene_description"] == 60


def test_record_times_are_simulation_time_and_equal_the_stamps(written: Written) -> None:
    for topic in ("/odom", "/detections", "/battery_state"):
        for stamp, message in messages(written.bag, topic):
            header = message.header.stamp
            assert header.sec * 10**9 + header.nanosec == stamp
            assert world.START * 1e9 <= stamp < (world.START + world.DURATION) * 1e9


def test_the_types_are_those_of_the_package(written: Written) -> None:
    packages = pytest.importorskip("ament_index_python.packages", reason="no ROS: nothing to compare the hash with")
    try:
        share = Path(packages.get_package_share_directory("robot_memory"))
    except (packages.PackageNotFoundError, OSError):
        pytest.skip("the package's interfaces are not built here; `make build` builds them")
    description = share / "msg" / "DetectionArray.json"
    if not description.exists():
        pytest.skip("this ROS distribution has no type hashes")
    with Reader(written.bag) as reader:
        (connection,) = [connection for connection in reader.connections if connection.topic == "/detections"]
    assert connection.msgtype == "robot_memory/msg/DetectionArray"
    hashes = {entry["type_name"]: entry["hash_string"] for entry in json.loads(description.read_text())["type_hashes"]}
    assert connection.digest == hashes[connection.msgtype]


def test_odometry_is_smooth_and_its_heading_follows_the_path(written: Written) -> None:
    odometry = [message for _, message in messages(written.bag, "/odom")]
    assert {message.header.frame_id for message in odometry} == {"map"}
    assert {message.child_frame_id for message in odometry} == {"base_link"}
    for before, after in zip(odometry, odometry[1:], strict=False):
        here, there = before.pose.pose.position, after.pose.pose.position
        step = math.hypot(there.x - here.x, there.y - here.y)
        assert step <= robot.MAX_SPEED / robot.RATE + 1e-9
        assert (
            abs(after.twist.twist.linear.x - before.twist.twist.linear.x) <= robot.MAX_ACCELERATION / robot.RATE + 1e-9
        )
        q = after.pose.pose.orientation
        assert math.isclose(q.x**2 + q.y**2 + q.z**2 + q.w**2, 1.0, abs_tol=1e-12)
        if step > 1e-3:
            yaw = math.atan2(2 * (q.w * q.z + q.x * q.y), 1 - 2 * (q.y**2 + q.z**2))
            assert abs(math.remainder(yaw - math.atan2(there.y - here.y, there.x - here.x), math.tau)) < 1e-6


def test_the_ramp_lifts_the_robot_and_drains_the_battery(written: Written, truth: dict[str, Any]) -> None:
    ramp = truth["ramp"]
    heights = {round(stamp / 1e9, 2): message.pose.pose.position.z for stamp, message in messages(written.bag, "/odom")}
    assert heights[ramp["start"]] < 0.01
    assert heights[ramp["end"]] > 0.29
    assert max(heights.values()) == pytest.approx(0.3)
    levels = {stamp / 1e9: message.percentage for stamp, message in messages(written.bag, "/battery_state")}
    assert levels[math.floor(ramp["start"])] - levels[math.ceil(ramp["end"])] == pytest.approx(ramp["drop"], abs=1e-5)
    flat = max(levels[t] - levels[t + 8.0] for t in levels if t + 8.0 in levels and not 1115.0 < t < 1130.0)
    assert ramp["drop"] > 0.06 > 10.0 * flat
    for entry in truth["battery"]:
        assert levels[entry["stamp"]] == pytest.approx(entry["percentage"], abs=1e-4)


def test_the_path_of_the_truth_is_that_of_the_bag(written: Written, truth: dict[str, Any]) -> None:
    positions = {stamp: message.pose.pose.position for stamp, message in messages(written.bag, "/odom")}
    assert len(truth["path"]) == 300
    for sample in [*truth["path"], truth["final_pose"]]:
        position = positions[bag.nanoseconds(sample["stamp"])]
        assert (position.x, position.y, position.z) == pytest.approx((sample["x"], sample["y"], sample["z"]), abs=1e-4)


def test_detections_lie_at_their_things_with_five_centimetres_of_noise(written: Written) -> None:
    errors: list[float] = []
    for stamp, message in messages(written.bag, "/detections"):
        assert message.detections, "an array is only sent when something is in view"
        for seen in message.detections:
            point = (seen.position.x, seen.position.y, seen.position.z)
            places = [t.at(stamp / 1e9).position for t in world.THINGS if t.label == seen.label]
            nearest = min(places, key=lambda place: math.dist(place, point))
            errors.extend(one - other for one, other in zip(point, nearest, strict=True))
            assert seen.has_position and 0.0 < seen.confidence <= 1.0 and seen.track_id
    assert max(map(abs, errors)) < 0.25
    assert math.sqrt(sum(error**2 for error in errors) / len(errors)) == pytest.approx(0.05, abs=0.005)
    assert sum(errors) / len(errors) == pytest.approx(0.0, abs=0.005)


def test_both_chairs_are_in_one_message_and_have_tracks_of_their_own(written: Written) -> None:
    """F45: two things of one class in one frame."""
    pairs = [
        [seen for seen in message.detections if seen.label == "chair"]
        for _, message in messages(written.bag, "/detections")
        if sum(seen.label == "chair" for seen in message.detections) == 2
    ]
    assert len(pairs) > 20
    assert all(one.track_id != other.track_id for one, other in pairs)
    gaps = [math.hypot(one.position.x - other.position.x, one.position.y - other.position.y) for one, other in pairs]
    assert sum(gaps) / len(gaps) == pytest.approx(1.5, abs=0.05)


def test_the_cup_moves_and_its_old_place_is_looked_at_again(written: Written, truth: dict[str, Any]) -> None:
    """F44: a thing at A in the morning, at B later, never again at A."""
    sightings = [
        (stamp / 1e9, (seen.position.x, seen.position.y))
        for stamp, message in messages(written.bag, "/detections")
        for seen in message.detections
        if seen.label == "cup"
    ]
    kitchen = [stamp for stamp, place in sightings if math.dist(place, world.CUP_IN_KITCHEN[:2]) < 0.3]
    bedroom = [stamp for stamp, place in sightings if math.dist(place, world.CUP_IN_BEDROOM[:2]) < 0.3]
    assert len(kitchen) + len(bedroom) == len(sightings)
    assert len(kitchen) > 20 and len(bedroom) > 20
    assert max(kitchen) < truth["cup_moved"] < min(bedroom)
    empty = [scene for scene in truth["scenes"] if "counter is empty" in scene["text"]]
    assert empty and all(scene["room"] == "kitchen" and scene["stamp"] > max(bedroom) for scene in empty)


def test_sentences_name_the_room_that_the_robot_is_in(written: Written, truth: dict[str, Any]) -> None:
    said = [(stamp / 1e9, message.data) for stamp, message in messages(written.bag, "/scene_description")]
    assert said == [(scene["stamp"], scene["text"]) for scene in truth["scenes"]]
    for scene in truth["scenes"]:
        room = world.room_at(scene["pose"]["x"], scene["pose"]["y"]).name
        assert scene["room"] == room
        assert room in scene["text"].lower()
    assert {scene["room"] for scene in truth["scenes"]} == {room.name for room in world.ROOMS}
    assert len({scene["text"] for scene in truth["scenes"]}) > 45


def test_the_robot_is_in_the_right_room_during_its_tasks() -> None:
    poses = record(SEED).poses
    for episode, room in zip(world.EPISODES, ("kitchen", "bedroom"), strict=True):
        assert {world.room_at(p.x, p.y).name for p in poses if episode.start <= p.stamp < episode.end} == {room}


def test_the_vision_msgs_variant_carries_the_same_detections(tmp_path: Path, written: Written) -> None:
    other = generate(tmp_path, variant="vision_msgs")
    ours = messages(written.bag, "/detections")
    theirs = messages(other.bag, "/detections_3d", "vision_msgs")
    assert len(ours) == len(theirs) > 400
    for (stamp, one), (same_stamp, two) in zip(ours, theirs, strict=True):
        assert stamp == same_stamp
        for seen, also in zip(one.detections, two.detections, strict=True):
            (result,) = also.results
            assert (result.hypothesis.class_id, result.hypothesis.score) == (seen.label, seen.confidence)
            assert also.bbox.center.position == seen.position == result.pose.pose.position
            assert also.id == seen.track_id


def test_every_tool_is_asked(truth: dict[str, Any]) -> None:
    assert {question["tool"] for question in truth["questions"]} == {
        "semantic_search", "spatial_query", "temporal_query", "episode_summary", "get_current_context",
        "search_gists", "entity_query", "locate", "recall", "body_status",
    }  # fmt: skip
    assert all(question["expect"] and question["truth"] for question in truth["questions"])


def test_the_command_writes_both_and_does_not_overwrite(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--out", str(tmp_path / "new"), "--seed", "1"]) == 0
    assert json.loads((tmp_path / "new" / "ground_truth.json").read_text())["seed"] == 1
    capsys.readouterr()
    with pytest.raises(SystemExit) as stopped:
        main(["--out", str(tmp_path / "new")])
    assert stopped.value.code == 1
    assert "exists already" in capsys.readouterr().err


def test_an_unknown_variant_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'foxy' is not one of robot_memory, vision_msgs"):
        generate(tmp_path, variant="foxy")
