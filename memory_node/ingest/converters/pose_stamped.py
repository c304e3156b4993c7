"""geometry_msgs/msg/PoseStamped as a layer: a place that somebody talks about, such as a goal."""

from __future__ import annotations

from typing import Any

from memory_node.ingest.converters import Refused, TextPercept
from memory_node.ingest.converters.reading import origin_of, point
from memory_node.ingest.layers import LayerSettings
from memory_node.ingest.track import is_sane_position


def convert(message: Any, layer: LayerSettings) -> TextPercept:
    """Return "<layer>: (1.00, 2.00, 0.00)", of another frame its name too; no value; min_change is in m.

    The position is that of the message.
    """
    position = point(message.pose.position)
    if position is None or not is_sane_position(position):
        raise Refused("position not finite or out of range")
    x, y, z = position
    text = f"{layer.name}: ({x:.2f}, {y:.2f}, {z:.2f})"
    origin = origin_of(message)
    return TextPercept(origin, text, position=position, values=position, words=origin.frame)
