"""How often a layer's messages are kept: at most so many a second, or only when something fires."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from memory_node.ingest.layers import LayerSettings

NS = 1_000_000_000
_CENTURY = 3.2e18
_JITTER = 0.1
"""Share of a period by which a message may be late without putting off all that follow it."""

T = TypeVar("T")


@dataclass(frozen=True)
class _Held(Generic[T]):
    item: T
    arrived: int


class Gate(Generic[T]):
    """Holds the newest message of a layer back until it may pass. Not thread-safe: the intake's lock covers it.

    All times are those of one clock at which messages arrived (ns), the node's while nobody sets that to and fro:
    stamps may stand still, run slowly, or be of two senders that disagree.

    Attributes:
        thinned: messages passed over for a newer one.
    """

    def __init__(self, layer: LayerSettings) -> None:
        rate = layer.trigger_rate
        self._only_fired = bool(layer.trigger)
        self._fires_every = _period(rate) if rate else 0
        self._period = _period(layer.max_rate_hz) if layer.max_rate_hz > 0.0 else 0
        self._next = 0
        self._fired: int | None = None
        self._held: _Held[T] | None = None
        self.thinned = 0

    def offer(self, item: T, arrived: int, hold: bool) -> list[T]:
        """Take a message, and return those that pass, oldest first; one that may not yet is held as the newest.

        A held message whose time came before this one arrived goes ahead of it, however late this is worked off.

        Args:
            hold: let nothing pass by itself (auto_store is off).
        """
        overdue = self.due(arrived - 1, hold)
        passing = [] if overdue is None else [overdue]
        if self._held is not None:
            self._held, self.thinned = None, self.thinned + 1
        if self._free(arrived) and not hold and not self._only_fired:
            self._count(arrived)
            passing.append(item)
        else:
            self._held = _Held(item, arrived)
        return passing

    def due(self, now: int, hold: bool) -> T | None:
        """Return the held message when its time has come."""
        held = self._held
        if hold or held is None:
            return None
        if self._fires_every:
            waits = self._fired is not None and 0 <= now - self._fired < self._fires_every
        else:
            waits = self._only_fired or not self._free(now)
        if waits:
            return None
        self._fired = now
        self._held = None
        self._count(max(held.arrived, self._next))
        return held.item

    def _free(self, at: int) -> bool:
        return self._period == 0 or at >= self._next

    def _count(self, at: int) -> None:
        """A message passes at a time: the next one may a period after the time from which this one might have."""
        late = at - self._next > _JITTER * self._period
        self._next = (at if late else self._next) + self._period

    def fire(self) -> T | None:
        """Let the held message pass, if there is one, whether or not its time has come."""
        held, self._held = self._held, None
        if held is None:
            return None
        self._next = held.arrived + self._period
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


def _period(rate: float) -> int:
    """Of a rate (Hz) above 0, ns; a century at most."""
    return round(min(NS / rate, _CENTURY))
