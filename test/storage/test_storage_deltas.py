"""F31: a projection that only ever reads what changed holds exactly what a full scan gives, whatever was done."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from memory_node.graph import EdgeType, Node
from memory_node.storage import edges, nodes, texts, vectors
from memory_node.storage.database import Database, Transaction

Make = Callable[..., Node]


class Mirror:
    """Rows of nodes and of one model's vectors by id, kept up by deltas."""

    def __init__(self, db: Database, model_id: int) -> None:
        self.db = db
        self.model_id = model_id
        self.nodes: dict[int, tuple[Any, ...]] = {}
        self.vectors: dict[int, tuple[Any, ...]] = {}
        self.revision = 0

    def catch_up(self) -> None:
        with self.db.read() as conn:
            found = nodes.since(conn, self.revision)
            new = vectors.since(conn, self.model_id, self.revision)
        for rows, removed, complete, changed in (
            (self.nodes, found.removed, found.complete, node_rows(found)),
            (self.vectors, new.removed, new.complete, vector_rows(new)),
        ):
            if complete:
                rows.clear()
            for id_ in removed.tolist():
                rows.pop(id_, None)
            rows.update(changed)
        assert found.revision == new.revision
        self.revision = found.revision


def node_rows(found: nodes.NodeColumns) -> dict[int, tuple[Any, ...]]:
    columns = (found.text_id, found.stamp, found.last_stamp, found.confidence, found.kind, found.tier, found.layer_id)
    places = [tuple(map(str, place)) for place in zip(found.x, found.y, found.z, strict=True)]
    rows = zip(*(column.tolist() for column in columns), found.internal.tolist(), places, strict=True)
    return dict(zip(found.id.tolist(), rows, strict=True))


def vector_rows(found: vectors.VectorColumns) -> dict[int, tuple[Any, ...]]:
    rows = zip(found.text_ids.tolist(), found.node_ids.tolist(), map(tuple, found.vectors.tolist()), strict=True)
    return dict(zip(found.ids.tolist(), rows, strict=True))


class Actions:
    """Random changes; each is one transaction."""

    def __init__(self, make: Make, model_id: int, chance: random.Random) -> None:
        self.make = make
        self.model_id = model_id
        self.chance = chance
        self.ids: list[int] = []

    def some(self) -> list[int]:
        return self.chance.sample(self.ids, min(len(self.ids), self.chance.randint(1, 4)))

    def vector(self) -> list[float]:
        return [self.chance.gauss(0, 1) for _ in range(3)]

    def insert(self, tx: Transaction) -> None:
        rows = [
            self.make(
                f"text {self.chance.randint(0, 15)}", stamp=self.chance.randint(0, 9), layer=self.chance.choice("abc"),
                position=self.chance.choice([None, (1.0, 2.0, 3.0)]),
            )
            for _ in range(self.chance.randint(1, 5))
        ]  # fmt: skip
        self.ids += nodes.insert_many(tx, rows)

    def embed(self, tx: Transaction) -> None:
        for text_id, _ in texts.unembedded(tx.conn, self.model_id, self.chance.randint(1, 5)):
            vectors.put_texts(tx, self.model_id, {text_id: [self.vector() for _ in range(self.chance.randint(1, 3))]})

    def own_vector(self, tx: Transaction) -> None:
        for id_ in self.some():
            vectors.add_node(tx, self.model_id, id_, self.vector())

    def update(self, tx: Transaction) -> None:
        for id_ in self.some():
            nodes.update(tx, id_, confidence=self.chance.random(), text=f"text {self.chance.randint(0, 15)}")

    def repeat(self, tx: Transaction) -> None:
        nodes.count_repeats(tx, [(id_, 1, 50) for id_ in self.some()])

    def join(self, tx: Transaction) -> None:
        edges.add_many(tx, [(id_, self.ids[0], EdgeType.NEAR_EVENT) for id_ in self.some()])

    def change_layer(self, tx: Transaction) -> None:
        nodes.layer_id(tx, self.chance.choice("abc"), internal=self.chance.random() < 0.5)

    def archive(self, tx: Transaction) -> None:
        nodes.archive(tx, self.some())

    def remove(self, tx: Transaction) -> None:
        gone = self.some()
        nodes.remove(tx, gone)
        self.ids = [id_ for id_ in self.ids if id_ not in gone]

    def fail(self, tx: Transaction) -> None:
        nodes.archive(tx, self.some())
        nodes.remove(tx, self.some())
        raise LookupError

    def step(self, db: Database) -> None:
        always = [self.insert, self.embed]
        others = [self.own_vector, self.update, self.repeat, self.join, self.change_layer, self.archive, self.remove]
        action = self.chance.choice([*always, *always, *others, self.fail] if self.ids else [self.insert])
        if action == self.fail:
            with pytest.raises(LookupError):
                db.write(action)
        else:
            db.write(action)


@pytest.mark.parametrize("seed", range(4))
def test_f31_deltas_add_up_to_the_whole(db: Database, observation: Make, seed: int) -> None:
    chance = random.Random(seed)
    model_id = db.write(lambda tx: vectors.open_model(tx, "m", 3)).id
    actions, mirror = Actions(observation, model_id, chance), Mirror(db, model_id)
    for _ in range(40):
        for _ in range(chance.randint(1, 5)):
            actions.step(db)
        mirror.catch_up()
        with db.read() as conn:
            assert mirror.nodes == node_rows(nodes.since(conn, 0))
            assert mirror.vectors == vector_rows(vectors.since(conn, model_id, 0))
    assert db.check() == []
    assert len(mirror.vectors) > 5 and len(mirror.nodes) > 5
