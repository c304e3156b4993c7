"""What is stamped later than now is no part of "now", "latest" and "the last minutes", whatever clock it came from."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.fakes import SECOND, FakeClock, WordEmbedder

from memory_node.graph import Detection, Filter, Pose
from memory_node.memory import Memory

START = 1_772_611_200  # where the clock stands, 2026-03-04 08:00:00 UTC


@pytest.fixture
def looped(open_memory: Callable[..., Memory], clock: FakeClock) -> Memory:
    """A loop of a bag that ended at 08:30, and a minute of the next one, which began again at 08:00."""
    memory = open_memory(embedder=WordEmbedder())
    clock.set(START + 1800)
    _live(memory, "later")
    clock.set(START)
    assert memory.check_clock() == "clock went back"
    _live(memory, "present")
    clock.advance(60)
    return memory


def _live(memory: Memory, name: str) -> None:
    episode = memory.start_episode(f"{name} round")
    memory.record(f"{name} text", layer="scene", position=(0.0, 0.0, 0.0))
    memory.record_detections([Detection(f"{name} cup", 0.9, (1.0, 0.0, 0.0))], pose=(0.0, 0.0, 0.0, 0.0))
    memory.end_episode(episode)
    memory.flush()
    assert memory.wait_embedded()


def _texts(found: object) -> set[str]:
    return {match.text for match in found.matches}  # type: ignore[attr-defined]


PRESENT = {"present text", "present cup"}


def test_temporal_query_is_bounded_by_now_unless_a_later_time_is_asked_for(looped: Memory) -> None:
    assert _texts(looped.temporal_query()) == PRESENT
    assert _texts(looped.temporal_query(order="oldest")) == PRESENT
    assert _texts(looped.temporal_query(last_n_minutes=10)) == PRESENT
    assert _texts(looped.temporal_query(Filter(time_after="-10m"))) == PRESENT
    later = {"later text", "later cup"}
    assert _texts(looped.temporal_query(Filter(time_before="2026-03-04T09:00:00"))) == PRESENT | later
    assert _texts(looped.temporal_query(Filter(time_after="2026-03-04T08:20:00"))) == later


def test_the_other_tools_are_bounded_by_now(looped: Memory) -> None:
    for filter in (Filter(), Filter(time_after="-10m")):
        found = _texts(looped.semantic_search("later text", filter=filter))
        assert "present text" in found and not any("later" in text for text in found)
    assert _texts(looped.spatial_query((0.0, 0.0), 5.0)) == PRESENT
    assert {match.text for match in looped.get_current_context().recent} == PRESENT
    assert [entity.name for entity in looped.entity_query(last_seen_after="-10m").entities] == ["present cup"]
    assert [entity.name for entity in looped.entity_query().entities] == ["present cup"]
    assert looped.locate("present cup").found and not looped.locate("later cup").found
    assert not any("later" in text for text in _texts(looped.recall("later cup")))


def test_the_last_episode_began_before_now(looped: Memory) -> None:
    assert [episode.name for episode in looped.episode_summary().episodes] == ["present round"]
    assert [episode.name for episode in looped.episode_summary(last_n=9).episodes] == ["present round"]
    assert [episode.name for episode in looped.episode_summary(task_name="round").episodes] == ["present round"]


def test_a_stamp_seconds_ahead_counts_once_its_time_has_come(memory: Memory, clock: FakeClock) -> None:
    memory.record("ahead", layer="scene", stamp=clock.ns + 4 * SECOND)
    memory.record("present", layer="scene")
    memory.flush()
    assert [match.text for match in memory.temporal_query(limit=1).matches] == ["present"]
    clock.advance(5)
    assert [match.text for match in memory.temporal_query(limit=1).matches] == ["ahead"]


def test_a_thing_seen_by_a_clock_that_is_ahead_was_seen_now(memory: Memory, clock: FakeClock) -> None:
    memory.record_detections([Detection("cup", 0.9, (1.0, 0.0, 0.0))], stamp=clock.ns - 10 * SECOND)
    again = [Detection("cup", 0.9, (1.0, 0.0, 0.0)), Detection("box", 0.9)]
    memory.record_detections(again, stamp=clock.ns + 4 * SECOND)
    memory.flush()
    found = {entity.name: entity for entity in memory.entity_query().entities}
    assert {name: (thing.first_seen, thing.last_seen, thing.sightings) for name, thing in found.items()} == {
        "cup": (clock.ns - 10 * SECOND, clock.ns, 2),
        "box": (clock.ns, clock.ns, 1),
    }
    assert "last seen 0 s ago" in memory.locate("cup").text
    assert [match.stamp for match in memory.temporal_query().matches] == [clock.ns - 10 * SECOND]
    clock.advance(5)
    assert [match.stamp for match in memory.temporal_query(limit=1).matches] == [clock.ns - SECOND]  # as it was stamped


@pytest.fixture
def moved(open_memory: Callable[..., Memory], clock: FakeClock) -> Memory:
    """A cup at (1, 0) until 08:10 and at (9, 0) from 08:20 to 08:30; then the clock says 08:15."""
    memory = open_memory(embedder=WordEmbedder(), stale_after=60.0)
    for minute in (*range(11), *range(20, 31)):
        clock.set(START + 60 * minute)
        at, elsewhere = ((1.0, 0.0), (9.0, 0.0)) if minute < 15 else ((9.0, 0.0), (1.0, 0.0))
        pose = (at[0] - 1.0, 0.0, 0.0, 0.0)
        memory.record_detections([Detection("cup", 0.9, (*at, 0.0))], pose=pose)
        for _ in range(6 if minute >= 20 else 0):  # it is seen no more where it was
            clock.advance(1)
            memory.record_detections([], pose=(elsewhere[0] - 1.0, 0.0, 0.0, 0.0))
    memory.flush()
    clock.set(START + 900)
    assert memory.check_clock() == "clock went back"
    assert memory.wait_embedded()
    return memory


def test_a_thing_is_told_as_it_was_last_seen_by_now(moved: Memory, clock: FakeClock) -> None:
    (cup,) = moved.entity_query("cup").entities
    assert (cup.last_seen, cup.position, cup.history, cup.moved) == ((START + 600) * SECOND, (1.0, 0.0, 0.0), (), False)
    place = moved.locate("cup").place
    assert place is not None and (place.last_seen, place.position[0]) == ((START + 600) * SECOND, 1.0)
    assert moved.locate(f"#{cup.id}").place == place
    assert moved.recall("cup").entities[0].last_seen == cup.last_seen
    moved.update_pose(Pose(clock.ns, (8.0, 0.0, 0.0), 0.0))
    context = moved.get_current_context()
    assert [(thing.last_seen, thing.position) for thing in context.entities] == [(cup.last_seen, cup.position)]
    texts = (context, moved.recall("cup"), moved.locate("cup"), moved.entity_query("cup"))
    assert not [found.text for found in texts if "in 1" in found.text]
    assert not moved.entity_query("cup", last_seen_after="-4m").entities
    assert moved.entity_query("cup", last_seen_after="-6m").entities


def test_a_thing_is_told_as_it_was_later_where_that_is_asked_for(moved: Memory) -> None:
    later = Filter(time_before="2026-03-04T09:00:00")
    for filter, after in ((later, None), (Filter(), "2026-03-04T08:20:00")):
        (cup,) = moved.entity_query("cup", filter=filter, last_seen_after=after).entities
        assert (cup.last_seen // SECOND, cup.position) == (START + 1800, (9.0, 0.0, 0.0)) and cup.history
    place = moved.locate("cup", filter=later).place
    assert place is not None and place.last_seen == (START + 1800) * SECOND


def test_a_thing_seen_again_after_the_clock_went_back_was_nowhere_later(moved: Memory, clock: FakeClock) -> None:
    for _ in range(6):
        clock.advance(1)
        moved.record_detections([], pose=(8.0, 0.0, 0.0, 0.0))
        clock.advance(1)
        moved.record_detections([Detection("cup", 0.9, (20.0, 0.0, 0.0))], pose=(19.0, 0.0, 0.0, 0.0))
    moved.flush()
    (cup,) = moved.entity_query("cup").entities
    assert (cup.last_seen, cup.position, cup.places_left) == (clock.ns, (20.0, 0.0, 0.0), 1)
    assert [(place.position[0], place.last_seen) for place in cup.history] == [(1.0, (START + 600) * SECOND)]


def test_things_are_in_the_order_in_which_they_were_last_seen_by_now(
    open_memory: Callable[..., Memory], clock: FakeClock
) -> None:
    memory = open_memory()
    for minute, label in ((0, "cup"), (5, "box"), (20, "box"), (30, "cup")):
        clock.set(START + 60 * minute)
        memory.record_detections([Detection(label, 0.9, (1.0 if label == "cup" else 4.0, 0.0, 0.0))])
    memory.flush()
    assert [thing.name for thing in memory.entity_query().entities] == ["cup", "box"]
    clock.set(START + 600)
    memory.check_clock()
    assert [thing.name for thing in memory.entity_query().entities] == ["box", "cup"]


def test_a_repeat_ahead_of_now_lets_its_row_last_until_now(
    open_memory: Callable[..., Memory], clock: FakeClock
) -> None:
    memory = open_memory(fold_repeats=True)
    memory.record("the same", layer="scene", stamp=clock.ns - 2 * SECOND)
    memory.record("the same", layer="scene", stamp=clock.ns + 4 * SECOND)
    memory.flush()
    (match,) = memory.temporal_query().matches
    assert (match.stamp, match.last_stamp, match.repeats) == (clock.ns - 2 * SECOND, clock.ns, 2)


def test_what_was_seen_before_the_clock_went_back_keeps_its_time(memory: Memory, clock: FakeClock) -> None:
    end = clock.ns
    memory.check_clock()
    clock.advance(-1800)
    memory.record_detections([Detection("cup", 0.9, (1.0, 0.0, 0.0))], stamp=end - SECOND)  # was still on its way
    assert memory.check_clock() == "clock went back"
    memory.record_detections([Detection("box", 0.9, (2.0, 0.0, 0.0))], stamp=clock.ns + 2 * SECOND)
    memory.flush()
    clock.set(end / SECOND)
    last = {entity.name: entity.last_seen for entity in memory.entity_query().entities}
    assert last == {"cup": end - SECOND, "box": end - 1800 * SECOND}


def test_a_pose_ahead_of_now_is_not_where_the_robot_is(memory: Memory, clock: FakeClock) -> None:
    memory.update_pose(Pose(clock.ns - SECOND, (1.0, 1.0, 0.0), 0.0))
    memory.update_pose(Pose(clock.ns + 4 * SECOND, (9.0, 9.0, 0.0), 0.0))
    context = memory.get_current_context()
    assert (context.position, context.position_age) == ((1.0, 1.0, 0.0), 1.0)
    assert memory.status().position_age == 1.0


@pytest.mark.parametrize("name", ["stale_after", "position_max_age"])
def test_that_the_robots_position_is_not_known_any_more_is_a_warning(
    memory: Memory, clock: FakeClock, name: str
) -> None:
    memory.configure(**{name: 50.0})
    memory.update_pose(Pose(clock.ns, (1.0, 1.0, 0.0), 0.0))
    clock.advance(50.0)
    assert memory.status().warnings == () and "STALE" not in memory.get_current_context().text
    clock.advance(1.0)
    (warning,) = memory.status().warnings
    assert warning == f"the robot's position is not known: its last pose is older than {name}, 50 s"
    assert "known 51 s ago" in memory.get_current_context().text and "STALE" in memory.get_current_context().text
    memory.update_pose(Pose(clock.ns, (1.0, 1.0, 0.0), 0.0))
    assert memory.status().warnings == ()


def test_readings_of_a_later_clock_are_not_told_and_not_denied(memory: Memory, clock: FakeClock) -> None:
    assert memory.body_status().text == "No reading of the body was ever stored."
    memory.check_clock()
    memory.record_body_state("battery: 50 %", layer="battery", value=50.0, unit="%")
    memory.flush()
    clock.advance(-900)
    assert memory.check_clock() == "clock went back"
    assert memory.body_status().text == "No reading of the body came since the clock began anew."
    assert memory.body_status().readings == ()


def test_minutes_beyond_all_time_are_all_time(memory: Memory) -> None:
    memory.record("old", layer="scene", stamp=0)
    memory.flush()
    assert [match.text for match in memory.get_current_context(recent_minutes=1e300).recent] == ["old"]


@pytest.fixture
def folded(open_memory: Callable[..., Memory], clock: FakeClock) -> Memory:
    """A sentence and a cup, each one row of 08:00 to 08:30, and a summary of them; then the clock says 08:15."""
    memory = open_memory(embedder=WordEmbedder(), fold_repeats=True)
    clock.set(START)
    episode = memory.start_episode("long round")
    for second in range(0, 1801, 30):
        clock.set(START + second)
        memory.record("humming fridge", layer="scene", position=(0.0, 0.0, 0.0))
        memory.record_detections([Detection("cup", 0.9, (1.0, 0.0, 0.0))], pose=(0.0, 0.0, 0.0, 0.0))
    memory.end_episode(episode)
    memory.flush()
    clock.set(START + 900)
    assert memory.check_clock() == "clock went back"
    assert memory.wait_embedded()
    memory.update_pose(Pose(clock.ns, (0.0, 0.0, 0.0), 0.0))
    return memory


def test_what_is_folded_is_told_until_now_at_most(folded: Memory, clock: FakeClock) -> None:
    context = folded.get_current_context()
    found = {
        "temporal": folded.temporal_query(),
        "spatial": folded.spatial_query((0.0, 0.0), 5.0),
        "semantic": folded.semantic_search("humming fridge"),
        "a thing": folded.semantic_search("cup"),
        "by id": folded.semantic_search(f"#{folded.temporal_query().matches[0].id}"),
        "things": folded.temporal_query(Filter(kinds=("entity",))),
        "recall": folded.recall("humming fridge"),
    }
    spans = {name: {(m.stamp, m.last_stamp) for m in one.matches} for name, one in found.items()}
    assert spans == dict.fromkeys(found, {(START * SECOND, clock.ns)})
    assert {m.last_stamp for m in (*context.nearby, *context.recent)} == {clock.ns}
    texts = [one.text for one in (*found.values(), context)]
    assert not [text for text in texts if "in 15 min" in text]
    assert all("0 s ago" in text for text in texts)


@pytest.mark.parametrize("fold", [True, False])
def test_what_an_earlier_run_of_the_clock_saw_is_told_by_its_stamps(
    open_memory: Callable[..., Memory], clock: FakeClock, fold: bool
) -> None:
    """Folded or not: where now lies in the time of a row, that the row ends with now is a reading's distance off.

    By its session alone no answer could be told otherwise: it may stand for rows of both runs.
    """
    memory = open_memory(fold_repeats=fold)
    for second in range(0, 1801, 30):
        clock.set(START + second)
        memory.record("humming fridge", layer="scene", position=(0.0, 0.0, 0.0))
    clock.set(START + 900)
    assert memory.check_clock() == "clock went back"
    clock.set(START + 1210)
    assert 0 <= clock.ns - memory.temporal_query(limit=1).matches[0].last_stamp <= 30 * SECOND
    memory.record("humming fridge", layer="scene", position=(0.0, 0.0, 0.0))  # by this run, now
    clock.advance(5)
    (recent,) = memory.get_current_context().recent
    assert 0 <= clock.ns - recent.last_stamp <= 30 * SECOND
    assert recent.repeats == (62 if fold else 11)  # one answer of both runs


def test_a_summary_is_told_until_now_at_most(folded: Memory, clock: FakeClock) -> None:
    gists = {
        "newest": folded.search_gists().gists,
        "best": folded.search_gists("humming fridge").gists,
        "around": folded.get_current_context().gists,
        "recall": folded.recall("humming fridge").gists,
    }
    assert {name: [gist.end for gist in some] for name, some in gists.items()} == dict.fromkeys(gists, [clock.ns])
    asked = folded.temporal_query(Filter(kinds=("gist",)))
    assert [match.last_stamp for match in asked.matches] == [clock.ns]
    texts = (folded.search_gists().text, folded.get_current_context().text, asked.text)
    assert not [text for text in texts if "in 15 min" in text]


def test_an_episode_is_told_until_now_at_most(folded: Memory, clock: FakeClock) -> None:
    found = folded.episode_summary()
    assert [(one.start, one.end) for one in found.episodes] == [(START * SECOND, clock.ns)]
    assert "0 s ago" in found.text and "took 15 min" in found.text


def test_what_began_later_inside_an_episode_is_not_told(open_memory: Callable[..., Memory], clock: FakeClock) -> None:
    memory = open_memory()
    outer = memory.start_episode("outer")
    clock.advance(600)
    inner = memory.start_episode("inner")
    clock.advance(10)
    memory.end_episode(inner)
    memory.end_episode(outer)
    clock.advance(-300)
    memory.check_clock()
    for found in (memory.episode_summary(), memory.episode_summary(outer), memory.episode_summary(task_name="outer")):
        assert [episode.name for episode in found.episodes] == ["outer"] and "more" not in found.text
    assert [episode.name for episode in memory.episode_summary(inner).episodes] == ["inner"]


def test_what_is_folded_is_told_whole_where_a_later_time_is_asked_for(folded: Memory) -> None:
    later = Filter(time_before="2026-03-04T09:00:00")
    for found in (folded.temporal_query(later), folded.semantic_search("humming fridge", filter=later)):
        assert {match.last_stamp for match in found.matches} == {(START + 1800) * SECOND}


def test_a_thing_is_a_match_where_it_was_by_now(moved: Memory) -> None:
    for found in (
        moved.semantic_search("cup", filter=Filter(kinds=("entity",))),
        moved.temporal_query(Filter(kinds=("entity",))),
    ):
        assert [(match.last_stamp, match.position) for match in found.matches] == [
            ((START + 600) * SECOND, (1.0, 0.0, 0.0))
        ]
