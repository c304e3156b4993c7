"""Answers that a memory which knows the truth would give, as plain Python, for the judge's tests."""

from __future__ import annotations

import copy
from typing import Any

Answer = dict[str, Any]


def point(position: tuple[float, ...] | list[float]) -> dict[str, Any]:
    """A PointStamped in the map as plain Python."""
    x, y, z = (*position, 0.0)[:3]
    return {"header": {"stamp": 0, "frame_id": "map"}, "point": {"x": x, "y": y, "z": z}}


def match(text: str, position: tuple[float, ...] | list[float], stamp: float, layer: str = "detections") -> Answer:
    """A Match with the fields that the judge reads; stamp in seconds."""
    stamp_ns = round(stamp * 1e9)
    return {"text": text, "layer": layer, "position": point(position), "stamp": stamp_ns, "last_stamp": stamp_ns}


def _entity(name: str, position: list[float]) -> Answer:
    return {"name": name, "position": point(position)}


def right_answers(truth: dict[str, Any]) -> list[Answer]:
    """One answer for each of the truth's questions, in their order, that agrees with the truth."""
    places = {thing["name"]: thing["places"][-1]["position"] for thing in truth["things"]}
    level = truth["battery"][-1]["percentage"]
    pose = truth["final_pose"]
    reading = {"layer": "battery", "value": level, "unit": ""}
    scenes = {
        room: [
            match(s["text"], (s["pose"]["x"], s["pose"]["y"]), s["stamp"], "scene")
            for s in truth["scenes"]
            if s["room"] == room
        ]
        for room in ("kitchen", "living room")
    }
    patrol, check = truth["episodes"]
    during = [row for row in scenes["kitchen"] if patrol["start"] <= row["stamp"] / 1e9 <= patrol["end"]]
    lately = [row for row in scenes["living room"] if row["stamp"] / 1e9 >= truth["end"] - 60.0]
    cup = match("cup", places["cup"], 1190.0)
    kitchen = {"position": point((8.4, 2.2))}

    def seen(label: str) -> Answer:
        return match(label, places[label], 1100.0)

    def episode(entry: dict[str, Any]) -> Answer:
        start, end = round(entry["start"] * 1e9), round(entry["end"] * 1e9)
        return {"name": entry["name"], "status": "completed", "start": start, "end": end, "observation_count": 40}

    answers: list[Answer] = [
        {"matches": [match("chair", places["chair west"], 1100.0), seen("sofa")]},
        {"matches": [seen("bed"), seen("sofa")]},
        {"matches": during},
        {"matches": lately[::-1]},
        {"gists": [{"text": "The kitchen with a fridge and an oven."}]},
        {"matches": [seen("fridge")]},
        {"matches": [seen("lamp")]},
        {"found": True, "place": {"position": point(places["cup"])}},
        {"found": True, "place": kitchen},
        {"found": False, "place": {"position": point((0.0, 0.0))}},
        {"entities": [_entity("chair", places["chair east"]), _entity("chair", places["chair west"])]},
        {"entities": [_entity("fridge", places["fridge"])]},
        {
            "matches": [cup],
            "entities": [_entity("cup", places["cup"])],
            "found": True,
            "place": {"position": point(places["cup"])},
        },
        {"episodes": [episode(patrol)]},
        {"episodes": [episode(check)]},
        {
            "has_position": True,
            "position": point((pose["x"], pose["y"], pose["z"])),
            "heading": pose["yaw"],
            "nearby": [seen("charging dock")],
            "entities": [_entity("charging dock", places["charging dock"])],
            "body": [{"layer": "arm", "value": 40.0, "unit": "degC"}, reading],
        },
        {"readings": [reading]},
    ]
    return [copy.deepcopy({"success": True, "message": "", "text": "an answer", **answer}) for answer in answers]
