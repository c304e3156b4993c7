"""A lock that lets those in a hurry go first."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

_PATIENCE = 0.05  # s; one that can wait waits no longer than this for a gap between those that cannot


class Gate:
    """One holder at a time. `soon` goes before `later`: a stream of long holds never keeps a short one waiting."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._held = False
        self._hurried = 0

    @contextmanager
    def soon(self) -> Iterator[None]:
        """Hold it as soon as the present holder lets go."""
        with self._condition:
            self._hurried += 1
            while self._held:
                self._condition.wait()
            self._hurried -= 1
            self._held = True
        yield from self._hold()

    @contextmanager
    def later(self) -> Iterator[None]:
        """Hold it when nobody in a hurry waits, or after a while of waiting."""
        patience = time.monotonic() + _PATIENCE
        with self._condition:
            while self._held or (self._hurried and time.monotonic() < patience):
                self._condition.wait(_PATIENCE)
            self._held = True
        yield from self._hold()

    def _hold(self) -> Iterator[None]:
        try:
            yield
        finally:
            with self._condition:
                self._held = False
                self._condition.notify_all()
