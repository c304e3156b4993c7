"""Calls a tool as a language model does: JSON in, text out, and errors that say what to write instead."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from memory_node.errors import InvalidArgument, MemoryNodeError, shown
from memory_node.graph import Filter
from memory_node.tools.catalogue import Tool, tool
from memory_node.tools.wording import shortened

if TYPE_CHECKING:
    from memory_node.memory import Memory

log = logging.getLogger(__name__)

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,), "number": (int, float), "integer": (int,), "boolean": (bool,), "array": (list, tuple),
    "object": (dict,),
}  # fmt: skip
_TIMES = ("time_after", "time_before", "last_seen_after", "stamp")


def call_tool(memory: Memory, name: str, arguments: Mapping[str, Any] | str) -> str:
    """Call one of the thirteen tools and return its answer as text.

    Args:
        arguments: a JSON object, as a mapping or as text. In it a number as a time is Unix seconds.

    Returns:
        The result's text. What was wrong comes back as "Error: ..." that names the argument and what is allowed;
        nothing is raised, whatever goes wrong.
    """
    try:
        chosen = tool(name)
        given = _checked(chosen.schema, _parsed(arguments), "")
        return _CALLS.get(chosen.name, _ask)(memory, chosen, given)
    except MemoryNodeError as error:
        return f"Error: {error}"
    except Exception as error:
        log.exception("tool %s failed", shown(name))
        return f"Error: internal error, see the log: {type(error).__name__}"


def _parsed(arguments: Mapping[str, Any] | str) -> dict[str, Any]:
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments or "{}")
        except (ValueError, RecursionError) as error:
            raise InvalidArgument("arguments", f"no valid JSON ({error})") from error
    if not isinstance(arguments, Mapping):
        raise InvalidArgument("arguments", "must be a JSON object")
    return dict(arguments)


def _checked(schema: dict[str, Any], given: dict[str, Any], inside: str) -> dict[str, Any]:
    """Arguments by the schema, null ones left out, numbers as the type asked for."""
    properties: dict[str, Any] = schema.get("properties", {})
    if "properties" not in schema:
        return given
    checked = {}
    for name, value in given.items():
        if name not in properties:
            raise InvalidArgument(inside + str(name)[:60], f"no such argument, allowed are {', '.join(properties)}")
        if value is not None:
            checked[name] = _value(properties[name], value, inside + name)
    for name in schema.get("required", ()):
        if name not in checked:
            raise InvalidArgument(inside + name, f"is missing: {properties[name]['description']}")
    return checked


def _value(schema: dict[str, Any], value: Any, name: str) -> Any:
    kinds = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    value = _converted(kinds, value)
    if not any(isinstance(value, _TYPES[kind]) and (kind == "boolean") == isinstance(value, bool) for kind in kinds):
        raise InvalidArgument(name, f"got {shown(value)}, allowed is {' or '.join(kinds)}: {schema['description']}")
    if isinstance(value, int) and abs(value) >= 2**63:
        raise InvalidArgument(name, f"got {shown(value)}, which is out of range: {schema['description']}")
    if isinstance(value, dict):
        return _checked(schema, value, name + ".")
    if isinstance(value, (list, tuple)):
        return tuple(_value({**schema["items"], "description": schema["description"]}, one, name) for one in value)
    if "enum" in schema and value not in schema["enum"]:
        raise InvalidArgument(name, f"got {shown(value)}, allowed is one of {', '.join(schema['enum'])}")
    return value


def _converted(kinds: list[str], value: Any) -> Any:
    """A number that came as text, or a whole one as a decimal, as models write them now and then."""
    if isinstance(value, str) and "string" not in kinds and ("number" in kinds or "integer" in kinds):
        try:
            value = float(value)
        except ValueError:
            return value
    if isinstance(value, float) and kinds == ["integer"] and math.isfinite(value) and value == int(value):
        return int(value)
    return value


def _ask(memory: Memory, chosen: Tool, given: dict[str, Any]) -> str:
    if "filter" in given:
        given["filter"] = Filter(**_as_times(given["filter"]))
    text: str = getattr(memory, chosen.name)(**_as_times(given)).text
    return text


def _as_times(given: dict[str, Any]) -> dict[str, Any]:
    """Times as strings: the facade reads an int as nanoseconds, JSON writes seconds."""
    numbers = {name: repr(given[name]) for name in _TIMES if isinstance(given.get(name), (int, float))}
    return {**given, **numbers}


def _store(memory: Memory, chosen: Tool, given: dict[str, Any]) -> str:
    return f"Stored as #{memory.store_specific_memory(**_as_times(given))}."


def _start(memory: Memory, chosen: Tool, given: dict[str, Any]) -> str:
    id_ = memory.start_episode(**given)
    return f"Episode #{id_} has begun; end it with end_episode."


def _end(memory: Memory, chosen: Tool, given: dict[str, Any]) -> str:
    ended = memory.end_episode(**given)
    return f"Episode #{ended.id} has ended. {shortened(ended.summary, 1000)}".strip()


_CALLS: dict[str, Callable[[Memory, Tool, dict[str, Any]], str]] = {
    "store_specific_memory": _store, "start_episode": _start, "end_episode": _end,
}  # fmt: skip
