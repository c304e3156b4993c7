"""Notices that the node's clock has jumped: a bag that loops, an NTP step, a board that at last got the time."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable

logger = logging.getLogger(__name__)

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

STEADY_AGAIN = "clock steady again"
MOST_JUMPS = 3
"""Jumps of /clock within QUARREL that open a session each; a recording that loops needs more than a second a turn."""
QUARREL = 5 * _SECOND
"""ns of the steady clock: more jumps than that within it are of two clocks, until it passes without one."""
_TWO_CLOCKS = (
    "two clocks on /clock? The time jumps back and forth, and what comes is dated by either of them; only one node may"
    " publish it (see `ros2 topic info -v /clock`)"
)


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
    """Compares each reading of the node's clock with the one before and with the steady clock.

    Where two publish /clock it jumps with nearly each reading. That is told in `warning`, "" otherwise, and logged
    once; no jump is told then until the clock is steady again, which counts as one.
    """

    def __init__(self, kind: Callable[[], str]) -> None:
        """Args: kind: of the clock that is read, see `clock_kind`; use_sim_time changes it at run time."""
        self._kind = kind
        self._lock = threading.Lock()
        self._last: tuple[int, int] | None = None
        self._jumps: deque[int] = deque(maxlen=MOST_JUMPS)  # when the last ones were, on the steady clock
        self.warning = ""

    def look(self, now: int) -> str:
        """Take a reading (ns); returns why it is a jump, or "" when it is none."""
        steady, kind = _since_boot(), self._kind()
        with self._lock:
            last, self._last = self._last, (now, steady)
            reason = self._jumped(last, now, steady, kind)
            return self._unless_torn(reason, steady) if self.warning or kind == TICKING else reason

    def _unless_torn(self, reason: str, steady: int) -> str:
        """The reason, or "" while two clocks quarrel; that they no longer do is a reason too."""
        if self.warning and steady - self._jumps[-1] > QUARREL:
            self.warning = ""
            self._jumps.clear()
            reason = reason or STEADY_AGAIN
        elif reason and not self.warning and len(self._jumps) == MOST_JUMPS and steady - self._jumps[0] <= QUARREL:
            self.warning = _TWO_CLOCKS
            logger.warning(_TWO_CLOCKS)
        if reason:
            self._jumps.append(steady)
        return "" if self.warning else reason

    def _jumped(self, last: tuple[int, int] | None, now: int, steady: int, kind: str) -> str:
        if last is None or last[0] == 0:  # 0: it had not begun
            return ""
        passed, steady_passed = now - last[0], steady - last[1]
        if passed < -BACK:
            return "clock went back"
        ahead = AHEAD if kind in ("system", "ros", TICKING) else AHEAD_SIMULATED
        fastest = FASTEST if kind == TICKING else 0
        if passed - steady_passed > ahead and passed > fastest * steady_passed:
            return JUMPED_AHEAD
        return ""


def _since_boot() -> int:
    # Counts through a suspended machine, unlike the monotonic clock, so that a robot's sleep is no jump.
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    return time.monotonic_ns()
