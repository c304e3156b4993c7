"""Questions go first: what works in the background lets those at hand be answered."""

from __future__ import annotations

import threading

PATIENCE = 0.01
"""s that a step in the background waits for questions, about what one takes; those without a pause leave it a turn."""


class Foreground:
    """Counts the questions that are being answered; each enters it as a context manager.

    There is one interpreter lock, which a question lets go of in each search and statement: beside a thread that
    computes it waits milliseconds each time to have it back.
    """

    def __init__(self) -> None:
        self._state = threading.Condition()
        self._count = 0

    def __enter__(self) -> Foreground:
        with self._state:
            self._count += 1
        return self

    def __exit__(self, *_: object) -> None:
        with self._state:
            self._count -= 1
            if not self._count:
                self._state.notify_all()

    @property
    def busy(self) -> bool:
        """True while a question is being answered."""
        return self._count > 0

    def give_way(self) -> None:
        """Wait until no question is being answered, PATIENCE at most; for steps of some ms, before each."""
        if self._count:
            with self._state:
                self._state.wait_for(lambda: not self._count, PATIENCE)
