"""The judge: a true answer agrees, a wrong one never does."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("rosbags", reason="rosbags writes the sample world and is not installed")

from home_patrol_answers import Answer, match, point, right_answers  # noqa: E402

from examples.home_patrol.generate import generate  # noqa: E402
from examples.home_patrol.judge import judge, lookup  # noqa: E402
from examples.home_patrol.truth import load  # noqa: E402

CUP_IN_KITCHEN = (9.8, 1.0, 0.95)


@pytest.fixture(scope="module")
def truth(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The shipped world's ground truth."""
    return load(generate(tmp_path_factory.mktemp("world")).truth)


def test_true_answers_agree_with_every_question(truth: dict[str, Any]) -> None:
    answers = right_answers(truth)
    assert len(answers) == len(truth["questions"]) == 17
    for question, answer in zip(truth["questions"], answers, strict=True):
        assert judge(question, answer) == [], question["question"]


def test_a_refusal_is_a_fault_with_its_message(truth: dict[str, Any]) -> None:
    for question, answer in zip(truth["questions"], right_answers(truth), strict=True):
        answer.update(success=False, message="query must not be blank")
        assert judge(question, answer) == ["the tool refused: query must not be blank"]


def test_an_answer_without_words_for_the_language_model_is_a_fault(truth: dict[str, Any]) -> None:
    for question, answer in zip(truth["questions"], right_answers(truth), strict=True):
        answer["text"] = ""
        assert judge(question, answer) == ["text for the language model is empty"]


def test_an_empty_response_is_wrong_for_all_questions_but_the_one_about_nothing(truth: dict[str, Any]) -> None:
    """What a stub would give: success, and every field at its default."""
    stub: Answer = {"success": True, "message": "", "text": "nothing"}
    for name in ("matches", "gists", "entities", "episodes", "nearby", "body", "readings"):
        stub[name] = []
    stub.update(found=False, place={"position": point((0, 0))}, has_position=False, position=point((0, 0)), heading=0.0)
    agreeing = [q["question"] for q in truth["questions"] if not judge(q, stub)]
    assert agreeing == ["Where is the submarine?"]


def put(path: str, value: Any) -> Callable[[Answer], None]:
    """A change of an answer: the value at a path is replaced."""
    parent, _, name = path.rpartition(".")

    def change(answer: Answer) -> None:
        holder = lookup(answer, parent) if parent else answer
        holder[int(name) if isinstance(holder, list) else name] = value

    return change


def drop(path: str, index: int = 0) -> Callable[[Answer], None]:
    """A change of an answer: one item of a list is missing."""
    return lambda answer: lookup(answer, path).pop(index)


def add(path: str, item: Any) -> Callable[[Answer], None]:
    """A change of an answer: a list has one item more."""
    return lambda answer: lookup(answer, path).append(item)


def turn(path: str) -> Callable[[Answer], None]:
    """A change of an answer: a list stands in the opposite order."""
    return lambda answer: lookup(answer, path).reverse()


WRONG: list[tuple[str, Callable[[Answer], None], str]] = [
    ("What is there to sit on?", put("matches", [match("fridge", (0, 0), 1100.0)]), "no chair or sofa"),
    ("Which things did the detector see that one could sleep in?", put("matches.1.layer", "scene"), "'scene'"),
    ("Which things did the detector see that one could sleep in?", put("matches.0.text", "bedroom door"), "no bed"),
    ("What did the robot see during the kitchen patrol?", put("matches.0.text", "The hall."), "not about kitchen"),
    ("What did the robot see during the kitchen patrol?", put("matches.0.stamp", 1_020 * 10**9), "outside the span"),
    ("What did the robot see during the kitchen patrol?", turn("matches"), "not oldest first"),
    ("What did the robot see during the kitchen patrol?", put("matches", []), "0 matches, not at least 3"),
    ("What happened in the last minute?", put("matches.3.last_stamp", 1_230 * 10**9), "1230.00 s is outside"),
    ("What happened in the last minute?", turn("matches"), "not newest first"),
    ("What is known about the kitchen?", put("gists.0.text", "A bed and a lamp."), "no kitchen"),
    ("What is known about the kitchen?", drop("gists"), "0 gists"),
    ("What is within 1.5 m of the fridge?", add("matches", match("oven", (8.4, 0.4), 1.0)), "4.22 m away"),
    ("What is within 1.5 m of the fridge?", put("matches.0.position", point((math.nan, 1.0))), "nan m away"),
    ("What hangs within 0.6 m of (15.5, 4.5), 1.6 m up?", put("matches.0.position.point.z", 0.3), "1.30 m away"),
    ("Where is the cup?", put("place.position", point(CUP_IN_KITCHEN)), "m off"),
    ("Where is the cup?", put("place.position", point((math.nan, math.nan))), "nan m off"),
    ("Where is the cup?", put("found", False), "found is False, not True"),
    ("Where is the kitchen?", put("place.position", point((12.0, 2.5))), "3.50 m off"),
    ("Where is the submarine?", put("found", True), "found is True, not False"),
    ("Which chairs are there?", drop("entities"), "1 entities, not 2"),
    ("Which chairs are there?", add("entities", {"name": "chair", "position": point((3.6, 0.9))}), "3 entities, not 2"),
    ("Which chairs are there?", put("entities.1.position", point((4.35, 0.9, 0.45))), "one each"),
    ("Which fridges are there?", put("entities.0.position", point((8.4, 0.4, 0.5))), "m off"),
    ("Which fridges are there?", put("entities", []), "no entities.0.position"),
    ("Where did you last see the cup?", put("place.position", point(CUP_IN_KITCHEN)), "m off"),
    ("Where did you last see the cup?", put("entities.0.name", "plant"), "no cup"),
    ("How did the kitchen patrol go?", put("episodes.0.name", "bedroom check"), "not 'kitchen patrol'"),
    ("How did the kitchen patrol go?", put("episodes.0.start", 1_010 * 10**9), "1010.000, not 1028.000"),
    ("How did the kitchen patrol go?", put("episodes.0.end", 0), "0.000, not 1072.000"),
    ("How did the kitchen patrol go?", put("episodes.0.status", "active"), "not 'completed'"),
    ("What was the last task?", put("episodes.0.observation_count", 0), "0, less than 5"),
    ("Where is the robot, and what is around it?", put("position.point.x", 1.5), "position is 0.58 m off"),
    ("Where is the robot, and what is around it?", put("heading", 0.8), "rad, not -2.32"),
    ("Where is the robot, and what is around it?", put("nearby.0.text", "a fridge"), "no dock"),
    ("Where is the robot, and what is around it?", put("body.1.value", 0.82), "battery is 0.820"),
    ("Where is the robot, and what is around it?", drop("body", 1), "no battery in body"),
    ("How full is the battery?", put("readings.0.value", 0.0), "battery is 0.000"),
    ("How full is the battery?", put("readings.0.value", math.nan), "battery is nan"),
]


@pytest.mark.parametrize(("asked", "change", "fault"), WRONG, ids=[f"{n}-{w[2]}" for n, w in enumerate(WRONG)])
def test_a_wrong_answer_is_told_with_its_fault(
    truth: dict[str, Any], asked: str, change: Callable[[Answer], None], fault: str
) -> None:
    ((question, answer),) = [
        (question, answer)
        for question, answer in zip(truth["questions"], right_answers(truth), strict=True)
        if question["question"] == asked
    ]
    change(answer)
    faults = judge(question, answer)
    assert faults and fault in " ".join(faults)


def test_every_check_of_every_question_has_a_wrong_answer_that_it_catches(truth: dict[str, Any]) -> None:
    asked = {question for question, _, _ in WRONG}
    assert asked == {question["question"] for question in truth["questions"]}


def test_a_reading_in_percent_is_compared_as_a_share(truth: dict[str, Any]) -> None:
    question, answer = truth["questions"][-1], right_answers(truth)[-1]
    reading = answer["readings"][0]
    reading.update(value=reading["value"] * 100.0, unit="%")
    assert judge(question, answer) == []
    reading["value"] += 3.0
    assert len(judge(question, answer)) == 1


def test_headings_either_side_of_the_half_turn_are_close() -> None:
    check = {"check": "angle", "path": "heading", "value": -math.pi + 0.01, "within": 0.1}
    answer = {"success": True, "text": "x", "heading": math.pi - 0.01}
    assert judge({"expect": [check]}, answer) == []


def test_a_word_counts_whole_and_in_the_plural_only() -> None:
    check = {"check": "contains", "items": "matches", "path": "text", "any_of": ["bed"], "first": 1}
    for text, faults in (("Two beds.", 0), ("a bed", 0), ("the bedroom", 1), ("embedded", 1)):
        assert len(judge({"expect": [check]}, {"success": True, "text": "x", "matches": [{"text": text}]})) == faults
