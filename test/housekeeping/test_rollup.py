"""Gists of gists across the sessions of a day, and whatever else lies in the way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from kept_store import DAY, Store
from support.fakes import SECOND

from memory_node.graph import EdgeType
from memory_node.housekeeping import rollup
from memory_node.protocols import NamedThing, SummaryRow


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "m.db") as opened:
        opened.clock.set(10 * DAY)
        opened.new_session("start")
        yield opened


def visit(store: Store, text: str = "a red chair", x: float = 0.0, **more: object) -> None:
    """Store a minute at one place and let it become a gist."""
    start = store.clock.ns / SECOND
    store.add_many([(text, start + i, (x, 0.0, 0.0), "scene") for i in range(4)], **more)
    store.clock.advance(1900)
    store.run("gists")


def levels(store: Store) -> Counter[tuple[int, int]]:
    return Counter(store.all("SELECT level, tier FROM gist JOIN node USING (id)"))


def test_map_changes_and_restarts_of_a_day_leave_one_gist_a_place_and_map(store: Store) -> None:
    for number in range(12):
        visit(store, map_id="home" if number % 2 else "garden")
        store.new_session("map changed" if number % 3 else "start")
    store.clock.set(20 * DAY)
    store.run("rollup")
    rolled = [gist for gist in store.gists() if gist.level == 1]
    assert sorted((gist.map_id, gist.observation_count) for gist in rolled) == [("garden", 24), ("home", 24)]
    assert levels(store) == {(0, 3): 12, (1, 2): 2}


def test_days_of_different_clocks_are_not_put_together(store: Store) -> None:
    for kind in ("system", "sim"):
        store.new_session("start", clock_kind=kind)
        store.clock.set(11 * DAY)
        visit(store), visit(store)
    store.wall += 20 * DAY
    store.clock.set(30 * DAY)
    store.new_session("start", clock_kind="sim")
    store.run("rollup")
    assert [gist.observation_count for gist in store.gists() if gist.level == 1] == [8, 8]


def test_a_gist_of_tomorrow_does_not_stop_those_after_it(store: Store) -> None:
    store.add_many([("a lamp", 400 * DAY + i, (0.0, 0.0, 0.0), "scene") for i in range(3)], episode_id=999)
    store.clock.set(401 * DAY)
    store.run("gists")
    store.clock.set(10 * DAY)
    visit(store), visit(store)
    store.clock.set(20 * DAY)
    store.run("archive", "rollup")
    assert levels(store) == {(0, 2): 1, (0, 3): 2, (1, 2): 1}
    assert store.one("SELECT count(*) FROM node WHERE kind = 1 AND tier = 3") == 8
    before = store.db.revision
    assert [state.wrote for state in store.run("archive", "rollup")] == [0, 0] and store.db.revision == before
    store.clock.set(402 * DAY)
    store.run("archive")
    assert store.one("SELECT count(*) FROM node WHERE kind = 1 AND tier < 3") == 0


def test_a_day_of_many_gists_is_rolled_up_piece_by_piece(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("SCAN", 7), ("MAX_GISTS", 10), ("MAX_MEMBERS", 3)):
        monkeypatch.setattr(rollup, name, value)
    for _ in range(20):
        visit(store, "at the door", 0.0)
    for _ in range(13):
        visit(store, "at the window", 40.0)
    store.clock.set(30 * DAY)
    store.run("rollup")
    rolled = [gist for gist in store.gists() if gist.level == 1]
    held = [member for gist in rolled for member in store.members(gist.id)]
    assert len(held) == len(set(held)) == sum(gist.level == 0 for gist in store.gists()) - levels(store)[0, 2]
    assert max(len(store.members(gist.id)) for gist in rolled) == 3 and levels(store)[0, 2] <= 4
    assert all("at the" in gist.text and gist.radius <= 5.0 for gist in rolled)
    sql = "SELECT count(*) FROM edge WHERE type = ? AND source = ?"
    assert all(store.one(sql, int(EdgeType.SUMMARIZES), gist.id) > 1 for gist in rolled)


class Teller:
    """A language model that tells of each gist's thing and adds what it always says."""

    name = "teller"

    def summarize(self, rows: Sequence[SummaryRow], max_chars: int) -> str:
        return (
            f"The robot saw that a {rows[0].text}. The light was on and nobody came in. Later the robot left towards"
            " the dock to charge and came back without any event worth noting."
        )

    def extract(self, rows: Sequence[SummaryRow]) -> list[NamedThing]:
        return []


def test_what_a_language_model_said_of_each_gist_is_in_the_gist_of_the_day(tmp_path: Path) -> None:
    things = ["kettle boiled", "dog slept", "piano was played", "ladder leaned on the wall", "bicycle stood around"]
    with Store(tmp_path / "m.db", summarizer=Teller()) as store:
        store.clock.set(10 * DAY)
        store.new_session("start")
        for thing in things:
            visit(store, thing)
        store.run("summaries")
        store.clock.set(20 * DAY)
        store.run("rollup")
        (day,) = [gist for gist in store.gists() if gist.level == 1]
        assert [thing for thing in things if f"The robot saw that a {thing}." not in day.text] == []
        assert day.text.count("nobody came in") <= 1 and len(day.text) <= 600
