"""Checks of what callers hand in: each raises InvalidArgument naming the argument."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from memory_node.config import MAX_NAME
from memory_node.errors import InvalidArgument, shown
from memory_node.graph import Position
from memory_node.ingest.track import is_sane_position

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_TEXT = 100_000
"""Longest text that is stored, characters."""

_INT64 = 1 << 63


def repaired(text: str) -> str:
    """Return text as UTF-8 can hold it: a lone surrogate becomes "?"."""
    return text.encode("utf-8", "replace").decode("utf-8")


def checked_text(argument: str, text: Any) -> str:
    """Return the text as SQLite and FTS can hold it: no lone surrogates, no NUL. Blank or endless texts are refused."""
    if not isinstance(text, str):
        raise InvalidArgument(argument, f"got {type(text).__name__}, allowed is a string")
    if len(text) > MAX_TEXT:
        raise InvalidArgument(argument, f"has {len(text)} characters, allowed are at most {MAX_TEXT}")
    clean = repaired(text).replace("\0", "")
    if not clean.strip():
        raise InvalidArgument(argument, "is blank")
    return clean


def checked_name(argument: str, name: Any) -> str:
    """Return a short name of one line, such as a layer's."""
    clean = checked_text(argument, name).strip()
    if len(clean) > MAX_NAME or not clean.isprintable():
        raise InvalidArgument(argument, f"got {clean[:40]!r}, allowed are at most {MAX_NAME} printable characters")
    return clean


def checked_position(argument: str, position: Any) -> Position | None:
    """Return (x, y, z) as floats, or None. Raises on another length and on what is not finite."""
    if position is None:
        return None
    try:
        x, y, z = (float(value) for value in position)
    except (TypeError, ValueError, OverflowError):
        raise InvalidArgument(argument, f"got {shown(position)}, allowed is (x, y, z) in m, or None") from None
    if not is_sane_position((x, y, z)):
        raise InvalidArgument(argument, f"got {shown(position)}, which is not finite or out of range")
    return (x, y, z)


def checked_share(argument: str, value: Any) -> float:
    """Return a number of 0..1."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not 0.0 <= value <= 1.0:
        raise InvalidArgument(argument, f"got {shown(value)}, allowed is 0 to 1")
    return float(value)


def checked_stamp(argument: str, stamp: Any) -> int:
    """Return a time in ns that SQLite can hold; zero and negative times are legal."""
    if isinstance(stamp, bool) or not isinstance(stamp, (int, np.integer)) or not -_INT64 <= stamp < _INT64:
        raise InvalidArgument(argument, f"got {shown(stamp)}, allowed is a whole number of nanoseconds")
    return int(stamp)


def checked_id(argument: str, id: Any) -> int:
    """Return an id; 0 means none."""
    if isinstance(id, bool) or not isinstance(id, (int, np.integer)) or not 0 <= id < _INT64:
        raise InvalidArgument(argument, f"got {shown(id)}, allowed is an id, or 0")
    return int(id)


def checked_metadata(argument: str, metadata: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Return metadata that JSON and UTF-8 can hold, lone surrogates repaired."""
    if metadata is None:
        return {}
    try:
        if not isinstance(metadata, Mapping):
            raise ValueError("allowed is a mapping")
        return dict(json.loads(repaired(json.dumps(dict(metadata), allow_nan=False, ensure_ascii=False))))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidArgument(argument, f"is not a JSON object: {error}") from None


def checked_vector(argument: str, vector: Sequence[float] | NDArray[Any], dim: int | None) -> NDArray[np.float32]:
    """Return a vector of unit length, float32 of shape (dim,)."""
    try:
        array = np.asarray(vector, dtype=np.float32)
    except (TypeError, ValueError, OverflowError):
        raise InvalidArgument(argument, "is not an array of numbers") from None
    if array.ndim != 1 or not array.size or (dim is not None and array.size != dim):
        wanted = "(D,)" if dim is None else f"({dim},)"
        raise InvalidArgument(argument, f"has shape {array.shape}, allowed is {wanted}")
    norm = float(np.linalg.norm(array))
    if not math.isfinite(norm) or norm == 0.0:
        raise InvalidArgument(argument, "is zero or not finite")
    return np.ascontiguousarray(array / norm)
