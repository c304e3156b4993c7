"""Search through the database and its projections, against plain Python and against the faults of the parts."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from search_world import FILTERS, World, furnish
from support.fakes import WordEmbedder

from memory_node.graph import Filter, Kind, Tier
from memory_node.index import vectors as index_vectors
from memory_node.retrieval.findings import Findings
from memory_node.retrieval.plan import Plan
from memory_node.storage import nodes, vectors


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
    world.db.write(lambda tx: vectors.put_texts(tx, world.model.id, {text_id: parts}))
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
