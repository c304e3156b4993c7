"""What a layer's converter makes of one message."""

from __future__ import annotations

from typing import Any

from support import ros_messages as ros

from memory_node.ingest.converters import converter
from memory_node.ingest.layers import LayerSettings


def read(type_name: str, message: Any, **layer: Any) -> Any:
    settings = LayerSettings("sense", topic="/sense", **layer)
    return converter(type_name, settings)(message, settings)


def read_new(type_name: str, layer: dict[str, Any] | None = None, **fields: Any) -> Any:
    return read(type_name, ros.make(type_name, **fields), **(layer or {}))
