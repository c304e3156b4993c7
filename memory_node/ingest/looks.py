"""What a look should have shown: the remembered things in the sensor's view with nothing remembered in between."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from memory_node.ingest.association import usable
from memory_node.ingest.entity_table import SECTORS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memory_node.graph import Look, Pose
    from memory_node.ingest.entity_table import EntityTable

CORE = 0.85
"""Share of range and angle in which a detector sees what is there; at the rim it may or may not."""
FARTHER = 0.5
"""m: from this much farther than it was seen from, a thing is held to be seen from as well."""
SHOWN_WIDTH = 0.4
"""m: a line of sight this near to a place shows that nothing stands before it."""
SAME_SPOT = 1.0
"""m: a look from this near to where a thing was last seen from shows what was seen then, when the heading is alike."""
BLOCK_WIDTH = 0.15
"""m: a thing this near to the line of sight hides what lies behind it."""
BLOCK_DEPTH = 0.3
"""m: by how much it must be nearer than what it hides."""


def in_view(look: Look, table: EntityTable, observer_radius: float) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Return the rows that a look should have shown, and which of them it shows for certain.

    There are none when pose or heading is unknown.

    Args:
        observer_radius: m around the observer in which a thing of unknown position may be.
    """
    pose = look.pose
    if pose is None or (pose.yaw is None and not _is_whole_circle(look)):
        return np.empty(0, dtype=np.intp), np.empty(0, dtype=bool)
    (rows, sure), (others, as_sure) = _measured(look, pose, table), _observed(look, pose, table, observer_radius)
    return np.concatenate([rows, others]), np.concatenate([sure, as_sure])


def _is_whole_circle(look: Look) -> bool:
    return look.sensor_fov >= 2.0 * math.pi * CORE


def _turns(angles: NDArray[np.float64], yaw: float | None) -> NDArray[np.float64]:
    """Return by how much each angle is off a heading, 0..pi rad."""
    return np.asarray(np.abs((angles - (yaw or 0.0) + math.pi) % (2.0 * math.pi) - math.pi))


def _observed(
    look: Look, pose: Pose, table: EntityTable, radius: float
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Rows of which only is known where from they were seen, those seen last from within radius (m), looking alike.

    The look shows for certain what was seen from about the same spot, with a heading so like that CORE of the view is
    the same. From farther the thing may lie behind the robot.
    """
    rows = np.flatnonzero(~table.measured)
    apart = np.hypot(table.seen_at[rows, 0] - pose.position[0], table.seen_at[rows, 1] - pose.position[1])
    near = apart <= radius
    rows, sure = rows[near], apart[near] <= SAME_SPOT
    if _is_whole_circle(look):
        return rows, sure
    turn = _turns(table.seen_at[rows, 2], pose.yaw)
    alike = turn <= look.sensor_fov / 2.0
    return rows[alike], (sure & (turn <= (1.0 - CORE) * look.sensor_fov))[alike]


def _measured(look: Look, pose: Pose, table: EntityTable) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Rows whose place lies in the view.

    Not certain is what lies at the rim, where heading and range need be off by little only; and what was never seen
    from there while the look shows nothing behind it: a wall may stand between, and no map tells.
    """
    away = table.places[:, :2] - np.asarray(pose.position[:2], dtype=np.float64)
    distance = np.hypot(away[:, 0], away[:, 1])
    rows = np.flatnonzero(table.measured & (distance <= look.sensor_range))
    if not len(rows):
        return rows, np.empty(0, dtype=bool)
    away, distance = away[rows], distance[rows]
    sure = distance <= CORE * look.sensor_range
    if not _is_whole_circle(look):
        turn = _turns(np.arctan2(away[:, 1], away[:, 0]), pose.yaw)
        sure &= turn <= CORE * look.sensor_fov / 2.0
        inside = turn <= look.sensor_fov / 2.0
        rows, away, distance, sure = rows[inside], away[inside], distance[inside], sure[inside]
    seen = _seen_from_there(table, rows, away, distance)
    clear = ~_hidden(table, rows, away, distance, seen)
    unknown = ~(table.seen_from[rows] > 0.0).any(axis=1)
    sure &= seen | unknown | _shown_past(look, away, distance)
    return rows[clear], sure[clear]


def remember(table: EntityTable, rows: Sequence[int], pose: Pose) -> None:
    """Note where from, from which directions, and how far at most, things of those rows were seen now."""
    table.seen_at[rows] = (pose.position[0], pose.position[1], math.nan if pose.yaw is None else pose.yaw)
    away = table.places[rows, :2] - np.asarray(pose.position[:2])
    distance = np.nan_to_num(np.hypot(away[:, 0], away[:, 1]))
    np.maximum.at(table.seen_from, (np.asarray(rows), _sector(away)), np.maximum(distance, FARTHER))


def _sector(away: NDArray[np.float64]) -> NDArray[np.intp]:
    angle = np.nan_to_num(np.arctan2(away[:, 1], away[:, 0]))
    return np.floor(angle / (2.0 * math.pi / SECTORS)).astype(np.intp) % SECTORS


def _seen_from_there(
    table: EntityTable, rows: NDArray[np.intp], away: NDArray[np.float64], distance: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Tell which rows were seen at about that distance or farther, in that direction or the next to either side."""
    beside = (_sector(away)[:, None] + np.array([-1, 0, 1])) % SECTORS
    farthest = table.seen_from[rows[:, None], beside].max(axis=1)
    return np.asarray((farthest > 0.0) & (distance <= farthest + FARTHER))


def _shown_past(look: Look, away: NDArray[np.float64], distance: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Tell which places have a detection of this look behind or beside them."""
    assert look.pose is not None
    found = [place for detection in look.detections if (place := usable(detection.position)) is not None]
    if not found:
        return np.zeros(len(away), dtype=bool)
    ends = np.array(found)[:, :2] - np.asarray(look.pose.position[:2])
    lengths = np.maximum(np.hypot(ends[:, 0], ends[:, 1]), 1e-9)
    along = away @ (ends / lengths[:, None]).T
    aside = np.sqrt(np.maximum(distance[:, None] ** 2 - along**2, 0.0))
    return np.asarray(((along > 0.0) & (along <= lengths) & (aside <= SHOWN_WIDTH)).any(axis=1))


def _hidden(
    table: EntityTable,
    rows: NDArray[np.intp],
    away: NDArray[np.float64],
    distance: NDArray[np.float64],
    seen: NDArray[np.bool_],
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
    seen_past &= seen[:, None]
    return np.asarray((between & ~seen_past).any(axis=1))
