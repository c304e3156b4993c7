"""Asking a language model from a job: however slow it is, closing the memory never waits for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from memory_node.errors import ConstraintError, StorageError, SummarizerError, SummarizerUnreachable
from memory_node.housekeeping.runtime import JobContext

Answer = TypeVar("Answer")

MAX_WAIT = 300.0
"""s: the longest that one answer may take, however slowly it drips in."""
LOOK = 0.05
"""s between two looks whether the memory closes while the language model writes."""


def ask(context: JobContext, name: str, question: Callable[[], Answer]) -> Answer | None:
    """Ask in a thread of its own and return the answer; None: the memory closes.

    Other jobs may run meanwhile, so what was read before may be gone afterwards.

    Raises:
        SummarizerError: it took longer than MAX_WAIT. What question raises is raised here.
    """
    answers: list[Answer] = []
    problem: list[Exception] = []

    def work() -> None:
        try:
            answers.append(question())
        except Exception as error:
            problem.append(error)

    thread = threading.Thread(target=work, name="summarizer", daemon=True)
    thread.start()
    patience = time.monotonic() + MAX_WAIT
    with context.aside():
        while thread.is_alive():
            if context.closing.is_set():
                return None
            if time.monotonic() > patience:
                raise SummarizerError(f"{name} took longer than {MAX_WAIT:.0f} s")
            thread.join(LOOK)
    if problem:
        raise problem[0]
    return answers[0]


def is_outage(error: Exception) -> bool:
    """Tell whether an error says nothing of what was asked or written: anything else would have met the same."""
    return isinstance(error, (SummarizerUnreachable, StorageError, OSError)) and not isinstance(error, ConstraintError)
