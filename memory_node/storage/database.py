"""One SQLite file: a single writer thread, a few read connections, and one id space."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager, closing
from functools import partial
from pathlib import Path
from typing import TypeVar

from memory_node.errors import InvalidArgument, ReadOnlyError, StorageError
from memory_node.storage import check, meta, recovery
from memory_node.storage.connections import SYNCHRONOUS, Readers, checkpoint, connect_reader, connect_writer
from memory_node.storage.foreground import Foreground
from memory_node.storage.lock import WriteLock
from memory_node.storage.writer import Transaction, Work, Writer

__all__ = ["Database", "Transaction"]

T = TypeVar("T")

REMOVALS_KEPT = 200_000
"""Rows of `removed` that a checkpoint leaves; a projection that missed more is built anew."""


class Database:
    """The truth of a memory. Safe to use from any number of threads; made by `Database.open`.

    Attributes:
        path: absolute path of the SQLite file.
        note: why it began empty although a file was there, or "".
        foreground: the questions being answered, each of which enters it; the writer lets them go first.
    """

    def __init__(
        self,
        path: Path,
        connect: Callable[[], sqlite3.Connection],
        writer: Writer | None,
        lock: WriteLock | None,
        foreground: Foreground,
        note: str = "",
    ) -> None:
        self.path = path
        self.note = note
        self.foreground = foreground
        self._connect = connect
        self._readers = Readers(connect)
        self._writer = writer
        self._lock = lock
        self._closing = threading.Lock()

    @classmethod
    def open(
        cls, path: str | Path, read_only: bool = False, durability: str = "normal", on_corrupt: str = "stop"
    ) -> Database:
        """Open, and unless read_only create and migrate, the database at path.

        Args:
            path: `~` is expanded; a missing folder is created unless read_only.
            read_only: works beside the process that writes, and on a folder that cannot be written.
            durability: "normal" survives a killed process, "full" also a power cut right after the commit.
            on_corrupt: a file SQLite refuses is set aside under another name; then "stop", or a "fresh" one is opened.

        Raises:
            InvalidArgument: durability or on_corrupt is none of the allowed.
            LockedError: another process has it open for writing.
            CorruptDatabaseError: SQLite refuses the file.
            StorageError: the file or folder cannot be used, or its schema is newer than this package.
        """
        _choice("durability", durability, tuple(SYNCHRONOUS))
        _choice("on_corrupt", on_corrupt, ("stop", "fresh"))
        foreground = Foreground()
        if read_only:
            place, immutable = recovery.ready_to_read(path)
            return cls(place, partial(connect_reader, place, immutable), None, None, foreground)
        place = recovery.writable(path)
        lock = WriteLock(place)
        try:
            note = recovery.ready_to_write(place, durability, on_corrupt)
            writer = Writer(place, partial(connect_writer, place, durability), foreground.give_way)
        except BaseException:
            lock.release()
            raise
        return cls(place, partial(connect_reader, place), writer, lock, foreground, note)

    @property
    def read_only(self) -> bool:
        """Whether it was opened without the right to write."""
        return self._writer is None

    @property
    def waiting(self) -> int:
        """How many writes have not begun yet."""
        return self._writer.waiting if self._writer else 0

    @property
    def revision(self) -> int:
        """Number of the last transaction that changed something; of any process, when read-only."""
        if self._writer:
            return self._writer.revision
        with self.read() as conn:
            return meta.revision(conn)

    def read(self) -> AbstractContextManager[sqlite3.Connection]:
        """Return a block that yields a read connection: one snapshot for the whole block. Nests.

        Inside a work read through `tx.conn` instead, which also sees what the work wrote.

        Raises:
            ClosedError: the database is closed.
            StorageError: SQLite failed inside the block.
        """
        return self._readers.snapshot()

    def write(self, work: Work[T]) -> T:
        """Run work(tx) in the writer thread and return its result after the commit.

        Works that wait share one commit, each in a savepoint: one that raises leaves no trace and raises here only.
        Inside a work it runs at once, in a savepoint. A work must not wait for a future of `submit`.

        Raises:
            ReadOnlyError, ClosedError: it cannot be written any more.
            StorageError: SQLite failed; "database or disk is full" means nothing of the group was stored.
        """
        return self._writing().write(work)

    def submit(self, work: Work[T]) -> Future[T]:
        """Queue work and return its future at once; raises as `write` does, SQLite's failures through the future."""
        return self._writing().submit(work)

    def new_id(self) -> int:
        """Return the next id of the one id space; once committed in a node it is never given again."""
        return self._writing().new_id()

    def add_listener(self, listener: Callable[[], None]) -> None:
        """Call listener in the writer thread after each commit that changed something, before writers are answered."""
        self._writing().add_listener(listener)

    def size_bytes(self) -> int:
        """Bytes of the pages in use: free pages, which later rows fill, are not counted."""
        with self.read() as conn:
            pages, free, size = (
                conn.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
            )
        return int((pages - free) * size)

    def wal_bytes(self) -> int:
        """Bytes of the write-ahead log."""
        try:
            return self.path.with_name(self.path.name + "-wal").stat().st_size
        except FileNotFoundError:
            return 0

    def check(self) -> list[str]:
        """Return what is wrong with the file or between its tables, one sentence each; empty when all is well."""
        with self.read() as conn:
            problems = check.problems(conn)
        if problems:
            return problems
        if self._writer:
            return self._writer.between(check.words_problems)
        # A copy in a file that SQLite removes by itself, since the check of words wants to write.
        try:
            with closing(self._connect()) as source, closing(sqlite3.connect("")) as copy:
                source.backup(copy)
                return check.words_problems(copy)
        except sqlite3.Error as error:
            raise StorageError(f"{self.path}: no room for the copy whose words are checked ({error})") from error

    def backup(self, to: str | Path) -> None:
        """Copy the database as of now to a new file, also while it is written.

        Raises:
            StorageError: the file exists already, or cannot be written; then nothing is left behind.
        """
        place = Path(to).expanduser().absolute()
        if place.exists():
            raise StorageError(f"{place}: exists already")
        part = recovery.writable(place.with_name(place.name + ".part"))
        try:
            part.unlink(missing_ok=True)
            with closing(self._connect()) as source, closing(sqlite3.connect(part)) as target:
                source.backup(target)
            recovery.sync(part)
            os.rename(part, place)
            recovery.sync(place.parent)
        except (sqlite3.Error, OSError) as error:
            part.unlink(missing_ok=True)
            raise StorageError(f"{place}: cannot be written ({error})") from error

    def checkpoint(self) -> None:
        """Move the write-ahead log into the file, as far as readers let, and forget removals of long ago."""
        writer = self._writing()
        writer.write(lambda tx: meta.prune_removed(tx.conn, REMOVALS_KEPT))
        writer.between(checkpoint)

    def close(self) -> None:
        """Commit what waits, close every connection and let go of the lock; twice is fine."""
        with self._closing:
            if self._writer:
                self._writer.stop()
            self._readers.close()
            if self._writer:
                self._writer.close()
            if self._lock:
                self._lock.release()
                self._lock = None

    def _writing(self) -> Writer:
        if self._writer is None:
            raise ReadOnlyError(f"{self.path}: opened read-only")
        return self._writer


def _choice(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise InvalidArgument(name, f"got {value!r}, allowed is one of {', '.join(allowed)}")
