"""Which part of a long text is quoted."""

from __future__ import annotations

import random

import pytest

from memory_node.retrieval.excerpts import Excerpt
from memory_node.tools import wording

FILLER = " ".join(f"Minutes of the meeting, paragraph {i}, nothing of note." for i in range(12))
TEXT = f"{FILLER} The passport of Anna lies in the upper drawer. Nothing else of note was said."


def excerpt(text: str, room: int, asked: str) -> str:
    return wording.excerpt(Excerpt(text, asked), room)


@pytest.mark.parametrize(
    "asked", ["Where does the passport of Anna lie?", "passports", "upper drawer", "Where is the ANNA-passport of the?"]
)
def test_the_sentence_that_says_it_is_quoted_from_its_beginning(asked: str) -> None:
    assert excerpt(TEXT, 80, asked).startswith("…The passport of Anna lies in the upper drawer. Nothing")
    assert len(excerpt(TEXT, 80, asked)) <= 80


@pytest.mark.parametrize("asked", ["", "?!", "#12", "a zebra", "minutes of a meeting"])
def test_the_beginning_is_quoted_where_nothing_is_better(asked: str) -> None:
    assert excerpt(TEXT, 80, asked).startswith("Minutes of the meeting, paragraph 0")


def test_a_text_that_fits_is_quoted_whole() -> None:
    assert excerpt("Hello. The passport lies here.", 40, "passport") == "Hello. The passport lies here."


def test_a_sentence_too_long_for_the_room_is_quoted_from_the_words_on() -> None:
    text = "word " * 100 + "the passport of Anna lies in the drawer " + "word " * 100
    assert excerpt(text, 60, "passport of Anna").startswith("…passport of Anna lies in the drawer word")


def test_the_closest_words_are_chosen_and_of_equals_the_first() -> None:
    text = f"The key. {FILLER} The red door. {FILLER} The red key. {FILLER} A red key."
    assert excerpt(text, 40, "red key").startswith("…The red key.")


def test_the_work_on_a_long_text_is_bounded() -> None:
    assert Excerpt("x " * 500_000 + "passport", "passport").start(80) == 0
    assert Excerpt("passport " * 100_000, "passport").start(80) == 0


def test_a_common_word_before_the_sentence_takes_no_room() -> None:
    text = f"{FILLER} A passport lies in the upper drawer. {FILLER}"
    for room in (80, 300):
        assert excerpt(text, room, "A passport lies in the upper drawer.").startswith("…A passport lies in the upper")


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ("Übung", "Die Übung beginnt um acht."),
        ("die ÉCOLE", "L'école est fermée."),
        ("echo", "Écho du soir."),
        ("école", "Ecole maternelle du quartier."),
        ("đường", "Đường này dài."),
        ("İstanbul", "İzmir, İstanbul."),
    ],
)
def test_a_word_is_found_whatever_diacritics_it_begins_with(asked: str, sentence: str) -> None:
    text = f"{FILLER} {sentence} {FILLER}"
    assert excerpt(text, 80, asked).startswith(f"…{sentence}")


def test_letters_before_a_word_do_not_move_its_place() -> None:
    text = "İ" * 30 + " word" * 30 + " passport" + " word" * 30
    assert excerpt(text, 40, "passport").startswith("…passport word")


def test_what_was_tried_with_more_room_changes_nothing() -> None:
    rng = random.Random(3)
    for _ in range(200):
        text = " ".join(rng.choices(["red", "key", "door", "of", "a", "house.", "nothing"], k=80))
        one = Excerpt(text, "the red key of a door")
        for room in sorted(rng.sample(range(12, 300), 6), reverse=rng.random() < 0.8):
            assert one.start(room) == Excerpt(text, "the red key of a door").start(room)


def test_what_stands_inside_a_word_is_not_found() -> None:
    text = "word " * 50 + "monkey keyboard key " + "word " * 50
    assert excerpt(text, 40, "key").startswith("…key word")


def test_the_most_common_words_of_a_question_draw_no_quote_to_them() -> None:
    text = f"What for, who is it, the attic? {FILLER} a blue shelf by some wall; {FILLER}"
    assert excerpt(text, 30, "what is it for, who has a blue shelf?").startswith("…a blue shelf by some wall")


def test_long_texts_take_the_room_that_short_ones_leave() -> None:
    def listed(texts: list[str]) -> list[str]:
        lines = wording.told("10 matches", texts, lambda text: wording.Line('#1 "', Excerpt(text), '" at home'))
        return lines.split("\n")

    short, long = ["a mug"] * 8, ["a very long text " * 100] * 2
    lines = listed([*short, *long])
    assert all('"a mug"' in line for line in lines[1:9])
    assert len(lines[9]) == len(lines[10]) + len("9") - len("10") > wording.QUOTED
    lines = listed(long * 5)
    assert wording.LONGEST - 40 < len("\n".join(lines)) <= wording.LONGEST + len(wording.ALL)
    assert len({len(line) for line in lines[1:10]}) == 1
