"""The working buffer: what is added is committed, in order, and never waits long."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence

import pytest

from memory_node.config import Settings
from memory_node.errors import ClosedError, ConstraintError, StorageError
from memory_node.graph import Kind, Node
from memory_node.ingest.buffer import Entry, WorkingBuffer


def entry(text: str, rows: int = 1) -> Entry:
    return Entry(tuple(Node(i + 1, Kind.OBSERVATION, "scene", text, None, 0, 0) for i in range(rows)))


class Log:
    """Takes batches in place of the store; texts in `poison` make their batch fail."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.poison: set[str] = set()
        self.error: Exception = ValueError("bad row")
        self.gate = threading.Event()
        self.gate.set()

    def commit(self, entries: Sequence[Entry]) -> None:
        self.gate.wait(10.0)
        texts = [node.text or "" for one in entries for node in one.nodes]
        if self.poison & set(texts):
            raise self.error
        self.batches.append(texts)

    @property
    def texts(self) -> list[str]:
        return [text for batch in self.batches for text in batch]


def settings(**changes: object) -> Settings:
    return Settings(**{"flush_interval": 3600.0, "flush_batch_size": 1000, "working_memory_size": 1000, **changes})


def test_flush_commits_everything_added_before_it_in_order() -> None:
    log = Log()
    buffer = WorkingBuffer(log.commit, settings)
    for i in range(20):
        buffer.add(entry(str(i)))
    assert len(buffer) == 20 and log.texts == []
    buffer.flush()
    assert log.texts == [str(i) for i in range(20)] and len(buffer) == 0
    buffer.close()


def test_the_interval_commits_without_another_message() -> None:
    log, done = Log(), threading.Event()

    def commit(entries: Sequence[Entry]) -> None:
        log.commit(entries)
        done.set()

    buffer = WorkingBuffer(commit, lambda: settings(flush_interval=0.05))
    buffer.add(entry("alone"))
    assert done.wait(10.0) and log.texts == ["alone"]
    buffer.close()


def test_a_full_batch_is_committed_at_once() -> None:
    log, done = Log(), threading.Event()

    def commit(entries: Sequence[Entry]) -> None:
        log.commit(entries)
        done.set()

    buffer = WorkingBuffer(commit, lambda: settings(flush_batch_size=3))
    buffer.add(entry("a"))
    buffer.add(entry("b"))
    assert not done.wait(0.05)
    buffer.add(entry("c"))
    assert done.wait(10.0)
    buffer.close()
    assert log.batches == [["a", "b", "c"]]


def test_one_bad_entry_does_not_take_the_others_with_it() -> None:
    log = Log()
    log.poison = {"bad"}
    buffer = WorkingBuffer(log.commit, settings)
    for text in ("a", "bad", "b"):
        buffer.add(entry(text))
    with pytest.raises(StorageError, match="bad row"):
        buffer.flush()
    assert log.texts == ["a", "b"] and buffer.refused == 1
    buffer.flush()  # told once
    buffer.close()


def test_a_row_that_breaks_a_rule_of_the_schema_does_not_take_the_others_with_it() -> None:
    log = Log()
    log.poison, log.error = {"bad"}, ConstraintError("CHECK constraint failed")
    buffer = WorkingBuffer(log.commit, settings)
    for text in ("a", "bad", "b"):
        buffer.add(entry(text))
    with pytest.raises(ConstraintError, match="CHECK"):
        buffer.flush()
    assert log.texts == ["a", "b"] and buffer.refused == 1
    buffer.close()


def test_f38_a_full_disk_refuses_counts_tells_and_recovers() -> None:
    log = Log()
    log.poison, log.error = {"a", "b"}, StorageError("database or disk is full")
    buffer = WorkingBuffer(log.commit, settings)
    buffer.add(entry("a", rows=2))
    buffer.add(entry("b"))
    with pytest.raises(StorageError, match="full"):
        buffer.flush()
    assert buffer.refused == 3 and log.batches == []
    buffer.add(entry("c"))
    buffer.flush()
    assert log.texts == ["c"]
    buffer.close()


def test_f38_a_disk_that_stays_full_is_logged_at_once_then_seldom_and_with_all_that_was_lost(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, now = Log(), [1000.0]
    log.poison, log.error = {"a"}, StorageError("database or disk is full")
    buffer = WorkingBuffer(log.commit, settings)
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def lose(times: int) -> None:
        for _ in range(times):
            buffer.add(entry("a"))
            with pytest.raises(StorageError, match="full"):
                buffer.flush()

    lose(20)
    now[0] += 31.0
    lose(4)
    buffer.close()
    buffer.close()
    assert [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR] == [
        "1 rows could not be stored: database or disk is full",
        "20 rows could not be stored: database or disk is full",
        "3 rows more could not be stored",
    ]


def test_who_adds_to_a_full_buffer_waits_and_nothing_is_dropped() -> None:
    log = Log()
    log.gate.clear()
    buffer = WorkingBuffer(log.commit, lambda: settings(working_memory_size=4))
    threads = [threading.Thread(target=lambda: [buffer.add(entry("x")) for _ in range(10)]) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(0.05)
    assert any(thread.is_alive() for thread in threads) and len(buffer) <= 8  # a batch at hand, and as many behind it
    log.gate.set()
    for thread in threads:
        thread.join(10.0)
    buffer.flush()
    assert len(log.texts) == 30
    buffer.close()


def test_close_commits_and_then_refuses() -> None:
    log = Log()
    buffer = WorkingBuffer(log.commit, settings)
    buffer.add(entry("last"))
    buffer.close()
    assert log.texts == ["last"]
    with pytest.raises(ClosedError):
        buffer.add(entry("too late"))


def in_thread(work: Callable[[], None]) -> Exception | None:
    """Run work in a thread of its own; returns what it raised."""
    raised: list[Exception] = []

    def run() -> None:
        try:
            work()
        except Exception as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(10.0)
    return raised[0] if raised else None


def test_the_thread_whose_row_was_refused_is_told_whoever_flushed_before() -> None:
    log = Log()
    log.poison = {"bad"}
    buffer = WorkingBuffer(log.commit, settings)
    buffer.add(entry("bad"))
    assert isinstance(in_thread(buffer.flush), StorageError)
    assert in_thread(buffer.flush) is None  # neither its own rows nor news
    with pytest.raises(StorageError, match="bad row"):
        buffer.flush()
    buffer.flush()  # told once
    buffer.close()


def test_who_waits_for_one_row_is_told_of_that_row_alone() -> None:
    log = Log()
    log.poison = {"bad"}
    buffer = WorkingBuffer(log.commit, settings)

    def store(text: str) -> None:
        buffer.add(entry(text))
        buffer.commit_own()

    buffer.add(entry("bad"))
    assert in_thread(lambda: store("good")) is None and log.texts == ["good"]
    store("good too")
    with pytest.raises(StorageError, match="bad row"):
        store("bad")
    with pytest.raises(StorageError, match="bad row"):
        buffer.flush()  # of the first
    buffer.flush()
    buffer.close()


def test_f36_a_lock_of_another_program_loses_no_row_however_long_it_is_held() -> None:
    log = Log()
    log.poison, log.error = {"a"}, StorageError("database is locked")
    buffer = WorkingBuffer(log.commit, settings)
    buffer.add(entry("a"))
    buffer.add(entry("b"))
    with pytest.raises(StorageError, match="the rows wait"):
        buffer.flush()
    buffer.wait_own()  # who reads does not wait for it
    assert log.texts == [] and buffer.refused == 0 and len(buffer) == 2
    log.poison = set()
    buffer.flush()
    assert log.texts == ["a", "b"] and buffer.refused == 0
    log.poison = {"a"}
    buffer.add(entry("a"))
    buffer.close()  # does not wait for ever
    assert buffer.refused == 1
