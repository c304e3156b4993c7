"""The one writer: a thread that runs queued works, several to a commit."""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from memory_node.errors import ClosedError, ConstraintError, StorageError
from memory_node.storage import meta
from memory_node.storage.ids import next_rowid

T = TypeVar("T")
Work = Callable[["Transaction"], T]

logger = logging.getLogger(__name__)


class Transaction:
    """What a work may use: the writing connection, the revision its rows carry, new ids, savepoints and undo.

    Attributes:
        conn: the writer's connection, inside a transaction.
        revision: number of this transaction, strictly rising; works of one commit share it.
    """

    def __init__(self, conn: sqlite3.Connection, revision: int, new_id: Callable[[], int]) -> None:
        self.conn = conn
        self.revision = revision
        self.new_id = new_id
        self._undo: list[Callable[[], None]] = []

    def on_rollback(self, undo: Callable[[], None]) -> None:
        """Have undo called, the newest first, if what was written so far in this work does not commit."""
        self._undo.append(undo)

    @contextmanager
    def nested(self) -> Iterator[Transaction]:
        """A savepoint: if the block raises, its writes are undone and the error goes on."""
        mark = len(self._undo)
        self.conn.execute("SAVEPOINT nested")
        try:
            yield self
            self.conn.execute("RELEASE nested")
        except BaseException:
            # A full disk makes SQLite roll back everything by itself; there is no savepoint left to return to.
            if self.conn.in_transaction:
                self.conn.execute("ROLLBACK TO nested")
                self.conn.execute("RELEASE nested")
            self.undo(mark)
            raise

    def undo(self, mark: int = 0) -> None:
        """Call what was registered since mark, the newest first; an undo that fails is logged and the rest goes on."""
        while len(self._undo) > mark:
            try:
                self._undo.pop()()
            except Exception:
                logger.exception("undo after a rollback failed")


class _Task:
    """A queued call and the future its caller waits on."""

    def __init__(self, call: Callable[..., Any], in_transaction: bool) -> None:
        self.call = call
        self.in_transaction = in_transaction
        self.future: Future[Any] = Future()


class Writer:
    """Runs works one after another in one thread; all that wait share a commit, each in a savepoint of its own.

    Args:
        place: the file.
        connect: opens the connection that writes to it.
        give_way: waits a moment for what goes before a commit.
    """

    def __init__(self, place: Path, connect: Callable[[], sqlite3.Connection], give_way: Callable[[], None]) -> None:
        self._connect = connect
        self._give_way = give_way
        self._conn = connect()
        self._place, self._file = place, _file_at(place)
        self._next_id = next_rowid(self._conn, "node")
        self._id_lock = threading.Lock()
        self._revision = meta.revision(self._conn)
        self._tx: Transaction | None = None
        self._listeners: list[Callable[[], None]] = []
        self._tasks: deque[_Task] = deque()
        self._wake = threading.Condition()
        self._waiting = 0
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="memory-writer", daemon=True)
        self._thread.start()

    @property
    def revision(self) -> int:
        """Number of the last transaction that committed."""
        return self._revision

    @property
    def waiting(self) -> int:
        """How many works have not begun yet."""
        return self._waiting

    def new_id(self) -> int:
        """Return the next id of the one id space; once committed in a node it is never given again."""
        with self._id_lock:
            self._next_id += 1
            return self._next_id - 1

    def add_listener(self, listener: Callable[[], None]) -> None:
        """Call listener in the writer thread after each commit that changed something, before callers are answered."""
        self._listeners.append(listener)

    def submit(self, work: Work[T]) -> Future[T]:
        """Queue work; its future has the result once it is committed. Never blocks."""
        return self._queue(_Task(work, in_transaction=True))

    def write(self, work: Work[T]) -> T:
        """Run work and return its result after the commit; inside a work it runs at once, in a savepoint."""
        if threading.current_thread() is not self._thread:
            return self.submit(work).result()
        if self._tx is None:
            raise StorageError("a listener cannot wait for a write; it may submit one")
        with self._tx.nested() as tx:
            return work(tx)

    def between(self, call: Callable[[sqlite3.Connection], T]) -> T:
        """Run call with the writing connection between two transactions."""
        return self._queue(_Task(call, in_transaction=False)).result()

    def stop(self) -> None:
        """Commit what is queued and end the thread. Further writes raise ClosedError; `close` comes after."""
        with self._wake:
            self._closed = True
            self._wake.notify()
        self._thread.join()

    def close(self) -> None:
        """Close the connection; when it is the last one SQLite folds the log into the file."""
        self._conn.close()

    def _queue(self, task: _Task) -> Future[Any]:
        with self._wake:
            if self._closed:
                raise ClosedError("the database is closed")
            self._tasks.append(task)
            self._waiting += 1
            self._wake.notify()
        return task.future

    def _run(self) -> None:
        while group := self._take():
            if group[0].in_transaction:
                self._commit(group)
            else:
                self._call(group[0])

    def _take(self) -> list[_Task]:
        """Wait for tasks; return one outside transactions, or all works up to the next such one. Empty: closed."""
        with self._wake:
            while not self._tasks and not self._closed:
                self._wake.wait()
        self._give_way()
        group: list[_Task] = []
        with self._wake:
            while self._tasks and (not group or (self._tasks[0].in_transaction and group[0].in_transaction)):
                group.append(self._tasks.popleft())
            return group

    def _begins(self, task: _Task) -> bool:
        with self._wake:
            self._waiting -= 1
        return task.future.set_running_or_notify_cancel()

    def _call(self, task: _Task) -> None:
        if not self._begins(task):
            return
        try:
            task.future.set_result(task.call(self._conn))
        except BaseException as error:
            task.future.set_exception(_told(error))

    def _commit(self, group: list[_Task]) -> None:
        begun: list[_Task] = []
        done: list[tuple[_Task, Any]] = []
        tx = Transaction(self._conn, self._revision + 1, self.new_id)
        changes = self._conn.total_changes
        try:
            self._check_file()
            self._conn.execute("BEGIN IMMEDIATE")
            self._tx = tx
            for task in group:
                if self._begins(task):
                    begun.append(task)
                    self._work(tx, task, done)
            changed = self._conn.total_changes != changes
            if changed:
                meta.put(self._conn, "revision", tx.revision)
            self._conn.execute("COMMIT")
        except BaseException as error:
            self._tx = None
            self._roll_back()
            tx.undo()
            self._fail(group, begun, error)
            return
        self._tx = None
        if changed:
            self._revision = tx.revision
            self._tell()
        for task, result in done:
            task.future.set_result(result)

    def _check_file(self) -> None:
        """Refuse to write to a file that is not where it was: SQLite would, and all be lost with the last close."""
        if _file_at(self._place) != self._file:
            raise StorageError(
                f"{self._place}: was removed or replaced while open; nothing is stored until a new start"
            )

    def _work(self, tx: Transaction, task: _Task, done: list[tuple[_Task, Any]]) -> None:
        try:
            with tx.nested():
                result = task.call(tx)
        except BaseException as error:
            if not self._conn.in_transaction:
                raise
            task.future.set_exception(_told(error))
        else:
            done.append((task, result))

    def _roll_back(self) -> None:
        try:
            if self._conn.in_transaction:
                self._conn.execute("ROLLBACK")
        except sqlite3.Error:
            logger.exception("rollback failed; the connection is opened anew")
            self._reconnect()

    def _reconnect(self) -> None:
        # When this fails too the closed connection stays: the next group fails, rolls back and so comes here again.
        try:
            self._conn.close()
            self._conn = self._connect()
        except (sqlite3.Error, OSError):
            logger.exception("the connection could not be opened anew")

    def _fail(self, group: list[_Task], begun: list[_Task], error: BaseException) -> None:
        for task in group:
            if task not in begun and not self._begins(task):
                continue
            if not task.future.done():
                task.future.set_exception(_told(error))

    def _tell(self) -> None:
        for listener in self._listeners:
            try:
                listener()
            except Exception:
                logger.exception("a listener failed after a commit")


def _file_at(place: Path) -> int | None:
    """The number of the file that a name leads to; None: it leads to none."""
    try:
        return os.stat(place).st_ino
    except (FileNotFoundError, NotADirectoryError):
        return None


def _told(error: BaseException) -> BaseException:
    """SQLite's errors as this package's, others as they are; what the failed work still held is let go of.

    An error keeps the frames it came through, and these its cursors: each would keep a statement of the writing
    connection open, and so its tables locked, for as long as anybody keeps the error.
    """
    cause: BaseException | None = error
    while cause is not None:
        traceback.clear_frames(cause.__traceback__)
        cause = cause.__cause__ or cause.__context__
    if not isinstance(error, sqlite3.Error):
        return error
    told = (ConstraintError if isinstance(error, sqlite3.IntegrityError) else StorageError)(str(error))
    told.__cause__ = error
    return told
