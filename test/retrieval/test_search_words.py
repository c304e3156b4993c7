"""Search by words, against plain Python and against the faults of the parts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from search_world import FILTERS, World, furnish

from memory_node.graph import Filter
from memory_node.retrieval import lexicon, words
from memory_node.retrieval.plan import Plan
from memory_node.retrieval.search import Searcher
from memory_node.storage import nodes


def test_words_that_no_text_has_end_the_search_where_all_are_wanted(world: World) -> None:
    furnish(world, 300)
    world.settled()
    plan = Plan()
    assert world.searcher.words("red mug zorb", 5, world.resolved(), plan, least=0.99) == []
    assert plan.paths == []
    assert world.searcher.words("red mug zorb", 5, world.resolved()) != []
    both = world.searcher.words("red mug", 5, world.resolved())
    assert both and world.searcher.words("red mug", 5, world.resolved(), least=0.99) == both


@pytest.mark.parametrize(
    "query",
    ["kitchen-table", "mug:", '"mug', "AND", "NOT mug", "don't", "a.b", "*", "(mug", "", "   ", "NEAR(mug, 2)", "mug^2",
     "body:mug", "mug*", "\x00mug", "ma\u0301g", "- -", "{mug}", "';--", "mug OR", "x" * 100_000],
)  # fmt: skip
def test_f40_any_text_is_a_query(world: World, query: str) -> None:
    """F40: nothing a person types is syntax, and nothing raises."""
    world.add("a red mug on the kitchen table")
    found = world.searcher.words(query, 5, world.resolved())
    assert [hit.lexical is not None for hit in found] == [True] * len(found)
    assert bool(found) is any(word in query for word in ("mug", "kitchen"))


@pytest.mark.parametrize(
    "text", ["AND", "to be or not to be", "don't panic", "ROBOT-7 at 45.5%", "Ärger im Büro", "猫"]
)
def test_every_text_is_found_by_its_own_words(world: World, text: str) -> None:
    furnish(world, 50)
    id_ = world.add(text)
    hits = world.searcher.words(text, 3, world.resolved())
    assert hits[0].node_ids == (id_,) and hits[0].lexical == pytest.approx(1.0)


def test_lexical_is_the_share_of_the_querys_weight(world: World) -> None:
    furnish(world, 300)
    both = world.add("the submarine stands beside the zeppelin")
    one = world.add("a submarine")
    hits = world.searcher.words("where is the submarine zeppelin?", 5, world.resolved())
    assert [hit.node_ids[0] for hit in hits] == [both, one]
    assert hits[0].lexical == pytest.approx(1.0)
    assert hits[1].lexical == pytest.approx(0.5, abs=0.1)
    stemmed = world.searcher.words("submarines", 5, world.resolved())
    assert [hit.node_ids[0] for hit in stemmed] == [one, both]


@pytest.mark.parametrize("few", [0, 10_000])
def test_words_with_any_filter_find_only_what_passes(world: World, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memory_node.retrieval.search.FEW_TEXTS", few)
    furnish(world, 900)
    for filter in FILTERS:
        rows = world.passing(filter)
        have = {n.text for n in rows.values() if n.text and "mug" in n.text and "red" in n.text}
        hits = world.searcher.words("red mug", 500, world.resolved(filter))
        full = [hit for hit in hits if hit.lexical == pytest.approx(1.0)]
        assert {rows[hit.node_ids[0]].text for hit in full} == have
        assert sum(hit.total for hit in full) == sum(n.text in have for n in rows.values())
        assert all(set(hit.node_ids) <= set(rows) for hit in hits)


def test_common_words_cost_no_more_than_the_bound(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lexicon, "MOST", 50)
    world.add_all([world.node(f"a common thing {i}", stamp=float(i)) for i in range(400)])
    rare = world.add("a common thing with a giraffe", stamp=1.0)
    steps = [0]
    with world.db.read() as conn:
        conn.set_progress_handler(lambda: steps.__setitem__(0, steps[0] + 1), 100)
        hits = world.searcher.words("common thing giraffe", 5, world.resolved())
        conn.set_progress_handler(None, 0)
    assert hits[0].node_ids == (rare,)
    assert len(hits) == 5
    assert steps[0] < 60


def test_a_filter_that_only_old_texts_pass_finds_them(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest texts with a word are all that a query looks at first, and none of them may pass."""
    monkeypatch.setattr(words, "POSTINGS", 40)
    monkeypatch.setattr(lexicon, "MOST", 30)
    monkeypatch.setattr("memory_node.retrieval.search.FEW_TEXTS", 0)
    chairs = [world.node(f"a chair number {i}", stamp=float(i), layer="new" if i >= 100 else "old") for i in range(400)]
    ids = world.add_all(chairs)
    rare = world.add("a chair with a giraffe", stamp=5.0, layer="old")
    for query, wanted in (("chair", {*ids[:100], rare}), ("chair giraffe", {*ids[:100], rare})):
        hits = world.searcher.words(query, 200, world.resolved(Filter(layers=("old",))))
        assert {hit.node_ids[0] for hit in hits} == wanted
    few = world.searcher.words("chair giraffe", 5, world.resolved(Filter(layers=("old",))))
    assert [hit.node_ids[0] for hit in few][0] == rare and len(few) == 5


def test_what_is_remembered_of_a_common_word_keeps_up(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lexicon, "COMMON", 10)
    first = world.add_all([world.node(f"a thing {i}", stamp=float(i)) for i in range(40)])

    def found(query: str) -> list[int]:
        return [hit.node_ids[0] for hit in world.searcher.words(query, 100, world.resolved())]

    assert sorted(found("thing")) == first
    newer = world.add("one more thing", stamp=50.0)
    assert sorted(found("thing")) == [*first, newer]
    world.db.write(lambda tx: nodes.remove(tx, first[:30]))
    assert sorted(found("thing")) == [*first[30:], newer]
    world.db.write(lambda tx: nodes.layer_id(tx, "battery", internal=True))
    world.add("the thing rests", layer="battery", stamp=60.0)
    assert sorted(found("thing")) == [*first[30:], newer]
    late = world.add("the thing rests", stamp=61.0)
    assert sorted(found("thing")) == [*first[30:], newer, late]


def test_the_most_that_is_said_of_a_query_is_right_beyond_what_is_remembered(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Meaning finds old texts, whose words the newest postings do not tell."""
    texts = [f"a red mug {i}" if i % 3 else f"a red kettle {i}" for i in range(60)]
    ids = world.add_all([world.node(text, stamp=float(i)) for i, text in enumerate(texts)])
    with world.db.read() as conn:
        text_ids = [node.text_id or 0 for node in nodes.fetch(conn, ids)]
    whole = world.searcher.said("red mug", text_ids)
    monkeypatch.setattr(lexicon, "MOST", 15)
    assert whole[:3] == Searcher(world.db, world.projections).said("red mug", text_ids)[:3]
    assert min(whole.shares.values()) < 0.5 and max(whole.shares.values()) == 1.0 == whole.most


def test_a_question_is_understood_once_and_old_ones_are_not_kept(world: World) -> None:
    world.add("a red mug in the kitchen")
    understood: list[str] = []

    def ask(question: str, state: int) -> str:
        return known.once(question, state, lambda: understood.append(question) or f"{question} {state}")

    known = lexicon.Lexicon()
    assert [ask("mug", 1), ask("mug", 1), ask("cup", 1), ask("mug", 2), ask("cup", 1)] == [
        "mug 1", "mug 1", "cup 1", "mug 2", "cup 1",
    ]  # fmt: skip
    assert understood == ["mug", "cup", "mug", "cup"]
    for number in range(100):
        ask(f"cup {number}", 3)
    assert len(known._understood[0]) <= lexicon.QUESTIONS


def test_a_searcher_without_a_model_answers_by_words(world: World, tmp_path: Path) -> None:
    from memory_node.config import Settings
    from memory_node.index.projections import Projections

    world.add("a red mug")
    projections = Projections(world.db, None, Settings())
    searcher = Searcher(world.db, projections)
    assert searcher.meaning(np.ones(5, np.float32), 5, world.resolved()) == []
    assert len(searcher.words("mug", 5, world.resolved())) == 1
    projections.close()


def test_what_a_word_weighs_does_not_grow_with_texts_that_are_gone(world: World) -> None:
    ids = world.add_all([world.node(f"a thing number {i}", stamp=float(i)) for i in range(50)])
    with world.db.read() as conn:
        text = [node.text_id or 0 for node in nodes.fetch(conn, ids)]
    common = world.searcher.said("thing", text)[0]
    for round in range(4):
        gone = world.add_all([world.node(f"another {round} {i}", stamp=60.0) for i in range(50)])
        world.db.write(lambda tx, gone=gone: nodes.remove(tx, gone))
    assert world.searcher.said("thing", text)[0] == pytest.approx(common)
