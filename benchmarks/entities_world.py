"""A generated world for the entity benchmark: rooms full of things that move and vanish, and a robot that drifts."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from memory_node.graph import Detection, Pose

SECOND = 1_000_000_000
ROOMS, THINGS, PASSES = 6, 120, 8
ROOM = (6.0, 5.0)
"""m: size of a room."""
NEIGHBOUR, APART = 0.6, 0.3
"""m: the least distance of two things of one class, and of two things at all."""
NOISE, DRIFT = 0.15, 0.5
"""m: deviation of a measured position on each axis; how far odometry is off at the end of the run."""
FALSE_RATE, MISS_RATE = 0.05, 0.10
CHANGED, STEP = 40, 2.0
"""How many things move, and how many vanish; m that a moved thing moves at least."""
CHANGING = range(2, 7)
"""Passes before which things move or vanish, drawn for each alone: two of a class may change before the same pass."""
SENSOR_RANGE, SENSOR_FOV = 5.0, 1.2
BESIDE = 0.2
"""Share of things that are put at just NEIGHBOUR from another of their class."""
SPOTS, TURNS, TURN = 3, 7, 0.9
"""From how many spots of a room the robot looks around, with how many looks, and the rad between two of them."""

CLASSES = (
    "refrigerator", "sofa", "cup", "television", "trash can", "chair", "table", "lamp", "bed", "bottle", "laptop",
    "bookshelf", "potted plant", "suitcase", "backpack", "bicycle", "ladder", "sink", "toilet", "mirror", "rug", "door",
    "box", "cell phone", "monitor",
)  # fmt: skip


@dataclass
class Thing:
    """One thing. moves: (pass, position) from that pass on; gone: pass from which it is not there, or None."""

    id: int
    label: str
    home: tuple[float, float, float]
    moved_at: int | None = None
    moved_to: tuple[float, float, float] | None = None
    gone_at: int | None = None

    def at(self, tour: int) -> tuple[float, float, float] | None:
        """Where it is during a pass, None when it is gone."""
        if self.gone_at is not None and tour >= self.gone_at:
            return None
        if self.moved_at is not None and tour >= self.moved_at:
            return self.moved_to
        return self.home


@dataclass(frozen=True)
class Message:
    """One detection message. truth: id of each detection's thing, or -1 for a false one."""

    tour: int
    pose: Pose
    detections: tuple[Detection, ...]
    truth: tuple[int, ...]


@dataclass
class World:
    """A seeded world. messages() is the same each time it is called."""

    seed: int
    things: list[Thing] = field(default_factory=list)

    def __post_init__(self) -> None:
        rng = np.random.default_rng(self.seed)
        for i in range(THINGS):
            self.things.append(Thing(i, CLASSES[i % len(CLASSES)], self._spot(rng, CLASSES[i % len(CLASSES)])))
        order = rng.permutation(THINGS)[: 2 * CHANGED]
        for i in order[:CHANGED]:
            thing = self.things[i]
            thing.moved_at = int(rng.choice(CHANGING))
            thing.moved_to = self._spot(rng, thing.label, away_from=thing.home)
        for i in order[CHANGED:]:
            self.things[i].gone_at = int(rng.choice(CHANGING))
        angle = rng.uniform(0.0, 2.0 * math.pi)
        self._drift = DRIFT * np.array([math.cos(angle), math.sin(angle), 0.0])

    def present(self, tour: int) -> list[tuple[Thing, tuple[float, float, float]]]:
        """The things that are there during a pass, and where."""
        return [(thing, place) for thing in self.things if (place := thing.at(tour)) is not None]

    def drift(self, share: float) -> np.ndarray:
        """How far odometry is off (m) when that share of the run is over."""
        return self._drift * share

    def messages(self) -> Iterator[Message]:
        """All messages in the order of time: a second between two, a quarter of an hour between two passes."""
        rng = np.random.default_rng(self.seed + 10_000)
        looks = [(room, spot, turn) for room in range(ROOMS) for spot in range(SPOTS) for turn in range(TURNS)]
        total = len(looks) * PASSES
        for tour in range(PASSES):
            for number, (room, spot, turn) in enumerate(looks):
                drift = self.drift((tour * len(looks) + number) / total)
                stamp = (1000 + tour * 900 + number) * SECOND
                yield self._look(rng, tour, stamp, room, spot, TURN * turn, drift)

    def _look(
        self, rng: np.random.Generator, tour: int, stamp: int, room: int, spot: int, yaw: float, drift: np.ndarray
    ) -> Message:
        corner = np.array([(room % 3) * (ROOM[0] + 1.0), (room // 3) * (ROOM[1] + 1.0)])
        here = corner + np.array([ROOM[0] * (0.25 + 0.25 * spot), ROOM[1] / 2.0]) + rng.normal(0.0, 0.1, 2)
        detections, truth = [], []
        for thing, place in self.present(tour):
            if self._sees(here, yaw, room, place) and rng.random() >= MISS_RATE:
                detections.append(self._detection(rng, thing.label, np.array(place) + drift))
                truth.append(thing.id)
        for _ in range(rng.binomial(max(len(detections), 1), FALSE_RATE)):
            distance, turn = rng.uniform(0.5, SENSOR_RANGE), yaw + rng.uniform(-SENSOR_FOV, SENSOR_FOV) / 2.0
            place = np.array([*(here + distance * np.array([math.cos(turn), math.sin(turn)])), rng.uniform(0.0, 1.5)])
            detections.append(self._detection(rng, str(rng.choice(CLASSES)), place + drift))
            truth.append(-1)
        x, y = (here + drift[:2]).tolist()
        pose = Pose(stamp, (x, y, 0.0), (yaw + math.pi) % (2 * math.pi) - math.pi)
        return Message(tour, pose, tuple(detections), tuple(truth))

    @staticmethod
    def _sees(here: np.ndarray, yaw: float, room: int, place: tuple[float, float, float]) -> bool:
        if _room_of(place) != room:
            return False
        away = np.array(place[:2]) - here
        turn = (math.atan2(away[1], away[0]) - yaw + math.pi) % (2.0 * math.pi) - math.pi
        return math.hypot(*away) <= SENSOR_RANGE and abs(turn) <= SENSOR_FOV / 2.0

    @staticmethod
    def _detection(rng: np.random.Generator, label: str, place: np.ndarray) -> Detection:
        x, y, z = place + rng.normal(0.0, NOISE, 3)
        return Detection(label, float(rng.uniform(0.5, 1.0)), (float(x), float(y), float(z)))

    def _spot(
        self, rng: np.random.Generator, label: str, away_from: tuple[float, float, float] | None = None
    ) -> tuple[float, float, float]:
        """A free spot in a room; some have a neighbour of their class at just NEIGHBOUR."""
        taken = [(t.label, p) for t in self.things for p in (t.home, t.moved_to) if p is not None]
        same = [p for name, p in taken if name == label]
        while True:
            if same and rng.random() < BESIDE:
                angle = rng.uniform(0.0, 2.0 * math.pi)
                near = same[int(rng.integers(len(same)))]
                spot = (near[0] + NEIGHBOUR * math.cos(angle), near[1] + NEIGHBOUR * math.sin(angle), near[2])
            else:
                room = int(rng.integers(ROOMS))
                x, y = rng.uniform(0.3, ROOM[0] - 0.3), rng.uniform(0.3, ROOM[1] - 0.3)
                spot = (
                    float((room % 3) * (ROOM[0] + 1.0) + x), float((room // 3) * (ROOM[1] + 1.0) + y),
                    float(rng.uniform(0.0, 1.5)),
                )
            if _room_of(spot) is None or (away_from is not None and math.dist(away_from[:2], spot[:2]) < STEP):
                continue
            if all(math.dist(spot[:2], p[:2]) >= (NEIGHBOUR - 1e-9 if name == label else APART) for name, p in taken):
                return spot


def _room_of(place: tuple[float, float, float]) -> int | None:
    """The room that a place is inside of, or None."""
    for room in range(ROOMS):
        x, y = place[0] - (room % 3) * (ROOM[0] + 1.0), place[1] - (room // 3) * (ROOM[1] + 1.0)
        if 0.0 <= x <= ROOM[0] and 0.0 <= y <= ROOM[1]:
            return room
    return None


_OTHER_WORDS = """
refrigerator: fridge, icebox; sofa: couch, settee; cup: mug, coffee mug; television: tv, telly; chair: seat;
lamp: light; trash can: garbage bin, waste bin, rubbish bin, dustbin; bottle: flask;
laptop: notebook computer, portable computer; bookshelf: bookcase; potted plant: houseplant, pot plant;
suitcase: luggage, travel bag; backpack: rucksack, knapsack;
bicycle: bike, push bike; sink: washbasin, basin; toilet: lavatory, wc; mirror: looking glass; rug: carpet, mat;
door: doorway; box: carton; cell phone: mobile phone, smartphone; monitor: computer screen, display; bed: double bed
"""
SYNONYMS = tuple(
    (word.strip(), label.strip())
    for label, words in (entry.split(":") for entry in _OTHER_WORDS.replace("\n", " ").split(";"))
    for word in words.split(",")
)
"""40 other words (word, class) of things that are there."""
ABSENT = (
    "freezer", "microwave", "dishwasher", "washing machine", "kettle", "toaster", "armchair", "bench", "stool", "desk",
    "wardrobe", "curtain", "pillow", "blanket", "knife", "fork", "spoon", "plate", "bowl", "wine glass", "keyboard",
    "mouse", "printer", "tablet", "camera", "radio", "clock", "vase", "painting", "book", "newspaper", "shower",
    "bathtub", "towel", "soap", "toothbrush", "window", "stairs", "elevator", "fireplace", "candle", "umbrella",
    "handbag", "shoe", "hat", "motorcycle", "car", "truck", "bus", "skateboard", "tree", "dog", "cat", "piano",
    "guitar", "submarine", "helicopter", "oven", "elephant", "fire extinguisher",
)  # fmt: skip
"""60 things that are not there, most of them beside what is."""
