"""Who may call the embedder, and how long a question waits for that."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from memory_node.errors import EmbedderError

ATTENTIVE = 10.0
"""s after a question in which texts are embedded one by one: the next question waits for one at most."""
BACKLOG_PATIENCE = 0.1
"""s that the backlog lets questions go first: those that come without a pause would leave it no turn."""
QUESTION_PATIENCE = 2.0
"""s a question waits in all for the embedder to end the batch at hand, and for an answer from elsewhere; then words
answer alone."""
T = TypeVar("T")


class Turns:
    """One call of the embedder at a time; questions go before the backlog, in their order."""

    def __init__(self) -> None:
        self._state = threading.Condition()
        self._busy = False
        self._questions: deque[object] = deque()
        self._overdue = False  # the backlog has waited for long enough
        self._asked = -math.inf
        self._thread = threading.local()

    def expects_questions(self) -> bool:
        """Whether there was a question lately."""
        return time.monotonic() - self._asked < ATTENTIVE

    @contextmanager
    def patience(self) -> Iterator[None]:
        """Around all that one question asks in its thread: it waits for QUESTION_PATIENCE in all, not each time."""
        self._thread.left = QUESTION_PATIENCE
        try:
            yield
        finally:
            del self._thread.left

    @contextmanager
    def question(self) -> Iterator[float]:
        """Yield the s that the embedder may take; raises EmbedderError when the call at hand does not end in time."""
        until = time.monotonic() + getattr(self._thread, "left", QUESTION_PATIENCE)
        try:
            self._wait_as_question(until)
            yield from self._release(until - time.monotonic())
        finally:
            if hasattr(self._thread, "left"):
                self._thread.left = until - time.monotonic()

    @contextmanager
    def backlog(self) -> Iterator[None]:
        """Wait as long as it takes."""
        with self._state:
            if not self._state.wait_for(lambda: not self._busy and not self._questions, BACKLOG_PATIENCE):
                self._overdue = True
                self._state.wait_for(lambda: not self._busy)
                self._overdue = False
            self._busy = True
        yield from self._release(None)

    def _wait_as_question(self, until: float) -> None:
        with self._state:
            self._asked = time.monotonic()
            self._questions.append(turn := object())
            free = self._state.wait_for(
                lambda: not self._busy and not self._overdue and self._questions[0] is turn, until - self._asked
            )
            self._questions.remove(turn)
            if not free:
                self._state.notify_all()
                raise EmbedderError(f"the embedder is at work for more than {QUESTION_PATIENCE:g} s")
            self._busy = True

    def _release(self, given: T) -> Iterator[T]:
        try:
            yield given
        finally:
            with self._state:
                self._busy = False
                self._state.notify_all()
