"""sensor_msgs/msg/JointState: where the joints are, rad or m."""

from __future__ import annotations

from typing import Any

from memory_node.ingest.converters import Refused, TextPercept
from memory_node.ingest.converters.reading import clean, number, origin_of
from memory_node.ingest.layers import LayerSettings

_SHOWN = 12


def convert(message: Any, layer: LayerSettings) -> TextPercept:
    """Return "<layer>: shoulder 0.12, elbow 1.57", at most 12; value: of a single joint; min_change: of any."""
    # Lists of unequal length mean that the rest is unknown.
    pairs = [(clean(name), number(at)) for name, at in zip(message.name, message.position, strict=False)]
    known = [(name, at) for name, at in pairs if at is not None]
    if not known:
        raise Refused("no joint with a position")
    text = ", ".join(f"{name} {at:.2f}" for name, at in known[:_SHOWN])
    if len(known) > _SHOWN:
        text += f" and {len(known) - _SHOWN} more"
    positions = tuple(at for _, at in known)
    value = positions[0] if len(positions) == 1 else None
    names = ", ".join(name for name, _ in known)
    return TextPercept(origin_of(message), f"{layer.name}: {text}", value, values=positions, words=names)
