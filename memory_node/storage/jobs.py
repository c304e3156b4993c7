"""Durable state of the housekeeping jobs: how far each one came, and how its last run ended."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from memory_node.storage.writer import Transaction


@dataclass(frozen=True)
class JobRow:
    """What is kept of a job. cursor is the job's own; last_run is a time of the node's clock (ns) or None."""

    name: str
    cursor: Mapping[str, Any] = field(default_factory=dict)
    last_run: int | None = None
    runs: int = 0
    scanned: int = 0
    wrote: int = 0
    used_ms: float = 0.0
    error: str = ""


def load(conn: sqlite3.Connection, name: str) -> JobRow:
    """Return the state of a job; one that never ran has an empty cursor."""
    row = conn.execute(
        "SELECT cursor, last_run, runs, scanned, wrote, used_ms, error FROM job WHERE name = ?", (name,)
    ).fetchone()
    return JobRow(name) if row is None else JobRow(name, json.loads(row[0]), *row[1:])


def cursor(conn: sqlite3.Connection, name: str) -> dict[str, Any]:
    """Return the cursor of a job, {} when it has none."""
    return dict(load(conn, name).cursor)


def save_cursor(tx: Transaction, name: str, value: Mapping[str, Any]) -> None:
    """Keep how far a job came, in the transaction of the work it tells of."""
    tx.conn.execute(
        "INSERT INTO job (name, cursor) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET cursor = excluded.cursor",
        (name, json.dumps(value, separators=(",", ":"))),
    )


def record(tx: Transaction, row: JobRow) -> None:
    """Keep how a run ended; the cursor stays as it is."""
    tx.conn.execute(
        "INSERT INTO job (name, last_run, runs, scanned, wrote, used_ms, error) VALUES (?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (name) DO UPDATE SET last_run = excluded.last_run, runs = excluded.runs,"
        " scanned = excluded.scanned, wrote = excluded.wrote, used_ms = excluded.used_ms, error = excluded.error",
        (row.name, row.last_run, row.runs, row.scanned, row.wrote, row.used_ms, row.error),
    )
