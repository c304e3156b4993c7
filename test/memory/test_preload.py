"""What a process does before it answers, so that it never stands still later."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import gc, sys
from memory_node.process import preload
assert not gc.get_freeze_count() and "sklearn.cluster" not in sys.modules
preload()
assert "sklearn.cluster" in sys.modules
{again}
print(len(gc.get_objects()))
"""

THREADS = """
import ctypes, threading
from memory_node.process import share_heap
{share}
met = threading.Barrier(13)
def hold():
    held = bytearray(100_000)
    met.wait()
    met.wait()
for _ in range(12):
    threading.Thread(target=hold).start()
met.wait()
ctypes.CDLL(None).malloc_stats()
met.wait()
"""


def left_to_look_through(again: str) -> int:
    script = SCRIPT.format(again=again)
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=100)
    assert ran.returncode == 0, ran.stderr
    return int(ran.stdout)


def test_what_was_imported_is_not_looked_through_for_garbage_again() -> None:
    assert left_to_look_through("") < 1000 < 50_000 < left_to_look_through("gc.unfreeze()")


def test_what_comes_later_is_not_kept_alive_by_another_call() -> None:
    assert 2000 <= left_to_look_through("later = [[] for _ in range(2000)]; preload()") < 4000


def test_many_threads_share_two_heaps() -> None:
    def heaps(share: str) -> int:
        script = THREADS.format(share=share)
        ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=100)
        assert ran.returncode == 0, ran.stderr
        return ran.stderr.count("Arena ")

    assert heaps("share_heap()") <= 2 < heaps("")
