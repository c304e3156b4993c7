"""How jobs run: in installments of at most 50 ms that give way to whoever waits, one job at a time.

A job commits the writes and the cursor of an installment in one transaction, so a killed process goes on where it was.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from memory_node.errors import InvalidArgument, MemoryNodeError
from memory_node.storage import jobs as job_table

if TYPE_CHECKING:
    from memory_node.config import Settings
    from memory_node.protocols import Summarizer
    from memory_node.storage.database import Database

log = logging.getLogger(__name__)

INSTALLMENT = 0.05
"""s: the longest that a job works in one go."""
PATIENCE = 0.25
"""s: the longest that a job waits for the doors to be quiet; under a flood of queries it must still come on."""
MAX_BACKOFF = 3600.0
"""s: the longest a failing job rests before it is tried again."""


@dataclass(frozen=True)
class StepResult:
    """What one installment did.

    Attributes:
        scanned: rows read.
        wrote: rows written, the cursor's own row not counted.
        done: nothing is left that is due now.
        found: what a dry run found, in the job's own records.
        problem: what failed of the work while the rest was done. The run ends as failed, but the job need not rest: it
            sees to it itself that it does not try the same again at once.
        retry_in: s until it tries again the first of that; 0: at its next turn.
    """

    scanned: int = 0
    wrote: int = 0
    done: bool = True
    found: tuple[Any, ...] = ()
    problem: str = ""
    retry_in: float = 0.0


@dataclass
class JobContext:
    """What a job may use.

    Attributes:
        db: the store.
        settings: the settings as they are now.
        now_ns: the node's clock, ns.
        session_id: id of the present session; looks at the clock first, so that a jump has opened a new one.
        summarizer: the language model, or None: extractive gists only.
        similar: texts of a layer's long-term observations, of which a part has at least that cosine to a vector; called
            with vector, cosine and layer id. None: no embedder.
        save_index: writes the caches of the indexes when they have changed, and tells whether it did.
        sorting: whether an index is being sorted anew. Jobs stand aside meanwhile, because a query would have to share
            two processors with both.
        aside: around waiting for something outside the store: other jobs may run meanwhile, so what was read before has
            to be looked at again.
        forced: somebody asked for this run, so nothing is held back to be done in one go later.
        dry_run: tell what would be done, write nothing.
        run: number of this run of the job.
        present, now: session and time (ns) of this installment.
    """

    db: Database
    settings: Callable[[], Settings]
    now_ns: Callable[[], int]
    session_id: Callable[[], int]
    summarizer: Summarizer | None = None
    similar: Callable[[Any, float, int], Sequence[int]] | None = None
    save_index: Callable[[], bool] = lambda: False
    sorting: Callable[[], bool] = lambda: False
    aside: Callable[[], AbstractContextManager[None]] = nullcontext
    closing: threading.Event = field(default_factory=threading.Event)
    forced: bool = True
    dry_run: bool = False
    run: int = 0
    present: int = 0
    now: int = 0
    deadline: float = 0.0

    def begin_step(self) -> None:
        """Start the time of an installment; look at the clock, outside any snapshot of the database."""
        self.present, self.now = self.session_id(), self.now_ns()
        # A jump between the two would make every row of the session look older than it is.
        while (present := self.session_id()) != self.present:
            self.present, self.now = present, self.now_ns()
        self.deadline = time.monotonic() + INSTALLMENT

    def should_yield(self) -> bool:
        """Tell whether an installment must come to its end: time is up, somebody waits, or the memory closes."""
        return self.waited_for() or self.closing.is_set() or time.monotonic() >= self.deadline

    def waited_for(self) -> bool:
        """Tell whether a write or a query waits."""
        return self.db.waiting > 0 or self.db.foreground.busy


class Job(Protocol):
    """One kind of housekeeping. step does an installment: at least one small unit of work when there is any."""

    name: str

    def step(self, context: JobContext) -> StepResult:
        """Work until context.should_yield(); leave everything committed. May raise: the run ends as failed."""
        ...


@dataclass(frozen=True)
class JobState:
    """State of one job, with the fields of JobStatus: times in ns of the node's clock, 0 when it never ran.

    Attributes:
        state: idle, running or failed.
        budget_ms: time a run on the timer may take before the others get their turn.
        cursor: id up to which its work is done; 0: nothing yet, or it keeps no such cursor.
        retry_in: s until what failed is tried again by the timer; 0: at the job's next turn.
    """

    name: str
    state: str = "idle"
    last_run: int = 0
    runs: int = 0
    scanned: int = 0
    wrote: int = 0
    budget_ms: float = 0.0
    used_ms: float = 0.0
    cursor: int = 0
    error: str = ""
    retry_in: float = 0.0
    found: tuple[Any, ...] = ()

    @property
    def problem(self) -> str:
        """The error and when the timer runs the job again; "" without an error."""
        return f"{self.error}; tried again in {self.retry_in:.0f} s" if self.error and self.retry_in else self.error


class JobRunner:
    """Runs jobs in the order they are given, on request or on a steady clock's timer. Safe to use from any thread."""

    def __init__(self, context: JobContext, jobs: Sequence[Job], interval: float = 60.0) -> None:
        """interval: s between two cycles; a job's run on the timer takes at most half of it."""
        self.context = context
        self.jobs = {job.name: job for job in jobs}
        self._interval = interval
        self._one_at_a_time = threading.Lock()
        self._running = {name: threading.Lock() for name in self.jobs}
        self._thread: threading.Thread | None = None
        self._failures: dict[str, int] = {}
        self._retry_at: dict[str, float] = {}
        self._told_retry_at: dict[str, float] = {}
        budget = interval * 500.0
        self._states = {name: replace(self._restored(name), budget_ms=budget) for name in self.jobs}

    def run(self, name: str, *, forced: bool = True, dry_run: bool = False) -> JobState:
        """Run one job to its end and return its state; a job that raised has state "failed" and its error.

        Raises:
            InvalidArgument: there is no such job.
        """
        if not isinstance(name, str) or name not in self.jobs:
            raise InvalidArgument("name", f"no job {name!r}; there are {', '.join(self.jobs)}")
        context = replace(self.context, forced=forced, dry_run=dry_run, aside=self._aside)
        with self._running[name], self._one_at_a_time:
            return self._run(self.jobs[name], context)

    def run_all(self, *, forced: bool = True) -> list[JobState]:
        """Run every job once, in order; one that fails leaves the others running."""
        return [self.run(name, forced=forced) for name in self.jobs]

    def cycle(self) -> list[JobState]:
        """Run what the timer runs: every job that neither runs nor rests after a failure, nothing forced."""
        states = []
        for name in self.jobs:
            if self.context.closing.is_set():
                break
            if time.monotonic() >= self._retry_at.get(name, 0.0) and not self._running[name].locked():
                states.append(self.run(name, forced=False))
        return states

    def start(self) -> None:
        """Run a cycle each interval of the steady clock, in a thread, until close()."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._loop, name="housekeeping", daemon=True)
            self._thread.start()

    def states(self) -> list[JobState]:
        """Return the state of every job, in the order they run."""
        now = time.monotonic()
        retry_at = {**self._told_retry_at, **self._retry_at}
        return [replace(self._states[name], retry_in=max(0.0, retry_at.get(name, now) - now)) for name in self.jobs]

    def close(self) -> None:
        """Stop at the next installment and wait for it; cursors stay where they are."""
        self.context.closing.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        for running in self._running.values():
            with running:
                pass

    @contextmanager
    def _aside(self) -> Iterator[None]:
        self._one_at_a_time.release()
        try:
            yield
        finally:
            self._one_at_a_time.acquire()

    def _loop(self) -> None:
        while not self.context.closing.wait(self._interval):
            self.cycle()

    def _restored(self, name: str) -> JobState:
        with self.context.db.read() as conn:
            row = job_table.load(conn, name)
        return JobState(
            name, state="failed" if row.error else "idle", last_run=row.last_run or 0, scanned=row.scanned,
            wrote=row.wrote, used_ms=row.used_ms, cursor=_position(row.cursor), error=row.error,
        )

    def _run(self, job: Job, context: JobContext) -> JobState:
        before = self._states[job.name]
        state = replace(before, state="running", last_run=context.now_ns(), runs=before.runs + 1)
        context.run = state.runs
        if not context.dry_run:
            self._states[job.name] = state
        scanned = wrote = 0
        found: tuple[Any, ...] = ()
        error, retry_in = "", 0.0
        raised = False
        used = 0.0
        try:
            while not context.closing.is_set():
                self._stand_aside(context)
                began = time.monotonic()
                context.begin_step()
                result = job.step(context)
                used += (time.monotonic() - began) * 1000.0
                scanned, wrote, found = scanned + result.scanned, wrote + result.wrote, found + result.found
                error, retry_in = result.problem, result.retry_in
                if result.done or (not context.forced and used >= state.budget_ms):
                    break
        except Exception as problem:  # one kind of job failing must leave the others and the node running
            error, raised = f"{type(problem).__name__}: {problem}", True
            if error != before.error:
                log.warning("job %s failed: %s", job.name, error, exc_info=True)
        state = replace(
            state, state="failed" if error else "idle", scanned=scanned, wrote=wrote, used_ms=used, error=error
        )
        if context.dry_run:
            return replace(state, found=found)
        self._rest(state.name, raised)
        self._told_retry_at[state.name] = time.monotonic() + retry_in
        if state.wrote or state.error != before.error:
            state = self._keep(state)
        self._states[job.name] = state
        return replace(state, found=found)

    def _rest(self, name: str, raised: bool) -> None:
        """Let a job that raised rest, the longer the more often it did."""
        if raised:
            self._failures[name] = self._failures.get(name, 0) + 1
            rest = min(MAX_BACKOFF, self._interval * 2.0 ** self._failures[name])
            self._retry_at[name] = time.monotonic() + rest
        else:
            self._failures.pop(name, None)
            self._retry_at.pop(name, None)

    def _keep(self, state: JobState) -> JobState:
        """Log and store a run that did something or ended otherwise than the last; the others leave no trace."""
        name, db = state.name, self.context.db
        if state.wrote:
            log.info("job %s: read %d rows, wrote %d in %.0f ms", name, state.scanned, state.wrote, state.used_ms)
        row = job_table.JobRow(
            name, {}, state.last_run, state.runs, state.scanned, state.wrote, state.used_ms, state.error
        )
        try:
            db.write(lambda tx: job_table.record(tx, row))
            with db.read() as conn:
                return replace(state, cursor=_position(job_table.cursor(conn, name)))
        except MemoryNodeError as problem:  # such as a full disk, which may be why the job failed
            log.warning("the state of job %s was not stored: %s", name, problem)
            return state

    @staticmethod
    def _stand_aside(context: JobContext) -> None:
        patience = time.monotonic() + PATIENCE
        while context.waited_for() or context.sorting():
            if time.monotonic() >= patience or context.closing.is_set():
                return
            time.sleep(0.001)


def _position(cursor: Any) -> int:
    position = cursor.get("id", 0)
    return position if isinstance(position, int) else 0
