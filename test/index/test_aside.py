"""Work in a child process: what it wrote is there, why it failed is told, and it holds nothing of the parent's."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from pathlib import Path

import pytest

from memory_node.index import aside


def fail(error: BaseException) -> None:
    raise error


def test_the_child_sees_the_memory_as_it_was_and_changes_none_of_it(tmp_path: Path) -> None:
    numbers, started, go_on = [1, 2], tmp_path / "started", tmp_path / "go on"

    def work() -> None:
        started.touch()
        while not go_on.exists():
            time.sleep(0.001)
        numbers.append(9)
        (tmp_path / "seen").write_text(str(numbers), encoding="utf-8")

    child = aside.begin(work)
    numbers.append(3)
    go_on.touch()
    aside.finish(child, 30.0)
    assert started.exists() and (tmp_path / "seen").read_text(encoding="utf-8") == "[1, 2, 9]"
    assert numbers == [1, 2, 3]


def test_the_reason_of_a_failure_comes_back() -> None:
    with pytest.raises(OSError) as full:
        aside.finish(aside.begin(lambda: fail(OSError(errno.ENOSPC, "full"))), 30.0)
    assert full.value.errno == errno.ENOSPC
    with pytest.raises(OSError) as other:
        aside.finish(aside.begin(lambda: fail(ValueError("not foreseen"))), 30.0)
    assert other.value.errno == errno.EIO
    with pytest.raises(ChildProcessError, match="ended by signal 9"):
        aside.finish(aside.begin(lambda: os.kill(os.getpid(), 9)), 30.0)


def test_a_child_that_hangs_is_ended() -> None:
    child = aside.begin(lambda: time.sleep(600.0))
    with pytest.raises(TimeoutError):
        aside.finish(child, 0.1)
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


def test_the_child_does_not_keep_a_lock_of_its_parent(tmp_path: Path) -> None:
    """A process killed while its index is being written must not keep the next one from opening the memory."""
    path, started = tmp_path / "lock", tmp_path / "started"

    def work() -> None:
        started.touch()
        time.sleep(600.0)

    with open(path, "w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        child = aside.begin(work)
        while not started.exists():
            time.sleep(0.001)
    with open(path, "w") as other:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with pytest.raises(TimeoutError):
        aside.finish(child, 0.0)
