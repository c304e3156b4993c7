"""Keeps the garbage collector from what a node has from its start on."""

from __future__ import annotations

import gc


def settle() -> None:
    """Take all objects that are there now for lasting ones, which no collection looks at any more.

    Imports and a model leave some hundred thousand. A full collection looks at each of them while every other thread
    waits, 50 to 100 ms on 2 cores: that is what the slowest answers of a busy node waited for.
    """
    gc.unfreeze()  # what lasted until the last time may be garbage by now
    gc.collect()
    gc.freeze()
