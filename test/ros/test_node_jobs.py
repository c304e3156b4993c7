"""What `~/get_jobs` says of each job: the values of its last run, and what failed."""

from __future__ import annotations

import time
from pathlib import Path

from std_msgs.msg import String
from support.ros_harness import layer, node_here, peer

ROWS = 5


def test_get_jobs_tells_what_the_last_run_of_each_did(tmp_path: Path) -> None:
    parameters = {
        "layers": ["scene"],
        "scene": layer("/scene", "std_msgs/msg/String"),
        "consolidation_window": 0.5,
        "archive_after_seconds": 0.0,
        "consolidation_interval": 3600.0,
        "summarizer": {"url": "http://127.0.0.1:9/v1", "model": "nobody"},
    }
    with node_here(tmp_path, parameters) as node, peer() as other:
        jobs = {job.name: job for job in other.call("get_jobs").jobs}
        assert list(jobs) == [
            "episodes", "gists", "summaries", "merge_entities", "name_things", "archive", "rollup", "importance",
            "duplicates", "bound", "snapshots",
        ]  # fmt: skip
        for job in jobs.values():
            assert (job.state, job.runs, job.scanned, job.wrote, job.used_ms, job.error) == ("idle", 0, 0, 0, 0.0, "")
            assert job.budget_ms == 3600.0 * 500 and job.last_run.sec == 0

        for number in range(ROWS):
            other.publish("/scene", String(data=f"a red chair {number}"))
        rows = other.wait_rows(ROWS, "scene")
        time.sleep(0.6)
        began = time.time()
        assert other.call("consolidate").clusters == 1
        assert node.memory.run_job("summaries").error
        node.memory.run_job("episodes")
        jobs = {job.name: job for job in other.call("get_jobs").jobs}

        gists = jobs["gists"]
        assert (gists.state, gists.runs, gists.scanned, gists.wrote) == ("idle", 1, ROWS, ROWS + 1)
        assert 0.0 < gists.used_ms < 60_000 and gists.error == ""
        assert began - 1.0 <= gists.last_run.sec + gists.last_run.nanosec * 1e-9 <= time.time()
        failed = jobs["summaries"]
        assert failed.state == "failed" and failed.runs == 1 and failed.wrote == 0
        assert failed.error.startswith("SummarizerUnreachable: http://127.0.0.1:9/v1/chat/completions: ")
        assert failed.error.endswith("; tried again in 3600 s")
        assert jobs["archive"].runs == 0 and jobs["archive"].cursor == 0

        (gist,) = other.call("search_gists").gists
        duplicates = node.memory.run_job("duplicates")
        assert duplicates.scanned > ROWS and duplicates.cursor == 0
        rollup = node.memory.run_job("rollup")
        told = {job.name: job for job in other.call("get_jobs").jobs}
        for job, state in ((told["duplicates"], duplicates), (told["rollup"], rollup)):
            assert (job.runs, job.scanned, job.wrote, job.cursor) == (1, state.scanned, state.wrote, state.cursor)
            assert job.used_ms == state.used_ms
        assert gist.observation_count == len(rows) == ROWS
