"""robot_memory/msg/Detection and DetectionArray."""

from __future__ import annotations

from typing import Any

from memory_node.graph import Detection
from memory_node.ingest.converters import DetectionsPercept
from memory_node.ingest.converters.reading import clean, origin_of, point
from memory_node.ingest.converters.screening import Screening
from memory_node.ingest.layers import LayerSettings


def convert(message: Any, layer: LayerSettings) -> DetectionsPercept:
    """Return the detections of one look; a single Detection is a look of its own."""
    found = message.detections if hasattr(message, "detections") else [message]
    screening = Screening(layer)
    for seen in found:
        position = point(seen.position) if seen.has_position else None
        if seen.has_position and position is None:
            screening.skip("position not finite or out of range")
            continue
        screening.take(Detection(clean(seen.label).strip(), seen.confidence, position, clean(seen.track_id)))
    return screening.percept(origin_of(message))
