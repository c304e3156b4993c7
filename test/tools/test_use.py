"""What a tool told of counts as recalled: written by the job, never by the question."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.fakes import FakeClock

from memory_node.graph import Filter
from memory_node.memory import Memory


def ids_of(*lists: Any) -> set[int]:
    return {one.id for found in lists for one in found}


TOOLS: dict[str, Callable[[Memory], set[int]]] = {
    "semantic_search": lambda m: ids_of(m.semantic_search("red mug", 2).matches),
    "spatial_query": lambda m: ids_of(m.spatial_query((3.0, -1.0), 1.0, 2).matches),
    "temporal_query": lambda m: ids_of(m.temporal_query(limit=2).matches),
    "search_gists": lambda m: ids_of(m.search_gists("oven", 1).gists),
    "search_gists, newest": lambda m: ids_of(m.search_gists(limit=1).gists),
    "search_gists, of a layer": lambda m: ids_of(m.search_gists("key", 1, Filter(layers=("talk",))).gists),
    "entity_query": lambda m: ids_of(m.entity_query("chair").entities),
    "episode_summary": lambda m: ids_of(m.episode_summary(task_name="kitchen").episodes),
    "get_current_context": lambda m: _in_context(m.get_current_context()),
    "recall": lambda m: _in_recall(m.recall("spare key")),
}


def _in_context(found: Any) -> set[int]:
    return ids_of(found.entities, found.nearby, found.recent, found.gists)


def _in_recall(found: Any) -> set[int]:
    return ids_of(found.matches, found.gists, found.entities)


def recalled(folder: Path) -> dict[int, int]:
    """Node id to `last_recalled` (ns), as the file holds it."""
    conn = sqlite3.connect(folder / "robot.db")
    try:
        return dict(conn.execute("SELECT node_id, last_recalled FROM usage"))
    finally:
        conn.close()


@pytest.mark.parametrize("name", TOOLS)
def test_what_was_told_was_recalled(morning: Memory, clock: FakeClock, tmp_path: Path, name: str) -> None:
    told = TOOLS[name](morning)
    assert told
    assert recalled(tmp_path) == {}
    asked, _ = clock.ns, clock.advance(30)
    morning.run_job("importance")
    assert recalled(tmp_path) == dict.fromkeys(told, asked)


def test_texts_and_things_behind_a_place_were_recalled(morning: Memory, clock: FakeClock, tmp_path: Path) -> None:
    (fern,) = morning.temporal_query(Filter(layers=("scene",)), limit=1).matches
    (chair,) = morning.entity_query("chair").entities
    morning.run_job("importance")
    clock.advance(7200)
    assert morning.locate("dry brown fern").found and morning.locate("chair").found
    morning.run_job("importance")
    stamps = recalled(tmp_path)
    assert (stamps[fern.id], stamps[chair.id]) == (clock.ns, clock.ns)


def test_what_was_recalled_last_is_written_at_the_end_too(morning: Memory, clock: FakeClock, tmp_path: Path) -> None:
    told = TOOLS["semantic_search"](morning)
    clock.advance(30)
    morning.semantic_search("red mug", 2)
    morning.close()
    assert recalled(tmp_path) == dict.fromkeys(told, clock.ns)
