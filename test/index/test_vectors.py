"""The vector index against plain NumPy, and hnswlib's faults."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
from support.vector_index import DIM, add, drain, filled, recall, remove, unit

from memory_node.index import effort, exact, vectors
from memory_node.index.hnsw import Graph
from memory_node.index.matrix import VectorTable, VectorView
from memory_node.index.vectors import VectorIndex


def test_quantised_products_are_within_a_hundred_thousandth() -> None:
    data = exact.normalise(np.random.default_rng(0).standard_normal((3000, 384)).astype(np.float32))
    matrix, scales = exact.quantise(data)
    assert np.abs(exact.scores(matrix, scales, data[5]) - data @ data[5]).max() < 2e-5
    many = exact.scores(matrix, scales, data[:7])
    assert many.shape == (3000, 7)
    assert np.abs(many - data @ data[:7].T).max() < 2e-5


def test_a_query_gets_the_same_bits_alone_and_among_others() -> None:
    """That is: no product of two matrices, of which OpenBLAS makes several threads that turn long after it."""
    rng = np.random.default_rng(0)
    matrix, scales = exact.quantise(exact.normalise(rng.standard_normal((3000, 384)).astype(np.float32)))
    queries = exact.normalise(rng.standard_normal((4, 384)).astype(np.float32))
    alone = np.column_stack([exact.scores(matrix, scales, query) for query in queries])
    assert (exact.scores(matrix, scales, queries) == alone).all()


def test_a_zero_vector_is_like_nothing_and_breaks_nothing() -> None:
    index = filled(np.zeros((1, DIM), np.float32))
    add(index, np.array([2]), unit(np.random.default_rng(0), 1))
    assert index.search(index.get([2])[0], 2)[0].tolist() == [2, 1]
    assert index.search(np.zeros(DIM, np.float32), 2)[1].tolist() == [0.0, 0.0]


def test_f26_more_asked_than_there_are(small_graphs: None) -> None:
    """F26: an empty index, 3 vectors and k=5, a filter leaving 2, 8 of 10 deleted; with and without a graph."""
    rng = np.random.default_rng(1)
    assert [len(part) for part in VectorIndex(DIM).search(unit(rng, 1)[0], 5)] == [0, 0]
    data = unit(rng, 500)
    assert len(filled(data[:3]).search(data[0], 5)[0]) == 3
    index = filled(data)
    drain(index)
    assert index.state["in_graph"] == 500
    assert len(index.search(data[0], 1000)[0]) == 500
    assert sorted(index.search(data[0], 5, np.array([3, 77]))[0].tolist()) == [4, 78]
    remove(index, np.arange(1, 401))
    assert sorted(index.search(data[0], 500)[0].tolist()) == list(range(401, 501))
    graph = Graph(DIM, 16, 200)
    graph.add(np.arange(1, 11), data[:10])
    graph.delete(np.arange(1, 9))
    answer = graph.search(data[0], 10, 50)
    assert answer is not None and sorted(answer[0].tolist()) == [9, 10]


def test_f27_other_scenes_are_found_behind_five_thousand_alike(small_graphs: None) -> None:
    rng = np.random.default_rng(2)
    parked = exact.normalise(unit(rng, 1) + 1e-4 * rng.standard_normal((5000, DIM)).astype(np.float32))
    scenes = unit(rng, 300, centres=300)
    index = filled(np.concatenate([parked, scenes]))
    drain(index)
    for i, scene in enumerate(scenes):
        found, similarities = index.search(scene, 1)
        assert similarities[0] > 0.999 and found[0] == 5001 + i
    assert len(index.search(parked[0], 10)[0]) == 10


def test_f28_it_grows_by_itself_and_uses_places_again(small_graphs: None, tmp_path: Path) -> None:
    """F28: growth past every limit, churn, and both again after a reload."""
    rng = np.random.default_rng(3)
    data = unit(rng, 1000)
    index = filled(data)
    drain(index)
    first = 1
    for turn in range(6):
        fresh = unit(rng, 500)
        data = np.concatenate([data[500:], fresh])
        remove(index, np.arange(first, first + 500))
        first += 500
        add(index, np.arange(first + 500, first + 1000), fresh)
        drain(index)
        if turn == 3:
            index.save(tmp_path / "graph", "mark")
            again = filled(data, first)
            assert again.load(tmp_path / "graph", "mark") == ""
            index = again
        assert len(index) == index.state["in_graph"] == 1000
    assert index._graph is not None and index._graph._index.element_count <= 1500 + 32
    assert recall(index, np.arange(first, first + 1000), data, unit(rng, 50)) >= 0.98


def test_f29_search_beside_insertion_removal_and_saving(small_graphs: None, tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    data = unit(rng, 3000)
    index = filled(data[:500])
    done = threading.Event()
    failures: list[BaseException] = []

    def guarded(work) -> threading.Thread:  # type: ignore[no-untyped-def]
        def run() -> None:
            try:
                while not done.is_set():
                    work()
            except BaseException as error:
                failures.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        return thread

    def search() -> None:
        found, similarities = index.search(data[7], 10)
        assert len(found) == 10 and similarities[0] > 0.999 and found[0] == 8

    threads = [guarded(search), guarded(search), guarded(index.index_some)]
    threads.append(guarded(lambda: index.save(tmp_path / "graph", 1)))
    for start in range(500, 3000, 50):
        add(index, np.arange(start + 1, start + 51), data[start : start + 50])
        remove(index, np.arange(start - 400, start - 380))
    done.set()
    for thread in threads:
        thread.join()
    assert not failures
    drain(index)
    gone = np.concatenate([np.arange(start - 400, start - 380) for start in range(500, 3000, 50)])
    left = np.setdiff1d(np.arange(1, 3001), gone)
    assert len(index) == index.state["in_graph"] == len(left)


def test_what_is_not_inserted_yet_is_found_exactly(small_graphs: None) -> None:
    rng = np.random.default_rng(5)
    data = unit(rng, 2000)
    index = filled(data[:1000])
    drain(index)
    add(index, np.arange(1001, 2001), data[1000:])
    for _ in range(5):
        index.index_some()
    assert 0 < index.waiting < 1000
    assert recall(index, np.arange(1, 2001), data, unit(rng, 40)) >= 0.98
    assert all(index.search(data[i], 1)[0][0] == i + 1 for i in range(1000, 2000, 37))


def test_every_view_tells_the_vectors_of_texts_as_of_then() -> None:
    """Texts of several parts, some of which come later or go, through growth, compaction and the graph's order."""
    rng = np.random.default_rng(10)
    table = VectorTable(DIM)
    views, known = [table.view], np.empty(0, dtype=np.int64)
    for turn in range(60):
        ids = np.arange(1, 81) + 80 * turn
        gone = rng.choice(known, len(known) * (turn % 7) // 8, replace=False)
        texts = rng.integers(0, 30 + 9 * turn, 80)  # of which 0 is none
        table.apply(ids, texts, np.where(texts, 0, ids), unit(rng, 80), removed=gone, complete=turn == 50)
        known = ids if turn == 50 else np.concatenate([np.setdiff1d(known, gone), ids])
        if turn in (5, 55):
            table.set_indexed(rng.choice(known, len(known) // 2, replace=False))
        views.append(table.view)
    assert len({view.numbering for view in views}) > 4
    assert max(np.bincount(view.columns["text"][: view.count])[1:].max(initial=0) for view in views) > 4
    for view in views:
        texts = rng.permutation(np.arange(1, 700))[:300]
        wanted = np.isin(view.columns["text"][: view.count], texts) & view.alive
        assert view.of_texts(texts).tolist() == np.flatnonzero(wanted).tolist()


@pytest.mark.parametrize("passing", [1, 5, 40, 300, 1500])
def test_filtered_search_is_right_whatever_passes(small_graphs: None, passing: int) -> None:
    rng = np.random.default_rng(6)
    data = unit(rng, 2000)
    index = filled(data)
    drain(index)
    hits = asked = 0
    for query in unit(rng, 20):
        allowed = np.sort(rng.choice(2000, passing, replace=False))
        k = min(10, passing)
        floor = np.sort((data @ query)[allowed])[-k] - 1e-3
        ids, similarities = index.search(query, 10, allowed)
        assert np.isin(ids - 1, allowed).all() and len(ids) == k
        hits += int((similarities >= floor).sum())
        asked += k
    assert hits / asked >= 0.98


def test_a_filter_far_from_the_query_is_answered_exactly(small_graphs: None) -> None:
    rng = np.random.default_rng(7)
    data = unit(rng, 2000)
    index = filled(data)
    drain(index)
    query = data[0]
    allowed = np.sort(np.argsort(data @ query)[:900])
    ids, similarities = index.search(query, 10, allowed)
    assert similarities == pytest.approx(np.sort((data @ query)[allowed])[::-1][:10], abs=1e-3)
    assert np.isin(ids - 1, allowed).all()


def test_effort_rises_until_recall_is_reached_else_everything_is_compared() -> None:
    """A graph of unrelated directions hides its neighbours; measured recall decides how hard to search."""
    rng = np.random.default_rng(8)
    scattered = exact.normalise(rng.standard_normal((3000, 128)).astype(np.float32))
    index = VectorIndex(128)
    index.apply(np.arange(1, 3001), np.arange(1, 3001), np.zeros(3000, int), scattered)
    graph = Graph(128, 4, 20)
    graph.add(np.arange(1, 3001), scattered)
    index.table.set_indexed(np.arange(1, 3001))
    chosen = effort.choose_ef(graph, index.view, 50)
    assert chosen == effort.SCAN or chosen >= 200
    clustered = unit(rng, 3000)
    easy = filled(clustered)
    graph = Graph(DIM, 16, 200)
    graph.add(np.arange(1, 3001), clustered)
    easy.table.set_indexed(np.arange(1, 3001))
    assert effort.choose_ef(graph, easy.view, 50) <= 200


def test_recall_is_measured_again_when_a_quarter_was_replaced(
    small_graphs: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = []

    def choose(*args: object) -> int:
        measured.append(args)
        return effort.choose_ef(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(vectors, "choose_ef", choose)
    data = unit(np.random.default_rng(14), 1000)
    index = filled(data[:800])
    drain(index)
    done = len(measured)
    for first, times in ((1, 0), (101, 1)):
        remove(index, np.arange(first, first + 100))
        add(index, np.arange(first + 800, first + 900), data[first + 799 : first + 899])
        assert not index.settled
        drain(index)
        assert index.settled and len(measured) == done + times


def test_a_graph_of_which_all_was_removed_before_it_was_measured_is_filled_on(small_graphs: None) -> None:
    index = filled(data := unit(np.random.default_rng(8), 1000))
    while index.view.indexed < 200:
        assert index.index_some()
    inserted = index.view.indexed
    remove(index, np.arange(1, inserted + 1))
    drain(index)
    assert index.settled and index.state["in_graph"] == len(index) == 1000 - inserted and index.state["ef"] > 0
    assert index.search(data[-1], 1)[0].tolist() == [1000]


def test_what_is_removed_while_recall_is_measured_does_not_count_as_lost(
    small_graphs: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(graph: Graph, view: VectorView, slots: np.ndarray, ef: int) -> np.ndarray:
        if len(slots) == 800:
            remove(index, np.arange(1, 101))
        return effort.lost(graph, view, slots, ef)

    monkeypatch.setattr(vectors, "lost", lost)
    data = unit(np.random.default_rng(15), 800)
    index = filled(data)
    drain(index)
    assert index.state["ef"] == 50
    assert recall(index, np.arange(101, 801), data[100:], data[100:140]) >= 0.98


def test_everything_removed_at_once_drops_the_graph(small_graphs: None) -> None:
    data = unit(np.random.default_rng(9), 1200)
    index = filled(data)
    drain(index)
    remove(index, np.arange(1, 1191))
    drain(index)
    assert (len(index), index.state["in_graph"], index.waiting) == (10, 0, 0)
    assert sorted(index.search(data[0], 20)[0].tolist()) == list(range(1191, 1201))
