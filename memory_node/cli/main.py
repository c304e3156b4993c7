"""The `memory` command: replay, query, inspect, export, check, backup, tools."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence

from memory_node.cli import commands
from memory_node.errors import MemoryNodeError
from memory_node.tools.catalogue import FORMATS


def main(args: Sequence[str] | None = None) -> int:
    """Run one command; returns 0, or 1 with one line on standard error when it could not be done."""
    chosen = parser().parse_args(args)
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    try:
        return int(chosen.run(chosen))
    except BrokenPipeError:
        # Whoever read has enough; what is left in the buffer must not fail at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (MemoryNodeError, OSError) as error:
        print(f"memory {chosen.command}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command; the README's table is compared with it."""
    top = argparse.ArgumentParser(prog="memory", description="Look into and work with a robot's memory.")
    sub = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    replay = _add(sub, "replay", commands.replay, "remember a rosbag2 folder, without ROS")
    replay.add_argument("bag", help="folder of the recording")
    replay.add_argument("--db", required=True, help="database to write")
    replay.add_argument("--config", required=True, help="parameter file of the node; its layers and settings hold")
    replay.add_argument("--no-model", action="store_true", help="words, place and time only")

    query = _add(sub, "query", commands.query, "ask a tool")
    query.add_argument("db", help="database")
    query.add_argument("tool", help="name of the tool, such as semantic_search")
    query.add_argument("arguments", nargs="?", default="{}", help='JSON, such as \'{"query": "red chair"}\'')
    query.add_argument("--no-model", action="store_true", help="by words only")

    inspect = _add(sub, "inspect", commands.inspect, "show counts and sizes, or one node with its edges")
    inspect.add_argument("db", help="database")
    inspect.add_argument("id", nargs="?", type=int, help="id of a node")

    export = _add(sub, "export", commands.export, "write every node with its edges as JSON lines")
    export.add_argument("db", help="database")
    export.add_argument("--to", help="file; standard output when not given")

    check = _add(sub, "check", commands.check, "check the file and what it holds")
    check.add_argument("db", help="database")

    backup = _add(sub, "backup", commands.backup, "copy a database, also while it is being written")
    backup.add_argument("db", help="database")
    backup.add_argument("to", help="file to write")

    tools = _add(sub, "tools", commands.tools, "print the definitions of the tools for a language model")
    tools.add_argument("--format", choices=FORMATS, default="text")
    tools.add_argument("--only", default="", help="names, divided by commas")
    return top


def _add(
    sub: argparse._SubParsersAction[argparse.ArgumentParser], name: str, run: commands.Command, help: str
) -> argparse.ArgumentParser:
    parser = sub.add_parser(name, help=help, description=help)
    parser.set_defaults(run=run)
    return parser


if __name__ == "__main__":
    sys.exit(main())
