"""Which reading repeats which row."""

from __future__ import annotations

from memory_node.ingest.repeats import RepeatFolder

S = 1_000_000_000


def find(folder: RepeatFolder, text: str, position: tuple[float, float, float] | None, seconds: float) -> int | None:
    return folder.find("scene", text, position, round(seconds * S), 0.5, 60 * S)


def test_same_text_near_in_place_and_time_is_a_repeat_and_carries_the_window_on() -> None:
    folder = RepeatFolder()
    folder.remember("scene", "chair", (0.0, 0.0, 0.0), 0, 7)
    assert find(folder, "chair", (0.3, 0.0, 0.0), 50) == 7
    assert find(folder, "chair", (0.0, 0.3, 0.0), 100) == 7  # within 60 s of the last repeat
    assert find(folder, "chair", (0.0, 0.0, 0.0), 161) is None
    assert find(folder, "chair", (0.0, 0.0, 0.0), 99) is None  # earlier than the last


def test_other_text_layer_or_place_is_none() -> None:
    folder = RepeatFolder()
    folder.remember("scene", "chair", (0.0, 0.0, 0.0), 0, 7)
    assert find(folder, "table", (0.0, 0.0, 0.0), 1) is None
    assert find(folder, "chair", (0.51, 0.0, 0.0), 1) is None
    assert find(folder, "chair", None, 1) is None
    assert folder.find("detections", "chair", (0.0, 0.0, 0.0), S, 0.5, 60 * S) is None


def test_unknown_places_repeat_only_unknown_places() -> None:
    folder = RepeatFolder()
    folder.remember("scene", "door open", None, 0, 3)
    assert find(folder, "door open", None, 1) == 3
    assert find(folder, "door open", (0.0, 0.0, 0.0), 2) is None


def test_of_two_chairs_each_repeats_its_own_row() -> None:
    folder = RepeatFolder()
    folder.remember("scene", "chair", (0.0, 0.0, 0.0), 0, 1)
    folder.remember("scene", "chair", (1.5, 0.0, 0.0), 0, 2)
    assert find(folder, "chair", (1.4, 0.0, 0.0), 1) == 2
    assert find(folder, "chair", (0.1, 0.0, 0.0), 1) == 1


def test_f48_what_is_remembered_is_bounded() -> None:
    folder = RepeatFolder()
    for i in range(10_000):
        folder.remember("scene", f"text {i}", None, i, i)
        folder.remember("scene", "one", (float(i), 0.0, 0.0), 0, i)
    assert len(folder._last) <= 4096
    assert sum(len(lasts) for lasts in folder._last.values()) <= 4096 + 16
