"""Gists that stand in for archived rows are asked for by what they cover: place, layers, confidence."""

from __future__ import annotations

import pytest
from support.fakes import FakeClock

from memory_node.graph import Filter
from memory_node.memory import Memory
from memory_node.tools.results import Match


@pytest.fixture
def old(memory: Memory, clock: FakeClock) -> Memory:
    """Ten shelves along 7.2 m, of confidence 0.9, and ten sentences without a place; all archived."""
    for i in range(10):
        memory.record(f"a shelf {i}", layer="scene", position=(0.8 * i - 3.6, 0.0, 0.0), confidence=0.9)
        memory.record(f"talk {i}", layer="talk")
        clock.advance(5)
    memory.flush()
    clock.advance(5 * 3600)
    memory.run_job("gists")
    memory.run_job("archive")
    assert memory.wait_embedded(20.0)
    assert {gist.layers: (gist.position, gist.radius) for gist in memory.search_gists().gists} == {
        ("scene",): (pytest.approx((0.0, 0.0, 0.0)), pytest.approx(3.6)), ("talk",): (None, 0.0),
    }  # fmt: skip
    return memory


def layers(memory: Memory, matches: tuple[Match, ...]) -> list[str]:
    """Layers of the gists among matches, in their order."""
    of = {gist.id: gist.layers for gist in memory.search_gists(limit=100).gists}
    assert {match.kind for match in matches} <= {"gist"}
    return [layer for match in matches for layer in of[match.id]]


@pytest.mark.parametrize(("x", "there"), [(3.2, True), (0.0, True), (4.0, True), (4.2, False)])
def test_a_region_that_a_gist_s_circle_meets_is_told_by_it(old: Memory, x: float, there: bool) -> None:
    region = Filter(center=(x, 0.0), radius=0.5)
    expected = ["scene"] if there else []
    assert layers(old, old.temporal_query(region).matches) == expected
    assert layers(old, old.spatial_query((x, 0.0), 0.5).matches) == expected
    assert layers(old, old.spatial_query((0.0, 0.0), 50.0, filter=region).matches) == expected
    assert layers(old, old.semantic_search("shelf", filter=region).matches) == expected
    assert [gist.layers for gist in old.search_gists("shelf", filter=region).gists] == [("scene",)] * there
    assert [gist.layers for gist in old.search_gists(filter=region).gists] == [("scene",)] * there


def test_a_gist_is_as_far_away_as_the_edge_of_its_circle(old: Memory) -> None:
    old.record("a bucket", layer="scene", position=(5.6, 0.0, 0.0))
    found = old.spatial_query((4.7, 0.0), 3.0).matches
    assert [(match.kind, match.distance) for match in found] == [
        ("observation", pytest.approx(0.9)), ("gist", pytest.approx(1.1)),
    ]  # fmt: skip
    assert old.spatial_query((3.0, 0.0), 1.0).matches[0].distance == 0.0


@pytest.mark.parametrize("kinds", [(), ("gist",), ("observation", "gist")])
def test_a_layer_is_told_by_the_gists_of_it_whatever_kinds_are_named(old: Memory, kinds: tuple[str, ...]) -> None:
    talk = Filter(layers=("talk",), kinds=kinds)
    assert layers(old, old.temporal_query(talk).matches) == ["talk"]
    assert layers(old, old.spatial_query((0.0, 0.0), 9.0, filter=talk).matches) == []
    assert layers(old, old.semantic_search("talk", filter=talk).matches) == ["talk"]
    scene = Filter(layers=("scene",), kinds=kinds)
    assert layers(old, old.spatial_query((0.0, 0.0), 9.0, filter=scene).matches) == ["scene"]
    assert layers(old, old.semantic_search("talk", filter=scene).matches) == ["scene"]


def test_without_gists_among_the_kinds_none_are_told(old: Memory) -> None:
    rows = Filter(layers=("talk",), kinds=("observation",))
    assert old.temporal_query(rows).matches == old.semantic_search("talk", filter=rows).matches == ()
    assert old.temporal_query(Filter(kinds=("observation",))).matches == ()


def test_a_gist_is_as_sure_as_the_surest_of_what_it_tells_of(old: Memory) -> None:
    for least, told in ((0.85, ["talk", "scene"]), (0.95, ["talk"])):
        assert sorted(layers(old, old.temporal_query(Filter(min_confidence=least)).matches)) == sorted(told)
        assert len(old.semantic_search("shelf talk", filter=Filter(min_confidence=least)).matches) == len(told)
    assert {match.confidence for match in old.temporal_query().matches} == {1.0, 0.9}


def test_a_gist_asked_for_by_its_id_passes_by_what_it_covers(old: Memory) -> None:
    (talk,) = old.search_gists(filter=Filter(layers=("talk",))).gists
    (found,) = old.semantic_search(f"#{talk.id}", filter=Filter(layers=("talk",))).matches
    assert found.id == talk.id
    assert old.semantic_search(f"#{talk.id}", filter=Filter(layers=("scene",))).matches == ()
