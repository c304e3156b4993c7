"""sensor_msgs/msg/NavSatFix: latitude, longitude and altitude."""

from __future__ import annotations

import math
from typing import Any

from memory_node.ingest.converters import Refused, TextPercept
from memory_node.ingest.converters.reading import number, origin_of
from memory_node.ingest.layers import LayerSettings

_DEGREE = math.radians(6_371_008.8)
"""m of a degree along a meridian of a globe of the earth's mean radius."""


def convert(message: Any, layer: LayerSettings) -> TextPercept:
    """Return "<layer>: 40.23612° N, 111.65743° W, altitude 1410 m", or "no fix"; no value; min_change is in m."""
    origin = origin_of(message)
    if message.status.status < 0:
        return TextPercept(origin, f"{layer.name}: no fix")
    latitude, longitude, altitude = (number(v) for v in (message.latitude, message.longitude, message.altitude))
    if latitude is None or longitude is None or abs(latitude) > 90.0 or abs(longitude) > 360.0:
        raise Refused("latitude or longitude not on the globe")
    longitude = math.remainder(longitude, 360.0)  # some receivers count to 360 degrees east
    north, east = "N" if latitude >= 0.0 else "S", "E" if longitude >= 0.0 else "W"
    text = f"{layer.name}: {abs(latitude):.5f}° {north}, {abs(longitude):.5f}° {east}"
    if altitude is not None:
        text += f", altitude {altitude:.0f} m"
    # Of whole degrees of latitude, so that a step north is not one east as well.
    east_degree = _DEGREE * math.cos(math.radians(round(latitude)))
    metres = (latitude * _DEGREE, longitude * east_degree, altitude or 0.0)
    return TextPercept(origin, text, values=metres)
