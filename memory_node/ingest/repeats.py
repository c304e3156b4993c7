"""Folding of repeats: the same text at the same place, again, is a count on the row that holds it."""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import dataclass, replace

from memory_node.graph import Position

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
        self._last: OrderedDict[tuple[str, str], list[_Last]] = OrderedDict()

    def find(
        self, layer: str, text: str, position: Position | None, stamp: int, radius: float, window_ns: int
    ) -> int | None:
        """Return the id of the row that this reading repeats, and remember the reading; None when it is new.

        Args:
            position: m, or None; unknown places repeat only unknown places.
            radius: m; window_ns: a repeat's stamp lies in [last, last + window].
        """
        lasts = self._last.get((layer, text), [])
        near = [
            (_distance(position, last.position), place)
            for place, last in enumerate(lasts)
            if 0 <= stamp - last.stamp <= window_ns and _distance(position, last.position) <= radius
        ]
        if not near:
            return None
        _, place = min(near)
        lasts[place] = replace(lasts[place], stamp=stamp)
        self._last.move_to_end((layer, text))
        return lasts[place].id

    def remember(self, layer: str, text: str, position: Position | None, stamp: int, id: int) -> None:
        """Note a new row as one that later readings may repeat."""
        lasts = self._last.setdefault((layer, text), [])
        lasts.append(_Last(id, position, stamp))
        del lasts[:-_PLACES]
        self._last.move_to_end((layer, text))
        while len(self._last) > _KEYS:
            self._last.popitem(last=False)

    def clear(self) -> None:
        """Forget everything: after a new session, a change of map, or a batch that was refused."""
        self._last.clear()


def _distance(a: Position | None, b: Position | None) -> float:
    if a is None or b is None:
        return 0.0 if a is b else math.inf
    return math.dist(a, b)
