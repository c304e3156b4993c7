"""The ground truth of a recording, as JSON: what the world was, whatever a memory may say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from examples.home_patrol import world
from examples.home_patrol.questions import questions
from examples.home_patrol.recording import Recording
from examples.home_patrol.robot import RATE, Pose


def _pose(pose: Pose) -> dict[str, float]:
    names = ("stamp", "x", "y", "z", "yaw")
    return {name: round(getattr(pose, name), 4) for name in names}


def _rooms() -> list[dict[str, Any]]:
    return [{"name": room.name, "polygon": room.polygon, "centre": room.centre} for room in world.ROOMS]


def _place(stay: world.Stay) -> dict[str, Any]:
    x, y, _ = stay.position
    return {"position": stay.position, "start": stay.start, "end": stay.end, "room": world.room_at(x, y).name}


def _things() -> list[dict[str, Any]]:
    return [
        {
            "name": thing.name,
            "label": thing.label,
            "places": [_place(stay) for stay in thing.stays],
        }
        for thing in world.THINGS
    ]


def _ramp(recording: Recording) -> dict[str, Any]:
    """The climb: its span in seconds and what it cost the battery (1.0 is full)."""
    climb = [pose for pose in recording.poses if world.on_ramp(pose.x, pose.y) and pose.pitch < 0.0]
    start, end = climb[0].stamp, climb[-1].stamp
    level = {charge.stamp: charge.percentage for charge in recording.charges}
    before = max(stamp for stamp in level if stamp <= start)
    after = min(stamp for stamp in level if stamp >= end)
    return {
        "x": [world.RAMP_FOOT, world.RAMP_TOP],
        "z": [0.0, world.FLOOR_UPPER],
        "start": start,
        "end": end,
        "drop": round(level[before] - level[after], 4),
    }


def _sightings(recording: Recording) -> dict[str, dict[str, Any]]:
    """Number of sightings, first and last stamp, by label."""
    result: dict[str, dict[str, Any]] = {}
    for look in recording.looks:
        for sighting in look.sightings:
            entry = result.setdefault(sighting.label, {"count": 0, "first": look.stamp, "last": look.stamp})
            entry["count"] += 1
            entry["last"] = look.stamp
    return result


def ground_truth(recording: Recording, variant: str, messages: dict[str, int]) -> dict[str, Any]:
    """Everything true of a recording; lengths in metres, angles in radians, stamps in seconds of simulation time.

    Args:
        recording: The patrol.
        variant: The package that carries the detections.
        messages: Number of messages in the bag, by topic.
    """
    return {
        "seed": recording.seed,
        "variant": variant,
        "frame_id": world.FRAME,
        "start": world.START,
        "end": world.START + world.DURATION,
        "rooms": _rooms(),
        "things": _things(),
        "cup_moved": world.CUP_MOVED,
        "messages": messages,
        "sightings": _sightings(recording),
        "path": [_pose(pose) for pose in recording.poses[:: round(RATE)]],
        "final_pose": _pose(recording.poses[-1]),
        "battery": [{"stamp": c.stamp, "percentage": round(c.percentage, 5)} for c in recording.charges],
        "ramp": _ramp(recording),
        "scenes": [
            {
                "stamp": scene.pose.stamp,
                "text": scene.text,
                "room": world.room_at(scene.pose.x, scene.pose.y).name,
                "pose": _pose(scene.pose),
            }
            for scene in recording.scenes
        ],
        "episodes": [{"name": e.name, "start": e.start, "end": e.end} for e in world.EPISODES],
        "questions": questions(recording),
    }


def load(path: Path) -> dict[str, Any]:
    """The ground truth that `generate` wrote.

    Raises:
        FileNotFoundError: There is no such file.
    """
    truth: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return truth
