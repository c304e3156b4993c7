"""What became of a layer's messages since the start."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field

NS = 1_000_000_000
_REASONS = 32
_IN_VAIN = 3
"""So many refusals in a row are no accident."""
_WINDOW = 10 * NS


@dataclass
class MessageCounts:
    """Every message received is in exactly one of taken, thinned, dropped and refused, or still waits.

    Attributes:
        taken: messages whose content went on to the memory.
        thinned: messages passed over: too many a second, unchanged, or never triggered.
        dropped: messages lost to a full queue or a full disk.
        refusals: reason -> messages refused for what was in them.
        skipped: reason -> single detections, their positions, a charge or a stamp left out of messages that were taken.
        doubt: what seems wrong with the layer by the newest message, or "".
        last_arrival: ns of the steady clock, None before the first.
        type: ROS type of the newest message, "" before the first.
    """

    received: int = 0
    taken: int = 0
    thinned: int = 0
    dropped: int = 0
    refusals: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    doubt: str = ""
    last_arrival: int | None = None
    type: str = ""
    _in_vain: Counter[str] = field(default_factory=Counter)
    _arrivals: deque[int] = field(default_factory=lambda: deque(maxlen=256))

    @property
    def refused(self) -> int:
        """Messages refused for any reason."""
        return sum(self.refusals.values())

    def arrive(self, steady: int, type_name: str) -> None:
        """Count a message that arrived at `steady`, ns of the steady clock."""
        self.received += 1
        self.last_arrival = steady
        self.type = type_name
        self._arrivals.append(steady)

    def take(self, passed: bool) -> None:
        """Count a message that was taken, or when it did not pass one that was thinned as unchanged."""
        self.taken += passed
        self.thinned += not passed
        self._in_vain.clear()

    def refuse(self, reason: str) -> None:
        """Count a refusal; the number of reasons is bounded."""
        reason = reason if reason in self.refusals or len(self.refusals) < _REASONS else "other"
        self.refusals[reason] += 1
        self._in_vain[reason] += 1

    @property
    def problem(self) -> str:
        """What is wrong in a few words: why most of it was refused when nothing of late was good enough, or `doubt`."""
        refused = self._in_vain.copy()  # callbacks count meanwhile
        number = sum(refused.values())
        if not number or (self.taken and number < _IN_VAIN):
            return self.doubt
        reason = refused.most_common(1)[0][0]
        return f"every message was refused: {reason}" if not self.taken else f"the last {number} refused: {reason}"

    def skip(self, reason: str) -> None:
        """Count a detection, a position or a stamp that was left out."""
        self.skipped[reason if reason in self.skipped or len(self.skipped) < _REASONS else "other"] += 1

    def age(self, steady: int) -> float | None:
        """Time since the last message (s), None before the first; steady is now (ns of the steady clock)."""
        last = self.last_arrival
        return None if last is None else max(0, steady - last) / NS

    def rate(self, steady: int) -> float:
        """Messages a second (Hz) over the last ten seconds of the steady clock (ns)."""
        arrivals = tuple(self._arrivals)  # in one step: callbacks append meanwhile
        recent = [arrival for arrival in arrivals if steady - arrival <= _WINDOW]
        if len(recent) < 2:
            return 0.0
        return len(recent) * NS / max(steady - recent[0], 1)
