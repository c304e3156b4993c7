"""SQLite connections: how they are opened and tuned, and one read connection a thread."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from memory_node.errors import ClosedError, StorageError

BUSY_TIMEOUT_MS = 10_000
WRITER_CACHE_KIB = 4 * 1024
READER_CACHE_KIB = 2 * 1024  # of each thread; behind it is the page cache of the system
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
        conn.execute(f"PRAGMA cache_size = -{READER_CACHE_KIB}")
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
    """A thread's read connection; depth counts the open blocks of `Readers.snapshot`."""

    def __init__(self, conn: sqlite3.Connection, owner: threading.Thread) -> None:
        self.conn = conn
        self.owner = owner
        self.depth = 0


class Readers:
    """Read connections, one a thread, opened when a thread first reads and closed when it has died."""

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        self._connect = connect
        self._local = threading.local()
        self._lock = threading.Lock()
        self._open: list[_Reader] = []
        self._closed = False

    def __len__(self) -> int:
        return len(self._open)

    @contextmanager
    def snapshot(self) -> Iterator[sqlite3.Connection]:
        """Yield this thread's connection; every read inside sees the database as of the first one. Nests.

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
        with self._lock:
            self._closed = True
            for reader in self._open:
                if reader.depth:
                    reader.conn.interrupt()
                else:
                    reader.conn.close()
            self._open = [reader for reader in self._open if reader.depth]

    def _enter(self) -> _Reader:
        reader: _Reader | None = getattr(self._local, "reader", None)
        with self._lock:
            if self._closed:
                raise ClosedError("the database is closed")
            if reader is None:
                self._sweep()
                reader = _Reader(self._connected(), threading.current_thread())
                self._open.append(reader)
                self._local.reader = reader
            reader.depth += 1
        return reader

    def _leave(self, reader: _Reader) -> None:
        try:
            if reader.depth == 1 and reader.conn.in_transaction:
                reader.conn.execute("ROLLBACK")
        finally:
            with self._lock:
                reader.depth -= 1
                if self._closed and not reader.depth:
                    reader.conn.close()
                    self._open.remove(reader)

    def _connected(self) -> sqlite3.Connection:
        try:
            return self._connect()
        except sqlite3.Error as error:
            raise StorageError(str(error)) from error

    def _sweep(self) -> None:
        for reader in self._open:
            if not reader.owner.is_alive():
                reader.conn.close()
        self._open = [reader for reader in self._open if reader.owner.is_alive()]
