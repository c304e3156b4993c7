"""Events out of body readings: a change beyond what the layer does all the time."""

from __future__ import annotations

import statistics
from collections import deque
from dataclasses import dataclass, field
from itertools import pairwise

from memory_node.graph import Position

_SECOND = 1_000_000_000
_HISTORY = 512
_MIN_HISTORY = 5
_SIGMAS = 4.0
_LEAST_SHARE = 0.03
"""A change under this share of the layer's usual size is no event, however quiet the layer is."""


@dataclass(frozen=True)
class BodyEvent:
    """A significant change: layer, value and stamp (ns) before and after, unit, where the robot was (m) or None."""

    layer: str
    before: float
    after: float
    start: int
    stamp: int
    unit: str
    position: Position | None

    @property
    def text(self) -> str:
        """One sentence, such as "battery dropped from 80% to 72% within 12 s"."""
        verb = "dropped" if self.after < self.before else "rose"
        seconds = (self.stamp - self.start) / _SECOND
        return (
            f"{self.layer} {verb} from {format_value(self.before, self.unit)} to {format_value(self.after, self.unit)}"
            f" within {seconds:.0f} s"
        )


@dataclass
class _Layer:
    readings: deque[tuple[int, float]] = field(default_factory=lambda: deque(maxlen=_HISTORY))
    last_event: int | None = None
    last_sign: int = 0


class BodyWatch:
    """Tells which readings are events. One reader thread; state is bounded per layer.

    A reading is an event when its change over the last `window`, or since the reading before where that is longer ago,
    differs from the layer's usual change over that long by more than four deviations (median absolute deviation, scaled
    to a normal one: Rousseeuw and Croux 1993) and by more than 3 % of the layer's usual size. While the same change
    goes on no second event follows.
    """

    def __init__(self) -> None:
        self._layers: dict[str, _Layer] = {}

    def observe(
        self, layer: str, value: float, stamp: int, unit: str, position: Position | None, window: float
    ) -> BodyEvent | None:
        """Take one reading; window in s. Returns the event that it completes, or None."""
        state = self._layers.setdefault(layer, _Layer())
        if state.readings and stamp <= state.readings[-1][0]:
            return None
        span = round(window * _SECOND)
        # A layer slower than the window is compared with its reading before.
        start = min(stamp - span, state.readings[-1][0]) if state.readings else stamp
        state.readings.append((stamp, value))
        recent = [r for r in state.readings if r[0] >= start]
        older = [r for r in state.readings if r[0] < start]
        if len(older) + len(recent) <= _MIN_HISTORY:
            return None
        before = max(recent, key=lambda r: abs(value - r[1]))
        usual = _usual_changes(older, span, stamp - start)
        if not _is_unusual(value - before[1], list(state.readings)[:-1], usual):
            return None
        sign = 1 if value > before[1] else -1
        if state.last_event is not None and sign == state.last_sign and state.last_event >= start:
            state.last_event = stamp
            return None
        state.last_event, state.last_sign = stamp, sign
        return BodyEvent(layer, before[1], value, before[0], stamp, unit, position)

    def clear(self) -> None:
        """Forget all readings: the clock has jumped."""
        self._layers.clear()


def _is_unusual(change: float, past: list[tuple[int, float]], usual: list[float]) -> bool:
    """Whether a change stands out of all readings before it and of the layer's usual changes over as long a time.

    It must itself be large, and larger than what is usual in its direction: a discharge that ends is no rise.
    """
    usual_size = max(abs(value) for _, value in past) or 1.0
    steps = [later[1] - earlier[1] for earlier, later in pairwise(past)]
    centre, deviation = _spread(usual)
    _, step_deviation = _spread(steps)
    bound = max(_SIGMAS * deviation, _SIGMAS * step_deviation * 2**0.5, _LEAST_SHARE * usual_size)
    beyond = change - centre if change > 0 else centre - change
    return abs(change) > bound and beyond > bound


def _spread(values: list[float]) -> tuple[float, float]:
    """Median and normal-scaled median absolute deviation; (0, 0) of nothing."""
    if not values:
        return 0.0, 0.0
    centre = statistics.median(values)
    return centre, 1.4826 * statistics.median(abs(value - centre) for value in values)


def _usual_changes(readings: list[tuple[int, float]], span: int, reach: int) -> list[float]:
    """Change of each reading against the first at most span ns before it, or else the last, as it would be over reach.

    Args:
        reach: ns, at least span.
    """
    changes = []
    start = 0
    for place, (stamp, value) in enumerate(readings):
        while start < place - 1 and readings[start][0] < stamp - span:
            start += 1
        length = stamp - readings[start][0]
        if start < place and length >= span // 2:
            changes.append((value - readings[start][1]) * reach / max(length, span))
    return changes


def format_value(value: float, unit: str, sign: str = "") -> str:
    """A reading as a person writes it: "%" is per cent, "fraction" and "ratio" are shares of one, told as per cent.

    Args:
        sign: "+" for a change.
    """
    if unit in ("fraction", "ratio"):
        value, unit = value * 100, "%"
    if unit == "%":
        return f"{value:{sign}.0f}%" if abs(value) >= 10 else f"{value:{sign}.2g}%"
    return f"{value:{sign}.3g} {unit}".strip()
