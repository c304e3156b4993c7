"""What many rows say, each text once, against a look at every row."""

from __future__ import annotations

import math

import numpy as np
import pytest

from memory_node.graph import Kind
from memory_node.index.rows import RowTable
from memory_node.index.view import WHOLE, RowFilter
from memory_node.retrieval import digest
from memory_node.retrieval.digest import Said

SECOND = 1_000_000_000
Row = dict[str, float]


def rows_of(rng: np.random.Generator, ids: np.ndarray, texts: int, side: float) -> dict[str, np.ndarray]:
    """Rows many of which share their text, their time and, on a grid of half metres, their place."""
    n = len(ids)
    stamp = rng.integers(0, 50, n) * SECOND
    return {
        "id": ids, "text": np.minimum(rng.geometric(2 / texts, n), texts), "stamp": stamp, "last_stamp": stamp + SECOND,
        "x": np.round(rng.random(n) * side * 2) / 2, "y": np.round(rng.random(n) * side * 2) / 2, "z": np.zeros(n),
        "confidence": np.ones(n), "episode": np.zeros(n, dtype=int),
        "kind": rng.choice([int(Kind.OBSERVATION), int(Kind.ENTITY)], n, p=[0.95, 0.05]),
        "layer": rng.integers(1, 3, n), "map": np.zeros(n, dtype=int), "tier": np.ones(n, dtype=int),
        "internal": np.zeros(n, dtype=bool), "repeats": rng.integers(1, 9, n),
    }  # fmt: skip


def table_of(seed: int, count: int, texts: int, side: float) -> tuple[RowTable, list[Row]]:
    """A table, a tenth of which came after it was sorted, and its rows."""
    rng, table, told = np.random.default_rng(seed), RowTable(), []
    for ids in np.split(np.arange(1, count + 1), [count * 9 // 10]):
        rows = rows_of(rng, ids, texts, side)
        table.apply(rows)
        if ids[0] == 1:
            table.settle()
        told += [{name: values[i].item() for name, values in rows.items()} for i in range(len(ids))]
    return table, told


def true_digest(rows: list[Row], by_place: bool, most: int) -> tuple[list[Said], int]:
    """The rows in order come with their `order`; of equals the newest id leads."""
    groups: dict[tuple[float, float], list[Row]] = {}
    for row in sorted(rows, key=lambda row: (row["order"], -row["id"])):
        groups.setdefault((row["text"], row["layer"]), []).append(row)
    said = [
        Said(
            int(group[0]["id"]), int(sum(row["repeats"] for row in group)), int(min(row["stamp"] for row in group)),
            int(max(row["last_stamp"] for row in group)), group[0]["order"] if by_place else None,
        )
        for group in list(groups.values())[:most]
    ]  # fmt: skip
    return said, max(0, len(groups) - most)


@pytest.mark.parametrize(("count", "texts"), [(10, 2), (300, 4), (300, 200), (2 * WHOLE, 3), (2 * WHOLE, 3000)])
def test_each_text_is_told_once_by_its_first_row_with_the_count_and_span_of_all(count: int, texts: int) -> None:
    table, rows = table_of(count + texts, count, texts, 40.0)
    kinds = RowFilter(kinds=(int(Kind.OBSERVATION),))
    seen = [{**row, "order": -row["last_stamp"]} for row in rows if row["kind"] == Kind.OBSERVATION]
    for most in (1, 10):
        found = digest.lately(table.view, kinds, most)
        assert (list(found.said), found.more) == true_digest(seen, False, most)
        for center, radius in (((20.0, 20.0), 1.0), ((7.0, 30.0), 4.0), ((20.0, 20.0), 100.0)):
            here = [{**row, "order": math.dist((row["x"], row["y"]), center)} for row in rows]
            here = [row for row in here if row["order"] <= radius]
            things = sorted((row["order"], row["id"]) for row in here if row["kind"] == Kind.ENTITY)
            names = {row["text"] for row in here if row["kind"] == Kind.ENTITY}
            others = [row for row in here if row["kind"] != Kind.ENTITY and row["text"] not in names]
            found = digest.near(table.view, kinds, center, radius, most)
            assert (list(found.said), found.more) == true_digest(others, True, most)
            assert (list(found.things), found.more_things) == (
                [id_ for _, id_ in things[:most]],
                max(0, len(things) - most),
            )
