"""What a stored row takes of resident memory, in a process of its own whose heap nothing else has torn."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROWS = """
import os, sys
from pathlib import Path
from memory_node.memory import Memory
from memory_node.process import share_heap

def resident():
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")

share_heap()
settings = {"fold_repeats": True, "flush_batch_size": 50, "working_memory_size": 200}
with Memory.open(sys.argv[1], settings=settings) as memory:
    for i in range(40_000):
        memory.record(f"view {i}", layer="scene", position=(i * 0.01, 1.0, 0.0))
        if i == 15_999:
            memory.flush()
            before = resident()
    memory.flush()
    print(round((resident() - before) / 24_000))
"""


def test_f48_a_row_takes_little_memory_once_the_caches_are_full(tmp_path: Path) -> None:
    """79 bytes are its columns, some 40 their orders and places, 80 what tells its repeats; the rest the heap tears."""
    ran = subprocess.run(
        [sys.executable, "-c", ROWS, str(tmp_path / "rows.db")], capture_output=True, text=True, timeout=300
    )
    assert ran.returncode == 0, ran.stderr
    assert int(ran.stdout) < 550
