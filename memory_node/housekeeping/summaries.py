"""The job `summaries`: a language model writes gists anew; the extractive text stands until it did."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass

from memory_node.errors import SummarizerError
from memory_node.graph import NO_ID, Gist
from memory_node.housekeeping import members
from memory_node.housekeeping.ages import Ages
from memory_node.housekeeping.answers import one_line
from memory_node.housekeeping.archive import REWRITE_PATIENCE
from memory_node.housekeeping.asking import ask, is_outage
from memory_node.housekeeping.extractive import Extractive, items_of
from memory_node.housekeeping.runtime import MAX_BACKOFF, JobContext, StepResult
from memory_node.protocols import Summarizer, SummaryRow
from memory_node.storage import episodes, gists
from memory_node.storage.ids import id_table
from memory_node.storage.writer import Transaction

FIRST_REST = 240.0
"""s until a gist that the language model failed at is asked for again, doubled each time up to MAX_BACKOFF."""
IN_A_ROW = 3
"""Gists that fail one after another until it is taken to be the language model's fault, not theirs."""
LATE = 3600 * 1_000_000_000
"""ns that the stamp of a row may lie outside its episode."""


@dataclass(frozen=True)
class _Failure:
    """How often a gist failed, in which run of the job last, and when (steady clock, s) it may be tried again."""

    times: int
    run: int
    retry_at: float


@dataclass(frozen=True)
class _Wanted:
    """A gist to write anew; without rows there is nothing to write it from any more, or it is too late."""

    id: int
    rows: list[SummaryRow]


class Summaries:
    """One gist an installment.

    A gist that the model fails at rests and the others go on. When nobody answers, or several fail one after another,
    the run ends and the runner tries again later, so that a model that is down is not asked for each gist. After a day
    the extractive text is final: by then its rows may be archived.
    """

    name = "summaries"

    def __init__(self) -> None:
        self._failed: dict[int, _Failure] = {}
        self._problem = ""
        self._run = 0
        self._in_a_row = 0

    def step(self, context: JobContext) -> StepResult:
        if context.summarizer is None or context.dry_run:
            return StepResult()
        if context.run != self._run:
            self._run, self._in_a_row = context.run, 0
        with context.db.read() as conn:
            wanted = self._next(conn, context)
        if wanted is None:
            return self._did(0, 0, done=True)
        if not wanted.rows:
            context.db.write(lambda tx: gists.keep_text(tx, wanted.id))
            self._failed.pop(wanted.id, None)
            return self._did(1, 1)
        author = context.summarizer.name
        try:
            text = _ask(context, context.summarizer, wanted.rows)
            if text is None:
                return self._did(len(wanted.rows), 0, done=True)
            wrote = context.db.write(lambda tx: _store(tx, context, wanted.id, text, author))
        except Exception as error:  # of any kind: it is somebody else's summarizer
            if is_outage(error):
                raise
            self._note(wanted.id, error)
            if self._in_a_row == IN_A_ROW:
                raise
            return self._did(len(wanted.rows), 0)
        self._failed.pop(wanted.id, None)
        self._in_a_row = 0
        return self._did(len(wanted.rows), wrote)

    def _did(self, scanned: int, wrote: int, done: bool = False) -> StepResult:
        if not self._failed:
            return StepResult(scanned, wrote, done)
        first = min(failure.retry_at for failure in self._failed.values())
        return StepResult(scanned, wrote, done, problem=self._problem, retry_in=max(0.0, first - time.monotonic()))

    def _next(self, conn: sqlite3.Connection, context: JobContext) -> _Wanted | None:
        """The first gist that never failed, else one that rested for long enough, or failed before this asked run."""
        sql = (
            "SELECT id, (SELECT session_id FROM node WHERE node.id = gist.id),"
            " (SELECT last_stamp FROM node WHERE node.id = gist.id) FROM gist INDEXED BY gist_rewrite"
            " WHERE rewrite = 1 AND id {which} (SELECT value FROM json_each(?)) ORDER BY id LIMIT 1"
        )
        row = conn.execute(sql.format(which="NOT IN"), (id_table(self._failed),)).fetchone()
        if row is None:
            self._forget_gone(conn)
            now = time.monotonic()
            due = [
                id_
                for id_, failure in self._failed.items()
                if failure.run != context.run and (context.forced or failure.retry_at <= now)
            ]
            row = conn.execute(sql.format(which="IN"), (id_table(due),)).fetchone()
        if row is None:
            return None
        gist_id, session_id, newest = row
        late = newest < Ages(conn, context.present, context.now).cutoff(session_id, REWRITE_PATIENCE)
        return _Wanted(gist_id, [] if late else members.of_gist(conn, gist_id))

    def _forget_gone(self, conn: sqlite3.Connection) -> None:
        rows = conn.execute(
            "SELECT id FROM gist WHERE rewrite = 1 AND id IN (SELECT value FROM json_each(?))",
            (id_table(self._failed),),
        )
        self._failed = {row[0]: self._failed[row[0]] for row in rows.fetchall()}

    def _note(self, gist_id: int, error: Exception) -> None:
        """Let a gist rest, the longer the more often it failed."""
        times = self._failed[gist_id].times + 1 if gist_id in self._failed else 1
        rest = min(MAX_BACKOFF, FIRST_REST * 2.0 ** min(times - 1, 10))
        self._failed[gist_id] = _Failure(times, self._run, time.monotonic() + rest)
        self._problem = f"{type(error).__name__}: {error}"
        self._in_a_row += 1


def _ask(context: JobContext, summarizer: Summarizer, rows: Sequence[SummaryRow]) -> str | None:
    """Return the summary of rows; None: the memory closes."""
    limit = context.settings().consolidation_max_text
    answer = ask(context, summarizer.name, lambda: summarizer.summarize(rows, limit))
    if answer is None and context.closing.is_set():
        return None
    text = one_line(answer)
    if not text:
        raise SummarizerError(f"{summarizer.name} gave an empty summary")
    return text[:limit]


def _store(tx: Transaction, context: JobContext, gist_id: int, text: str, author: str) -> int:
    """Write the text of a gist, and the summaries of the ended episodes that it is a part of; return rows written.

    A gist that is gone, or has its text from elsewhere by now, is left alone.
    """
    if tx.conn.execute("SELECT 1 FROM gist WHERE id = ? AND rewrite = 1", (gist_id,)).fetchone() is None:
        return 0
    gists.set_text(tx, gist_id, text, author)
    settings = context.settings()
    (gist,) = gists.get_many(tx.conn, [gist_id])
    wrote = 1
    episode = episodes.get(tx.conn, gist.episode_id)
    while episode is not None:
        if episode.status != "active":
            # A row that came late may be a little older than its episode.
            span = (episode.start - LATE, (episode.end or episode.start) + LATE)
            parts = gists.of_episodes(tx.conn, episodes.descendants(tx.conn, episode.id), *span)
            summary = _of_parts(parts, settings.time_zone, settings.consolidation_max_text)
            episodes.update(tx, episode.id, summary=summary)
            wrote += 1
        episode = episodes.get(tx.conn, episode.parent_id) if episode.parent_id != NO_ID else None
    return wrote


def _of_parts(parts: Sequence[Gist], time_zone: str, limit: int) -> str:
    """Return what gists say together: the text itself of a single one, else the sentences that say most."""
    if len(parts) == 1:
        return parts[0].text[:limit]
    rows = [
        SummaryRow(gist.id, item, gist.layers[0], gist.start, gist.end, gist.position, count)
        for gist in parts
        for item, count in items_of(gist.text, gist.author)
    ]
    return Extractive(time_zone).summarize(rows, limit)
