"""SQLite connections: how they are opened and tuned, and those to read, which threads share."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from memory_node.errors import ClosedError, StorageError

BUSY_TIMEOUT_MS = 10_000
WRITER_CACHE_KIB = 4 * 1024
READER_CACHE_KIB, MORE_READERS_CACHE_KIB = 2 * 1024, 512  # of a connection; behind it is the system's page cache
ROOMY = 2  # connections to read that have the larger cache, and are lent first
MOST_READERS = 32  # connections to read; each holds two open files
PATIENCE = 10.0  # s a thread waits for one of them; then it is lent one more, lest threads wait for each other
WAL_LIMIT_BYTES = 64 * 1024 * 1024
SYNCHRONOUS = {"normal": "NORMAL", "full": "FULL"}


def connect_writer(path: Path, durability: str) -> sqlite3.Connection:
    """Open path for writing in WAL mode; transactions are begun by hand.

    Args:
        durability: "normal" (an acknowledged commit survives a killed process) or "full" (also a power cut).
    """
    conn = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=BUSY_TIMEOUT_MS / 1000)
    try:
        if conn.execute("PRAGMA journal_mode = WAL").fetchone()[0] != "wal":
            raise sqlite3.OperationalError("the file system cannot hold a write-ahead log")
        conn.execute(f"PRAGMA synchronous = {SYNCHRONOUS[durability]}")
        conn.execute("PRAGMA foreign_keys = ON")
        conn.execute("PRAGMA temp_store = MEMORY")
        conn.execute(f"PRAGMA cache_size = -{WRITER_CACHE_KIB}")
        conn.execute(f"PRAGMA journal_size_limit = {WAL_LIMIT_BYTES}")
    except BaseException:
        conn.close()
        raise
    return conn


def connect_reader(path: Path, immutable: bool = False) -> sqlite3.Connection:
    """Open path read-only.

    Args:
        immutable: nobody writes the file and its folder cannot be written, so SQLite must neither lock nor make -shm.
    """
    uri = path.absolute().as_uri() + ("?immutable=1" if immutable else "?mode=ro")
    conn = sqlite3.connect(
        uri, uri=True, isolation_level=None, check_same_thread=False, timeout=BUSY_TIMEOUT_MS / 1000
    )
    try:
        conn.execute("PRAGMA query_only = ON")
        conn.execute("PRAGMA temp_store = MEMORY")
        conn.execute(f"PRAGMA cache_size = -{MORE_READERS_CACHE_KIB}")
    except BaseException:
        conn.close()
        raise
    return conn


def checkpoint(conn: sqlite3.Connection) -> None:
    """Copy the log into the file: all of it and truncate when no reader is in the way, else as much as can be."""
    timeout = conn.execute("PRAGMA busy_timeout").fetchone()[0]
    conn.execute("PRAGMA busy_timeout = 0")
    try:
        busy = conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        if busy:
            conn.execute("PRAGMA wal_checkpoint(PASSIVE)")
    finally:
        conn.execute(f"PRAGMA busy_timeout = {timeout}")


class _Reader:
    """A read connection; depth counts the open blocks of the thread that has it. Roomy: with the larger cache."""

    def __init__(self, conn: sqlite3.Connection, roomy: bool) -> None:
        self.conn = conn
        self.roomy = roomy
        self.depth = 0
        if roomy:
            conn.execute(f"PRAGMA cache_size = -{READER_CACHE_KIB}")


class Readers:
    """Read connections, at most MOST_READERS: a thread has one for the length of its block, the one used last first."""

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        self._connect = connect
        self._local = threading.local()
        self._state = threading.Condition()
        self._open: set[_Reader] = set()
        self._idle: list[_Reader] = []
        self._closed = False

    def __len__(self) -> int:
        return len(self._open)

    @contextmanager
    def snapshot(self) -> Iterator[sqlite3.Connection]:
        """Yield a connection; every read inside sees the database as of the first one. Nests.

        Raises:
            ClosedError: after `close`.
            StorageError: SQLite failed inside the block.
        """
        reader = self._enter()
        try:
            if reader.depth == 1:
                reader.conn.execute("BEGIN DEFERRED")
            yield reader.conn
        except sqlite3.Error as error:
            if self._closed:
                raise ClosedError("the database was closed while it was read") from error
            raise StorageError(str(error)) from error
        finally:
            self._leave(reader)

    def close(self) -> None:
        """Close all; a connection in use is interrupted and closed by its own thread as it leaves its block."""
        with self._state:
            self._closed = True
            while self._idle:
                self._close(self._idle.pop())
            for reader in self._open:
                reader.conn.interrupt()
            self._state.notify_all()

    def _enter(self) -> _Reader:
        reader: _Reader | None = getattr(self._local, "reader", None)
        if reader is None:
            with self._state:
                self._state.wait_for(self._may_enter, PATIENCE)
                if self._closed:
                    raise ClosedError("the database is closed")
                reader = self._local.reader = self._idle.pop() if self._idle else self._connected()
        elif self._closed:
            raise ClosedError("the database is closed")
        reader.depth += 1  # of this thread alone
        return reader

    def _may_enter(self) -> bool:
        return self._closed or bool(self._idle) or len(self._open) < MOST_READERS

    def _leave(self, reader: _Reader) -> None:
        if reader.depth > 1:
            reader.depth -= 1
            return
        try:
            if reader.conn.in_transaction:
                reader.conn.execute("ROLLBACK")
        finally:
            with self._state:
                reader.depth = 0
                self._local.reader = None
                if self._closed or len(self._open) > MOST_READERS:
                    self._close(reader)
                else:
                    self._idle.append(reader)
                    self._idle.sort(key=lambda one: one.roomy)
                self._state.notify()

    def _connected(self) -> _Reader:
        try:
            reader = _Reader(self._connect(), sum(one.roomy for one in self._open) < ROOMY)
        except sqlite3.Error as error:
            raise StorageError(str(error)) from error
        self._open.add(reader)
        return reader

    def _close(self, reader: _Reader) -> None:
        reader.conn.close()
        self._open.discard(reader)
