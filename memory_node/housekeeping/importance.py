"""What use earns: importance out of blocks of recalls, and how likely a memory is still to be recalled.

Both are computed when ranking and never stored; the job `importance` only writes down who was recalled.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

from memory_node.housekeeping.runtime import JobContext, StepResult
from memory_node.storage import usage

BLOCK = 3600.0
"""s: recalls within this after one that counted count with it."""
STEP = 0.03
"""Importance that one block of recalls earns."""
EARNED_CAP = 0.09
"""The most that use earns: less than a tenth, so what a writer set a tenth higher is never outranked by use."""
FIRST_STABILITY = 86_400.0
"""s: stability of a memory that was never recalled: after it, nine in ten are still there."""
GROWTH = 2.0
"""Each block of recalls multiplies stability by this."""
DECAY = -0.5
FACTOR = 19 / 81
"""Constants of the forgetting curve of FSRS-4.5 (open-spaced-repetition, "The Algorithm"): R(S) = 0.9."""
BATCH = 500
"""Recalls that one transaction writes down."""
MAX_WAITING = 100_000
"""Recalled nodes remembered until the job writes them down; the oldest are forgotten beyond."""


def earned_importance(base: float, blocks: int) -> float:
    """Return importance 0..1 of a node of writer's importance `base` that was recalled in so many blocks."""
    return min(1.0, base + min(STEP * blocks, EARNED_CAP))


def stability(blocks: int) -> float:
    """Return the time (s) after which a memory recalled in so many blocks is still recalled nine times in ten."""
    return FIRST_STABILITY * GROWTH ** min(blocks, 20)


def retrievability(stability: float, elapsed: float) -> float:
    """Return the probability 0..1 that a memory is recalled, elapsed s after its last recall (FSRS-4.5)."""
    return float((1.0 + FACTOR * max(0.0, elapsed) / stability) ** DECAY)


class Recalls:
    """Who was recalled since the last run; noting one is a dictionary write off the database."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stamps: dict[int, int] = {}

    def note(self, ids: Iterable[int], now: int) -> None:
        """Note that nodes were recalled at now (ns)."""
        with self._lock:
            for id_ in ids:
                self._stamps.pop(id_, None)
                self._stamps[id_] = now
            while len(self._stamps) > MAX_WAITING:
                del self._stamps[next(iter(self._stamps))]

    def take(self, limit: int) -> dict[int, int]:
        """Return up to limit recalled nodes with their stamps (ns) and forget them."""
        with self._lock:
            ids = list(self._stamps)[:limit]
            return {id_: self._stamps.pop(id_) for id_ in ids}


class Importance:
    """The job `importance`: folds noted recalls into blocks."""

    name = "importance"

    def __init__(self, recalls: Recalls) -> None:
        self._recalls = recalls

    def step(self, context: JobContext) -> StepResult:
        if context.dry_run:
            return StepResult()
        recalled = self._recalls.take(BATCH)
        if not recalled:
            return StepResult()
        try:
            wrote = context.db.write(lambda tx: usage.record(tx, recalled, round(BLOCK * 1e9)))
        except Exception:
            for id_, stamp in recalled.items():
                self._recalls.note([id_], stamp)
            raise
        return StepResult(len(recalled), wrote, done=len(recalled) < BATCH)
