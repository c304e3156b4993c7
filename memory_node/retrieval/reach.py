"""How far around its place each gist tells of: read once, for no gist's radius ever changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from memory_node.storage import gists

if TYPE_CHECKING:
    import sqlite3


class Reach:
    """Radii of all gists, as many as were ever asked for. Safe to use from any number of threads."""

    def __init__(self) -> None:
        self._known = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float64)

    def widest(self, conn: sqlite3.Connection) -> float:
        """Return the largest radius (m) of any gist, 0 without any."""
        return float(self._read(conn)[1].max(initial=0.0))

    def of(self, conn: sqlite3.Connection, ids: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the radius (m) of each gist, 0 of what is none."""
        known, radii = self._read(conn)
        at = np.minimum(np.searchsorted(known, ids), max(0, len(known) - 1))
        return np.where(known[at] == ids, radii[at], 0.0) if len(known) else np.zeros(len(ids))

    def _read(self, conn: sqlite3.Connection) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Ids, ascending, and radii. A thread whose snapshot is older may put fewer in place; they are read again."""
        ids, radii = self._known
        newer = gists.radii_after(conn, int(ids[-1]) if len(ids) else 0)
        if newer:
            more_ids, more_radii = zip(*newer, strict=True)
            ids, radii = np.append(ids, np.array(more_ids, dtype=np.int64)), np.append(radii, more_radii)
            self._known = ids, radii
        return ids, radii
