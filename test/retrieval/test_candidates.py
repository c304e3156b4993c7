"""Words are searched only where they can matter, and that changes no answer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from search_world import FILTERS, NOW, World, furnish
from support.fakes import FakeClock, WordEmbedder

from memory_node.config import Settings
from memory_node.graph import Kind
from memory_node.index import vectors as index_vectors
from memory_node.memory import Memory
from memory_node.retrieval.candidates import Asked
from memory_node.retrieval.filters import Resolved
from memory_node.retrieval.findings import Findings
from memory_node.retrieval.plan import Plan
from memory_node.retrieval.ranking import rank
from memory_node.retrieval.search import Searcher
from memory_node.storage import nodes

BY_WORDS = {"postings", "all"}
KINDS = (Kind.OBSERVATION, Kind.GIST)


def furnished(world: World) -> None:
    """Sentences, long gists of them, and some texts that wait for their vector."""
    furnish(world, 900)
    said = [f"{node.text}." for node in world.rows.values()]
    gists = [" ".join(said[i : i + 6]) for i in range(0, 600, 6)]
    world.add_all([world.node(text, stamp=float(i), kind=Kind.GIST) for i, text in enumerate(gists)])
    world.settled()


def answers(
    world: World, query: str, resolved: Resolved, limit: int, settings: Settings
) -> tuple[list[tuple[int, int, float]], bool]:
    """Row, count and score of each answer, and whether words were searched."""
    plan, vector = Plan(), world.embedder.embed([query])[0]
    asked = Asked(query, vector, resolved, NOW, Findings(query))
    found = rank(world.searcher, world.db, settings, asked, limit, plan)
    return [(one.node.id, one.repeats, one.score) for one in found], bool(BY_WORDS & {*plan.paths})


@pytest.mark.parametrize("settings", [Settings(), Settings(importance_weight=0.2, recency_weight=0.4)])
@pytest.mark.parametrize(("waiting", "graph"), [(False, False), (True, False), (False, True)])
def test_answers_are_those_of_both_searches(
    world: World, settings: Settings, waiting: bool, graph: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if graph:
        by_graph(monkeypatch)
    furnished(world)
    if waiting:
        world.db.write(lambda tx: nodes.insert_many(tx, [world.node("red lamp red sofa in the attic", stamp=950.0)]))
    queries = ["a red mug", "sofa in the attic", "pink door", "a lamp nobody knows", "red lamp red sofa in the attic"]
    searched = set()
    for query in queries:
        for filter in FILTERS:
            for kinds in (KINDS, (Kind.GIST,)):
                resolved = world.resolved(filter, kinds)
                for limit in (1, 7, 30):
                    found, by_words = answers(world, query, resolved, limit, settings)
                    searched.add(by_words)
                    with monkeypatch.context() as patch:
                        patch.setattr(Searcher, "has_compared_all", lambda *_: False)
                        assert answers(world, query, resolved, limit, settings)[0] == found, (query, filter, limit)
    assert searched == ({True} if waiting else {True, False})


def by_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a graph answer where it need not."""
    monkeypatch.setattr(index_vectors, "EXACT_BELOW", 100)
    monkeypatch.setattr(index_vectors, "GRAPH_COST", 0.01)


def test_words_are_not_searched_where_the_best_by_meaning_say_them_all(world: World) -> None:
    furnished(world)
    resolved = world.resolved(kinds=KINDS)
    assert answers(world, "a red mug in the kitchen", resolved, 3, Settings())[1] is False
    assert answers(world, "a lamp nobody knows 417", resolved, 3, Settings())[1] is False  # no text says "nobody"
    world.add("mop number 417 has gone", stamp=950.0)
    world.settled()
    assert answers(world, "a lamp nobody knows 417", resolved, 3, Settings())[1] is True


def test_a_text_that_the_graph_misses_is_found_by_its_words(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    by_graph(monkeypatch)
    furnished(world)
    query = "a red mug in the kitchen"
    index, graph = world.projections.vectors, world.projections.vectors._graph
    best = index.find(index.view, world.embedder.embed([query])[0], 1)
    assert best.path == "graph" and best.similarities[0] > 0.999 and graph is not None
    assert answers(world, query, world.resolved(kinds=KINDS), 1, Settings())[1] is False
    graph.delete(index.view.columns["id"][best.slots])
    (found,), by_words = answers(world, query, world.resolved(kinds=KINDS), 1, Settings())
    assert world.rows[found[0]].text == query and by_words


class GatedEmbedder(WordEmbedder):
    """Embeds one question alone while it is shut."""

    shut = False

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        if self.shut and texts != ["a mug of zorb"]:
            raise ConnectionError("shut")
        return super().embed(texts)


def test_a_text_that_waits_for_its_vector_is_found_by_its_words(tmp_path: Path) -> None:
    embedder = GatedEmbedder(64)
    with Memory.open(tmp_path / "robot.db", embedder=embedder, clock=FakeClock()) as memory:
        memory.record("zorb", "scene", (-9.0, 0.0, 0.0))
        for i in range(80):
            memory.record(f"a mug stands on shelf {i}", "scene", (3.0 * i, 0.0, 0.0))
        memory.flush()
        assert memory.wait_embedded(20.0)
        assert [match.text for match in memory.semantic_search("a mug of zorb", 1).matches] == ["zorb"]
        embedder.shut = True
        late = memory.record("mug of zorb", "scene", (900.0, 0.0, 0.0))
        memory.flush()
        found = memory.semantic_search("a mug of zorb", 3).matches
        assert [match.similarity for match in found if match.id == late] == [None]
        embedder.shut = False
        assert memory.wait_embedded(20.0)
        best = memory.semantic_search("a mug of zorb", 3).matches[0]
        assert best.id == late and best.similarity > 0.8
