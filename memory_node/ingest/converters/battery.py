"""sensor_msgs/msg/BatteryState: charge, voltage, whether it charges, and what is wrong with it."""

from __future__ import annotations

from typing import Any

from memory_node.ingest.converters import TextPercept
from memory_node.ingest.converters.reading import number, origin_of
from memory_node.ingest.layers import LayerSettings

_STATUS = {1: "charging", 2: "discharging", 3: "not charging", 4: "full"}
_HEALTH = {
    2: "overheated", 3: "dead", 4: "overvoltage", 5: "failure", 6: "cold", 7: "watchdog timer expired",
    8: "safety timer expired",
}  # fmt: skip
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
    """Return "<layer>: 45 %, 23.1 V, discharging"; value: the charge, a fraction; where unknown min_change is in V.

    Of an unknown charge the value is None. A fault is said too, such as "overheated". Whether the battery is present is
    said where neither charge nor voltage is known: many drivers leave the flag unset.
    """
    fraction, voltage = charge(message, layer.percentage_scale), number(message.voltage)
    parts = ["charge unknown" if fraction is None else f"{fraction * 100.0:.0f} %"]
    if voltage:  # 0 V is what an unset field says
        parts.append(f"{voltage:.1f} V")
    states = [_STATUS.get(message.power_supply_status, ""), _HEALTH.get(message.power_supply_health, "")]
    if fraction is None and not voltage and not message.present:
        states.append("not present")
    parts += filter(None, states)
    words = ", ".join(filter(None, states))
    text = f"{layer.name}: {', '.join(parts)}"
    if fraction is None:
        voltages = (voltage,) if voltage else ()
        doubt = _TOO_FULL if (number(message.percentage) or 0.0) > layer.percentage_scale else ""
        return TextPercept(origin_of(message), text, values=voltages, words=words, doubt=doubt)
    return TextPercept(origin_of(message), text, fraction, "fraction", words=words)
