"""F14: a signal in the middle of housekeeping of a large store."""

from __future__ import annotations

import signal
import sqlite3
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from support.embeddings_endpoint import endpoint
from support.fakes import WordEmbedder
from support.ros_harness import QUIET, TYPES, peer, process, ready, wait_until

from memory_node.memory import Memory

pytestmark = [pytest.mark.process, pytest.mark.usefixtures("domain")]


class StuckEmbedder(WordEmbedder):
    """Does not come back once `stuck` is set, until `ready` is."""

    def __init__(self) -> None:
        super().__init__(dim=32, name="remote-words")
        self.stuck, self.at_work, self.ready = threading.Event(), threading.Event(), threading.Event()

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        if self.stuck.is_set():
            self.at_work.set()
            assert self.ready.wait(120.0)
        return super().embed(texts)


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


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_f13_a_signal_while_many_questions_are_on_their_way_leaves_no_traceback(tmp_path: Path, number: int) -> None:
    path = tmp_path / "memory.db"
    with process(tmp_path, {"db_path": str(path)} | QUIET) as node, peer() as other:
        ready(other, node)
        assert all(other.call("store_specific_memory", text=f"note {i}").success for i in range(20))
        assert other.call("recall", query="note 3").success
        client = other.node.create_client(TYPES["recall"], "/memory/recall")
        assert client.wait_for_service(10.0)
        waiting = [client.call_async(TYPES["recall"].Request(query="note 3")) for _ in range(50)]
        wait_until(lambda: any(answer.done() for answer in waiting), "the first answer")
        node.send(number)
        while node.running and len(waiting) < 5000:
            waiting.append(client.call_async(TYPES["recall"].Request(query="note 3")))
            time.sleep(0.001)
        assert node.wait() == 0, node.output
        assert not all(answer.done() for answer in waiting), "some were on their way"
        assert "Traceback" not in node.output
    with Memory.open(path) as memory:
        assert memory.status().observations == 20


@pytest.mark.parametrize("asked", [False, True])
def test_f14_an_endpoint_that_hangs_does_not_keep_the_node_from_its_end(tmp_path: Path, asked: bool) -> None:
    embedder = StuckEmbedder()
    path = tmp_path / "memory.db"
    with endpoint(embedder) as url:
        parameters = {"db_path": str(path), "embedder": {"url": url, "model": embedder.name, "timeout": 60.0}}
        with process(tmp_path, parameters) as node, peer() as other:
            ready(other, node)
            assert other.call("store_specific_memory", text="the first note").success
            wait_until(lambda: other.call("get_status").status.vectors == 1, "it has its vector")
            embedder.stuck.set()
            if asked:
                other.ask("semantic_search", query="is there a note")
            else:
                assert other.call("store_specific_memory", text="the last note").success
            assert embedder.at_work.wait(20.0)
            began = time.monotonic()
            node.send(signal.SIGINT)
            assert node.wait() == 0, node.output
            assert time.monotonic() - began < 5.0, "a launch file sends SIGTERM then"
            assert "Traceback" not in node.output
            embedder.ready.set()
    with Memory.open(path, embedder=WordEmbedder(dim=32, name="remote-words")) as memory:
        assert memory.wait_embedded(60.0)
        assert memory.status().observations == (1 if asked else 2)
