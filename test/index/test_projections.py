"""Projections of SQLite: they follow every commit, survive every fault of their file, and lose nothing."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from retrieval.search_world import DIM, World
from support.fakes import WordEmbedder

from memory_node.config import Settings
from memory_node.graph import Filter, Kind, Tier
from memory_node.index import vectors as index_vectors
from memory_node.index.projections import Projections
from memory_node.retrieval.search import Searcher
from memory_node.storage import nodes, vectors
from memory_node.storage.database import Database


@pytest.fixture(autouse=True)
def small_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_vectors, "EXACT_BELOW", 200)
    monkeypatch.setattr(index_vectors, "GRAPH_COST", 0.01)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path / "memory.db")
    yield world
    world.close()


def furnish(world: World, count: int, first: int = 0) -> list[int]:
    new = [
        world.node(f"thing {i} of kind {i % 17}", (float(i % 30), float(i % 7), 0.0), stamp=float(i))
        for i in range(first, first + count)
    ]
    return world.add_all(new)


def test_the_graph_is_saved_and_taken_up_again(world: World) -> None:
    furnish(world, 400)
    world.settled()
    world.reopen()
    state = world.projections.vectors.state
    assert state["in_graph"] == state["vectors"] == 400 and world.projections.tail == 0
    world.check_meaning("thing 7 of kind 7", 10)


@pytest.mark.parametrize("damage", ["missing", "empty", "cut", "random"])
def test_f30_f31_a_damaged_file_is_built_anew_with_one_line(
    world: World, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    furnish(world, 400)
    world.settled()
    world.close()
    path = world.projections.path
    good = path.read_bytes()
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes({"empty": b"", "cut": good[:-7], "random": os.urandom(len(good))}[damage])
    with caplog.at_level(logging.INFO, logger="memory_node.index"):
        world.open()
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert str(path) in caplog.text and "built anew" in caplog.text
    world.check_meaning("thing 7 of kind 7", 10)
    world.settled()
    assert world.projections.vectors.state["in_graph"] == 400
    world.reopen()
    assert world.projections.tail == 0


def test_f31_a_file_older_than_the_database_is_caught_up_with_one_line(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    furnish(world, 400)
    world.settled()
    world.close()
    old = world.projections.path.read_bytes()
    world.open()
    gone = list(world.rows)[:150]
    world.remove(gone)
    late = furnish(world, 80, first=400)
    world.settled()
    world.close()
    world.projections.path.write_bytes(old)
    with caplog.at_level(logging.INFO, logger="memory_node.index"):
        world.open()
    assert [record.getMessage().split(": ")[1] for record in caplog.records] == ["80 vectors are added"]
    assert world.meaning("thing 410 of kind 2", 1)[0].node_ids == (late[10],)
    world.check_meaning("thing 3 of kind 3", 40)
    world.settled()
    assert world.projections.vectors.state["in_graph"] == len(world.projections.vectors) == 330


def test_the_file_of_another_database_is_refused(world: World, tmp_path: Path) -> None:
    furnish(world, 300)
    world.settled()
    world.close()
    other = World(tmp_path / "other.db", WordEmbedder(DIM, name="words"))
    other.add_all([other.node(f"different {i}") for i in range(300)])
    other.settled()
    other.close()
    other.projections.path.write_bytes(world.projections.path.read_bytes())
    other.open()
    other.check_meaning("different 5", 10)
    assert other.projections.tail > 0 or other.projections.vectors.state["in_graph"] == 300
    other.close()
    world.open()


def test_f32_another_model_never_ranks_with_the_old_vectors(world: World) -> None:
    furnish(world, 50)
    wider = WordEmbedder(DIM * 2, name="wider")
    model = world.db.write(lambda tx: vectors.open_model(tx, wider.name, wider.dim))
    world.projections.use_model(model)
    assert len(world.projections.vectors) == 0
    assert world.searcher.meaning(wider.embed(["thing 7"])[0], 5, world.resolved()) == []
    id_ = world.add("only this one")
    with world.db.read() as conn:
        text_id = nodes.fetch(conn, [id_])[0].text_id
    world.db.write(lambda tx: vectors.add_texts(tx, model.id, [text_id], wider.embed(["only this one"])))
    hits = world.searcher.meaning(wider.embed(["only this one"])[0], 5, world.resolved())
    assert [hit.node_ids for hit in hits] == [(id_,)]
    world.projections.use_model(world.model)
    assert len(world.meaning("thing 7", 60)) == 51


def test_fifty_thousand_rows_removed_at_once(world: World) -> None:
    for start in range(0, 50_000, 10_000):
        world.add_all([world.node(f"said {i % 500}", stamp=float(i)) for i in range(start, start + 10_000)])
    kept = world.add("the one that stays", (1.0, 2.0, 0.0))
    assert len(world.projections.rows) == 50_001
    world.remove([id_ for id_ in list(world.rows) if id_ != kept])
    assert len(world.projections.rows) == len(world.projections.vectors) == 1
    assert [hit.node_ids for hit in world.meaning("said 3", 10)] == [(kept,)]
    assert world.searcher.near((1.0, 2.0), None, 10, world.resolved()) == [(kept, 0.0)]
    assert world.searcher.in_time(world.resolved(), True, 10) == [kept]
    world.settled()
    assert world.projections.rows.view.columns.capacity < 1000


def test_a_failing_projection_fails_no_commit_and_is_built_anew(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    furnish(world, 20)
    with monkeypatch.context() as broken:
        def fail(*args: object, **more: object) -> None:
            raise RuntimeError("broken on purpose")

        broken.setattr(world.projections.rows, "apply", fail)
        lost = [world.add(f"while broken {i}") for i in range(3)]
    assert sum("built anew" in record.getMessage() for record in caplog.records) == 1
    after = world.add("after")
    assert {i for hit in world.meaning("while broken", 50) for i in hit.node_ids} >= {*lost, after}
    world.check_meaning("thing 7 of kind 7", 30)


def test_a_rolled_back_batch_leaves_no_trace(world: World) -> None:
    furnish(world, 10)

    def work(tx):  # type: ignore[no-untyped-def]
        nodes.insert_many(tx, [world.node("never")])
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        world.db.write(work)
    assert len(world.projections.rows) == 10
    world.check_meaning("never", 20)


def test_a_read_only_handle_follows_the_writer(world: World) -> None:
    furnish(world, 300)
    world.settled()
    reader = Database.open(world.path, read_only=True)
    projections = Projections(reader, world.model, Settings())
    searcher = Searcher(reader, projections)
    late = world.add("a late arrival", (50.0, 50.0, 0.0))
    world.remove([next(iter(world.rows))])
    projections.follow(vectors.active_model)
    resolved = world.resolved(Filter(), (Kind.OBSERVATION,))
    assert searcher.count(resolved) == 300
    assert searcher.near((50.0, 50.0), 1.0, 5, resolved) == [(late, 0.0)]
    query = world.embedder.embed(["a late arrival"])[0]
    assert searcher.meaning(query, 1, resolved)[0].node_ids == (late,)
    projections.close()
    reader.close()


def test_after_a_kill_the_tail_is_searched_exactly_and_inserted(tmp_path: Path) -> None:
    """F31: a process is killed right after its commit, before any index was saved."""
    code = """
        import sys, time
        from pathlib import Path
        from retrieval.search_world import World
        world = World(Path(sys.argv[1]))
        world.add_all([world.node(f"thing {i}", (float(i), 0.0, 0.0)) for i in range(500)])
        print("committed", flush=True)
        time.sleep(60)
    """
    root = Path(__file__).resolve().parents[2]
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), str(tmp_path / "memory.db")],
        stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{root / 'test'}"},
    )  # fmt: skip
    assert child.stdout is not None and child.stdout.readline().strip() == b"committed"
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    child.stdout.close()
    world = World(tmp_path / "memory.db")
    for i in range(0, 500, 29):
        (hit,) = world.meaning(f"thing {i}", 1)
        assert hit.similarity == pytest.approx(1.0, abs=2e-3)
    assert len(world.projections.rows) == len(world.projections.vectors) == 500
    world.settled()
    assert world.projections.vectors.state["in_graph"] == 500
    world.close()


def test_similar_texts(world: World) -> None:
    ids = furnish(world, 300)
    with world.db.read() as conn:
        rows = nodes.fetch(conn, ids)
        (layer,) = {row[0] for row in conn.execute("SELECT DISTINCT layer_id FROM node WHERE kind = 1")}
    wanted = [rows[4], *rows[100:200]]
    for row in wanted:
        world.db.write(lambda tx, id=row.id: nodes.update(tx, id, tier=Tier.LONG_TERM))
    vector = world.embedder.embed([rows[4].text])[0]
    cosines = world.embedder.embed([row.text for row in wanted]) @ vector
    similar = world.projections.similar_texts
    assert similar(vector, 0.99, layer) == [rows[4].text_id]
    assert similar(vector, 0.5, layer)[0] == rows[4].text_id
    alike = [row.text_id for row, cosine in zip(wanted, cosines, strict=True) if cosine >= 0.3]
    assert len(alike) > 50 and sorted(similar(vector, 0.3, layer)) == sorted(alike)
    assert len(similar(vector, -1.0, layer)) == 101 and similar(vector, -1.0, layer + 1) == []
