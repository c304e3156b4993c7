"""Which reading repeats which row."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.fakes import FakeClock

from memory_node.graph import Kind, Node, Position
from memory_node.ingest import repeats
from memory_node.ingest.repeats import Held, RepeatFolder, Sought
from memory_node.memory import Memory

S = 1_000_000_000


def nothing(sought: Sought) -> list[Held]:
    raise AssertionError(f"everything is remembered, but {sought} was looked up")


def reading(text: str, position: Position | None, seconds: float, id: int = 0, layer: str = "scene") -> Node:
    stamp = round(seconds * S)
    return Node(id, Kind.OBSERVATION, layer, text, None, stamp, stamp, position=position)


def find(folder: RepeatFolder, text: str, position: Position | None, seconds: float) -> int | None:
    return folder.find([reading(text, position, seconds)], 0.5, 60 * S)[0]


def test_same_text_near_in_place_and_time_is_a_repeat_and_carries_the_window_on() -> None:
    folder = RepeatFolder(nothing)
    folder.remember(reading("chair", (0.0, 0.0, 0.0), 0, 7))
    assert find(folder, "chair", (0.3, 0.0, 0.0), 50) == 7
    assert find(folder, "chair", (0.0, 0.3, 0.0), 100) == 7  # within 60 s of the last repeat
    assert find(folder, "chair", (0.0, 0.0, 0.0), 161) is None
    assert find(folder, "chair", (0.0, 0.0, 0.0), 99) is None  # earlier than the last


def test_other_text_layer_or_place_is_none() -> None:
    folder = RepeatFolder(nothing)
    folder.remember(reading("chair", (0.0, 0.0, 0.0), 0, 7))
    assert find(folder, "table", (0.0, 0.0, 0.0), 1) is None
    assert find(folder, "chair", (0.51, 0.0, 0.0), 1) is None
    assert find(folder, "chair", None, 1) is None
    assert folder.find([reading("chair", (0.0, 0.0, 0.0), 1, layer="detections")], 0.5, 60 * S) == [None]


def test_unknown_places_repeat_only_unknown_places() -> None:
    folder = RepeatFolder(nothing)
    folder.remember(reading("door open", None, 0, 3))
    assert find(folder, "door open", None, 1) == 3
    assert find(folder, "door open", (0.0, 0.0, 0.0), 2) is None


def test_of_two_chairs_each_repeats_its_own_row() -> None:
    folder = RepeatFolder(nothing)
    folder.remember(reading("chair", (0.0, 0.0, 0.0), 0, 1))
    folder.remember(reading("chair", (1.5, 0.0, 0.0), 0, 2))
    assert find(folder, "chair", (1.4, 0.0, 0.0), 1) == 2
    assert find(folder, "chair", (0.1, 0.0, 0.0), 1) == 1


def test_f45_readings_of_one_message_repeat_different_rows_the_nearest_pair_first() -> None:
    folder = RepeatFolder(nothing)
    folder.remember(reading("chair", (2.0, 0.0, 0.0), 0, 1))
    folder.remember(reading("chair", (2.4, 0.0, 0.0), 0, 2))
    message = [reading("chair", (x, 0.0, 0.0), 1) for x in (2.25, 2.45, 2.3)]
    assert folder.find(message, 0.5, 60 * S) == [1, 2, None]


def test_f48_what_is_remembered_is_bounded_by_number_and_by_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeats, "MOST", 1000)
    folder = RepeatFolder(lambda sought: [])
    for i in range(3000):
        for text, position in ((f"text {i}", None), ("one", (float(i), 0.0, 0.0))):
            assert find(folder, text, position, 0) is None
            folder.remember(reading(text, position, 0, i))
    assert len(folder) == 1000
    assert folder.nbytes() < 120 * 1000
    folder.remember(reading("much later", None, 100, 9999))
    assert len(folder) == 1


def test_f48_what_a_row_takes_is_bounded_and_room_is_used_again() -> None:
    folder = RepeatFolder(nothing)
    seconds = 0.0
    for i in range(40_000):
        seconds += 1 / 250
        folder.remember(reading(f"view {i}", (i * 0.1, 1.0, 0.0), seconds, i + 1))
        if len(folder) == 10_000:
            at_first = folder.nbytes()
        find(folder, "nothing", None, seconds)  # tells the window, 60 s
    assert at_first < 90 * 10_000
    assert 17_500 <= len(folder) <= 17_501 and folder.nbytes() < 90 * 17_500


def test_many_readings_at_many_places_repeat_what_a_plain_look_at_all_rows_finds() -> None:
    rng = np.random.default_rng(1)
    folder = RepeatFolder(nothing)
    rows: dict[int, tuple[str, Position | None, float]] = {}
    repeated = 0
    for i in range(6000):
        text, seconds, place = f"text {rng.integers(3)}", i / 200, None
        if rng.random() < 0.9:
            place = (float(rng.uniform(-20, 20)), float(rng.uniform(-20, 20)), float(rng.choice([0.0, 2.0])))
        near = [
            (0.0 if place is None or held is None else math.dist(place, held), id_)
            for id_, (of, held, last) in rows.items()
            if of == text and (held is None) == (place is None) and seconds - last <= 20
        ]
        apart, expected = min(near, default=(9.0, None))
        expected = expected if apart <= 0.5 else None
        assert folder.find([reading(text, place, seconds)], 0.5, 20 * S) == [expected]
        repeated += expected is not None
        if expected is None:
            folder.remember(reading(text, place, seconds, i + 1))
        id_ = i + 1 if expected is None else expected
        rows[id_] = (text, place if expected is None else rows[expected][1], seconds)
    assert 1000 < repeated < 5000 and len(folder) > 1024


def test_a_row_that_was_refused_is_not_repeated() -> None:
    folder = RepeatFolder(nothing)
    folder.remember(reading("chair", None, 0, 1))
    folder.remember(reading("table", None, 0, 2))
    folder.forget({1, 3})
    assert find(folder, "chair", None, 1) is None and find(folder, "table", None, 1) == 2


def test_rows_refused_together_are_forgotten_together_and_their_room_is_used_again() -> None:
    folder = RepeatFolder(nothing)
    for id_ in range(1, 1001):
        folder.remember(reading(f"chair {id_}", None, 0, id_))
    folder.forget(())
    taken = folder.nbytes()
    folder.forget(range(500, 1000))
    assert len(folder) == 500
    assert find(folder, "chair 500", None, 1) is None and find(folder, "chair 1000", None, 1) == 1000
    for id_ in range(1001, 1501):
        folder.remember(reading(f"chair {id_}", None, 1, id_))
    assert len(folder) == 1000 and folder.nbytes() == taken


def test_a_row_read_again_that_was_let_go_of_takes_no_other_of_its_message_away(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repeats, "MOST", 2)
    folder = RepeatFolder(lambda sought: [Held(1, "scene", "a", None, 0)] if sought.text == "a" else [])
    for id_, text in enumerate("abc", 1):
        folder.remember(reading(text, None, 0, id_))
    assert folder.find([reading(text, None, 1) for text in "ab"], 0.5, 60 * S) == [1, 2]
    assert len(folder) == 2
    assert find(folder, "a", None, 2) == 1 and find(folder, "b", None, 2) == 2 and find(folder, "c", None, 2) is None


def test_another_radius_holds_from_the_next_reading_on() -> None:
    folder = RepeatFolder(nothing)
    folder.remember(reading("chair", (0.0, 0.0, 0.0), 0, 1))
    message = [reading("chair", (3.0, 3.0, 0.0), 1)]
    assert folder.find(message, 4.0, 60 * S) == [None] and folder.find(message, 5.0, 60 * S) == [1]
    assert folder.find(message, 0.0, 60 * S) == [None]


def test_every_repeat_is_counted_however_many_rows_there_are_and_however_late_it_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Readings of few texts at many places, some late: the rows are those of a plain look at all rows."""
    monkeypatch.setattr(repeats, "MOST", 6)
    monkeypatch.setattr(repeats, "LATE", 0)
    rng = np.random.default_rng(4)
    rows: list[dict[str, Any]] = []
    with Memory.open(tmp_path / "fold.db", clock=FakeClock(2000.0), settings={"fold_repeats": True}) as memory:
        for i in range(1500):
            text, place = f"text {rng.integers(3)}", (float(rng.integers(8)) / 2.5, 0.0, 0.0)
            stamp = i * S - (round(rng.integers(90) * S) if rng.random() < 0.2 else 0)
            near = [
                (abs(row["place"][0] - place[0]), row["id"], row)
                for row in rows
                if row["text"] == text and abs(row["place"][0] - place[0]) <= 0.5 and 0 <= stamp - row["last"] <= 60 * S
            ]
            id_ = memory.record(text, layer="scene", position=place, stamp=stamp)
            if near:
                row = min(near)[2]
                assert id_ == row["id"]
                row["count"] += 1
                row["last"] = stamp
            else:
                rows.append({"id": id_, "text": text, "place": place, "first": stamp, "last": stamp, "count": 1})
        memory.flush()
        stored = [(node.id, node.text, node.stamp, node.last_stamp, node.repeats) for node in memory.nodes(limit=5000)]
        assert stored == [(r["id"], r["text"], r["first"], r["last"], r["count"]) for r in rows]
        assert len(memory._rooms.recorder._folder) <= 6
