"""Parts of texts: windows that a model reads whole, and sentences."""

from __future__ import annotations

from memory_node.retrieval.chunks import split

SENTENCE = "the robot sees a wooden chair beside the kitchen table"


def test_a_short_text_is_its_only_part() -> None:
    assert split("a red chair") == ["a red chair"]
    assert split("  A red chair.\n") == ["A red chair."]
    assert split("") == [""]
    assert split("  \n ") == [""]


def test_sentences_follow_the_whole() -> None:
    text = "A kitchen with a white oven. A man is sleeping on the sofa."
    assert split(text) == [text, "A kitchen with a white oven.", "A man is sleeping on the sofa."]


def test_sentences_too_short_to_say_much_go_with_the_one_before() -> None:
    assert split("Hello there! The robot is in the study. Yes.")[1:] == []
    assert split("The cat is on the sofa. Really. The dog is in the yard.")[1:] == [
        "The cat is on the sofa. Really.", "The dog is in the yard.",
    ]  # fmt: skip


def test_numbers_do_not_end_sentences() -> None:
    assert split("The table stands 1.5 m from the door and 2.25 m from the bed") == [
        "The table stands 1.5 m from the door and 2.25 m from the bed"
    ]


def test_a_long_text_is_cut_into_windows_that_hold_every_word_once() -> None:
    words = [f"word{i}" for i in range(2000)]
    parts = split(" ".join(words))
    assert len(parts) > 8
    assert " ".join(parts).split() == words


def test_windows_end_after_sentences() -> None:
    text = f"{SENTENCE}. " * 60
    windows = [part for part in split(text) if part != f"{SENTENCE}."]
    assert len(windows) >= 2
    assert all(window.endswith(".") for window in windows)
    assert "".join(windows).count("chair") == 60


def test_text_without_blanks_and_of_other_scripts_is_cut_too() -> None:
    assert "".join(split("x" * 5000)) == "x" * 5000
    windows = split("机器人在厨房里看到一只红色的杯子。" * 300)
    assert all(len(window) <= 220 for window in windows)


def test_a_megabyte_gives_windows_alone() -> None:
    parts = split(f"{SENTENCE}. " * 18_000)
    assert 500 < len(parts) < 2000
    assert sum(part.count("chair") for part in parts) == 18_000
