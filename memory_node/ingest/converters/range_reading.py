"""sensor_msgs/msg/Range: the distance that one sonar or infrared sensor sees."""

from __future__ import annotations

import math
from typing import Any

from memory_node.ingest.converters import Refused, TextPercept
from memory_node.ingest.converters.reading import limit, number, origin_of, short
from memory_node.ingest.layers import LayerSettings


def convert(message: Any, layer: LayerSettings) -> TextPercept:
    """Return "<layer>: 0.42 m"; value: in m; beyond its limits the text says so, and there is none (REP-117)."""
    distance, origin = float(message.range), origin_of(message)
    low, high = number(message.min_range), limit(message.max_range)
    if math.isnan(distance):
        raise Refused("value not finite")
    if distance == math.inf or (high is not None and distance > high):
        beyond = "" if high is None else f" within {short(high)} m"
        return TextPercept(origin, f"{layer.name}: nothing{beyond}")
    if distance == -math.inf or (low is not None and distance < low):
        return TextPercept(origin, f"{layer.name}: too near to measure")
    return TextPercept(origin, f"{layer.name}: {distance:.2f} m", distance, "m")
