"""F14: a signal in the middle of housekeeping of a large store."""

from __future__ import annotations

import signal
import sqlite3
import time
from pathlib import Path

import pytest
from support.embeddings_endpoint import endpoint
from support.fakes import WordEmbedder
from support.ros_harness import peer, process, ready, wait_until

from memory_node.memory import Memory

pytestmark = [pytest.mark.process, pytest.mark.usefixtures("domain")]

PLACES, ROWS_EACH = 400, 10
NS = 1_000_000_000


def fill(path: Path, embedder: WordEmbedder) -> None:
    """Rows of two hours ago, each place with its own words."""
    began = time.time_ns() - 7200 * NS
    with Memory.open(path, embedder=embedder) as memory:
        for place in range(PLACES):
            for i in range(ROWS_EACH):
                at = (20.0 * (place % 20), 20.0 * (place // 20), 0.0)
                memory.record(f"thing n{place}x{i}", "scene", at, began + (place * ROWS_EACH + i) * NS // 10)
        assert memory.wait_embedded(120.0)


@pytest.mark.parametrize(("job", "number"), [("gists", signal.SIGTERM), ("snapshots", signal.SIGINT)])
def test_f14_a_signal_during_housekeeping_of_thousands_of_rows_loses_none(
    tmp_path: Path, job: str, number: int
) -> None:
    embedder = WordEmbedder(dim=32, name="remote-words")
    path = tmp_path / "memory.db"
    fill(path, embedder)
    with endpoint(embedder) as url:
        parameters = {
            "db_path": str(path),
            "embedder": {"url": url, "model": embedder.name},
            "consolidation_window": 60.0,
            "consolidation_interval": 0.1,
            "archive_after_seconds": 1e6,  # the texts are asked for below
        }
        with process(tmp_path, parameters) as node, peer() as other:
            ready(other, node)
            assert other.call("store_specific_memory", text="the last note").success

            def at_work() -> bool:
                state = next(state for state in other.call("get_jobs").jobs if state.name == job)
                return state.state == "running" or state.runs > 0

            wait_until(at_work, f"{job} is at work", 60.0)
            node.send(number)
            node.send(number)
            assert node.wait() == 0, node.output
            assert "Traceback" not in node.output
    with sqlite3.connect(path) as database:
        assert database.execute("PRAGMA quick_check").fetchone() == ("ok",)
    with Memory.open(path, embedder=embedder) as memory:
        assert memory.wait_embedded(120.0)
        status = memory.status()
        assert status.observations == PLACES * ROWS_EACH + 1 and status.index_state == "ready"
        for text in ("the last note", "thing n0x0", f"thing n{PLACES - 1}x{ROWS_EACH - 1}"):
            assert memory.semantic_search(text, limit=1).matches[0].text == text
        memory.consolidate()
        in_gists = sum(gist.observation_count for gist in memory.search_gists(limit=1000).gists)
        assert in_gists == PLACES * ROWS_EACH, "what was summarised before the signal and after it is all of it, once"
