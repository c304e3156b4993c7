"""What counts as a jump of the clock, and what is only a fast, slow or halted one."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from support.fakes import FakeClock

from memory_node.ingest import clockwatch
from memory_node.ingest.clockwatch import JUMPED_AHEAD, STEADY_AGAIN, TICKING, ClockWatch
from memory_node.memory import Memory

HOUR = 3600.0


def looked(monkeypatch: pytest.MonkeyPatch, kind: str, *looks: tuple[float, float], start: float = 1000.0) -> list[str]:
    """What a watch says at each look, given as s that the clock and the steady clock went on since the one before."""
    steady, clock = FakeClock(), FakeClock(start)
    monkeypatch.setattr(clockwatch, "_since_boot", steady.now_ns)
    watch = ClockWatch(lambda: kind)
    assert watch.look(clock.now_ns()) == ""
    found = []
    for passed, steady_passed in looks:
        clock.advance(passed)
        steady.advance(steady_passed)
        found.append(watch.look(clock.now_ns()))
    return found


@pytest.mark.parametrize(
    ("kind", "passed", "steady", "said"),
    [
        ("ros", 5 * HOUR, 0.05, JUMPED_AHEAD),
        ("ros", 5 * HOUR, 5 * HOUR, ""),  # nobody looked for so long
        ("ros", HOUR / 2, 0.05, ""),
        (TICKING, 5 * HOUR, 0.05, JUMPED_AHEAD),
        (TICKING, 5 * HOUR, 10.0, JUMPED_AHEAD),
        (TICKING, HOUR / 2, 0.05, ""),
        (TICKING, 100 * 60.0, 60.0, ""),  # a hundred times real time, in a process that was held up for a minute
        (TICKING, 500 * 0.05, 0.05, ""),
        (TICKING, 0.0, 5 * HOUR, ""),  # paused
        (TICKING, -2.0, 0.05, "clock went back"),
        (TICKING, -0.5, 0.05, ""),
        ("sim", 5 * HOUR, 0.0, ""),  # a recording in which the robot was silent for a night
        ("sim", 31 * 24 * HOUR, 0.0, JUMPED_AHEAD),
    ],
)
def test_jumps(monkeypatch: pytest.MonkeyPatch, kind: str, passed: float, steady: float, said: str) -> None:
    assert looked(monkeypatch, kind, (0.1, 0.1), (passed, steady), (0.1, 0.1)) == ["", said, ""]


def test_a_paused_recording_that_goes_on_has_not_jumped(monkeypatch: pytest.MonkeyPatch) -> None:
    assert looked(monkeypatch, TICKING, (0.0, 2 * HOUR), (0.1, 0.1), (10.0, 0.1)) == ["", "", ""]


@pytest.mark.parametrize("kind", ["ros", TICKING, "sim"])
def test_a_clock_that_begins_has_not_jumped(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    assert looked(monkeypatch, kind, (1.7e9, 0.1), (0.1, 0.1), start=0.0) == ["", ""]


@pytest.mark.parametrize("kind", ["ros", TICKING])  # as the memory is opened; use_sim_time may be set later
@pytest.mark.parametrize("apart", [4000.0, 100.0])  # s; a jump ahead of 100 s is none
def test_two_clocks_make_few_sessions_and_one_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, apart: float, kind: str
) -> None:
    steady, clock = FakeClock(), FakeClock(5000.0)
    clock.kind = kind
    monkeypatch.setattr(clockwatch, "_since_boot", steady.now_ns)
    caplog.set_level(logging.WARNING, logger=clockwatch.__name__)
    with Memory.open(tmp_path / "two.db", clock=clock) as memory:
        memory.check_clock()
        clock.kind = TICKING
        first = memory.status().session
        for turn in range(200):
            clock.advance(-apart if turn % 2 else apart)
            steady.advance(0.1)
            memory.check_clock()
        assert memory.status().session == first + 3
        (warning,) = memory.status().warnings
        assert warning.startswith("two clocks on /clock?")
        assert [record.message for record in caplog.records if record.name == clockwatch.__name__] == [warning]

        found = []
        for _ in range(100):  # one of the two has ended
            clock.advance(0.1)
            steady.advance(0.1)
            found.append(memory.check_clock())
        assert [reason for reason in found if reason] == [STEADY_AGAIN]
        assert (memory.status().session, memory.status().warnings) == (first + 4, ())


def heard(monkeypatch: pytest.MonkeyPatch, *readings: tuple[str, float, float]) -> tuple[list[str], ClockWatch]:
    """What a watch says of readings, given as their source, what it shows (s) and when on the steady clock (s)."""
    steady, source = FakeClock(), [""]
    monkeypatch.setattr(clockwatch, "_since_boot", steady.now_ns)
    watch = ClockWatch(lambda: TICKING, lambda: source[0])
    found = []
    for source[0], shows, at in readings:
        steady.set(at)
        found.append(watch.look(round(shows * 1e9)))
    return [reason for reason in found if reason], watch


@pytest.mark.parametrize(
    ("apart", "sessions"),
    [(-500.0, ["clock went back", STEADY_AGAIN]), (500.0, []), (4 * HOUR, [JUMPED_AHEAD, STEADY_AGAIN])],
)
def test_a_second_publisher_that_is_heard_seldom_begins_two_sessions_however_often(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, apart: float, sessions: list[str]
) -> None:
    caplog.set_level(logging.WARNING, logger=clockwatch.__name__)
    readings = [("first", 5000.0 + at / 10, at / 10) for at in range(3000)]
    for at in range(100, 3000, 70):  # each 7 s
        readings[at] = ("second", 5000.0 + apart + at / 10, at / 10)
    said, watch = heard(monkeypatch, *readings)
    assert said == sessions and watch.warning
    assert len(caplog.records) == max(1, len(sessions))


def test_a_simulator_that_is_started_again_is_a_session_at_once_and_no_second_clock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runs = [(f"run {run}", at, 100 * run + at) for run in range(20) for at in range(1, 100)]
    said, watch = heard(monkeypatch, *runs)
    assert said == ["clock went back"] * 19 and not watch.warning
    runs = [(f"run {run}", at / 10, 3 * run + at / 10) for run in range(3) for at in range(10, 30)]
    assert heard(monkeypatch, *runs)[0] == ["clock went back"] * 2


def test_the_last_word_of_a_simulator_that_ends_begins_no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    readings = [("old", 500.0, 0.0), ("old", 501.0, 1.0), ("new", 1.0, 1.2), ("old", 501.3, 1.3)]
    later = [("new", 1.2 + at, 1.4 + at) for at in range(20)]
    said, watch = heard(monkeypatch, *readings, *later)
    assert said == ["clock went back"] and not watch.warning


@pytest.mark.parametrize("every", [20, 40, 70])
def test_a_simulator_that_is_started_again_beside_a_second_publisher_begins_a_session_at_once(
    monkeypatch: pytest.MonkeyPatch, every: int
) -> None:
    readings = []
    for at in range(3000):
        readings.append(("first", 500.0 + at / 10, at / 10) if at < 1500 else ("again", (at - 1500) / 10, at / 10))
        if at and at % every == 0:
            readings.append(("second", 100.0 + at / 10, at / 10))
    restart = next(number for number, reading in enumerate(readings) if reading[0] == "again")
    before, _ = heard(monkeypatch, *readings[:restart])
    at_once, watch = heard(monkeypatch, *readings[: restart + 2])
    assert at_once == [*before, "clock went back"] and watch.warning
    assert heard(monkeypatch, *readings)[0] == at_once


def test_one_of_two_publishers_that_loops_begins_a_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other one is silent by then."""
    readings = [("paused", 500.0, 0.0), ("looping", 10.0, 1.0), ("paused", 500.0, 1.1), ("looping", 10.2, 1.2)]
    turns = [("looping", 10.2 + at % 30, 1.4 + at) for at in range(100)]
    said, _ = heard(monkeypatch, *readings, *turns)
    assert said == ["clock went back"] * 4


def test_two_publishers_of_one_time_are_no_quarrel(monkeypatch: pytest.MonkeyPatch) -> None:
    said, watch = heard(monkeypatch, *[(f"{at % 2}", at / 10, at / 10) for at in range(10, 500)])
    assert said == [] and not watch.warning


def test_a_jump_long_after_two_clocks_is_one_again(monkeypatch: pytest.MonkeyPatch) -> None:
    back = [(-10.0, 0.1)] * 9
    assert looked(monkeypatch, TICKING, *back, (-10.0, 60.0), (-10.0, 60.0)) == [
        *["clock went back"] * 3, *[""] * 6, *["clock went back"] * 2,
    ]  # fmt: skip


def test_a_recording_of_two_seconds_that_loops_jumps_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    turn = [(0.5, 0.5), (0.5, 0.5), (0.5, 0.5), (-1.5, 0.5)]
    assert looked(monkeypatch, TICKING, *turn * 20) == ["", "", "", "clock went back"] * 20


def test_a_clock_that_a_program_sets_may_go_back_as_often_as_it_wants(monkeypatch: pytest.MonkeyPatch) -> None:
    assert looked(monkeypatch, "sim", *[(-10.0, 0.0)] * 20) == ["clock went back"] * 20
