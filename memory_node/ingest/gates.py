"""How often a layer's messages are kept: at most so many a second, or only when something fires."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from memory_node.ingest.layers import LayerSettings

NS = 1_000_000_000
_JITTER = 0.9
"""A publisher of just the allowed rate is not thinned for sending a little early."""

T = TypeVar("T")


@dataclass(frozen=True)
class _Held(Generic[T]):
    item: T
    stamp: int
    since: int


class Gate(Generic[T]):
    """Holds the newest message of a layer back until it may pass. Not thread-safe: the intake's lock covers it.

    Attributes:
        thinned: messages passed over for a newer one.
    """

    def __init__(self, layer: LayerSettings) -> None:
        rate = layer.trigger_rate
        self._only_fired = bool(layer.trigger)
        self._fires_every = round(NS / rate) if rate else 0
        self._period = round(NS / layer.max_rate_hz) if layer.max_rate_hz > 0.0 else 0
        self._passed: int | None = None
        self._fired: int | None = None
        self._held: _Held[T] | None = None
        self.thinned = 0

    def offer(self, item: T, stamp: int, now: int, hold: bool) -> T | None:
        """Take a message; return it when it passes at once, else hold it as the newest.

        Args:
            stamp: ns, when it happened. now: ns of the node's clock.
            hold: let nothing pass by itself (auto_store is off).
        """
        if self._held is not None:
            self._held, self.thinned = None, self.thinned + 1
        passed = self._passed
        free = self._period == 0 or passed is None or abs(stamp - passed) >= _JITTER * self._period
        if free and not hold and not self._only_fired:
            self._passed = stamp
            return item
        self._held = _Held(item, stamp, now)
        return None

    def due(self, now: int, hold: bool) -> T | None:
        """Return the held message when its time (ns of the node's clock) has come."""
        if hold or self._held is None:
            return None
        if self._fires_every:
            waits = self._fired is not None and 0 <= now - self._fired < self._fires_every
        else:
            waits = self._only_fired or 0 <= now - self._held.since < self._period
        if waits:
            return None
        self._fired = now
        return self.fire()

    def fire(self) -> T | None:
        """Let the held message pass, if there is one."""
        held, self._held = self._held, None
        if held is None:
            return None
        self._passed = held.stamp
        return held.item

    def leave(self, hold: bool) -> T | None:
        """Return what only the rate holds back; what waits for a trigger, or while `hold`, is passed over."""
        if self._held is not None and (hold or (self._only_fired and not self._fires_every)):
            self._held, self.thinned = None, self.thinned + 1
        return self.fire()

    @property
    def holds(self) -> int:
        """How many messages wait: 0 or 1."""
        return int(self._held is not None)
