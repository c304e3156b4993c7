"""Which detections of a message are believed."""

from __future__ import annotations

import math

from memory_node.config import NAME
from memory_node.graph import Detection
from memory_node.ingest.association import normalise_label
from memory_node.ingest.converters import DetectionsPercept, Origin, Refused
from memory_node.ingest.layers import LayerSettings
from memory_node.ingest.track import is_sane_position

_ROUNDING = 1e-3


class Screening:
    """Collects the good detections of one message, under the layer's label_map and min_confidence."""

    def __init__(self, layer: LayerSettings) -> None:
        self._layer = layer
        self._labels = {normalise_label(source): target for source, target in layer.labels.items()}
        self._good: list[Detection] = []
        self._frames: list[str] = []
        self._unwanted: list[str] = []
        self._unreadable: list[str] = []

    def skip(self, reason: str) -> None:
        """Leave out one detection that cannot be believed."""
        self._unreadable.append(reason)

    def take(self, seen: Detection, frame: str = "") -> None:
        """Keep a detection under its mapped label, or leave it out for a reason; frame "" is the header's."""
        label = " ".join(self._labels.get(normalise_label(seen.label), seen.label).split())
        confidence = float(seen.confidence)
        if not (label or seen.label):
            self.skip("no label")
        elif math.isnan(confidence) or not -_ROUNDING <= confidence <= 1.0 + _ROUNDING:
            self.skip("confidence outside 0..1")
        elif not label:
            self._unwanted.append("left out by label_map")
        elif not NAME.fits(label):
            self.skip("label too long or not printable")
        elif max(confidence, 0.0) < self._layer.min_confidence:
            self._unwanted.append("below min_confidence")
        elif seen.position is not None and not is_sane_position(seen.position):
            self.skip("position not finite or out of range")
        else:
            self._good.append(Detection(label, min(max(confidence, 0.0), 1.0), seen.position, seen.track_id))
            self._frames.append(frame)

    def percept(self, origin: Origin) -> DetectionsPercept:
        """Return the look; one with nothing but what the layer's settings leave out saw nothing that is wanted.

        Raises:
            Refused: nothing in it can be believed, and whether it saw something is not known.
        """
        if self._unreadable and not self._good and not self._unwanted:
            raise Refused(f"every detection left out: {self._unreadable[0]}")
        frames = tuple(self._frames) if any(self._frames) else ()
        return DetectionsPercept(origin, tuple(self._good), (*self._unwanted, *self._unreadable), frames)
