"""Fusion, weights and folding, by value."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from support.fakes import SECOND, FakeClock, WordEmbedder

from memory_node.config import Settings
from memory_node.graph import Detection, Filter
from memory_node.memory import Memory
from memory_node.retrieval.scoring import HALF, WORDS, fused, recency, relevance

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
    evidence = 8.0 * 0.5 / (8.0 * 0.5 + HALF)
    assert relevance(None, 0.5, 8.0) == pytest.approx(evidence)
    assert relevance(0.6, 0.5, 8.0) == pytest.approx((1 - WORDS) * 0.6 + WORDS * evidence)
    assert relevance(0.6, 0.0, 8.0) == pytest.approx((1 - WORDS) * 0.6)


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


def test_each_place_of_a_text_is_scored_by_its_own_importance_and_recency(memory: Memory, clock: FakeClock) -> None:
    valued = memory.record("a red mug", layer="scene", position=(0.0, 0.0, 0.0), importance=1.0)
    clock.advance(7200)
    fresh = memory.record("a red mug", layer="scene", position=(9.0, 0.0, 0.0), importance=0.0)
    memory.configure(relevance_weight=0.0, recency_weight=1.0)
    assert [(m.id, m.score) for m in memory.semantic_search("mug").matches] == [(fresh, 1.0), (valued, 0.25)]
    memory.configure(recency_weight=0.0, importance_weight=1.0)
    assert [(m.id, m.score) for m in memory.semantic_search("mug").matches] == [(valued, 1.0), (fresh, 0.0)]
    for i in range(30):
        clock.advance(1)
        memory.record(f"a mug of kind {i}", layer="scene", position=(3.0 * i, 9.0, 0.0), importance=0.5)
    assert memory.semantic_search("mug", 1).matches[0].id == valued  # its newest row is worth least of all


def test_readings_folded_when_they_came_are_counted(tmp_path: Path, clock: FakeClock) -> None:
    with Memory.open(tmp_path / "robot.db", embedder=WordEmbedder(), clock=clock) as memory:
        memory.configure(fold_repeats=True)
        for _ in range(2):
            for _ in range(10):
                memory.record("a red mug", layer="scene", position=(0.0, 0.0, 0.0))
                clock.advance(30)
            clock.advance(1000)
        memory.flush()
        assert [match.repeats for match in memory.temporal_query().matches] == [10, 10]
        assert [match.repeats for match in memory.semantic_search("red mug").matches] == [20]


def consolidated(memory: Memory, clock: FakeClock, texts: int) -> None:
    """Gists of one text each, all else archived."""
    for i in range(texts):
        memory.start_episode(f"episode {i}")
        memory.record(f"zebra giraffe walrus table {i} unlike{i}", layer="scene", position=(20.0 * i, 0.0, 0.0))
        clock.advance(10)
        memory.end_episode()
    memory.flush()
    clock.advance(5 * 3600)
    memory.run_job("gists")
    memory.run_job("archive")


@pytest.mark.parametrize("by_words", [True, False])
def test_gists_that_seem_better_do_not_hide_an_observation(memory: Memory, clock: FakeClock, by_words: bool) -> None:
    consolidated(memory, clock, 24)
    plain = memory.record("zebra giraffe walrus today", layer="scene", position=(300.0, 0.0, 0.0))
    for i in range(40):
        memory.record(f"table {i} stands", layer="scene", position=(3.0 * i, 50.0, 0.0))
    memory.flush()
    assert memory.wait_embedded(20.0)
    query = "zebra giraffe walrus table"
    vector = None if by_words else WordEmbedder().embed([query])[0]
    asked = [memory.semantic_search(query if by_words else "", limit, vector=vector).matches for limit in (1, 3, 30)]
    assert asked[2][0].id == plain and asked[2][1].kind == "gist"
    for some in asked[:2]:
        assert [match.id for match in some] == [match.id for match in asked[2][: len(some)]]


@pytest.mark.parametrize("seed", range(6))
def test_a_smaller_limit_gives_the_first_of_a_larger_one(memory: Memory, clock: FakeClock, seed: int) -> None:
    rng = np.random.default_rng(seed)
    consolidated(memory, clock, 6)
    words = ["zebra", "giraffe", "walrus", "table", "mug", "red", "oven"]
    for _ in range(150):
        clock.advance(float(rng.integers(1, 600)))
        said = " ".join(rng.choice(words, rng.integers(1, 4)))
        place = None if rng.random() < 0.2 else (3.0 * rng.integers(0, 5), 3.0 * rng.integers(0, 3), 0.0)
        memory.record(said, layer=str(rng.choice(["a", "b"])), position=place, importance=float(rng.random()))
    for _ in range(3):
        things = [Detection("table", 0.9, (3.0, 0.0, 0.5)), Detection("mug", 0.9, (4.5, 0.0, 0.5))]
        memory.record_detections(things, pose=(2.0, 0.0, 0.0, 0.0))
        clock.advance(1)
    memory.flush()
    assert memory.wait_embedded(20.0)
    if seed % 2:
        memory.configure(importance_weight=0.4, recency_weight=0.3)
    largest = 20 if seed % 2 else 15
    for query in ("zebra", "red mug", "giraffe walrus table", "oven mug"):
        most = memory.semantic_search(query, largest).matches
        assert len(most) == largest
        assert [match.score for match in most] == sorted((match.score for match in most), reverse=True)
        for limit in range(1, largest):
            assert [m.id for m in memory.semantic_search(query, limit).matches] == [m.id for m in most[:limit]], limit


def test_of_equals_a_text_that_was_said_before_the_others_and_after_them_is_among_the_first(
    tmp_path: Path, clock: FakeClock
) -> None:
    with Memory.open(tmp_path / "words.db", clock=clock) as memory:
        said = ["mug one", "mug two", "mug three", "mug four", "mug five", "mug one"]
        for x, (text, age) in enumerate(zip(said, (0, 60, 60, 60, 60, 120), strict=True)):
            memory.record(text, position=(9.0 * x, 0.0, 0.0), stamp=clock.ns - age * SECOND)
        # The newest was recorded last, though it tells of the earliest time.
        first = [match.id for match in memory.semantic_search("mug").matches]
        assert first == [6, 5, 4, 3, 2, 1]
        for limit in range(1, 6):
            assert [match.id for match in memory.semantic_search("mug", limit).matches] == first[:limit]


def test_many_ways_to_write_one_thing_do_not_hide_the_others(memory: Memory) -> None:
    ways = ["a red mug" + "!" * i for i in range(60)]
    for way in ways:
        memory.record(way, layer="scene", position=(0.0, 0.0, 0.0))
    memory.record("a mug of red clay", layer="scene", position=(5.0, 0.0, 0.0))
    memory.flush()
    assert memory.wait_embedded(20.0)
    for asked in ({"query": "a red mug"}, {"vector": WordEmbedder().embed(["a red mug"])[0]}):
        matches = memory.semantic_search(**asked, filter=Filter(kinds=("observation",))).matches  # type: ignore[arg-type]
        assert [match.repeats for match in matches] == [60, 1]


# things and what shows them


def kitchen(memory: Memory, clock: FakeClock) -> None:
    for _ in range(6):
        chairs = [Detection("chair", 0.9, (2.0, 1.0, 0.4)), Detection("chair", 0.9, (2.0, -1.0, 0.4))]
        memory.record_detections(chairs, pose=(0.0, 0.0, 0.0, 0.0))
        clock.advance(5)
    memory.record("chair", layer="notes", position=(2.0, 1.0, 0.4))
    memory.flush()
    assert memory.wait_embedded(20.0)


def test_an_entity_is_told_instead_of_the_sightings_that_say_its_name(memory: Memory, clock: FakeClock) -> None:
    kitchen(memory, clock)
    found = memory.semantic_search("chair").matches
    assert sorted((match.kind, match.layer, match.repeats) for match in found) == [
        ("entity", "", 6), ("entity", "", 6), ("observation", "notes", 1),
    ]  # fmt: skip
    things = {entity.id for entity in memory.entity_query("chair").entities}
    assert {match.id for match in found if match.kind == "entity"} == things
    sightings = memory.semantic_search("chair", filter=Filter(kinds=("observation",))).matches
    assert sorted((match.layer, match.repeats) for match in sightings) == [
        ("detections", 6), ("detections", 6), ("notes", 1),
    ]  # fmt: skip


def test_within_a_window_an_entity_counts_its_sightings_there(memory: Memory, clock: FakeClock) -> None:
    kitchen(memory, clock)
    found = memory.semantic_search("chair", filter=Filter(time_after="-12s")).matches
    assert [(match.repeats, match.stamp, match.last_stamp) for match in found if match.kind == "entity"] == [
        (2, clock.ns - 10 * SECOND, clock.ns - 5 * SECOND)
    ] * 2


def test_where_a_thing_was_before_stays_an_answer(memory: Memory, clock: FakeClock) -> None:
    for x in (2.0, 9.0):
        for _ in range(6):
            memory.record_detections([Detection("red mug", 0.9, (x, 0.0, 0.5))], pose=(x - 2.0, 0.0, 0.0, 0.0))
            clock.advance(5)
        for _ in range(6):
            memory.record_detections([], pose=(0.0, 0.0, 0.0, 0.0), layer="detections")
            clock.advance(5)
    memory.flush()
    assert memory.wait_embedded(20.0)
    found = memory.semantic_search("red mug").matches
    assert sorted((match.kind, round(match.position[0])) for match in found if match.position) == [
        ("entity", 9), ("observation", 2),
    ]  # fmt: skip


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
