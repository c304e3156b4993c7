"""How old rows are, across sessions whose clocks differ, see `sessions.bases`.

No row ages by a jump of the clock, nor by a row that was stamped ahead of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memory_node.storage import sessions

if TYPE_CHECKING:
    import sqlite3

SECOND = 1_000_000_000
NEVER = 2**63 - 1
"""ns: the last time that SQLite can hold."""


class Ages:
    """Ages of rows by session, as they are at one moment."""

    def __init__(self, conn: sqlite3.Connection, session_id: int, now: int) -> None:
        """session_id: the present session; now: its clock, ns."""
        self._now = now
        self._sessions = sessions.bases(conn, session_id, now)

    def cutoff(self, session_id: int, seconds: float) -> int:
        """Return the stamp (ns) at which rows of a session are exactly `seconds` old; earlier ones are older."""
        base, _ = self._sessions.get(session_id, (self._now, ""))
        return clamped(base - round(seconds * SECOND))

    def clock(self, session_id: int) -> str:
        """Return the kind of clock of a session ("ros", "sim", "system" ...), "" when it isn't known."""
        return self._sessions.get(session_id, (0, ""))[1]


def clamped(stamp: int) -> int:
    """Return a time (ns) that SQLite can hold, the nearest."""
    return min(NEVER, max(-NEVER - 1, stamp))
