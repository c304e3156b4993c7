"""Which reading repeats which row."""

from __future__ import annotations

from memory_node.graph import Kind, Node, Position
from memory_node.ingest.repeats import RepeatFolder

S = 1_000_000_000


def reading(text: str, position: Position | None, seconds: float, id: int = 0, layer: str = "scene") -> Node:
    stamp = round(seconds * S)
    return Node(id, Kind.OBSERVATION, layer, text, None, stamp, stamp, position=position)


def find(folder: RepeatFolder, text: str, position: Position | None, seconds: float) -> int | None:
    return folder.find([reading(text, position, seconds)], 0.5, 60 * S)[0]


def test_same_text_near_in_place_and_time_is_a_repeat_and_carries_the_window_on() -> None:
    folder = RepeatFolder()
    folder.remember(reading("chair", (0.0, 0.0, 0.0), 0, 7))
    assert find(folder, "chair", (0.3, 0.0, 0.0), 50) == 7
    assert find(folder, "chair", (0.0, 0.3, 0.0), 100) == 7  # within 60 s of the last repeat
    assert find(folder, "chair", (0.0, 0.0, 0.0), 161) is None
    assert find(folder, "chair", (0.0, 0.0, 0.0), 99) is None  # earlier than the last


def test_other_text_layer_or_place_is_none() -> None:
    folder = RepeatFolder()
    folder.remember(reading("chair", (0.0, 0.0, 0.0), 0, 7))
    assert find(folder, "table", (0.0, 0.0, 0.0), 1) is None
    assert find(folder, "chair", (0.51, 0.0, 0.0), 1) is None
    assert find(folder, "chair", None, 1) is None
    assert folder.find([reading("chair", (0.0, 0.0, 0.0), 1, layer="detections")], 0.5, 60 * S) == [None]


def test_unknown_places_repeat_only_unknown_places() -> None:
    folder = RepeatFolder()
    folder.remember(reading("door open", None, 0, 3))
    assert find(folder, "door open", None, 1) == 3
    assert find(folder, "door open", (0.0, 0.0, 0.0), 2) is None


def test_of_two_chairs_each_repeats_its_own_row() -> None:
    folder = RepeatFolder()
    folder.remember(reading("chair", (0.0, 0.0, 0.0), 0, 1))
    folder.remember(reading("chair", (1.5, 0.0, 0.0), 0, 2))
    assert find(folder, "chair", (1.4, 0.0, 0.0), 1) == 2
    assert find(folder, "chair", (0.1, 0.0, 0.0), 1) == 1


def test_f45_readings_of_one_message_repeat_different_rows_the_nearest_pair_first() -> None:
    folder = RepeatFolder()
    folder.remember(reading("chair", (2.0, 0.0, 0.0), 0, 1))
    folder.remember(reading("chair", (2.4, 0.0, 0.0), 0, 2))
    message = [reading("chair", (x, 0.0, 0.0), 1) for x in (2.25, 2.45, 2.3)]
    assert folder.find(message, 0.5, 60 * S) == [1, 2, None]


def test_f48_what_is_remembered_is_bounded() -> None:
    folder = RepeatFolder()
    for i in range(10_000):
        folder.remember(reading(f"text {i}", None, 0, i))
        folder.remember(reading("one", (float(i), 0.0, 0.0), 0, i))
    assert len(folder._last) <= 4096
    assert sum(len(lasts) for lasts in folder._last.values()) <= 4096 + 16
