"""The questions that the demo asks the ten tools, and what a true answer must hold.

A question is a JSON object: `tool`, `question` (as a person would put it), `arguments` (fields of the tool's request in
`robot_memory/srv`), `truth` (what the world really was, in words) and `expect`, a list of checks that `judge` knows.
A path in a check is a dotted field name of the response; in `items` checks the other paths start at one item.
"""

from __future__ import annotations

from typing import Any

from examples.home_patrol import world
from examples.home_patrol.recording import Recording
from examples.home_patrol.robot import Pose

Question = dict[str, Any]
Check = dict[str, Any]

END = world.START + world.DURATION
STAMP_SLACK = 2.5
"""An episode's start and end may be off by so many seconds: at ten times the speed a call takes its share."""


def _ask(tool: str, question: str, arguments: dict[str, Any], truth: str, *expect: Check) -> Question:
    return {"tool": tool, "question": question, "arguments": arguments, "truth": truth, "expect": list(expect)}


def _point(position: tuple[float, ...]) -> dict[str, Any]:
    x, y, z = (*position, 0.0)[:3]
    return {"header": {"frame_id": world.FRAME}, "point": {"x": x, "y": y, "z": z}}


def _words(position: tuple[float, ...]) -> str:
    return f"({', '.join(f'{value:.2f}' for value in position)})"


def _near(path: str, position: tuple[float, ...], within: float) -> Check:
    return {"check": "near", "path": path, "position": list(position), "within": within}


def _contains(items: str, path: str, words: list[str], first: int = 1000) -> Check:
    return {"check": "contains", "items": items, "path": path, "any_of": words, "first": first}


def _all_between(items: str, start: float, end: float, path: str = "stamp") -> Check:
    return {"check": "all_between", "items": items, "path": path, "start": start, "end": end}


def _count(items: str, least: int, most: int | None = None) -> Check:
    return {"check": "count", "items": items, "least": least, "most": most}


def _equals(path: str, value: Any) -> Check:
    return {"check": "equals", "path": path, "value": value}


def _fraction(items: str, level: float) -> Check:
    return {"check": "fraction", "items": items, "layer": "battery", "value": level, "within": 0.02}


def _ordered(items: str, order: str) -> Check:
    # A repeated sighting is one row with two stamps, and the order may follow either.
    return {"check": "ordered", "items": items, "paths": ["stamp", "last_stamp"], "order": order}


def _search() -> list[Question]:
    kitchen = next(episode for episode in world.EPISODES if episode.name == "kitchen patrol")
    return [
        _ask(
            "semantic_search",
            "What is there to sit on?",
            {"query": "something to sit on", "limit": 10},
            "two chairs and a sofa, in the living room",
            _contains("matches", "text", ["chair", "sofa"], first=3),
        ),
        _ask(
            "semantic_search",
            "Which things did the detector see that one could sleep in?",
            {"query": "a place to sleep", "limit": 5, "filter": {"layers": ["detections"]}},
            f"a bed at {_words(world.BED.stays[0].position)}",
            _contains("matches", "text", ["bed"], first=3),
            {"check": "all_equal", "items": "matches", "path": "layer", "value": "detections"},
        ),
        _ask(
            "temporal_query",
            "What did the robot see during the kitchen patrol?",
            {
                "filter": {"layers": ["scene"], "time_after": str(kitchen.start), "time_before": str(kitchen.end)},
                "order": "oldest",
                "limit": 50,
            },
            "it stood in the kitchen all that time: fridge, oven, and a cup on the counter",
            _count("matches", 3),
            _all_between("matches", kitchen.start, kitchen.end),
            _ordered("matches", "oldest"),
            {"check": "all_contain", "items": "matches", "path": "text", "any_of": ["kitchen"]},
        ),
        _ask(
            "temporal_query",
            "What happened in the last minute?",
            {"last_n_minutes": 1.0, "order": "newest", "limit": 20},
            "the robot went back to its dock and stood there",
            _count("matches", 3),
            _all_between("matches", END - 60.0, END, path="last_stamp"),
            _ordered("matches", "newest"),
            _contains("matches", "text", ["dock"]),
        ),
        _ask(
            "search_gists",
            "What is known about the kitchen?",
            {"query": "kitchen", "limit": 5},
            f"a kitchen around {_words(world.KITCHEN.centre)} with a fridge and an oven",
            _count("gists", 1),
            _contains("gists", "text", ["kitchen", "fridge", "oven"], first=1),
        ),
    ]


def _places() -> list[Question]:
    fridge, lamp = world.FRIDGE.stays[0].position, world.LAMP.stays[0].position
    return [
        _ask(
            "spatial_query",
            "What is within 1.5 m of the fridge?",
            {"center": _point(fridge), "radius": 1.5, "limit": 20},
            f"the fridge itself at {_words(fridge)}",
            _count("matches", 1),
            _contains("matches", "text", ["fridge"]),
            {"check": "all_near", "items": "matches", "path": "position", "position": list(fridge[:2]), "within": 1.5},
        ),
        _ask(
            "spatial_query",
            "What hangs within 0.6 m of (15.5, 4.5), 1.6 m up?",
            {"center": _point(lamp), "radius": 0.6, "use_z": True, "limit": 20},
            f"a lamp at {_words(lamp)}",
            _contains("matches", "text", ["lamp"]),
            {"check": "all_near", "items": "matches", "path": "position", "position": list(lamp), "within": 0.6},
        ),
        _ask(
            "locate",
            "Where is the cup?",
            {"concept": "cup"},
            f"on the bedside table at {_words(world.CUP_IN_BEDROOM)}; until {world.CUP_MOVED:.0f} s it stood in the "
            f"kitchen at {_words(world.CUP_IN_KITCHEN)}",
            _equals("found", True),
            _near("place.position", world.CUP_IN_BEDROOM, 0.5),
        ),
        _ask(
            "locate",
            "Where is the kitchen?",
            {"concept": "kitchen"},
            f"x 6.5 to 10.5, y 0 to 5, centre {_words(world.KITCHEN.centre)}",
            _equals("found", True),
            _near("place.position", world.KITCHEN.centre, 2.5),
        ),
        _ask(
            "locate",
            "Where is the submarine?",
            {"concept": "submarine"},
            "there is none",
            _equals("found", False),
        ),
    ]


def _things() -> list[Question]:
    chairs = [world.CHAIR_WEST.stays[0].position, world.CHAIR_EAST.stays[0].position]
    return [
        _ask(
            "entity_query",
            "Which chairs are there?",
            {"name": "chair", "limit": 20},
            f"two, 1.5 m apart, at {_words(chairs[0])} and {_words(chairs[1])}",
            _count("entities", 2, 2),
            {
                "check": "matched",
                "items": "entities",
                "path": "position",
                "positions": [list(position) for position in chairs],
                "within": 0.3,
            },
        ),
        _ask(
            "entity_query",
            "Which fridges are there?",
            {"name": "fridge", "limit": 20},
            f"one, at {_words(world.FRIDGE.stays[0].position)}",
            _count("entities", 1, 1),
            _near("entities.0.position", world.FRIDGE.stays[0].position, 0.3),
        ),
        _ask(
            "recall",
            "Where did you last see the cup?",
            {"query": "where is the cup?", "limit": 10},
            f"in the bedroom at {_words(world.CUP_IN_BEDROOM)}",
            _contains("matches", "text", ["cup"], first=3),
            _contains("entities", "name", ["cup"], first=1),
            _equals("found", True),
            _near("place.position", world.CUP_IN_BEDROOM, 0.5),
        ),
    ]


def _task(wording: str, arguments: dict[str, Any], episode: world.Episode) -> Question:
    return _ask(
        "episode_summary",
        wording,
        arguments,
        f"{episode.name}, from {episode.start:.0f} s to {episode.end:.0f} s",
        _count("episodes", 1, 1),
        _equals("episodes.0.name", episode.name),
        _equals("episodes.0.status", "completed"),
        {"check": "value", "path": "episodes.0.start", "value": episode.start, "within": STAMP_SLACK},
        {"check": "value", "path": "episodes.0.end", "value": episode.end, "within": STAMP_SLACK},
        {"check": "value_from", "path": "episodes.0.observation_count", "least": 5},
    )


def _now(last: Pose, level: float) -> list[Question]:
    return [
        _ask(
            "get_current_context",
            "Where is the robot, and what is around it?",
            {"radius": 3.0},
            f"at {_words((last.x, last.y, last.z))} beside its charging dock, battery {level:.0%}",
            _equals("has_position", True),
            _near("position", (last.x, last.y, last.z), 0.2),
            {"check": "angle", "path": "heading", "value": last.yaw, "within": 0.1},
            _contains("nearby", "text", ["dock"]),
            _contains("entities", "name", ["dock"]),
            _fraction("body", level),
        ),
        _ask(
            "body_status",
            "How full is the battery?",
            {"layers": ["battery"]},
            f"{level:.1%}; it lost most on the ramp",
            _count("readings", 1, 1),
            _fraction("readings", level),
        ),
    ]


def questions(recording: Recording) -> list[Question]:
    """All questions about a recording, asked when it has just ended; each of the ten tools is in at least one."""
    patrol, check = world.EPISODES
    tasks = [
        _task("How did the kitchen patrol go?", {"task_name": patrol.name}, patrol),
        _task("What was the last task?", {"last_n": 1}, check),
    ]
    now = _now(recording.poses[-1], recording.charges[-1].percentage)
    return [*_search(), *_places(), *_things(), *tasks, *now]
