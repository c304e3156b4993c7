"""When a message happened: its own stamp when that is sane, else the time it was received."""

from __future__ import annotations

from dataclasses import dataclass

from memory_node.ingest.converters import Refused

NS = 1_000_000_000


@dataclass(frozen=True)
class StampLimits:
    """How far a stamp may lie from the time its message was received, s."""

    max_ahead: float = 5.0
    max_age: float = 600.0


@dataclass(frozen=True)
class Stamped:
    """A stamp (ns of the node's clock) and its source: "header", "receive", or "receive: <why not the header's>"."""

    stamp: int
    source: str

    @property
    def fault(self) -> str:
        """Why it is not the header's although that has one, or ""."""
        return self.source.partition(": ")[2]


def sane_stamp(stamp: int | None, received: int, limits: StampLimits) -> Stamped:
    """Return when a message happened.

    Args:
        stamp: ns of the header, 0 when the sender left it unset, None when the type has no header.
        received: ns of the node's clock; 0 or less means that the clock has not started.

    Raises:
        Refused: there is no time yet, or the stamp is negative.
    """
    if received <= 0:
        raise Refused("the clock has not started")
    if stamp is None:
        return Stamped(received, "receive")
    if stamp < 0:
        raise Refused("negative stamp")
    if stamp == 0:
        return Stamped(received, "receive: stamp 0")
    if stamp - received > limits.max_ahead * NS:
        return Stamped(received, "receive: stamp ahead of the clock")
    if received - stamp > limits.max_age * NS:
        return Stamped(received, "receive: stamp too old")
    return Stamped(stamp, "header")
