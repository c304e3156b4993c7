"""The embedder as it comes: late, failing, another one; words, place and time answer meanwhile."""

from __future__ import annotations

import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from support.fakes import FakeClock, WordEmbedder

from memory_node.errors import EmbedderError, StorageError
from memory_node.graph import Detection
from memory_node.ingest import embedding, turns
from memory_node.ingest.embedding import wait_until
from memory_node.memory import Memory


class LateEmbedder(WordEmbedder):
    """Not there until `ready` is set."""

    def __init__(self) -> None:
        super().__init__(dim=32, name="late")
        self.ready = threading.Event()

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        if not self.ready.is_set():
            raise EmbedderError("still loading")
        return super().embed(texts)


class FailingEmbedder(WordEmbedder):
    """Fails every third time, with an error of a kind."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(dim=32, name="failing")
        self.error = error
        self.asked = 0

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        self.asked += 1
        if self.asked % 3 == 0:
            raise self.error
        return super().embed(texts)


class PickyEmbedder(WordEmbedder):
    """Refuses a text with a word that it does not like, and all that comes with it, or gives NaN for it."""

    def __init__(self, name: str = "picky", nan: bool = False) -> None:
        super().__init__(dim=32, name=name)
        self.nan = nan
        self.picky = True

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        found = super().embed(texts)
        disliked = [self.picky and "pfui" in text for text in texts]
        if any(disliked) and not self.nan:
            raise EmbedderError("answered 400")
        found[disliked] = np.nan
        return found


class SlowEmbedder(WordEmbedder):
    """Takes a ms for a text, in which others get to the interpreter."""

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        time.sleep(0.001 * len(texts))
        return super().embed(texts)


class StuckEmbedder(WordEmbedder):
    """Once at work on a batch it does not come back until `ready` is set."""

    def __init__(self) -> None:
        super().__init__(dim=32, name="stuck")
        self.ready = threading.Event()
        self.at_work = threading.Event()

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        self.at_work.set()
        assert self.ready.wait(60.0)
        return super().embed(texts)


def test_nothing_waits_for_an_embedder_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs under no lock: rows are stored and found, by words alone, and the memory closes."""
    monkeypatch.setattr(turns, "QUESTION_PATIENCE", 0.05)
    monkeypatch.setattr(embedding, "CLOSE_PATIENCE", 0.05)
    embedder = StuckEmbedder()
    answers: list[object] = []

    def live() -> None:
        memory = Memory.open(tmp_path / "robot.db", embedder=embedder, clock=FakeClock())
        memory.record("a red chair", layer="scene", position=(1.0, 1.0, 0.0))
        memory.flush()
        assert embedder.at_work.wait(60.0)
        memory.record("a blue table", layer="scene", position=(1.0, 1.0, 0.0))
        memory.store_specific_memory("the table wobbles")
        memory.record_detections([Detection("cup", position=(1.0, 1.0, 0.0))])
        memory.end_episode(memory.start_episode("round"))
        for state in memory.housekeep():
            assert not state.error
        answers.append(len(memory.spatial_query((1.0, 1.0), 0.5).matches))
        answers.append(len(memory.temporal_query().matches) >= 4)
        found = memory.semantic_search("red chair")
        answers.extend([found.message, found.matches[0].text, memory.locate("cup").found, memory.status().backlog > 0])
        memory.close()
        answers.append("closed")

    thread = threading.Thread(target=live, daemon=True)
    thread.start()
    thread.join(60.0)
    assert not embedder.ready.is_set() and answers[2:] == ["by words only", "a red chair", True, True, "closed"]
    embedder.ready.set()
    with Memory.open(tmp_path / "robot.db", embedder=embedder, clock=FakeClock()) as memory:
        assert memory.wait_embedded(60.0)
        assert memory.semantic_search("red chair").message == ""


def test_without_an_embedder_words_answer_and_the_message_says_so(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "robot.db", clock=FakeClock()) as memory:
        memory.record("a red chair", layer="scene")
        memory.record("a blue table", layer="scene")
        found = memory.semantic_search("chair")
        assert [match.text for match in found.matches] == ["a red chair"]
        assert found.success and "by words only" in found.message
        assert memory.wait_embedded(0.0)


def test_a_late_embedder_works_off_the_backlog_once_it_is_there(tmp_path: Path) -> None:
    embedder = LateEmbedder()
    with Memory.open(tmp_path / "robot.db", embedder=embedder, clock=FakeClock()) as memory:
        memory.record("a red chair", layer="scene")
        memory.flush()
        assert "by words only" in memory.semantic_search("red chair").message
        status = memory.status()
        assert status.backlog == 1 and status.vectors == 0 and any("still loading" in w for w in status.warnings)
        embedder.ready.set()
        assert memory.wait_embedded(60.0)
        found = memory.semantic_search("red chair")
        assert found.message == "" and found.matches[0].similarity is not None
        assert memory.status().warnings == ()


def test_the_backlog_outlives_a_memory_without_a_model(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "robot.db", clock=FakeClock()) as memory:
        for i in range(50):
            memory.record(f"view {i}", layer="scene")
    embedder = WordEmbedder()
    with Memory.open(tmp_path / "robot.db", embedder=embedder, clock=FakeClock()) as memory:
        assert memory.wait_embedded(60.0)
        assert memory.status().vectors == 50
        assert max(len(batch) for batch in embedder.calls) <= memory.settings.embed_batch_size


def test_vectors_of_many_small_batches_are_committed_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit for each batch would keep the writer, and with it searches, busy under a stream of new texts."""
    monkeypatch.setattr(embedding, "_GATHERED", 60.0)
    embedder = LateEmbedder()
    with Memory.open(tmp_path / "robot.db", embedder=embedder, clock=FakeClock()) as memory:
        for i in range(40):
            memory.record(f"view {i}", layer="scene")
        memory.flush()
        before = memory._rooms.db.revision
        embedder.ready.set()
        assert memory.wait_embedded(60.0)
        assert memory.status().vectors == 40 and memory._rooms.db.revision == before + 1
        assert {len(batch) for batch in embedder.calls} == {memory.settings.embed_batch_size}


@pytest.mark.parametrize("attentive", [60.0, 0.0])
def test_while_questions_come_texts_are_embedded_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, attentive: float
) -> None:
    """A question waits for the batch at hand."""
    monkeypatch.setattr(turns, "ATTENTIVE", attentive)
    embedder = WordEmbedder()
    with Memory.open(tmp_path / "robot.db", embedder=embedder, clock=FakeClock()) as memory:
        memory.semantic_search("a mug")
        for i in range(40):
            memory.record(f"view {i}", layer="scene")
        memory.flush()
        assert memory.wait_embedded(60.0) and memory.status().vectors == 40
        views = [len(batch) for batch in embedder.calls if batch[0].startswith("view")]
        assert max(views) == (1 if attentive else memory.settings.embed_batch_size)


def test_questions_without_a_pause_starve_neither_the_backlog_nor_each_other(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "robot.db", embedder=SlowEmbedder(), clock=FakeClock()) as memory:
        queue = memory._rooms.embedding
        assert queue is not None and memory.wait_embedded(60.0)
        over = threading.Event()
        unanswered: list[str] = []

        def ask(asker: int) -> None:
            number = 0
            while not over.is_set():
                number += 1
                if queue.embed_query(f"question {number} of {asker}") is None:
                    unanswered.append(queue.error)

        askers = [threading.Thread(target=ask, args=(asker,)) for asker in range(3)]
        for asker in askers:
            asker.start()
        try:
            for i in range(30):
                memory.record(f"view {i}", layer="scene")
            memory.flush()
            assert wait_until(lambda: memory.status().vectors == 30, 30.0)
        finally:
            over.set()
            for asker in askers:
                asker.join()
        assert not unanswered


@pytest.mark.parametrize("error", [EmbedderError("not now"), RuntimeError("CUDA"), SystemExit("no licence")])
def test_an_embedder_that_fails_now_and_then_comes_to_the_end_of_its_backlog(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    monkeypatch.setattr(embedding, "_FIRST_RETRY", 0.01)
    embedder = FailingEmbedder(error)
    with Memory.open(tmp_path / "robot.db", embedder=embedder, clock=FakeClock()) as memory:
        for i in range(40):
            memory.record(f"view {i}", layer="scene")
        assert memory.wait_embedded(60.0)
        assert memory.status().vectors == 40


@pytest.mark.parametrize("nan", [False, True])
def test_a_text_that_the_embedder_refuses_holds_up_no_other(tmp_path: Path, nan: bool) -> None:
    with Memory.open(tmp_path / "robot.db", embedder=WordEmbedder(32, "old"), clock=FakeClock()) as memory:
        for i in range(20):
            memory.record(f"view {i}" + " pfui" * (i in (3, 19)), layer="scene")
        memory.flush()
        assert memory.wait_embedded(60.0)
    embedder = PickyEmbedder(nan=nan)
    with Memory.open(tmp_path / "robot.db", embedder=embedder, clock=FakeClock()) as memory:
        assert wait_until(lambda: memory.status().backlog == 2, 60.0)
        memory.record("a red chair", layer="scene")
        memory.flush()
        assert wait_until(lambda: memory.status().vectors == 19, 60.0), "nor what comes later"
        queue = memory._rooms.embedding
        assert queue is not None and wait_until(lambda: queue.model is not None and queue.model.active, 60.0)
        assert memory.semantic_search("a red chair").matches[0].similarity == pytest.approx(1.0, abs=1e-3)
        (warning,) = memory.status().warnings
        assert warning.startswith("some texts have no vector: ") and ("400" in warning or "finite" in warning)
        embedder.picky = False
        queue._passed_until = 0.0  # half a minute later
        memory.record("a blue table", layer="scene")
        assert memory.wait_embedded(60.0), "they are tried again"
        assert memory.status().warnings == () and memory.status().vectors == 22


def test_names_that_the_embedder_refuses_hold_up_no_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding, "_FIRST_RETRY", 60.0)
    with Memory.open(tmp_path / "robot.db", embedder=PickyEmbedder(), clock=FakeClock()) as memory:
        tried = threading.Event()
        queue = memory._rooms.embedding
        assert queue is not None
        monkeypatch.setattr(queue, "_ahead", lambda conn: tried.set() or ["pfui"])
        memory.record("a red chair", layer="scene")
        memory.flush()
        assert tried.wait(60.0)
        memory.record("a blue table", layer="scene")
        assert memory.wait_embedded(20.0)


def test_one_text_said_often_is_embedded_once(tmp_path: Path) -> None:
    embedder = WordEmbedder()
    with Memory.open(tmp_path / "robot.db", embedder=embedder, clock=FakeClock()) as memory:
        for _ in range(300):
            memory.record("chair", layer="detections", position=(1.0, 0.0, 0.0))
        assert memory.wait_embedded(60.0)
        assert memory.status().vectors == 1 and sum(len(batch) for batch in embedder.calls) == 1


def test_f32_another_model_ranks_by_its_own_vectors_alone(tmp_path: Path) -> None:
    texts = ["a red chair", "a blue table", "an open door"]
    with Memory.open(tmp_path / "robot.db", embedder=WordEmbedder(dim=64, name="old"), clock=FakeClock()) as memory:
        for text in texts:
            memory.record(text, layer="scene")
        assert memory.wait_embedded(60.0)
    for name, dim in (("new", 64), ("wider", 96)):  # same length but another model; another length
        with Memory.open(tmp_path / "robot.db", embedder=WordEmbedder(dim, name), clock=FakeClock()) as memory:
            assert memory.wait_embedded(60.0)
            status = memory.status()
            assert (status.model, status.dimension, status.vectors, status.backlog) == (name, dim, 3, 0)
            found = memory.semantic_search("blue table")
            assert found.matches[0].text == "a blue table" and found.matches[0].similarity > 0.7
    assert not memory_has_vectors_of(tmp_path / "robot.db", "old")


class GatedEmbedder(WordEmbedder):
    """Embeds texts of the backlog only while `open` is set; questions always."""

    def __init__(self, dim: int, name: str) -> None:
        super().__init__(dim, name, same={"red": "zzz", "chair": "yyy", "a": "qqq"})
        self.open = threading.Event()
        self.at_work = threading.Event()

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        if len(texts) > 1:
            self.at_work.set()
            assert self.open.wait(60.0)
        return super().embed(texts)


def test_f32_vectors_of_two_models_are_never_compared(tmp_path: Path) -> None:
    """While texts are embedded anew a question meets only vectors of its own model: none yet."""
    with Memory.open(tmp_path / "robot.db", embedder=WordEmbedder(dim=64, name="old"), clock=FakeClock()) as memory:
        for text in ("a red chair", "a blue table", "an open door"):
            memory.record(text, layer="scene")
        assert memory.wait_embedded(60.0)
    for name, dim in (("new", 64), ("wider", 96)):
        embedder = GatedEmbedder(dim, name)
        with Memory.open(tmp_path / "robot.db", embedder=embedder, clock=FakeClock()) as memory:
            assert embedder.at_work.wait(60.0)
            question = embedder._one("red chair").tolist()
            words = memory.semantic_search("red chair", vector=question)
            assert [(match.text, match.similarity) for match in words.matches] == [("a red chair", None)]
            assert memory.semantic_search(vector=question).matches == ()
            embedder.open.set()
            assert memory.wait_embedded(60.0)
            found = memory.semantic_search("red chair", vector=question).matches[0]
            assert found.text == "a red chair" and found.similarity > 0.7


def test_a_read_only_memory_follows_the_writer_from_model_to_model(tmp_path: Path) -> None:
    path, clock = tmp_path / "robot.db", FakeClock()
    small, wide = WordEmbedder(64, "small"), WordEmbedder(96, "wide")
    with Memory.open(path, clock=clock) as memory:
        memory.record("a red chair", layer="scene")
    with (
        Memory.open(path, read_only=True, clock=clock) as bare,
        Memory.open(path, read_only=True, clock=clock, embedder=WordEmbedder(64, "small")) as reader,
    ):
        assert "by words only" in reader.semantic_search("red chair").message
        with Memory.open(path, clock=clock, embedder=small) as memory:
            assert memory.wait_embedded(60.0)
            found = reader.semantic_search("red chair")
            assert found.message == "" and found.matches[0].similarity > 0.7
            assert bare.semantic_search(vector=small._one("red chair").tolist()).matches[0].similarity is not None
            assert (reader.status().model, bare.status().vectors) == ("small", 1)
        with Memory.open(path, clock=clock, embedder=wide) as memory:
            assert memory.wait_embedded(60.0)
            found = reader.semantic_search("red chair")
            assert "by words only" in found.message and found.matches[0].similarity is None
            assert bare.semantic_search(vector=wide._one("red chair").tolist()).matches[0].similarity is not None
            assert (bare.status().model, bare.status().dimension) == ("wide", 96)


def test_vectors_are_taken_again_after_the_first_of_them_was_refused(tmp_path: Path) -> None:
    axes = np.eye(8, dtype=np.float32)
    with Memory.open(tmp_path / "robot.db", clock=FakeClock()) as memory:
        with closing(sqlite3.connect(tmp_path / "robot.db")) as other, other:
            other.execute("CREATE TRIGGER no BEFORE INSERT ON vector BEGIN SELECT raise(ABORT, 'no vectors'); END")
        memory.record("refused", layer="scene", vector=axes[0])
        with pytest.raises(StorageError, match="no vectors"):
            memory.flush()
        with closing(sqlite3.connect(tmp_path / "robot.db")) as other, other:
            other.execute("DROP TRIGGER no")
        memory.record("taken", layer="scene", vector=axes[1])
        assert memory.wait_embedded(60.0)
        (found,) = memory.semantic_search(vector=axes[1]).matches
        assert (found.text, found.similarity) == ("taken", 1.0)


def memory_has_vectors_of(path: Path, model: str) -> bool:
    conn = sqlite3.connect(path)
    sql = "SELECT count(*) FROM vector JOIN model ON model.id = model_id WHERE model.name = ?"
    count = conn.execute(sql, (model,)).fetchone()[0]
    conn.close()
    return bool(count)


def test_a_backlog_that_is_empty_costs_the_writer_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each commit wakes the embedding; what it finds nothing to do in must not commit again."""
    with Memory.open(tmp_path / "robot.db", embedder=WordEmbedder(dim=32), clock=FakeClock()) as memory:
        memory.record("a red chair", layer="scene")
        memory.flush()
        assert memory.wait_embedded(60.0)
        db, works = memory._rooms.db, []
        write = db.write
        monkeypatch.setattr(db, "write", lambda work: works.append(work) or write(work))
        for _ in range(5):
            memory._rooms.embedding._work()
        assert works == []
