"""Questions go first: the writer, the indexer and the embedding of texts wait for them, and not for ever."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support.fakes import WordEmbedder

from memory_node.config import Settings
from memory_node.graph import Node
from memory_node.index.projections import Projections
from memory_node.ingest.embedding import EmbeddingQueue, wait_until
from memory_node.memory import Memory
from memory_node.storage import foreground, meta, nodes, vectors
from memory_node.storage.database import Database
from memory_node.storage.foreground import Foreground

Make = Callable[..., Node]
A_WHILE = 0.1
"""s in which what does not wait would be done many times over."""


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What gives way waits as long as a question takes."""
    monkeypatch.setattr(foreground, "PATIENCE", 60.0)


def test_foreground_counts_nested_questions() -> None:
    questions = Foreground()
    with questions:
        with questions:
            assert questions.busy
        assert questions.busy
    assert not questions.busy


def test_a_step_waits_for_the_last_of_the_questions(patient: None) -> None:
    questions, done = Foreground(), threading.Event()

    def step() -> None:
        questions.give_way()
        done.set()

    with questions:
        with questions:
            threading.Thread(target=step, daemon=True).start()
            assert not done.wait(A_WHILE)
        assert not done.wait(A_WHILE)
    assert done.wait(30.0)


def test_a_step_waits_no_longer_than_its_patience() -> None:
    questions = Foreground()
    with questions:
        questions.give_way()
        assert questions.busy


def test_a_commit_waits_for_the_question_at_hand_and_takes_along_what_came_meanwhile(
    db: Database, patient: None
) -> None:
    before = db.revision
    with db.foreground:
        first = db.submit(lambda tx: meta.put(tx.conn, "first", 1))
        time.sleep(A_WHILE)
        second = db.submit(lambda tx: meta.put(tx.conn, "second", 2))
        assert not first.done() and not second.done()
    first.result(30.0), second.result(30.0)
    with db.read() as conn:
        assert (meta.get(conn, "first"), meta.get(conn, "second")) == (1, 2)
    assert db.revision == before + 1


def test_questions_without_a_pause_do_not_keep_a_commit_out(db: Database, observation: Make) -> None:
    with db.foreground:
        assert db.write(lambda tx: nodes.insert_many(tx, [observation("a red chair")])) == [1]


def test_the_indexer_waits_for_the_question_at_hand(
    db: Database, observation: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder = WordEmbedder(16)
    texts = [f"thing {i}" for i in range(60)]
    monkeypatch.setattr("memory_node.index.vectors.EXACT_BELOW", 50)
    model = db.write(lambda tx: vectors.open_model(tx, embedder.name, embedder.dim))
    ids = db.write(lambda tx: nodes.insert_many(tx, [observation(text) for text in texts]))
    with db.read() as conn:
        of = {node.id: node.text_id or 0 for node in nodes.fetch(conn, ids)}
    db.write(lambda tx: vectors.add_texts(tx, model.id, [of[id_] for id_ in ids], embedder.embed(texts)))
    monkeypatch.setattr(foreground, "PATIENCE", 60.0)
    with db.foreground:
        projections = Projections(db, model, Settings())
        time.sleep(A_WHILE)
        assert projections.tail == 60
    assert wait_until(lambda: projections.tail == 0, 30.0)
    projections.close()


def test_texts_wait_for_their_vectors_until_the_question_at_hand_is_answered(
    db: Database, observation: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder = WordEmbedder(16)
    model = db.write(lambda tx: vectors.open_model(tx, embedder.name, embedder.dim))
    db.write(lambda tx: nodes.insert_many(tx, [observation("a red chair")]))
    queue = EmbeddingQueue(db, embedder, lambda text: [text], 8, model, lambda _: None)
    monkeypatch.setattr(foreground, "PATIENCE", 60.0)
    with db.foreground:
        queue.start()
        time.sleep(A_WHILE)
        assert embedder.calls == [] and queue.backlog() == 1
    assert wait_until(lambda: queue.backlog() == 0, 30.0)
    assert embedder.calls == [["a red chair"]]
    queue.close()


def test_each_question_is_in_the_foreground_while_it_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder = WordEmbedder()
    busy: list[bool] = []
    with Memory.open(tmp_path / "memory.db", embedder=embedder) as memory:
        questions = memory._rooms.db.foreground
        embed = embedder.embed

        def asked(texts: list[str]):  # type: ignore[no-untyped-def]
            if "chair" in texts:
                busy.append(questions.busy)
            return embed(texts)

        monkeypatch.setattr(embedder, "embed", asked)
        memory.semantic_search("chair")
        assert busy == [True] and not questions.busy


def test_nothing_waits_for_a_copy_which_has_the_rows_of_who_asked_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy: list[bool] = []
    copy = Database.backup

    def backup(db: Database, to: str | Path) -> None:
        busy.append(db.foreground.busy)
        copy(db, to)

    monkeypatch.setattr(Database, "backup", backup)
    with Memory.open(tmp_path / "memory.db") as memory:
        memory.record("a red chair", layer="scene")
        memory.backup(tmp_path / "copy.db")
    assert busy == [False]
    with Memory.open(tmp_path / "copy.db") as memory:
        assert memory.semantic_search("chair").matches[0].text == "a red chair"
