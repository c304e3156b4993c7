"""How old rows are, across sessions whose clocks differ.

A row's age is what its own session's clock measured after it, plus what the later sessions measured, plus the time
between sessions. A jump of the clock begins a session and counts nothing, so no row ages by it; nor by a row that was
stamped ahead of the clock.
"""

from __future__ import annotations

import sqlite3

SECOND = 1_000_000_000
NEVER = 2**63 - 1
"""ns: the last time that SQLite can hold."""
FAR = 30 * 86_400 * SECOND
"""ns between the stamps of two sessions of one clock beyond which it can't be said to have gone on."""


class Ages:
    """Ages of rows by session, as they are at one moment."""

    def __init__(self, conn: sqlite3.Connection, session_id: int, now: int) -> None:
        """session_id: the present session; now: its clock, ns."""
        self._now = now
        self._base: dict[int, int] = {}
        self._clock: dict[int, str] = {}
        later: tuple[int, str, int, str] | None = None
        elapsed = 0
        rows = conn.execute(
            "SELECT id, started_wall, clock, start_stamp, last_stamp, last_wall, reason FROM session"
            " WHERE id <= ? ORDER BY id DESC",
            (session_id,),
        )
        for id_, started_wall, clock, start, last, last_wall, reason in rows:
            if later is None and id_ == session_id:
                last = now
            elif later is not None:
                elapsed += _between(clock, last, last_wall, later)
            # A row of stamp s in this session is `elapsed + last - s` old.
            self._base[id_] = elapsed + last
            self._clock[id_] = clock
            elapsed += max(0, last - start)
            later = (started_wall, clock, start, reason)

    def cutoff(self, session_id: int, seconds: float) -> int:
        """Return the stamp (ns) at which rows of a session are exactly `seconds` old; earlier ones are older."""
        base = self._base.get(session_id, self._now)
        return clamped(base - round(seconds * SECOND))

    def clock(self, session_id: int) -> str:
        """Return the kind of clock of a session ("ros", "sim", "system" ...), "" when it isn't known."""
        return self._clock.get(session_id, "")


def clamped(stamp: int) -> int:
    """Return a time (ns) that SQLite can hold, the nearest."""
    return min(NEVER, max(-NEVER - 1, stamp))


def _between(clock: str, last: int, last_wall: int, later: tuple[int, str, int, str]) -> int:
    """Time from the last row of a session to the start of the next, ns."""
    started_wall, later_clock, start, reason = later
    if reason.startswith("clock"):
        return 0
    if clock == later_clock and 0 <= start - last <= FAR:
        return start - last
    return max(0, started_wall - last_wall)
