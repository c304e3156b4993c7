"""How is the robot's own body?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from memory_node.errors import InvalidArgument, shown
from memory_node.retrieval.filters import checked_names, some
from memory_node.storage import body, nodes, sessions
from memory_node.tools.context import ToolContext
from memory_node.tools.results import BodyReading, BodyStatusResult
from memory_node.tools.wording import Wording, listed

if TYPE_CHECKING:
    import sqlite3

SECOND = 1_000_000_000


def body_status(context: ToolContext, layers: Sequence[str] = ()) -> BodyStatusResult:
    """Return the latest reading of each internal layer with its age, whether it is stale, and its trend.

    Args:
        layers: names of internal layers; empty: all.

    Raises:
        InvalidArgument: a layer that is not there, or is not internal.
    """
    readings = latest_readings(context, layers)
    if not readings:
        with context.db.read() as conn:
            is_stored = body.is_stored(conn)
        none = "came since the clock began anew" if is_stored else "was ever stored"
        return BodyStatusResult(text=f"No reading of the body {none}.")
    words = Wording(context.now_ns(), context.settings.time_zone)
    stale = sum(reading.is_stale for reading in readings)
    head = f"Body at {words.clock(words.now)}" + (f"; {stale} of {len(readings)} stale" if stale else "")
    return BodyStatusResult(text=listed(head, [words.reading(r) for r in readings]), readings=readings)


def latest_readings(context: ToolContext, layers: Sequence[str] = ()) -> tuple[BodyReading, ...]:
    """Return the latest reading of each internal layer, by name; the change is over the last `trend_window`."""
    now, window = context.now_ns(), round(context.settings.trend_window * SECOND)
    with context.db.read() as conn:
        _check_layers(conn, layers)
        first_session = sessions.comparable_since(conn)
        found = body.latest(conn, list(layers) or None, now, first_session)
        readings = []
        for latest in found:
            age = max(0.0, (now - latest.stamp) / SECOND)
            is_stale = age > context.stale_after(latest.layer)
            reading = BodyReading(latest.layer, latest.text, latest.value, latest.unit, latest.stamp, age, is_stale)
            if latest.value is not None:
                earlier = body.value_at(conn, latest.layer, now - window, window, first_session)
                reading = _with_trend(reading, latest.value, earlier)
            readings.append(reading)
    return tuple(readings)


def _with_trend(reading: BodyReading, value: float, earlier: tuple[int, float] | None) -> BodyReading:
    """The reading of a value with its change since an earlier (stamp, value)."""
    if earlier is None or earlier[0] >= reading.stamp:
        return reading
    return replace(reading, change=value - earlier[1], window=(reading.stamp - earlier[0]) / SECOND)


def _check_layers(conn: sqlite3.Connection, layers: Sequence[str]) -> None:
    if not checked_names(layers, "layers"):
        return
    known = nodes.layers(conn)
    internal = sorted(name for name, layer in known.items() if layer.internal)
    for name in layers:
        if name not in internal:
            there = f"internal layers are {some(internal)}" if internal else "no internal layer is known"
            kind = "is a layer of perception" if name in known else "no such layer"
            raise InvalidArgument("layers", f"{shown(name)}: {kind}; {there}")
