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
