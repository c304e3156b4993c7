"""Work on a frozen copy of this process's memory, in a child process, while this one goes on.

The system copies a page only when one of the two changes it, so the child begins in milliseconds whatever it writes.
"""

from __future__ import annotations

import errno
import gc
import os
import signal
import time
import warnings
from collections.abc import Callable

PATIENCE = 300.0
"""s after which a child is taken to hang: it has no other thread that could let go of a lock."""
_POLL = 0.01


def begin(work: Callable[[], None]) -> int:
    """Start work in a child process and return its pid for `finish`. What it changes in memory is not seen here.

    The caller sees to it that nothing that work reads is half changed. Work must not start threads, take locks that
    other threads may hold, or use files that were open.

    Raises:
        OSError: there is no room for another process.
    """
    with warnings.catch_warnings():
        # Python 3.12 warns of locks that other threads hold at this moment; see above.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid:
        return pid
    code = errno.EIO
    try:
        _forsake()
        work()
        code = 0
    except OSError as error:
        code = error.errno or errno.EIO
    finally:
        os._exit(code)


def finish(pid: int, patience: float = PATIENCE) -> None:
    """Wait for the child.

    Raises:
        OSError: it failed, with its reason; TimeoutError: it hung and was ended.
    """
    until = time.monotonic() + patience
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            break
        if time.monotonic() >= until:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))
        time.sleep(_POLL)
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        raise ChildProcessError(errno.ECHILD, f"the child process was ended by signal {-code}")
    if code:
        raise OSError(code, os.strerror(code))


def _forsake() -> None:
    """Let go of all that belongs to the parent: its locks on files, its sockets, its signals, its garbage."""
    gc.disable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
