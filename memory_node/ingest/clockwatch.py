"""Notices that the node's clock has jumped: a bag that loops, an NTP step, a board that at last got the time."""

from __future__ import annotations

import threading
import time

_SECOND = 1_000_000_000
BACK = 1 * _SECOND
"""A clock that goes back by more than this has jumped; less is the jitter of a clock that is being disciplined."""
AHEAD = 3600 * _SECOND
"""A clock that gains more than this on the steady clock between two looks has jumped, if it is wall time or ticks."""
JUMPED_AHEAD = "clock jumped ahead"
TICKING = "ros_sim"
"""Kind of a simulated clock that a topic sets many times a second, and so goes in small steps whatever its rate."""
FASTEST = 1000
"""Times real time beyond which no simulation or recording runs: what gains an hour faster than that was set ahead.

Two looks may be far apart when this process was held up: at 100 times real time an hour passes in 36 seconds.
"""
AHEAD_SIMULATED = 30 * 86_400 * _SECOND
"""The same as AHEAD for any other simulated clock, which may take a night in one step: a recording that is read."""


class SystemClock:
    """Wall time."""

    kind = "system"

    def now_ns(self) -> int:
        """Nanoseconds since 1970."""
        return time.time_ns()


def clock_kind(clock: object) -> str:
    """What a clock says of itself: "system" and "ros" are wall time, all others simulated, "ros_sim" by /clock."""
    return str(getattr(clock, "kind", "sim"))


class ClockWatch:
    """Compares each reading of the node's clock with the one before and with the steady clock."""

    def __init__(self, kind: str) -> None:
        self._ahead = AHEAD if kind in ("system", "ros", TICKING) else AHEAD_SIMULATED
        self._fastest = FASTEST if kind == TICKING else 0
        self._lock = threading.Lock()
        self._last: tuple[int, int] | None = None

    def look(self, now: int) -> str:
        """Take a reading (ns); returns why it is a jump, or "" when it is none."""
        steady = _since_boot()
        with self._lock:
            last, self._last = self._last, (now, steady)
        if last is None or last[0] == 0:  # 0: it had not begun
            return ""
        passed, steady_passed = now - last[0], steady - last[1]
        if passed < -BACK:
            return "clock went back"
        if passed - steady_passed > self._ahead and passed > self._fastest * steady_passed:
            return JUMPED_AHEAD
        return ""


def _since_boot() -> int:
    # Counts through a suspended machine, unlike the monotonic clock, so that a robot's sleep is no jump.
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    return time.monotonic_ns()
