"""sensor_msgs/msg/LaserScan: the nearest obstacle in one line."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from memory_node.ingest.converters import Refused, TextPercept
from memory_node.ingest.converters.reading import limit, number, origin_of, short
from memory_node.ingest.layers import LayerSettings


def convert(message: Any, layer: LayerSettings) -> TextPercept:
    """Return "<layer>: nearest 0.4 m at 30° left, 61 % of the view free"; value: the nearest range, m.

    As REP-117 has it -Inf is too near to be measured, which is said first and leaves no value, and +Inf is free, and so
    is a range above range_max. NaN, zero and what lies below range_min tell nothing.
    """
    ranges = np.asarray(message.ranges, dtype=np.float64)
    low, high = number(message.range_min) or 0.0, limit(message.range_max)
    near = np.isneginf(ranges)
    known = (ranges >= low) & (ranges > 0.0)
    hit = known & (ranges <= (np.finfo(np.float64).max if high is None else high))
    if not (near | known).any():
        raise Refused("no ranges")
    parts, value = [], None
    if near.any():
        parts.append(f"too near to measure{_side(message, int(np.flatnonzero(near)[near.sum() // 2]))}")
    other = " else" if near.any() else ""
    if hit.any():
        at = int(np.argmin(np.where(hit, ranges, math.inf)))
        value = None if near.any() else float(ranges[at])
        parts.append(f"nearest{other} {ranges[at]:.1f} m{_side(message, at)}")
        parts.append(f"{100.0 * (1.0 - hit.sum() / known.sum()):.0f} % of the view free")
    elif known.any():
        parts.append(f"nothing{other}" + ("" if high is None else f" within {short(high)} m"))
    return TextPercept(origin_of(message), f"{layer.name}: {', '.join(parts)}", value, "" if value is None else "m")


def _side(message: Any, at: int) -> str:
    start, step = number(message.angle_min), number(message.angle_increment)
    if start is None or step is None or not math.isfinite(bearing := start + at * step):
        return ""
    # To ten degrees: the same wall should give the same sentence.
    degrees = 10 * round(math.degrees(math.remainder(bearing, math.tau)) / 10)
    if degrees == 0:
        return " ahead"
    return f" at {abs(degrees)}° {'left' if degrees > 0 else 'right'}"
