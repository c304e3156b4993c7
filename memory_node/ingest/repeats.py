"""Folding of repeats: the same text at the same place, or reading of the body, again is a count on the row."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from memory_node.graph import Node, Position
from memory_node.ingest.held import HeldRows
from memory_node.storage.body import LONGEST

MOST = 50_000
"""Rows that are remembered, 4 MB of them; what is older is looked up where it is stored."""
LATE = 10 * 1_000_000_000
"""ns: a row is remembered for so much longer than the window, for readings that come late."""


@dataclass(slots=True)
class Held:
    """A stored row that may be repeated: id, layer, text, position (m) or None, stamp (ns) of its last reading."""

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


class RepeatFolder:
    """Knows the last rows of each layer, text and place. Not thread-safe: the recorder locks.

    Remembered is what was read within the window, but no more than MOST; a reading that could repeat a row let go of
    is looked up in the store, so nothing is missed.

    Args:
        stored: returns the stored rows that a reading could repeat, whatever their place.
    """

    def __init__(self, stored: Callable[[Sought], Iterable[Held]]) -> None:
        self._stored = stored
        self._rows = HeldRows(0.0)
        self._window = 0
        self._first: int | None = None
        self._let_go: dict[str, int] = {}  # by layer, stamp of the newest row that is no longer remembered

    def __len__(self) -> int:
        return len(self._rows)

    def nbytes(self) -> int:
        """Bytes that the remembered rows take."""
        return self._rows.nbytes()

    def find(self, readings: Sequence[Node], radius: float, window_ns: int) -> list[int | None]:
        """Return the id of the row that each reading of one message repeats, None where it is new.

        No two of them repeat one row, since a message tells of a thing once; the nearest pairs go first.

        Args:
            readings: positions in m, or None; unknown places repeat only unknown places.
            radius: m; window_ns: a repeat's stamp lies in [last, last + window].
        """
        self._window = window_ns
        self._rows.regrid(radius)
        pairs = [
            (apart, index, id, slot, position)
            for index, reading in enumerate(readings)
            for id, slot, position, stamp in self._candidates(reading)
            if 0 <= reading.stamp - stamp <= window_ns and (apart := _distance(reading.position, position)) <= radius
        ]
        found: list[int | None] = [None] * len(readings)
        taken: set[int] = set()
        for _, index, id, slot, position in sorted(pairs):
            if found[index] is None and id not in taken:
                found[index] = id
                taken.add(id)
                self._read_again(readings[index], id, slot, position)
        if taken:
            self._let_go_of_old(max(reading.stamp for reading in readings))
        return found

    def remember(self, row: Node) -> None:
        """Note a new row as one that later readings may repeat."""
        if self._first is None:
            self._first = row.id
        self._rows.add(row.id, row.layer, row.text, row.position, row.stamp)
        self._let_go_of_old(row.stamp)

    def forget(self, ids: Collection[int]) -> None:
        """Let no later reading repeat these rows: they were refused."""
        for slot in self._rows.slots_of(ids):
            self._rows.drop(slot)

    def clear(self) -> None:
        """Forget everything: after a new session, a change of map, or of the episode."""
        self._rows = HeldRows(0.0)
        self._let_go.clear()
        self._first = None

    def _candidates(self, reading: Node) -> list[tuple[int, int, Position | None, int]]:
        """Id, slot (0: of none), position and last stamp of rows that a reading may repeat."""
        rows, layer, text = self._rows, reading.layer, reading.text
        held = [
            (rows.id(slot), slot, rows.position(slot), rows.stamp(slot))
            for slot in rows.near(layer, text, reading.position)
        ]
        let_go = self._let_go.get(layer)
        if let_go is None or let_go < reading.stamp - self._window or self._first is None or text is None:
            return held
        known = {row[0] for row in held}
        sought = Sought(layer, text, self._first, reading.stamp - self._window, reading.stamp)
        return held + [(one.id, 0, one.position, one.stamp) for one in self._stored(sought) if one.id not in known]

    def _read_again(self, reading: Node, id: int, slot: int, position: Position | None) -> None:
        if slot:
            self._rows.read(slot, reading.stamp)
        else:
            self._rows.add(id, reading.layer, reading.text, position, reading.stamp)

    def _let_go_of_old(self, now: int) -> None:
        for layer, stamp in self._rows.let_go(MOST, now - self._window - LATE):
            self._let_go[layer] = max(stamp, self._let_go.get(layer, stamp))


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
