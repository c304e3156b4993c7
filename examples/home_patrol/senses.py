"""What the robot perceives: noisy detections at 2 Hz and a sentence about the scene every 5 s."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from examples.home_patrol import world
from examples.home_patrol.robot import RATE, Pose

SIGHT_RANGE = 4.0
"""The detector sees a thing up to this distance on the floor plane, in metres."""
SIGHT_HALF_ANGLE = math.radians(55.0)
"""Half of the horizontal field of view, in radians."""
POSITION_SIGMA = 0.05
"""Standard deviation of a detection's position on each axis, in metres."""
DETECTION_PERIOD, DETECTION_PHASE = 0.5, 0.25
SCENE_PERIOD, SCENE_PHASE = 5.0, 2.0
MISS_RATE = 0.08
"""Share of looks in which the detector misses a thing in view."""
TRACK_TIMEOUT = 2.0
"""A tracker that lost a thing for longer, in seconds, gives it a new track."""


@dataclass(frozen=True)
class Sighting:
    """One detected thing: label, score of 0 to 1, noisy position (x, y, z) in metres in frame map, and its track."""

    label: str
    confidence: float
    position: world.Point
    track_id: str


@dataclass(frozen=True)
class Look:
    """The sightings of one instant, at least one; stamp in seconds."""

    stamp: float
    sightings: tuple[Sighting, ...]


@dataclass(frozen=True)
class Scene:
    """A sentence about what is seen from a pose."""

    text: str
    pose: Pose


def in_view(pose: Pose) -> list[world.Thing]:
    """The things in the robot's own room that lie within its range and field of view, nearest first."""
    room = world.room_at(pose.x, pose.y)
    found: list[tuple[float, str, world.Thing]] = []
    for thing in world.THINGS:
        x, y, _ = thing.at(pose.stamp).position
        bearing = math.atan2(y - pose.y, x - pose.x) - pose.yaw
        distance = math.hypot(x - pose.x, y - pose.y)
        ahead = math.cos(bearing) >= math.cos(SIGHT_HALF_ANGLE)
        if ahead and distance <= SIGHT_RANGE and room.contains(x, y):
            found.append((distance, thing.name, thing))
    return [thing for _, _, thing in sorted(found, key=lambda item: item[:2])]


def _sample(poses: list[Pose], period: float, phase: float) -> list[Pose]:
    return poses[round(phase * RATE) :: round(period * RATE)]


class _Tracker:
    """Numbers the tracks as a real one does: a thing that was out of sight comes back under a new number."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[int, float]] = {}
        self._next = 1

    def track(self, name: str, stamp: float) -> str:
        number, seen = self._last.get(name, (0, -math.inf))
        if stamp - seen > TRACK_TIMEOUT:
            number, self._next = self._next, self._next + 1
        self._last[name] = (number, stamp)
        return str(number)


def detections(poses: list[Pose], seed: int) -> list[Look]:
    """The detector's output along the patrol; an instant without a sighting gives no entry."""
    noise = random.Random(f"detections {seed}")
    tracker = _Tracker()
    looks: list[Look] = []
    for pose in _sample(poses, DETECTION_PERIOD, DETECTION_PHASE):
        sightings: list[Sighting] = []
        for thing in in_view(pose):
            if noise.random() < MISS_RATE:
                continue
            x, y, z = thing.at(pose.stamp).position
            noisy = tuple(round(value + noise.gauss(0.0, POSITION_SIGMA), 4) for value in (x, y, z))
            distance = math.hypot(x - pose.x, y - pose.y)
            confidence = round(min(0.99, 0.97 - 0.05 * distance + noise.gauss(0.0, 0.02)), 3)
            sightings.append(
                Sighting(thing.label, confidence, (noisy[0], noisy[1], noisy[2]), tracker.track(thing.name, pose.stamp))
            )
        if sightings:
            looks.append(Look(pose.stamp, tuple(sightings)))
    return looks


_OPENINGS = {
    "living room": (
        "The living room is quiet and daylight falls on the carpet",
        "A tidy living room with a wooden floor",
        "The living room smells of fresh paint",
        "Nobody is in the living room",
        "The living room, with books on the shelf",
    ),
    "kitchen": (
        "The kitchen is bright and the tiles are clean",
        "A small kitchen with white cupboards",
        "In the kitchen a tap drips into the sink",
        "Nobody is cooking in the kitchen",
        "The kitchen, with bread crumbs on the floor",
    ),
    "hall": (
        "The hall is narrow and dim",
        "A long hall with coats on the wall",
        "The hall is empty and the light is on",
    ),
    "bedroom": (
        "The bedroom is calm, the curtains half closed",
        "A bedroom with a soft carpet",
        "In the bedroom somebody left a book lying open",
        "Nobody sleeps in the bedroom",
        "The bedroom, with sunlight on the wall",
    ),
}


_LEADS = ("the robot sees", "in view there is", "the camera shows", "ahead there is")


def _phrase(thing: world.Thing, stamp: float) -> str:
    article = "an" if thing.label[0] in "aeiou" else "a"
    stay = thing.at(stamp)
    return f"{article} {thing.label}" + (f" on the {stay.on}" if stay.on else "")


def _seen(pose: Pose, lead: str) -> str:
    things = in_view(pose)
    chairs = sum(thing.label == "chair" for thing in things)
    phrases = [_phrase(thing, pose.stamp) for thing in things if thing.label != "chair"]
    if chairs:
        phrases.append("two chairs at the table" if chairs == 2 else "one chair at the table")
    return f"{lead} {' and '.join(phrases)}" if phrases else "nothing stands in the way"


def _happening(pose: Pose) -> str:
    """What goes on besides; empty most of the time."""
    if world.on_ramp(pose.x, pose.y):
        way = "up" if math.cos(pose.yaw) > 0.0 else "down"
        return f"the robot drives {way} the ramp"
    x, y, _ = world.CUP_IN_KITCHEN
    looks = world.KITCHEN.contains(pose.x, pose.y) and math.cos(math.atan2(y - pose.y, x - pose.x) - pose.yaw) > 0.9
    if looks and pose.stamp >= world.CUP_MOVED:
        return "the counter is empty"
    dock_x, dock_y, _ = world.DOCK.stays[0].position
    if math.hypot(pose.x - dock_x, pose.y - dock_y) < 1.0 and pose.speed < 0.01:
        return "the robot stands at its charging dock"
    return "the robot drives on" if pose.speed > 0.3 else ""


def scenes(poses: list[Pose], seed: int) -> list[Scene]:
    """A sentence every `SCENE_PERIOD` seconds; it names the room, what is in view and what happens."""
    choice = random.Random(f"scenes {seed}")
    result: list[Scene] = []
    last = ""
    for pose in _sample(poses, SCENE_PERIOD, SCENE_PHASE):
        openings = [text for text in _OPENINGS[world.room_at(pose.x, pose.y).name] if text != last]
        last = choice.choice(openings)
        clauses = [clause for clause in (_seen(pose, choice.choice(_LEADS)), _happening(pose)) if clause]
        result.append(Scene(f"{last}; {', and '.join(clauses)}.", pose))
    return result
