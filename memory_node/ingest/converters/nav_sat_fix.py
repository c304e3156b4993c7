"""sensor_msgs/msg/NavSatFix: latitude, longitude and altitude."""

from __future__ import annotations

import math
from typing import Any

from memory_node.ingest.converters import Refused, TextPercept
from memory_node.ingest.converters.reading import number, origin_of
from memory_node.ingest.layers import LayerSettings


def convert(message: Any, layer: LayerSettings) -> TextPercept:
    """Return "<layer>: 40.23612° N, 111.65743° W, altitude 1410 m", or "no fix"."""
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
    return TextPercept(origin, text)
