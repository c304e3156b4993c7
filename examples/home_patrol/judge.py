"""Compare an answer with the ground truth.

An answer is a service response as plain Python: messages are dicts, stamps are integer nanoseconds, a PointStamped is a
dict with `point`. Each check returns the faults it found, in words; an empty list means that the answer agrees.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from itertools import permutations
from typing import Any

Check = dict[str, Any]
Answer = dict[str, Any]

STAMP_MARGIN = 0.1
"""A stamp may pass a bound of time by so many seconds: two ticks of the clock."""
RADIUS_MARGIN = 1e-6
"""Allowance for rounding at the edge of a circle or sphere, in metres."""


def judge(question: dict[str, Any], answer: Answer) -> list[str]:
    """The faults of an answer, an empty list when it agrees with the truth.

    Args:
        question: One of the ground truth's questions.
        answer: The response of its tool as plain Python.
    """
    if not answer.get("success"):
        return [f"the tool refused: {answer.get('message', 'no answer')}"]
    faults = [] if answer.get("text") else ["text for the language model is empty"]
    for check in question["expect"]:
        try:
            faults.extend(_CHECKS[check["check"]](check, answer))
        except LookupError as missing:
            faults.append(f"{check['check']}: the answer has no {missing}")
    return faults


def lookup(data: Any, path: str) -> Any:
    """The value at a dotted path; numbers in it index lists.

    Raises:
        LookupError: Some part of the path is not there.
    """
    for part in path.split("."):
        try:
            data = data[int(part)] if isinstance(data, list) else data[part]
        except (LookupError, TypeError):
            raise LookupError(path) from None
    return data


def _seconds(value: float) -> float:
    """A stamp (integer nanoseconds) in seconds; other numbers stay as they are."""
    return value / 1e9 if isinstance(value, int) and abs(value) > 10**9 else float(value)


def _distance(point: dict[str, Any], goal: list[float]) -> float:
    """Metres between a PointStamped and a goal; on the floor plane when the goal has two numbers."""
    coordinates = [point["point"][axis] for axis in "xyz"[: len(goal)]]
    return math.dist(coordinates, goal)


def _has_word(text: str, words: list[str]) -> bool:
    """Whether one of the words, singular or plural, stands in the text."""
    return any(re.search(rf"\b{re.escape(word)}s?\b", text, re.IGNORECASE) for word in words)


def _equals(check: Check, answer: Answer) -> list[str]:
    value = lookup(answer, check["path"])
    return [] if value == check["value"] else [f"{check['path']} is {value!r}, not {check['value']!r}"]


def _value(check: Check, answer: Answer) -> list[str]:
    value = _seconds(lookup(answer, check["path"]))
    agrees = abs(value - check["value"]) <= check["within"]
    return [] if agrees else [f"{check['path']} is {value:.3f}, not {check['value']:.3f} +- {check['within']}"]


def _value_from(check: Check, answer: Answer) -> list[str]:
    value = lookup(answer, check["path"])
    return [] if value >= check["least"] else [f"{check['path']} is {value}, less than {check['least']}"]


def _fraction(check: Check, answer: Answer) -> list[str]:
    layer = check["layer"]
    reading = next((item for item in lookup(answer, check["items"]) if item["layer"] == layer), None)
    if reading is None:
        return [f"no {layer} in {check['items']}"]
    value = reading["value"] / (100.0 if reading["unit"] == "%" else 1.0)
    agrees = abs(value - check["value"]) <= check["within"]
    return [] if agrees else [f"{layer} is {value:.3f}, not {check['value']:.3f} +- {check['within']}"]


def _angle(check: Check, answer: Answer) -> list[str]:
    value = lookup(answer, check["path"])
    error = abs(math.remainder(value - check["value"], math.tau))
    return [] if error <= check["within"] else [f"{check['path']} is {value:.2f} rad, not {check['value']:.2f}"]


def _near(check: Check, answer: Answer) -> list[str]:
    distance = _distance(lookup(answer, check["path"]), check["position"])
    return [] if distance <= check["within"] else [f"{check['path']} is {distance:.2f} m off"]


def _count(check: Check, answer: Answer) -> list[str]:
    number, most = len(lookup(answer, check["items"])), check["most"]
    agrees = number >= check["least"] and (most is None or number <= most)
    wanted = f"{check['least']}" if most == check["least"] else f"at least {check['least']}"
    return [] if agrees else [f"{number} {check['items']}, not {wanted}"]


def _contains(check: Check, answer: Answer) -> list[str]:
    texts = [lookup(item, check["path"]) for item in lookup(answer, check["items"])[: check["first"]]]
    agrees = any(_has_word(text, check["any_of"]) for text in texts)
    return [] if agrees else [f"no {' or '.join(check['any_of'])} among {texts[:3]}"]


def _all_contain(check: Check, answer: Answer) -> list[str]:
    words = check["any_of"]
    texts = [lookup(item, check["path"]) for item in lookup(answer, check["items"])]
    return [f"not about {' or '.join(words)}: {text}" for text in texts if not _has_word(text, words)]


def _all_equal(check: Check, answer: Answer) -> list[str]:
    values = {lookup(item, check["path"]) for item in lookup(answer, check["items"])}
    others = sorted(map(repr, values - {check["value"]}))
    return [f"{check['items']} with {check['path']} {', '.join(others)}"] if others else []


def _all_between(check: Check, answer: Answer) -> list[str]:
    low, high = check["start"] - STAMP_MARGIN, check["end"] + STAMP_MARGIN
    stamps = [_seconds(lookup(item, check["path"])) for item in lookup(answer, check["items"])]
    return [f"{check['path']} {stamp:.2f} s is outside the span" for stamp in stamps if not low <= stamp <= high]


def _all_near(check: Check, answer: Answer) -> list[str]:
    distances = [_distance(lookup(item, check["path"]), check["position"]) for item in lookup(answer, check["items"])]
    far = [distance for distance in distances if not distance <= check["within"] + RADIUS_MARGIN]
    return [f"one of {check['items']} is {distance:.2f} m away" for distance in far]


def _ordered(check: Check, answer: Answer) -> list[str]:
    items = lookup(answer, check["items"])
    rows = [[lookup(item, path) for item in items] for path in check["paths"]]
    agrees = any(stamps == sorted(stamps, reverse=check["order"] == "newest") for stamps in rows)
    return [] if agrees else [f"{check['items']} are not {check['order']} first"]


def _matched(check: Check, answer: Answer) -> list[str]:
    """Each expected position has an item of its own."""
    points = [lookup(item, check["path"]) for item in lookup(answer, check["items"])]
    goals = check["positions"]
    agrees = any(
        all(_distance(point, goal) <= check["within"] for point, goal in zip(chosen, goals, strict=True))
        for chosen in permutations(points, len(goals))
    )
    return [] if agrees else [f"{check['items']} do not stand at {goals}, one each"]


_CHECKS: dict[str, Callable[[Check, Answer], list[str]]] = {
    "equals": _equals,
    "value": _value,
    "value_from": _value_from,
    "fraction": _fraction,
    "angle": _angle,
    "near": _near,
    "count": _count,
    "contains": _contains,
    "all_contain": _all_contain,
    "all_equal": _all_equal,
    "all_between": _all_between,
    "all_near": _all_near,
    "ordered": _ordered,
    "matched": _matched,
}
