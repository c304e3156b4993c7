"""Vectors and the models they come from."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from memory_node.errors import InvalidArgument, StorageError
from memory_node.graph import Node
from memory_node.storage import nodes, texts, vectors
from memory_node.storage.database import Database
from memory_node.storage.vectors import Model

Make = Callable[..., Node]


@pytest.fixture
def model(db: Database) -> Model:
    return db.write(lambda tx: vectors.open_model(tx, "first", 4))


@pytest.fixture
def text_ids(db: Database, model: Model) -> list[int]:
    return db.write(lambda tx: texts.intern_many(tx, ["a", "b", "c"]))


def test_encoding_is_float16_of_unit_length() -> None:
    rng = np.random.default_rng(5)
    given = (rng.standard_normal((20, 384)) * 10.0 ** rng.integers(-20, 20, (20, 1))).astype(np.float32)
    blobs = vectors.encode(given)
    assert [len(blob) for blob in blobs] == [768] * 20
    found = vectors.decode(blobs, 384)
    assert found.dtype == np.float32
    direction = given.astype(np.float64)
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    assert np.abs((found * direction).sum(axis=1) - 1).max() < 1e-3
    assert vectors.encode([0.0, 2.0]) == [np.array([0, 1], "<f2").tobytes()]
    assert vectors.encode([0.0, 0.0]) == [bytes(4)]
    assert vectors.decode([], 384).shape == (0, 384)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_vectors_that_are_not_finite_are_refused(db: Database, model: Model, text_ids: list[int], bad: float) -> None:
    with pytest.raises(InvalidArgument, match="^vector: "):
        db.write(lambda tx: vectors.put_texts(tx, model.id, {text_ids[0]: [[bad, 0, 0, 1]]}))
    with db.read() as conn:
        assert texts.backlog(conn, model.id) == 3


def test_f32_a_vector_of_another_length_is_refused(db: Database, model: Model, text_ids: list[int]) -> None:
    with pytest.raises(InvalidArgument, match="has 3 dimensions, the model has 4"):
        db.write(lambda tx: vectors.add_texts(tx, model.id, text_ids[:1], [[1, 0, 0]]))
    with pytest.raises(StorageError, match="no model of id 77"):
        db.write(lambda tx: vectors.add_node(tx, 77, 1, [1, 0, 0, 0]))


def test_parts_of_a_long_text_and_what_is_read_back(db: Database, model: Model, text_ids: list[int]) -> None:
    ids = db.write(lambda tx: vectors.put_texts(tx, model.id, {text_ids[1]: [[1, 0, 0, 0], [0, 1, 0, 0]]}))
    db.write(lambda tx: vectors.add_texts(tx, model.id, text_ids[:1], [[0, 0, 3, 0]]))
    with db.read() as conn:
        found, rows = vectors.of_texts(conn, model.id, [text_ids[1], text_ids[2], text_ids[0], 999])
        every = vectors.since(conn, model.id, 0)
    assert found.tolist() == [text_ids[1], text_ids[0]]
    assert rows.tolist() == [[1, 0, 0, 0], [0, 0, 1, 0]]
    assert every.ids.tolist() == [*ids, ids[-1] + 1]
    assert every.text_ids.tolist() == [text_ids[1], text_ids[1], text_ids[0]]
    assert every.node_ids.tolist() == [0, 0, 0]
    assert every.vectors.tolist() == [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]]


def test_a_new_vector_of_the_same_text_or_node_has_a_new_id(
    db: Database, model: Model, text_ids: list[int], observation: Make
) -> None:
    (node,) = db.write(lambda tx: nodes.insert_many(tx, [observation("n")]))
    old = db.write(lambda tx: vectors.put_texts(tx, model.id, {text_ids[0]: [[1, 0, 0, 0], [0, 1, 0, 0]]}))
    old.append(db.write(lambda tx: vectors.add_node(tx, model.id, node, [0, 0, 0, 1])))
    with db.read() as conn:
        before = vectors.since(conn, model.id, 0)
    new = db.write(lambda tx: vectors.put_texts(tx, model.id, {text_ids[0]: [[0, 0, 1, 0]]}))
    new.append(db.write(lambda tx: vectors.add_node(tx, model.id, node, [0, 1, 0, 0])))
    with db.read() as conn:
        after = vectors.since(conn, model.id, before.revision)
        assert vectors.of_nodes(conn, model.id, [node])[1].tolist() == [[0, 1, 0, 0]]
    assert min(new) > max(old)
    assert after.ids.tolist() == new
    assert after.removed.tolist() == old
    assert after.node_ids.tolist() == [0, node]
    assert not after.complete and after.revision == before.revision + 2


def test_add_texts_keeps_what_is_there_and_takes_the_first_of_twins(
    db: Database, model: Model, text_ids: list[int]
) -> None:
    db.write(lambda tx: vectors.add_texts(tx, model.id, text_ids[:1], [[1, 0, 0, 0]]))
    given = ([text_ids[0], text_ids[1], text_ids[1]], [[0, 0, 0, 1], [0, 1, 0, 0], [0, 0, 1, 0]])
    db.write(lambda tx: vectors.add_texts(tx, model.id, *given))
    db.write(lambda tx: vectors.add_texts(tx, model.id, *given))
    db.write(lambda tx: vectors.add_texts(tx, model.id, [], np.empty((0, 4), np.float32)))
    with db.read() as conn:
        assert vectors.of_texts(conn, model.id, text_ids)[1].tolist() == [[1, 0, 0, 0], [0, 1, 0, 0]]
        assert texts.backlog(conn, model.id) == 1


def test_f32_another_model_is_filled_while_the_first_ranks_and_the_old_vectors_go_at_the_end(
    db: Database, model: Model, text_ids: list[int]
) -> None:
    assert model.active
    db.write(lambda tx: vectors.add_texts(tx, model.id, text_ids, [[1, 0, 0, 0]] * 3))
    second = db.write(lambda tx: vectors.open_model(tx, "second", 3))
    assert not second.active
    with db.read() as conn:
        assert vectors.active_model(conn) == model
        assert texts.backlog(conn, second.id) == 3
        assert vectors.since(conn, second.id, 0).vectors.shape == (0, 3)
        before = vectors.since(conn, model.id, 0)
    late = db.write(lambda tx: texts.intern(tx, "said meanwhile"))
    with db.read() as conn:
        assert (texts.backlog(conn, model.id), texts.backlog(conn, second.id)) == (1, 4)
    assert db.write(vectors.drop_stale) == 0
    db.write(lambda tx: vectors.add_texts(tx, second.id, [*text_ids, late], [[0, 1, 0]] * 4))
    db.write(lambda tx: vectors.activate(tx, second.id))
    with db.read() as conn:
        active = vectors.active_model(conn)
        assert active == Model(second.id, "second", 3, active=True)
        assert len(vectors.since(conn, model.id, 0).ids) == 3, "until they are dropped, a few at a time"
    assert [db.write(lambda tx: vectors.drop_stale(tx, limit=2)) for _ in range(3)] == [2, 1, 0]
    with db.read() as conn:
        assert conn.execute("SELECT name FROM model").fetchall() == [("second",)]
        assert vectors.since(conn, second.id, before.revision).removed.tolist() == before.ids.tolist()
        assert len(vectors.since(conn, second.id, 0).ids) == 4
    assert db.check() == []


def test_same_length_but_another_name_is_another_model(db: Database, model: Model) -> None:
    other = db.write(lambda tx: vectors.open_model(tx, "other", 4))
    assert other.id != model.id and not other.active
    assert db.write(lambda tx: vectors.open_model(tx, "first", 4)) == model


def test_going_back_to_the_first_model_gives_the_half_filled_one_up(
    db: Database, model: Model, text_ids: list[int]
) -> None:
    db.write(lambda tx: vectors.add_texts(tx, model.id, text_ids[:1], [[1, 0, 0, 0]]))
    second = db.write(lambda tx: vectors.open_model(tx, "second", 3))
    db.write(lambda tx: vectors.add_texts(tx, second.id, text_ids[:1], [[1, 0, 0]]))
    assert db.write(lambda tx: vectors.open_model(tx, "first", 4)) == model
    with db.read() as conn:
        assert (texts.backlog(conn, model.id), texts.backlog(conn, second.id)) == (2, 0)
    assert db.write(vectors.drop_stale) == 1
    assert db.check() == []


def test_vectors_of_one_model_are_never_given_for_another(db: Database, model: Model, text_ids: list[int]) -> None:
    second = db.write(lambda tx: vectors.open_model(tx, "second", 4))
    db.write(lambda tx: vectors.add_texts(tx, model.id, text_ids[:1], [[1, 0, 0, 0]]))
    db.write(lambda tx: vectors.add_texts(tx, second.id, text_ids[:2], [[0, 1, 0, 0], [0, 0, 1, 0]]))
    with db.read() as conn:
        assert vectors.of_texts(conn, model.id, text_ids)[1].tolist() == [[1, 0, 0, 0]]
        assert vectors.of_texts(conn, second.id, text_ids)[1].tolist() == [[0, 1, 0, 0], [0, 0, 1, 0]]
        assert vectors.since(conn, model.id, 0).vectors.tolist() == [[1, 0, 0, 0]]


def test_since_reads_changed_vectors_only(db: Database, model: Model, steps: Callable[..., int]) -> None:
    ids = db.write(lambda tx: texts.intern_many(tx, [f"text {i}" for i in range(5001)]))
    db.write(lambda tx: vectors.add_texts(tx, model.id, ids[:-1], [[1, 0, 0, 0]] * 5000))
    revision = db.revision
    db.write(lambda tx: vectors.add_texts(tx, model.id, ids[-1:], [[0, 1, 0, 0]]))
    db.write(lambda tx: tx.conn.execute("ANALYZE"))
    with db.read() as conn:
        assert vectors.since(conn, model.id, revision).text_ids.tolist() == ids[-1:]
        assert steps(conn, lambda: vectors.since(conn, model.id, revision)) < 20
        assert steps(conn, lambda: vectors.since(conn, model.id, 0)) > 200
        assert steps(conn, lambda: vectors.of_texts(conn, model.id, ids[:10])) < 20


def test_nothing_stale_costs_nothing(db: Database, model: Model, steps: Callable[..., int]) -> None:
    ids = db.write(lambda tx: texts.intern_many(tx, [f"text {i}" for i in range(5000)]))
    db.write(lambda tx: vectors.add_texts(tx, model.id, ids, [[1, 0, 0, 0]] * 5000))
    assert db.write(lambda tx: steps(tx.conn, lambda: vectors.drop_stale(tx))) < 5
