"""spatial_query and temporal_query: right rows, in the right order, told once, and what is archived told by gists."""

from __future__ import annotations

import pytest
from support.fakes import SECOND, FakeClock

from memory_node.graph import Filter
from memory_node.memory import Memory
from memory_node.retrieval import search


def test_spatial_query_is_nearest_first_with_distances(morning: Memory) -> None:
    result = morning.spatial_query((3.0, -1.0), 3.0, limit=7)
    assert [round(match.distance or 0.0, 2) for match in result.matches] == [0.0] * 5 + [2.24] * 2
    assert "There are 3 more: raise limit" in result.text
    both = morning.spatial_query((3.0, -1.0), 3.0, 7, Filter(center=(3.0, -1.0), radius=3.0))
    assert both.matches == result.matches and "There are 3 more: raise limit" in both.text
    sphere = morning.spatial_query((3.0, -1.0, 0.9), 0.5, limit=20)
    assert {match.text for match in sphere.matches} == {"red mug"}
    assert morning.spatial_query((3.0, -1.0, 5.0), 0.5).matches == ()
    assert (
        "Nothing was seen within 0.50 m of (3.00, -1.00, 5.00) map" in morning.spatial_query((3.0, -1.0, 5.0), 0.5).text
    )


def test_all_filters_hold_at_once(morning: Memory, clock: FakeClock) -> None:
    window = Filter(layers=("detections",), time_after="-9m", center=(2.0, 1.0), radius=0.2, min_confidence=0.85)
    matches = morning.temporal_query(window).matches
    assert {match.text for match in matches} == {"chair"}
    assert len(matches) == 4
    assert all(match.stamp >= clock.ns - 540 * SECOND for match in matches)
    assert len(morning.spatial_query((2.0, 1.0), 5.0, filter=window).matches) == 4
    patrol = morning.episode_summary(task_name="kitchen").episodes
    inner = morning.temporal_query(Filter(episode_id=patrol[1].id)).matches
    assert [match.text for match in inner] == ["the fern is dry and brown"]
    assert len(morning.temporal_query(Filter(episode_id=patrol[0].id), limit=100).matches) == 17


def test_temporal_query_orders_as_asked(morning: Memory) -> None:
    newest = morning.temporal_query(limit=100).matches
    assert [match.last_stamp for match in newest] == sorted((m.last_stamp for m in newest), reverse=True)
    oldest = morning.temporal_query(order="oldest", limit=100).matches
    assert [match.stamp for match in oldest] == sorted(match.stamp for match in oldest)
    assert {match.id for match in newest} == {match.id for match in oldest}
    assert morning.temporal_query(order="").matches == morning.temporal_query().matches


def test_the_last_minutes_and_a_window_hold_together(morning: Memory) -> None:
    assert [match.layer for match in morning.temporal_query(last_n_minutes=4.0).matches] == ["talk"]
    assert morning.temporal_query(Filter(time_before="-5m"), last_n_minutes=6.0, limit=100).matches != ()
    assert morning.temporal_query(Filter(time_before="-10m"), last_n_minutes=4.0).matches == ()


def archived(memory: Memory, clock: FakeClock) -> Memory:
    clock.advance(4 * 3600)
    memory.record("the robot is back in the kitchen", layer="scene", position=(0.0, 0.0, 0.0))
    memory.flush()
    for job in ("gists", "archive"):
        memory.run_job(job)
    assert memory.wait_embedded(20.0)
    return memory


def test_what_is_archived_is_told_by_gists_that_are_marked(morning: Memory, clock: FakeClock) -> None:
    memory = archived(morning, clock)
    old = memory.temporal_query(Filter(time_before="-1h"))
    assert old.matches
    assert {match.kind for match in old.matches} == {"gist"}
    assert "of archived observations" in old.text
    assert "[gist]" in old.text
    both = memory.temporal_query(order="oldest", limit=100).matches
    assert [match.kind for match in both][-1] == "observation"
    assert [match.kind for match in both][0] == "gist"
    assert memory.temporal_query(Filter(time_before="-1h", kinds=("observation",))).matches == ()
    talk = memory.temporal_query(Filter(time_before="-1h", layers=("talk",))).matches
    assert len(talk) == 1 and "spare key" in talk[0].text


def test_one_older_row_that_is_left_hides_no_archived_history(morning: Memory, clock: FakeClock) -> None:
    memory = archived(morning, clock)
    memory.record("a letter of last year", layer="talk", stamp=clock.ns - 365 * 86_400 * SECOND)
    newest = memory.temporal_query(limit=100).matches
    assert [match.kind for match in newest] == ["observation", *["gist"] * (len(newest) - 2), "observation"]
    assert len(newest) > 3 and newest[-1].text == "a letter of last year"
    assert any("spare key" in match.text for match in newest)
    assert [match.id for match in memory.temporal_query(order="oldest", limit=100).matches] == [
        match.id for match in sorted(newest, key=lambda match: (match.stamp, match.id))
    ]
    talk = memory.temporal_query(Filter(layers=("talk",))).matches
    assert [match.kind for match in talk] == ["gist", "observation"]
    two = memory.temporal_query(limit=2)
    assert two.matches == newest[:2]
    assert "There are 3 more" in two.text
    assert "There is 1 more" in memory.temporal_query(limit=4).text
    assert "That is all." in memory.temporal_query(limit=5).text


def test_a_gist_of_rows_that_are_all_there_is_not_told_beside_them(morning: Memory) -> None:
    assert morning.search_gists().gists
    assert {match.kind for match in morning.temporal_query(limit=100).matches} == {"observation"}
    assert "There are 7 more: raise limit" in morning.temporal_query(limit=10).text
    assert "There are at least 16 more: raise limit" in morning.temporal_query(limit=1).text


def test_gists_of_rows_that_are_all_there_take_no_places(morning: Memory, clock: FakeClock) -> None:
    memory = archived(morning, clock)
    for i in range(6):
        memory.start_episode(f"round {i}")
        memory.record(f"round {i} of the garden", layer="garden", position=(9.0 * i, 0.0, 0.0))
        clock.advance(60)
        memory.end_episode()
    found = memory.temporal_query(Filter(layers=("garden", "talk")), limit=100).matches
    assert [match.kind for match in found] == ["observation"] * 6 + ["gist"]
    assert memory.temporal_query(Filter(layers=("talk",)), limit=1).matches[0].kind == "gist"


def test_what_is_archived_is_found_by_meaning_place_and_words_in_gists(morning: Memory, clock: FakeClock) -> None:
    memory = archived(morning, clock)
    best = memory.semantic_search("spare key under the flower pot").matches[0]
    assert best.kind == "gist" and "spare key" in best.text
    near = memory.spatial_query((4.0, 4.0), 1.0)
    assert [match.kind for match in near.matches] == ["gist"]
    assert "1 summary of archived observations" in near.text
    memory.record("a bucket of water", layer="scene", position=(4.5, 4.0, 0.0))
    near = memory.spatial_query((4.0, 4.0), 1.0)
    assert [(match.kind, match.distance) for match in near.matches] == [("gist", 0.0), ("observation", 0.5)]
    assert memory.spatial_query((4.0, 4.0), 1.0, 1, Filter(layers=("talk",))).matches == ()
    assert "There is 1 more" in memory.spatial_query((4.0, 4.0), 1.0, 1).text


def test_summaries_of_a_place_are_counted(morning: Memory, clock: FakeClock) -> None:
    memory = archived(morning, clock)
    memory.record("a bucket of water", layer="scene", position=(4.5, 4.0, 0.0))
    found = memory.spatial_query((4.5, 4.0), 100.0, 100).matches
    assert [match.kind for match in found].count("gist") == len(found) - 2 == 2
    assert "There are 3 more: raise limit" in memory.spatial_query((4.5, 4.0), 100.0, 1).text
    assert "That is all." in memory.spatial_query((4.5, 4.0), 100.0, len(found)).text


def test_rows_are_counted_only_where_that_is_cheap(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    for i in range(6):
        memory.record(f"mug {i}", layer="scene", position=(float(i), 0.0, 0.0))
    asked = (lambda: memory.temporal_query(limit=2), lambda: memory.spatial_query((0.0, 0.0), 9.0, 2))
    assert ["There are 4 more: raise limit" in ask().text for ask in asked] == [True, True]
    monkeypatch.setattr(search, "COUNTED", 5)
    assert ["There are 4 more: raise limit" in ask().text for ask in asked] == [True, True]
    for i in range(110):
        memory.record(f"cup {i}", layer="scene", position=(0.01 * i, 0.0, 0.0))
    assert ["There are at least 100 more: raise limit" in ask().text for ask in asked] == [True, True]
