"""Events out of body readings: a change beyond what the layer does all the time."""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import pairwise

from memory_node.graph import Position

_SECOND = 1_000_000_000
_HISTORY = 512
_MIN_HISTORY = 5
_SIGMAS = 4.0
_LEAST_SHARE = 0.03
"""A change under this share of the layer's usual size is no event, however quiet the layer is."""
_LEVELS = {0.0, 1.0, 2.0, 3.0}
"""Values of a flag, and of diagnostic_msgs/DiagnosticStatus: ok, warn, error, stale."""
_GROWN = 1.25
"""An event that goes on is told again when its change is so many times what was told."""


@dataclass(frozen=True)
class BodyEvent:
    """A significant change: layer, value and stamp (ns) before and after, unit, where the robot was (m) or None.

    `noticed` is the stamp (ns) of the reading that made it an event. While the change goes on the event is told again,
    with a later `stamp`: layer and noticed tell which it is.
    """

    layer: str
    before: float
    after: float
    start: int
    stamp: int
    unit: str
    position: Position | None
    noticed: int

    @property
    def text(self) -> str:
        """One sentence, such as "battery dropped from 80% to 72% within 12 s"."""
        verb = "dropped" if self.after < self.before else "rose"
        seconds = (self.stamp - self.start) / _SECOND
        return (
            f"{self.layer} {verb} from {format_value(self.before, self.unit)} to {format_value(self.after, self.unit)}"
            f" within {f'{seconds:.0f} s' if seconds < 100 else f'{seconds / 60:.0f} min'}"
        )

    @property
    def size(self) -> float:
        """How far the value went."""
        return abs(self.after - self.before)


@dataclass
class _Layer:
    readings: deque[tuple[int, float]] = field(default_factory=lambda: deque(maxlen=_HISTORY))
    last_event: int = 0
    event: BodyEvent | None = None
    told: float = 0.0


class BodyWatch:
    """Tells which readings are events. One reader thread; state is bounded per layer.

    A reading is an event when its change over the last `window`, or since the reading before where that is longer ago,
    differs from the layer's usual change over that long by more than four deviations (median absolute deviation, scaled
    to a normal one: Rousseeuw and Croux 1993) and by more than 3 % of the layer's usual size. The first change of a
    flag or level without a unit, from 0 to 3, is one too. While the same change goes on no second event follows: the
    first is told again when it has grown by a quarter, and at the end.
    """

    def __init__(self) -> None:
        self._layers: dict[str, _Layer] = {}

    def knows(self, layer: str) -> bool:
        """Whether a reading of the layer was taken."""
        return layer in self._layers

    def remember(self, layer: str, readings: Iterable[tuple[int, float]]) -> None:
        """Take earlier readings, stamp (ns) and value in the order of time, none of which is an event any more."""
        self._layers.setdefault(layer, _Layer()).readings.extend(readings)

    def observe(
        self, layer: str, value: float, stamp: int, unit: str, position: Position | None, window: float
    ) -> list[BodyEvent]:
        """Take one reading; window in s. Returns the events that it completes, or that have more to tell now."""
        state = self._layers.setdefault(layer, _Layer())
        if state.readings and stamp <= state.readings[-1][0]:
            return []
        span = round(window * _SECOND)
        # A layer slower than the window is compared with its reading before.
        start = min(stamp - span, state.readings[-1][0]) if state.readings else stamp
        state.readings.append((stamp, value))
        told = _ended(state) if state.last_event < start else _grown(state, value, stamp)
        recent = [r for r in state.readings if r[0] >= start]
        older = [r for r in state.readings if r[0] < start]
        if len(older) + len(recent) <= _MIN_HISTORY and not (unit == "" and _is_flag(state.readings)):
            return told
        before = max(reversed(recent), key=lambda r: abs(value - r[1]))
        usual = _usual_changes(older, span, stamp - start)
        if not _is_unusual(value - before[1], list(state.readings)[:-1], usual):
            return told
        state.last_event = stamp
        running = state.event
        if running is not None and (value > before[1]) == (running.after > running.before):
            return told
        new = BodyEvent(layer, before[1], value, before[0], stamp, unit, position, stamp)
        told = [*told, *_ended(state), new]
        state.event, state.told = new, new.size
        return told

    def clear(self) -> None:
        """Forget all readings: the clock has jumped."""
        self._layers.clear()


def _grown(state: _Layer, value: float, stamp: int) -> list[BodyEvent]:
    """The event that goes on, when this reading takes it a quarter farther than it was told; else nothing."""
    event = state.event
    way = 0.0 if event is None else (value - event.before) * (1 if event.after > event.before else -1)
    if event is None or way <= event.size:
        return []
    state.event = replace(event, after=value, stamp=stamp)
    if way < _GROWN * state.told:
        return []
    state.told = way
    return [state.event]


def _ended(state: _Layer) -> list[BodyEvent]:
    """Forget the event that went on; it is told when more of it has come than was told."""
    event, state.event = state.event, None
    return [event] if event is not None and event.size > state.told else []


def _is_flag(readings: Iterable[tuple[int, float]]) -> bool:
    """Whether readings are those of a flag, or levels of diagnostics, that never changed but now."""
    values = [value for _, value in readings]
    return set(values) <= _LEVELS and len(set(values[:-1])) == 1 and values[-1] != values[0]


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
