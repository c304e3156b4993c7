"""What a look should have shown: the remembered things in the sensor's view with nothing remembered in between."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memory_node.graph import Look
    from memory_node.ingest.entity_table import EntityTable

CORE = 0.85
"""Share of range and angle in which a detector sees what is there; at the rim it may or may not."""
BLOCK_WIDTH = 0.15
"""m: a thing this near to the line of sight hides what lies behind it."""
SECTORS = 16
"""Directions that are told apart when it is remembered where from a thing was seen."""
BLOCK_DEPTH = 0.3
"""m: by how much it must be nearer than what it hides."""


def in_view(look: Look, table: EntityTable) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Return the rows that a look should have shown, and which of them lie at the rim of the view.

    There are none when pose or heading is unknown. Only measured places are ever in view.
    """
    pose = look.pose
    whole_circle = look.sensor_fov >= 2.0 * math.pi * CORE
    none = np.empty(0, dtype=np.intp), np.empty(0, dtype=bool)
    if pose is None or (pose.yaw is None and not whole_circle):
        return none
    away = table.places[:, :2] - np.asarray(pose.position[:2], dtype=np.float64)
    distance = np.hypot(away[:, 0], away[:, 1])
    rows = np.flatnonzero(table.measured & (distance <= look.sensor_range))
    if not len(rows):
        return none
    away, distance = away[rows], distance[rows]
    rim = distance > CORE * look.sensor_range
    if not whole_circle and pose.yaw is not None:
        turn = np.arctan2(away[:, 1], away[:, 0]) - pose.yaw
        turn = np.abs((turn + math.pi) % (2.0 * math.pi) - math.pi)
        rim |= turn > CORE * look.sensor_fov / 2.0
        inside = turn <= look.sensor_fov / 2.0
        rows, away, distance, rim = rows[inside], away[inside], distance[inside], rim[inside]
    clear = ~_hidden(table, rows, away, distance)
    return rows[clear], rim[clear]


def sectors(away: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return for each offset (N, 2) from the robot the bit of the direction it was seen in, and the bits beside it."""
    angle = np.nan_to_num(np.arctan2(away[:, 1], away[:, 0]))
    sector = np.floor(angle / (2.0 * math.pi / SECTORS)).astype(np.int64)
    return (1 << (sector % SECTORS)) | (1 << ((sector + 1) % SECTORS)) | (1 << ((sector - 1) % SECTORS))


def _hidden(
    table: EntityTable, rows: NDArray[np.intp], away: NDArray[np.float64], distance: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Tell which rows have a thing on their line of sight that they were not seen past before."""
    blockers = np.flatnonzero(table.blocking[rows])
    if not len(blockers):
        return np.zeros(len(rows), dtype=bool)
    direction = away / np.maximum(distance, 1e-9)[:, None]
    along = direction @ away[blockers].T
    aside = np.abs(direction[:, :1] * away[blockers, 1] - direction[:, 1:] * away[blockers, 0])
    between = (along > 0.0) & (along < distance[:, None] - BLOCK_DEPTH) & (aside <= BLOCK_WIDTH)
    seen_past = table.here_since[rows][blockers][None, :] < table.last_seen[rows][:, None]
    seen_past &= ((table.seen_from[rows] & sectors(away)) != 0)[:, None]
    return np.asarray((between & ~seen_past).any(axis=1))
