"""What use earns: importance and retrievability are functions of blocks and time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kept_store import DAY, Store
from support.fakes import FakeClock

from memory_node.housekeeping.importance import (
    FIRST_STABILITY,
    MAX_WAITING,
    Recalls,
    earned_importance,
    retrievability,
    stability,
)
from memory_node.memory import Memory
from memory_node.storage import usage


@pytest.mark.parametrize(
    ("base", "blocks", "expected"),
    [(0.5, 0, 0.5), (0.5, 2, 0.56), (0.5, 1000, 0.59), (1.0, 3, 1.0), (0.0, 1, 0.03), (0.95, 9, 1.0)],
)
def test_importance_is_earned_by_steps(base: float, blocks: int, expected: float) -> None:
    assert earned_importance(base, blocks) == pytest.approx(expected)


def test_use_never_outranks_what_a_writer_set_a_tenth_higher() -> None:
    for tenth in range(10):
        assert earned_importance(tenth / 10, 10_000) < earned_importance((tenth + 1) / 10, 0)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "m.db") as opened:
        yield opened


def recalled(store: Store, id_: int, minutes: float, hours: float) -> int:
    """Recall a node every so many minutes for so many hours; return its blocks."""
    for _ in range(round(hours * 60 / minutes)):
        store.recalls.note([id_], store.clock.ns)
        store.run("importance")
        store.clock.advance(minutes * 60)
    return int(store.one("SELECT blocks FROM usage WHERE node_id = ?", id_))


@pytest.mark.parametrize(("minutes", "blocks"), [(5, 24), (30, 24), (60, 24), (61, 24), (40, 18), (120, 12)])
def test_a_block_is_an_hour_from_its_first_recall_however_dense_they_are(
    store: Store, minutes: float, blocks: int
) -> None:
    assert recalled(store, store.add("a chair", 0.0), minutes, 24.0) == blocks


@pytest.mark.parametrize(("seconds", "blocks"), [(600, 1), (1800, 1), (3000, 1), (3599, 1), (3600, 2), (4000, 2)])
def test_the_last_recall_is_known_within_a_block_too(store: Store, seconds: float, blocks: int) -> None:
    id_ = store.add("a chair", 0.0)
    assert recalled(store, id_, seconds / 60, 2 * seconds / 3600) == blocks
    with store.db.read() as conn:
        ((_, _, _, _, last),) = usage.of(conn, [id_])
    assert last == store.clock.ns - round(seconds * 1e9)


def test_a_recall_after_the_clock_went_back_begins_a_block(store: Store) -> None:
    id_ = store.add("a chair", 0.0)
    store.clock.advance(300 * DAY)
    recalled(store, id_, 60, 1)
    store.clock.advance(-300 * DAY)
    now = store.clock.ns
    assert recalled(store, id_, 60, 1) == 2
    with store.db.read() as conn:
        assert [(id, blocks, last) for id, _, _, blocks, last in usage.of(conn, [id_])] == [(id_, 2, now)]


def test_a_recall_that_is_still_to_come_keeps_nothing_fresh(tmp_path: Path) -> None:
    clock = FakeClock(1000 * DAY)
    settings = {"recency_weight": 1.0, "relevance_weight": 0.0}
    with Memory.open(tmp_path / "robot.db", clock=clock, settings=settings) as memory:
        memory.record("a red chair", layer="scene")
        clock.advance(300 * DAY)
        assert memory.semantic_search("chair").matches
        memory.run_job("importance")
        assert memory.semantic_search("chair").matches[0].recency == 1.0
        clock.advance(-200 * DAY)
        assert memory.check_clock() == "clock went back"
        assert memory.semantic_search("chair").matches[0].recency < 1e-6


def test_retrievability_is_nine_tenths_after_the_stability() -> None:
    assert retrievability(100.0, 0.0) == 1.0
    assert retrievability(100.0, 100.0) == pytest.approx(0.9)
    assert retrievability(100.0, 1000.0) == pytest.approx((1 + 190 / 81) ** -0.5)
    assert retrievability(100.0, -5.0) == 1.0


def test_each_block_of_recalls_makes_a_memory_last_longer() -> None:
    assert stability(0) == FIRST_STABILITY and stability(3) == 8 * FIRST_STABILITY
    assert stability(10_000) < 1e12


def test_recalls_that_nobody_writes_down_stay_bounded() -> None:
    recalls = Recalls()
    recalls.note(range(MAX_WAITING + 10), 7)
    taken = recalls.take(10 * MAX_WAITING)
    assert len(taken) == MAX_WAITING and min(taken) == 10 and recalls.take(1) == {}
