"""The job `snapshots`: index caches, the write-ahead log and the planner's statistics, when something changed."""

from __future__ import annotations

import time

from memory_node.housekeeping.runtime import JobContext, StepResult
from memory_node.storage.writer import Transaction

SAMPLED = 400
"""Rows of an index that `PRAGMA optimize` reads at most, whatever the size of the table."""

WORTH = 10_000
"""Nodes from which on statistics are worth having."""
PERIOD = 600.0
"""s between two snapshots on the timer: the caches spare time at the next start, and flash wears out."""


class Snapshots:
    """Writes what makes the next start quick; on a store that did not change it does nothing."""

    name = "snapshots"

    def __init__(self) -> None:
        self._revision: int | None = None
        self._next = 0.0

    def step(self, context: JobContext) -> StepResult:
        if context.dry_run or context.db.revision == self._revision:
            return StepResult()
        if not context.forced and time.monotonic() < self._next:
            return StepResult()
        self._next = time.monotonic() + PERIOD
        context.save_index()
        context.db.write(_optimize)
        context.db.checkpoint()
        self._revision = context.db.revision
        return StepResult()


def _optimize(tx: Transaction) -> None:
    # Statistics of an almost empty store would mislead the planner for long after it has grown.
    if tx.conn.execute("SELECT count(*) FROM (SELECT 1 FROM node LIMIT ?)", (WORTH,)).fetchone()[0] < WORTH:
        return
    tx.conn.execute(f"PRAGMA analysis_limit = {SAMPLED}")
    tx.conn.execute("PRAGMA optimize")
