"""Rows that may be repeated, in arrays: 70 bytes a row, an eighth of what objects take."""

from __future__ import annotations

import math
from array import array
from collections.abc import Collection

import numpy as np

from memory_node.graph import Position

_CHAINS = 1024  # at first
_WIDER = 1.001  # a cell is a little wider than the radius, so that rounding puts no neighbour two cells away
_NOWHERE = (math.nan, math.nan, math.nan)


class HeldRows:
    """Rows by layer, text and cell of a grid over the floor, in the order in which they were read last.

    A row has a slot from 1 on for as long as it is held; freed slots are used again. Rows of a cell are chained, by the
    way with those of some others. Layer and text are known by a hash of 64 bits of both: of 10^19 pairs that lie
    together one would be taken for the same.

    Args:
        radius: m, which a cell is as wide as.
    """

    def __init__(self, radius: float) -> None:
        self._radius, self._width = radius, radius * _WIDER or 1.0
        self._count = 0
        self._free = 0  # first of the free slots, which are chained
        self._chains = _zeros(_CHAINS)  # first slot of each, 0: none
        # Slot 0 is no row's: there the order of reading begins and ends.
        self._ids, self._keys, self._stamps = (array("q", [0]) for _ in range(3))
        self._x, self._y, self._z = (array("d", [0.0]) for _ in range(3))
        self._layers, self._next, self._older, self._newer = (array("i", [0]) for _ in range(4))
        self._names: dict[str, int] = {}

    def __len__(self) -> int:
        return self._count

    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return sum(one.itemsize * len(one) for one in (*self._arrays(), self._chains))

    def id(self, slot: int) -> int:
        """Id of a row."""
        return self._ids[slot]

    def stamp(self, slot: int) -> int:
        """Stamp (ns) of the last reading of a row."""
        return self._stamps[slot]

    def position(self, slot: int) -> Position | None:
        """Position (m) of a row, None when unknown."""
        x = self._x[slot]
        return None if math.isnan(x) else (x, self._y[slot], self._z[slot])

    def slots_of(self, ids: Collection[int]) -> list[int]:
        """Slots of those rows by id that are held; looks at all."""
        held: list[int] = np.flatnonzero(np.isin(np.frombuffer(self._ids, dtype=np.int64), list(ids))).tolist()
        return held

    def near(self, layer: str, text: str | None, position: Position | None) -> list[int]:
        """Slots of the rows of a layer and text that lie within the radius, and of some more that lie farther."""
        key, after, keys, number = hash((layer, text)), self._next, self._keys, len(self._chains)
        if position is None:
            chains = {hash((key, None, None)) % number}
        else:
            x, y = math.floor(position[0] / self._width), math.floor(position[1] / self._width)
            columns, rows = (x - 1, x, x + 1), (y - 1, y, y + 1)
            chains = {hash((key, i, j)) % number for i in columns for j in rows}
        found = []
        for chain in chains:
            slot = self._chains[chain]
            while slot:
                if keys[slot] == key:
                    found.append(slot)
                slot = after[slot]
        return found

    def add(self, id: int, layer: str, text: str | None, position: Position | None, stamp: int) -> None:
        """Hold a row, as the one read last."""
        if self._count >= len(self._chains):
            self._spread(2 * len(self._chains))
        if not self._free:
            self._grow()
        slot = self._free
        self._free = self._next[slot]
        self._count += 1
        self._ids[slot], self._keys[slot] = id, hash((layer, text))
        self._x[slot], self._y[slot], self._z[slot] = _NOWHERE if position is None else position
        self._layers[slot] = self._names.setdefault(layer, len(self._names))
        self._link(slot)
        self._append(slot, stamp)

    def read(self, slot: int, stamp: int) -> None:
        """Note that a row was read again, last of all."""
        self._take_out(slot)
        self._append(slot, stamp)

    def drop(self, slot: int) -> None:
        """Let go of a row."""
        self._take_out(slot)
        chain = self._chain_of(slot)
        at = self._chains[chain]
        if at == slot:
            self._chains[chain] = self._next[slot]
        else:
            while self._next[at] != slot:
                at = self._next[at]
            self._next[at] = self._next[slot]
        self._ids[slot] = 0
        self._next[slot], self._free = self._free, slot
        self._count -= 1

    def let_go(self, most: int, before: int) -> list[tuple[str, int]]:
        """Drop those read last before a stamp (ns), and so many that `most` are left; return layer and stamp of each.

        Looked at are those that were not read for longest, up to the first that stays.
        """
        gone: list[tuple[str, int]] = []
        while (slot := self._newer[0]) and (self._count > most or self._stamps[slot] < before):
            gone.append((list(self._names)[self._layers[slot]], self._stamps[slot]))
            self.drop(slot)
        return gone

    def regrid(self, radius: float) -> None:
        """Put the rows into cells of another width (m)."""
        if radius != self._radius:
            self._radius, self._width = radius, radius * _WIDER or 1.0
            self._spread(len(self._chains))

    def _grow(self) -> None:
        """Make room for more rows, by an eighth of those there are."""
        first = len(self._ids)
        more = 256 + first // 8
        for one in self._arrays():
            one.frombytes(bytes(one.itemsize * more))
        self._next[first:] = array("i", [*range(first + 1, first + more), 0])
        self._free = first

    def _arrays(self) -> tuple[array[int] | array[float], ...]:
        """Those of the slots."""
        links = self._next, self._older, self._newer
        return self._ids, self._keys, self._stamps, self._x, self._y, self._z, self._layers, *links

    def _spread(self, chains: int) -> None:
        """Chain all rows anew."""
        self._chains = _zeros(chains)
        slot = self._newer[0]
        while slot:
            self._link(slot)
            slot = self._newer[slot]

    def _link(self, slot: int) -> None:
        chain = self._chain_of(slot)
        self._next[slot], self._chains[chain] = self._chains[chain], slot

    def _append(self, slot: int, stamp: int) -> None:
        self._stamps[slot] = stamp
        last = self._older[0]
        self._older[slot], self._newer[slot] = last, 0
        self._newer[last] = self._older[0] = slot

    def _take_out(self, slot: int) -> None:
        older, newer = self._older[slot], self._newer[slot]
        self._newer[older], self._older[newer] = newer, older

    def _chain_of(self, slot: int) -> int:
        x, y, width = self._x[slot], self._y[slot], self._width
        cell = (None, None) if x != x else (math.floor(x / width), math.floor(y / width))
        return hash((self._keys[slot], *cell)) % len(self._chains)


def _zeros(count: int) -> array[int]:
    return array("i", bytes(4 * count))
