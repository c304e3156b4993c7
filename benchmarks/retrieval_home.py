"""Three days of a simulated home, and 300 questions about them whose answers are known because they were made first.

A robot runs named tasks through eight rooms; in each room it turns around with a detector (class labels with measured
positions), describes what people do, and overhears facts amid small talk. It reads its body every 20 s; a few times
something happens to that body. The seed decides everything.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from datetime import datetime, timezone

from benchmarks import retrieval_facts as facts

SECOND = 1_000_000_000
START = int(datetime(2026, 3, 2, 8, 0, tzinfo=timezone.utc).timestamp()) * SECOND  # a Monday
DAY = 86_400 * SECOND
TASK_TIME = 5400
"""Seconds from one task's start to the next; eight tasks a day."""
ROOM_SIZE = 5.0
SENSOR_RANGE, SENSOR_FOV = 4.5, 1.2
TREND = 300
BODY_PERIOD = 20
COUNTS = {
    "what": 60,
    "where": 40,
    "when": 50,
    "how many": 30,
    "last time": 40,
    "before and after": 40,
    "body": 16,
    "episode": 24,
}
Point = tuple[float, float, float]


@dataclass(frozen=True)
class Row:
    """One scene sentence or overheard fact, at the robot's place."""

    stamp: int
    layer: str
    text: str
    position: Point


@dataclass(frozen=True)
class LookRow:
    """One detection message: (label, position of the thing in the map) each, and the robot's pose x, y, z, yaw."""

    stamp: int
    pose: tuple[float, float, float, float]
    things: tuple[tuple[str, Point], ...]


@dataclass(frozen=True)
class BodyRow:
    """One reading of the body."""

    stamp: int
    layer: str
    text: str
    value: float
    unit: str
    position: Point


@dataclass(frozen=True)
class Task:
    """One episode: name, start and end (ns)."""

    name: str
    start: int
    end: int


@dataclass(frozen=True)
class Question:
    """What is asked, and the truth that one field of the answer is judged by.

    Attributes:
        asked: words that the tool gets.
        text: what a right match says (what, before and after, body events), or "".
        stamp: when it was (when, last time, episode), ns.
        position: where it is (where).
        number: how many (how many), the value now (body readings), observations (episode).
        after, before: window of time (ns) or None. layer: of a body question.
    """

    kind: str
    asked: str
    text: str = ""
    stamp: int = 0
    end: int = 0
    position: Point | None = None
    number: float | None = None
    after: int | None = None
    before: int | None = None
    layer: str = ""


@dataclass
class Thing:
    """A thing and its places: (from stamp, position), the newest last."""

    label: str
    places: list[tuple[int, Point]]

    def at(self, stamp: int) -> Point:
        """Where it is at stamp."""
        return [place for since, place in self.places if since <= stamp][-1]


@dataclass
class Home:
    """All that the robot lived through, in order of time, and the questions."""

    now: int
    rows: list[Row] = field(default_factory=list)
    looks: list[LookRow] = field(default_factory=list)
    body: list[BodyRow] = field(default_factory=list)
    tasks: list[Task] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)

    @property
    def events(self) -> list[Row | LookRow | BodyRow]:
        """Everything, in order of time."""
        return sorted([*self.rows, *self.looks, *self.body], key=lambda row: row.stamp)


def build(seed: int) -> Home:
    """Return the home of that seed, with 300 questions of eight kinds."""
    return _Builder(random.Random(seed)).build()


class _Builder:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.home = Home(now=START + 2 * DAY + 13 * 3600 * SECOND)
        self.rooms = {name: (8.0 * (i % 4), 8.0 * (i // 4), 0.0) for i, name in enumerate(facts.ROOMS)}
        self.persons = rng.sample(facts.PERSONS, 6)
        self.things = self._things()
        self.told = self._told()
        self.happened = self._happened()
        self.habits = self._habits()
        self.visits: list[tuple[int, str]] = []

    def build(self) -> Home:
        for day in range(3):
            self._day(day)
        self.home.rows.sort(key=lambda row: row.stamp)
        self._ask_facts()
        self._ask_things()
        self._ask_neighbours()
        self._ask_body()
        self._ask_episodes()
        return self.home

    # what there is

    def _things(self) -> list[Thing]:
        labels = [label for label in facts.MANY for _ in range(self.rng.randint(2, 7))] + list(facts.SINGLE)
        taken: list[Point] = []
        things = [Thing(label, [(0, self._free(taken))]) for label in labels]
        for thing in self.rng.sample([t for t in things if t.label in facts.SINGLE], 10):
            thing.places.append((START + DAY + 14 * 3600 * SECOND, self._free(taken)))
        return things

    def _free(self, taken: list[Point]) -> Point:
        while True:
            centre = self.rng.choice(list(self.rooms.values()))
            angle, distance = self.rng.uniform(-math.pi, math.pi), self.rng.uniform(0.9, 2.4)
            place = (
                centre[0] + distance * math.cos(angle),
                centre[1] + distance * math.sin(angle),
                self.rng.uniform(0.1, 1.5),
            )
            if all(math.dist(place[:2], other[:2]) > 0.9 for other in taken):
                taken.append(place)
                return place

    def _sentences(self, templates: tuple, persons: int) -> list[tuple[str, str]]:
        made = []
        for statement, question, values in templates:
            pairs = zip(self.rng.sample(self.persons, persons), self.rng.sample(values, persons), strict=True)
            made += [(statement.format(p=p, v=v), question.format(p=p, v=v)) for p, v in pairs]
        self.rng.shuffle(made)
        return made

    def _told(self) -> list[tuple[str, str]]:
        return self._sentences(facts.TOLD, 3)

    def _happened(self) -> list[tuple[str, str]]:
        return self._sentences(facts.HAPPENED, 4)

    def _habits(self) -> dict[str, list[tuple[str, str]]]:
        rooms: dict[str, list[tuple[str, str]]] = {room: [] for room in self.rooms}
        for statement, question in facts.HABITS:
            for person in self.persons:
                room = self.rng.choice(facts.ROOMS)
                rooms[room].append((statement.format(p=person, room=room), question.format(p=person, room=room)))
        return rooms

    # what happens

    def _day(self, day: int) -> None:
        names = facts.TASKS[day * 8 : day * 8 + 8]
        for number, name in enumerate(self.rng.sample(names, len(names))):
            start = START + day * DAY + number * TASK_TIME * SECOND
            self._task(name, start)
        for seconds in range(0, 13 * 3600 + 1, BODY_PERIOD):
            self._body(START + day * DAY + seconds * SECOND)

    def _task(self, name: str, start: int) -> None:
        stamp = start + self.rng.randint(0, 120) * SECOND
        begin = stamp
        for room in self.rng.sample(facts.ROOMS, 5):
            stamp = self._visit(room, stamp + self.rng.randint(40, 90) * SECOND)
        self.home.tasks.append(Task(name, begin, stamp + 20 * SECOND))

    def _visit(self, room: str, stamp: int) -> int:
        centre = self.rooms[room]
        for turn in range(6):
            self._look(centre, math.tau * turn / 6 - math.pi, stamp)
            stamp += 5 * SECOND
        sentences = [("scene", self.rng.choice(self.habits[room])[0]) for _ in range(3) if self.habits[room]]
        # Facts of both kinds are spread over the 120 visits of the three days.
        sentences += [("talk", self._said(self.told.pop()[0])) for _ in range(self._share(len(self.told)))]
        sentences += [("talk", self._said("")) for _ in range(2)]
        sentences += [("scene", self.happened.pop()[0]) for _ in range(self._share(len(self.happened)))]
        self.rng.shuffle(sentences)
        for layer, text in sentences:
            stamp += self.rng.randint(20, 60) * SECOND
            self.home.rows.append(Row(stamp, layer, text, self._around(centre, 0.3)))
        self.visits.append((stamp, room))
        return stamp

    def _said(self, statement: str) -> str:
        words = [self.rng.choice(facts.OPENINGS), statement, self.rng.choice(facts.CLOSINGS)]
        return f"{self.rng.choice(self.persons)}: " + " ".join(word for word in words if word)

    def _share(self, left: int) -> int:
        visits = 120 - len(self.visits)
        return left // visits + (self.rng.random() < (left % visits) / visits)

    def _look(self, centre: Point, yaw: float, stamp: int) -> None:
        seen = []
        for thing in self.things:
            place = thing.at(stamp)
            bearing = math.atan2(place[1] - centre[1], place[0] - centre[0]) - yaw
            inside = abs(math.remainder(bearing, math.tau)) < SENSOR_FOV / 2
            if inside and math.dist(place[:2], centre[:2]) < SENSOR_RANGE and self.rng.random() > 0.05:
                seen.append((thing.label, self._around(place, 0.08)))
        self.home.looks.append(LookRow(stamp, (*centre, yaw), tuple(seen)))

    def _around(self, place: Point, spread: float) -> Point:
        return (place[0] + self.rng.gauss(0, spread), place[1] + self.rng.gauss(0, spread), place[2])

    def _body(self, stamp: int) -> None:
        hours = (stamp - START) % DAY / SECOND / 3600
        battery = 0.95 - 0.05 * (hours % 10) - sum(0.15 for at in self._faults(stamp, 0) if at <= stamp)
        motor = (
            41.0
            + self.rng.gauss(0, 0.4)
            + sum(25.0 for at in self._faults(stamp, 1) if at <= stamp < at + 600 * SECOND)
        )
        place = self._place(stamp)
        battery = max(0.05, battery + self.rng.gauss(0, 0.001))
        self.home.body.append(BodyRow(stamp, "battery", f"battery: {battery * 100:.0f}%", battery, "fraction", place))
        self.home.body.append(BodyRow(stamp, "motor", f"motor temperature: {motor:.1f} degC", motor, "degC", place))

    def _faults(self, stamp: int, kind: int) -> list[int]:
        """When the body is hit that day: the battery (0) drops at two visits, the motor (1) heats at two others."""
        day = [at for at, _ in self.visits if (at - START) // DAY == (stamp - START) // DAY]
        return [at + 5 * SECOND for at in (day[7 + 3 * kind], day[25 + 3 * kind])]

    def _place(self, stamp: int) -> Point:
        before = [room for at, room in self.visits if at <= stamp + 60 * SECOND]
        return self.rooms[before[-1] if before else facts.ROOMS[0]]

    # what is asked

    def _add(self, kind: str, asked: str, **truth: object) -> None:
        self.home.questions.append(Question(kind, asked, **truth))  # type: ignore[arg-type]

    def _ask_facts(self) -> None:
        first: dict[str, int] = {}
        last: dict[str, int] = {}
        for row in self.home.rows:
            first.setdefault(row.text, row.stamp)
            last[row.text] = row.stamp
        questions = {
            kind: self._asked(templates) for kind, templates in (("told", facts.TOLD), ("happened", facts.HAPPENED))
        }
        spoken = " ".join(first)
        for statement in self.rng.sample([s for s in questions["told"] if s in spoken], COUNTS["what"]):
            self._add("what", questions["told"][statement], text=statement)
        for statement in self.rng.sample([s for s in questions["happened"] if s in first], COUNTS["when"]):
            self._add("when", questions["happened"][statement], stamp=first[statement])
        habits = {s: q for pairs in self.habits.values() for s, q in pairs if s in first and last[s] > first[s]}
        for statement in self.rng.sample(sorted(habits), COUNTS["last time"]):
            self._add("last time", habits[statement], stamp=last[statement])

    def _asked(self, templates: tuple) -> dict[str, str]:
        return {
            statement.format(p=p, v=v): question.format(p=p, v=v)
            for statement, question, values in templates
            for p in self.persons
            for v in values
        }

    def _ask_things(self) -> None:
        for thing in [t for t in self.things if t.label in facts.SINGLE]:
            self._add("where", thing.label, position=thing.at(self.home.now))
        for label in facts.MANY:
            number = sum(thing.label == label for thing in self.things)
            self._add("how many", label, number=number)
        for label in self.rng.sample(facts.SINGLE, 20):
            self._add("how many", label, number=1)

    def _ask_neighbours(self) -> None:
        """What was seen right after an event, or right before it: the next scene sentence, or the one before."""
        scenes = [row for row in self.home.rows if row.layer == "scene"]
        questions = self._asked(facts.HAPPENED)
        places = [i for i, row in enumerate(scenes) if row.text in questions and 0 < i < len(scenes) - 1]
        for i in self.rng.sample(places, COUNTS["before and after"]):
            side = self.rng.choice((-1, 1))
            self._add("before and after", questions[scenes[i].text], text=scenes[i + side].text, number=side)

    def _ask_body(self) -> None:
        rows = sorted(self.home.rows, key=lambda row: row.stamp)
        for kind, words in enumerate(("the battery dropped", "the motor temperature rose")):
            for day in range(3):
                for at in self._faults(START + day * DAY, kind):
                    near = [row for row in rows if abs(row.stamp - at) <= 90 * SECOND]
                    text = min(near, key=lambda row: abs(row.stamp - at)).text
                    self._add(
                        "body",
                        f"What was happening when {words}?",
                        text=text,
                        after=at - 600 * SECOND,
                        before=at + 600 * SECOND,
                    )
        for layer in ("battery", "motor"):
            readings = [row for row in self.home.body if row.layer == layer]
            self._add("body", "value", number=readings[-1].value, layer=layer)
            self._add(
                "body", "change", number=readings[-1].value - readings[-1 - TREND // BODY_PERIOD].value, layer=layer
            )

    def _ask_episodes(self) -> None:
        for task in self.home.tasks:
            self._add("episode", task.name, stamp=task.start, end=task.end)
