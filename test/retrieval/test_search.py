"""Search through the database and its projections, against plain Python and against the faults of the parts."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from search_world import World
from support.fakes import SECOND, WordEmbedder

from memory_node.graph import Filter, Kind, Tier
from memory_node.index import vectors as index_vectors
from memory_node.retrieval import lexicon, words
from memory_node.retrieval.findings import Findings
from memory_node.retrieval.plan import Plan
from memory_node.retrieval.search import Searcher
from memory_node.storage import nodes, vectors

COLOURS = ["red", "green", "blue", "white", "black", "brown", "grey", "pink"]
THINGS = ["mug", "chair", "table", "lamp", "sofa", "book", "plant", "box", "shoe", "door"]
ROOMS = ["kitchen", "hall", "cellar", "attic", "bath", "office"]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path / "memory.db")
    yield world
    world.close()


def furnish(world: World, count: int, seed: int = 0) -> list[int]:
    rng = np.random.default_rng(seed)
    new = [
        world.node(
            f"a {rng.choice(COLOURS)} {rng.choice(THINGS)} in the {rng.choice(ROOMS)}",
            tuple(rng.random(3) * (20.0, 20.0, 3.0)) if rng.random() < 0.9 else None,
            stamp=float(i),
            layer=["scene", "detections", "notes"][i % 3],
            confidence=float(rng.random()),
        )
        for i in range(count)
    ]
    return world.add_all(new)


FILTERS = [
    Filter(),
    Filter(layers=("notes",)),
    Filter(center=(10.0, 10.0), radius=3.0),
    Filter(center=(10.0, 10.0, 1.0), radius=2.0, layers=("scene", "notes")),
    Filter(time_after=100 * SECOND, time_before=120 * SECOND),
    Filter(min_confidence=0.98),
    Filter(min_confidence=0.3),
    Filter(center=(-50.0, 0.0), radius=1.0),
]


@pytest.mark.parametrize("graph", [False, True])
def test_meaning_with_any_filter_is_what_every_cosine_says(
    world: World, graph: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if graph:
        monkeypatch.setattr(index_vectors, "EXACT_BELOW", 100)
        monkeypatch.setattr(index_vectors, "GRAPH_COST", 0.01)
    furnish(world, 1500)
    world.settled()
    assert (world.projections.vectors.state["in_graph"] > 0) is graph
    for filter in FILTERS:
        for text in ("a red mug", "sofa in the attic", "something else"):
            world.check_meaning(text, 10, filter)
    world.check_meaning("a red mug", 2000)


def test_what_a_question_found_gives_the_same_with_another_filter(world: World) -> None:
    furnish(world, 1500)
    world.settled()
    for query in ("a red mug", "sofa in the attic"):
        seen, vector = Findings(query), world.embedder.embed([query])[0]
        for k, filter in [(40, Filter()), *((30, filter) for filter in FILTERS), (200, Filter()), (10, Filter())]:
            resolved = world.resolved(filter)
            found = world.searcher.meaning(vector, k, resolved, seen=seen)
            assert found == world.searcher.meaning(vector, k, resolved), (query, k, filter)
            found = world.searcher.words(query, k, resolved, seen=seen)
            assert found == world.searcher.words(query, k, resolved), (query, k, filter)


def test_what_a_question_found_of_several_kinds_gives_the_same_of_fewer(world: World) -> None:
    furnish(world, 300)
    for text in ("a red mug", "a red sofa in the attic"):
        things = [world.node(text, (1.0, 1.0, 0.0), kind=Kind.ENTITY) for _ in range(2)]
        world.add_all([*things, world.node("a pale mug", kind=Kind.GIST), world.node("a red lamp", kind=Kind.ENTITY)])
    world.settled()
    seen, vector = Findings("a red mug"), world.embedder.embed(["a red mug"])[0]
    several = (Kind.OBSERVATION, Kind.GIST, Kind.ENTITY)
    for kinds in (several, (Kind.OBSERVATION, Kind.GIST), (Kind.ENTITY,), (Kind.OBSERVATION,), several):
        resolved = world.resolved(kinds=kinds)
        found = world.searcher.meaning(vector, 400, resolved, seen=seen)
        assert found == world.searcher.meaning(vector, 400, resolved), kinds
        assert {id_ for hit in found for id_ in hit.node_ids} <= {*world.passing(Filter(), kinds)}
        found = world.searcher.words("a red mug", 400, resolved, seen=seen)
        assert found == world.searcher.words("a red mug", 400, resolved), kinds


def test_only_those_alike_enough_are_found_be_they_few_or_many(world: World) -> None:
    furnish(world, 1500)
    world.settled()
    vector, resolved = world.embedder.embed(["a red mug"])[0], world.resolved()
    everything = world.searcher.meaning(vector, 50, resolved)
    counts = []
    for least in (0.0, *(hit.similarity for hit in (everything[30], everything[14], everything[0])), 1.1):
        found = world.searcher.meaning(vector, 50, resolved, least=least)
        assert found == [hit for hit in everything if hit.similarity >= least], least
        counts.append(len(found))
    assert counts[0] == 50 and counts[1] > 16 > counts[-2] > counts[-1] == 0


def test_what_a_question_found_is_not_looked_for_again(world: World) -> None:
    furnish(world, 300)
    world.settled()
    seen, vector, resolved = Findings("a red zorb"), world.embedder.embed(["a red zorb"])[0], world.resolved()
    world.searcher.meaning(vector, 10, resolved, seen=seen)
    world.searcher.words("a red zorb", 10, resolved, seen=seen)
    new = world.add("a red zorb", (0.0, 0.0, 0.0))
    world.settled()
    for known in (seen, None):
        by_meaning = world.searcher.meaning(vector, 5, resolved, seen=known)
        by_words = world.searcher.words("a red zorb", 5, resolved, seen=known)
        for found in (by_meaning, by_words):
            assert len(found) == 5
            assert (found[0].node_ids == (new,)) is (known is None)


def test_what_a_question_found_in_the_vectors_of_another_model_is_forgotten(world: World) -> None:
    furnish(world, 300)
    world.settled()
    seen, vector, resolved = Findings("a red mug"), world.embedder.embed(["a red mug"])[0], world.resolved()
    assert len(world.searcher.meaning(vector, 10, resolved, seen=seen)) == 10
    world.projections.use_model(None)
    assert world.searcher.meaning(vector, 5, resolved, seen=seen) == []


def test_words_that_no_text_has_end_the_search_where_all_are_wanted(world: World) -> None:
    furnish(world, 300)
    world.settled()
    plan = Plan()
    assert world.searcher.words("red mug zorb", 5, world.resolved(), plan, least=0.99) == []
    assert plan.paths == []
    assert world.searcher.words("red mug zorb", 5, world.resolved()) != []
    both = world.searcher.words("red mug", 5, world.resolved())
    assert both and world.searcher.words("red mug", 5, world.resolved(), least=0.99) == both


def test_texts_less_alike_than_wanted_are_left_out_and_not_looked_for_further(world: World) -> None:
    furnish(world, 300)
    world.settled()
    query, resolved = world.embedder.embed(["a red mug"])[0], world.resolved()
    every = world.searcher.meaning(query, 20, resolved)
    assert every[0].similarity != every[-1].similarity
    least = (every[0].similarity + every[-1].similarity) / 2.0
    plan = Plan()
    found = world.searcher.meaning(query, 20, resolved, plan, least)
    assert found == [hit for hit in every if hit.similarity >= least]
    assert len(plan.paths) == 2  # searched once


def test_counts_places_and_times_agree_with_plain_python(world: World) -> None:
    furnish(world, 800)
    for filter in FILTERS:
        rows, resolved = world.passing(filter), world.resolved(filter)
        assert world.searcher.count(resolved) == len(rows)
        newest = sorted(rows.values(), key=lambda n: (n.last_stamp, n.id), reverse=True)
        assert world.searcher.in_time(resolved, True, 20) == [n.id for n in newest[:20]]
        assert world.searcher.in_time(resolved, False, 20) == [n.id for n in newest[::-1][:20]]
        near = world.searcher.near((5.0, 5.0), 6.0, 15, resolved)
        away = sorted(
            ((n.position[0] - 5.0) ** 2 + (n.position[1] - 5.0) ** 2) ** 0.5 for n in rows.values() if n.position
        )
        assert [d for _, d in near] == pytest.approx([d for d in away if d <= 6.0][:15])


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
    assert whole == Searcher(world.db, world.projections).said("red mug", text_ids)
    assert min(whole[1].values()) < 0.5 and max(whole[1].values()) == 1.0


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


def test_few_statements_however_many_rows_pass(world: World) -> None:
    furnish(world, 600)
    statements: list[str] = []
    with world.db.read() as conn:
        # What FTS5 asks of its own tables is traced as a comment.
        conn.set_trace_callback(lambda sql: None if sql.startswith("--") else statements.append(sql))
        world.searcher.meaning(world.embedder.embed(["red mug"])[0], 10, world.resolved(FILTERS[3]))
        by_meaning = len(statements)
        world.searcher.words("red mug in the kitchen", 10, world.resolved(FILTERS[3]))
        conn.set_trace_callback(None)
    assert by_meaning <= 3
    assert len(statements) - by_meaning <= 11


def test_the_plan_tells_candidates_path_and_times(world: World) -> None:
    furnish(world, 300)
    query = world.embedder.embed(["red mug"])[0]
    plan = Plan()
    world.searcher.meaning(query, 5, world.resolved(Filter(center=(10.0, 10.0), radius=2.0)), plan)
    inside = {n.text for n in world.passing(Filter(center=(10.0, 10.0), radius=2.0)).values()}
    assert plan.candidates == len(inside) and plan.paths == ["filtered", "gather"] and plan.compared == len(inside)
    plan = Plan()
    world.searcher.meaning(query, 5, world.resolved(), plan)
    assert plan.candidates is None and plan.paths == ["broad", "scan"]
    assert set(plan.as_dict()["stages_ms"]) == {"filter", "vectors", "group"}


def test_perception_never_returns_interoception(world: World) -> None:
    world.db.write(lambda tx: nodes.layer_id(tx, "battery", internal=True))
    body = world.add("battery low", layer="battery")
    seen = world.add("a sign that says battery low")
    for filter in (Filter(), Filter(layers=("battery",))):
        ids = {i for hit in world.meaning("battery low", 10, filter) for i in hit.node_ids}
        ids |= {i for hit in world.searcher.words("battery", 10, world.resolved(filter)) for i in hit.node_ids}
        ids |= set(world.searcher.in_time(world.resolved(filter), True, 10))
        assert body not in ids
        assert ids == ({seen} if not filter.layers else set())


def test_other_maps_are_left_out_unless_asked_for(world: World) -> None:
    here, there = world.add("a red mug"), world.add("a red mug", map_id="upstairs")
    assert [hit.node_ids for hit in world.meaning("red mug", 5)] == [(here,)]
    assert [hit.node_ids for hit in world.meaning("red mug", 5, Filter(map_id="upstairs"))] == [(there,)]
    assert [hit.node_ids for hit in world.meaning("red mug", 5, Filter(any_map=True))] == [(there, here)]


def test_archived_rows_are_found_by_time_alone(world: World) -> None:
    old = world.add("a red mug", (1.0, 1.0, 0.0), stamp=10.0)
    new = world.add("a blue mug", (1.0, 1.0, 0.0), stamp=20.0)
    world.archive([old])
    resolved = world.resolved()
    assert world.searcher.in_time(resolved, True, 5) == [new]
    assert world.searcher.in_time(resolved, True, 5, include_archived=True) == [new, old]
    assert world.searcher.in_time(resolved, False, 1, include_archived=True) == [old]
    far = world.resolved(Filter(center=(9.0, 9.0), radius=1.0))
    assert world.searcher.in_time(far, True, 5, include_archived=True) == []
    assert [i for hit in world.meaning("red mug", 5) for i in hit.node_ids] == [new]
    assert [i for hit in world.searcher.words("red mug", 5, resolved) for i in hit.node_ids] == [new]
    assert [i for i, _ in world.searcher.near((1.0, 1.0), 1.0, 5, resolved)] == [new]
    with world.db.read() as conn:
        assert nodes.fetch(conn, [old])[0].tier is Tier.ARCHIVED


def test_a_text_said_often_is_one_hit_with_a_count(world: World) -> None:
    ids = world.add_all([world.node("a chair", stamp=float(i)) for i in range(200)])
    (hit,) = world.meaning("a chair", 5)
    assert hit.node_ids == tuple(ids[::-1][:16]) and hit.total == 200
    assert len(world.projections.vectors) == 1


def test_a_long_text_is_returned_once_with_its_best_part(world: World) -> None:
    furnish(world, 100)
    long_ = world.add("first about soup then about rockets")
    with world.db.read() as conn:
        text_id = nodes.fetch(conn, [long_])[0].text_id
    parts = world.embedder.embed(["soup", "rockets", "rockets soup"])
    world.db.write(lambda tx: vectors.add_text(tx, world.model.id, text_id, parts))
    hits = world.meaning("rockets", 3)
    assert hits[0].node_ids == (long_,) and hits[0].similarity == pytest.approx(1.0, abs=2e-3)
    assert [hit.text_id for hit in hits].count(hits[0].text_id) == 1
    assert len(hits) == 3


def test_a_node_with_a_vector_of_its_own_is_a_hit(world: World) -> None:
    furnish(world, 60)
    episode = world.add("patrol", kind=Kind.EPISODE, layer="")
    vector = world.embedder.embed(["zebra crossing"])[0]
    world.db.write(lambda tx: vectors.add_node(tx, world.model.id, episode, vector))
    resolved = world.resolved(kinds=(Kind.EPISODE,))
    hit = world.searcher.meaning(vector, 1, resolved)[0]
    assert (hit.node_id, hit.node_ids, hit.text_id) == (episode, (episode,), 0)
    assert all(episode not in hit.node_ids for hit in world.meaning("zebra crossing", 500))


def test_nothing_stored_and_nothing_asked(world: World) -> None:
    query = np.ones(32, np.float32)
    resolved = world.resolved()
    assert world.searcher.meaning(query, 5, resolved) == world.searcher.words("mug", 5, resolved) == []
    assert world.searcher.near((0.0, 0.0), None, 5, resolved) == world.searcher.in_time(resolved) == []
    assert world.searcher.count(resolved) == 0
    world.add("mug", (0.0, 0.0, 0.0))
    assert world.searcher.meaning(query, 0, resolved) == world.searcher.words("mug", 0, resolved) == []
    assert world.searcher.near((0.0, 0.0), None, 0, resolved) == world.searcher.in_time(resolved, True, 0) == []


def test_readers_beside_a_writer_never_see_half_a_batch(world: World) -> None:
    """F29, F35, F36: each batch adds ten rows of one text; a count that is no multiple of ten saw half of one."""
    done = threading.Event()
    wrong: list[object] = []
    query = WordEmbedder(32).embed(["batch"])[0]

    def read() -> None:
        resolved = world.resolved()
        try:
            while not done.is_set():
                totals = [hit.total for hit in world.searcher.meaning(query, 50, resolved)]
                totals += [hit.total for hit in world.searcher.words("batch", 50, resolved)]
                totals.append(world.searcher.count(resolved))
                totals.append(len(world.searcher.near((0.0, 0.0), 50.0, 10_000, resolved)))
                wrong.extend(total for total in totals if total % 10)
        except Exception as error:
            wrong.append(error)

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    for turn in range(120):
        ids = world.add_all([world.node(f"batch {turn}", (float(i), 0.0, 0.0), stamp=float(i)) for i in range(10)])
        if turn % 7 == 0:
            world.remove(ids)
        if turn % 20 == 0:
            world.projections.rows.settle()
    done.set()
    for reader in readers:
        reader.join()
    assert wrong == []


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
