"""A dry run of the jobs that summarise: the jobs themselves, on a copy of the rows that no gist holds yet.

What they find is what a run would write, because nothing but the file differs. Nobody waits for it: the copy has its
own writer, and its size is that of what is new.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from memory_node.graph import NO_ID, Gist
from memory_node.housekeeping.runtime import Job, JobContext
from memory_node.storage import gists
from memory_node.storage.copies import copy_raw
from memory_node.storage.database import Database


def rehearse(context: JobContext, jobs: Sequence[Job]) -> tuple[Gist, ...]:
    """Return the gists that jobs would write now; their id is 0, and so is that of an episode that is not there yet.

    Raises:
        StorageError: there is no room for the copy. What a job raises.
    """
    present, now = context.session_id(), context.now_ns()
    with tempfile.TemporaryDirectory(prefix="memory-dry-run-") as folder:
        path = Path(folder) / "rows.db"
        copy_raw(context.db, path)
        db = Database.open(path)
        try:
            with db.read() as conn:
                known = {row[0] for row in conn.execute("SELECT id FROM episode")}
            rehearsal = replace(
                context, db=db, now_ns=lambda: now, session_id=lambda: present, summarizer=None, dry_run=False
            )
            for job in jobs:
                _run(job, rehearsal)
            with db.read() as conn:
                ids = [row[0] for row in conn.execute("SELECT id FROM gist ORDER BY id")]
                found = gists.get_many(conn, ids)
        finally:
            db.close()
    return tuple(
        gist._replace(id=NO_ID, episode_id=gist.episode_id if gist.episode_id in known else NO_ID) for gist in found
    )


def _run(job: Job, context: JobContext) -> None:
    while not context.closing.is_set():
        context.begin_step()
        if job.step(context).done:
            return
