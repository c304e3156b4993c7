"""The job `summaries`: a language model writes gists anew; the extractive text stands until it did."""

from __future__ import annotations

from collections.abc import Sequence

from memory_node.errors import SummarizerError
from memory_node.housekeeping import members
from memory_node.housekeeping.ages import Ages
from memory_node.housekeeping.archive import REWRITE_PATIENCE
from memory_node.housekeeping.asking import ask
from memory_node.housekeeping.runtime import JobContext, StepResult
from memory_node.protocols import Summarizer, SummaryRow
from memory_node.storage import gists


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
    """Return the summary of rows; None: the memory closes."""
    answer = ask(context, summarizer.name, lambda: summarizer.summarize(rows, limit))
    if answer is None and context.closing.is_set():
        return None
    text = " ".join(answer.split()) if isinstance(answer, str) else ""
    if not text:
        raise SummarizerError(f"{summarizer.name} gave an empty summary")
    return text[:limit]
