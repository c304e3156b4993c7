"""The work of every job is proportional to what is new, never to the size of the store."""

from __future__ import annotations

from pathlib import Path

from kept_store import DAY, Store
from support.fakes import SECOND, WordEmbedder

NAMES = ("episodes", "gists", "summaries", "archive", "rollup", "importance", "duplicates", "bound")


def steps(store: Store) -> dict[str, int]:
    """Run each job and return what its reads and writes cost, in hundreds of steps of SQLite's virtual machine."""
    cost = {}
    for name in NAMES:
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
    """Live through days of 600 rows at three places, and return what the jobs of the last one cost."""
    cost: dict[str, int] = {}
    for _ in range(days):
        now = store.clock.ns / SECOND
        rows = [(f"a chair {i % 7}", now + i, (20.0 * (i % 3), 0.0, 0.0), "scene") for i in range(600)]
        store.add_many(rows)
        store.embed()
        store.clock.advance(DAY)
        cost = steps(store)
        store.run("snapshots")
    return cost


def test_a_day_costs_the_same_in_a_store_six_times_as_large(tmp_path: Path) -> None:
    with Store(tmp_path / "m.db", embedder=WordEmbedder()) as store:
        live(store, 9)  # from here on every day has something to roll up
        early = live(store, 1)
        late = live(store, 50)
        assert store.one("SELECT count(*) FROM node") > 5 * 6000
        grown = {name: (early[name], late[name]) for name in NAMES if late[name] > 1.3 * early[name] + 20}
        assert grown == {}


def test_a_cycle_with_nothing_new_costs_next_to_nothing(tmp_path: Path) -> None:
    with Store(tmp_path / "m.db", embedder=WordEmbedder()) as store:
        live(store, 12)
        steps(store)
        assert max(steps(store).values()) < 100
