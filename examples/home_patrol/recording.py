"""Everything that happened and was perceived during one patrol, before it becomes messages."""

from __future__ import annotations

from dataclasses import dataclass

from examples.home_patrol import robot, senses


@dataclass(frozen=True)
class Recording:
    """One patrol.

    Attributes:
        seed: Seed of the noise; the robot's path does not depend on it.
        poses: At `robot.RATE`, in the order of time.
        charges: The battery at 1 Hz.
        looks: What the detector saw.
        scenes: What was said about the scene.
    """

    seed: int
    poses: list[robot.Pose]
    charges: list[robot.Charge]
    looks: list[senses.Look]
    scenes: list[senses.Scene]


def record(seed: int) -> Recording:
    """Drive the patrol once; the same seed gives the same recording."""
    poses = robot.patrol()
    return Recording(seed, poses, robot.battery(poses), senses.detections(poses, seed), senses.scenes(poses, seed))
