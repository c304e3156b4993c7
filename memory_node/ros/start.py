"""Minds SIGINT and SIGTERM before anything heavy is imported, sets up the heap, then runs the node."""

from __future__ import annotations

import signal
import threading
from types import FrameType

_ARENA_MAX, _ARENAS = -8, 2  # mallopt's M_ARENA_MAX


def share_heap() -> None:
    """Let all threads that are started from now on allocate from two heaps, where the C library is glibc.

    It would make one for each of some dozen threads, and each keeps from the others what its thread freed: 10 MB within
    the first 20 s of a busy node, and more later.
    """
    import ctypes

    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_ARENA_MAX, _ARENAS)


def main(args: list[str] | None = None) -> int:
    """Run the node until it is told to stop, also while it is still importing; see `memory_node.ros.main.run`.

    args: None: those of the command line; the process then ends without returning.
    """
    stop = threading.Event()

    def handle(number: int, frame: FrameType | None) -> None:
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handle)
    share_heap()
    from memory_node.ros.main import run

    return run(stop, args)


if __name__ == "__main__":
    raise SystemExit(main())
