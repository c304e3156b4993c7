"""Folding of repeats: the same text at the same place, or reading of the body, again is a count on the row."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import product

from memory_node.graph import Node, Position
from memory_node.storage.body import LONGEST

MOST = 50_000
"""Rows that are remembered, 20 to 30 MB of them; what is older is looked up where it is stored."""
LATE = 10 * 1_000_000_000
"""ns: a row is remembered for so much longer than the window, for readings that come late."""
_WIDER = 1.001  # a cell is a little wider than the radius, so that rounding puts no neighbour two cells away


@dataclass(slots=True)
class Held:
    """A row that may be repeated: id, layer, text, position (m) or None, stamp (ns) of its last reading."""

    id: int
    layer: str
    text: str | None
    position: Position | None
    stamp: int


@dataclass(frozen=True)
class Sought:
    """Which stored rows a reading could repeat: their layer and text, ids from first on, last stamps (ns) in a span."""

    layer: str
    text: str
    first: int
    after: int
    before: int


_Cell = tuple[str, str | None, int | None, int | None]


class RepeatFolder:
    """Knows the last rows of each layer, text and place. Not thread-safe: the recorder locks.

    Remembered is what was read within the window, but no more than MOST; a reading that could repeat a row let go of
    is looked up in the store, so nothing is missed.

    Args:
        stored: returns the stored rows that a reading could repeat, whatever their place.
    """

    def __init__(self, stored: Callable[[Sought], Iterable[Held]]) -> None:
        self._stored = stored
        self._rows: OrderedDict[int, Held] = OrderedDict()  # the one read last comes last
        self._cells: dict[_Cell, tuple[Held, ...]] = {}
        self._width = 1.0
        self._window = 0
        self._first: int | None = None
        self._let_go: dict[str, int] = {}  # by layer, stamp of the newest row that is no longer remembered

    def __len__(self) -> int:
        return len(self._rows)

    def find(self, readings: Sequence[Node], radius: float, window_ns: int) -> list[int | None]:
        """Return the id of the row that each reading of one message repeats, None where it is new.

        No two of them repeat one row, since a message tells of a thing once; the nearest pairs go first.

        Args:
            readings: positions in m, or None; unknown places repeat only unknown places.
            radius: m; window_ns: a repeat's stamp lies in [last, last + window].
        """
        self._settle(radius, window_ns)
        pairs = sorted(
            (
                (apart, index, held.id, held)
                for index, reading in enumerate(readings)
                for held in self._candidates(reading)
                if 0 <= reading.stamp - held.stamp <= window_ns
                and (apart := _distance(reading.position, held.position)) <= radius
            ),
            key=lambda pair: pair[:3],
        )
        found: list[int | None] = [None] * len(readings)
        taken: set[int] = set()
        for _, index, id_, held in pairs:
            if found[index] is None and id_ not in taken:
                found[index] = id_
                taken.add(id_)
                self._put(Held(id_, held.layer, held.text, held.position, readings[index].stamp))
        return found

    def remember(self, row: Node) -> None:
        """Note a new row as one that later readings may repeat."""
        if self._first is None:
            self._first = row.id
        self._put(Held(row.id, row.layer, row.text, row.position, row.stamp))

    def forget(self, id: int) -> None:
        """Let no later reading repeat this row: it was refused."""
        if id in self._rows:
            self._drop(id)

    def clear(self) -> None:
        """Forget everything: after a new session, a change of map, or of the episode."""
        self._rows.clear()
        self._cells.clear()
        self._let_go.clear()
        self._first = None

    def _settle(self, radius: float, window_ns: int) -> None:
        """Take radius and window; another radius is another grid."""
        self._window = window_ns
        width = radius * _WIDER or 1.0
        if width != self._width:
            self._width = width
            rows = list(self._rows.values())
            self._rows.clear()
            self._cells.clear()
            for held in rows:
                self._add(held)

    def _candidates(self, reading: Node) -> list[Held]:
        layer, text, x, y = self._cell(reading)
        near: list[_Cell] = [(layer, text, x, y)]
        if x is not None and y is not None:
            near = [(layer, text, x + dx, y + dy) for dx, dy in product((-1, 0, 1), repeat=2)]
        held = [one for cell in near for one in self._cells.get(cell, ())]
        let_go = self._let_go.get(layer)
        if let_go is None or let_go < reading.stamp - self._window or self._first is None or text is None:
            return held
        sought = Sought(layer, text, self._first, reading.stamp - self._window, reading.stamp)
        return held + [one for one in self._stored(sought) if one.id not in self._rows]

    def _put(self, held: Held) -> None:
        if held.id in self._rows:
            self._drop(held.id)
        self._add(held)
        while True:
            oldest = next(iter(self._rows.values()))
            if len(self._rows) <= MOST and oldest.stamp >= held.stamp - self._window - LATE:
                return
            self._let_go[oldest.layer] = max(oldest.stamp, self._let_go.get(oldest.layer, oldest.stamp))
            self._drop(oldest.id)

    def _add(self, held: Held) -> None:
        cell = self._cell(held)
        self._rows[held.id] = held
        self._cells[cell] = (*self._cells.get(cell, ()), held)

    def _drop(self, id: int) -> None:
        held = self._rows.pop(id)
        cell = self._cell(held)
        if left := tuple(one for one in self._cells[cell] if one is not held):
            self._cells[cell] = left
        else:
            del self._cells[cell]

    def _cell(self, row: Node | Held) -> _Cell:
        if row.position is None:
            return row.layer, row.text, None, None
        return row.layer, row.text, math.floor(row.position[0] / self._width), math.floor(row.position[1] / self._width)


class ReadingFolder:
    """Knows the last reading of each layer of the body, the only one that may be repeated: a value that comes back is
    told as a change. Not thread-safe: the recorder locks.
    """

    def __init__(self) -> None:
        self._last: dict[str, tuple[Node, int]] = {}  # the row, and the stamp of its newest reading

    def find(self, reading: Node, radius: float, window_ns: int) -> int | None:
        """Return the id of the row that a reading repeats, None where it is new; radius and window as for perception.

        A row stands for LONGEST at most, so that what is old can be archived.
        """
        row, last = self._last.get(reading.layer, (None, 0))
        if row is None or (row.text, row.value, row.unit) != (reading.text, reading.value, reading.unit):
            return None
        in_time = 0 <= reading.stamp - last <= window_ns and reading.stamp - row.stamp <= LONGEST
        if not in_time or _distance(reading.position, row.position) > radius:
            return None
        self._last[reading.layer] = row, reading.stamp
        return row.id

    def remember(self, row: Node) -> None:
        """Note a new row as the last of its layer."""
        self._last[row.layer] = row, row.stamp

    def forget(self, layer: str) -> None:
        """Let no later reading repeat the layer's last: a row of it was refused."""
        self._last.pop(layer, None)

    def clear(self) -> None:
        """Forget everything: after a new session, a change of map, or of the episode."""
        self._last.clear()


def _distance(a: Position | None, b: Position | None) -> float:
    if a is None or b is None:
        return 0.0 if a is b else math.inf
    return math.dist(a, b)
