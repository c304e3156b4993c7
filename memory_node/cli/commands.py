"""What each `memory` command does."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path
from typing import Any, TextIO

from memory_node.errors import InvalidArgument, MemoryNodeError
from memory_node.graph import Node
from memory_node.memory import Memory
from memory_node.models.loading import local_embedder
from memory_node.storage.database import Database
from memory_node.tools import catalogue

Command = Callable[[argparse.Namespace], int]

_PAGE = 1000
_REFUSED = "Error: "  # how call_tool's answer begins when it is none
DEFAULT_MODEL = "all-MiniLM-L6-v2"


def replay(args: argparse.Namespace) -> int:
    """Feed a recording through the intake that the node uses."""
    from memory_node.cli.replay import replay_bag

    counts = replay_bag(args.bag, args.db, args.config, None if args.no_model else DEFAULT_MODEL)
    print(json.dumps(counts, indent=2))
    return 0


def query(args: argparse.Namespace) -> int:
    """Ask a tool and print its text."""
    try:
        arguments = json.loads(args.arguments)
    except json.JSONDecodeError as error:
        raise InvalidArgument("arguments", f"is not JSON: {error}") from None
    catalogue.tool(args.tool)
    with closing(Database.open(args.db, read_only=True)):
        pass  # a wrong name or file is told before the model is loaded, which takes seconds
    embedder = None if args.no_model else local_embedder(DEFAULT_MODEL)
    if embedder is not None:
        embedder.wait(120.0)
    with Memory.open(args.db, embedder=embedder, read_only=True) as memory:
        answer = memory.call_tool(args.tool, arguments)
    if answer.startswith(_REFUSED):
        raise MemoryNodeError(answer.removeprefix(_REFUSED))
    print(answer)
    return 0


def inspect(args: argparse.Namespace) -> int:
    """Print the state of a database, or one node."""
    with Memory.open(args.db, read_only=True) as memory:
        if args.id is None:
            print(json.dumps(dataclasses.asdict(memory.status()), indent=2, default=str))
            return 0
        found = memory.nodes(after_id=args.id - 1, limit=1)
        if not found or found[0].id != args.id:
            raise InvalidArgument("id", f"there is no node {args.id}")
        print(json.dumps(_as_json(memory, found[0]), indent=2, ensure_ascii=False))
    return 0


def export(args: argparse.Namespace) -> int:
    """Write all nodes, a JSON object a line, with the edges that begin at them."""
    with Memory.open(args.db, read_only=True) as memory, _writing(args.to) as out:
        after = 0
        while page := memory.nodes(after_id=after, limit=_PAGE):
            for node in page:
                print(json.dumps(_as_json(memory, node), ensure_ascii=False), file=out)
            after = page[-1].id
    return 0


def check(args: argparse.Namespace) -> int:
    """Print what is wrong with a database; 1 when anything is."""
    with closing(Database.open(args.db, read_only=True)) as db:  # a memory would read rows, which may be damaged
        faults = db.check()
    for fault in faults:
        print(fault)
    if not faults:
        print("ok")
    return 1 if faults else 0


def backup(args: argparse.Namespace) -> int:
    """Copy a database."""
    with Memory.open(args.db, read_only=True) as memory:
        memory.backup(args.to)
    print(f"wrote {args.to}")
    return 0


def tools(args: argparse.Namespace) -> int:
    """Print definitions for a planner's prompt."""
    only = [name.strip() for name in args.only.split(",") if name.strip()]
    print(catalogue.render(args.format, only))
    return 0


def _writing(path: str | None) -> AbstractContextManager[TextIO]:
    return Path(path).open("w", encoding="utf-8") if path else nullcontext(sys.stdout)


def _as_json(memory: Memory, node: Node) -> dict[str, Any]:
    row = node._asdict()
    row.update(kind=node.kind.label, tier=node.tier.label, position_source=node.position_source.label)
    row["metadata"] = dict(node.metadata)
    row["edges"] = [
        {"type": edge.type.name, "target": edge.target, "count": edge.count}
        for edge in memory.edges(node.id)
        if edge.source == node.id
    ]
    return row
