"""The job `summaries`: a language model writes gists anew; the extractive text stands until it did."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from memory_node.errors import SummarizerError
from memory_node.housekeeping import members
from memory_node.housekeeping.ages import Ages
from memory_node.housekeeping.archive import REWRITE_PATIENCE
from memory_node.housekeeping.runtime import JobContext, StepResult
from memory_node.protocols import Summarizer, SummaryRow
from memory_node.storage import gists

MAX_WAIT = 300.0
"""s: the longest that one summary may take, however slowly it drips in."""
LOOK = 0.05
"""s between two looks whether the memory closes while the language model writes."""


class Summaries:
    """One gist an installment. A failure ends the run, so that the runner tries again later.

    After a day the extractive text is final: by then its rows may be archived.
    """

    name = "summaries"

    def step(self, context: JobContext) -> StepResult:
        if context.summarizer is None or context.dry_run:
            return StepResult()
        with context.db.read() as conn:
            row = conn.execute(
                "SELECT id, (SELECT session_id FROM node WHERE node.id = gist.id),"
                " (SELECT last_stamp FROM node WHERE node.id = gist.id)"
                " FROM gist INDEXED BY gist_rewrite WHERE rewrite = 1 ORDER BY id LIMIT 1"
            ).fetchone()
            if row is None:
                return StepResult()
            gist_id, session_id, newest = row
            late = newest < Ages(conn, context.present, context.now).cutoff(session_id, REWRITE_PATIENCE)
            rows = [] if late else members.of_gist(conn, gist_id)
        if not rows:
            context.db.write(lambda tx: gists.keep_text(tx, gist_id))
            return StepResult(1, 1, done=False)
        limit = context.settings().consolidation_max_text
        text = _ask(context, context.summarizer, rows, limit)
        if text is None:
            return StepResult(len(rows))
        author = context.summarizer.name
        context.db.write(lambda tx: gists.set_text(tx, gist_id, text, author))
        return StepResult(len(rows), 1, done=False)


def _ask(context: JobContext, summarizer: Summarizer, rows: Sequence[SummaryRow], limit: int) -> str | None:
    """Ask in a thread of its own, so that closing never waits for the language model; None: the memory closes."""
    answer: list[str] = []
    problem: list[Exception] = []

    def ask() -> None:
        try:
            answer.append(summarizer.summarize(rows, limit))
        except Exception as error:
            problem.append(error)

    thread = threading.Thread(target=ask, name="summarizer", daemon=True)
    thread.start()
    patience = time.monotonic() + MAX_WAIT
    while thread.is_alive():
        if context.closing.is_set():
            return None
        if time.monotonic() > patience:
            raise SummarizerError(f"{summarizer.name} took longer than {MAX_WAIT:.0f} s")
        thread.join(LOOK)
    if problem:
        raise problem[0]
    text = " ".join(answer[0].split()) if isinstance(answer[0], str) else ""
    if not text:
        raise SummarizerError(f"{summarizer.name} gave an empty summary")
    return text[:limit]
