"""Any order of add, remove, move, archive, settle and reopen: search gives what every row and cosine say."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from retrieval.search_world import World
from support.fakes import SECOND

from memory_node.graph import Filter, Position
from memory_node.index import rows, vectors
from memory_node.index import view as view_module

coordinate = st.integers(-5, 5).map(float)
place = st.none() | st.tuples(coordinate, coordinate, coordinate)
text = st.integers(0, 40).map(lambda i: f"thing {i} word {i % 5}")
seconds = st.integers(0, 60)
OUTER, INNER = 1, 2
"""Ids of the world's episodes, one in the other."""


@st.composite
def any_filter(draw: st.DrawFn) -> Filter:
    """Every combination of layer, times, circle or sphere, confidence and episode, and no part at all."""
    after, before = sorted((draw(seconds), draw(seconds)))
    center = draw(st.none() | st.tuples(coordinate, coordinate) | st.tuples(coordinate, coordinate, coordinate))
    return Filter(
        layers=draw(st.sampled_from([(), ("scene",), ("scene", "notes")])),
        time_after=draw(st.sampled_from([None, after * SECOND])),
        time_before=draw(st.sampled_from([None, before * SECOND])),
        center=center,
        radius=None if center is None else draw(st.sampled_from([0.5, 3.0, 100.0])),
        episode_id=draw(st.sampled_from([0, OUTER, INNER])),
        min_confidence=draw(st.sampled_from([0.0, 0.5])),
    )


filters = any_filter()


class SearchMachine(RuleBasedStateMachine):
    """The world's own dictionary is the oracle."""

    @initialize()
    def begin(self) -> None:
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(vectors, "EXACT_BELOW", 12)
        self.patch.setattr(vectors, "GRAPH_COST", 0.001)
        self.patch.setattr(rows, "TAIL_LEAST", 4)
        self.patch.setattr(view_module, "WHOLE", 8)
        self.folder = tempfile.TemporaryDirectory()
        self.world = World(Path(self.folder.name) / "memory.db")
        assert [self.world.add_episode("outer"), self.world.add_episode("inner", OUTER)] == [OUTER, INNER]
        self.world.add_all([self.world.node("first", layer=layer) for layer in ("scene", "notes")])

    @rule(
        batch=st.lists(
            st.tuples(
                text, place, st.tuples(seconds, st.integers(0, 9)), st.sampled_from(["scene", "notes"]),
                st.sampled_from([0.2, 0.9]), st.sampled_from([0, OUTER, INNER]),
            ),
            min_size=1, max_size=8,
        )
    )  # fmt: skip
    def add(self, batch: list[tuple[str, Position | None, tuple[int, int], str, float, int]]) -> None:
        self.world.add_all(
            [
                self.world.node(
                    body, where, stamp=float(first), last_stamp=(first + span) * SECOND, layer=layer,
                    confidence=confidence, episode_id=episode,
                )
                for body, where, (first, span), layer, confidence, episode in batch
            ]
        )

    @precondition(lambda self: len(self.world.rows) > 4)
    @rule(data=st.data(), way=st.sampled_from(["remove", "archive"]))
    def lose(self, data: st.DataObject, way: str) -> None:
        ids = data.draw(st.lists(st.sampled_from(sorted(self.world.rows)), min_size=1, max_size=6, unique=True))
        (self.world.remove if way == "remove" else self.world.archive)(ids)

    @rule(data=st.data(), where=place)
    def move(self, data: st.DataObject, where: tuple[float, float, float] | None) -> None:
        if self.world.rows:
            self.world.move(data.draw(st.sampled_from(sorted(self.world.rows))), where)

    @rule()
    def reopen(self) -> None:
        self.world.reopen()

    @rule()
    def settle(self) -> None:
        self.world.settled()

    @rule(filter=filters, query=text, k=st.integers(1, 30))
    def ask_by_meaning(self, filter: Filter, query: str, k: int) -> None:
        self.world.check_meaning(query, k, filter)

    @rule(filter=filters, query=text)
    def ask_by_words(self, filter: Filter, query: str) -> None:
        passing = self.world.passing(filter)
        hits = self.world.searcher.words(query, 100, self.world.resolved(filter))
        same = [hit for hit in hits if self.world.rows[hit.node_ids[0]].text == query]
        assert sum(hit.total for hit in same) == sum(node.text == query for node in passing.values())
        assert all(hit.lexical == pytest.approx(1.0) for hit in same)
        assert all(set(hit.node_ids) <= set(passing) for hit in hits)

    @rule(filter=filters, at=st.tuples(coordinate, coordinate, coordinate), flat=st.booleans())
    def ask_by_place(self, filter: Filter, at: tuple[float, float, float], flat: bool) -> None:
        center = at[:2] if flat else at
        away = [
            sum((a - b) ** 2 for a, b in zip(node.position, center, strict=False)) ** 0.5
            for node in self.world.passing(filter).values()
            if node.position is not None
        ]
        found = self.world.searcher.near(center, 4.0, 7, self.world.resolved(filter))
        assert [d for _, d in found] == pytest.approx(sorted(d for d in away if d <= 4.0)[:7])

    @invariant()
    def counts_and_times_agree(self) -> None:
        world = self.world
        newest = sorted(world.rows.values(), key=lambda node: (node.last_stamp, node.id), reverse=True)
        assert world.searcher.count(world.resolved()) == len(newest)
        assert world.searcher.in_time(world.resolved(), True, 9) == [node.id for node in newest[:9]]

    def teardown(self) -> None:
        self.world.close()
        self.folder.cleanup()
        self.patch.undo()


TestSearch = SearchMachine.TestCase
TestSearch.settings = settings(
    max_examples=25, stateful_step_count=30, deadline=None, derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)  # fmt: skip
