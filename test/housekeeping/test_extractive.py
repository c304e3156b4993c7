"""The default summarizer: what it keeps, in what order, and within which length."""

from __future__ import annotations

import pytest

from memory_node.graph import Position
from memory_node.housekeeping.extractive import Extractive, items_of
from memory_node.protocols import Summarizer, SummaryRow

NINE = 9 * 3600


def row(text: str, seconds: float = NINE, *, repeats: int = 1, place: Position | None = None) -> SummaryRow:
    stamp = round(seconds * 1_000_000_000)
    return SummaryRow(1, text, "scene", stamp, stamp, place, repeats)


def test_it_is_a_summarizer() -> None:
    assert isinstance(Extractive(), Summarizer) and Extractive().extract([row("cup")]) == []


def test_it_tells_when_where_which_things_and_how_often() -> None:
    rows = [row("cup", place=(1.0, 2.0, 0.0), repeats=3), row("red chair", NINE + 300, place=(5.0, 2.0, 0.0))]
    assert Extractive().summarize(rows, 600) == "1970-01-01 09:00 to 09:05 at (2.00, 2.00): cup (x3); red chair"


def test_contradictions_are_told_in_order_of_time() -> None:
    rows = [row("the door is closed", NINE + 300), row("the door is open"), row("cup")]
    text = Extractive().summarize(rows, 600)
    assert "the door is open 09:00, the door is closed 09:05" in text
    assert text.count("the door is open") == 1


def test_every_change_is_told_and_of_many_the_first_the_last_and_how_many() -> None:
    states = [row(f"door {'closed' if i % 2 else 'open'}", NINE + 300 * i) for i in range(40)]
    assert Extractive().summarize(states[:5], 600).endswith(
        ": door open 09:00, door closed 09:05, door open 09:10, door closed 09:15, door open 09:20"
    )
    assert Extractive().summarize(states, 600).endswith(
        ": door open 09:00, door closed 09:05, door open 09:10, ..., door closed 12:05, door open 12:10,"
        " door closed 12:15 (39 changes)"
    )


def test_long_changes_are_shortened_to_two_states_and_not_left_out() -> None:
    long = "the door at the end of the corridor behind the kitchen of the second floor is"
    states = [row(f"{long} {'closed' if i % 2 else 'open'}", NINE + 300 * i) for i in range(5)]
    text = Extractive().summarize(states, 400)
    assert text.endswith(f": {long} open 09:00, ..., {long} open 09:20 (4 changes)") and len(text) <= 400


def test_the_same_words_with_other_letters_are_one_text() -> None:
    assert Extractive().summarize([row("Cup"), row("cup"), row(" cup ")], 600).endswith(": Cup (x3)")


def test_the_central_and_the_unusual_come_before_the_paraphrases() -> None:
    rows = [row(f"a person sits on the red sofa and reads book {i}", NINE + i) for i in range(30)]
    rows.append(row("water is dripping from the ceiling above the stairs", NINE + 40))
    text = Extractive().summarize(rows, 200)
    assert "a person sits on the red sofa" in text and "water is dripping from the ceiling" in text


@pytest.mark.parametrize(("mundane", "repeats"), [(150, 1), (150, 3), (900, 1)])
def test_what_happened_once_is_told_among_hundreds_of_sentences(mundane: int, repeats: int) -> None:
    rows = [row(f"a person walks past table {i} in the hall", NINE + i, repeats=repeats) for i in range(mundane)]
    rows.append(row("thick smoke and flames come out of the oven", NINE + mundane))
    assert "thick smoke and flames" in Extractive().summarize(rows, 600)


def test_it_is_deterministic_and_bounded() -> None:
    rows = [row(f"shelf number {i} holds {i % 13} boxes of screws and a label", NINE + i) for i in range(500)]
    texts = {Extractive().summarize(rows, length) for length in (600, 600)}
    assert len(texts) == 1 and 500 < len(texts.pop()) <= 600
    assert all(0 < len(Extractive().summarize(rows, length)) <= length for length in (80, 100, 333))


def test_one_text_longer_than_the_summary_is_cut() -> None:
    text = Extractive().summarize([row("word " * 500)], 100)
    assert len(text) <= 100 and "word word" in text


def test_many_things_leave_room_for_sentences() -> None:
    rows = [row(f"thing {i}", NINE + i) for i in range(300)] + [row("the gas stove was left on all night", NINE)]
    assert "gas stove" in Extractive().summarize(rows, 600)


def test_nothing_gives_nothing() -> None:
    assert Extractive().summarize([], 600) == "" and Extractive().summarize([row("  ")], 600) == ""


def test_times_are_told_in_the_zone_of_the_settings() -> None:
    assert Extractive("Asia/Tokyo").summarize([row("cup")], 600).startswith("1970-01-01 18:00:")


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("1970-01-01 09:00 to 09:05 at (2.00, 2.00): cup (x3); red chair", [("cup", 3), ("red chair", 1)]),
        ("a language model wrote this", [("a language model wrote this", 1)]),
        ("", []),
    ],
)
def test_a_summary_can_be_summarised_again(text: str, items: list[tuple[str, int]]) -> None:
    assert items_of(text) == items


def test_what_another_author_wrote_is_taken_apart_into_sentences() -> None:
    text = "A kettle boiled; it was 1990-01-01 10:00: late. Nobody came!  The dog slept"
    assert items_of(text, "a language model") == [
        ("A kettle boiled; it was 1990-01-01 10:00: late.", 1), ("Nobody came!", 1), ("The dog slept", 1),
    ]
