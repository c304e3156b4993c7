"""The thirteen tools as a language model is told of them: one table, printed in three forms."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from memory_node.errors import InvalidArgument
from memory_node.graph import Kind
from memory_node.tools.arguments import DEFAULT_LIMIT, MOST

FORMATS = ("openai", "json-schema", "text", "guidance")

GUIDANCE = """\
How to use the memory:
- First decide what kind of question it is. About the world (what, where, when, how many): a perception tool.
  About the robot itself (battery, temperature, faults, load): body_status; no perception tool returns body readings.
  Something to do: plan it, and ask the memory only for what the plan needs.
- "Where is X": locate. "How many X": entity_query. "What happened then": temporal_query.
  "What is here": get_current_context or spatial_query. "What was seen or said about X": semantic_search.
  "All about X", or what went on when the body changed: recall. "What did you do": episode_summary.
- A sudden change of the body is an event: temporal_query with filter.layers ["events"] lists them in time, and recall
  with the id of one, "#12", tells what was seen and said around it.
- Open an episode (start_episode) when a task of several steps begins and end it (end_episode) when it is done or
  given up; a subtask is an episode inside. Answering a question needs no episode.
- store_specific_memory is for what no sensor will bring again: instructions, agreements, results.
- An id in an answer, "#12", can be asked for in place of words: locate gives its place, recall all about it,
  semantic_search the row, entity_query the thing. Ids of episodes, as numbers, go to episode_summary and filter.
- "seen from" is where the robot stood, "at" is where the thing is.
  Trust a score or confidence below 0.3 little. Nothing found means that nothing was stored, not that nothing is there.
- Times: "-10m", "yesterday", "this morning", ISO 8601, or Unix seconds. Distances are metres in the map frame."""


@dataclass(frozen=True)
class Tool:
    """One tool: name, what it does, when to use it and when another, phase (planning, running or both), parameters.

    `parameters` are JSON schemas by name; `required` names those without a default.
    """

    name: str
    what: str
    when: str
    phase: str
    parameters: dict[str, dict[str, Any]] = field(default_factory=dict)
    required: tuple[str, ...] = ()

    @property
    def description(self) -> str:
        """What it does, when to use it, and for which phase, in one paragraph."""
        return f"{self.what} {self.when} For {PHASES[self.phase]}."

    @property
    def schema(self) -> dict[str, Any]:
        """JSON schema of the arguments."""
        required = {"required": list(self.required)} if self.required else {}
        return {"type": "object", "properties": self.parameters, **required, "additionalProperties": False}


PHASES = {"planning": "planning", "running": "running a plan", "both": "planning and running"}


def _text(description: str, **more: Any) -> dict[str, Any]:
    return {"type": "string", "description": description, **more}


def _number(description: str, **more: Any) -> dict[str, Any]:
    return {"type": "number", "description": description, **more}


def _whole(description: str, **more: Any) -> dict[str, Any]:
    return {"type": "integer", "description": description, **more}


def _names(description: str, **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": {"type": "string", **more}, "description": description}


def _point(description: str, least: int = 2) -> dict[str, Any]:
    return {
        "type": "array", "items": {"type": "number"}, "minItems": least, "maxItems": 3, "description": description,
    }  # fmt: skip


_FORMS = '"-10m", "yesterday", ISO 8601, or Unix seconds'
_TIME = {"type": ["string", "number"]}
_LIMIT = _whole(f"Most results, 1 to {MOST}; 0 is {DEFAULT_LIMIT}.", minimum=0)
FILTER: dict[str, Any] = {
    "type": "object",
    "description": "All conditions hold together; leave out what does not matter.",
    "properties": {
        "kinds": _names("Node kinds.", enum=[kind.label for kind in Kind if kind is not Kind.BELIEF]),
        "layers": _names("Names of layers (topics); none is every layer of perception."),
        "time_after": {**_TIME, "description": f"Earliest time: {_FORMS}."},
        "time_before": {**_TIME, "description": f"Latest time: {_FORMS}."},
        "center": _point("Centre of a region, [x, y] for any height or [x, y, z], m; needs radius."),
        "radius": _number("Radius of the region, m.", exclusiveMinimum=0),
        "episode_id": _whole("Only what belongs to this episode or one inside it; 0 is any.", minimum=0),
        "min_confidence": _number("Least confidence, 0 to 1.", minimum=0, maximum=1),
        "map_id": _text("Map that is meant, instead of the present one."),
        "any_map": {"type": "boolean", "description": "Results of every map."},
    },
    "additionalProperties": False,
}

TOOLS: tuple[Tool, ...] = (
    Tool(
        "semantic_search",
        "Finds observations, summaries and things that mean or say something like the query, best first.",
        "Use it for what was seen or said; for the place of a thing use locate, for a stretch of time temporal_query.",
        "both",
        {"query": _text("Words to look for, or the id of a row, #12."), "limit": _LIMIT, "filter": FILTER},
        ("query",),
    ),
    Tool(
        "spatial_query",
        "Lists what was observed near a point, nearest first.",
        "Use it when the place is known; around the robot itself get_current_context tells more.",
        "both",
        {
            "center": _point("[x, y] for any height, or [x, y, z], m."),
            "radius": _number("Radius, m.", exclusiveMinimum=0),
            "limit": _LIMIT,
            "filter": FILTER,
        },
        ("center", "radius"),
    ),
    Tool(
        "temporal_query",
        "Lists what was observed in a span of time, in order of time.",
        "Use it for what happened when, before or after something; give the window in filter or last_n_minutes.",
        "both",
        {
            "filter": FILTER,
            "order": _text("Which comes first.", enum=["newest", "oldest"]),
            "last_n_minutes": _number("Only the last so many minutes; 0 is no bound.", minimum=0),
            "limit": _LIMIT,
        },
    ),
    Tool(
        "episode_summary",
        "Tells of episodes: name, state, span, place, summary and those nested inside.",
        "Use it for what was done in a task; by id, by words of its name, or the last ones.",
        "planning",
        {
            "episode_id": _whole("One episode; 0 is chosen by the other arguments.", minimum=0),
            "task_name": _text("Words that the name holds, in any case."),
            "last_n": _whole("The latest so many; 0 is 1.", minimum=0),
        },
    ),
    Tool(
        "get_current_context",
        "Tells where the robot is, what is near with distance and bearing, what happened lately, and how the body is.",
        "Use it at the start of planning and after moving.",
        "both",
        {
            "radius": _number("What counts as near, m; 0 is 3.", minimum=0),
            "recent_minutes": _number("What counts as lately, minutes; 0 is 5.", minimum=0),
        },
    ),
    Tool(
        "search_gists",
        "Finds summaries of places and times, best first; without a query the newest.",
        "Use it for the gist of an area or of a longer time; for single facts use semantic_search.",
        "planning",
        {"query": _text("Words to look for; empty is the newest."), "limit": _LIMIT, "filter": FILTER},
    ),
    Tool(
        "entity_query",
        "Lists the things that are known, with place, times seen, and whether they moved or are missing.",
        "Use it to count things or to list a kind of thing; for one place to go to use locate.",
        "both",
        {
            "name": _text("Words of the name, or the id of a thing, #12; empty is any."),
            "entity_type": _text("Class of the thing; empty is any."),
            "filter": FILTER,
            "last_seen_after": {**_TIME, "description": f"Seen since: {_FORMS}."},
            "limit": _LIMIT,
        },
    ),
    Tool(
        "locate",
        "Says where a thing, an area or a happening is: one place to drive to, and what else it could be.",
        "Use it before going somewhere; it says so when there is no good evidence.",
        "both",
        {"concept": _text("What to find, in words, or an id, #12."), "filter": FILTER},
        ("concept",),
    ),
    Tool(
        "recall",
        "Tells everything known about something: things, observations, summaries and the place.",
        "Use it for broad questions, and for what went on when the body changed; otherwise a narrower tool is shorter.",
        "planning",
        {"query": _text("Question or words, or an id, #12."), "limit": _LIMIT, "filter": FILTER},
        ("query",),
    ),
    Tool(
        "body_status",
        "Tells the latest reading of each sense of the robot's own body, its age, and how it changes.",
        "Use it for battery, temperature, faults and load, before and during long tasks.",
        "both",
        {"layers": _names("Internal layers to read; none is all.")},
    ),
    Tool(
        "store_specific_memory",
        "Stores one observation in words and answers when it is safe on disk.",
        "Use it for what no sensor will bring: instructions, agreements, results of a task.",
        "running",
        {
            "text": _text("What to remember."),
            "layer": _text("Layer to store it in; empty is notes."),
            "position": _point("[x, y, z] of what it is about, m; left out: where the robot is.", least=3),
            "stamp": {**_TIME, "description": f"When it happened: {_FORMS}; left out: now."},
            "confidence": _number("How sure it is, 0 to 1.", minimum=0, maximum=1),
            "importance": _number("How much it matters, 0 to 1.", minimum=0, maximum=1),
            "metadata": {"type": "object", "description": "Anything to keep with it."},
        },
        ("text",),
    ),
    Tool(
        "start_episode",
        "Begins an episode: what is stored from now on belongs to it.",
        "Use it when a task of several steps begins; inside another one it becomes a subtask.",
        "running",
        {
            "name": _text("Name of the task."),
            "parent_id": _whole("Episode that it is a part of; 0 is the one that runs.", minimum=0),
            "metadata": {"type": "object", "description": "Anything to keep with it."},
        },
        ("name",),
    ),
    Tool(
        "end_episode",
        "Ends an episode with those inside it, and summarises it.",
        "Use it when the task is done, or given up.",
        "running",
        {
            "id": _whole("Episode to end; 0 is the one that runs.", minimum=0),
            "status": _text("How it ended.", enum=["completed", "abandoned"]),
        },
    ),
)


def tool(name: str) -> Tool:
    """Return a tool by name; raise InvalidArgument naming those there are."""
    for one in TOOLS:
        if one.name == name:
            return one
    raise InvalidArgument("name", f"no tool {name!r:.80}; there are {', '.join(t.name for t in TOOLS)}")


def definitions(format: str, only: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Return the definitions of the tools, or of those named, as plain values.

    Args:
        format: "openai" (function calling) or "json-schema" (name, description, phase and the schema of the arguments).
        only: names; empty: all.
    """
    chosen = _chosen(only)
    if format == "openai":
        return [
            {"type": "function", "function": {"name": t.name, "description": t.description, "parameters": t.schema}}
            for t in chosen
        ]
    if format == "json-schema":
        return [
            {"name": t.name, "description": t.description, "phase": t.phase, "parameters": t.schema} for t in chosen
        ]
    raise InvalidArgument("format", f"got {format!r}, allowed is openai or json-schema")


def render(format: str, only: Sequence[str] = ()) -> str:
    """Return what `memory tools` prints: a JSON list of definitions, text that ends with the guidance, or that alone.

    Args:
        format: one of FORMATS. The lists have no place for the guidance, which is for the system prompt.
        only: names of tools; empty: all.
    """
    if format not in FORMATS:
        raise InvalidArgument("format", f"got {format!r}, allowed is one of {', '.join(FORMATS)}")
    if format == "guidance":
        return GUIDANCE
    if format != "text":
        return json.dumps(definitions(format, only), indent=2, ensure_ascii=False)
    chosen = _chosen(only)
    filters = [_filter_in_words()] if any(FILTER in one.parameters.values() for one in chosen) else []
    return "\n\n".join([*map(_in_words, chosen), *filters, GUIDANCE])


def _chosen(only: Sequence[str]) -> list[Tool]:
    """The tools of those names, each once, or all."""
    return [tool(name) for name in dict.fromkeys(only)] or list(TOOLS)


def _in_words(one: Tool) -> str:
    return "\n".join([f"{one.name}: {one.description}", *_parameters(one.parameters, one.required)])


def _filter_in_words() -> str:
    return "\n".join([f"filter: {FILTER['description']}", *_parameters(FILTER["properties"])])


def _parameters(parameters: dict[str, dict[str, Any]], required: Sequence[str] = ()) -> list[str]:
    lines = []
    for name, schema in parameters.items():
        kind = schema["type"] if isinstance(schema["type"], str) else " or ".join(schema["type"])
        told = "see below." if schema is FILTER else schema["description"]
        choices = f" One of: {', '.join(schema['enum'])}." if "enum" in schema else ""
        lines.append(f"  {name} ({kind}{', required' if name in required else ''}): {told}{choices}")
    return lines
