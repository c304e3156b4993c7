"""Readings of the body: the newest of the present clock, found without looking through those of earlier starts."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from memory_node.graph import Node
from memory_node.storage import body, nodes, sessions
from memory_node.storage.database import Database

Make = Callable[..., Node]
Steps = Callable[[sqlite3.Connection, Callable[[], object]], int]
DAY = 86_400 * 1_000_000_000


def test_the_latest_reading_after_a_restart_costs_no_look_at_all_earlier_ones(
    db: Database, observation: Make, steps: Steps
) -> None:
    def store(session: int, stamps: range) -> None:
        rows = [
            observation("battery: 50 %", layer="battery", stamp=stamp, last_stamp=stamp, session_id=session, value=0.5)
            for stamp in stamps
        ]
        db.write(lambda tx: nodes.insert_many(tx, rows, True))

    def restart(now: int) -> int:
        return db.write(lambda tx: sessions.open_session(tx, clock="wall", stamp=now, wall=now, frame="map"))

    first = restart(0)
    store(first, range(0, 30 * DAY, DAY // 100))
    present = restart(30 * DAY)
    with db.read() as conn:
        assert steps(conn, lambda: body.latest(conn, None, 31 * DAY, present)) < 30, "of 3000 readings a day's 100"
        assert body.latest(conn, None, 31 * DAY, present) == []
        assert [reading.stamp for reading in body.latest(conn, None, 31 * DAY, first)] == [30 * DAY - DAY // 100]
    store(present, range(30 * DAY - 5, 30 * DAY))
    with db.read() as conn:
        assert [reading.stamp for reading in body.latest(conn, None, 31 * DAY, present)] == [30 * DAY - 1]


def test_the_latest_reading_costs_no_look_at_all_that_came_late(db: Database, observation: Make, steps: Steps) -> None:
    def reading(text: str, first: int, last: int) -> Node:
        return observation(text, layer="battery", stamp=first, last_stamp=last, value=0.5)

    hour = 3600 * 1_000_000_000
    rows = [reading("older", -hour, -1), reading("current", 0, hour)]
    rows += [reading("late", stamp, stamp) for stamp in range(hour // 2, hour, hour // 5000)]
    rows += [reading("late again", stamp, stamp + 1) for stamp in range(hour // 2, hour, hour // 5000)]
    db.write(lambda tx: nodes.insert_many(tx, rows, True))
    with db.read() as conn:
        for now in (hour, hour + 5):
            assert [found.text for found in body.latest(conn, None, now)] == ["current"]
            assert steps(conn, lambda now=now: body.latest(conn, None, now)) < 10  # type: ignore[misc]
