"""Tables of columns that grow at their end."""

from __future__ import annotations

import mmap
import os
from pathlib import Path

import numpy as np
import pytest

from memory_node.index.columns import Columns, room
from memory_node.index.rows import LAYOUT


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_a_table_takes_the_memory_of_its_rows_and_gives_it_back_though_others_allocate_meanwhile() -> None:
    columns = Columns.empty(LAYOUT, 0)
    before, others = resident_bytes(), []
    for count in range(100, 60_100, 100):
        columns = columns.with_room(count - 100, count)
        columns.put(count - 100, {name: count // 100 % 100 for name in LAYOUT if name != "died"}, 100)
        others.append(bytes(2000))
    theirs = len(others) * 2048
    assert columns.nbytes(60_000) == 60_000 * 79 and columns.capacity > 60_000
    assert resident_bytes() - before - theirs < 60_000 * 90
    assert (columns["layer"][:60_000] == np.repeat(np.arange(1, 601) % 100, 100)).all()
    columns = columns.take(np.arange(99, 201))
    assert resident_bytes() - before - theirs < 1_000_000
    assert columns["x"][:102].tolist() == [1.0] + 100 * [2.0] + [3.0]


def test_a_table_without_rows_can_be_taken_from_and_grows() -> None:
    columns = Columns.empty({"died": ("i4", ()), "x": ("f8", ())}, 0).take(np.empty(0, dtype=np.int64))
    columns = columns.with_room(0, 3)
    columns.put(0, {"x": [1.0, 2.0, 3.0]}, 3)
    assert columns["x"][:3].tolist() == [1.0, 2.0, 3.0] and columns.nbytes(3) == 36


def test_a_system_without_huge_pages_still_has_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mmap, "MADV_HUGEPAGE", 9999)  # which every system refuses, as those of a real-time kernel do 14
    array = room((1024 * 1024,), "i8")
    array[-1] = 7
    assert array.sum() == 7
