"""Any other type: the fields that the layer names, or all scalars and strings, as short text."""

from __future__ import annotations

import numbers
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from memory_node.ingest.converters import Refused, TextPercept
from memory_node.ingest.converters.reading import clean, number, origin_of, short, words_of
from memory_node.ingest.layers import LayerSettings

_SHOWN = 16
_LONGEST = 200
_AS_LIST = 8


def convert(message: Any, layer: LayerSettings) -> TextPercept:
    """Return "<layer>: a.b 1.5, c open"; the value is that of the only number, or of the first of the named fields.

    Without named fields the first 16 that say something are told, and how many more there are.

    Raises:
        Refused: a named field does not exist, or nothing is left to say (empty strings, NaN).
    """
    found = [(path, _get(message, path)) for path in layer.fields] if layer.fields else list(_walk(message, ""))
    said = [(path, text) for path, value in found if (text := _say(value))]
    if not said:
        raise Refused("nothing to say")
    values = tuple(n for _, value in found for n in _numbers(value))
    value = values[0] if values and (layer.fields or len(values) == 1) else None
    shown = said if layer.fields else said[:_SHOWN]
    text = said[0][1] if len(said) == 1 else ", ".join(f"{path} {text}" for path, text in shown)
    text += _more(len(said) - len(shown))
    words = ", ".join(f"{path} {word}" for path, field in found if (word := _words(field)))
    return TextPercept(origin_of(message), f"{layer.name}: {text}", value, values=values, words=words)


def field_names(message: Any) -> tuple[str, ...]:
    """Field names of a message of rclpy or rosbags; () when the value is no message."""
    if hasattr(message, "get_fields_and_field_types"):
        return tuple(message.get_fields_and_field_types())
    if is_dataclass(message):
        return tuple(f.name for f in fields(message) if "ClassVar" not in str(f.type))  # constants of rosbags' types
    return ()


def _get(message: Any, path: str) -> Any:
    value = message
    for part in path.split("."):
        try:
            value = _plain(value[int(part)] if part.isdigit() else getattr(value, part))
        except (AttributeError, IndexError, TypeError) as error:
            raise Refused(f"no field {path!r}; there are: {', '.join(field_names(message))}") from error
    return value


def _walk(message: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    for name in field_names(message):
        if not prefix and name == "header":
            continue
        value, path = _plain(getattr(message, name)), f"{prefix}{name}"
        if isinstance(value, (str, numbers.Number)) or _is_bool(value):
            yield path, value
        else:
            yield from _walk(value, f"{path}.")


def _plain(value: Any) -> Any:
    """A field as it is; rclpy gives a byte as bytes, rosbags as a number."""
    return value[0] if isinstance(value, bytes) and len(value) == 1 else value


def _numbers(value: Any) -> list[float]:
    """The finite numbers of a field; of a list those that are told."""
    if isinstance(value, numbers.Number):
        return [n] if (n := number(value)) is not None else []
    if isinstance(value, (str, bytes)):
        return []
    if field_names(value):
        return [n for _, item in _walk(value, "") for n in _numbers(item)]
    try:
        items = [_plain(item) for _, item in zip(range(_AS_LIST), value, strict=False)]
    except TypeError:
        return []
    return [n for item in items if isinstance(item, numbers.Number) and (n := number(item)) is not None]


def _words(value: Any) -> str:
    """What a field says that is not a number; of a list that of the items told."""
    if _is_bool(value) or isinstance(value, (str, bytes)):
        return words_of(_say(value))
    if isinstance(value, numbers.Number):
        return ""
    if field_names(value):
        return ", ".join(f"{path} {text}" for path, item in _walk(value, "") if (text := _words(item)))[:_LONGEST]
    try:
        items = [_plain(item) for _, item in zip(range(_AS_LIST), value, strict=False)]
    except TypeError:
        return ""
    return ", ".join(words_of(_say(item)) for item in items if isinstance(item, (str, bytes)))


def _is_bool(value: Any) -> bool:
    return type(value).__name__ in ("bool", "bool_")


def _say(value: Any) -> str:
    """A value as text; "" when there is nothing in it."""
    if _is_bool(value):
        return str(bool(value)).lower()
    if isinstance(value, numbers.Integral):
        return str(int(value))
    if isinstance(value, numbers.Number):
        finite = number(value)
        return "" if finite is None else short(finite)
    if isinstance(value, (str, bytes)):
        return clean(value).strip()[:_LONGEST]
    if field_names(value):
        return ", ".join(f"{path} {text}" for path, item in _walk(value, "") if (text := _say(item)))[:_LONGEST]
    try:
        items = [text for _, item in zip(range(_AS_LIST), value, strict=False) if (text := _say(_plain(item)))]
    except TypeError:
        return ""
    return f"[{', '.join(items)}{_more(len(value) - _AS_LIST)}]" if items else ""


def _more(number: int) -> str:
    return f" and {number} more" if number > 0 else ""
