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

from memory_node.memory import Memory

ROOT = Path(__file__).resolve().parents[2]
KILLS = 30


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


def killed_round(writer: subprocess.Popen[str], number: int, chance: random.Random) -> dict[int, str]:
    """Let one memory record, kill it at a random instant (also while it opens) and return the rows it acknowledged."""
    assert writer.stdin is not None and writer.stdout is not None
    print(number, file=writer.stdin, flush=True)
    lines: list[str] = []
    awaited = "pid " if chance.random() < 0.3 else "open"
    while not any(line.startswith("pid ") for line in lines) or not any(line.startswith(awaited) for line in lines):
        lines.append(writer.stdout.readline().strip())
    time.sleep(chance.uniform(0.0, 0.08))
    pid = next(line for line in lines if line.startswith("pid "))
    os.kill(int(pid.split()[1]), signal.SIGKILL)
    while "dead" not in lines:
        lines.append(writer.stdout.readline().strip())
    rows = [line.split(" ", 1) for line in lines if line.endswith(" thing")]
    return {int(id_): text for id_, text in rows}


def test_f31_whatever_was_acknowledged_is_found_after_kill_9(tmp_path: Path, writer: subprocess.Popen[str]) -> None:
    chance = random.Random(310)
    acknowledged: dict[int, str] = {}
    for number in range(KILLS):
        rows = killed_round(writer, number, chance)
        assert not rows.keys() & acknowledged.keys(), "no id is given twice"
        acknowledged |= rows
        if number % 3 == 2:
            with Memory.open(tmp_path / "robot.db", clock=FakeClock()) as memory:
                assert memory.check() == []
                for id_, text in list(acknowledged.items())[-40:]:
                    assert _first(memory, text.split()[0]) == (id_, text)
    assert len(acknowledged) > 4 * KILLS

    with Memory.open(tmp_path / "robot.db", clock=FakeClock()) as memory:  # by words alone: there is no embedder
        assert {id_: _first(memory, text.split()[0]) for id_, text in acknowledged.items()} == {
            id_: (id_, text) for id_, text in acknowledged.items()
        }
    embedder = WordEmbedder()
    with Memory.open(tmp_path / "robot.db", embedder=embedder, clock=FakeClock()) as memory:
        assert memory.wait_embedded(60.0)
        vectors = embedder.embed(list(acknowledged.values()))
        for (id_, text), vector in zip(acknowledged.items(), vectors, strict=True):
            (match,) = memory.semantic_search(limit=1, vector=vector).matches
            assert (match.id, match.text) == (id_, text) and match.similarity == pytest.approx(1.0, abs=1e-3)
        assert memory.check() == []


def _first(memory: Memory, word: str) -> tuple[int, str]:
    (match,) = memory.semantic_search(word, limit=1).matches
    return match.id, match.text
