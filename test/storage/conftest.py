"""A fresh database a test, and rows to put into it."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memory_node.graph import Kind, Node
from memory_node.storage.database import Database

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    database = Database.open(tmp_path / "robot.db")
    yield database
    database.close()


@pytest.fixture
def observation() -> Callable[..., Node]:
    """Makes an observation that is to be stored; every field can be given."""

    def make(text: str | None = "a chair", **fields: Any) -> Node:
        base: dict[str, Any] = {"id": 0, "kind": Kind.OBSERVATION, "layer": "scene", "text_id": None, "stamp": 0}
        base |= fields
        return Node(text=text, last_stamp=base.pop("last_stamp", base["stamp"]), **base)

    return make


@pytest.fixture
def steps() -> Callable[[sqlite3.Connection, Callable[[], object]], int]:
    """Counts, in hundreds of SQLite's instructions, what a call costs on a connection."""

    def count(conn: sqlite3.Connection, call: Callable[[], object]) -> int:
        seen = [0]

        def tick() -> None:
            seen[0] += 1

        conn.set_progress_handler(tick, 100)
        try:
            call()
        finally:
            conn.set_progress_handler(None, 0)
        return seen[0]

    return count


@pytest.fixture
def run_child() -> Callable[..., str]:
    """Runs Python source in another process and returns what it prints; its arguments are sys.argv[1:]."""

    def run(source: str, *arguments: object) -> str:
        done = subprocess.run(
            [sys.executable, "-c", source, *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=60,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return run
