"""Gists asked for by what they cover: the circle they are of, and the layers they tell of."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from memory_node.graph import Filter, Gist, Kind
from memory_node.storage import gists

if TYPE_CHECKING:
    import sqlite3

    from memory_node.retrieval.filters import Resolved
    from memory_node.tools.context import ToolContext

MANY = 200
"""Gists around a place that are looked at, the nearest centres."""


def wanted(conn: sqlite3.Connection, filter: Filter) -> bool:
    """Whether a question for observations takes gists: those it names, or those that stand in for what is archived."""
    return Kind.GIST.label in filter.kinds if filter.kinds else gists.exist(conn)


def told_in_place(conn: sqlite3.Connection, ids: Iterable[int], resolved: Resolved, filter: Filter) -> list[Gist]:
    """Return those of the gists that fit: where the filter names no kinds, only what stands in for archived rows."""
    return fitting(conn, ids if filter.kinds else gists.standing_in(conn, ids), resolved, filter.layers)


def without_gists(resolved: Resolved) -> Resolved:
    """The filter for all rows but gists; without kinds when it passes none."""
    return replace(resolved, kinds=tuple(kind for kind in resolved.kinds if kind != Kind.GIST))


def of_any_layer(context: ToolContext, conn: sqlite3.Connection, resolved: Resolved) -> Resolved:
    """The filter for gists, whose rows have no layer and lie at the centre: it passes more than `fitting` keeps."""
    radius = None if resolved.radius is None else resolved.radius + context.searcher.reach.widest(conn)
    return replace(resolved, kinds=(int(Kind.GIST),), layers=None, radius=radius)


def fitting(
    conn: sqlite3.Connection,
    ids: Iterable[int],
    resolved: Resolved,
    names: Sequence[str],
    scores: Mapping[int, float] | None = None,
) -> list[Gist]:
    """Return those of the gists, in their order, whose circle meets the region and that tell of one of the layers.

    Args:
        resolved: the filter, not widened. names: of layers; none: any.
        scores: of the gists, by id.
    """
    found = gists.get_many(conn, ids, scores)
    center, radius, layers = resolved.center, resolved.radius, set(names)
    return [
        gist
        for gist in found
        if (not layers or layers & set(gist.layers))
        and (center is None or radius is None or _outside(gist, center) <= radius)
    ]


def around(
    context: ToolContext, conn: sqlite3.Connection, center: tuple[float, ...], radius: float, resolved: Resolved
) -> dict[int, float]:
    """Return the gists whose circle meets a circle or sphere (m), nearest first: id, and m to its edge, 0 inside."""
    wide, reach = of_any_layer(context, conn, resolved), context.searcher.reach
    ids, distances = context.searcher.nearest(center, radius + reach.widest(conn), MANY, wide)
    gaps = np.maximum(0.0, distances - reach.of(conn, ids))
    nearest_first = np.argsort(gaps, kind="stable")
    nearest_first = nearest_first[gaps[nearest_first] <= radius]
    return dict(zip(ids[nearest_first].tolist(), gaps[nearest_first].tolist(), strict=True))


def _outside(gist: Gist, center: tuple[float, ...]) -> float:
    """Metres from a point, (x, y) or (x, y, z), to the circle of a gist; infinite where its place is unknown."""
    if gist.position is None:
        return math.inf
    return math.dist(gist.position[: len(center)], center) - gist.radius
