"""sensor_msgs/msg/BatteryState: charge, voltage and whether it charges."""

from __future__ import annotations

from typing import Any

from memory_node.ingest.converters import TextPercept
from memory_node.ingest.converters.reading import number, origin_of
from memory_node.ingest.layers import LayerSettings

_STATUS = {1: "charging", 2: "discharging", 3: "not charging", 4: "full"}
_ROUNDING = 0.01
_TOO_FULL = "percentage above percentage_scale, charge unknown; of one that sends 0 to 100 set percentage_scale: 100.0"


def charge(message: Any, scale: float) -> float | None:
    """Return the charge as a fraction of 0 to 1, or None when the message does not know it.

    The message defines 0 to 1; `scale` is what a full battery sends (100 for per cent). Whatever lies outside, negative
    and NaN are "unknown", and so is a zero from a battery that is not present.
    """
    value = number(message.percentage)
    if value is None or (not message.present and value == 0.0):
        return None
    fraction = value / scale
    return min(fraction, 1.0) if 0.0 <= fraction <= 1.0 + _ROUNDING else None


def convert(message: Any, layer: LayerSettings) -> TextPercept:
    """Return "<layer>: 45 %, 23.1 V, discharging"; value is the charge, unit "fraction", or None when unknown."""
    fraction, voltage = charge(message, layer.percentage_scale), number(message.voltage)
    parts = ["charge unknown" if fraction is None else f"{fraction * 100.0:.0f} %"]
    if voltage:  # 0 V is what an unset field says
        parts.append(f"{voltage:.1f} V")
    if state := _STATUS.get(message.power_supply_status, ""):
        parts.append(state)
    text = f"{layer.name}: {', '.join(parts)}"
    if fraction is None:
        voltages = (voltage,) if voltage else ()
        doubt = _TOO_FULL if (number(message.percentage) or 0.0) > layer.percentage_scale else ""
        return TextPercept(origin_of(message), text, values=voltages, words=state, doubt=doubt)
    return TextPercept(origin_of(message), text, fraction, "fraction", words=state)
