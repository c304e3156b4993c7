"""The job runtime: installments, cursors, yielding, failures, silence and closing."""

from __future__ import annotations

import gc
import logging
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kept_store import Store
from support.fakes import FakeClock

from memory_node.errors import InvalidArgument
from memory_node.housekeeping.extractive import Extractive
from memory_node.housekeeping.runtime import JobContext, JobRunner, StepResult
from memory_node.storage import jobs
from memory_node.storage.database import Database


class Counting:
    """Counts to `end` in its cursor, one row an installment; may fail, or do something before each step."""

    def __init__(self, name: str = "counting", end: int = 5, before: Any = None) -> None:
        self.name = name
        self.end = end
        self.before = before

    def step(self, context: JobContext) -> StepResult:
        if self.before is not None:
            self.before(context)
        with context.db.read() as conn:
            done = jobs.cursor(conn, self.name).get("id", 0)
        if done >= self.end:
            return StepResult(scanned=1)
        context.db.write(lambda tx: jobs.save_cursor(tx, self.name, {"id": done + 1}))
        return StepResult(scanned=1, wrote=1, done=False)


def raising(_: JobContext) -> None:
    raise ValueError("no such luck")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "m.db") as opened:
        yield opened


def runner_of(db: Database, *jobs_: Any, interval: float = 60.0) -> JobRunner:
    context = JobContext(db=db, settings=lambda: None, now_ns=FakeClock().now_ns, session_id=lambda: 1)  # type: ignore[arg-type,return-value]
    return JobRunner(context, jobs_, interval)


def test_a_run_goes_on_until_the_job_is_done_and_tells_what_it_did(store: Store) -> None:
    runner = runner_of(store.db, Counting())
    state = runner.run("counting")
    assert (state.scanned, state.wrote, state.cursor, state.runs, state.state) == (6, 5, 5, 1, "idle")
    assert state.last_run == 1_000_000_000_000
    assert runner.states()[0].cursor == 5


def test_a_second_run_on_an_unchanged_store_writes_nothing_at_all(store: Store) -> None:
    runner = runner_of(store.db, Counting())
    runner.run("counting")
    before = store.db.revision
    assert runner.run("counting").wrote == 0
    assert store.db.revision == before


def test_a_run_that_did_something_logs_one_line_and_one_that_did_not_none(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "memory_node.housekeeping")
    runner = runner_of(store.db, Counting())
    runner.run("counting")
    assert [record.message for record in caplog.records if "wrote 5" in record.message]
    assert len(caplog.records) == 1
    runner.run("counting")
    assert len(caplog.records) == 1


def test_the_job_of_one_kind_failing_leaves_the_others_running(store: Store) -> None:
    runner = runner_of(store.db, Counting("bad", before=raising), Counting("good"))
    bad, good = runner.run_all()
    assert bad.state == "failed" and "no such luck" in bad.error
    assert good.state == "idle" and good.wrote == 5


def test_a_job_that_fails_in_the_middle_of_a_write_leaves_the_database_to_the_others(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its error, which the futures of the write hold on to, must not hold on to the cursors it was reading."""
    store.add_many([(f"a chair {i}", 100.0 + i, (0.0, 0.0, 0.0), "scene") for i in range(5)])

    def fails(*_: Any) -> str:
        raise RuntimeError("no words")

    monkeypatch.setattr(Extractive, "summarize", fails)
    gc.disable()
    try:
        assert store.runner.run("gists").error == "RuntimeError: no words"
        assert store.runner.run("snapshots").error == ""
    finally:
        gc.enable()
    monkeypatch.undo()
    assert store.run("gists", "snapshots")[0].wrote == 6


def test_a_failed_job_rests_on_the_timer_and_longer_each_time_but_runs_when_asked(store: Store) -> None:
    runner = runner_of(store.db, Counting("bad", before=raising), interval=10.0)
    runner.cycle()
    first = runner.states()[0].retry_in
    assert 15.0 < first <= 20.0
    assert runner.cycle() == []
    assert runner.run("bad").state == "failed"
    assert 35.0 < runner.states()[0].retry_in <= 40.0
    assert runner.states()[0].problem in [f"ValueError: no such luck; tried again in {s} s" for s in range(35, 41)]


def test_the_error_of_a_job_is_still_known_after_a_restart(store: Store) -> None:
    runner_of(store.db, Counting("bad", before=raising)).run("bad")
    state = runner_of(store.db, Counting("bad")).states()[0]
    assert state.state == "failed" and "no such luck" in state.error and state.runs == 0


def test_an_unknown_job_is_refused_by_name(store: Store) -> None:
    with pytest.raises(InvalidArgument, match="nonsense"):
        runner_of(store.db, Counting()).run("nonsense")


def test_closing_stops_at_the_next_installment_and_leaves_the_cursor(store: Store) -> None:
    job = Counting("long", end=1000, before=lambda context: runner.context.closing.set() if seen(3) else None)
    runner = runner_of(store.db, job)
    steps: list[int] = []

    def seen(count: int) -> bool:
        steps.append(1)
        return len(steps) == count

    assert runner.run("long").wrote == 3
    runner.close()
    with store.db.read() as conn:
        assert jobs.cursor(conn, "long") == {"id": 3}


def test_a_run_on_the_timer_gives_the_others_their_turn_when_its_budget_is_used(store: Store) -> None:
    runner = runner_of(store.db, Counting(end=1000, before=lambda _: time.sleep(0.005)), interval=0.02)
    assert runner.states()[0].budget_ms == 10.0
    assert 1 <= runner.cycle()[0].wrote < 1000


def test_an_installment_ends_when_a_query_or_a_write_waits(store: Store) -> None:
    context = store.context
    context.begin_step()
    assert not context.should_yield()
    with store.db.foreground:
        assert context.should_yield()
    started, go_on = threading.Event(), threading.Event()

    def slow(_: Any) -> None:
        started.set()
        go_on.wait(10)

    blocker = store.db.submit(slow)
    started.wait(10)
    waiting = store.db.submit(lambda _: None)
    assert store.db.waiting == 1 and context.should_yield()
    go_on.set()
    blocker.result(10), waiting.result(10)
    assert not context.waited_for()


def test_a_job_stands_aside_for_a_query_but_not_for_ever(store: Store) -> None:
    runner = runner_of(store.db, Counting(end=1))
    with store.db.foreground:
        assert runner.run("counting").wrote == 1


def test_a_job_stands_aside_while_an_index_is_sorted_but_not_for_ever(store: Store) -> None:
    asked: list[bool] = []

    def sorting() -> bool:
        asked.append(len(asked) < 5)
        return asked[-1]

    began: list[list[bool]] = []
    store.context.sorting = sorting
    job = Counting(end=2, before=lambda _: began.append(list(asked)))
    runner = JobRunner(store.context, [job])
    assert runner.run("counting").wrote == 2
    assert began[0] == [True] * 5 + [False] and len(began[1]) == 7
    store.context.sorting = lambda: True
    assert JobRunner(store.context, [Counting("again", end=1)]).run("again").wrote == 1


def test_the_timer_runs_on_a_steady_clock_whatever_the_node_clock_does(store: Store) -> None:
    """F2: a node clock that stands still, or goes back, does not stop housekeeping."""
    ran = threading.Event()
    runner = runner_of(store.db, Counting(before=lambda _: ran.set()), interval=0.01)
    runner.start()
    assert ran.wait(10)
    runner.close()
    assert not runner._thread or not runner._thread.is_alive()


def test_a_dry_run_leaves_no_trace_in_the_states(store: Store) -> None:
    runner = runner_of(store.db, Counting(end=0))
    before = runner.states()
    runner.run("counting", dry_run=True)
    assert runner.states() == before


def test_others_run_while_a_job_waits_for_something_outside_the_store(store: Store) -> None:
    asked, answered = threading.Event(), threading.Event()

    def ask(context: JobContext) -> None:
        with context.aside():
            asked.set()
            assert answered.wait(30.0)

    runner = runner_of(store.db, Counting("asks", before=ask), Counting("works"))
    asking = threading.Thread(target=runner.run, args=("asks",))
    asking.start()
    assert asked.wait(30.0)
    working = threading.Thread(target=runner.run, args=("works",))
    working.start()
    working.join(10.0)
    on_the_timer = threading.Thread(target=runner.cycle)
    on_the_timer.start()
    on_the_timer.join(10.0)
    waits = working.is_alive() or on_the_timer.is_alive()
    answered.set()
    for thread in (asking, working, on_the_timer):
        thread.join(30.0)
    assert not waits and [state.runs for state in runner.states()] == [1, 2]


def test_closing_waits_for_a_job_that_waits_for_something_outside_the_store(store: Store) -> None:
    asked = threading.Event()

    def ask(context: JobContext) -> None:
        with context.aside():
            asked.set()
            assert context.closing.wait(30.0)

    runner = runner_of(store.db, Counting("asks", end=1000, before=ask))
    asking = threading.Thread(target=runner.run, args=("asks",))
    asking.start()
    assert asked.wait(30.0)
    runner.close()
    assert runner.states()[0].state == "idle" and runner.states()[0].wrote == 1
    asking.join(30.0)
