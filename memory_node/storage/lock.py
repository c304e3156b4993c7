"""One process owns a database for writing: an advisory lock on a file beside it."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

from memory_node.errors import LockedError, StorageError

PATIENCE = 2.0
"""s that somebody who holds the lock is waited for."""


class WriteLock:
    """Holds `<db>.lock` from construction until `release`; the kernel lets go when the process dies.

    Raises:
        LockedError: somebody holds it; the message names the process and the file.
        StorageError: the file cannot be made, locked or written.
    """

    def __init__(self, database: Path) -> None:
        self.path = database.with_name(database.name + ".lock")
        try:
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise StorageError(f"{self.path}: cannot be opened for writing ({error.strerror})") from error
        try:
            self._take()
        except BlockingIOError:
            holder = os.pread(self._file, 32, 0).decode("ascii", "replace").strip() or "unknown"
            os.close(self._file)
            raise LockedError(f"{database}: process {holder} has it open for writing (lock file {self.path})") from None
        except OSError as error:
            os.close(self._file)
            raise StorageError(f"{self.path}: cannot be locked ({error.strerror})") from error
        try:
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, f"{os.getpid()}\n".encode("ascii"), 0)
        except OSError as error:
            os.close(self._file)
            raise StorageError(f"{self.path}: cannot be written ({error.strerror})") from error

    def _take(self) -> None:
        # A process that was killed right after it forked (index/aside.py) holds on until its child lets go.
        until = time.monotonic() + PATIENCE
        while True:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() >= until:
                    raise
                time.sleep(0.02)

    def release(self) -> None:
        """Let go. The file stays: unlinking it would let two processes hold two files of the same name."""
        os.ftruncate(self._file, 0)
        os.close(self._file)
