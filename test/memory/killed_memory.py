"""Records acknowledged rows until it is killed: `killed_memory.py DB`.

Each line on stdin is the number of a round: a fork opens the memory, records rows and prints `<id> <text>` of each
after its flush; this process, which has paid for the imports, prints the fork's pid.
"""

from __future__ import annotations

import os
import sys

import hnswlib  # noqa: F401  (paid for once, before the forks)
import rtree.index  # noqa: F401
from support.fakes import FakeClock, WordEmbedder

from memory_node.index import vectors
from memory_node.memory import Memory

vectors.EXACT_BELOW = 64  # so that few rows have a graph that is built, saved and loaded


def say(line: str) -> None:
    os.write(1, f"{line}\n".encode())


def record(path: str, number: str) -> None:
    os.setpgrp()  # killed together with the process that writes the cache
    memory = Memory.open(path, embedder=WordEmbedder(), clock=FakeClock(), settings={"flush_batch_size": 3})
    say("open")
    for n in range(1_000_000):
        rows = [f"round{number}x{n}x{i} thing" for i in range(4)]
        ids = [memory.record(text, layer="scene", position=(n, i, 0.0)) for i, text in enumerate(rows)]
        memory.flush()
        for id_, text in zip(ids, rows, strict=True):
            say(f"{id_} {text}")
        if n % 5 == 4:
            memory.run_job("snapshots")


def main() -> None:
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            record(sys.argv[1], line.strip())
        say(f"pid {pid}")
        os.waitpid(pid, 0)
        say("dead")


if __name__ == "__main__":
    main()
