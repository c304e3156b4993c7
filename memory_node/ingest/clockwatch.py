"""Notices that the node's clock has jumped: a bag that loops, an NTP step, a board that at last got the time."""

from __future__ import annotations

import threading
import time

_SECOND = 1_000_000_000
BACK = 1 * _SECOND
"""A clock that goes back by more than this has jumped; less is the jitter of a clock that is being disciplined."""
AHEAD = 3600 * _SECOND
"""A wall clock that gains more than this on the steady clock between two looks has jumped."""
JUMPED_AHEAD = "clock jumped ahead"
AHEAD_SIMULATED = 30 * 86_400 * _SECOND
"""The same for a simulated clock, which may run at any rate and stand still."""


class SystemClock:
    """Wall time."""

    kind = "system"

    def now_ns(self) -> int:
        """Nanoseconds since 1970."""
        return time.time_ns()


def clock_kind(clock: object) -> str:
    """What a clock says of itself: "system" and "ros" are wall time, all others ("sim") simulated."""
    return str(getattr(clock, "kind", "sim"))


class ClockWatch:
    """Compares each reading of the node's clock with the one before and with the steady clock."""

    def __init__(self, kind: str) -> None:
        self._ahead = AHEAD if kind in ("system", "ros") else AHEAD_SIMULATED
        self._lock = threading.Lock()
        self._last: tuple[int, int] | None = None

    def look(self, now: int) -> str:
        """Take a reading (ns); returns why it is a jump, or "" when it is none."""
        steady = _since_boot()
        with self._lock:
            last, self._last = self._last, (now, steady)
        if last is None:
            return ""
        passed = now - last[0]
        if passed < -BACK:
            return "clock went back"
        if passed - (steady - last[1]) > self._ahead:
            return JUMPED_AHEAD
        return ""


def _since_boot() -> int:
    # Counts through a suspended machine, unlike the monotonic clock, so that a robot's sleep is no jump.
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    return time.monotonic_ns()
