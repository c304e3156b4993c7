"""Entities as columns, to be ranked and counted by the thousand; only the best of them are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from memory_node.graph import Kind
from memory_node.index.view import RowFilter, View

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Things:
    """Entities, one a place of every array.

    Attributes:
        ids, names: of the entity and of its text, which is its label.
        fits: how well the label names what is asked for, 0..1.
        last_seen: ns.
        confidence: 0..1.
        positions: (N, 3) m; NaN where unknown.
        maps: ids of maps.
        sightings: how often each was seen.
    """

    ids: NDArray[np.int64]
    names: NDArray[np.int64]
    fits: NDArray[np.float64]
    last_seen: NDArray[np.int64]
    confidence: NDArray[np.float64]
    positions: NDArray[np.float64]
    maps: NDArray[np.int16]
    sightings: NDArray[np.uint32]

    def __len__(self) -> int:
        return len(self.ids)

    def where(self, wanted: Flags | NDArray[np.int64]) -> Things:
        """Those that are wanted: flags (N,), or places in the order that is wanted."""
        return replace(self, **{field.name: getattr(self, field.name)[wanted] for field in fields(self)})


def select(view: View, rows: RowFilter, fits: Mapping[int, float] | None) -> Things:
    """Return the entities that pass a filter, in no order.

    Args:
        fits: by text id of their label, those of other labels are left out; None: all, and all fit.
    """
    columns = view.columns
    slots = view.select(rows) if fits is None else view.slots_of_texts(np.fromiter(fits, np.int64, len(fits)))
    slots = slots[columns["kind"][slots] == Kind.ENTITY]
    slots = slots[view.passes(rows, slots)]
    names = columns["text"][slots].astype(np.int64)
    scores = np.ones(len(slots))
    if fits is not None:
        known = sorted(fits)
        scores = np.array([fits[name] for name in known], dtype=np.float64)[np.searchsorted(known, names)]
    return Things(
        ids=columns["id"][slots], names=names, fits=scores, last_seen=columns["last_stamp"][slots],
        confidence=columns["confidence"][slots], maps=columns["map"][slots], sightings=columns["repeats"][slots],
        positions=np.stack([columns[axis][slots] for axis in "xyz"], axis=1),
    )  # fmt: skip
