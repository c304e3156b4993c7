"""Consolidation on request: what is due becomes gists now, or is only told."""

from __future__ import annotations

from dataclasses import dataclass

from memory_node.errors import MemoryNodeError
from memory_node.graph import Gist
from memory_node.housekeeping.episodes import JOB as EPISODES
from memory_node.housekeeping.gists import Gists
from memory_node.housekeeping.runtime import JobRunner
from memory_node.storage import gists


@dataclass(frozen=True)
class Consolidation:
    """Gists that were written, or with dry_run would be (their id is then 0), and how many clusters were found."""

    gists: tuple[Gist, ...]
    clusters: int


def consolidate(runner: JobRunner, dry_run: bool = False) -> Consolidation:
    """Link rows into episodes and write the gists that are due; a dry run goes the same way and writes nothing.

    Raises:
        MemoryNodeError: the job failed.
    """
    db = runner.context.db
    if dry_run:
        found = _run(runner, Gists.name, dry_run=True)
        return Consolidation(found, len(found))
    with db.read() as conn:
        newest = conn.execute("SELECT ifnull(max(id), 0) FROM gist").fetchone()[0]
    _run(runner, EPISODES)
    _run(runner, Gists.name)
    with db.read() as conn:
        ids = [row[0] for row in conn.execute("SELECT id FROM gist WHERE id > ? AND level = 0 ORDER BY id", (newest,))]
        written = tuple(gists.get_many(conn, ids))
    return Consolidation(written, len(written))


def _run(runner: JobRunner, name: str, dry_run: bool = False) -> tuple[Gist, ...]:
    state = runner.run(name, dry_run=dry_run)
    if state.error:
        raise MemoryNodeError(f"job {name} failed: {state.error}")
    return state.found
