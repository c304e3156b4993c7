"""The jobs in the order they run: what summarises goes before what archives, what looks at changes goes last."""

from __future__ import annotations

from collections.abc import Sequence

from memory_node.housekeeping.archive import Archive, Bound
from memory_node.housekeeping.duplicates import Duplicates
from memory_node.housekeeping.gists import Gists
from memory_node.housekeeping.importance import Importance, Recalls
from memory_node.housekeeping.rollup import Rollup
from memory_node.housekeeping.runtime import Job
from memory_node.housekeeping.silence import Episodes
from memory_node.housekeeping.snapshots import Snapshots
from memory_node.housekeeping.summaries import Summaries


def standard_jobs(recalls: Recalls, others: Sequence[Job] = ()) -> list[Job]:
    """Return all jobs.

    Args:
        recalls: where queries note whom they recalled.
        others: jobs of other rooms; they run before rows are archived.
    """
    return [
        Episodes(), Gists(), Summaries(), *others, Archive(), Rollup(), Importance(recalls), Duplicates(), Bound(),
        Snapshots(),
    ]  # fmt: skip
