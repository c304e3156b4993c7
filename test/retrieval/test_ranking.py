"""Fusion, weights and folding, by value."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from support.fakes import SECOND, FakeClock, WordEmbedder

from memory_node.config import Settings
from memory_node.graph import Filter
from memory_node.memory import Memory
from memory_node.retrieval import ranking
from memory_node.retrieval.ranking import fused, recency, relevance

OpenMemory = Callable[..., Memory]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(100_000.0)


@pytest.fixture
def memory(tmp_path: Path, clock: FakeClock) -> Iterator[Memory]:
    with Memory.open(tmp_path / "robot.db", embedder=WordEmbedder(), clock=clock) as opened:
        yield opened


def test_relevance_mixes_meaning_and_the_evidence_of_words() -> None:
    assert relevance(0.6, None, 0.0) == 0.6
    assert relevance(-0.2, None, 0.0) == 0.0
    evidence = 8.0 * 0.5 / (8.0 * 0.5 + ranking.HALF)
    assert relevance(None, 0.5, 8.0) == pytest.approx(evidence)
    assert relevance(0.6, 0.5, 8.0) == pytest.approx((1 - ranking.WORDS) * 0.6 + ranking.WORDS * evidence)
    assert relevance(0.6, 0.0, 8.0) == pytest.approx((1 - ranking.WORDS) * 0.6)


def test_relevance_grows_with_each_part_and_stays_in_0_1() -> None:
    grid = [0.0, 0.1, 0.5, 0.9, 1.0]
    for weight in (0.1, 3.0, 100.0):
        for one in grid:
            by_words = [relevance(one, lexical, weight) for lexical in grid]
            by_meaning = [relevance(similarity, one, weight) for similarity in grid]
            assert by_words == sorted(by_words)
            assert by_meaning == sorted(by_meaning)
            assert all(0.0 <= value <= 1.0 for value in by_words + by_meaning)


def test_a_rare_word_is_more_evidence_than_a_common_one() -> None:
    assert relevance(0.5, 1.0, 6.0) > relevance(0.5, 1.0, 1.0)


def test_weights_are_shares_of_the_score() -> None:
    settings = Settings(relevance_weight=2.0, importance_weight=1.0, recency_weight=1.0)
    assert fused(settings, 0.8, 0.4, 0.2) == pytest.approx((1.6 + 0.4 + 0.2) / 4)
    assert fused(Settings(), 0.8, 0.4, 0.2) == 0.8
    assert fused(Settings(relevance_weight=0.0), 0.8, 0.4, 0.2) == 0.8


def test_recency_halves_each_halflife_and_the_future_is_now() -> None:
    assert recency(0.0, 3600.0) == 1.0
    assert recency(3600.0, 3600.0) == 0.5
    assert recency(7200.0, 3600.0) == 0.25
    assert recency(-50.0, 3600.0) == 1.0
    assert recency(1e12, 1.0) == 0.0


def test_scores_are_in_0_1_in_falling_order_and_do_not_depend_on_the_limit(memory: Memory) -> None:
    rng = np.random.default_rng(5)
    vocabulary = [f"word{i}" for i in range(60)]
    for _ in range(300):
        memory.record(" ".join(rng.choice(vocabulary, 6)), layer="scene", position=(*rng.uniform(0, 50, 2), 0.0))
    memory.flush()
    assert memory.wait_embedded(60.0)
    for query in ("word1 word2 word3", "word7", "word10 word11 nothing else known"):
        many = memory.semantic_search(query, 50).matches
        assert [match.score for match in many] == sorted((match.score for match in many), reverse=True)
        assert all(0.0 <= match.score <= 1.0 for match in many)
        few = memory.semantic_search(query, 5).matches
        assert [(m.id, round(m.score, 9)) for m in few] == [(m.id, round(m.score, 9)) for m in many[:5]]


def test_the_parts_explain_the_score(memory: Memory) -> None:
    for i in range(20):
        memory.record(f"thing number{i} stands here", layer="scene")
    memory.record("the zebra stands here", layer="scene")
    memory.flush()
    assert memory.wait_embedded(20.0)
    match = memory.semantic_search("zebra", 1).matches[0]
    weight = math.log(1.0 + (21 - 1 + 0.5) / 1.5)
    assert match.lexical == 1.0
    assert match.score == pytest.approx(relevance(match.similarity, match.lexical, weight), abs=1e-6)


def test_a_filter_never_lets_a_row_through(memory: Memory, clock: FakeClock) -> None:
    rng = np.random.default_rng(7)
    for i in range(200):
        memory.record(
            f"mug {i % 7}", layer=("a", "b")[i % 2], position=(*rng.uniform(0, 20, 2), 0.0), confidence=i / 200
        )
        clock.advance(1)
    memory.flush()
    assert memory.wait_embedded(20.0)
    since = clock.ns - 150 * SECOND
    window = Filter(layers=("a",), time_after=since, center=(10.0, 10.0), radius=7.0, min_confidence=0.3)
    matches = memory.semantic_search("mug", 1000, window).matches
    assert matches
    for match in matches:
        assert match.layer == "a" and match.last_stamp >= since and match.confidence >= 0.3
        assert match.position is not None and math.dist(match.position[:2], (10.0, 10.0)) <= 7.0
    rows = memory.temporal_query(window, limit=1000).matches
    assert sum(match.repeats for match in matches) == len(rows)


def test_thousands_of_rows_at_one_place_are_counted_exactly(memory: Memory, clock: FakeClock) -> None:
    # Rows of one text at one place: the answer's count and span come from columns, not from SQL rows.
    for _ in range(5000):
        memory.record("chair", layer="scene", position=(1.0, 1.0, 0.0))
        clock.advance(1)
    memory.flush()
    assert memory.wait_embedded(20.0)
    match = memory.semantic_search("chair", 1).matches[0]
    assert match.repeats == 5000
    assert match.last_stamp - match.stamp == 4999 * SECOND
