"""diagnostic_msgs/msg/DiagnosticArray: what is wrong with the robot."""

from __future__ import annotations

from typing import Any

from memory_node.ingest.converters import Refused, TextPercept
from memory_node.ingest.converters.reading import clean, origin_of, words_of
from memory_node.ingest.layers import LayerSettings

_LEVELS = ("ok", "warning", "error", "stale")
_SHOWN = 5


def _level(status: Any) -> int:
    # rclpy gives the byte as bytes, rosbags as a number.
    level = status.level[0] if isinstance(status.level, (bytes, bytearray)) and status.level else status.level
    return min(int(level or 0), 3)


def convert(message: Any, layer: LayerSettings) -> TextPercept:
    """Return "<layer>: error motor: too hot; 4 ok", the worst first; value: the worst level, 0 to 3."""
    if not len(message.status):
        raise Refused("no status")
    worst_first = sorted(message.status, key=_level, reverse=True)
    wrong = [status for status in worst_first if _level(status) > 0]
    parts = [f"{_LEVELS[_level(s)]} {clean(s.name)}: {clean(s.message)}"[:200] for s in wrong[:_SHOWN]]
    words = sorted(f"{_LEVELS[_level(s)]} {clean(s.name)}: {words_of(clean(s.message))}"[:200] for s in wrong)
    if len(wrong) > _SHOWN:
        parts.append(f"{len(wrong) - _SHOWN} more")
    if len(wrong) < len(worst_first):
        parts.append(f"{len(worst_first) - len(wrong)} ok")
    text, worst = f"{layer.name}: {'; '.join(parts)}", float(_level(worst_first[0]))
    return TextPercept(origin_of(message), text, worst, words="; ".join(words))
