"""The texts for a language model: golden files, bounds on their length, and what they must hold."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
from golden_texts import assert_golden
from support.fakes import FakeClock, WordEmbedder

from memory_node.errors import InvalidArgument
from memory_node.graph import Detection, Entity, Filter, Place, Pose, PositionSource
from memory_node.memory import Memory
from memory_node.tools import catalogue
from memory_node.tools.wording import ALL, Wording, bearing, counted, duration, left_over, listed, point, shortened

SECOND = 1_000_000_000
ASKED: dict[str, Callable[[Memory], str]] = {
    "semantic_search": lambda m: m.semantic_search("red mug", 4).text,
    "spatial_query": lambda m: m.spatial_query((3.0, -1.0), 1.0, 3).text,
    "temporal_query": lambda m: m.temporal_query(Filter(layers=("scene", "talk")), order="oldest", limit=4).text,
    "temporal_query_nothing": lambda m: m.temporal_query(Filter(time_before="yesterday")).text,
    "episode_summary": lambda m: m.episode_summary(task_name="kitchen").text,
    "get_current_context": lambda m: m.get_current_context(recent_minutes=20).text,
    "entity_query": lambda m: m.entity_query(name="chair").text,
    "recall": lambda m: m.recall("spare key").text,
    "locate": lambda m: m.locate("red mug").text,
    "body_status": lambda m: m.body_status().text,
    "search_gists": lambda m: m.search_gists("oven", 2).text,
}


@pytest.mark.parametrize("name", ASKED)
def test_golden(morning: Memory, name: str) -> None:
    assert_golden(name, ASKED[name](morning))


@pytest.mark.parametrize("form", catalogue.FORMATS)
def test_golden_definitions(form: str) -> None:
    assert_golden(f"tools_{form}", catalogue.render(form))


LONG = "a very long name of a thing that a robot could see in a house " * 4
EVERY: dict[str, Callable[[Memory], str]] = {
    "semantic_search": lambda m: m.semantic_search("mug on a table").text,
    "semantic_search, 100": lambda m: m.semantic_search("mug on a table", 100).text,
    "spatial_query": lambda m: m.spatial_query((-1234.5, 2345.6), 1000.0).text,
    "temporal_query": lambda m: m.temporal_query().text,
    "temporal_query, 1000": lambda m: m.temporal_query(limit=1000).text,
    "episode_summary": lambda m: m.episode_summary(last_n=100).text,
    "episode_summary, named": lambda m: m.episode_summary(task_name="long").text,
    "get_current_context": lambda m: m.get_current_context(radius=1000.0, recent_minutes=1e6).text,
    "search_gists": lambda m: m.search_gists("mug").text,
    "search_gists, newest": lambda m: m.search_gists(limit=100).text,
    "entity_query": lambda m: m.entity_query().text,
    "entity_query, 1000": lambda m: m.entity_query(limit=1000).text,
    "locate": lambda m: m.locate("mug on a table").text,
    "locate, long": lambda m: m.locate(LONG + "thing 3").text,
    "recall": lambda m: m.recall("mug on a table").text,
    "recall, long": lambda m: m.recall(LONG + "thing 3", 100).text,
    "body_status": lambda m: m.body_status().text,
}


@pytest.fixture
def wordy(open_memory: Callable[..., Memory], clock: FakeClock) -> Memory:
    """Everything in it is as long as it may be: texts, names, layers, frame and coordinates."""
    memory = open_memory("long.db", WordEmbedder(), frame="robot_1/map")
    for i in range(24):
        memory.start_episode(f"{LONG[:200]} {i}")
        place = (-1234.5678 - 12 * i, 2345.6789, -3456.789)
        text = f"mug number {i} " + "stands on a table in a very large room " * 30
        memory.record(text, layer=LONG[:230], position=place, confidence=0.5)
        memory.record(f"the mug stands on a table on floor {i} of the house", layer="scene", position=place)
        for _ in range(3):
            memory.record_detections([Detection(f"{LONG[:230]} thing {i}", 0.9, place)], pose=(*place, 0.0))
            clock.advance(1)
        memory.record_body_state(f"sensor {i}: " + "long " * 50, layer=f"{LONG[:200]} {i}", value=1e300, unit=LONG)
        memory.end_episode()
    memory.update_pose(Pose(clock.ns, (-1234.5, 2345.6, 0.0), None))
    memory.flush()
    assert memory.wait_embedded(20.0)
    clock.advance(40 * 86_400)
    memory.update_pose(Pose(clock.ns, (-1234.5, 2345.6, 0.0), None))
    return memory


def test_every_text_stays_under_its_bound(wordy: Memory) -> None:
    lengths = {name: len(ask(wordy)) for name, ask in EVERY.items()}
    assert {name: length for name, length in lengths.items() if length >= 2000} == {}
    assert lengths["get_current_context"] < 1500
    assert min(lengths.values()) > 500
    assert re.fullmatch(r"- \d+ more", EVERY["get_current_context"](wordy).splitlines()[-1])


def test_ten_matches_are_all_told(wordy: Memory) -> None:
    for found in (wordy.semantic_search("mug on a table"), wordy.spatial_query((-1234.5, 2345.6), 1000.0)):
        assert [f"#{match.id} " in found.text for match in found.matches] == [True] * 10
        assert [match.text[:8] in found.text for match in found.matches] == [True] * 10


def test_the_context_stays_under_1500_characters(open_memory: Callable[..., Memory], clock: FakeClock) -> None:
    memory = open_memory("full.db", WordEmbedder())
    for i in range(60):
        memory.record(f"thing {i} " + "with a long description " * 20, layer="scene", position=(0.01 * i, 1.0, 0.0))
        memory.record_body_state(f"sensor {i}: " + "long " * 30, layer=f"body{i}", value=float(i))
    memory.update_pose(Pose(clock.ns, (0.0, 0.0, 0.0), 0.0))
    memory.flush()
    result = memory.get_current_context()
    assert len(result.text) < 1500
    assert len(result.nearby) == 10
    for title in ("Near", "Summaries", "Last 5 min", "Body:"):
        assert title in result.text


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "0 s"),
        (99, "99 s"),
        (100, "2 min"),
        (3600, "60 min"),
        (7200, "2.0 h"),
        (86_400, "24.0 h"),
        (864_000, "10 days"),
    ],
)
def test_durations(seconds: float, said: str) -> None:
    assert duration(seconds) == said


def test_times_are_relative_and_absolute_in_the_zone() -> None:
    words = Wording(1_772_611_200 * SECOND, "Europe/Berlin")
    assert words.when(1_772_610_600 * SECOND) == "10 min ago (2026-03-04 08:50:00)"
    assert words.ago(1_772_611_260 * SECOND) == "in 60 s"
    assert words.span(1_772_607_600 * SECOND, 1_772_610_600 * SECOND) == "10 min ago (2026-03-04 08:00:00 to 08:50:00)"


@pytest.mark.parametrize(
    ("place", "yaw", "said"),
    [
        ((2.0, 0.0, 0.0), 0.0, "2.0 m ahead"),
        ((2.0, 2.0, 0.0), 0.0, "2.8 m ahead to the left"),
        ((0.0, 2.0, 0.0), 0.0, "2.0 m to the left"),
        ((0.0, -2.0, 0.0), 0.0, "2.0 m to the right"),
        ((-2.0, 0.0, 5.0), 0.0, "2.0 m behind"),
        ((-2.0, 2.0, 0.0), 0.0, "2.8 m behind to the left"),
        ((0.0, 2.0, 0.0), 1.5708, "2.0 m ahead"),
        ((2.0, 0.0, 0.0), 3.1416, "2.0 m behind"),
        ((2.0, 0.0, 0.0), 1.5708, "2.0 m to the right"),
        ((2.0, 0.0, 0.0), None, "2.0 m away"),
        ((0.1, 0.0, 0.0), 0.0, "0.1 m away"),
    ],
)
def test_bearing_is_seen_from_the_robots_heading(
    place: tuple[float, float, float], yaw: float | None, said: str
) -> None:
    assert bearing(Pose(0, (0.0, 0.0, 0.0), yaw), place) == said


def test_small_words() -> None:
    assert point((-0.001, 1.005, 2.0)) == "(0.00, 1.00, 2.00)"
    assert [counted(n, t) for n, t in ((1, "match"), (2, "match"), (2, "summary"), (0, "time"))] == [
        "1 match", "2 matches", "2 summaries", "0 times",
    ]  # fmt: skip
    assert shortened("a  b\nc", 10) == "a b c"
    assert shortened("x" * 50, 10) == "x" * 9 + "…"


@pytest.mark.parametrize(
    "sign",
    ["\x00", "\x07", "\x1b", "\x7f", "\x9b", "\u200b", "\u202e", "\u2066", "\u061c", "\ufeff", "\ud800", "\U000e0041"],
)
def test_signs_that_are_not_seen_are_shown(memory: Memory, sign: str) -> None:
    assert shortened(f"red{sign} mug", 20) == "red\ufffd mug"
    assert sign not in memory.semantic_search(f"red{sign} mug").text
    assert sign not in memory.entity_query(f"red{sign} mug").text
    memory.record(f"a red{sign} mug", layer="scene")
    assert sign not in memory.temporal_query().text


@pytest.mark.parametrize("text", ["a\u200db", "👩\u200d🍳", "e\u0301", "עברית", "日本語", "क्\u200dष"])
def test_other_scripts_and_joined_signs_stay(text: str) -> None:
    assert shortened(text, 20) == text


def test_many_blanks_take_no_room() -> None:
    assert shortened("red" + 60 * " " + 40 * "door ", 24) == "red door door door door…"


def test_lines_that_do_not_fit_are_counted() -> None:
    text = listed("head", ["line " * 20] * 30, "tail", longest=500)
    assert len(text) < 560
    assert re.search(r"\(\d+ more lines left out\)\ntail$", text)


def test_marks_of_entities_and_places_are_said() -> None:
    words = Wording(10 * SECOND, "UTC")
    entity = Entity(
        7,
        "cup",
        "mug",
        (1.0, 2.0, 0.5),
        PositionSource.OBSERVER,
        0.1,
        "map",
        0,
        5 * SECOND,
        2,
        0.4,
        moved=True,
        missing=True,
    )
    said = words.entity(entity)
    assert said.startswith("#7 cup (mug), seen from (1.00, 2.00, 0.50) map, last seen 5 s ago")
    assert said.endswith("seen 2 times, confidence 0.40, tentative, moved, missing")
    place = Place((1.0, 2.0, 0.0), "map", PositionSource.MEASURED, 0.3, 0.8, 4, 0, 5 * SECOND, 7, "cup")
    assert words.place(place).startswith(
        "cup at (1.00, 2.00, 0.00) map within 0.30 m, entity #7, confidence 0.80, 4 sightings"
    )


def test_definitions_name_the_thirteen_tools_in_both_forms() -> None:
    names = [
        "semantic_search", "spatial_query", "temporal_query", "episode_summary", "get_current_context", "search_gists",
        "entity_query", "locate", "recall", "body_status", "store_specific_memory", "start_episode", "end_episode",
    ]  # fmt: skip
    openai = json.loads(catalogue.render("openai"))
    assert [one["function"]["name"] for one in openai] == names
    assert all(one["type"] == "function" for one in openai)
    schemas = json.loads(catalogue.render("json-schema"))
    assert [one["name"] for one in schemas] == names
    for one in schemas:
        assert one["phase"] in catalogue.PHASES
        assert set(one["parameters"].get("required", [])) <= set(one["parameters"]["properties"])
        assert all(schema["description"] for schema in one["parameters"]["properties"].values())


def test_only_some_definitions() -> None:
    chosen = catalogue.definitions("openai", ["locate", "body_status"])
    assert [one["function"]["name"] for one in chosen] == ["locate", "body_status"]
    text = catalogue.render("text", ["locate"])
    assert text.startswith("locate: ")
    assert "start_episode" in text.split(catalogue.GUIDANCE)[-1] or catalogue.GUIDANCE in text
    with pytest.raises(InvalidArgument, match="no tool 'fly'"):
        catalogue.definitions("openai", ["fly"])
    with pytest.raises(InvalidArgument, match="^format: "):
        catalogue.render("yaml")


def test_a_tool_is_defined_once_and_the_filter_only_for_those_that_take_it() -> None:
    assert [one["name"] for one in catalogue.definitions("json-schema", ["locate", "recall", "locate"])] == [
        "locate", "recall",
    ]  # fmt: skip
    twice, status = catalogue.render("text", ["locate", "locate"]), catalogue.render("text", ["body_status"])
    assert twice.count("\nfilter: ") == 1 and len(re.findall("^locate: ", twice, re.MULTILINE)) == 1
    assert "\nfilter: " not in status and status.startswith("body_status: ")
    assert catalogue.render("guidance", ["locate"]) == catalogue.GUIDANCE


def test_what_was_near_an_event_is_asked_for_by_the_id_that_its_line_tells(memory: Memory, clock: FakeClock) -> None:
    for i in range(120):
        memory.record_body_state("battery", "battery", 0.9 if i < 60 else 0.75, "fraction")
        if i % 20 == 0:
            memory.record(f"section {i}", layer="scene")
        clock.advance(1)
    memory.flush()
    listed = memory.call_tool("temporal_query", {"filter": {"layers": ["events"]}})
    asked = re.search(r'what was near: recall "(#\d+)"', listed)
    assert asked is not None and "battery dropped from 90% to 75%" in listed
    told = memory.call_tool("recall", {"query": asked[1]})
    assert [f"section {i}" in told for i in (20, 40, 60, 80, 100)] == [False, True, True, True, False]


def test_the_part_that_means_it_is_told_where_no_word_is_the_query_s(open_memory: Callable[..., Memory]) -> None:
    memory = open_memory("synonyms.db", WordEmbedder(same={"papers": "passport", "identity": "passport"}))
    filler = " ".join(f"Minutes of the meeting, paragraph {i}, nothing of note." for i in range(12))
    memory.record(f"{filler} A passport lies in the upper drawer. {filler}", layer="talk")
    memory.flush()
    assert memory.wait_embedded(20.0)
    assert '"…A passport lies in the upper drawer. Minutes' in memory.semantic_search("identity papers").text
    vector = WordEmbedder().embed(["passport"])[0]
    assert '"…A passport lies in the upper drawer. Minutes' in memory.semantic_search("", vector=vector).text


@pytest.mark.parametrize("name", [one.name for one in catalogue.TOOLS])
def test_parameters_are_those_of_the_facade(name: str) -> None:
    import inspect

    known = set(inspect.signature(getattr(Memory, name)).parameters) - {"self"}
    assert set(catalogue.tool(name).parameters) <= known
    assert known - set(catalogue.tool(name).parameters) <= {"vector", "explain", "frame"}


def test_where_lines_are_left_out_it_is_not_all(memory: Memory) -> None:
    for i in range(60):
        memory.record(f"x{i}", layer="scene")
    text = memory.temporal_query(limit=60).text
    assert re.search(r"\(\d\d more lines left out\)$", text) and "all" not in text
    assert listed("head", ["a" * 1000] * 2, ALL).endswith("(1 more line left out)")
    assert left_over(1, "ask") == "There is 1 more: ask."
    assert left_over(2, "ask", at_least=True) == "There are at least 2 more: ask."


def test_the_place_that_a_thing_had_before_has_a_frame_and_no_negative_zero(memory: Memory, clock: FakeClock) -> None:
    def look(place: float | None, times: int) -> None:
        for _ in range(times):
            cups = [] if place is None else [Detection("cup", 0.9, position=(place, -0.002, 0.4))]
            memory.record_detections(cups, pose=((place or 0.0) - 1.5, 0.0, 0.0, 0.0))
            clock.advance(5)

    look(-0.001, 4)
    clock.advance(600)
    for place, times in ((8.0, 4), (None, 6), (8.0, 4)):
        look(place, times)
    memory.flush()
    memory.housekeep()
    assert "before that at (0.00, 0.00, 0.40) map until" in memory.entity_query("cup").text


def test_the_part_of_a_long_text_that_was_asked_for_is_told(memory: Memory) -> None:
    filler = " ".join(f"Minutes of the meeting, paragraph {i}, nothing of note." for i in range(12))
    id_ = memory.record(f"{filler} The passport of Anna lies in the upper drawer.", layer="talk")
    memory.start_episode("notes")
    for i in range(12):
        memory.record(f"Minutes of meeting number {i}, and nothing of note was said.", layer="talk")
    memory.record("The ladder stands behind the shed.", layer="talk", importance=1.0)
    memory.end_episode()
    memory.flush()
    assert memory.wait_embedded(20.0)
    assert "lies in the upper drawer" in memory.semantic_search("Where does the passport of Anna lie?").text
    assert f'"{filler} The passport of Anna lies in the upper drawer."' in memory.semantic_search(f"#{id_}").text
    (gist,) = memory.search_gists().gists
    assert "behind the shed" in memory.search_gists("ladder").text
    assert "behind the shed" in memory.search_gists(f"#{gist.id}").text
