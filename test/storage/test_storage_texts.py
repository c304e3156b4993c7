"""Distinct texts, the word index and the embedding queue (F40: words are data, never query syntax)."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

import pytest

from memory_node.errors import InvalidArgument
from memory_node.graph import Node
from memory_node.storage import nodes, texts, vectors
from memory_node.storage.database import Database

Make = Callable[..., Node]


def words(db: Database, query: str) -> list[int]:
    with db.read() as conn:
        return [row[0] for row in conn.execute("SELECT rowid FROM text_fts WHERE text_fts MATCH ?", (query,))]


def test_a_text_is_stored_once_however_often_it_is_said(db: Database) -> None:
    first = db.write(lambda tx: texts.intern(tx, "chair"))
    again = db.write(lambda tx: texts.intern_many(tx, ["chair", "table", "chair", "Chair"]))
    assert again == [first, again[1], first, again[3]]
    assert len({*again}) == 3
    with db.read() as conn:
        assert texts.bodies(conn, [*again, 999]) == {first: "chair", again[1]: "table", again[3]: "Chair"}
        assert texts.exists(conn, first) and not texts.exists(conn, 999)
    assert words(db, "chair") == [first, again[3]]


ODD = [
    "", " ", "kitchen-table", "mug:", '"mug', "AND", "NOT mug", "don't", "a.b", "*", "(mug", "naïve 椅子 🪑", "a\x00b",
    "x" * 70_000,
]  # fmt: skip


def test_f40_any_text_is_stored_as_it_is(db: Database, observation: Make) -> None:
    ids = db.write(lambda tx: nodes.insert_many(tx, [observation(text) for text in ODD]))
    with db.read() as conn:
        assert [node.text for node in nodes.fetch(conn, ids)] == ODD
    assert db.check() == []
    db.write(lambda tx: nodes.remove(tx, ids))
    assert db.check() == []
    assert words(db, "mug") == []


def test_half_a_surrogate_pair_is_refused_by_name(db: Database) -> None:
    with pytest.raises(InvalidArgument, match="^text: is not valid Unicode"):
        db.write(lambda tx: texts.intern(tx, "broken \ud83e"))
    assert db.write(lambda tx: texts.intern(tx, "fine")) == 1


def test_unwanted_texts_are_neither_words_nor_queued_until_somebody_wants_them(db: Database) -> None:
    model = db.write(lambda tx: vectors.open_model(tx, "m", 2))
    quiet = db.write(lambda tx: texts.intern(tx, "motor 40 degrees", wanted=False))
    with db.read() as conn:
        assert texts.backlog(conn, model.id) == 0
    assert words(db, "motor") == []
    assert db.write(lambda tx: texts.intern(tx, "motor 40 degrees")) == quiet
    assert words(db, "motor") == [quiet]
    with db.read() as conn:
        assert texts.unembedded(conn, model.id, 10) == [(quiet, "motor 40 degrees")]
    db.write(lambda tx: texts.intern(tx, "motor 40 degrees", wanted=False))
    assert words(db, "motor") == [quiet]
    assert db.check() == []


def test_the_backlog_is_what_has_no_vector_yet(db: Database) -> None:
    early = db.write(lambda tx: texts.intern(tx, "before any model"))
    model = db.write(lambda tx: vectors.open_model(tx, "m", 2))
    ids = [early, *db.write(lambda tx: texts.intern_many(tx, ["a", "b", "c"]))]
    with db.read() as conn:
        assert texts.backlog(conn, model.id) == 4
        assert [row[0] for row in texts.unembedded(conn, model.id, 3)] == ids[:3]
    db.write(lambda tx: vectors.put_texts(tx, model.id, {ids[0]: [[1, 0]]}))
    db.write(lambda tx: vectors.add_texts(tx, model.id, [ids[2]], [[0, 1]]))
    with db.read() as conn:
        assert texts.unembedded(conn, model.id, 10) == [(ids[1], "a"), (ids[3], "c")]
        assert texts.backlog(conn, model.id) == 2


def test_asking_for_the_next_texts_costs_the_same_however_many_are_done(
    db: Database, steps: Callable[..., int]
) -> None:
    model = db.write(lambda tx: vectors.open_model(tx, "m", 2))
    ids = db.write(lambda tx: texts.intern_many(tx, [f"text {i}" for i in range(5000)]))
    db.write(lambda tx: vectors.add_texts(tx, model.id, ids[:-3], [[1, 0]] * 4997))
    with db.read() as conn:
        assert [row[0] for row in texts.unembedded(conn, model.id, 8)] == ids[-3:]
        assert steps(conn, lambda: texts.unembedded(conn, model.id, 8)) < 5


def test_drop_unused_forgets_words_vectors_and_the_place_in_the_queue(db: Database, observation: Make) -> None:
    model = db.write(lambda tx: vectors.open_model(tx, "m", 2))
    (row,) = db.write(lambda tx: nodes.insert_many(tx, [observation("red chair")]))
    loose = db.write(lambda tx: texts.intern_many(tx, ["blue chair", "green chair"]))
    db.write(lambda tx: vectors.add_texts(tx, model.id, loose[:1], [[1, 0]]))
    with db.read() as conn:
        used = nodes.fetch(conn, [row])[0].text_id or 0
        before = vectors.since(conn, model.id, 0)
    assert db.write(lambda tx: texts.drop_unused(tx, [used, *loose])) == loose
    assert words(db, "chair") == [used]
    with db.read() as conn:
        after = vectors.since(conn, model.id, before.revision)
        assert texts.backlog(conn, model.id) == 1
    assert after.removed.tolist() == before.ids.tolist()
    assert db.check() == []


def test_the_word_index_ranks_and_stems_over_the_view_it_reads_from(db: Database) -> None:
    bodies = ["a chair, chairs and a CHAIR", "one chair by a window, in the sun"]
    ids = db.write(lambda tx: texts.intern_many(tx, bodies))
    with db.read() as conn:
        ranked = conn.execute(
            "SELECT rowid, body FROM text_fts WHERE text_fts MATCH '\"chair\"' ORDER BY bm25(text_fts)"
        ).fetchall()
        assert ranked[0] == (ids[0], "a chair, chairs and a CHAIR")
        assert len(ranked) == 2
        assert conn.execute("SELECT cnt FROM text_terms WHERE term = 'chair'").fetchone() == (4,)


def test_ids_of_texts_as_they_read(db: Database) -> None:
    cup, sofa = db.write(lambda tx: texts.intern_many(tx, ["cup", "sofa"]))
    with db.read() as conn:
        assert texts.ids_of(conn, ["sofa", "cup", "lamp", "sofa"]) == {"cup": cup, "sofa": sofa}
        assert texts.ids_of(conn, []) == {}


@pytest.mark.skipif(not hasattr(sqlite3.Connection, "setlimit"), reason="Python before 3.11 cannot lower the limit")
def test_ids_of_more_texts_than_a_statement_takes_variables(db: Database) -> None:
    said = [f"thing {i}" for i in range(1200)]
    ids = db.write(lambda tx: texts.intern_many(tx, said))
    with db.read() as conn:
        usual = conn.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 999)
        try:
            assert texts.ids_of(conn, said) == dict(zip(said, ids, strict=True))
        finally:
            conn.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, usual)
