"""Detections of our own type and of vision_msgs, as it is now and as Foxy has it."""

from __future__ import annotations

import math
from typing import Any

import pytest
from ingest.converting import read
from support import ros_messages as ros

from memory_node.graph import Detection
from memory_node.ingest.converters import DetectionsPercept, Origin, Refused


def detection_3d(*results: Any, at: tuple[float, float, float] = (1.0, 2.0, 3.0), frame: str = "", **more: Any) -> Any:
    box = ros.make("vision_msgs/msg/BoundingBox3D", center=ros.pose(*at))
    header = ros.header(0.0, frame)
    return ros.make("vision_msgs/msg/Detection3D", header=header, results=list(results), bbox=box, **more)


def hypothesis(label: str, score: float, at: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> Any:
    where = ros.make("geometry_msgs/msg/PoseWithCovariance", pose=ros.pose(*at))
    said = ros.make("vision_msgs/msg/ObjectHypothesis", class_id=label, score=score)
    return ros.make("vision_msgs/msg/ObjectHypothesisWithPose", hypothesis=said, pose=where)


def detections_3d(*detections: Any, **layer: Any) -> DetectionsPercept:
    array = ros.make("vision_msgs/msg/Detection3DArray", header=ros.header(5.0, "map"), detections=list(detections))
    return read("vision_msgs/msg/Detection3DArray", array, **layer)


def test_own_detections() -> None:
    array = ros.own_array(
        4.0, "camera", ros.own("chair", 0.9, (1.0, 2.0, 0.5), "7"), ros.own("person", 0.5), ros.own("", 0.9)
    )
    percept = read("robot_memory/msg/DetectionArray", array)
    assert percept == DetectionsPercept(
        Origin(4_000_000_000, "camera"),
        (Detection("chair", 0.9, (1.0, 2.0, 0.5), "7"), Detection("person", 0.5)),
        ("no label",),
    )
    assert read("robot_memory/msg/Detection", ros.own("cup")).detections == (Detection("cup", 0.9),)


def test_f19_empty_list_is_a_look_that_saw_nothing() -> None:
    assert read("robot_memory/msg/DetectionArray", ros.own_array(1.0, "map")).detections == ()
    assert detections_3d().detections == ()


def test_f19_a_detection_without_results_is_left_out() -> None:
    percept = detections_3d(detection_3d(), detection_3d(hypothesis("cup", 0.8)))
    assert [d.label for d in percept.detections] == ["cup"]
    assert percept.skipped == ("no hypothesis with a score",)
    with pytest.raises(Refused, match="no hypothesis"):
        detections_3d(detection_3d())


def test_f19_the_best_score_counts_and_nan_is_none() -> None:
    found = detections_3d(detection_3d(hypothesis("cat", math.nan), hypothesis("dog", 0.3), hypothesis("fox", 0.6)))
    assert found.detections == (Detection("fox", 0.6, (1.0, 2.0, 3.0)),)
    with pytest.raises(Refused):
        detections_3d(detection_3d(hypothesis("cat", math.nan)))


@pytest.mark.parametrize("score", [-0.5, 1.5, 86.0])
def test_scores_outside_0_to_1_are_left_out(score: float) -> None:
    with pytest.raises(Refused, match="confidence outside 0..1"):
        detections_3d(detection_3d(hypothesis("cat", score)))


def test_3d_position_is_the_box_or_else_the_hypothesis() -> None:
    unset = (0.0, 0.0, 0.0)
    by_pose = detections_3d(detection_3d(hypothesis("cup", 0.8, (4.0, 5.0, 6.0)), at=unset))
    assert by_pose.detections[0].position == (4.0, 5.0, 6.0)
    neither = detections_3d(detection_3d(hypothesis("cup", 0.8), at=unset))
    assert neither.detections[0].position is None and neither.is_foreign
    with pytest.raises(Refused, match="position"):
        detections_3d(detection_3d(hypothesis("cup", 0.8), at=(math.inf, 0.0, 0.0)))


def test_frame_and_stamp_of_the_first_detection_stand_in_for_the_arrays() -> None:
    seen = ros.make(
        "vision_msgs/msg/Detection3D",
        header=ros.header(9.0, "camera"),
        results=[hypothesis("cup", 0.8)],
        bbox=ros.make("vision_msgs/msg/BoundingBox3D", center=ros.pose(1.0, 0.0)),
    )
    percept = read(
        "vision_msgs/msg/Detection3DArray", ros.make("vision_msgs/msg/Detection3DArray", detections=[seen])
    )
    assert percept.origin == Origin(9_000_000_000, "camera")
    assert percept.detections[0].position == (1.0, 0.0, 0.0)


def test_a_detection_in_another_frame_than_its_array_keeps_its_frame() -> None:
    percept = detections_3d(
        detection_3d(hypothesis("cup", 0.8), frame="/camera"),
        detection_3d(hypothesis("cat", math.nan)),
        detection_3d(hypothesis("fox", 0.8), at=(0.0, 1.0, 0.0)),
    )
    assert percept.origin.frame == "map" and percept.frames == ("camera", "")
    assert [d.position for d in percept.detections] == [(1.0, 2.0, 3.0), (0.0, 1.0, 0.0)]


def test_2d_detections_have_no_position_of_their_own() -> None:
    seen = ros.make("vision_msgs/msg/Detection2D", results=[hypothesis("cup", 0.8, (1.0, 2.0, 3.0))], id="4")
    array = ros.make("vision_msgs/msg/Detection2DArray", detections=[seen])
    assert read("vision_msgs/msg/Detection2DArray", array).detections == (Detection("cup", 0.8, None, "4"),)


def test_f18_2d_detections_of_foxy() -> None:
    result = ros.make("vision_msgs/msg/ObjectHypothesisWithPose", foxy=True, id="cup", score=0.7)
    seen = ros.make("vision_msgs/msg/Detection2D", foxy=True, results=[result], is_tracking=True, tracking_id="3")
    array = ros.make("vision_msgs/msg/Detection2DArray", foxy=True, detections=[seen])
    assert read("vision_msgs/msg/Detection2DArray", array).detections == (Detection("cup", 0.7, None, "3"),)


@pytest.mark.parametrize(("tracking", "track"), [(True, "12"), (False, "")])
def test_f18_field_names_of_foxy(tracking: bool, track: str) -> None:
    result = ros.make("vision_msgs/msg/ObjectHypothesisWithPose", foxy=True, id="cup", score=0.7)
    box = ros.make("vision_msgs/msg/BoundingBox3D", foxy=True, center=ros.pose(1.0, 2.0))
    seen = ros.make(
        "vision_msgs/msg/Detection3D", foxy=True, results=[result], bbox=box, is_tracking=tracking, tracking_id="12"
    )
    array = ros.make("vision_msgs/msg/Detection3DArray", foxy=True, detections=[seen])
    expected = Detection("cup", 0.7, (1.0, 2.0, 0.0), track)
    assert read("vision_msgs/msg/Detection3DArray", array).detections == (expected,)


def test_detections_by_a_named_field_are_that_field() -> None:
    said = ("detections.0.results.0.hypothesis.class_id",)
    array = ros.make("vision_msgs/msg/Detection3DArray", detections=[detection_3d(hypothesis("cup", 0.8))])
    assert read("vision_msgs/msg/Detection3DArray", array, fields=said).text == "sense: cup"
    own = ros.own_array(1.0, "map", ros.own("cup", 0.9))
    assert read("robot_memory/msg/DetectionArray", own, fields=("detections.0.confidence",)).value == 0.9


def test_label_map_compares_labels_as_entities_do() -> None:
    array = ros.own_array(1.0, "map", ros.own("tv", 0.9), ros.own("Dining_Table", 0.9), ros.own("CUP", 0.9))
    rules = ("TV: television", "dining table: Desk", "cup:")
    percept = read("robot_memory/msg/DetectionArray", array, label_map=rules)
    assert [d.label for d in percept.detections] == ["television", "Desk"]
    unnamed = read("robot_memory/msg/DetectionArray", ros.own_array(1.0, "map", ros.own("")), label_map=(": thing",))
    assert [d.label for d in unnamed.detections] == ["thing"]


@pytest.mark.parametrize("label", ["x" * 257, "cup\u200b", "\u202epuc"])
def test_a_label_that_the_memory_could_not_hold_is_left_out_with_the_reason(label: str) -> None:
    percept = read("robot_memory/msg/DetectionArray", ros.own_array(1.0, "map", ros.own(label), ros.own("cup")))
    assert [d.label for d in percept.detections] == ["cup"]
    assert percept.skipped == ("label too long or not printable",)


def test_a_label_of_several_lines_is_one_of_several_words() -> None:
    percept = read("robot_memory/msg/DetectionArray", ros.own_array(1.0, "map", ros.own("fire\nextinguisher\t")))
    assert [d.label for d in percept.detections] == ["fire extinguisher"] and percept.skipped == ()


def test_a_confidence_that_rounding_took_below_zero_is_zero() -> None:
    percept = read("robot_memory/msg/DetectionArray", ros.own_array(1.0, "map", ros.own("cup", -0.0005)))
    assert percept.detections == (Detection("cup", 0.0),) and percept.skipped == ()


def test_label_map_and_min_confidence() -> None:
    array = ros.own_array(1.0, "map", ros.own("62", 0.9), ros.own("62", 0.2), ros.own("junk", 0.9), ros.own("cup", 0.9))
    percept = read(
        "robot_memory/msg/DetectionArray", array, label_map=("62: dining table", "junk:"), min_confidence=0.5
    )
    assert [d.label for d in percept.detections] == ["dining table", "cup"]
    assert sorted(percept.skipped) == ["below min_confidence", "left out by label_map"]


@pytest.mark.parametrize(
    ("layer", "reason"),
    [({"min_confidence": 0.5}, "below min_confidence"), ({"label_map": ("cup:",)}, "left out by label_map")],
)
def test_a_look_of_which_the_settings_leave_nothing_saw_nothing(layer: dict[str, Any], reason: str) -> None:
    found = detections_3d(detection_3d(hypothesis("cup", 0.3)), detection_3d(hypothesis("cup", math.nan)), **layer)
    assert found.detections == () and found.skipped == (reason, "no hypothesis with a score")
