"""Reading fields that may be missing, of another era, or nonsense."""

from __future__ import annotations

import math
import re
from typing import Any

from memory_node.graph import Position
from memory_node.ingest.converters import Origin

MAX_TEXT = 65_536
"""Longest text kept, characters; a longer one is cut, and its metadata says how long it was."""

_NOT_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_SURROGATES = re.compile("[\ud800-\udfff]")
_NUMBER = re.compile(r"(?<![\w.-])[-+]?\d+(\.\d+)?(e[-+]?\d+)?")


def origin_of(message: Any) -> Origin:
    """Return the header's stamp and frame, as they are; of a type without header neither.

    What an array of detections leaves unset is that of its first detection that has it.
    """
    origin, parts = _header_of(message), getattr(message, "detections", ())
    for part in parts if isinstance(parts, (list, tuple)) else ():
        if origin.stamp and origin.frame:
            break
        own = _header_of(part)
        origin = Origin(origin.stamp or own.stamp or origin.stamp, origin.frame or own.frame)
    return origin


def _header_of(message: Any) -> Origin:
    header = getattr(message, "header", None)
    stamp = getattr(header, "stamp", None)
    if header is None or stamp is None:
        return Origin()
    nanosec = getattr(stamp, "nanosec", 0)
    return Origin(int(stamp.sec) * 1_000_000_000 + int(nanosec), clean(header.frame_id).strip().lstrip("/")[:128])


def clean(text: Any) -> str:
    """Return text that SQLite and UTF-8 can hold: lone surrogates become U+FFFD, control characters are left out."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    return _NOT_TEXT.sub("", _SURROGATES.sub("\ufffd", str(text)))


def words_of(text: str) -> str:
    """Return text without the numbers that stand for themselves: "81.2" but not the one in "arm_1" or "E12"."""
    return _NUMBER.sub("", text)


def number(value: Any) -> float | None:
    """Return a finite float, or None when the value is not one."""
    try:
        result = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return result if math.isfinite(result) else None


def limit(value: Any) -> float | None:
    """Return the upper limit of a sensor, or None when nobody set it: zero, or not finite."""
    result = number(value)
    return result if result is not None and result > 0.0 else None


def point(value: Any) -> Position | None:
    """Return (x, y, z) of a Point or Vector3, or None when one of them is not finite."""
    x, y, z = number(value.x), number(value.y), number(value.z)
    return None if x is None or y is None or z is None else (x, y, z)


def raw_point(value: Any) -> Position:
    """Return (x, y, z) of a Point as it is, not finite perhaps."""
    return float(value.x), float(value.y), float(value.z)


def short(value: float) -> str:
    """A number for people: six significant digits."""
    return f"{value:.6g}"
