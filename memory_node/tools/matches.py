"""Rows and ranked answers as matches."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from memory_node.graph import Gist, Kind, Node
from memory_node.storage import gists, nodes
from memory_node.tools.results import Match

if TYPE_CHECKING:
    import sqlite3

    from memory_node.retrieval.digest import Digest
    from memory_node.retrieval.ranking import Ranked


def of_node(node: Node, distance: float | None = None) -> Match:
    """A row as a match without a score; distance in m."""
    return _match(node, node.stamp, node.last_stamp, node.repeats, distance=distance)


def of_ranked(answer: Ranked) -> Match:
    """A ranked answer as a match with the parts of its score."""
    return _match(
        answer.node,
        answer.first,
        answer.last,
        answer.repeats,
        score=answer.score,
        similarity=answer.similarity,
        lexical=answer.lexical,
        importance=answer.importance,
        recency=answer.recency,
    )


def of_ids(conn: sqlite3.Connection, ids: Iterable[int]) -> tuple[Match, ...]:
    """Rows by id, in that order, as matches without a score."""
    return tuple(of_node(node) for node in nodes.fetch(conn, ids))


def of_near(conn: sqlite3.Connection, near: Iterable[tuple[int, float]]) -> tuple[Match, ...]:
    """Rows with their distances (m), in that order, as matches without a score."""
    distances = dict(near)
    return tuple(of_node(node, distances[node.id]) for node in nodes.fetch(conn, distances))


def of_digests(conn: sqlite3.Connection, *digests: Digest) -> list[tuple[Match, ...]]:
    """Each text of each digest once, as a match of the row that comes first, with count and span of all its rows."""
    ids = dict.fromkeys(one.node_id for digest in digests for one in digest.said)
    rows = {node.id: node for node in nodes.fetch(conn, ids)}
    return [
        tuple(
            _match(rows[one.node_id], one.first, one.last, one.repeats, distance=one.distance)
            for one in digest.said
            if one.node_id in rows
        )
        for digest in digests
    ]


def ranked_gists(conn: sqlite3.Connection, answers: Iterable[Ranked]) -> tuple[Gist, ...]:
    """The gists among ranked answers, in their order, with their scores."""
    found = [answer for answer in answers if answer.node.kind is Kind.GIST]
    scores = {answer.node.id: answer.score for answer in found}
    return tuple(gists.of_nodes(conn, [answer.node for answer in found], scores))


def _match(
    node: Node,
    first: int,
    last: int,
    count: int,
    *,
    score: float = 0.0,
    similarity: float | None = None,
    lexical: float | None = None,
    importance: float | None = None,
    recency: float | None = None,
    distance: float | None = None,
) -> Match:
    """A row as a match of a span (ns) and a count; importance None is the row's own."""
    # In the order of its fields: by their names it takes twice as long.
    return Match(
        node.kind.label, node.id, node.text or "", node.layer, first, last, count, node.stamp_source, node.position,
        node.frame, node.position_source.label, node.map_id, node.confidence, score, similarity, lexical,
        node.importance if importance is None else importance, recency, node.tier.label, node.episode_id,
        node.metadata, distance,
    )  # fmt: skip
