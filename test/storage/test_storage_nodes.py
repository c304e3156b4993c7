"""Node rows: fields, order, changes, archiving, removal, and the columns that projections are built from."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from memory_node.errors import InvalidArgument, StorageError
from memory_node.graph import EdgeType, Kind, Node, PositionSource, Tier
from memory_node.storage import edges, nodes, texts, vectors
from memory_node.storage.database import Database, Transaction
from memory_node.storage.told import told

Make = Callable[..., Node]


def put(db: Database, *rows: Node, internal: bool | None = None) -> list[int]:
    return db.write(lambda tx: nodes.insert_many(tx, rows, internal))


def get(db: Database, *ids: int) -> list[Node]:
    with db.read() as conn:
        return nodes.fetch(conn, ids)


def rows_of(db: Database, sql: str, *values: Any) -> list[Any]:
    with db.read() as conn:
        return conn.execute(sql, values).fetchall()


def test_every_field_comes_back_as_it_was(db: Database) -> None:
    node = Node(
        id=0, kind=Kind.OBSERVATION, layer="battery", text="battery: 45 %", text_id=None, stamp=-5, last_stamp=2**62,
        repeats=3, stamp_source="receive: no stamp", position=(1.5, -2.25, 0.1),
        position_source=PositionSource.MEASURED, frame="map", map_id="flat 2", confidence=0.25, importance=0.75,
        tier=Tier.LONG_TERM, session_id=4, episode_id=9, metadata={"a": [1, None], "ü": "ß"}, value=0.45, unit="%",
    )  # fmt: skip
    (id_,) = put(db, node)
    (found,) = get(db, id_)
    fields = {**node._asdict(), "id": id_, "text_id": found.text_id}
    assert found == Node(**fields)
    assert found.text_id is not None


def test_zero_is_a_place_and_a_time_and_none_is_unknown(db: Database, observation: Make) -> None:
    here, nowhere = get(db, *put(db, observation(position=(0.0, 0.0, 0.0), stamp=0), observation(position=None)))
    assert (here.position, here.stamp) == ((0.0, 0.0, 0.0), 0)
    assert nowhere.position is None
    assert rows_of(db, "SELECT x, y, z FROM node WHERE id = ?", nowhere.id) == [(None, None, None)]


def test_fetch_keeps_the_order_of_ids_and_leaves_missing_ones_out(db: Database, observation: Make) -> None:
    ids = put(db, *(observation(f"t{i}") for i in range(5)))
    asked = [ids[3], 999, ids[0], ids[4], ids[3]]
    assert [node.id for node in get(db, *asked)] == [ids[3], ids[0], ids[4], ids[3]]
    with db.read() as conn:
        assert [node.text for node in nodes.fetch(conn, np.array(ids)[[2, 1]])] == ["t2", "t1"]
        assert nodes.fetch(conn, []) == []


def test_fetch_is_one_statement_however_many_ids(db: Database, observation: Make) -> None:
    put(db, *(observation(f"t{i % 7}", layer=f"l{i % 3}") for i in range(3000)))
    statements: list[str] = []
    with db.read() as conn:
        conn.set_trace_callback(statements.append)
        found = nodes.fetch(conn, range(1, 2501))
        conn.set_trace_callback(None)
        plan = " ".join(row[3] for row in conn.execute(f"EXPLAIN QUERY PLAN {nodes._FETCH}", ("[1]",)))
    assert len(found) == 2500
    assert len(statements) == 1
    assert "SCAN node" not in plan and plan.count("SEARCH") == 4


@pytest.mark.parametrize("bad", [(np.inf, 0.0, 0.0), (0.0, np.nan, 0.0), (0.0, 0.0, -1e256), (1e10, 0.0, 0.0)])
def test_f21_nothing_that_is_no_place_reaches_the_file(
    db: Database, observation: Make, bad: tuple[float, float, float]
) -> None:
    with pytest.raises(StorageError, match="position_whole_and_finite"):
        put(db, observation("good"), observation("bad", position=bad))
    assert rows_of(db, "SELECT count(*) FROM node") == [(0,)]


def test_a_given_id_is_kept_and_new_ones_come_after(db: Database, observation: Make) -> None:
    given = db.new_id()
    assert put(db, observation(id=given), observation()) == [given, given + 1]


def test_layers_and_maps_are_named_once(db: Database, observation: Make) -> None:
    put(db, observation(layer="scene", map_id="home"), observation(layer="scene", map_id="home"))
    put(db, observation(layer="", map_id=""))
    with db.read() as conn:
        assert {name: layer.internal for name, layer in nodes.layers(conn).items()} == {"scene": False}
        assert list(nodes.maps(conn)) == ["home"]
    assert db.write(lambda tx: nodes.layer_id(tx, "")) == 0
    assert db.write(lambda tx: nodes.map_id(tx, "home")) == 1


def test_texts_of_an_internal_layer_are_wanted_once_it_is_perception(db: Database, observation: Make) -> None:
    ids = put(db, observation("warm motor", layer="motor"), internal=True)
    words = "SELECT rowid FROM text_fts WHERE text_fts MATCH 'motor'"
    assert rows_of(db, words) == []
    with db.read() as conn:
        columns = nodes.since(conn, 0)
    assert columns.internal.tolist() == [True]
    db.write(lambda tx: nodes.layer_id(tx, "motor", internal=False))
    assert len(rows_of(db, words)) == 1
    with db.read() as conn:
        newer = nodes.since(conn, columns.revision)
    assert newer.id.tolist() == ids
    assert newer.internal.tolist() == [False]
    assert db.check() == []


def test_update_changes_fields_and_drops_the_text_nobody_uses(db: Database, observation: Make) -> None:
    first, second = put(db, observation("old words"), observation("shared"))
    put(db, observation("shared"))
    assert db.write(
        lambda tx: nodes.update(
            tx, first, text="new words", stamp=5, position=(1, 2, 3), map_id="m", tier=Tier.LONG_TERM, metadata={"k": 1}
        )
    )
    assert db.write(lambda tx: nodes.update(tx, second, text=None, position=None))
    changed, emptied = get(db, first, second)
    assert (changed.text, changed.stamp, changed.position, changed.map_id) == ("new words", 5, (1.0, 2.0, 3.0), "m")
    assert (changed.tier, changed.metadata) == (Tier.LONG_TERM, {"k": 1})
    assert (emptied.text, emptied.text_id) == (None, None)
    assert rows_of(db, "SELECT body FROM text ORDER BY body") == [("new words",), ("shared",)]
    assert db.write(lambda tx: nodes.update(tx, 999, stamp=1)) is False
    with pytest.raises(InvalidArgument, match="^colour: "):
        db.write(lambda tx: nodes.update(tx, first, colour="red"))
    assert db.check() == []


def test_repeats_are_counted_on_the_row(db: Database, observation: Make) -> None:
    (id_,) = put(db, observation(stamp=100))
    db.write(lambda tx: nodes.count_repeats(tx, [(id_, 2, 300), (id_, 1, 200)]))
    (node,) = get(db, id_)
    assert (node.repeats, node.stamp, node.last_stamp) == (4, 100, 300)


def test_archive_keeps_time_place_and_edges_and_gives_up_text_and_vectors(db: Database, observation: Make) -> None:
    alone, one, other = put(
        db, observation("alone", stamp=7, position=(1, 2, 3)), observation("shared"), observation("shared")
    )
    model = db.write(lambda tx: vectors.open_model(tx, "m", 2))
    texts_of = [node.text_id or 0 for node in get(db, alone, one)]
    db.write(lambda tx: vectors.add_texts(tx, model.id, texts_of, [[1, 0]] * 2))
    db.write(lambda tx: vectors.add_node(tx, model.id, alone, [0, 1]))
    db.write(lambda tx: edges.add(tx, alone, one, EdgeType.NEAR_EVENT))
    assert db.write(lambda tx: nodes.archive(tx, [alone, one])) == 2
    assert db.write(lambda tx: nodes.archive(tx, [alone, one])) == 0
    archived, halved, kept = get(db, alone, one, other)
    assert (archived.text, archived.tier, archived.stamp) == (None, Tier.ARCHIVED, 7)
    assert archived.position == (1.0, 2.0, 3.0)
    assert (halved.text, kept.text) == (None, "shared")
    with db.read() as conn:
        assert edges.targets(conn, alone, EdgeType.NEAR_EVENT) == [one]
    assert rows_of(db, "SELECT body FROM text") == [("shared",)]
    assert rows_of(db, "SELECT text_id, node_id FROM vector") == [(texts_of[1], None)]
    assert db.check() == []


def test_remove_takes_everything_that_hangs_on_a_node(db: Database, observation: Make) -> None:
    model = db.write(lambda tx: vectors.open_model(tx, "m", 2))
    episode, gist, entity, row, other = put(
        db, observation("patrol", kind=Kind.EPISODE), observation("a gist", kind=Kind.GIST),
        observation("a thing", kind=Kind.ENTITY), observation("a row"), observation("other"),
    )  # fmt: skip
    removed = [episode, gist, entity, row]

    def hang(tx: Any) -> None:
        tx.conn.execute("INSERT INTO episode (id, status, explicit) VALUES (?, 'active', 1)", (episode,))
        tx.conn.execute("INSERT INTO gist VALUES (?, 0, '[]', 1, 0, ?, 'extractive', 0)", (gist, episode))
        tx.conn.execute("INSERT INTO entity (id, label) VALUES (?, 'thing')", (entity,))
        tx.conn.execute("INSERT INTO entity_place VALUES (NULL, ?, 0, 0, 0, 1, 0, 1, 0, 0)", (entity,))
        tx.conn.execute("INSERT INTO usage VALUES (?, 1, 0, 0)", (row,))
        edges.add_many(tx, [(row, other, EdgeType.NEAR_EVENT), (other, episode, EdgeType.BELONGS_TO)])
        nodes.update(tx, other, episode_id=episode)
        vectors.add_node(tx, model.id, episode, [1, 0])

    db.write(hang)
    assert db.write(lambda tx: nodes.remove(tx, [*removed, 999])) == 4
    for table in ("episode", "gist", "entity", "entity_place", "usage", "edge", "vector"):
        assert rows_of(db, f"SELECT count(*) FROM {table}") == [(0,)], table
    assert [node.id for node in get(db, *removed, other)] == [other]
    assert get(db, other)[0].episode_id == 0
    assert rows_of(db, "SELECT body FROM text") == [("other",)]
    assert db.check() == []


def test_removing_a_row_leaves_the_text_that_others_use(db: Database, observation: Make) -> None:
    first, second = put(db, observation("same"), observation("same"))
    db.write(lambda tx: nodes.remove(tx, [first]))
    assert [node.text for node in get(db, second)] == ["same"]
    db.write(lambda tx: nodes.remove(tx, [second]))
    assert rows_of(db, "SELECT count(*) FROM text") == [(0,)]
    assert rows_of(db, "SELECT rowid FROM text_fts WHERE text_fts MATCH 'same'") == []


def test_fifty_thousand_rows_removed_at_once(db: Database, observation: Make) -> None:
    ids = put(db, *(observation(f"text {i % 500}", stamp=i) for i in range(50_001)))
    with db.read() as conn:
        before = nodes.since(conn, 0)
    assert db.write(lambda tx: nodes.remove(tx, ids[1:])) == 50_000
    with db.read() as conn:
        after = nodes.since(conn, before.revision)
    assert (len(before.id), len(after.id), len(after.removed)) == (50_001, 0, 50_000)
    assert rows_of(db, "SELECT count(*) FROM text") == [(1,)]
    assert db.check() == []


def test_since_gives_columns_then_only_what_changed(db: Database, observation: Make) -> None:
    put(db, observation("metal", layer="motor", stamp=1), internal=True)
    rows = put(
        db,
        observation(
            "a", stamp=10, last_stamp=20, position=(1, 2, 3), confidence=0.5, map_id="m", episode_id=6, repeats=5,
        ),
        observation("b", kind=Kind.GIST, layer="", tier=Tier.LONG_TERM), observation("c"), observation("d"),
    )  # fmt: skip
    with db.read() as conn:
        every = nodes.since(conn, 0)
        same = nodes.since(conn, every.revision)
    assert every.complete and every.removed.size == 0
    assert every.id.tolist() == [rows[0] - 1, *rows]
    at = every.id.tolist().index(rows[0])
    assert (every.stamp[at], every.last_stamp[at], every.episode_id[at], every.confidence[at]) == (10, 20, 6, 0.5)
    assert (every.x[at], every.y[at], every.z[at]) == (1.0, 2.0, 3.0)
    assert np.isnan(every.x[at + 1]) and every.x.dtype == np.float64 and every.id.dtype == np.int64
    assert (every.kind[at + 1], every.layer_id[at + 1], every.tier[at + 1]) == (Kind.GIST, 0, Tier.LONG_TERM)
    assert every.internal.tolist() == [True, False, False, False, False]
    assert every.repeats.tolist() == [1, 5, 1, 1, 1]
    assert (same.id.size, same.removed.size, same.complete, same.revision) == (0, 0, False, every.revision)

    db.write(lambda tx: nodes.update(tx, rows[1], importance=0.9))
    db.write(lambda tx: nodes.archive(tx, [rows[2]]))
    db.write(lambda tx: nodes.remove(tx, [rows[3]]))
    (added,) = put(db, observation("e"))
    with db.read() as conn:
        newer = nodes.since(conn, every.revision)
        again = nodes.since(conn, 0)
    assert newer.id.tolist() == [rows[1], added]
    assert sorted(newer.removed.tolist()) == [rows[2], rows[3]]
    assert not newer.complete and newer.revision == every.revision + 4
    assert again.id.tolist() == [rows[0] - 1, rows[0], rows[1], added]


def test_since_reads_changed_rows_only(db: Database, observation: Make, steps: Callable[..., int]) -> None:
    put(db, *(observation("same", stamp=i) for i in range(5000)))
    with db.read() as conn:
        revision = nodes.since(conn, 0).revision
    put(db, observation("new"))
    with db.read() as conn:
        assert nodes.since(conn, revision).id.size == 1
        assert steps(conn, lambda: nodes.since(conn, revision)) < 20
        assert steps(conn, lambda: nodes.since(conn, 0)) > 200


def test_perception_of_a_stretch_of_time(db: Database, observation: Make) -> None:
    put(db, observation("warm", layer="motor", stamp=15), internal=True)
    early, inside, late, _, _ = put(
        db, observation(stamp=9, session_id=1), observation(stamp=10, session_id=1),
        observation(stamp=20, session_id=1), observation(stamp=15, session_id=2),
        observation(stamp=15, session_id=1, layer="events"),
    )  # fmt: skip
    with db.read() as conn:
        assert nodes.perceived_between(conn, 1, 10, 20) == [inside, late]
        assert nodes.perceived_between(conn, 1, 0, 9) == [early]


def test_deleting_a_text_in_use_is_refused_by_the_file_itself(db: Database, observation: Make) -> None:
    put(db, observation("in use"))
    with pytest.raises(StorageError, match="FOREIGN KEY"):
        db.write(lambda tx: tx.conn.execute("DELETE FROM text"))
    with db.read() as conn, pytest.raises(sqlite3.OperationalError):
        conn.execute("DELETE FROM node")
    assert db.write(lambda tx: texts.drop_unused(tx, [1])) == []


def test_what_rows_tell_of_a_place_comes_in_columns_in_the_order_asked(db: Database, observation: Make) -> None:
    def write(tx: Transaction) -> list[int]:
        return nodes.insert_many(
            tx,
            [
                observation("a cup", position=(1.0, 2.0, 3.0), frame="map", map_id="home", stamp=5, confidence=0.5),
                observation("a sofa"),
                observation("a lamp", position=(4.0, 5.0, 6.0), position_source=PositionSource.MEASURED),
            ],
        )

    cup, sofa, lamp = db.write(write)
    with db.read() as conn:
        home = nodes.maps(conn)["home"]
        found = told(conn, [lamp, 999, sofa, cup], 10)
        assert told(conn, [lamp, sofa, cup], 1).ids == (lamp,)
        assert told(conn, [sofa], 10) == told(conn, [], 10) == ((),) * len(found)
    assert (found.ids, found.x, found.y, found.z) == ((lamp, cup), (4.0, 1.0), (5.0, 2.0), (6.0, 3.0))
    assert (found.texts, found.frames, found.map_names, found.maps) == (
        ("a lamp", "a cup"), ("", "map"), ("", "home"), (0, home),
    )  # fmt: skip
    assert (found.first_seen, found.last_seen, found.repeats, found.confidence) == ((0, 5), (0, 5), (1, 1), (1.0, 0.5))
    assert (found.sources[0], found.radii) == (PositionSource.MEASURED, (0.0, 0.0))
