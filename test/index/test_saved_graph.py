"""The graph's file: what comes back from it, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.vector_index import DIM, add, drain, filled, recall, remove, unit

from memory_node.index import cachefile
from memory_node.index.vectors import VectorIndex


@pytest.fixture
def saved(small_graphs: None, tmp_path: Path) -> tuple[np.ndarray, Path]:
    data = unit(np.random.default_rng(10), 800)
    index = filled(data)
    drain(index)
    index.save(tmp_path / "graph", ["a"])
    return data, tmp_path / "graph"


def test_a_saved_graph_comes_back_whole(saved: tuple[np.ndarray, Path]) -> None:
    data, path = saved
    index = filled(data)
    assert index.load(path, ["a"]) == ""
    assert (index.waiting, index.state["in_graph"]) == (0, 800)
    assert recall(index, np.arange(1, 801), data, data[:40]) >= 0.98


def test_f31_a_graph_older_or_newer_than_the_vectors_is_made_to_fit(saved: tuple[np.ndarray, Path]) -> None:
    data, path = saved
    index = filled(data)
    remove(index, np.arange(1, 101))
    more = unit(np.random.default_rng(11), 60)
    add(index, np.arange(801, 861), more)
    assert index.load(path, ["a"]) == ""
    assert index.waiting == 60 and index.state["in_graph"] == 700
    assert index.search(more[3], 1)[0].tolist() == [804]
    assert 1 not in index.search(data[0], 300)[0]
    drain(index)
    assert index.state["in_graph"] == len(index) == 760


def test_f31_a_graph_that_has_deleted_what_a_restored_backup_holds_is_refused(
    small_graphs: None, tmp_path: Path
) -> None:
    data = unit(np.random.default_rng(10), 800)
    newer = filled(data)
    drain(newer)
    remove(newer, np.arange(1, 101))
    newer.save(tmp_path / "graph", ["a"])
    index = filled(data)
    assert index.load(tmp_path / "graph", ["a"]) != ""
    drain(index)
    assert index.state["in_graph"] == 800 and index.search(data[50], 1)[0].tolist() == [51]


@pytest.mark.parametrize("damage", ["empty", "cut", "random", "flipped", "header", "folder"])
def test_f30_a_damaged_graph_is_refused_and_built_again(saved: tuple[np.ndarray, Path], damage: str) -> None:
    data, path = saved
    good = path.read_bytes()
    bad = {
        "empty": b"", "cut": good[: len(good) // 2], "random": np.random.default_rng(0).bytes(len(good)),
        "flipped": good[:5000] + bytes([good[5000] ^ 1]) + good[5001:], "header": good[: len(cachefile.MAGIC) + 3],
        "folder": b"",
    }[damage]  # fmt: skip
    path.unlink()
    path.mkdir() if damage == "folder" else path.write_bytes(bad)
    index = filled(data)
    assert index.load(path, ["a"]) != ""
    assert index.search(data[5], 1)[0].tolist() == [6]
    drain(index)
    assert index.state["in_graph"] == 800


def test_a_graph_of_other_vectors_or_another_dimension_is_refused(saved: tuple[np.ndarray, Path]) -> None:
    """F32: same ids, other model; and a file of another dimension."""
    data, path = saved
    assert filled(data).load(path, ["b"]) != ""
    assert filled(unit(np.random.default_rng(99), 800)).load(path, ["a"]) != ""
    another_future = data.copy()
    another_future[777] = data[3]  # one vector of all
    assert filled(another_future).load(path, ["a"]) != ""
    other = VectorIndex(DIM + 1)
    other.apply(np.array([1]), np.array([1]), np.array([0]), np.ones((1, DIM + 1), np.float32))
    assert other.load(path, ["a"]) != ""
    assert other.search(np.ones(DIM + 1, np.float32), 1)[0].tolist() == [1]


def test_a_failed_save_leaves_the_old_file(saved: tuple[np.ndarray, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    data, path = saved
    good = path.read_bytes()
    index = filled(data[:500])
    drain(index)

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cachefile.os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        index.save(path, ["a"])
    assert path.read_bytes() == good
    assert list(path.parent.iterdir()) == [path]
