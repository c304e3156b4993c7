"""Folds of rows, by value: who leads, what is counted, and which rows are never one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from memory_node.graph import Kind
from memory_node.index.rows import RowTable, View
from memory_node.index.view import RowFilter
from memory_node.retrieval.folding import Fold, fold, fold_nearest, fold_newest

NAMES = ("text", "stamp", "last_stamp", "x", "layer", "map", "kind", "repeats")
MUG, OVEN = 1, 2
SCENE, TALK = 1, 2


def row(text: int, stamp: int, x: float = 0.0, layer: int = SCENE, **other: Any) -> dict[str, Any]:
    fields = {"last_stamp": stamp, "map": 0, "kind": Kind.OBSERVATION, "repeats": 1}
    return {**fields, "text": text, "stamp": stamp, "x": x, "layer": layer, **other}


@pytest.fixture(params=["settled", "tail"])
def view(request: pytest.FixtureRequest) -> Any:
    def of(*rows: dict[str, Any]) -> View:
        table = RowTable()
        columns = {name: np.array([one[name] for one in rows]) for name in NAMES}
        for name in ("confidence", "episode", "tier", "internal"):
            columns[name] = np.zeros(len(rows))
        columns |= {"y": columns["x"] * 0.0, "z": columns["x"] * 0.0, "id": np.arange(1, len(rows) + 1)}
        table.apply(columns)
        if request.param == "settled":
            table.settle()
        return table.view

    return of


def test_rows_at_one_place_are_led_by_the_newest_and_count_what_they_stand_for(view: Any) -> None:
    found = view(row(MUG, 10, repeats=10), row(MUG, 20, 0.4, repeats=7, last_stamp=25), row(MUG, 5, 3.0))
    assert fold(found, RowFilter(), MUG, 9) == [Fold(2, 17, 10, 25), Fold(3, 1, 5, 5)]
    assert fold(found, RowFilter(), MUG, 1) == [Fold(2, 17, 10, 25)]
    assert fold(found, RowFilter(before=12), MUG, 9) == [Fold(1, 10, 10, 10), Fold(3, 1, 5, 5)]


def test_what_differs_in_layer_map_or_place_is_not_one(view: Any) -> None:
    nan = float("nan")
    found = view(
        row(MUG, 1), row(MUG, 2, layer=TALK), row(MUG, 3, map=1), row(MUG, 4, 0.6), row(MUG, 5, nan), row(MUG, 6, nan)
    )
    folds = fold(found, RowFilter(), MUG, 9)
    assert [(one.node_id, one.repeats) for one in folds] == [(6, 2), (4, 1), (3, 1), (2, 1), (1, 1)]
    assert fold_newest(found, RowFilter(), [[1, 2, 3, 4, 5, 6]], 9) == [folds]


def test_every_entity_is_one_of_its_own(view: Any) -> None:
    thing = {"kind": Kind.ENTITY, "layer": 0, "repeats": 4}
    found = view(row(MUG, 1), row(MUG, 2, **thing), row(MUG, 3, **thing), row(MUG, 4))
    folds = fold(found, RowFilter(), MUG, 9)
    assert [(one.node_id, one.repeats) for one in folds] == [(4, 2), (3, 4), (2, 4)]
    assert [one.node_id for one in fold(found, RowFilter(), MUG, 1)] == [4, 3]


def test_rows_of_several_texts_are_folded_text_by_text(view: Any) -> None:
    found = view(row(MUG, 1), row(OVEN, 2), row(MUG, 3), row(OVEN, 4), row(MUG, 5))
    assert fold_newest(found, RowFilter(), [[1, 2, 3, 4, 99]], 9) == [[Fold(4, 2, 2, 4), Fold(3, 2, 1, 3)]]
    both = [[Fold(3, 1, 3, 3), Fold(2, 1, 2, 2)], [], [Fold(2, 1, 2, 2)]]
    assert fold_newest(found, RowFilter(after=2), [[1, 2, 3], [], [2, 1]], 9) == both
    assert fold_newest(found, RowFilter(), [], 9) == []


def test_around_a_moment_the_nearest_leads_and_a_span_that_holds_it_is_nearest(view: Any) -> None:
    found = view(row(MUG, 10), row(MUG, 19), row(MUG, 22), row(OVEN, 0, last_stamp=50), row(3, 28))
    ids = [1, 2, 3, 4, 5]
    assert fold_nearest(found, RowFilter(), ids, 20, 9) == [Fold(4, 1, 0, 50), Fold(2, 3, 10, 22), Fold(5, 1, 28, 28)]
    assert [one.node_id for one in fold_nearest(found, RowFilter(), ids, 20, 2)] == [4, 2]


def test_around_a_moment_layers_take_turns(view: Any) -> None:
    busy = [row(10 + i, 100 + i) for i in range(20)]
    found = view(*busy, row(MUG, 130, layer=TALK), row(OVEN, 150, layer=TALK))
    ids = list(range(1, 23))
    assert [one.node_id for one in fold_nearest(found, RowFilter(), ids, 100, 5)] == [1, 21, 2, 22, 3]
