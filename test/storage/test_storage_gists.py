"""Gists that stand in for what is archived, found without asking about every row of the others."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence

from memory_node.graph import Gist, Node
from memory_node.storage import gists, nodes
from memory_node.storage.database import Database

Make = Callable[..., Node]
Steps = Callable[[sqlite3.Connection, Callable[[], object]], int]


def store_gist(db: Database, members: Sequence[int], radius: float = 1.0, map_id: str = "") -> int:
    gist = Gist(
        id=0, text="much was seen", layers=("scene",), start=0, end=1, observation_count=len(members), position=None,
        frame="map", radius=radius, map_id=map_id,
    )  # fmt: skip
    return db.write(lambda tx: gists.insert(tx, gist, members))


def store_rows(db: Database, observation: Make, number: int) -> list[int]:
    rows = [observation(f"row {i}", layer="scene", stamp=i, last_stamp=i) for i in range(number)]
    return db.write(lambda tx: nodes.insert_many(tx, rows))


def test_a_gist_stands_in_where_a_row_is_archived_or_none_is_left(db: Database, observation: Make) -> None:
    rows = store_rows(db, observation, 9)
    whole, partly, gone, newer = (store_gist(db, members) for members in (rows[:2], rows[2:5], [], rows[5:9]))
    of_gists = store_gist(db, [whole, partly])
    given = [newer, gone, partly, whole, of_gists]
    with db.read() as conn:
        assert gists.standing_in(conn, given) == [gone]
    db.write(lambda tx: nodes.archive(tx, [rows[4]]))
    with db.read() as conn:
        assert gists.standing_in(conn, given) == [gone, partly]
    db.write(lambda tx: nodes.archive(tx, [partly]))
    with db.read() as conn:
        assert gists.standing_in(conn, given) == [gone, partly, of_gists]


def test_rows_newer_than_any_that_is_archived_are_not_asked_about(
    db: Database, observation: Make, steps: Steps
) -> None:
    rows = store_rows(db, observation, 2001)
    db.write(lambda tx: nodes.archive(tx, rows[:1]))
    ids = [store_gist(db, rows[first : first + 100]) for first in range(1, 2001, 100)]
    with db.read() as conn:
        assert steps(conn, lambda: gists.standing_in(conn, ids)) < 20, "asking about 2000 rows takes 500"


def test_the_first_of_a_map_are_told_in_the_order_given_and_no_more_than_asked_for(db: Database) -> None:
    one, other, next_one, last = (store_gist(db, [], 1.0, map_id) for map_id in ("a", "", "a", "a"))
    given = [last, other, next_one, one, 9999]
    with db.read() as conn:
        assert gists.on_map(conn, given, "a", 2) == [last, next_one]
        assert gists.on_map(conn, given, "a", 9) == [last, next_one, one]
        assert gists.on_map(conn, given, "", 9) == [other]


def test_gists_of_nodes_read_already_are_those_that_are_read_by_id(db: Database, observation: Make) -> None:
    one, gone, other = store_gist(db, store_rows(db, observation, 2), 2.5, "a"), store_gist(db, []), store_gist(db, [])
    with db.read() as conn:
        found = nodes.fetch(conn, [other, gone, one])
    db.write(lambda tx: nodes.remove(tx, [gone]))
    scores = {one: 0.5, gone: 0.4, other: 0.3}
    with db.read() as conn:
        assert gists.of_nodes(conn, found, scores) == gists.get_many(conn, [other, one], scores)
        assert [gist.score for gist in gists.of_nodes(conn, found, scores)] == [0.3, 0.5]
