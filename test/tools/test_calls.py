"""Calls as a language model makes them, for all thirteen tools."""

from __future__ import annotations

from collections.abc import Callable

from support.fakes import FakeClock

from memory_node.graph import Filter
from memory_node.memory import Memory

START = 1_772_611_200
SECOND = 1_000_000_000


def test_every_tool_can_be_called(morning: Memory) -> None:
    calls = {
        "semantic_search": {"query": "red mug", "limit": 3},
        "spatial_query": {"center": [3.0, -1.0], "radius": 1.0},
        "temporal_query": {"last_n_minutes": 60},
        "episode_summary": {"task_name": "kitchen"},
        "get_current_context": {},
        "search_gists": {"query": "oven"},
        "entity_query": {"name": "chair"},
        "locate": {"concept": "red mug"},
        "recall": {"query": "spare key"},
        "body_status": {"layers": ["battery"]},
    }
    facade = {name: getattr(morning, name)(**arguments).text for name, arguments in calls.items()}
    assert {name: morning.call_tool(name, arguments) for name, arguments in calls.items()} == facade
    assert not any(text.startswith("Error") for text in facade.values())


def test_notes_and_episodes_are_written(morning: Memory, clock: FakeClock) -> None:
    begun = morning.call_tool("start_episode", {"name": "fetch the mail", "metadata": {"by": "planner"}})
    episode = morning.episode_summary(task_name="fetch the mail").episodes[0]
    assert begun == f"Episode #{episode.id} has begun; end it with end_episode."
    assert episode.metadata == {"by": "planner"}
    stored = morning.call_tool(
        "store_specific_memory",
        {
            "text": "the letter is for Ben",
            "position": [1, 2, 0],
            "stamp": START + 5,
            "importance": 0.9,
            "metadata": {"a": 1},
        },
    )
    match = morning.semantic_search("letter for Ben", 1).matches[0]
    assert stored == f"Stored as #{match.id}."
    assert (match.position, match.stamp, match.importance, match.metadata) == (
        (1.0, 2.0, 0.0), (START + 5) * SECOND, 0.9, {"a": 1},
    )  # fmt: skip
    clock.advance(10)
    assert morning.call_tool("end_episode", {"status": "abandoned"}).startswith(f"Episode #{episode.id} has ended.")
    assert morning.episode_summary(episode.id).episodes[0].status == "abandoned"


def test_the_end_of_a_long_episode_is_told_in_short(open_memory: Callable[..., Memory], clock: FakeClock) -> None:
    memory = open_memory("long.db", consolidation_max_text=10_000)
    memory.call_tool("start_episode", {"name": "a long round"})
    for i in range(40):
        memory.record(
            f"section {i} of the corridor " + "goes on and on " * 20, layer="scene", position=(0.1 * i, 0.0, 0.0)
        )
        clock.advance(1)
    ended = memory.call_tool("end_episode", {})
    assert 500 < len(ended) < 1100 and ended.endswith("…")


def test_json_text_numbers_as_text_and_null_are_taken(morning: Memory) -> None:
    expected = morning.semantic_search("red mug", 2).text
    assert morning.call_tool("semantic_search", '{"query": "red mug", "limit": 2}') == expected  # type: ignore[arg-type]
    assert morning.call_tool("semantic_search", {"query": "red mug", "limit": "2", "filter": None}) == expected
    assert morning.call_tool("semantic_search", {"query": "red mug", "limit": 2.0, "filter": {}}) == expected
    assert morning.call_tool("get_current_context", "").startswith("Now 2026-03-04")  # type: ignore[arg-type]


def test_numbers_as_times_are_unix_seconds(morning: Memory) -> None:
    window = {"time_after": START + 30, "time_before": START + 90.5}
    expected = morning.temporal_query(Filter(time_after=(START + 30) * SECOND, time_before=(START + 90) * SECOND))
    assert len(expected.matches) == 3
    assert morning.call_tool("temporal_query", {"filter": window}) == expected.text
    assert "1 thing" in morning.call_tool("entity_query", {"name": "chair", "last_seen_after": START})
    assert "No entity" in morning.call_tool("entity_query", {"name": "chair", "last_seen_after": START + 3600})
