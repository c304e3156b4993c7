"""The job `snapshots`: index caches, the write-ahead log and the planner's statistics, when something changed."""

from __future__ import annotations

import logging
import time

from memory_node.housekeeping.runtime import JobContext, StepResult
from memory_node.storage.writer import Transaction

log = logging.getLogger(__name__)

SAMPLED = 400
"""Rows of an index that `PRAGMA optimize` reads at most, whatever the size of the table."""

WORTH = 10_000
"""Nodes from which on statistics are worth having."""
LITTLE = 100_000
"""Bytes of write-ahead log that are moved without a word: an unchanged store has so many from being opened."""
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
        began, logged = time.monotonic(), context.db.wal_bytes()
        saved = context.save_index()
        context.db.write(_optimize)
        context.db.checkpoint()
        self._revision = context.db.revision
        # It writes no rows: a count would be stored with its state, which would be a change, and so on for ever.
        moved = logged - context.db.wal_bytes()
        if saved or moved > LITTLE:
            log.info(
                "job snapshots: %smoved %.1f MB of write-ahead log into the file in %.0f ms",
                "saved the index caches, " if saved else "", moved / 1e6, (time.monotonic() - began) * 1000.0,
            )
        return StepResult()


def _optimize(tx: Transaction) -> None:
    # Statistics of an almost empty store would mislead the planner for long after it has grown.
    if tx.conn.execute("SELECT count(*) FROM (SELECT 1 FROM node LIMIT ?)", (WORTH,)).fetchone()[0] < WORTH:
        return
    tx.conn.execute(f"PRAGMA analysis_limit = {SAMPLED}")
    tx.conn.execute("PRAGMA optimize")
