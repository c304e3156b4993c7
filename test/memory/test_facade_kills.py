"""F31, F37: a memory killed at any instant finds all that it had acknowledged, by its words and by its vector."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.fakes import FakeClock, WordEmbedder

from memory_node.index import vectors
from memory_node.memory import Memory

ROOT = Path(__file__).resolve().parents[2]
KILLS = 30
SAVING = 6  # rounds that are killed while the cache of the graph is being written


@pytest.fixture(autouse=True)
def small_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in the process that is killed: few rows have a graph."""
    monkeypatch.setattr(vectors, "EXACT_BELOW", 64)
    monkeypatch.setattr(vectors, "GRAPH_COST", 0.0)


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("killed_memory.py")), str(tmp_path / "robot.db")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "test")])},
    )  # fmt: skip
    yield process
    assert process.stdin is not None and process.stdout is not None
    process.stdin.close()
    process.wait(30)
    process.stdout.close()


def killed_round(
    writer: subprocess.Popen[str], number: int, chance: random.Random, draft: Path | None = None
) -> dict[int, str]:
    """Let one memory record, kill it and return the rows it acknowledged.

    Args:
        draft: is killed while this file is there; None: at a random instant, also while it opens.
    """
    assert writer.stdin is not None and writer.stdout is not None
    print(number, file=writer.stdin, flush=True)
    lines: list[str] = []
    awaited = "pid " if chance.random() < 0.3 else "open"
    while not any(line.startswith("pid ") for line in lines) or not any(line.startswith(awaited) for line in lines):
        lines.append(writer.stdout.readline().strip())
    if draft is None:
        time.sleep(chance.uniform(0.0, 0.08))
    else:
        draft.unlink(missing_ok=True)
        patience = time.monotonic() + 20.0
        while not draft.exists() and time.monotonic() < patience:
            pass
    pid = next(line for line in lines if line.startswith("pid "))
    os.killpg(int(pid.split()[1]), signal.SIGKILL)
    while "dead" not in lines:
        lines.append(writer.stdout.readline().strip())
    rows = [line.split(" ", 1) for line in lines if line.endswith(" thing")]
    return {int(id_): text for id_, text in rows}


def test_f31_whatever_was_acknowledged_is_found_after_kill_9(tmp_path: Path, writer: subprocess.Popen[str]) -> None:
    chance = random.Random(310)
    acknowledged: dict[int, str] = {}
    embedder = WordEmbedder()
    draft, cut = tmp_path / "robot.db.hnsw.bin.part", 0
    for number in range(KILLS):
        saving = number % (KILLS // SAVING) == KILLS // SAVING - 1
        rows = killed_round(writer, number, chance, draft if saving else None)
        cut += saving and draft.exists()
        assert not rows.keys() & acknowledged.keys(), "no id is given twice"
        acknowledged |= rows
        if number % 3 == 2:
            with Memory.open(tmp_path / "robot.db", embedder=embedder, clock=FakeClock()) as memory:
                assert memory.check() == []
                for id_, text in list(acknowledged.items())[-40:]:
                    assert _first(memory, text.split()[0]) == (id_, text)
                assert memory.wait_embedded(60.0)
                _assert_found_by_vector(memory, embedder, dict(list(acknowledged.items())[-40:]))
    assert len(acknowledged) > 4 * KILLS and cut >= SAVING // 2

    with Memory.open(tmp_path / "robot.db", clock=FakeClock()) as memory:  # by words alone: there is no embedder
        assert {id_: _first(memory, text.split()[0]) for id_, text in acknowledged.items()} == {
            id_: (id_, text) for id_, text in acknowledged.items()
        }
    with Memory.open(tmp_path / "robot.db", embedder=embedder, clock=FakeClock()) as memory:
        assert memory.wait_embedded(60.0)
        assert _assert_found_by_vector(memory, embedder, acknowledged).endswith("graph")
        assert memory.check() == []


def _assert_found_by_vector(memory: Memory, embedder: WordEmbedder, rows: dict[int, str]) -> str:
    """Assert that each row is found by its own vector; returns the way that the last search took."""
    for (id_, text), vector in zip(rows.items(), embedder.embed(list(rows.values())), strict=True):
        found = memory.semantic_search(limit=1, vector=vector, explain=True)
        (match,) = found.matches
        assert (match.id, match.text) == (id_, text) and match.similarity == pytest.approx(1.0, abs=1e-3)
    return str(found.plan["path"])


def _first(memory: Memory, word: str) -> tuple[int, str]:
    (match,) = memory.semantic_search(word, limit=1).matches
    return match.id, match.text
