"""sensor_msgs/msg/LaserScan: the nearest obstacle in one line."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from memory_node.ingest.converters import Refused, TextPercept
from memory_node.ingest.converters.reading import number, origin_of, short
from memory_node.ingest.layers import LayerSettings


def convert(message: Any, layer: LayerSettings) -> TextPercept:
    """Return "<layer>: nearest 0.4 m at 30° left, 61 % of the view free"; the value is the nearest range in m.

    Ranges count within [range_min, range_max] (REP-117); NaN tells nothing, and the rest is free.
    """
    ranges = np.asarray(message.ranges, dtype=np.float64)
    known = ~np.isnan(ranges)
    if not known.any():
        raise Refused("no ranges")
    low, high = number(message.range_min) or 0.0, number(message.range_max)
    hit = known & np.isfinite(ranges) & (ranges >= low)
    if high is not None:
        hit &= ranges <= high
    origin = origin_of(message)
    if not hit.any():
        beyond = "" if high is None else f" within {short(high)} m"
        return TextPercept(origin, f"{layer.name}: nothing{beyond}")
    at = int(np.argmin(np.where(hit, ranges, math.inf)))
    nearest, free = float(ranges[at]), 100.0 * (1.0 - hit.sum() / known.sum())
    text = f"{layer.name}: nearest {nearest:.1f} m{_side(message, at)}, {free:.0f} % of the view free"
    return TextPercept(origin, text, nearest, "m")


def _side(message: Any, at: int) -> str:
    start, step = number(message.angle_min), number(message.angle_increment)
    if start is None or step is None or not math.isfinite(bearing := start + at * step):
        return ""
    # To ten degrees: the same wall should give the same sentence.
    degrees = 10 * round(math.degrees(math.remainder(bearing, math.tau)) / 10)
    if degrees == 0:
        return " ahead"
    return f" at {abs(degrees)}° {'left' if degrees > 0 else 'right'}"
