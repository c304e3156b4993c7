"""std_msgs/msg/Bool, Int32, Float32, Float64: one value."""

from __future__ import annotations

import numbers
from typing import Any

from memory_node.ingest.converters import Refused, TextPercept
from memory_node.ingest.converters.reading import number, origin_of, short
from memory_node.ingest.layers import LayerSettings


def convert(message: Any, layer: LayerSettings) -> TextPercept:
    """Return "<layer>: <value>"; value: the number, of a Bool 0 or 1; one that is not finite is refused."""
    value = number(message.data)
    if value is None:
        raise Refused("value not finite")
    words = ""
    if type(message.data).__name__.startswith("bool"):  # rosbags gives numpy booleans
        said = words = str(bool(message.data)).lower()
    elif isinstance(message.data, numbers.Integral):
        said = str(int(message.data))
    else:
        said = short(value)
    return TextPercept(origin_of(message), f"{layer.name}: {said}", value, words=words)
