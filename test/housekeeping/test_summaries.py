"""The job `summaries`: what a language model cannot do keeps nothing else waiting, and its words reach the episodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from kept_store import DAY, Store
from support.fakes import SECOND

from memory_node.errors import SummarizerError, SummarizerUnreachable
from memory_node.graph import Episode
from memory_node.housekeeping import episodes as keeping
from memory_node.housekeeping import summaries
from memory_node.protocols import NamedThing, SummaryRow
from memory_node.storage import episodes

PLACES = 6


class Model:
    """A language model that answers by a rule and remembers what it was asked: the first text of each question."""

    name = "model"

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.rule: Callable[[str], str] = lambda text: f"The model says {text}."

    def summarize(self, rows: Sequence[SummaryRow], max_chars: int) -> str:
        self.asked.append(rows[0].text)
        return self.rule(rows[0].text)

    def extract(self, rows: Sequence[SummaryRow]) -> list[NamedThing]:
        return []


class Steady:
    """The steady clock, set by hand."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def monotonic(self) -> float:
        return self.seconds


@pytest.fixture
def model() -> Model:
    return Model()


@pytest.fixture
def steady(monkeypatch: pytest.MonkeyPatch) -> Steady:
    clock = Steady()
    monkeypatch.setattr(summaries, "time", clock)
    return clock


@pytest.fixture
def store(tmp_path: Path, model: Model) -> Iterator[Store]:
    with Store(tmp_path / "m.db", summarizer=model) as opened:
        yield opened


def gists_of(store: Store, words: Sequence[str]) -> None:
    """One gist a word, each at a place of its own, in that order."""
    now = store.clock.ns / SECOND
    for i, word in enumerate(words):
        store.add_many([(word, now + 10 * i + j, (50.0 * i, 0.0, 0.0), "scene") for j in range(3)])
    store.clock.advance(4000)
    store.run("episodes", "gists")


def wanting(store: Store) -> int:
    return int(store.one("SELECT count(*) FROM gist WHERE rewrite = 1"))


def poison(text: str) -> str:
    if text == "poison":
        raise SummarizerError("too strange for me")
    return f"The model says {text}."


def test_a_gist_that_the_model_cannot_do_does_not_keep_the_others_waiting(store: Store, model: Model) -> None:
    words = ["poison", "a chair", "a lamp", "a door", "a mug"]
    gists_of(store, words)
    model.rule = poison
    state = store.runner.run("summaries")
    assert model.asked == words and wanting(store) == 1
    assert state.error == "SummarizerError: too strange for me" and state.state == "failed"
    assert sorted(gist.text for gist in store.gists() if gist.author == "model") == [
        f"The model says {word}." for word in sorted(words[1:])
    ]
    model.rule = lambda text: "At last."
    assert store.runner.run("summaries").error == "" and wanting(store) == 0


def test_on_the_timer_it_is_tried_again_later_and_later_and_what_is_new_at_once(
    store: Store, model: Model, steady: Steady
) -> None:
    gists_of(store, ["poison", "a chair"])
    model.rule = poison
    cycles = []
    for cycle in range(12 * 60):
        steady.seconds += 60.0
        if cycle == 30:
            gists_of(store, ["a new lamp"])
        before = len(model.asked)
        store.runner.run("summaries", forced=False)
        cycles.append(model.asked[before:])
    assert cycles[0] == ["poison", "a chair"] and cycles[30] == ["a new lamp"]
    tried = [cycle for cycle, asked in enumerate(cycles) if "poison" in asked]
    assert tried[:5] == [0, 4, 12, 28, 60] and len(tried) == 5 + 10
    assert all(later - earlier <= 60 for earlier, later in zip(tried, tried[1:], strict=False))
    # The job itself need not rest, but it tells when it tries again.
    assert 59.0 < store.runner.states()[2].retry_in <= 60.0


def test_a_cycle_in_which_nothing_is_due_writes_nothing(store: Store, model: Model, steady: Steady) -> None:
    gists_of(store, ["poison", "a chair"])
    model.rule = poison
    store.runner.run("summaries", forced=False)
    before = store.db.revision
    state = store.runner.run("summaries", forced=False)
    assert (state.scanned, state.wrote, state.error) == (0, 0, "SummarizerError: too strange for me")
    assert store.db.revision == before


@pytest.mark.parametrize("problem", [SummarizerUnreachable("nobody there"), ConnectionRefusedError("nobody there")])
def test_a_model_that_is_down_is_asked_once_a_run(store: Store, model: Model, problem: Exception) -> None:
    gists_of(store, [f"thing {i}" for i in range(PLACES)])

    def down(text: str) -> str:
        raise problem

    model.rule = down
    assert "nobody there" in store.runner.cycle()[2].error
    assert len(model.asked) == 1 and wanting(store) == PLACES
    assert store.runner.states()[2].retry_in > 0
    model.rule = lambda text: "Well again."
    assert store.runner.run("summaries").error == "" and wanting(store) == 0


def test_a_model_that_says_nothing_of_anything_is_not_asked_for_every_gist(store: Store, model: Model) -> None:
    gists_of(store, [f"thing {i}" for i in range(PLACES)])
    model.rule = lambda text: ""
    assert "empty summary" in store.runner.cycle()[2].error
    assert len(model.asked) == summaries.IN_A_ROW < PLACES
    assert store.runner.states()[2].retry_in > 0


def test_many_that_fail_do_not_starve_the_rest(store: Store, model: Model, steady: Steady) -> None:
    gists_of(store, ["poison"] * 7 + ["a chair"])
    model.rule = poison
    for _ in range(3):
        store.runner.run("summaries", forced=False)
    assert [gist.text for gist in store.gists() if gist.author == "model"] == ["The model says a chair."]
    assert model.asked == ["poison"] * 7 + ["a chair"]


def test_after_a_day_the_extractive_text_is_final(store: Store, model: Model) -> None:
    gists_of(store, ["poison", "a chair"])
    model.rule = poison
    store.runner.run("summaries")
    store.clock.advance(2 * DAY)
    assert store.runner.run("summaries").error == "" and wanting(store) == 0
    assert model.asked.count("poison") == 1


@pytest.mark.parametrize(
    ("answer", "text"),
    [("nice \ud83d day", "nice day"), ("nice\0 day\x1b[0m", "nice day[0m"), ("\ude00 \ud83d", None), ("\x07", None)],
)
def test_what_no_text_can_hold_is_left_out_of_an_answer(
    store: Store, model: Model, answer: str, text: str | None
) -> None:
    """F47: half an emoji, control characters."""
    gists_of(store, ["poison", "a chair"])
    model.rule = lambda told: answer if told == "poison" else "A chair."
    state = store.runner.run("summaries")
    first, second = store.gists()
    assert second.text == "A chair." and wanting(store) == (text is None)
    assert first.text == text if text else "empty summary" in state.error


def test_a_gist_whose_text_cannot_be_written_does_not_keep_the_others_waiting(store: Store, model: Model) -> None:
    gists_of(store, ["poison", "a chair"])
    refused = store.gists()[0].id
    store.write(
        lambda tx: tx.conn.execute(
            f"CREATE TRIGGER refuse BEFORE UPDATE ON gist WHEN old.id = {refused}"
            " BEGIN SELECT raise(ABORT, 'not this one'); END"
        )
    )
    assert "not this one" in store.runner.run("summaries").error
    assert model.asked == ["poison", "a chair"] and wanting(store) == 1
    store.write(lambda tx: tx.conn.execute("DROP TRIGGER refuse"))
    store.run("summaries")
    assert wanting(store) == 0


# ---- episodes


def patrol(store: Store, things: Sequence[str], name: str = "patrol") -> int:
    """An episode that saw each thing at a place of its own."""
    start = store.clock.now_ns()
    id_ = store.write(lambda tx: keeping.start_episode(tx, name, start, store.session_id))
    for i, thing in enumerate(things):
        now = store.clock.ns / SECOND
        store.add_many([(thing, now + j, (50.0 * i, 0.0, 0.0), "scene") for j in range(3)], episode_id=id_)
        store.clock.advance(10)
    return int(id_)


def end(store: Store) -> None:
    now = store.clock.now_ns()
    store.write(lambda tx: keeping.end_episode(tx, 0, "completed", now, store.settings, rewrite=True))


def episode(store: Store, id_: int) -> Episode:
    with store.db.read() as conn:
        found = episodes.get(conn, id_)
    assert found is not None
    return found


def test_the_models_words_reach_the_episode_with_the_gist(store: Store, model: Model) -> None:
    id_ = patrol(store, ["a chair"])
    end(store)
    assert "a chair (x3)" in episode(store, id_).summary
    store.run("summaries")
    assert episode(store, id_).summary == "The model says a chair." == store.gists()[0].text
    store.run()
    before = store.db.revision
    store.run()
    assert store.db.revision == before and episode(store, id_).summary == "The model says a chair."


def test_an_episode_of_several_gists_tells_of_each_within_its_bound(store: Store, model: Model) -> None:
    store.settings = store.settings.changed(consolidation_max_text=200)
    id_ = patrol(store, ["a chair", "a lamp", "poison"])
    end(store)
    model.rule = lambda text: poison(text) + " It was quiet there and nothing else happened at all."
    store.runner.run("summaries")
    summary = episode(store, id_).summary
    assert "The model says a chair." in summary and "The model says a lamp." in summary and "poison" in summary
    assert len(summary) <= 200


def test_an_episode_tells_what_the_model_said_of_those_inside(store: Store, model: Model) -> None:
    outer = patrol(store, ["a chair"])
    inner = patrol(store, ["a lamp"], "look closer")
    end(store)
    store.run("summaries")
    assert episode(store, inner).summary == "The model says a lamp."
    end(store)
    store.run("summaries")
    assert "The model says a lamp." in episode(store, outer).summary
    assert "The model says a chair." in episode(store, outer).summary
