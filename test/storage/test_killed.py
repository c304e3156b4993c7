"""F31, F37: a writer killed at any instant loses nothing that it had acknowledged."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from memory_node.storage.database import Database

ROOT = Path(__file__).resolve().parents[2]
ROWS = 7
KILLS = 30


def killed_round(writer: subprocess.Popen[str], number: int, chance: random.Random) -> set[str]:
    """Let one writer run, kill it at a random instant (also while it opens) and return the batches it acknowledged."""
    assert writer.stdin is not None and writer.stdout is not None
    print(number, file=writer.stdin, flush=True)
    lines = []
    from_opening = chance.random() < 0.3
    while not (pid := next((line for line in lines if line.startswith("pid ")), "")) or not (
        from_opening or "open" in lines
    ):
        lines.append(writer.stdout.readline().strip())
    time.sleep(chance.uniform(0.0, 0.08))
    os.kill(int(pid.split()[1]), signal.SIGKILL)
    while "dead" not in lines:
        lines.append(writer.stdout.readline().strip())
    return {line for line in lines if "." in line}


def stored_batches(db: Database) -> dict[str, int]:
    with db.read() as conn:
        return dict(conn.execute("SELECT json_extract(metadata, '$.batch'), count(*) FROM node GROUP BY 1").fetchall())


@pytest.fixture
def writer(tmp_path: Path):
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("killed_writer.py")), str(tmp_path / "robot.db")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    yield process
    process.stdin.close()
    process.wait(30)
    process.stdout.close()


def test_f31_whatever_was_acknowledged_is_there_whole_after_kill_9(
    tmp_path: Path, writer: subprocess.Popen[str]
) -> None:
    chance = random.Random(31)
    acknowledged: set[str] = set()
    last_id = last_revision = 0
    for number in range(KILLS):
        acknowledged |= killed_round(writer, number, chance)
        db = Database.open(tmp_path / "robot.db")
        batches = stored_batches(db)
        assert acknowledged <= batches.keys()
        assert set(batches.values()) <= {ROWS}, "no batch is half there"
        assert db.check() == []
        assert db.new_id() > last_id and db.revision >= last_revision
        last_revision = db.revision
        with db.read() as conn:
            last_id = conn.execute("SELECT ifnull(max(id), 0) FROM node").fetchone()[0]
        db.close()
    assert len(acknowledged) > KILLS

    conn = sqlite3.connect(tmp_path / "robot.db")
    assert conn.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    for name in acknowledged:
        word = f"batch{name.replace('.', 'x')}"
        found = conn.execute("SELECT count(*) FROM text_fts WHERE text_fts MATCH ?", (word,)).fetchone()[0]
        assert found in (ROWS, ROWS - 1), "each row is found by its own words, an archived one is not"
    conn.close()
