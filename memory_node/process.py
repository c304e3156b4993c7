"""Sets up a process in which nothing matters but the memory: its heap, and what it imports."""

from __future__ import annotations

import ctypes
import gc
import importlib

_AT_FIRST_USE = ("hnswlib", "rtree", "scipy.optimize", "scipy.cluster.hierarchy", "sklearn.cluster")
_ARENA_MAX, _ARENAS = -8, 2  # mallopt's M_ARENA_MAX


def share_heap() -> None:
    """Let all threads that are started from now on allocate from two heaps, where the C library is glibc.

    It would make one for each of some dozen threads, and each keeps from the others what its thread freed: 10 MB within
    the first 20 s of a busy node, and more later.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_ARENA_MAX, _ARENAS)


def preload() -> None:
    """Make a process ready in which nothing matters but the memory, such as the node's.

    Imported is what is imported at first use otherwise, a second or two in which Python does nothing else.
    """
    for name in _AT_FIRST_USE:
        importlib.import_module(name)
    if not gc.get_freeze_count():
        settle_heap()


def settle_heap() -> None:
    """Never again look through what is there by now for garbage.

    Modules and a model are some hundred thousand objects: looking through them takes 50 to 100 ms each time, in which
    nobody is answered.
    """
    gc.unfreeze()  # what lasted until the last time may be garbage by now
    gc.collect()
    gc.freeze()
