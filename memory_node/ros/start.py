"""Minds SIGINT and SIGTERM before anything heavy is imported, sets up the heap, then runs the node."""

from __future__ import annotations

import signal
import threading
from types import FrameType

from memory_node.process import share_heap


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
