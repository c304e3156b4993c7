"""Folding of repeats: the same text at the same place, again, is a count on the row that holds it."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from memory_node.graph import Node, Position

_KEYS = 4096
_PLACES = 16


@dataclass(frozen=True)
class _Last:
    id: int
    position: Position | None
    stamp: int


class RepeatFolder:
    """Remembers the last rows of each (layer, text), bounded in number. Not thread-safe: the recorder locks."""

    def __init__(self) -> None:
        self._last: OrderedDict[tuple[str, str | None], list[_Last]] = OrderedDict()

    def find(self, readings: Sequence[Node], radius: float, window_ns: int) -> list[int | None]:
        """Return the id of the row that each reading of one message repeats, None where it is new.

        No two of them repeat one row, since a message tells of a thing once; the nearest pairs go first.

        Args:
            readings: positions in m, or None; unknown places repeat only unknown places.
            radius: m; window_ns: a repeat's stamp lies in [last, last + window].
        """
        pairs = sorted(
            (apart, index, place)
            for index, reading in enumerate(readings)
            for place, last in enumerate(self._last.get((reading.layer, reading.text), ()))
            if 0 <= reading.stamp - last.stamp <= window_ns
            and (apart := _distance(reading.position, last.position)) <= radius
        )
        found: list[int | None] = [None] * len(readings)
        taken: set[int] = set()
        for _, index, place in pairs:
            key = (readings[index].layer, readings[index].text)
            last = self._last[key][place]
            if found[index] is None and last.id not in taken:
                found[index] = last.id
                taken.add(last.id)
                self._last[key][place] = replace(last, stamp=readings[index].stamp)
                self._last.move_to_end(key)
        return found

    def remember(self, row: Node) -> None:
        """Note a new row as one that later readings may repeat."""
        key = (row.layer, row.text)
        lasts = self._last.setdefault(key, [])
        lasts.append(_Last(row.id, row.position, row.stamp))
        del lasts[:-_PLACES]
        self._last.move_to_end(key)
        while len(self._last) > _KEYS:
            self._last.popitem(last=False)

    def clear(self) -> None:
        """Forget everything: after a new session, a change of map, or a batch that was refused."""
        self._last.clear()


def _distance(a: Position | None, b: Position | None) -> float:
    if a is None or b is None:
        return 0.0 if a is b else math.inf
    return math.dist(a, b)
