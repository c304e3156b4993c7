"""get_current_context among many rows: each text once, counted over all of them."""

from __future__ import annotations

from support.fakes import FakeClock

from memory_node.graph import Detection, Pose
from memory_node.memory import Memory


def here(memory: Memory, clock: FakeClock, x: float = 0.0) -> None:
    memory.update_pose(Pose(clock.ns, (x, 0.0, 0.0), 0.0))
    memory.flush()


def test_a_sentence_among_hundreds_of_one_caption_is_told_and_the_captions_counted(
    memory: Memory, clock: FakeClock
) -> None:
    memory.record("Anna hid the spare key", layer="talk", position=(0.5, 1.0, 0.0))
    for _ in range(200):
        memory.record("a white oven", layer="scene", position=(0.0, 0.0, 0.0), position_source="observer")
        clock.advance(0.5)
    here(memory, clock)
    found = memory.get_current_context()
    told = [("a white oven", 200), ("Anna hid the spare key", 1)]
    assert [(match.text, match.repeats) for match in found.recent] == told
    assert [(match.text, match.repeats) for match in found.nearby] == told
    assert [match.distance for match in found.nearby] == [0.0, 1.25**0.5]
    oven = found.nearby[0]
    assert (oven.last_stamp - oven.stamp) / 1e9 == 99.5 and oven.id == found.recent[0].id
    assert found.text.count("200 times") == 2 and "more" not in found.text


def test_the_same_words_of_two_layers_are_two_lines(memory: Memory, clock: FakeClock) -> None:
    for layer in ("scene", "talk", "scene"):
        memory.record("the door is open", layer=layer, position=(1.0, 0.0, 0.0))
        clock.advance(1)
    here(memory, clock)
    told = {(match.layer, match.repeats) for match in memory.get_current_context().nearby}
    assert told == {("scene", 2), ("talk", 1)}


def test_repeats_that_were_folded_as_they_came_are_counted(open_memory: object, clock: FakeClock) -> None:
    memory: Memory = open_memory("folding.db", fold_repeats=True)  # type: ignore[operator]
    for _ in range(2):
        for _ in range(10):
            memory.record("a red mug", layer="scene", position=(1.0, 0.0, 0.0))
            clock.advance(1)
        clock.advance(100)
    here(memory, clock)
    found = memory.get_current_context(recent_minutes=10.0)
    assert [match.repeats for match in (*found.nearby, *found.recent)] == [20, 20]


def test_what_is_not_shown_is_counted_over_everything_near(memory: Memory, clock: FakeClock) -> None:
    for i in range(40):
        for _ in range(3):
            memory.record_detections([Detection(f"thing{i}", 0.9, (0.05 * i, 0.9 * (i % 3), 0.4))], pose=(0, 0, 0, 0))
        memory.record(f"sentence number {i}", layer="scene", position=(0.01 * i, 1.0, 0.0))
        clock.advance(1)
    here(memory, clock)
    found = memory.get_current_context()
    assert (len(found.entities), len(found.nearby), len(found.recent)) == (10, 10, 10)
    assert {match.layer for match in found.nearby} == {"scene"}  # things are told as things
    near, lately = found.text.split("Summaries")
    shown = near.count("\n- #")
    assert 0 < shown < 20 and near.endswith(f"\n- {80 - shown} more\n")
    shown = lately.count("\n- #")
    assert 0 < shown < 10 and f"\n- {80 - shown} more\n" in lately


def test_a_summary_whose_circle_reaches_here_is_of_this_place(memory: Memory, clock: FakeClock) -> None:
    memory.start_episode("shelves")
    for i in range(9):
        memory.record(f"shelf {i}", layer="scene", position=(i - 4.0, 0.0, 0.0))
        clock.advance(5)
    memory.end_episode()
    (gist,) = memory.search_gists().gists
    assert (gist.position, gist.radius) == ((0.0, 0.0, 0.0), 4.0)
    for x, there in ((3.9, True), (6.9, True), (7.1, False)):
        here(memory, clock, x)
        assert memory.get_current_context().gists == ((gist,) if there else ())
        clock.advance(1)
