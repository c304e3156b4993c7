"""Anything may be asked; the answer is a sentence that names the argument, or an empty one with success (F11, F40)."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from typing import Any

import pytest

from memory_node.errors import InvalidArgument
from memory_node.graph import Filter
from memory_node.memory import Memory

Ask = Callable[[Memory], Any]

STRANGE = [
    "kitchen-table", "mug:", '"mug', "AND", "NOT mug", "OR OR", "don't", "a.b", "*", "(mug", "mug)", "^mug", "mug*",
    "NEAR(a b, 3)", "body: mug", "{body} : mug", "+mug", "-mug", "%", "_", "\\", "'; DROP TABLE node; --", "''", '""',
    "a\x00b", "\x00", "\ud800", "\u202e", "e\u0301", "\t\n", "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~",
    "红色的杯子", "красная кружка", "כוס אדומה", "赤いマグ ☕", "🤖🤖",
]  # fmt: skip

QUERIES: dict[str, Callable[[Memory, str], Any]] = {
    "semantic_search": lambda memory, query: memory.semantic_search(query),
    "search_gists": lambda memory, query: memory.search_gists(query),
    "entity_query": lambda memory, query: memory.entity_query(name=query),
    "episode_summary": lambda memory, query: memory.episode_summary(task_name=query),
    "locate": lambda memory, query: memory.locate(query),
    "recall": lambda memory, query: memory.recall(query),
}


@pytest.mark.parametrize("name", QUERIES)
def test_f40_no_text_of_a_query_is_an_error(morning: Memory, name: str) -> None:
    for query in STRANGE:
        try:
            result = QUERIES[name](morning, query)
        except InvalidArgument as error:
            # A text without a letter or digit is blank to the two tools that need one.
            assert name in ("locate", "recall")
            assert str(error).endswith("must not be blank")
            assert not any(c.isalnum() for c in query.replace("\x00", ""))
            assert error.argument == {"locate": "concept", "recall": "query"}[name]
            continue
        assert result.success
        assert len(result.text) < 2000


def test_f40_punctuation_around_a_word_does_not_hide_it(open_memory: Callable[..., Memory]) -> None:
    memory = open_memory("words.db")
    mug = memory.record("a red mug on the table", layer="scene")
    for query in ("mug:", '"mug', "NOT mug", "(mug", "mug*", "kitchen-mug", "MUG?", "where is the mug?"):
        assert [match.id for match in memory.semantic_search(query).matches] == [mug], query


@pytest.mark.parametrize("query", ["", "   ", "\n\t"])
def test_f40_a_blank_query_has_an_empty_answer(morning: Memory, query: str) -> None:
    result = morning.semantic_search(query)
    assert (result.success, result.message, result.matches) == (True, "", ())
    for name in ("locate", "recall"):
        with pytest.raises(InvalidArgument, match="must not be blank"):
            QUERIES[name](morning, query)
    assert morning.search_gists(query).success
    assert morning.entity_query(name=query).total == 2


@pytest.mark.parametrize("name", QUERIES)
def test_f11_a_query_of_a_megabyte_is_answered(morning: Memory, name: str) -> None:
    result = QUERIES[name](morning, "red mug " * 131_072)
    assert result.success
    assert len(result.text) < 2000


LIMITED: dict[str, Callable[[Memory, Any], Any]] = {
    "semantic_search": lambda memory, limit: memory.semantic_search("mug", limit),
    "spatial_query": lambda memory, limit: memory.spatial_query((0.0, 0.0), 9.0, limit),
    "temporal_query": lambda memory, limit: memory.temporal_query(limit=limit),
    "search_gists": lambda memory, limit: memory.search_gists("mug", limit),
    "entity_query": lambda memory, limit: memory.entity_query(limit=limit),
    "recall": lambda memory, limit: memory.recall("mug", limit),
}


@pytest.mark.parametrize("name", LIMITED)
@pytest.mark.parametrize("limit", [-1, -(2**63), 1.5, True, "3", None])
def test_f11_a_wrong_limit_is_named(morning: Memory, name: str, limit: object) -> None:
    with pytest.raises(InvalidArgument, match="^limit: got .*allowed is a whole number from 0"):
        LIMITED[name](morning, limit)


@pytest.mark.parametrize("name", LIMITED)
@pytest.mark.parametrize("limit", [1001, 2**31, 2**80, sys.maxsize])
def test_f11_a_huge_limit_is_a_thousand(morning: Memory, name: str, limit: int) -> None:
    assert LIMITED[name](morning, limit).success


def test_more_than_a_thousand_rows_are_never_returned(open_memory: Callable[..., Memory]) -> None:
    memory = open_memory("many.db", flush_batch_size=2000, working_memory_size=2000)
    for i in range(1100):
        memory.record(f"thing {i}", layer="scene", position=(i * 0.01, 0.0, 0.0))
    assert len(memory.temporal_query(limit=5000).matches) == 1000
    assert len(memory.spatial_query((0.0, 0.0), 100.0, limit=5000).matches) == 1000
    assert len(memory.semantic_search("thing", limit=5000).matches) == 1000


WRONG: list[tuple[str, Ask]] = [
    ("query", lambda m: m.semantic_search(7)),
    ("query", lambda m: m.recall(None)),
    ("concept", lambda m: m.locate(b"mug")),
    ("task_name", lambda m: m.episode_summary(task_name=3)),
    ("center", lambda m: m.spatial_query((math.nan, 0.0), 1.0)),
    ("center", lambda m: m.spatial_query((math.inf, 0.0, 0.0), 1.0)),
    ("center", lambda m: m.spatial_query((1.0,), 1.0)),
    ("center", lambda m: m.spatial_query((1.0, 2.0, 3.0, 4.0), 1.0)),
    ("center", lambda m: m.spatial_query("here", 1.0)),
    ("center", lambda m: m.spatial_query(None, 1.0)),
    ("radius", lambda m: m.spatial_query((0.0, 0.0), 0.0)),
    ("radius", lambda m: m.spatial_query((0.0, 0.0), -1.0)),
    ("radius", lambda m: m.spatial_query((0.0, 0.0), math.nan)),
    ("radius", lambda m: m.spatial_query((0.0, 0.0), math.inf)),
    ("radius", lambda m: m.spatial_query((0.0, 0.0), "near")),
    ("radius", lambda m: m.get_current_context(radius=-1.0)),
    ("recent_minutes", lambda m: m.get_current_context(recent_minutes=math.nan)),
    ("order", lambda m: m.temporal_query(order="upwards")),
    ("last_n_minutes", lambda m: m.temporal_query(last_n_minutes=-1.0)),
    ("last_n_minutes", lambda m: m.temporal_query(last_n_minutes=math.inf)),
    ("last_n_minutes", lambda m: m.temporal_query(last_n_minutes="5")),
    ("episode_id", lambda m: m.episode_summary(episode_id=-1)),
    ("episode_id", lambda m: m.episode_summary(episode_id=999)),
    ("episode_id", lambda m: m.episode_summary(episode_id=2**70)),
    ("last_n", lambda m: m.episode_summary(last_n=-2)),
    ("layers", lambda m: m.body_status(["no such"])),
    ("layers", lambda m: m.body_status(["scene"])),
    ("layers", lambda m: m.body_status("battery")),
    ("layers", lambda m: m.body_status(None)),
    ("layers", lambda m: m.body_status(5)),
    ("layers", lambda m: m.body_status([[1]])),
    ("layers", lambda m: m.body_status("x" * 1_000_000)),
    ("layers", lambda m: m.body_status(["x" * 1_000_000])),
    ("vector", lambda m: m.semantic_search(vector=[math.nan] * 64)),
    ("vector", lambda m: m.semantic_search(vector=[0.0] * 64)),
    ("vector", lambda m: m.semantic_search(vector=[1.0] * 3)),
    ("vector", lambda m: m.semantic_search(vector=[[1.0] * 64])),
    ("vector", lambda m: m.semantic_search(vector="up")),
    ("vector", lambda m: m.semantic_search(vector=[])),
    ("last_seen_after", lambda m: m.entity_query(last_seen_after="lately")),
    ("last_seen_after", lambda m: m.entity_query(last_seen_after="1e999999999")),
    ("center", lambda m: m.spatial_query((10**400, 0.0), 1.0)),
    ("radius", lambda m: m.spatial_query((0.0, 0.0), 10**400)),
    ("radius", lambda m: m.get_current_context(radius=10**400)),
    ("recent_minutes", lambda m: m.get_current_context(recent_minutes=10**5000)),
    ("limit", lambda m: m.semantic_search("mug", -(10**5000))),
    ("vector", lambda m: m.semantic_search(vector=[10**400] * 64)),
    ("id", lambda m: m.end_episode(10**30)),
    ("position", lambda m: m.store_specific_memory("a mug", position=(10**400, 0, 0))),
    ("confidence", lambda m: m.store_specific_memory("a mug", confidence=10**5000)),
    ("stamp", lambda m: m.store_specific_memory("a mug", stamp=10**5000)),
]


@pytest.mark.parametrize(("argument", "ask"), WRONG, ids=[f"{i}-{name}" for i, (name, _) in enumerate(WRONG)])
def test_f11_a_wrong_argument_is_named(morning: Memory, argument: str, ask: Ask) -> None:
    with pytest.raises(InvalidArgument) as caught:
        ask(morning)
    assert caught.value.argument == argument
    assert str(caught.value).startswith(f"{argument}: ")
    assert len(str(caught.value)) < 1000


FILTERS: list[tuple[str, Filter]] = [
    ("filter.layers", Filter(layers=("no such",))),
    ("filter.kinds", Filter(kinds=("thing",))),
    ("filter.time_after", Filter(time_after="soon")),
    ("filter.time_before", Filter(time_before="later")),
    ("filter.time_after", Filter(time_after="-1m", time_before="-2m")),
    ("filter.center", Filter(center=(math.nan, 0.0), radius=1.0)),
    ("filter.radius", Filter(center=(0.0, 0.0), radius=-1.0)),
    ("filter.radius", Filter(center=(0.0, 0.0))),
    ("filter.episode_id", Filter(episode_id=12345)),
    ("filter.min_confidence", Filter(min_confidence=1.5)),
    ("filter.min_confidence", Filter(min_confidence=10**5000)),
    ("filter.episode_id", Filter(episode_id=10**30)),
    ("filter.episode_id", Filter(episode_id=-1)),
    ("filter.center", Filter(center=(10**400, 0.0), radius=1.0)),
    ("filter.center", Filter(center="here", radius=1.0)),  # type: ignore[arg-type]
    ("filter.radius", Filter(center=(0.0, 0.0), radius=10**400)),
    ("filter.time_after", Filter(time_after="1e999999999")),
    ("filter.time_before", Filter(time_before=10**5000)),
    ("filter.layers", Filter(layers=("x" * 1_000_000,))),
    ("filter.map_id", Filter(map_id="attic")),
    ("filter.frame", Filter(center=(0.0, 0.0), radius=1.0, frame="odom")),
    ("filter.kinds", Filter(kinds=None)),  # type: ignore[arg-type]
    ("filter.kinds", Filter(kinds=5)),  # type: ignore[arg-type]
    ("filter.kinds", Filter(kinds=([1],))),  # type: ignore[arg-type]
    ("filter.kinds", Filter(kinds="observation")),  # type: ignore[arg-type]
    ("filter.layers", Filter(layers=5)),  # type: ignore[arg-type]
    ("filter.layers", Filter(layers=None)),  # type: ignore[arg-type]
    ("filter.layers", Filter(layers=([1],))),  # type: ignore[arg-type]
    ("filter.layers", Filter(layers="x" * 1_000_000)),  # type: ignore[arg-type]
    ("filter.radius", Filter(center=(0.0, 0.0), radius="x")),  # type: ignore[arg-type]
    ("filter.radius", Filter(center=(0.0, 0.0), radius=[])),  # type: ignore[arg-type]
    ("filter.min_confidence", Filter(min_confidence=None)),  # type: ignore[arg-type]
    ("filter.min_confidence", Filter(min_confidence="x")),  # type: ignore[arg-type]
    ("filter.map_id", Filter(map_id=[])),  # type: ignore[arg-type]
    ("filter.map_id", Filter(map_id={})),  # type: ignore[arg-type]
    ("filter", 5),  # type: ignore[list-item]
    ("filter", {"layers": ["scene"]}),  # type: ignore[list-item]
    ("filter", "scene"),  # type: ignore[list-item]
]
FILTERED: dict[str, Callable[[Memory, Filter], Any]] = {
    "semantic_search": lambda memory, filter: memory.semantic_search("mug", filter=filter),
    "spatial_query": lambda memory, filter: memory.spatial_query((0.0, 0.0), 9.0, filter=filter),
    "temporal_query": lambda memory, filter: memory.temporal_query(filter),
    "search_gists": lambda memory, filter: memory.search_gists("mug", filter=filter),
    "entity_query": lambda memory, filter: memory.entity_query(filter=filter),
    "locate": lambda memory, filter: memory.locate("mug", filter),
    "recall": lambda memory, filter: memory.recall("mug", filter=filter),
}


@pytest.mark.parametrize("name", FILTERED)
def test_f11_a_wrong_filter_names_its_field(morning: Memory, name: str) -> None:
    for argument, filter in FILTERS:
        with pytest.raises(InvalidArgument) as caught:
            FILTERED[name](morning, filter)
        assert caught.value.argument == argument
        assert len(str(caught.value)) < 1000


def test_a_zone_that_does_not_exist_is_named(open_memory: Callable[..., Memory]) -> None:
    with pytest.raises(InvalidArgument) as caught:
        open_memory("zone.db", time_zone="Mars/Base").temporal_query(Filter(time_after="today"))
    assert caught.value.argument == "time_zone"


def test_an_empty_memory_answers_every_tool(memory: Memory) -> None:
    answers = [
        memory.semantic_search("mug"),
        memory.spatial_query((0, 0), 1.0),
        memory.temporal_query(),
        memory.episode_summary(),
        memory.get_current_context(),
        memory.search_gists("mug"),
        memory.search_gists(),
        memory.entity_query(),
        memory.locate("mug"),
        memory.recall("mug"),
        memory.body_status(),
    ]
    for answer in answers:
        assert answer.success
        assert answer.text


CALLS = [
    ("no_such_tool", {}, "name: no tool 'no_such_tool'; there are semantic_search"),
    ("semantic_search", {}, "query: is missing"),
    ("semantic_search", {"query": 5}, "query: got 5, allowed is string"),
    ("semantic_search", {"query": "mug", "k": 3}, "k: no such argument, allowed are query, limit, filter"),
    ("semantic_search", {"query": "mug", "limit": -3}, "limit: got -3"),
    ("semantic_search", {"query": "mug", "limit": "many"}, "limit: got 'many', allowed is integer"),
    ("semantic_search", {"query": "mug", "limit": True}, "limit: got True"),
    ("semantic_search", {"query": "mug", "filter": {"layer": "x"}}, "filter.layer: no such argument"),
    ("semantic_search", {"query": "mug", "filter": {"layers": "x"}}, "filter.layers: got 'x', allowed is array"),
    ("semantic_search", {"query": "mug", "filter": {"layers": ["x"]}}, "filter.layers: no layer"),
    ("semantic_search", {"query": "mug", "filter": {"kinds": ["thing"]}}, "filter.kinds: got 'thing', allowed is"),
    ("semantic_search", {"query": "mug", "filter": {"time_after": "soon"}}, "filter.time_after: can't read 'soon'"),
    ("spatial_query", {"center": [1.0, 2.0]}, "radius: is missing"),
    ("spatial_query", {"center": [0, 0], "radius": 1, "filter": {"center": [0, 0]}}, "filter.radius: is needed with"),
    ("store_specific_memory", {"text": "x", "position": [1, 2]}, "position: got (1, 2)"),
    ("spatial_query", {"center": ["a", 2.0], "radius": 1.0}, "center: got 'a', allowed is number"),
    ("spatial_query", {"center": [1.0], "radius": 1.0}, "center: got"),
    ("temporal_query", {"order": "up"}, "order: got 'up', allowed is one of newest, oldest"),
    ("episode_summary", {"episode_id": 999}, "episode_id: there is no episode 999"),
    ("body_status", {"layers": ["wings"]}, "layers: 'wings': no such layer; internal layers are battery"),
    ("end_episode", {}, ""),
    ("end_episode", {"id": 999}, ""),
    ("start_episode", {"name": " "}, "name: "),
    ("store_specific_memory", {"text": " "}, "text: "),
    ("store_specific_memory", {"text": "x", "confidence": 2}, "confidence: "),
    ("store_specific_memory", {"text": "x", "stamp": "later"}, "stamp: "),
    ("semantic_search", "{broken", "arguments: no valid JSON"),
    ("semantic_search", "[1]", "arguments: must be a JSON object"),
    ("semantic_search", "[" * 100_000, "arguments: no valid JSON"),
    ("semantic_search", '{"query": ' + "9" * 5000 + "}", "arguments: no valid JSON"),
    ("temporal_query", {"filter": {"time_after": 10**5000}}, "filter.time_after: got a int too long"),
    ("temporal_query", {"filter": {"episode_id": 10**30}}, "filter.episode_id: got 1000"),
    ("temporal_query", {"last_n_minutes": 10**400}, "last_n_minutes: got 1000"),
    ("spatial_query", {"center": [10**400, 0], "radius": 1}, "center: got 1000"),
    ("store_specific_memory", {"text": "x", "metadata": {"a": 10**5000}}, "metadata: is not a JSON object"),
    ("end_episode", {"id": 10**30}, "id: got 1000"),
    ("semantic_search", '"mug"', "arguments: must be a JSON object"),
]


@pytest.mark.parametrize(("name", "arguments", "says"), CALLS)
def test_f11_a_wrong_call_comes_back_as_a_text_to_act_on(morning: Memory, name: str, arguments: Any, says: str) -> None:
    answer = morning.call_tool(name, arguments)
    assert answer.startswith(f"Error: {says}")
    assert "\n" not in answer


def test_f11_what_nobody_thought_of_comes_back_as_a_text_too(morning: Memory, caplog: pytest.LogCaptureFixture) -> None:
    class Strange(dict[str, object]):
        def items(self) -> Any:
            raise LookupError("no items")

    answer = morning.call_tool("semantic_search", {"query": "mug", "filter": Strange()})
    assert answer == "Error: internal error, see the log: LookupError"
    assert "no items" in caplog.text


def test_f11_nan_in_json_is_named(morning: Memory) -> None:
    arguments = json.dumps({"center": [math.nan, 0.0], "radius": 1.0})
    assert morning.call_tool("spatial_query", arguments).startswith("Error: center: got")  # type: ignore[arg-type]


def test_an_unknown_layer_among_many_of_long_names_is_refused_in_a_bounded_text(memory: Memory) -> None:
    for i in range(60):
        memory.record("x", layer=f"{'l' * 150}{i}")
        memory.record_body_state("x", f"{'b' * 150}{i}", 1.0)
    memory.flush()
    unknown = {"temporal_query": {"filter": {"layers": ["y" * 500_000]}}, "body_status": {"layers": ["y" * 500_000]}}
    for name, arguments in unknown.items():
        answer = memory.call_tool(name, arguments)
        assert answer.startswith("Error: ") and len(answer) < 1200
    assert "and 100 more" in memory.call_tool("temporal_query", {"filter": {"layers": ["y"]}})
    assert "and 40 more" in memory.call_tool("body_status", {"layers": ["y"]})
