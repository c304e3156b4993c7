"""The robot: a differential drive that follows a script through the home, and its battery."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from examples.home_patrol import world

RATE = 20.0
"""Odometry rate, in Hz."""
MAX_SPEED = 0.5
"""Metres a second."""
MAX_ACCELERATION = 0.5
"""Metres a second squared."""
MAX_TURN = 0.9
"""Radians a second."""
MAX_TURN_ACCELERATION = 2.0
"""Radians a second squared."""
ARRIVED = 0.08
"""A goal counts as reached at this distance, in metres."""

CHARGE_START = 0.82
DRAIN_IDLE, DRAIN_DRIVE, DRAIN_RAMP, GAIN_DOCK = 0.00005, 0.0003, 0.012, 0.0005
"""Changes of the state of charge (1.0 is full) a second; the ramp costs only on the way up."""


@dataclass(frozen=True)
class Pose:
    """Where the robot is and how it moves at one stamp.

    Attributes:
        stamp: Simulation time, in seconds.
        x: Metres, frame map.
        y: Metres, frame map.
        z: Height of the floor under the robot, in metres.
        yaw: Heading from the x axis, counter-clockwise, in radians (REP-103).
        pitch: Nose down is positive, in radians (REP-103).
        speed: Forward, in metres a second.
        turn: Counter-clockwise, in radians a second.
    """

    stamp: float
    x: float
    y: float
    z: float
    yaw: float
    pitch: float
    speed: float
    turn: float


@dataclass(frozen=True)
class Drive:
    """Drive to (x, y); the last of a row of drives stops there, the ones before it are passed through."""

    x: float
    y: float


@dataclass(frozen=True)
class Look:
    """Turn on the spot towards (x, y), then stay for some seconds."""

    x: float
    y: float
    seconds: float


@dataclass(frozen=True)
class Wait:
    """Stand still until a simulation time in seconds."""

    until: float


Step = Drive | Look | Wait


def _look(thing: world.Thing, seconds: float, stay: int = 0) -> Look:
    x, y, _ = thing.stays[stay].position
    return Look(x, y, seconds)


HOME = (0.9, 1.0, 0.6)
"""Start pose beside the dock: x, y in metres and yaw in radians."""
SCRIPT: tuple[Step, ...] = (
    Wait(world.START + 6.0),
    Drive(1.9, 2.6),
    _look(world.TABLE, 2.0),
    Drive(6.0, 2.4),
    Drive(8.2, 2.4),
    _look(world.FRIDGE, 4.0),
    _look(world.CUP, 5.0),
    Drive(8.7, 1.8),
    _look(world.OVEN, 3.0),
    _look(world.CUP, 5.0),
    _look(world.FRIDGE, 3.0),
    Wait(world.START + 72.0),
    Drive(6.0, 2.6),
    Drive(4.2, 3.2),
    _look(world.TV, 3.0),
    _look(world.SOFA, 3.0),
    _look(world.TABLE, 3.0),
    Wait(world.START + 107.0),
    Drive(3.2, 4.4),
    Drive(3.4, 5.7),
    Drive(7.0, 6.0),
    Drive(11.2, 6.0),
    Drive(12.8, 6.0),
    _look(world.BED, 4.0),
    _look(world.CUP, 4.0, stay=1),
    Drive(13.6, 5.6),
    _look(world.LAMP, 4.0),
    _look(world.CUP, 4.0, stay=1),
    _look(world.WARDROBE, 5.0),
    _look(world.BED, 6.0),
    _look(world.CUP, 8.0, stay=1),
    Wait(world.START + 195.0),
    Drive(11.4, 6.0),
    Drive(7.0, 6.0),
    Drive(7.1, 4.4),
    Drive(8.2, 2.4),
    _look(world.CUP, 6.0),
    _look(world.FRIDGE, 3.0),
    Wait(world.START + 242.0),
    Drive(6.0, 2.4),
    Drive(3.4, 2.9),
    _look(world.TABLE, 4.0),
    Drive(1.8, 2.3),
    Drive(0.9, 1.1),
    _look(world.DOCK, 1.0),
    Wait(world.START + world.DURATION),
)


def _wrap(angle: float) -> float:
    return math.atan2(math.sin(angle), math.cos(angle))


def _toward(value: float, goal: float, step: float) -> float:
    return min(max(goal, value - step), value + step)


class _Body:
    """The drive's state; every method that yields moves it by one period at a time."""

    def __init__(self) -> None:
        self.tick = 0
        self.x, self.y, self.yaw = HOME
        self.speed = self.turn = 0.0

    @property
    def stamp(self) -> float:
        return world.START + self.tick / RATE

    def pose(self) -> Pose:
        slope = world.FLOOR_UPPER / (world.RAMP_TOP - world.RAMP_FOOT) if world.on_ramp(self.x, self.y) else 0.0
        pitch = -math.atan(slope * math.cos(self.yaw))
        z = world.floor_height(self.x, self.y)
        return Pose(self.stamp, self.x, self.y, z, self.yaw, pitch, self.speed, self.turn)

    def _advance(self, speed: float, turn: float) -> Pose:
        period = 1.0 / RATE
        here = self.pose()
        self.speed = _toward(self.speed, speed, MAX_ACCELERATION * period)
        self.turn = _toward(self.turn, turn, MAX_TURN_ACCELERATION * period)
        self.yaw = _wrap(self.yaw + self.turn * period)
        self.x += self.speed * math.cos(self.yaw) * period
        self.y += self.speed * math.sin(self.yaw) * period
        self.tick += 1
        return here

    def _turn_for(self, error: float) -> float:
        # The square root law brakes in time for the limit of the angular acceleration.
        fastest = min(MAX_TURN, math.sqrt(MAX_TURN_ACCELERATION * abs(error)), 3.0 * abs(error))
        return math.copysign(fastest, error)

    def drive(self, goal: Drive, stop: bool) -> Iterator[Pose]:
        reach = ARRIVED if stop else 0.3
        while (distance := math.hypot(goal.x - self.x, goal.y - self.y)) > reach:
            error = _wrap(math.atan2(goal.y - self.y, goal.x - self.x) - self.yaw)
            fastest = min(MAX_SPEED, math.sqrt(MAX_ACCELERATION * distance)) if stop else MAX_SPEED
            yield self._advance(fastest * max(0.0, math.cos(error)) ** 3, self._turn_for(error))

    def stand(self, until: float) -> Iterator[Pose]:
        while self.stamp < until - 1e-6:
            yield self._advance(0.0, 0.0)

    def look(self, goal: Look) -> Iterator[Pose]:
        while abs(error := _wrap(math.atan2(goal.y - self.y, goal.x - self.x) - self.yaw)) > 0.03 or self.speed > 0.0:
            yield self._advance(0.0, self._turn_for(error))
        yield from self.stand(self.stamp + goal.seconds)


def patrol() -> list[Pose]:
    """The whole patrol, one pose every 1 / `RATE` seconds from `world.START` up to the end, the end not included.

    Raises:
        RuntimeError: The script does not fit into the patrol's time.
    """
    body = _Body()
    poses: list[Pose] = []
    for index, step in enumerate(SCRIPT):
        if isinstance(step, Drive):
            following = SCRIPT[index + 1] if index + 1 < len(SCRIPT) else None
            poses.extend(body.drive(step, stop=not isinstance(following, Drive)))
        elif isinstance(step, Look):
            poses.extend(body.look(step))
        elif body.stamp > step.until + 1e-6:
            raise RuntimeError(f"step {index} of the script: {step} begins late, at {body.stamp:.2f} s")
        else:
            poses.extend(body.stand(step.until))
    return poses


@dataclass(frozen=True)
class Charge:
    """The battery at one stamp.

    Attributes:
        stamp: Simulation time, in seconds.
        percentage: State of charge, 0 to 1.
        current: Amperes, negative while it discharges (the convention of sensor_msgs/BatteryState).
        charging: Whether the dock feeds it.
    """

    stamp: float
    percentage: float
    current: float
    charging: bool


def battery(poses: list[Pose]) -> list[Charge]:
    """The battery at 1 Hz along the patrol; it charges once the robot is back at the dock."""
    level = CHARGE_START
    charges: list[Charge] = []
    for index, pose in enumerate(poses):
        home = math.hypot(pose.x - HOME[0], pose.y - HOME[1]) < 0.5
        climbs = world.on_ramp(pose.x, pose.y) and pose.speed * math.cos(pose.yaw) > 0.05
        charging = home and pose.speed < 0.01 and index > len(poses) / 2
        drain = DRAIN_RAMP if climbs else DRAIN_DRIVE if pose.speed > 0.01 else DRAIN_IDLE
        change = GAIN_DOCK if charging else -drain
        if index % round(RATE) == 0:
            charges.append(Charge(pose.stamp, level, change * 1000.0, charging))
        level += change / RATE
    return charges
