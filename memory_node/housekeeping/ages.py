"""How old rows are, across sessions whose clocks differ.

A row's age is what its own session's clock measured after it, plus what the later sessions measured, plus the time between sessions.
A jump of the clock begins a session and counts nothing, so no row ages by it.
"""

from __future__ import annotations

import sqlite3

from memory_node.graph import NO_ID

SECOND = 1_000_000_000


class Ages:
    """Ages of rows by session, as they are at one moment."""

    def __init__(self, conn: sqlite3.Connection, session_id: int, now: int) -> None:
        """session_id: the present session; now: its clock, ns."""
        self._now = now
        self._present = session_id
        self._base: dict[int, int] = {}
        later: tuple[int, str, int, int, str] | None = None
        elapsed = 0
        rows = conn.execute(
            "SELECT id, started_wall, clock, start_stamp, last_stamp, last_wall, reason FROM session"
            " WHERE id <= ? ORDER BY id DESC",
            (session_id,),
        )
        for id_, started_wall, clock, start, last, last_wall, reason in rows:
            if later is None:
                last = max(last, now)
            else:
                elapsed += _between(clock, last, last_wall, later)
            # A row of stamp s in this session is `elapsed + last - s` old.
            self._base[id_] = elapsed + last
            elapsed += max(0, last - start)
            later = (started_wall, clock, start, id_, reason)

    def cutoff(self, session_id: int, seconds: float) -> int:
        """Return the stamp (ns) at which rows of a session are exactly `seconds` old; earlier ones are older."""
        base = self._base.get(session_id, self._now)
        return base - round(seconds * SECOND)

    def is_present(self, session_id: int) -> bool:
        """Tell whether a session is the one that is being written."""
        return session_id in (self._present, NO_ID)


def _between(clock: str, last: int, last_wall: int, later: tuple[int, str, int, int, str]) -> int:
    """Time from the last row of a session to the start of the next, ns."""
    started_wall, later_clock, start, _, reason = later
    if reason.startswith("clock"):
        return 0
    if clock == later_clock and clock != "sim" and start >= last:
        return start - last
    return max(0, started_wall - last_wall)
