"""Spins nodes: the thread that takes a callback also runs it, and another goes on where it takes long.

rclpy's MultiThreadedExecutor hands each callback to another thread, and meanwhile looks at every entity again, three
times a callback. There is one interpreter lock, so each answer would wait for that.
"""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

from rclpy.context import Context
from rclpy.executors import (
    ConditionReachedException,
    Executor,
    ExternalShutdownException,
    ShutdownException,
    TimeoutException,
)
from rclpy.impl.rcutils_logger import RcutilsLogger
from rclpy.node import Node

PATIENCE = 0.02
"""s that a callback may take before another thread waits for the next one."""
THROTTLE = 30.0
"""s between two reports of callbacks that failed."""


def _never() -> bool:
    return False


def _left(until: float | None) -> float | None:
    return None if until is None else max(0.0, until - time.monotonic())


def _run(task: Any) -> None:
    """Run a callback, and raise what it raises."""
    try:
        task()
    except BaseException:  # rclpy's tasks take no SystemExit, and would be kept for good
        task.cancel()
        raise
    task.result()


class TurnsExecutor(Executor):
    """Runs as many callbacks at once as threads spin it, in whichever way; any number of them may.

    One thread has the turn: it waits for a callback and runs it. Where that takes longer than PATIENCE the turn passes
    to another, so that a callback that is slow, or hangs, keeps the others waiting for that long and no longer.
    """

    def __init__(self, *, context: Context | None = None) -> None:
        self._turn = threading.Condition()
        self._holder = 0  # the thread that has the turn; 0: none
        self._began: float | None = None  # when it began its callback (s, monotonic); None: it waits for one
        self._watched = False  # whether a thread looks at how long the callback takes; the others sleep
        super().__init__(context=context)

    def spin(self) -> None:
        """Execute callbacks until shutdown; raises what a callback raises."""
        try:
            while self.context.ok() and not self._is_shutdown:
                self._run_one(None, _never)
        finally:
            self._wake_one()

    def wake(self) -> None:
        """Let those who wait, for a callback or for the turn, look again at what they wait for."""
        super().wake()
        with self._turn:
            self._turn.notify_all()

    def wait_for_ready_callbacks(self, *args: Any, **kwargs: Any) -> Any:
        """Return the next callback, as rclpy's executors do; from then on the turn may pass."""
        found = super().wait_for_ready_callbacks(*args, **kwargs)
        with self._turn:
            self._began = time.monotonic()
            if not self._watched:
                self._turn.notify()
        return found

    def spin_once(self, timeout_sec: float | None = None) -> None:
        """Wait for the turn and a callback, for at most timeout_sec (s) in all, and run it."""
        self._spin_for(timeout_sec, _never)

    def spin_once_until_future_complete(self, future: Any, timeout_sec: float | None = None) -> None:
        """The same, and wait no longer than until a future is done."""
        future.add_done_callback(lambda _: self.wake())
        self._spin_for(timeout_sec, future.done)

    def _spin_once_until_future_complete(self, future: Any, timeout_sec: Any = None) -> None:
        """What `spin_until_future_complete` calls after Humble, with a time-out that is an object or none."""
        self._spin_for(getattr(timeout_sec, "timeout", timeout_sec), future.done)

    def _spin_for(self, timeout: float | None, condition: Callable[[], bool]) -> None:
        try:
            self._run_one(None if timeout is None or timeout < 0.0 else time.monotonic() + timeout, condition)
        finally:
            self._wake_one()

    def _run_one(self, until: float | None, condition: Callable[[], bool]) -> None:
        """Wait for the turn and for a callback, not after `until` (s, monotonic) nor once condition is true; run it."""
        me = threading.get_ident()
        if not self._take_turn(me, until, condition):
            return
        try:
            try:
                task, _, _ = self.wait_for_ready_callbacks(_left(until), None, condition)
            except (ShutdownException, TimeoutException, ConditionReachedException):
                return
            _run(task)
        finally:
            with self._turn:
                if self._holder == me:  # it will be back for more: nobody is woken
                    self._holder = 0

    def _take_turn(self, me: int, until: float | None, condition: Callable[[], bool]) -> bool:
        """Wait until nobody has the turn, or who has it has run a callback for PATIENCE; False when it gave up."""
        with self._turn:
            while self._holder not in (0, me):  # me: a callback spins
                overdue = None if self._began is None else self._began + PATIENCE - time.monotonic()
                if overdue is not None and overdue <= 0.0:
                    break
                left = _left(until)
                if left == 0.0 or condition():
                    return False
                if overdue is None or self._watched:
                    self._turn.wait(left)
                else:
                    self._watched = True
                    self._turn.wait(overdue if left is None else min(overdue, left))
                    self._watched = False
            self._holder, self._began = me, None
            return True

    def _wake_one(self) -> None:
        with self._turn:
            self._turn.notify()


class Spinner:
    """Threads that spin a node until it is closed. A callback that raises is logged, and takes no other with it.

    Args:
        threads: callbacks that may run at once; with one, each topic's messages stay in order.
        log: where failures go; the node's own logger by default.
        ended: called by each thread when the context, or the executor, is shut down from outside.
    """

    def __init__(
        self,
        node: Node,
        threads: int = 1,
        log: RcutilsLogger | None = None,
        ended: Callable[[], None] = lambda: None,
    ) -> None:
        self._context, self._log, self._ended = node.context, log or node.get_logger(), ended
        self._executor = TurnsExecutor(context=node.context)
        self._executor.add_node(node)
        self._closing = False
        name = f"spin {node.get_name()}"
        self._threads = [threading.Thread(target=self._spin, name=name, daemon=True) for _ in range(threads)]
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        """Wait until the context is shut down from outside, or `close`."""
        for thread in self._threads:
            thread.join()

    def close(self, patience: float = 1.5) -> None:
        """Stop spinning. A callback has `patience` (s) to end; one that hangs, as in a question, is left behind."""
        self._closing = True
        until = time.monotonic() + patience
        self._executor.shutdown(timeout_sec=patience)
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    def _spin(self) -> None:
        while True:
            try:
                self._executor.spin()
                break
            except ExternalShutdownException:
                break
            except BaseException:  # also SystemExit, which would end this thread without a word, and no process
                if self._closing or not self._context.ok():
                    break
                self._log.error(f"a callback failed: {traceback.format_exc()}", throttle_duration_sec=THROTTLE)
        if not self._closing:
            self._ended()
