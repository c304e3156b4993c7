"""sensor_msgs/msg/Temperature: degrees Celsius."""

from __future__ import annotations

from typing import Any

from memory_node.ingest.converters import Refused, TextPercept
from memory_node.ingest.converters.reading import number, origin_of
from memory_node.ingest.layers import LayerSettings


def convert(message: Any, layer: LayerSettings) -> TextPercept:
    """Return "<layer>: 21.5 °C"; value: in degC; one that is not finite is refused."""
    value = number(message.temperature)
    if value is None:
        raise Refused("value not finite")
    return TextPercept(origin_of(message), f"{layer.name}: {value:.1f} °C", value, "degC")
