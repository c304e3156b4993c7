"""The work of every job is proportional to what is new, never to the size of the store."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from kept_store import DAY, Store
from support.fakes import SECOND, WordEmbedder

from memory_node.housekeeping import snapshots
from memory_node.protocols import NamedThing, SummaryRow
from memory_node.storage import database


class Namer:
    """A language model that writes the same summary always and names a thing in every twentieth row."""

    name = "namer"

    def summarize(self, rows: Sequence[SummaryRow], max_chars: int) -> str:
        return f"There were {len(rows)} kinds of chairs."

    def extract(self, rows: Sequence[SummaryRow]) -> list[NamedThing]:
        return [NamedThing(rows[0].id, "chair")]


@pytest.fixture
def bounds_are_met_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Statistics are worth having, and their samples full and removals forgotten, from the first days on."""
    monkeypatch.setattr(snapshots, "WORTH", 100)
    monkeypatch.setattr(snapshots, "SAMPLED", 40)
    monkeypatch.setattr(database, "REMOVALS_KEPT", 100)


def opened(path: Path) -> Store:
    return Store(path, embedder=WordEmbedder(), summarizer=Namer(), entities=True)


def steps(store: Store) -> dict[str, int]:
    """Run each job and return what its reads and writes cost, in hundreds of steps of SQLite's virtual machine."""
    cost = {}
    for name in store.runner.jobs:
        count = [0]

        def tick(count: list[int] = count) -> int:
            count[0] += 1
            return 0

        with store.db.read() as conn:
            conn.set_progress_handler(tick, 100)
        store.write(lambda tx, tick=tick: tx.conn.set_progress_handler(tick, 100))
        store.run(name)
        with store.db.read() as conn:
            conn.set_progress_handler(None, 0)
        store.write(lambda tx: tx.conn.set_progress_handler(None, 0))
        cost[name] = count[0]
    return cost


def live(store: Store, days: int) -> dict[str, int]:
    """Live through days of 600 rows at three places and looks at ten things; return each job's dearest day."""
    dearest: dict[str, int] = {}
    for _ in range(days):
        now = store.clock.ns / SECOND
        rows = [(f"a chair {i % 7}", now + i, (20.0 * (i % 3), 0.0, 0.0), "scene") for i in range(600)]
        store.add_many(rows)
        for i in range(10):
            at = (0.0, 100.0 + 5.0 * i, 0.0)
            store.look(now + i, (f"box {i % 3}", at), (f"box {i % 3}", (at[0] + 0.5, at[1], at[2])))
        store.embed()
        store.clock.advance(DAY / 2)
        store.recalls.note(range(1, 50), store.clock.ns)
        first = steps(store)
        store.clock.advance(DAY / 2)
        second = steps(store)
        cost = {name: first[name] + second[name] for name in first}
        dearest = {name: max(cost[name], dearest.get(name, 0)) for name in cost}
    return dearest


def test_a_day_costs_the_same_in_a_store_six_times_as_large(tmp_path: Path, bounds_are_met_early: None) -> None:
    with opened(tmp_path / "m.db") as store:
        live(store, 9)  # from here on every day has something to roll up
        early = live(store, 3)
        live(store, 45)
        late = live(store, 3)
        assert store.one("SELECT count(*) FROM node") > 5 * 6000
        assert min(early[name] for name in early if name != "bound") > 0
        grown = {name: (early[name], late[name]) for name in late if late[name] > 1.3 * early[name] + 20}
        assert grown == {}


def test_a_cycle_with_nothing_new_costs_next_to_nothing(tmp_path: Path) -> None:
    with opened(tmp_path / "m.db") as store:
        live(store, 12)
        steps(store)
        assert max(steps(store).values()) < 100


def test_a_row_costs_the_same_however_many_stretches_of_one_row_follow_it(tmp_path: Path) -> None:
    cost = {}
    for rows in (250, 1000):
        with Store(tmp_path / f"{rows}.db", consolidation_window=0.0) as store:
            now = store.clock.ns / SECOND
            store.add_many([(f"view {i}", now + i, (3.0 * i, 0.0, 0.0), "scene") for i in range(rows)])
            store.clock.advance(DAY)
            cost[rows] = steps(store)["gists"]
            assert len(store.gists()) == rows
    assert cost[1000] < 6 * cost[250]
