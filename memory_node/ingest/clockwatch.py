"""Notices that the node's clock has jumped: a bag that loops, an NTP step, a board that at last got the time."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable

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
SOURCES = 8
"""Publishers of /clock that are remembered, those heard last."""
MOST_JUMPS = 3
"""Jumps of /clock within QUARREL that open a session each; a recording that loops needs more than a second a turn."""
QUARREL = 5 * _SECOND
"""ns of the steady clock: more jumps than that within it are of two clocks, until it passes without one."""
_TWO_CLOCKS = (
    "two clocks on /clock? The time jumps back and forth, and what comes is dated by either of them; only one node may"
    " publish it (see `ros2 topic info -v /clock`)"
)


_Reading = tuple[int, int]  # ns of the clock that is watched and of the steady one


class SystemClock:
    """Wall time."""

    kind = "system"

    def now_ns(self) -> int:
        """Nanoseconds since 1970."""
        return time.time_ns()


def clock_kind(clock: object) -> str:
    """What a clock says of itself: "system" and "ros" are wall time, all others simulated, "ros_sim" by /clock."""
    return str(getattr(clock, "kind", "sim"))


def clock_source(clock: object) -> Hashable:
    """Who set a clock last, where it tells that: of two that set one each is a clock of its own. None: not known."""
    return getattr(clock, "source", None)


class ClockWatch:
    """Compares each reading of the node's clock with the one before and with the steady clock.

    A reading is compared with the one before by the same source. A source that is new takes the place of the others, as
    a simulator that was started again does. One that was heard before, and shows another time than the one heard last,
    is one of two clocks; so is what jumps with nearly each reading where sources are not known. That is told in
    `warning`, "" otherwise, and logged once; no jump is told then but that of a new source, until the clock is steady
    again, which counts as one unless it is that of the source before.
    """

    def __init__(self, kind: Callable[[], str], source: Callable[[], Hashable] = lambda: None) -> None:
        """Args: kind, source: of the clock that is read, see `clock_kind`, `clock_source`; they change at run time."""
        self._kind = kind
        self._source = source
        self._lock = threading.Lock()
        self._last: _Reading | None = None
        self._heard: dict[Hashable, _Reading] = {}  # by source, the one heard last at the end
        self._settled: Hashable = None  # the source that the present session goes by
        self._jumps: deque[int] = deque(maxlen=MOST_JUMPS)  # when the last ones were, on the steady clock
        self._logged = False
        self.warning = ""

    def look(self, now: int) -> str:
        """Take a reading (ns); returns why it is a jump, or "" when it is none."""
        steady, kind, source = _since_boot(), self._kind(), self._source()
        with self._lock:
            last = self._last
            is_new = source not in self._heard
            own = self._own(source, (now, steady))
            reason = self._jumped(own, now, steady, kind)
            is_rival = own is not last and self._jumped(last, now, steady, kind) != ""
            if not self.warning and kind != TICKING:
                return reason
            if self.warning and reason and is_new and source is not None:
                self._jumps.append(steady)
                self._settled = source
                return reason
            return self._unless_torn(reason, is_rival, source, steady)

    def _own(self, source: Hashable, reading: _Reading) -> _Reading | None:
        """Note a reading; returns the one before by that source, or by any where the source is new or not known."""
        last, self._last = self._last, reading
        if source is None:
            self._heard.clear()
            return last
        own = self._heard.pop(source, last)
        self._heard[source] = reading
        if len(self._heard) > SOURCES:
            del self._heard[next(iter(self._heard))]
        return own

    def _unless_torn(self, reason: str, is_rival: bool, source: Hashable, steady: int) -> str:
        """The reason, or "" while two clocks quarrel; that they no longer do is a reason too."""
        if self.warning and not is_rival and steady - self._jumps[-1] > QUARREL:
            self.warning = ""
            self._jumps.clear()
            if source is None or source != self._settled:
                reason = reason or STEADY_AGAIN
        elif not self.warning and (is_rival or (reason and self._jump_often(steady))):
            self.warning = _TWO_CLOCKS
            if not self._logged:
                logger.warning(_TWO_CLOCKS)
        if reason or is_rival:
            self._jumps.append(steady)
        if self.warning:
            self._logged = True
            self._settled = None if reason else self._settled
            return ""
        if reason or self._settled is None:
            self._logged, self._settled = False, source
        return reason

    def _jump_often(self, steady: int) -> bool:
        return len(self._jumps) == MOST_JUMPS and steady - self._jumps[0] <= QUARREL

    @staticmethod
    def _jumped(last: _Reading | None, now: int, steady: int, kind: str) -> str:
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
