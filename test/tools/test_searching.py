"""semantic_search and search_gists: right rows, in the right order, told once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from support.fakes import SECOND, FakeClock, WordEmbedder

from memory_node.errors import EmbedderError
from memory_node.graph import Detection, Filter, Kind
from memory_node.memory import Memory

OpenMemory = Callable[..., Memory]


def filled(memory: Memory) -> Memory:
    memory.flush()
    assert memory.wait_embedded(20.0)
    return memory


def test_a_match_has_the_row_and_the_parts_of_its_score(morning: Memory) -> None:
    match = morning.semantic_search("where is the spare key?", 1).matches[0]
    assert (match.kind, match.layer, match.importance, match.tier) == ("observation", "talk", 0.9, "long_term")
    assert match.text.startswith("Anna said")
    assert match.similarity is not None and 0.0 < match.similarity <= 1.0
    assert match.lexical == 1.0
    assert match.recency == pytest.approx(0.5 ** (180 / 3600))
    assert 0.0 < match.score <= 1.0


def test_repeats_at_one_place_are_one_answer_with_count_and_span(memory: Memory, clock: FakeClock) -> None:
    start = clock.ns
    for i in range(40):
        memory.record("a red chair", layer="scene", position=(1.0 + 0.001 * i, 2.0, 0.0))
        clock.advance(10)
    memory.record("A red chair.", layer="scene", position=(1.1, 2.0, 0.0))
    memory.record("a red chair", layer="scene", position=(9.0, 2.0, 0.0))
    memory.record("a red chair", layer="notes")
    memory.record("a red chair", layer="notes")
    matches = filled(memory).semantic_search("red chair").matches
    assert sorted((match.layer, match.position is not None, match.repeats) for match in matches) == [
        ("notes", False, 2), ("scene", True, 1), ("scene", True, 41),
    ]  # fmt: skip
    folded = next(match for match in matches if match.repeats == 41)
    assert (folded.stamp, folded.last_stamp) == (start, clock.ns)
    assert "41 times" in memory.semantic_search("red chair").text


def test_what_a_robot_sees_of_a_room_from_two_metres_is_one_answer(memory: Memory) -> None:
    for x in (0.0, 0.7, 1.4):
        memory.record("Ben is reading", layer="scene", position=(x, 0.0, 0.0), position_source="observer")
    memory.record("Ben is reading", layer="scene", position=(9.0, 0.0, 0.0), position_source="observer")
    assert sorted(match.repeats for match in filled(memory).semantic_search("Ben is reading").matches) == [1, 3]


def test_things_of_one_name_at_several_places_are_several_answers(memory: Memory) -> None:
    for x in range(8):
        memory.record("chair", layer="detections", position=(float(x), 0.0, 0.0))
    matches = filled(memory).semantic_search("chair").matches
    assert sorted(match.position[0] for match in matches if match.position) == [float(x) for x in range(8)]
    inside = memory.semantic_search("chair", filter=Filter(center=(0.0, 0.0), radius=2.5)).matches
    assert sorted(match.position[0] for match in inside if match.position) == [0.0, 1.0, 2.0]


def test_counts_and_spans_are_those_of_the_window(memory: Memory, clock: FakeClock) -> None:
    for _ in range(30):
        memory.record("the door is open", layer="scene")
        clock.advance(60)
    match = filled(memory).semantic_search("door", filter=Filter(time_after="-10m")).matches[0]
    assert match.repeats == 10
    assert match.stamp == clock.ns - 600 * SECOND


def test_observations_gists_and_entities_are_one_list_and_kinds_can_be_chosen(morning: Memory) -> None:
    everything = {match.kind for match in morning.semantic_search("kitchen oven", 20).matches}
    assert everything == {"observation", "gist", "entity"}
    gists = morning.semantic_search("kitchen oven", filter=Filter(kinds=("gist",))).matches
    assert {match.kind for match in gists} == {"gist"}
    things = morning.semantic_search("red mug", filter=Filter(kinds=("entity",))).matches
    assert [match.text for match in things][0] == "red mug"
    assert things[0].layer == ""


def test_a_fact_amid_small_talk_is_found_by_its_sentence(memory: Memory) -> None:
    talk = "Good morning everybody, what a rainy day. {} I wonder what we shall cook tonight, maybe soup again."
    memory.record(talk.format("The passport lies in the upper drawer."), layer="talk")
    for i in range(80):
        memory.record(talk.format(f"The train number {i} was late as always."), layer="talk")
    best = filled(memory).semantic_search("passport upper drawer", 1).matches[0]
    assert "passport" in best.text
    assert best.similarity is not None and best.similarity > 0.55


def test_a_long_text_is_found_by_its_end_and_returned_once(memory: Memory) -> None:
    filler = " ".join(f"word{i}" for i in range(1500))
    memory.record(f"{filler} the zebra sleeps in the cellar", layer="notes")
    memory.record("the horse sleeps outside", layer="notes")
    matches = (
        filled(memory)
        .semantic_search("zebra", vector=WordEmbedder().embed(["the zebra sleeps in the cellar"])[0])
        .matches
    )
    assert len(matches) == 2
    assert matches[0].text.endswith("cellar")
    assert matches[0].similarity is not None and matches[0].similarity > 0.15


def test_without_an_embedder_words_answer_and_the_message_says_so(open_memory: OpenMemory) -> None:
    memory = open_memory("words.db")
    mug = memory.record("the red mugs are in the sink", layer="scene")
    memory.record("a blue table", layer="scene")
    result = memory.semantic_search("where is my mug?")
    assert [match.id for match in result.matches] == [mug]
    assert result.message == "by words only"
    assert result.text.endswith("(by words only)")
    assert result.matches[0].similarity is None
    assert result.matches[0].score > 0.0
    assert memory.search_gists("mug").message == "by words only"
    assert memory.recall("mug").message == "by words only"


def test_while_the_embedder_is_behind_the_message_says_so(open_memory: OpenMemory) -> None:
    class Behind(WordEmbedder):
        """Answers questions, and embeds texts until it is told to stop."""

        stopped = False

        def embed(self, texts: list[str]) -> np.ndarray:
            if self.stopped and texts not in (["mug"], ["furniture"]):
                raise EmbedderError("model words: overloaded")
            return super().embed(texts)

    embedder = Behind()
    memory = open_memory("behind.db", embedder)
    memory.record("a chair", layer="early")
    assert filled(memory).semantic_search("mug").message == ""
    assert memory.locate("mug").message == "" and memory.entity_query("mug").message == ""
    embedder.stopped = True
    memory.record("a mug", layer="late")
    memory.record_detections([Detection("mug", 0.9, (1.0, 0.0, 0.0))], pose=(0.0, 0.0, 0.0, 0.0))
    memory.flush()
    assert memory.semantic_search("mug").message == "partly by words only"
    late = memory.semantic_search("mug", filter=Filter(layers=("late",)))
    assert [match.text for match in late.matches] == ["a mug"] and late.matches[0].similarity is None
    assert (late.message, late.text[-15:]) == ("by words only", "(by words only)")
    assert memory.semantic_search("furniture", filter=Filter(layers=("late",))).message == "partly by words only"
    assert memory.locate("mug").message == "partly by words only"
    things = memory.entity_query("mug")
    assert (things.total, things.message) == (1, "by words only") and things.text.endswith("(by words only)")
    assert memory.entity_query().message == ""


def test_entity_query_without_an_embedder_says_so(open_memory: OpenMemory) -> None:
    memory = open_memory("words.db")
    memory.record_detections([Detection("mug", 0.9, (1.0, 0.0, 0.0))], pose=(0.0, 0.0, 0.0, 0.0))
    assert memory.entity_query("mug").message == "by words only"
    assert memory.entity_query("tree").text == 'No entity named "tree" is known. (by words only)'
    assert memory.entity_query().message == ""


def test_without_an_embedder_the_newest_of_equals_comes_first(open_memory: OpenMemory, clock: FakeClock) -> None:
    memory = open_memory("words.db")
    ids = []
    for x in range(4):
        ids.append(memory.record("mug", layer="scene", position=(float(x), 0.0, 0.0)))
        clock.advance(1)
    assert [match.id for match in memory.semantic_search("mug").matches] == ids[::-1]


def test_an_embedder_that_fails_leaves_the_words(open_memory: OpenMemory) -> None:
    class Broken(WordEmbedder):
        def embed(self, texts: list[str]) -> np.ndarray:
            raise EmbedderError("model words: still loading")

    memory = open_memory("broken.db", Broken())
    mug = memory.record("a red mug", layer="scene")
    result = memory.semantic_search("mug")
    assert ([match.id for match in result.matches], result.message) == ([mug], "by words only")


def test_a_vector_alone_searches_by_meaning(open_memory: OpenMemory) -> None:
    memory = open_memory("given.db")
    vectors = np.eye(4, dtype=np.float32)
    ids = [memory.record(f"row {i}", layer="scene", vector=vectors[i]) for i in range(4)]
    result = memory.semantic_search(query="", vector=[0.0, 0.1, 5.0, 0.0])
    assert [match.id for match in result.matches][:2] == [ids[2], ids[1]]
    assert result.message == ""
    assert result.matches[0].similarity == pytest.approx(0.9998, abs=1e-3)
    assert result.matches[0].lexical is None


def test_words_and_a_vector_count_together(open_memory: OpenMemory) -> None:
    memory = open_memory("given.db")
    mug = memory.record("a mug", layer="scene", vector=[0.8, 0.6])
    memory.record("a cup", layer="scene", vector=[0.81, 0.5864])
    assert memory.semantic_search("mug", vector=[1.0, 0.0]).matches[0].id == mug
    assert memory.semantic_search("", vector=[1.0, 0.0]).matches[0].id != mug


def test_a_plan_is_given_when_asked(morning: Memory) -> None:
    assert morning.semantic_search("mug").plan is None
    plan = morning.semantic_search("mug", filter=Filter(layers=("scene",)), explain=True).plan
    assert plan is not None
    assert {"candidates", "path", "stages_ms"} <= set(plan)


def test_weights_bring_importance_and_recency_in(open_memory: OpenMemory, clock: FakeClock) -> None:
    memory = open_memory("weights.db")
    important = memory.record("the mug fell down", layer="notes", importance=1.0)
    clock.advance(7200)
    fresh = memory.record("the mug fell over", layer="notes", importance=0.0)
    memory.configure(relevance_weight=0.0, importance_weight=1.0, recency_weight=0.0)
    assert [(m.id, m.score) for m in memory.semantic_search("mug").matches] == [(important, 1.0), (fresh, 0.0)]
    memory.configure(importance_weight=0.0, recency_weight=1.0)
    assert [m.id for m in memory.semantic_search("mug").matches] == [fresh, important]
    assert [m.score for m in memory.semantic_search("mug").matches] == [1.0, 0.25]


def test_use_is_noted_off_the_query_path(morning: Memory) -> None:
    match = morning.semantic_search("spare key", 1).matches[0]
    assert match.importance == 0.9
    mug = morning.semantic_search("red mug", 1).matches[0]
    assert mug.importance == 0.5
    morning.run_job("importance")
    assert morning.semantic_search("red mug", 1).matches[0].importance == pytest.approx(0.53)


def test_body_readings_are_never_found_by_perception_tools(morning: Memory) -> None:
    assert morning.semantic_search("battery", 100, filter=Filter(any_map=True)).matches[0].layer != "battery"
    for matches in (
        morning.semantic_search("battery 80%", 1000).matches,
        morning.temporal_query(limit=1000).matches,
        morning.spatial_query((0.0, 0.0), 1000.0, 1000).matches,
        morning.recall("battery", 1000).matches,
    ):
        assert "battery" not in {match.layer for match in matches}


def test_gists_are_ranked_or_the_newest(morning: Memory) -> None:
    ranked = morning.search_gists("spare key", 2).gists
    assert "spare key" in ranked[0].text
    assert ranked[0].score > ranked[1].score >= 0.0
    newest = morning.search_gists("").gists
    assert [gist.end for gist in newest] == sorted((gist.end for gist in newest), reverse=True)
    only = morning.search_gists("", filter=Filter(layers=("talk",))).gists
    assert only and all("talk" in gist.layers for gist in only)


def test_gists_of_a_layer_are_found_behind_many_of_others(memory: Memory, clock: FakeClock) -> None:
    for i in range(60):
        memory.start_episode(f"round {i}")
        memory.record(f"garden round {i}", layer="talk" if i < 2 else "scene")
        clock.advance(60)
        memory.end_episode()
    filled(memory)
    for query in ("", "garden round"):
        found = memory.search_gists(query, 2, Filter(layers=("talk",)))
        assert len(found.gists) == 2 and found.text.endswith("That is all.")
        more = memory.search_gists(query, 1, Filter(layers=("talk",))).text
        assert ("There are more" if query else "There is 1 more") in more


def test_more_is_said_only_where_there_is_more(memory: Memory) -> None:
    for i in range(6):
        memory.record(f"mug {i}", layer="scene", position=(float(i), 0.0, 0.0))
    filled(memory)
    assert memory.semantic_search("mug", 6).text.endswith("That is all.")
    assert memory.semantic_search("mug", 5).text.endswith("There are more: raise limit, or narrow the filter.")


def test_a_limit_is_the_number_of_answers(memory: Memory) -> None:
    for i in range(30):
        memory.record(f"mug {i}", layer="scene", position=(float(i), 0.0, 0.0))
        memory.record_detections([Detection("bowl", 0.9, position=(float(i), 5.0, 0.0))], pose=(0.0, 0.0, 0.0, 0.0))
    filled(memory)
    for limit in (1, 3, 10, 25):
        assert len(memory.semantic_search("mug", limit).matches) == limit
        assert len(memory.semantic_search("bowl", limit, Filter(kinds=(Kind.OBSERVATION.label,))).matches) == limit
    assert len(memory.semantic_search("mug").matches) == 10
