"""Writes acknowledged batches until it is killed: `killed_writer.py DB`.

Each line on stdin is the number of a round: a fork opens the database, writes batches named `<round>.<n>` and prints a
line after each commit; this process, which has paid for the imports, prints the fork's pid.
"""

from __future__ import annotations

import os
import sys

from memory_node.graph import EdgeType, Kind, Node
from memory_node.storage import edges, nodes, texts, vectors
from memory_node.storage.database import Database, Transaction

ROWS = 7


def say(line: str) -> None:
    os.write(1, f"{line}\n".encode())


def batch(tx: Transaction, name: str, model: int) -> None:
    rows = [
        Node(
            id=0, kind=Kind.OBSERVATION, layer="scene", text=f"batch{name.replace('.', 'x')} row{i}", text_id=None,
            stamp=i, last_stamp=i, position=(float(i), 0.0, 0.0), metadata={"batch": name},
        )
        for i in range(ROWS)
    ]  # fmt: skip
    ids = nodes.insert_many(tx, rows)
    edges.add_many(tx, [(ids[0], id_, EdgeType.NEAR_EVENT) for id_ in ids[1:]])
    waiting = texts.unembedded(tx.conn, model, ROWS)
    text_ids = [text_id for text_id, _ in waiting]
    vectors.add_texts(tx, model, text_ids, [[1.0, float(text_id), 0.0, 0.0] for text_id in text_ids])
    if ids[0] % 3 == 0:
        nodes.archive(tx, ids[-1:])


def write(path: str, number: str) -> None:
    db = Database.open(path)
    model = db.write(lambda tx: vectors.open_model(tx, "m", 4)).id
    say("open")
    for n in range(1_000_000):
        name = f"{number}.{n}"
        db.write(lambda tx, name=name: batch(tx, name, model))
        say(name)
        if n % 20 == 19:
            db.checkpoint()


def main() -> None:
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            write(sys.argv[1], line.strip())
        say(f"pid {pid}")
        os.waitpid(pid, 0)
        say("dead")


if __name__ == "__main__":
    main()
