"""episode_summary, get_current_context, body_status, and recall with the events of the body."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from support.fakes import SECOND, FakeClock, WordEmbedder

from memory_node.graph import EVENTS_LAYER, Detection, Filter, Pose
from memory_node.memory import Memory

OpenMemory = Callable[..., Memory]


# episodes


def test_episodes_by_part_of_their_name_in_any_case_with_nested_ones_in_order(
    morning: Memory, clock: FakeClock
) -> None:
    found = morning.episode_summary(task_name="KITCHEN pat").episodes
    assert [(episode.name, episode.depth) for episode in found] == [("Kitchen patrol", 0), ("water the fern", 1)]
    patrol, fern = found
    assert fern.parent_id == patrol.id
    assert (patrol.status, fern.status) == ("completed", "completed")
    assert fern.observation_count == 1
    assert (fern.end or 0) - fern.start == 120 * SECOND
    assert fern.position == (4.0, 4.0, 1.0)
    assert morning.episode_summary(fern.id).episodes == (fern,)
    assert morning.episode_summary(patrol.id).episodes == found


def test_the_last_episodes_are_the_newest_first(memory: Memory, clock: FakeClock) -> None:
    for name in ("one", "two", "three"):
        memory.start_episode(name)
        clock.advance(10)
        memory.end_episode()
        clock.advance(10)
    assert [episode.name for episode in memory.episode_summary().episodes] == ["three"]
    assert [episode.name for episode in memory.episode_summary(last_n=2).episodes] == ["three", "two"]
    assert [episode.name for episode in memory.episode_summary(last_n=99).episodes] == ["three", "two", "one"]
    running = memory.start_episode("four")
    assert memory.episode_summary().episodes[0].end is None
    assert f'#{running} "four" active, since 0 s ago' in memory.episode_summary().text


@pytest.mark.parametrize(
    ("name", "asked"), [("Prüfe die TÜR", "prüfe die tür"), ("straße", "STRASSE"), ("проверка КУХНИ", "Кухни")]
)
def test_part_of_a_name_is_found_in_any_case_of_any_script(memory: Memory, name: str, asked: str) -> None:
    memory.start_episode(name)
    memory.end_episode()
    assert [episode.name for episode in memory.episode_summary(task_name=asked).episodes] == [name]


def test_how_many_more_episodes_have_the_name_is_said(memory: Memory, clock: FakeClock) -> None:
    for i in range(4):
        memory.start_episode(f"patrol {i}")
        clock.advance(10)
        memory.end_episode()
    assert memory.episode_summary(task_name="patrol").text.endswith("\nThere are 3 more of that name: raise last_n.")
    assert memory.episode_summary(task_name="patrol", last_n=3).text.endswith(
        "\nThere is 1 more of that name: raise last_n."
    )
    assert memory.episode_summary().text.endswith("\nThere are 3 more episodes: raise last_n.")
    assert memory.episode_summary(last_n=3).text.endswith("\nThere is 1 more episode: raise last_n.")
    assert "more" not in memory.episode_summary(last_n=4).text
    assert "more" not in memory.episode_summary(task_name="patrol", last_n=4).text
    assert "more" not in memory.episode_summary(task_name="patrol 1").text


def test_a_nested_episode_is_told_with_the_one_around_it(memory: Memory, clock: FakeClock) -> None:
    memory.start_episode("kitchen")
    for name in ("kitchen sink", "kitchen table"):
        clock.advance(10)
        memory.start_episode(name)
        clock.advance(10)
        memory.end_episode()
    memory.end_episode()
    inside = ["kitchen", "kitchen sink", "kitchen table"]
    for found in (memory.episode_summary(), memory.episode_summary(task_name="kitchen")):
        assert [episode.name for episode in found.episodes] == inside
        assert "more" not in found.text
    assert [episode.name for episode in memory.episode_summary(task_name="sink").episodes] == ["kitchen sink"]


@pytest.mark.parametrize("name", ["100%", "a_b", "%", "_", "\\"])
def test_signs_in_a_name_are_taken_as_they_are(memory: Memory, name: str) -> None:
    memory.start_episode("water the fern")
    memory.end_episode()
    assert memory.episode_summary(task_name=name).episodes == ()
    memory.start_episode(f"do {name} now")
    assert [episode.name for episode in memory.episode_summary(task_name=name).episodes] == [f"do {name} now"]


# here and now


def test_context_tells_place_heading_and_age(morning: Memory) -> None:
    result = morning.get_current_context()
    assert (result.position, result.frame, result.position_age) == ((1.0, 0.0, 0.0), "map", 2.0)
    assert result.heading == pytest.approx(math.pi / 2, abs=1e-4)
    assert [entity.name for entity in result.entities] == ["chair", "red mug"]
    distances = [match.distance for match in result.nearby]
    assert distances == sorted(distances, key=lambda d: d or 0.0)
    assert result.recent[0].layer == "talk"
    assert {match.layer for match in result.recent} == {"talk", "scene"}
    assert [reading.layer for reading in result.body] == ["battery"]
    assert "chair, 1.4 m ahead to the right" in result.text


def test_without_a_pose_lately_and_the_body_are_still_told(memory: Memory) -> None:
    memory.record("a mug", layer="scene")
    memory.record_body_state("battery: 50%", layer="battery", value=50.0)
    result = memory.get_current_context()
    assert (result.has_position, result.position, result.position_age, result.heading) == (False, None, None, None)
    assert [match.text for match in result.recent] == ["a mug"]
    assert "position is not known" in result.text
    assert len(result.body) == 1


def test_a_stale_pose_and_an_unknown_heading_are_said(memory: Memory, clock: FakeClock) -> None:
    memory.update_pose(Pose(clock.ns, (1.0, 2.0, 0.0), None))
    memory.record("a mug", layer="scene", position=(1.0, 3.0, 0.0))
    clock.advance(60)
    result = memory.get_current_context()
    assert "heading unknown, known 60 s ago (08:00:00) STALE" in result.text
    assert "1.0 m away" in result.text


def test_the_radius_and_the_minutes_bound_what_is_told(morning: Memory) -> None:
    near = morning.get_current_context(radius=1.2, recent_minutes=3.5)
    assert {match.text for match in near.nearby} == {"a kitchen with a white oven"}
    assert near.entities == ()
    assert [match.layer for match in near.recent] == ["talk"]
    assert "\nLast 4 min:" in near.text
    assert "\nLast 30 s: nothing." in morning.get_current_context(recent_minutes=0.5).text
    everything = morning.get_current_context(radius=1e300, recent_minutes=1e308)
    assert len(everything.recent) == 5 and "\nAnywhere:" in everything.text


def test_what_is_here_is_told_with_both_times_and_how_sure_it_is(morning: Memory, clock: FakeClock) -> None:
    lines = morning.get_current_context(recent_minutes=20).text.splitlines()
    assert lines[0].endswith("known 2 s ago (08:09:58).")
    assert "- #23 red mug, 2.2 m behind to the right, seen 6 min ago (08:04:00), confidence 0.97" in lines
    assert '- #20 [detections] "red mug", 6 min ago (08:04:00), 5 times, confidence 0.80' in lines
    assert lines[-1] == "- battery: 70%, 0 s ago (08:10:00), changed by -6 in 6 min"
    clock.advance(86_400)
    assert "seen 24.1 h ago (2026-03-04 08:04:00), confidence 0.97" in morning.get_current_context().text


# the body


def test_body_status_tells_age_staleness_and_trend(memory: Memory, clock: FakeClock) -> None:
    for i in range(11):
        memory.record_body_state(f"battery: {90 - i}%", layer="battery", value=90.0 - i)
        memory.record_body_state("mode: driving", layer="mode", value=None)
        clock.advance(60)
    battery, mode = memory.body_status().readings
    assert (battery.layer, battery.text, battery.value, battery.age) == ("battery", "battery: 80%", 80.0, 60.0)
    assert battery.is_stale
    assert (battery.change, battery.window) == (-4.0, 240.0)
    assert (mode.value, mode.change, mode.window) == (None, None, 0.0)
    memory.configure(stale_after=100.0, trend_window=1000.0)
    battery = memory.body_status(["battery"]).readings[0]
    assert not battery.is_stale
    assert (battery.change, battery.window) == (-10.0, 600.0)
    assert "changed by -10" in memory.body_status().text


def test_a_layer_read_seldom_has_a_trend_since_before_the_window(memory: Memory, clock: FakeClock) -> None:
    for percent in (90.0, 80.0, 70.0):
        memory.record_body_state(f"battery: {percent:.0f}%", "battery", percent, "%")
        clock.advance(400.0)
    memory.flush()
    (battery,) = memory.body_status(["battery"]).readings
    assert memory.settings.trend_window == 300.0
    assert battery.age == 400.0 and (battery.change, battery.window) == (None, 0.0)
    clock.advance(-350.0)
    (battery,) = memory.body_status(["battery"]).readings
    assert (battery.change, battery.window) == (-10.0, 400.0)


def test_the_text_of_the_body_is_bounded(memory: Memory) -> None:
    for i in range(200):
        memory.record_body_state(f"sensor {i} reads " + "very " * 50, layer=f"sensor{i}", value=float(i))
    result = memory.body_status()
    assert len(result.readings) == 200
    assert len(result.text) < 2000


# events of the body


def with_drop(memory: Memory, clock: FakeClock) -> Memory:
    """Battery readings each 5 s for ten minutes; it falls by 15 % at half time, while the robot is on a ramp."""
    for i in range(120):
        memory.update_pose(Pose(clock.ns, (0.1 * i, 0.0, 0.0), 0.0))
        level = 0.9 - 0.0002 * i - (0.15 if i >= 60 else 0.0)
        memory.record_body_state(f"battery: {level:.0%}", layer="battery", value=level)
        if i % 10 == 0:
            memory.record(f"corridor section {i}", layer="scene", position=(0.1 * i, 0.0, 0.0))
        if i == 59:
            memory.record("a steep ramp with a wet floor", layer="scene", position=(5.9, 0.0, 0.0))
        clock.advance(5)
    memory.flush()
    assert memory.wait_embedded(20.0)
    return memory


def test_a_drop_of_the_battery_is_an_observation_at_the_robots_place(memory: Memory, clock: FakeClock) -> None:
    events = with_drop(memory, clock).temporal_query(Filter(layers=(EVENTS_LAYER,))).matches
    assert len(events) == 1
    assert "battery dropped" in events[0].text
    assert events[0].position is not None and events[0].position[0] == pytest.approx(6.0, abs=0.3)


def test_a_fault_flag_that_rises_and_falls_is_two_events(memory: Memory, clock: FakeClock) -> None:
    for i in range(120):
        memory.record_body_state(f"fault: {int(5 <= i < 70)}", layer="fault", value=float(5 <= i < 70))
        clock.advance(1)
    memory.flush()
    events = memory.temporal_query(Filter(layers=(EVENTS_LAYER,)), order="oldest").matches
    told = [event.text.split(" within")[0] for event in events]
    assert told == ["fault rose from 0 to 1", "fault dropped from 1 to 0"]


@pytest.mark.parametrize(("unit", "full"), [("%", 100.0), ("fraction", 1.0)])
def test_per_cent_and_shares_of_one_are_told_alike(memory: Memory, clock: FakeClock, unit: str, full: float) -> None:
    for i in range(120):
        memory.record_body_state("battery", layer="battery", value=full * (0.9 if i < 60 else 0.75), unit=unit)
        clock.advance(1)
    memory.flush()
    (event,) = memory.temporal_query(Filter(layers=(EVENTS_LAYER,))).matches
    assert event.text.startswith("battery dropped from 90% to 75% within")
    assert "changed by -15% in" in memory.body_status().text


def test_recall_tells_what_was_happening_when_the_battery_dropped(memory: Memory, clock: FakeClock) -> None:
    result = with_drop(memory, clock).recall("what was happening when the battery dropped?")
    assert result.matches[0].layer == EVENTS_LAYER
    texts = [match.text for match in result.matches[:5]]
    assert "a steep ramp with a wet floor" in texts
    assert "corridor section 0" not in [match.text for match in result.matches]
    assert "steep ramp" in result.text
    assert "battery" not in {match.layer for match in result.matches}


def test_recall_reaches_back_over_the_time_that_an_event_took(memory: Memory, clock: FakeClock) -> None:
    for i in range(20):
        memory.record_body_state("battery", layer="battery", value=0.9 if i < 15 else 0.7, unit="fraction")
        clock.advance(20)
        memory.record(f"corridor section {i}", layer="scene", position=(1.0 * i, 0.0, 0.0))
        clock.advance(40)
    memory.flush()
    assert memory.wait_embedded(20.0)
    texts = [match.text for match in memory.recall("when the battery dropped").matches]
    assert texts[0] == "battery dropped from 90% to 70% within 60 s"
    assert "corridor section 14" in texts and "corridor section 12" not in texts


def test_around_an_event_the_filter_holds(memory: Memory, clock: FakeClock) -> None:
    with_drop(memory, clock)
    event = memory.temporal_query(Filter(layers=(EVENTS_LAYER,))).matches[0]
    only = Filter(time_after=event.stamp, time_before=event.stamp + SECOND)
    texts = [match.text for match in memory.recall("when the battery dropped", filter=only).matches]
    assert "a steep ramp with a wet floor" not in texts


def test_temporal_query_around_an_event(memory: Memory, clock: FakeClock) -> None:
    with_drop(memory, clock)
    event = memory.semantic_search("battery dropped", 1).matches[0]
    assert event.layer == EVENTS_LAYER
    window = Filter(layers=("scene",), time_after=event.stamp - 10 * SECOND, time_before=event.stamp)
    assert "a steep ramp with a wet floor" in [match.text for match in memory.temporal_query(window).matches]


# everything about something


def test_recall_joins_things_their_sightings_and_summaries(morning: Memory) -> None:
    result = morning.recall("red mug")
    assert [entity.name for entity in result.entities] == ["red mug"]
    assert result.found and result.place is not None
    assert math.dist(result.place.position, (3.0, -1.0, 0.9)) < 0.1
    assert {match.text for match in result.matches} == {"red mug"}
    assert result.gists and "red mug" in result.gists[0].text


def test_recall_leaves_out_what_is_merely_near(memory: Memory) -> None:
    memory.record("the passport lies in the upper drawer", layer="talk", position=(1.0, 1.0, 0.0))
    for i in range(10):
        memory.record(f"a wooden bench {i}", layer="scene", position=(1.0, 1.0, 0.0))
        memory.record_detections([Detection("bench", 0.9, position=(1.2, 1.0, 0.0))], pose=(0.0, 0.0, 0.0, 0.0))
    memory.flush()
    assert memory.wait_embedded(20.0)
    result = memory.recall("passport drawer")
    assert [match.text for match in result.matches] == ["the passport lies in the upper drawer"]
    assert result.entities == ()


def test_recall_is_bounded(open_memory: OpenMemory) -> None:
    memory = open_memory("bounded.db", WordEmbedder())
    for i in range(100):
        memory.record(f"mug number {i}", layer="scene", position=(float(i), 0.0, 0.0))
    memory.flush()
    assert memory.wait_embedded(20.0)
    result = memory.recall("mug", 7)
    assert len(result.matches) == 7
    assert len(result.text) < 2000
