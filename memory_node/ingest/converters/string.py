"""std_msgs/msg/String: a sentence."""

from __future__ import annotations

from typing import Any

from memory_node.ingest.converters import Refused, TextPercept
from memory_node.ingest.converters.reading import MAX_TEXT, clean, origin_of
from memory_node.ingest.layers import LayerSettings


def convert(message: Any, layer: LayerSettings) -> TextPercept:
    """Return the text, cleaned and cut to 65 536 characters; a blank one is refused; no value."""
    text = clean(message.data).strip()
    if not text:
        raise Refused("empty text")
    metadata = {"cut_from": len(text)} if len(text) > MAX_TEXT else {}
    return TextPercept(origin_of(message), text[:MAX_TEXT], metadata=metadata)
