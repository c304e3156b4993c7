"""Edges of the graph, and sessions."""

from __future__ import annotations

from memory_node.graph import Edge, EdgeType
from memory_node.storage import edges, sessions
from memory_node.storage.database import Database, Transaction


def all_edges(db: Database, *ids: int) -> set[Edge]:
    with db.read() as conn:
        return {edge for id_ in ids for edge in edges.of(conn, id_)}


def test_an_edge_is_unique_in_source_target_and_type(db: Database) -> None:
    db.write(lambda tx: edges.add(tx, 1, 2, EdgeType.BELONGS_TO))
    rows = [(1, 2, EdgeType.BELONGS_TO), (1, 2, EdgeType.NEAR_EVENT), (3, 2, EdgeType.BELONGS_TO)]
    db.write(lambda tx: edges.add_many(tx, rows))
    with db.read() as conn:
        assert edges.targets(conn, 1, EdgeType.BELONGS_TO) == [2]
        assert edges.sources(conn, 2, EdgeType.BELONGS_TO) == [1, 3]
        assert edges.sources(conn, 2, EdgeType.FOLLOWS) == []
        assert edges.of(conn, 1) == [Edge(1, 2, EdgeType.BELONGS_TO), Edge(1, 2, EdgeType.NEAR_EVENT)]


def test_the_last_targets_of_each_are_its_largest(db: Database) -> None:
    seen = [(source, target, EdgeType.OBSERVED_IN) for source, target in ((7, 11), (5, 12), (5, 14), (5, 10), (7, 13))]
    db.write(lambda tx: edges.add_many(tx, [*seen, (5, 99, EdgeType.NEAR_EVENT)]))
    with db.read() as conn:
        assert edges.last_targets(conn, [7, 5, 6], EdgeType.OBSERVED_IN, 2) == {7: [13, 11], 5: [14, 12], 6: []}


def test_things_seen_together_are_counted_once_whatever_the_order(db: Database) -> None:
    db.write(lambda tx: edges.add(tx, 7, 3, EdgeType.COOCCURS_WITH, accumulate=True))
    db.write(lambda tx: edges.add(tx, 3, 7, EdgeType.COOCCURS_WITH, count=2, accumulate=True))
    assert all_edges(db, 3, 7) == {Edge(3, 7, EdgeType.COOCCURS_WITH, 3)}
    db.write(lambda tx: edges.add(tx, 7, 3, EdgeType.COOCCURS_WITH, count=9))
    assert all_edges(db, 3) == {Edge(3, 7, EdgeType.COOCCURS_WITH, 9)}


def test_two_nodes_become_one(db: Database) -> None:
    def build(tx: Transaction) -> None:
        edges.add_many(
            tx,
            [
                (5, 100, EdgeType.OBSERVED_IN), (5, 101, EdgeType.OBSERVED_IN), (8, 101, EdgeType.OBSERVED_IN),
                (5, 8, EdgeType.COOCCURS_WITH, 4), (5, 6, EdgeType.COOCCURS_WITH, 2), (6, 8, EdgeType.COOCCURS_WITH, 3),
                (9, 5, EdgeType.SUMMARIZES),
            ],
        )  # fmt: skip

    db.write(build)
    db.write(lambda tx: edges.move(tx, 5, 8))
    assert all_edges(db, 5) == set()
    assert all_edges(db, 8) == {
        Edge(8, 100, EdgeType.OBSERVED_IN), Edge(8, 101, EdgeType.OBSERVED_IN), Edge(9, 8, EdgeType.SUMMARIZES),
        Edge(6, 8, EdgeType.COOCCURS_WITH, 5),
    }  # fmt: skip


def test_sessions_remember_the_newest_stamp(db: Database) -> None:
    first = db.write(lambda tx: sessions.open_session(tx, clock="sim", stamp=0, wall=50, frame="map", map_id="flat"))
    second = db.write(
        lambda tx: sessions.open_session(tx, clock="sim", stamp=3, wall=90, frame="map", reason="clock went back")
    )
    db.write(lambda tx: sessions.touch(tx, first, 20, 30, 60))
    db.write(lambda tx: sessions.touch(tx, first, 10, 30, 70))
    db.write(lambda tx: sessions.touch(tx, second, 4, 30))
    with db.read() as conn:
        found, latest = sessions.get(conn, first), sessions.latest(conn)
        assert sessions.get(conn, 99) is None
    assert found == sessions.Session(first, 50, "sim", 0, 20, 70, "map", "flat", "start")
    assert latest is not None
    assert (latest.id, latest.reason, latest.last_stamp) == (second, "clock went back", 4)
    assert latest.last_wall > 90
