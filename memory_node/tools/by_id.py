"""Ids as texts show them: "#12" asked for instead of words is that row."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from memory_node.retrieval import archived
from memory_node.storage import identity, nodes

if TYPE_CHECKING:
    from memory_node.graph import Node
    from memory_node.retrieval.filters import Resolved
    from memory_node.tools.context import ToolContext

_ID = re.compile(r"#(\d{1,18})", re.ASCII)


def id_in(asked: str) -> int | None:
    """Return the id that "#12" is, None for any other text."""
    match = _ID.fullmatch(asked)
    return int(match[1]) if match else None


def row_of(context: ToolContext, id_: int, resolved: Resolved) -> Node | None:
    """Return the row of an id, None when there is none that passes. An entity merged into another is that one."""
    with context.db.read() as conn:
        id_ = identity.resolve(conn, id_) or id_
        found = nodes.fetch(conn, [id_]) if archived.passes(conn, id_, resolved) else []
    return found[0] if found else None
