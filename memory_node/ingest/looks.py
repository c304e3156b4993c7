"""What a look should have shown: the remembered things in the sensor's view with nothing remembered in between."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memory_node.graph import Look

EDGE = 0.95
"""Share of range and angle that counts as view: at the rim a detector may or may not see."""
BLOCK_WIDTH = 0.15
"""m: a thing this near to the line of sight hides what lies behind it."""
BLOCK_DEPTH = 0.3
"""m: by how much it must be nearer than what it hides."""


def in_view(look: Look, places: NDArray[np.float64], blocking: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Return the rows of places (N, >=2) that a look should have shown; none when pose or heading is unknown.

    Args:
        places: m, rows of NaN are never in view.
        blocking: (N,) whether a row may hide others.
    """
    pose = look.pose
    whole_circle = look.sensor_fov >= 2.0 * math.pi * EDGE
    none = np.empty(0, dtype=np.intp)
    if pose is None or (pose.yaw is None and not whole_circle):
        return none
    away = places[:, :2] - np.asarray(pose.position[:2], dtype=np.float64)
    distance = np.hypot(away[:, 0], away[:, 1])
    near = np.flatnonzero(distance <= EDGE * look.sensor_range)
    if not len(near):
        return none
    away, distance = away[near], distance[near]
    if not whole_circle and pose.yaw is not None:
        turn = np.arctan2(away[:, 1], away[:, 0]) - pose.yaw
        inside = np.abs((turn + math.pi) % (2.0 * math.pi) - math.pi) <= EDGE * look.sensor_fov / 2.0
        near, away, distance = near[inside], away[inside], distance[inside]
    return near[~_hidden(away, distance, blocking[near])]


def _hidden(
    away: NDArray[np.float64], distance: NDArray[np.float64], blocking: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Tell which of the points, seen from the origin, have a blocking one on their line of sight."""
    blockers = np.flatnonzero(blocking)
    if not len(blockers):
        return np.zeros(len(away), dtype=bool)
    direction = away / np.maximum(distance, 1e-9)[:, None]
    along = direction @ away[blockers].T
    aside = np.abs(direction[:, :1] * away[blockers, 1] - direction[:, 1:] * away[blockers, 0])
    between = (along > 0.0) & (along < distance[:, None] - BLOCK_DEPTH) & (aside <= BLOCK_WIDTH)
    return np.asarray(between.any(axis=1))
