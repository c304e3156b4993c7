"""The home: rooms, floor heights and things, in frame `map` (REP-105), metres, x east, y north, z up."""

from __future__ import annotations

from dataclasses import dataclass

FRAME = "map"
START = 1000.0
"""Simulation time of the first message, in seconds."""
DURATION = 300.0
"""Length of the patrol, in seconds."""

FLOOR_UPPER = 0.3
"""Height of the bedroom's floor above the rest of the home, in metres."""
RAMP_FOOT, RAMP_TOP = 7.5, 10.5
"""The hall rises from z = 0 to `FLOOR_UPPER` between these two x, in metres."""

Point = tuple[float, float, float]


@dataclass(frozen=True)
class Room:
    """A rectangular room.

    Attributes:
        name: What people call it.
        low: Corner with the smallest x and y, in metres.
        high: Corner with the largest x and y, in metres.
    """

    name: str
    low: tuple[float, float]
    high: tuple[float, float]

    @property
    def centre(self) -> tuple[float, float]:
        """Middle of the room, (x, y) in metres."""
        return (self.low[0] + self.high[0]) / 2, (self.low[1] + self.high[1]) / 2

    @property
    def polygon(self) -> list[tuple[float, float]]:
        """The four corners, counter-clockwise, (x, y) in metres."""
        (x0, y0), (x1, y1) = self.low, self.high
        return [(x0, y0), (x1, y0), (x1, y1), (x0, y1)]

    def contains(self, x: float, y: float) -> bool:
        """Whether (x, y) in metres lies in the room; the west and south walls count as inside."""
        return self.low[0] <= x < self.high[0] and self.low[1] <= y < self.high[1]


@dataclass(frozen=True)
class Stay:
    """A thing's place during a span of simulation time.

    Attributes:
        position: Centre of the thing, (x, y, z) in metres.
        start: First instant there, in seconds.
        end: First instant no longer there, in seconds.
        on: What it stands on, for sentences; empty when it stands on the floor.
    """

    position: Point
    start: float = START
    end: float = START + DURATION
    on: str = ""


@dataclass(frozen=True)
class Thing:
    """A thing in the home.

    Attributes:
        name: Unique in the world ("chair west").
        label: What a detector calls it ("chair").
        stays: Its places in the order of time, without a gap.
    """

    name: str
    label: str
    stays: tuple[Stay, ...]

    def at(self, stamp: float) -> Stay:
        """The place at a simulation time in seconds; the last one from its start on."""
        return next((stay for stay in self.stays if stamp < stay.end), self.stays[-1])


LIVING_ROOM = Room("living room", (0.0, 0.0), (6.5, 5.0))
KITCHEN = Room("kitchen", (6.5, 0.0), (10.5, 5.0))
HALL = Room("hall", (0.0, 5.0), (11.0, 7.0))
BEDROOM = Room("bedroom", (11.0, 3.5), (16.0, 8.5))
ROOMS = (LIVING_ROOM, KITCHEN, HALL, BEDROOM)

CUP_MOVED = START + 110.0
"""Somebody carries the cup from the kitchen to the bedroom, in seconds of simulation time."""
CUP_IN_KITCHEN: Point = (9.8, 1.0, 0.95)
CUP_IN_BEDROOM: Point = (15.4, 5.4, 0.9)


def _fixed(name: str, position: Point, label: str = "") -> Thing:
    return Thing(name, label or name, (Stay(position),))


CUP = Thing(
    "cup",
    "cup",
    (
        Stay(CUP_IN_KITCHEN, end=CUP_MOVED, on="counter"),
        Stay(CUP_IN_BEDROOM, start=CUP_MOVED, on="bedside table"),
    ),
)
DOCK = _fixed("charging dock", (0.3, 0.5, 0.1))
SOFA = _fixed("sofa", (1.2, 4.3, 0.4))
TV = _fixed("tv", (5.9, 4.4, 1.0))
TABLE = _fixed("table", (3.6, 1.5, 0.7))
CHAIR_WEST = _fixed("chair west", (2.85, 0.9, 0.45), "chair")
CHAIR_EAST = _fixed("chair east", (4.35, 0.9, 0.45), "chair")
FRIDGE = _fixed("fridge", (10.0, 4.3, 0.9))
OVEN = _fixed("oven", (8.4, 0.4, 0.5))
PLANT = _fixed("plant", (5.0, 6.6, 0.5))
BED = _fixed("bed", (14.8, 7.4, 0.8))
LAMP = _fixed("lamp", (15.5, 4.5, 1.6))
WARDROBE = _fixed("wardrobe", (12.2, 8.1, 1.3))
THINGS = (DOCK, SOFA, TV, TABLE, CHAIR_WEST, CHAIR_EAST, FRIDGE, OVEN, PLANT, BED, LAMP, WARDROBE, CUP)


@dataclass(frozen=True)
class Episode:
    """A task that a planner opens and closes; its times are simulation seconds."""

    name: str
    start: float
    end: float


EPISODES = (
    Episode("kitchen patrol", START + 28.0, START + 72.0),
    Episode("bedroom check", START + 140.0, START + 195.0),
)


def room_at(x: float, y: float) -> Room:
    """The room that holds (x, y) in metres.

    Raises:
        ValueError: The point lies outside the home.
    """
    for room in ROOMS:
        if room.contains(x, y):
            return room
    raise ValueError(f"({x:.2f}, {y:.2f}) lies outside the home")


def floor_height(x: float, y: float) -> float:
    """Height of the floor at (x, y), in metres."""
    if room_at(x, y) not in (HALL, BEDROOM):
        return 0.0
    return FLOOR_UPPER * min(1.0, max(0.0, (x - RAMP_FOOT) / (RAMP_TOP - RAMP_FOOT)))


def on_ramp(x: float, y: float) -> bool:
    """Whether (x, y) in metres lies on the ramp."""
    return HALL.contains(x, y) and RAMP_FOOT <= x <= RAMP_TOP
