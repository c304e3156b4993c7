"""vision_msgs/msg/Detection2DArray and Detection3DArray, in the field names of Humble and of Foxy."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from memory_node.graph import Detection, Position
from memory_node.ingest.converters import UNSET, DetectionsPercept
from memory_node.ingest.converters.reading import clean, number, origin_of, point
from memory_node.ingest.converters.screening import Screening
from memory_node.ingest.layers import LayerSettings


def convert(message: Any, layer: LayerSettings) -> DetectionsPercept:
    """Return each detection under its best hypothesis; where it is comes from 3-D boxes only."""
    screening, origin = Screening(layer), origin_of(message)
    for seen in message.detections:
        label, score, where = _best(seen.results)
        if score is None:
            screening.skip("no hypothesis with a score")
            continue
        is_3d = hasattr(seen.bbox, "size")  # a 2-D box has size_x and size_y
        position = _position(seen, where) if is_3d else None
        frame = origin_of(seen).frame
        screening.take(Detection(label, score, position, _track(seen)), "" if frame == origin.frame else frame)
    return replace(screening.percept(origin), is_foreign=True)


def _best(results: Any) -> tuple[str, float | None, Any]:
    """Label, score and pose of the hypothesis with the best score; score None when there is none."""
    best: tuple[str, float | None, Any] = ("", None, None)
    for result in results:
        said = getattr(result, "hypothesis", result)
        score = number(said.score)
        if score is not None and (best[1] is None or score > best[1]):
            label = said.class_id if hasattr(said, "class_id") else said.id
            best = (clean(label).strip(), score, getattr(result, "pose", None))
    return best


def _position(seen: Any, where: Any) -> Position | None:
    """Centre of the box, or the hypothesis' pose where the box is at (0, 0, 0), which is what an unset one says.

    None is that of a box without size there: nobody set it. A position that was set but is not finite is handed on,
    for the screening to refuse.
    """
    candidates = [seen.bbox.center.position] + ([where.pose.position] if where is not None else [])
    for candidate in candidates:
        position = point(candidate)
        if position is None:
            return (math.nan, math.nan, math.nan)
        if position != UNSET:
            return position
    size = seen.bbox.size
    return UNSET if any(number(edge) for edge in (size.x, size.y, size.z)) else None


def _track(seen: Any) -> str:
    # `id` from Galactic on; `tracking_id`, valid only with `is_tracking`, before.
    if hasattr(seen, "tracking_id"):
        return clean(seen.tracking_id) if getattr(seen, "is_tracking", True) else ""
    return clean(getattr(seen, "id", ""))
