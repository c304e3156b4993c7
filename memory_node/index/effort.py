"""How hard the graph must be searched: measured, because recall differs widely between sets of vectors."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from memory_node.index import exact
from memory_node.index.hnsw import Graph
from memory_node.index.matrix import Slots, VectorView

SCAN = 0
"""Instead of a number of candidates: no effort is enough, compare with every vector."""

LADDER = (50, 100, 200, 400, 800, 1600)
GOAL = 0.985  # mean recall over the sample, a little over what is promised
WIDER = 2  # candidates asked of the graph for each that is wanted: it compares in 8 bit, and exact products choose
TOLERANCE = 1e-3  # cosine; an answer this near to the true tenth is as good
QUERIES = 64
NEIGHBOURS = 10
_TOGETHER = 4  # queries compared with every vector at once; what they take is never given back by the allocator
_CHUNK = 8  # asked for at once; about 1 ms, the longest that a search waits for it
_AMONG = 8  # answers among which a vector that is asked for must be: others may be the same, or dead


def choose_ef(graph: Graph, view: VectorView, least: int) -> int:
    """Return the smallest number of candidates, at least `least`, with which a sample of the graph's own vectors finds
    its true neighbours; SCAN when none does.
    """
    alive = np.flatnonzero(view.alive()[: view.indexed])
    chosen = np.random.default_rng(len(alive)).choice(alive, min(QUERIES, len(alive)), replace=False)
    queries = exact.normalise(view.vectors(chosen))
    # A sample is its own nearest neighbour and always found, so it is left out of the count.
    k = min(NEIGHBOURS + 1, len(alive))
    floor = np.concatenate([_least(view, queries[i : i + _TOGETHER], alive, k) for i in range(0, QUERIES, _TOGETHER)])
    floor -= TOLERANCE
    for ef in sorted({max(step, least) for step in LADDER}):
        if _recall(graph, view, queries, floor, k, ef) >= GOAL:
            return ef
    return SCAN


def lost(graph: Graph, view: VectorView, slots: Slots, ef: int) -> NDArray[np.int64]:
    """Return ids of those vectors that the graph does not find when asked for themselves.

    Where thousands are nearly the same, HNSW prunes the links to the few others, which no random sample shows. They
    are asked for with half the effort of a search, so that one found by a hair counts as lost.
    """
    gone = [np.empty(0, dtype=np.int64)]
    for start in range(0, len(slots), _CHUNK):
        some = slots[start : start + _CHUNK]
        vectors = exact.normalise(view.vectors(some))
        found = [view.slots(labels) for labels in graph.search_many(vectors, _AMONG, max(1, ef // 2))]
        best = [view.scores(one, near[near >= 0]).max(initial=-1.0) for one, near in zip(vectors, found, strict=True)]
        gone.append(view.columns["id"][some[np.array(best) < 1.0 - TOLERANCE]])
    return np.concatenate(gone)


def _least(view: VectorView, queries: NDArray[np.float32], alive: Slots, k: int) -> NDArray[np.float32]:
    """The true k-th largest inner product of each of queries (Q, D)."""
    products = view.scan(queries)[alive]
    products.partition(len(alive) - k, axis=0)
    least: NDArray[np.float32] = products[len(alive) - k].copy()
    return least


def _recall(
    graph: Graph, view: VectorView, queries: NDArray[np.float32], floor: NDArray[np.float32], k: int, ef: int
) -> float:
    hits = 0
    for query, least in zip(queries, floor, strict=True):
        labels = graph.search(query, WIDER * k, ef)
        if labels is not None:
            slots = view.slots(labels)
            hits += min(k, int(np.sum(view.scores(query, slots[slots >= 0]) >= least))) - 1
    return hits / (len(queries) * max(1, k - 1))
