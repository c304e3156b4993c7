"""What a language model answered, as far as it can be stored: it may answer anything."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

from memory_node.ingest.association import normalise_label
from memory_node.ingest.converters.reading import clean
from memory_node.protocols import NamedThing

LONGEST_NAME = 200
"""Characters; what is longer is no name of a thing."""
_SHARE = 0.5


def one_line(text: Any) -> str:
    """Return a text without control characters, halves of characters and line breaks; "" for what is no text."""
    return " ".join(clean(text).replace("\ufffd", "").split()) if isinstance(text, str) else ""


def named_things(answer: Any, ids: Collection[int]) -> list[NamedThing]:
    """Return the things of an answer that have a name and a row among ids that named it, each once a row."""
    usable: dict[tuple[int, str], NamedThing] = {}
    for thing in answer if isinstance(answer, (list, tuple)) else ():
        if not isinstance(thing, NamedThing) or not isinstance(thing.observation_id, int):
            continue
        name = one_line(thing.name)
        label = normalise_label(name)
        if label and len(name) <= LONGEST_NAME and thing.observation_id in ids:
            kind = one_line(thing.entity_type)[:LONGEST_NAME]
            checked = NamedThing(thing.observation_id, name, kind, _share(thing.confidence))
            usable.setdefault((thing.observation_id, label), checked)
    return list(usable.values())


def _share(confidence: Any) -> float:
    """A model's confidence as a number 0..1, whatever it is."""
    known = isinstance(confidence, (int, float)) and abs(confidence) < math.inf
    return float(min(1, max(0, confidence))) if known else _SHARE
