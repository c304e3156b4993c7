"""Consolidation on request: what is due becomes gists now, or is only told."""

from __future__ import annotations

from dataclasses import dataclass

from memory_node.errors import MemoryNodeError
from memory_node.graph import Gist
from memory_node.housekeeping.gists import Gists
from memory_node.housekeeping.rehearsal import rehearse
from memory_node.housekeeping.runtime import JobRunner
from memory_node.housekeeping.silence import Episodes
from memory_node.storage import gists


@dataclass(frozen=True)
class Consolidation:
    """Gists that were written, or with dry_run would be (their id is then 0), and how many clusters were found."""

    gists: tuple[Gist, ...]
    clusters: int


def consolidate(runner: JobRunner, dry_run: bool = False) -> Consolidation:
    """Link rows into episodes and write the gists that are due.

    A dry run lets the same jobs do the same on a copy of the rows that are not summarised yet, so it finds the clusters
    that a run would, and leaves no trace.

    Raises:
        MemoryNodeError: a job failed.
    """
    if dry_run:
        found = _rehearsed(runner)
        return Consolidation(found, len(found))
    db = runner.context.db
    with db.read() as conn:
        newest = conn.execute("SELECT ifnull(max(id), 0) FROM gist").fetchone()[0]
    for name in (Episodes.name, Gists.name):
        state = runner.run(name)
        if state.error:
            raise MemoryNodeError(f"job {name} failed: {state.error}")
    with db.read() as conn:
        ids = [row[0] for row in conn.execute("SELECT id FROM gist WHERE id > ? AND level = 0 ORDER BY id", (newest,))]
        written = tuple(gists.get_many(conn, ids))
    return Consolidation(written, len(written))


def _rehearsed(runner: JobRunner) -> tuple[Gist, ...]:
    try:
        return rehearse(runner.context, [Episodes(), Gists()])
    except MemoryNodeError:
        raise
    except Exception as problem:  # as the runner takes what a job raises
        raise MemoryNodeError(f"dry run failed: {type(problem).__name__}: {problem}") from problem
