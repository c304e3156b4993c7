"""The working buffer: rows on their way to a commit, never older than `flush_interval`."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from memory_node.errors import ClosedError, ConstraintError, MemoryNodeError, StorageError
from memory_node.graph import Look, Node

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memory_node.config import Settings

logger = logging.getLogger(__name__)

_FAILURES_KEPT = 100  # of each thread that adds and never flushes
_AGAIN = 0.1  # s until a batch is tried again; SQLite itself has waited for the lock before
_REPORT_EVERY = 30.0  # s between two reports of rows that were lost: a disk that is full refuses hundreds a second
_HELD_UP = "another process has locked the database; the rows wait and are written once it lets go"


@dataclass(frozen=True)
class Repeat:
    """A reading that is counted on a row that is stored already (or is ahead of it in the buffer).

    Attributes:
        node: the reading under the row's id, so that it becomes the row when the one ahead of it was refused.
        vector: of its text, float32 (dim,), or None.
    """

    node: Node
    vector: NDArray[np.float32] | None = None


@dataclass(frozen=True)
class Entry:
    """What one call brings: new rows, repeats of known rows, the look they came from, and vectors given by the caller.

    Attributes:
        vectors: one float32 vector of length dim for each of nodes, or None.
        internal: the rows are interoception.
    """

    nodes: tuple[Node, ...] = ()
    repeats: tuple[Repeat, ...] = ()
    look: Look | None = None
    vectors: tuple[NDArray[np.float32] | None, ...] | None = None
    internal: bool = False


@dataclass
class _Owner:
    """What one thread added: the number of its newest entry, and the errors by number that it was not told of yet."""

    newest: int = 0
    failures: dict[int, MemoryNodeError] = field(default_factory=dict)


class WorkingBuffer:
    """Collects entries and commits them in batches from a thread of its own.

    A batch starts when `flush_batch_size` rows wait, or the oldest has waited `flush_interval` (steady clock), or
    somebody flushes. Whoever adds while `working_memory_size` rows wait behind the batch that is being written is held
    up until the disk has caught up. While another program holds SQLite's lock a batch is tried again and again.

    Args:
        commit: writes entries in one transaction; raises when nothing of them was written.
        settings: returns the present settings.
    """

    def __init__(self, commit: Callable[[Sequence[Entry]], None], settings: Callable[[], Settings]) -> None:
        self._commit = commit
        self._settings = settings
        self._state = threading.Condition()
        self._entries: deque[tuple[Entry, _Owner]] = deque()
        self._owners = threading.local()
        self._rows = 0
        self._writing = 0  # those of them that are in the batch at hand
        self._oldest = 0.0
        self._added = 0
        self._done = 0
        self._wanted = 0
        self._untold: MemoryNodeError | None = None
        self._tries = 0  # attempts since the start that met a lock
        self._held_up = False  # whether the last one did
        self._closing = False
        self.refused = 0
        """Rows that could not be committed since the start."""
        self._refusals: list[Entry] = []
        self._unreported = 0
        self._report_at = 0.0
        self._thread = threading.Thread(target=self._run, name="memory-buffer", daemon=True)
        self._thread.start()

    def __len__(self) -> int:
        """Rows that wait for their commit."""
        return self._rows

    def add(self, entry: Entry) -> int:
        """Append an entry of the calling thread; returns its number. Raises ClosedError after close."""
        owner = self._owner()
        weight = max(1, len(entry.nodes) + len(entry.repeats))
        with self._state:
            while self._waits(weight) and not self._closing:
                self._wanted = self._added
                self._state.notify_all()
                self._state.wait()
            if self._closing:
                raise ClosedError("the memory is closed")
            if not self._entries:
                self._oldest = time.monotonic()
            self._entries.append((entry, owner))
            self._rows += weight
            self._added += 1
            owner.newest = self._added
            if len(self._entries) == 1 or self._rows - self._writing >= self._settings().flush_batch_size:
                self._state.notify_all()
            return self._added

    def flush(self) -> None:
        """Wait until everything added so far is committed.

        Raises:
            StorageError: rows that this thread added since its last flush, or any thread since anybody's last flush,
                could not be written; they are counted in `refused`. Or the database is locked, and they still wait.
        """
        if not self.drain():
            raise StorageError(_HELD_UP)
        with self._state:
            own = self._owner().failures
            error = next(iter(own.values()), self._untold)
            own.clear()
            self._untold = None
        if error:
            raise error

    def commit_own(self) -> None:
        """Wait until the entry that this thread added last is committed; raise when it was refused, not of others."""
        owner = self._owner()
        if not self.wait(owner.newest):
            raise StorageError(_HELD_UP)
        with self._state:
            error = owner.failures.pop(owner.newest, None)
            if error is self._untold:
                self._untold = None
        if error:
            raise error

    def wait_own(self) -> None:
        """Wait until what the calling thread added has left the buffer, but not for a lock of another program."""
        if not self._held_up:
            self.wait(self._owner().newest)

    def take_refusals(self) -> list[Entry]:
        """Return the entries that were refused since the last call."""
        if not self._refusals:
            return []
        with self._state:
            taken, self._refusals = self._refusals, []
        return taken

    def drain(self) -> bool:
        """Wait until everything added so far has left the buffer; the next flush tells what was refused. See `wait`."""
        return self.wait(self._added)

    def wait(self, number: int) -> bool:
        """Wait until entry `number` has left the buffer, written or refused; False when a lock holds it up."""
        if self._done >= number:
            return True
        with self._state:
            tries = self._tries
            self._wanted = max(self._wanted, number)
            self._state.notify_all()
            self._state.wait_for(lambda: self._done >= number or self._tries > tries)
            return self._done >= number

    def close(self) -> None:
        """Commit what waits and end the thread."""
        with self._state:
            self._closing = True
            self._wanted = self._added
            self._state.notify_all()
        self._thread.join()
        if self._unreported:
            logger.error("%d rows more could not be stored", self._unreported)
            self._unreported = 0

    def _owner(self) -> _Owner:
        owner: _Owner | None = getattr(self._owners, "owner", None)
        if owner is None:
            owner = self._owners.owner = _Owner()
        return owner

    def _waits(self, weight: int) -> bool:
        """Whether there is no room for so many rows more; an empty buffer takes any entry."""
        waiting = self._rows - self._writing
        return bool(waiting) and waiting + weight > self._settings().working_memory_size

    def _run(self) -> None:
        while True:
            batch = self._next_batch()
            if not batch:
                return
            failures = self._write([entry for entry, _ in batch])
            with self._state:
                for place, error in failures.items():
                    entry, owner = batch[place]
                    self._remember(owner, self._done + 1 + place, error)
                    self._refusals.append(entry)
                self._done += len(batch)
                self._rows -= self._writing
                self._writing = 0
                self._state.notify_all()

    def _next_batch(self) -> list[tuple[Entry, _Owner]]:
        """Wait for a reason to write; an empty list means closed and empty."""
        with self._state:
            while True:
                if self._entries:
                    settings = self._settings()
                    due = self._oldest + settings.flush_interval - time.monotonic()
                    full = self._rows >= min(settings.flush_batch_size, settings.working_memory_size)
                    if full or due <= 0 or self._wanted > self._done:
                        batch = list(self._entries)
                        self._entries.clear()
                        self._writing = self._rows
                        self._state.notify_all()
                        return batch
                    self._state.wait(due)
                elif self._closing:
                    return []
                else:
                    self._state.wait()

    def _write(self, batch: list[Entry]) -> dict[int, MemoryNodeError]:
        """Commit a batch; one bad entry does not take the others with it. Returns errors by place in the batch."""
        try:
            self._commit_patiently(batch)
            return {}
        except Exception as error:
            # The disk, not an entry: trying one by one would fail the same way.
            of_the_disk = isinstance(error, StorageError) and not isinstance(error, ConstraintError)
            if of_the_disk or len(batch) == 1:
                failed = dict.fromkeys(range(len(batch)), _as_storage_error(error))
            else:
                failed = self._write_singly(batch)
        lost = sum(len(batch[place].nodes) + len(batch[place].repeats) for place in failed)
        self.refused += lost
        if failed:
            self._report(lost, next(iter(failed.values())))
        return failed

    def _report(self, lost: int, error: MemoryNodeError) -> None:
        self._unreported += lost
        if time.monotonic() >= self._report_at:
            logger.error("%d rows could not be stored: %s", self._unreported, error)
            self._unreported, self._report_at = 0, time.monotonic() + _REPORT_EVERY

    def _commit_patiently(self, entries: list[Entry]) -> None:
        """Commit, however long another program holds SQLite's lock; a memory that closes tries once more."""
        while True:
            last = self._closing
            try:
                self._commit(entries)
                self._held_up = False
                return
            except StorageError as error:
                if last or "is locked" not in str(error):
                    self._held_up = False
                    raise
                with self._state:
                    if not self._held_up:
                        logger.warning("%d rows wait: %s", self._writing, error)
                    self._held_up = True
                    self._tries += 1
                    self._state.notify_all()
                time.sleep(_AGAIN)

    def _write_singly(self, batch: list[Entry]) -> dict[int, MemoryNodeError]:
        failed: dict[int, MemoryNodeError] = {}
        for place, entry in enumerate(batch):
            try:
                self._commit_patiently([entry])
            except Exception as error:
                failed[place] = _as_storage_error(error)
        return failed

    def _remember(self, owner: _Owner, number: int, error: MemoryNodeError) -> None:
        owner.failures[number] = error
        while len(owner.failures) > _FAILURES_KEPT:
            owner.failures.pop(next(iter(owner.failures)))
        self._untold = self._untold or error


def _as_storage_error(error: Exception) -> MemoryNodeError:
    if isinstance(error, MemoryNodeError):
        return error
    wrapped = StorageError(f"{type(error).__name__}: {error}")
    wrapped.__cause__ = error
    return wrapped
