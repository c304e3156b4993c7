"""Questions about days gone by: what was answered while the days were raw, and what still is once they are gists.

Two worlds whose truth is known: the five minutes of the sample world, through the intake, and three simulated days. An
answer is right when it says the same thing as was perceived, its place is within 1 m (of a gist: its radius, at most
5 m, and 1 m more), and its span holds the time.

    python -m benchmarks.old_days
"""

from __future__ import annotations

import math
import re
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import retrieval_home
from benchmarks.retrieval_home import BodyRow, LookRow, Row
from benchmarks.retrieval_systems import CachedEmbedder, HandClock
from examples.home_patrol import bag, world
from examples.home_patrol.recording import Recording, record
from memory_node.graph import Detection, Filter, Gist, Pose, Position
from memory_node.ingest.delivery import ODOMETRY
from memory_node.ingest.intake import Intake
from memory_node.ingest.layers import LayerSettings
from memory_node.memory import Memory

if TYPE_CHECKING:
    from memory_node.protocols import Embedder
    from memory_node.tools.results import Match

SECOND = 1_000_000_000
DAY = 86_400 * SECOND
FIRST = 10
"""Matches that are looked at."""
REACH = 1.0
"""m that an answer may lie off, beside the radius of a gist."""
WIDEST = 5.0
"""m: the largest radius of a gist that still tells a place."""
JUST = SECOND // 2
PATROL_SEED, HOME_SEED = 7, 2026
LAYERS = (
    LayerSettings(ODOMETRY, topic="/odom", max_rate_hz=0.0),
    LayerSettings("detections", topic="/detections", max_rate_hz=5.0, sensor_range=4.0, sensor_fov=1.92),
    LayerSettings("scene", topic="/scene_description"),
    LayerSettings("battery", topic="/battery_state", is_internal_state=True),
)


@dataclass(frozen=True)
class Truth:
    """Something that was perceived: what it says, stamp in ns, position in m."""

    text: str
    stamp: int
    position: Position


@dataclass(frozen=True)
class Question:
    """What is asked of a tool, and the truths of which an answer must tell one."""

    tool: str
    asked: str
    truths: tuple[Truth, ...]


@dataclass(frozen=True)
class Kept:
    """How many questions a tool answered rightly while the days were raw, and how many of those it still does."""

    before: int
    after: int


def patrol(folder: Path, embedder: Embedder) -> dict[str, Kept]:
    """The sample world: sentences in their parts, labels, rooms."""
    recording = record(PATROL_SEED)
    clock = HandClock(round(world.START * SECOND))
    with Memory.open(folder / "patrol.db", embedder=embedder, clock=clock) as memory:
        _replay(memory, clock, recording)
        return _kept(memory, clock, _about_patrol(recording))


def home(folder: Path, embedder: Embedder) -> dict[str, Kept]:
    """Three days at home: every sentence by its time, facts by a question in other words, things and rooms by name."""
    lived = retrieval_home.build(HOME_SEED)
    clock = HandClock(lived.now)
    with Memory.open(folder / "home.db", embedder=embedder, clock=clock) as memory:
        _live(memory, clock, lived)
        return _kept(memory, clock, _about_home(lived))


# asking


def _kept(memory: Memory, clock: HandClock, questions: Sequence[Question]) -> dict[str, Kept]:
    """Ask, let a day go by, summarise and archive everything, ask again."""
    memory.flush()
    memory.wait_embedded(600.0)
    before = _answered(memory, questions)
    clock.ns += DAY
    for job in memory.jobs():
        if error := memory.run_job(job.name).error:
            raise RuntimeError(error)
    if any(match.kind == "observation" for match in memory.temporal_query(limit=1000).matches):
        raise RuntimeError("some observations are still raw")
    memory.wait_embedded(600.0)
    after = _answered(memory, before)
    tools = dict.fromkeys(question.tool for question in questions)
    return {tool: Kept(_count(before, tool), _count(after, tool)) for tool in tools}


def _count(questions: Iterable[Question], tool: str) -> int:
    return sum(question.tool == tool for question in questions)


def _answered(memory: Memory, questions: Sequence[Question]) -> list[Question]:
    """The questions that the memory answers rightly now."""
    gists = {gist.id: gist for gist in memory.search_gists(limit=1000).gists}
    return [question for question in questions if _is_right(memory, question, gists)]


def _is_right(memory: Memory, question: Question, gists: dict[int, Gist]) -> bool:
    if question.tool == "locate":
        place = memory.locate(question.asked).place
        reach = REACH + place.radius if place is not None and place.radius <= WIDEST else -1.0
        return place is not None and any(_distance(place.position, truth) <= reach for truth in question.truths)
    if question.tool == "temporal_query":
        stamp = question.truths[0].stamp
        window = Filter(time_after=stamp - JUST, time_before=stamp + JUST)
        found = memory.temporal_query(window, order="oldest", limit=FIRST).matches
    else:
        found = memory.semantic_search(question.asked, limit=FIRST).matches
    return any(_tells(match, truth, gists) for match in found for truth in question.truths)


def _tells(match: Match, truth: Truth, gists: dict[int, Gist]) -> bool:
    """Whether a match says the same thing, of the right place and time."""
    if match.position is None or truth.text.casefold() not in match.text.casefold():
        return False
    radius = gists[match.id].radius if match.kind == "gist" else 0.0
    near = radius <= WIDEST and _distance(match.position, truth) <= radius + REACH
    return near and match.stamp - JUST <= truth.stamp <= match.last_stamp + JUST


def _distance(position: Position, truth: Truth) -> float:
    return math.dist(position[:2], truth.position[:2])


# the sample world


def _replay(memory: Memory, clock: HandClock, recording: Recording) -> None:
    intake = Intake(memory, LAYERS, clock, steady=clock.now_ns)
    names = {layer.topic: layer.name for layer in LAYERS}
    tasks = sorted([(task.start, task.name) for task in world.EPISODES] + [(task.end, "") for task in world.EPISODES])
    for stamp, topic, type_name, message in bag.entries(recording, bag.typestore()):
        while tasks and stamp >= tasks[0][0] * SECOND:
            intake.drain()
            _, name = tasks.pop(0)
            if name:
                memory.start_episode(name)
            else:
                memory.end_episode()
        clock.ns = stamp
        intake.put(names[topic], message, type_name)
        if intake.waiting > 500:
            intake.work()
    intake.release()


def _about_patrol(recording: Recording) -> list[Question]:
    said: dict[str, list[Truth]] = defaultdict(list)
    seen: dict[str, list[Truth]] = defaultdict(list)
    in_rooms: dict[str, list[Truth]] = defaultdict(list)
    for scene in recording.scenes:
        pose, stamp = scene.pose, bag.nanoseconds(scene.pose.stamp)
        for part in _parts(scene.text):
            said[part].append(Truth(part, stamp, (pose.x, pose.y, pose.z)))
        room = world.room_at(pose.x, pose.y).name
        in_rooms[room].append(Truth(room, stamp, (pose.x, pose.y, pose.z)))
    for look in recording.looks:
        for sighting in look.sightings:
            truth = Truth(sighting.label, bag.nanoseconds(look.stamp), sighting.position)
            seen[sighting.label].append(truth)
    return [
        *(Question("temporal_query", "", (truth,)) for truths in said.values() for truth in truths),
        *(Question("semantic_search", words, tuple(truths)) for words, truths in (said | seen).items()),
        *(Question("locate", name, tuple(truths)) for name, truths in (seen | in_rooms).items()),
    ]


def _parts(sentence: str) -> list[str]:
    """What a sentence of the sample world says of the room, and each thing that it names."""
    room, view = sentence.rstrip(".").split("; ")
    view = re.sub(r", and .*$", "", view)
    things = re.sub(r"^(in view there is|ahead there is|the robot sees|the camera shows) ", "", view)
    return [room] if things.startswith("nothing") else [room, *things.split(" and ")]


# three days at home


def _live(memory: Memory, clock: HandClock, lived: retrieval_home.Home) -> None:
    tasks = sorted([(task.start, task.name) for task in lived.tasks] + [(task.end + 1, "") for task in lived.tasks])
    for event in lived.events:
        while tasks and event.stamp >= tasks[0][0]:
            clock.ns, name = tasks.pop(0)
            if name:
                memory.start_episode(name)
            else:
                memory.end_episode()
        clock.ns = event.stamp
        _perceive(memory, event)
    clock.ns = lived.now
    if tasks:
        memory.end_episode()


def _perceive(memory: Memory, event: Row | LookRow | BodyRow) -> None:
    """Nothing is asked of the body, so its readings are left out."""
    if isinstance(event, LookRow):
        x, y, z, yaw = event.pose
        things = [Detection(label, 0.9, position=place) for label, place in event.things]
        memory.record_detections(things, stamp=event.stamp, pose=Pose(event.stamp, (x, y, z), yaw))
    elif isinstance(event, Row):
        memory.record(
            event.text, layer=event.layer, position=event.position, stamp=event.stamp, position_source="observer"
        )


def _about_home(lived: retrieval_home.Home) -> list[Question]:
    rows = [Truth(row.text, row.stamp, row.position) for row in lived.rows]
    said = {row.stamp: row.text for row in lived.rows}
    asked = [Question("temporal_query", "", (row,)) for row in rows]
    for question in lived.questions:
        if question.kind == "where" and question.position is not None:
            asked.append(Question("locate", question.asked, (Truth(question.asked, 0, question.position),)))
        elif question.kind in ("what", "when", "last time"):
            fact = question.text or said[question.stamp]
            truths = tuple(Truth(fact, row.stamp, row.position) for row in rows if fact in row.text)
            asked.append(Question("semantic_search", question.asked, truths))
    rooms = {match[1] for row in rows if (match := re.search(r" in the ([a-z ]+)\.$", row.text))}
    return asked + [
        Question("locate", room, tuple(row for row in rows if row.text.endswith(f" in the {room}."))) for room in rooms
    ]


def main() -> None:
    """Measure with the default model and print a table."""
    from memory_node.models.sentence_transformer import SentenceTransformerEmbedder

    embedder = CachedEmbedder(SentenceTransformerEmbedder())
    print(f"{'world':10}{'tool':20}{'before':>8}{'after':>8}{'kept':>8}")
    for name, live in (("patrol", patrol), ("home", home)):
        with tempfile.TemporaryDirectory() as folder:
            for tool, kept in live(Path(folder), embedder).items():
                print(f"{name:10}{tool:20}{kept.before:8}{kept.after:8}{kept.after / kept.before:8.3f}", flush=True)


if __name__ == "__main__":
    main()
