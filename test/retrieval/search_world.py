"""A database with its projections, and the same rows in a dictionary: search as plain Python would do it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from support.fakes import SECOND, WordEmbedder

from memory_node.config import Settings
from memory_node.graph import Episode, Filter, Kind, Node, Position
from memory_node.index.projections import Projections
from memory_node.retrieval.filters import Resolved, resolve
from memory_node.retrieval.search import Hit, Searcher
from memory_node.storage import episodes, nodes, vectors
from memory_node.storage.database import Database

COLOURS = ["red", "green", "blue", "white", "black", "brown", "grey", "pink"]
THINGS = ["mug", "chair", "table", "lamp", "sofa", "book", "plant", "box", "shoe", "door"]
ROOMS = ["kitchen", "hall", "cellar", "attic", "bath", "office"]
FILTERS = [
    Filter(),
    Filter(layers=("notes",)),
    Filter(center=(10.0, 10.0), radius=3.0),
    Filter(center=(10.0, 10.0, 1.0), radius=2.0, layers=("scene", "notes")),
    Filter(time_after=100 * SECOND, time_before=120 * SECOND),
    Filter(min_confidence=0.98),
    Filter(min_confidence=0.3),
    Filter(center=(-50.0, 0.0), radius=1.0),
]
DIM = 32
NOW = 1000 * SECOND


class World:
    """Adds, changes and removes rows in both; `hits` is what a search by meaning has to give."""

    def __init__(self, path: Path, embedder: WordEmbedder | None = None) -> None:
        self.path = path
        self.embedder = embedder or WordEmbedder(DIM)
        self.rows: dict[int, Node] = {}
        self.inside: dict[int, set[int]] = {}  # an episode with those nested in it
        self.open()

    def open(self) -> None:
        self.db = Database.open(self.path)
        self.model = self.db.write(lambda tx: vectors.open_model(tx, self.embedder.name, self.embedder.dim))
        self.projections = Projections(self.db, self.model, Settings())
        self.db.add_listener(self.projections.catch_up)
        self.searcher = Searcher(self.db, self.projections)

    def close(self) -> None:
        self.projections.close()
        self.db.close()

    def reopen(self) -> None:
        self.close()
        self.open()

    def settled(self) -> None:
        """Wait until the indexer has nothing more to do."""
        until = time.monotonic() + 60.0
        while self.projections.tail and time.monotonic() < until:
            time.sleep(0.002)
        assert self.projections.tail == 0
        self.projections.rows.settle()

    def add(self, text: str, position: Position | None = None, stamp: float = 900.0, **more: object) -> int:
        return self.add_all([self.node(text, position, stamp, **more)])[0]

    def node(self, text: str, position: Position | None = None, stamp: float = 900.0, **more: object) -> Node:
        ns = round(stamp * SECOND)
        node = Node(
            id=0, kind=Kind.OBSERVATION, layer="scene", text=text, text_id=None, stamp=ns, last_stamp=ns,
            position=position, session_id=1,
        )  # fmt: skip
        return node._replace(**more)  # type: ignore[arg-type]

    def add_all(self, new: Sequence[Node]) -> list[int]:
        found = self.embedder.embed([node.text or "" for node in new])

        def work(tx):  # type: ignore[no-untyped-def]
            ids = nodes.insert_many(tx, new)
            texts = {node.id: node.text_id for node in nodes.fetch(tx.conn, ids)}
            vectors.add_texts(tx, self.model.id, [texts[id_] for id_ in ids], found)
            return ids

        ids: list[int] = self.db.write(work)
        self.rows.update({id_: node._replace(id=id_) for id_, node in zip(ids, new, strict=True)})
        return ids

    def add_episode(self, name: str, parent: int = 0) -> int:
        """Store an episode that rows can belong to; it may be nested in another."""
        new = Episode(0, name, "active", 0, None, parent_id=parent)
        id_ = self.db.write(lambda tx: episodes.insert(tx, new, session_id=1))
        self.inside[id_] = {id_}
        for around in self.inside.values():
            if parent in around:
                around.add(id_)
        return id_

    def remove(self, ids: Sequence[int]) -> None:
        self.db.write(lambda tx: nodes.remove(tx, ids))
        for id_ in ids:
            self.rows.pop(id_, None)

    def archive(self, ids: Sequence[int]) -> None:
        self.db.write(lambda tx: nodes.archive(tx, ids))
        for id_ in ids:
            self.rows.pop(id_, None)

    def move(self, id_: int, position: Position | None) -> None:
        self.db.write(lambda tx: nodes.update(tx, id_, position=position))
        self.rows[id_] = self.rows[id_]._replace(position=position)

    def resolved(self, filter: Filter | None = None, kinds: Sequence[Kind] = (Kind.OBSERVATION,)) -> Resolved:
        with self.db.read() as conn:
            return resolve(filter or Filter(), conn, kinds=kinds, now_ns=NOW)

    def passing(self, filter: Filter, kinds: Sequence[Kind] = (Kind.OBSERVATION,)) -> dict[int, Node]:
        """Rows that pass the parts of a filter that tests here use."""
        return {id_: node for id_, node in self.rows.items() if node.kind in kinds and self._passes(filter, node)}

    def meaning(self, text: str, k: int, filter: Filter | None = None) -> list[Hit]:
        return self.searcher.meaning(self.embedder.embed([text])[0], k, self.resolved(filter))

    def check_meaning(self, text: str, k: int, filter: Filter | None = None) -> None:
        """Compare a search with every cosine computed."""
        query = self.embedder.embed([text])[0]
        behind: dict[str, list[Node]] = {}
        for node in self.passing(filter or Filter()).values():
            behind.setdefault(node.text or "", []).append(node)
        bodies = list(behind)
        cosines = (self.embedder.embed(bodies) @ query).tolist() if bodies else []
        true = sorted(cosines, reverse=True)[:k]
        hits = self.searcher.meaning(query, k, self.resolved(filter))
        np.testing.assert_allclose([hit.similarity for hit in hits], true, atol=2e-3)
        for hit in hits:
            text_of_hit = self.rows[hit.node_ids[0]].text or ""
            group = sorted(behind[text_of_hit], key=lambda n: (n.last_stamp, n.id), reverse=True)
            assert hit.node_ids == tuple(node.id for node in group[:16])
            assert hit.total == len(group)
            assert abs(hit.similarity - cosines[bodies.index(text_of_hit)]) < 2e-3  # type: ignore[operator]

    def _passes(self, filter: Filter, node: Node) -> bool:
        if filter.episode_id and node.episode_id not in self.inside[filter.episode_id]:
            return False
        if filter.layers and node.layer not in filter.layers:
            return False
        if filter.time_after is not None and node.last_stamp < int(filter.time_after):
            return False
        if filter.time_before is not None and node.stamp > int(filter.time_before):
            return False
        if node.confidence < filter.min_confidence:
            return False
        if filter.center is not None:
            if node.position is None:
                return False
            away = sum((a - b) ** 2 for a, b in zip(node.position, filter.center, strict=False)) ** 0.5
            return away <= (filter.radius or 0.0)
        return True


def furnish(world: World, count: int, seed: int = 0) -> list[int]:
    """Add sentences of a home, most with a place, to three layers; return their ids."""
    rng = np.random.default_rng(seed)
    new = [
        world.node(
            f"a {rng.choice(COLOURS)} {rng.choice(THINGS)} in the {rng.choice(ROOMS)}",
            tuple(rng.random(3) * (20.0, 20.0, 3.0)) if rng.random() < 0.9 else None,
            stamp=float(i),
            layer=["scene", "detections", "notes"][i % 3],
            confidence=float(rng.random()),
        )
        for i in range(count)
    ]
    return world.add_all(new)
