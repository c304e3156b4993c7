"""A filter as callers write it, turned into what the columns are asked: names to ids, times to ns, all checked."""

from __future__ import annotations

import math
import sqlite3
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real

from memory_node.errors import InvalidArgument, shown
from memory_node.graph import EVENTS_LAYER, NO_ID, Filter, Kind
from memory_node.index.view import RowFilter
from memory_node.ingest.arguments import checked_id
from memory_node.retrieval import times
from memory_node.storage import nodes

UNKNOWN = -1
"""Id of a map that no row has."""
NAMES = 20
"""Names that a message lists."""


@dataclass(frozen=True)
class Resolved(RowFilter):
    """A checked filter, see RowFilter for its fields: perception only, of the map it names or the present one."""


def resolve(
    filter: Filter,
    conn: sqlite3.Connection,
    *,
    kinds: Sequence[Kind],
    now_ns: int,
    time_zone: str = "UTC",
    frame: str = "map",
    map_id: str = "",
    newest: int = 0,
) -> Resolved:
    """Return filter with its names looked up and its values checked.

    Args:
        kinds: what an empty filter.kinds means to the caller.
        now_ns: what relative times are relative to.
        time_zone: IANA name, for "yesterday" and the like.
        frame: the memory's; positions of another are refused.
        map_id: name of the present map.
        newest: largest stamp of any row (ns). Rows stamped later than now pass only where a later time is asked for.

    Raises:
        InvalidArgument: naming the field that was wrong, such as "filter.layers".
    """
    if not isinstance(filter, Filter):
        raise InvalidArgument("filter", f"got {shown(filter)}, wanted is a Filter or None")
    names = checked_names(filter.layers, "filter.layers")
    after, before = _times(filter, now_ns, time_zone)
    if before is None and newest > now_ns and (after is None or after <= now_ns):
        before = now_ns
    center, radius = _circle(filter, frame)
    return Resolved(
        kinds=tuple(int(kind) for kind in (_kinds(filter.kinds) or kinds)),
        layers=_layers(conn, names) if names else None,
        after=after,
        before=before,
        center=center,
        radius=radius,
        episodes=_episodes(conn, filter.episode_id) if filter.episode_id else None,
        min_confidence=_confidence(filter.min_confidence),
        map_id=None if filter.any_map else _map(conn, filter.map_id, map_id),
    )


def checked_names(names: object, argument: str) -> tuple[str, ...]:
    """Return a list of names as a tuple; raise InvalidArgument naming the argument for anything else."""
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
        raise InvalidArgument(argument, f"got {shown(names)}, wanted is a list of names")
    return tuple(names)


def some(names: Sequence[str]) -> str:
    """Names as a message lists them: the first, each cut where it is long, and how many more there are."""
    more = f" and {len(names) - NAMES} more" if len(names) > NAMES else ""
    return ", ".join(name if len(name) <= 40 else name[:39] + "…" for name in names[:NAMES]) + more


def _kinds(names: Sequence[str]) -> list[Kind]:
    known = {kind.label: kind for kind in Kind if kind is not Kind.BELIEF}
    for name in checked_names(names, "filter.kinds"):
        if name not in known:
            raise InvalidArgument("filter.kinds", f"got {shown(name)}, allowed are {', '.join(known)}")
    return [known[name] for name in names]


def _layers(conn: sqlite3.Connection, names: Sequence[str]) -> tuple[int, ...]:
    known = nodes.layers(conn)
    for name in names:
        if name not in known and name != EVENTS_LAYER:  # which is there before its first row
            there = some(list(known)) or "none yet"
            raise InvalidArgument("filter.layers", f"no layer is called {shown(name)}; there are: {there}")
    return tuple(known[name].id for name in names if name in known)


def _map(conn: sqlite3.Connection, name: str | None, present: str) -> int:
    wanted = present if name is None else name
    if wanted == "":
        return NO_ID
    known = nodes.maps(conn)
    if name is not None and (not isinstance(name, str) or name not in known):
        raise InvalidArgument("filter.map_id", f"no map is called {shown(name)}")
    return known.get(wanted, UNKNOWN)


def _episodes(conn: sqlite3.Connection, episode_id: int) -> tuple[int, ...]:
    episode_id = checked_id("filter.episode_id", episode_id)
    if conn.execute("SELECT 1 FROM episode WHERE id = ?", (episode_id,)).fetchone() is None:
        raise InvalidArgument("filter.episode_id", f"there is no episode {episode_id}")
    sql = """WITH RECURSIVE nested (id) AS (
                 VALUES (?) UNION SELECT episode.id FROM episode JOIN nested ON parent_id = nested.id
             ) SELECT id FROM nested"""
    return tuple(row[0] for row in conn.execute(sql, (episode_id,)))


def _times(filter: Filter, now_ns: int, time_zone: str) -> tuple[int | None, int | None]:
    after = before = None
    if filter.time_after is not None and filter.time_after != "":
        after = times.parse_span(filter.time_after, now_ns, time_zone, "filter.time_after")[0]
    if filter.time_before is not None and filter.time_before != "":
        before = times.parse_span(filter.time_before, now_ns, time_zone, "filter.time_before")[1]
    if after is not None and before is not None and after > before:
        later = f"{shown(filter.time_after)} is later than time_before, {shown(filter.time_before)}"
        raise InvalidArgument("filter.time_after", later)
    return after, before


def _circle(filter: Filter, frame: str) -> tuple[tuple[float, ...] | None, float | None]:
    if filter.center is None:
        if filter.radius is not None:
            raise InvalidArgument("filter.radius", "needs a center")
        return None, None
    try:
        center = tuple(float(value) for value in filter.center)
    except (TypeError, ValueError, OverflowError):
        center = ()
    if len(center) not in (2, 3) or not all(map(math.isfinite, center)):
        raise InvalidArgument("filter.center", f"got {shown(filter.center)}, wanted are two or three finite numbers")
    if filter.radius is None:
        raise InvalidArgument("filter.radius", "is needed with a center")
    if not _is_number(filter.radius) or not 0.0 < filter.radius <= sys.float_info.max:
        raise InvalidArgument("filter.radius", f"got {shown(filter.radius)}, allowed is a finite number above 0")
    if filter.frame not in ("", frame):
        raise InvalidArgument("filter.frame", f"got {shown(filter.frame)}, positions here are in {frame!r}")
    return center, float(filter.radius)


def _confidence(value: float) -> float:
    if not _is_number(value) or not 0.0 <= value <= 1.0:
        raise InvalidArgument("filter.min_confidence", f"got {shown(value)}, allowed is 0 to 1")
    return float(value)


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
