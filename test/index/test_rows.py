"""The row table against plain NumPy over a dictionary of rows."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from memory_node.index import places
from memory_node.index.chronicle import in_time
from memory_node.index.columns import Columns
from memory_node.index.nearest import nearest
from memory_node.index.places import PlaceIndex
from memory_node.index.rows import LAYOUT, RowTable
from memory_node.index.view import WHOLE, Base, RowFilter

SECOND = 1_000_000_000


def random_rows(rng: np.random.Generator, ids: np.ndarray, side: float = 100.0) -> dict[str, np.ndarray]:
    n = len(ids)
    stamp = ids * SECOND // 2
    known = rng.random(n) < 0.9
    return {
        "id": ids, "text": rng.integers(0, max(2, n // 3), n), "stamp": stamp,
        "last_stamp": stamp + rng.integers(0, 3, n) * SECOND,
        "x": np.where(known, rng.random(n) * side, np.nan), "y": np.where(known, rng.random(n) * side, np.nan),
        "z": np.where(known, rng.random(n) * 3.0, np.nan), "confidence": rng.random(n),
        "episode": rng.integers(0, 5, n), "kind": rng.choice(4, n, p=[0.0, 0.75, 0.2, 0.05]),
        "layer": rng.integers(1, 4, n), "map": rng.integers(0, 2, n),
        "tier": np.ones(n, dtype=int), "internal": rng.random(n) < 0.1, "repeats": rng.integers(1, 9, n),
    }  # fmt: skip


class Twin:
    """The same rows, each a dict, filtered one by one."""

    def __init__(self) -> None:
        self.rows: dict[int, dict[str, Any]] = {}

    def apply(self, rows: dict[str, np.ndarray], removed: Any = ()) -> None:
        for id_ in removed:
            self.rows.pop(int(id_), None)
        for i, id_ in enumerate(rows["id"].tolist() if rows else []):
            self.rows[id_] = {name: values[i].item() for name, values in rows.items()}

    def select(self, f: RowFilter) -> set[int]:
        return {id_ for id_, row in self.rows.items() if self._passes(f, row)}

    def distance(self, id_: int, center: tuple[float, ...]) -> float:
        row = self.rows[id_]
        return float(np.sqrt(sum((row[name] - c) ** 2 for name, c in zip("xyz", center, strict=False))))

    def _passes(self, f: RowFilter, row: dict[str, Any]) -> bool:
        return (
            (not f.kinds or row["kind"] in f.kinds)
            and (f.layers is None or row["layer"] in f.layers)
            and (f.after is None or row["last_stamp"] >= f.after)
            and (f.before is None or row["stamp"] <= f.before)
            and (f.episodes is None or row["episode"] in f.episodes)
            and row["confidence"] >= f.min_confidence
            and (f.map_id is None or row["map"] == f.map_id)
            and (f.internal or not row["internal"])
            and (f.center is None or self.distance(row["id"], f.center) <= (f.radius or 0.0))
        )


FILTERS = [
    RowFilter(),
    RowFilter(kinds=(1,), layers=(2, 3), map_id=1),
    RowFilter(layers=()),
    RowFilter(kinds=(3, 2, 3), after=2000 * SECOND // 2),
    RowFilter(kinds=(3,), center=(50.0, 50.0), radius=30.0),
    RowFilter(kinds=(4,)),
    RowFilter(center=(50.0, 50.0), radius=3.0),
    RowFilter(center=(50.0, 50.0, 1.0), radius=3.0, layers=(1,)),
    RowFilter(center=(50.0, 50.0), radius=500.0, min_confidence=0.5),
    RowFilter(after=6000 * SECOND // 2, before=6050 * SECOND // 2),
    RowFilter(before=40 * SECOND, internal=True),
    RowFilter(episodes=(3, 4), after=9900 * SECOND // 2),
]


@pytest.fixture(scope="module", params=["settled", "unsettled", "tail"])
def filled(request: pytest.FixtureRequest) -> tuple[RowTable, Twin]:
    rng = np.random.default_rng(5)
    table, twin = RowTable(), Twin()
    for start in range(1, 10_001, 2500):
        rows = random_rows(rng, np.arange(start, start + 2500))
        table.apply(rows)
        twin.apply(rows)
        if request.param == "tail" and start < 5000:
            table.settle()
    moved = random_rows(rng, rng.choice(np.arange(1, 10_001), 700, replace=False))
    gone = rng.choice(np.arange(1, 10_001), 900, replace=False)
    gone = gone[~np.isin(gone, moved["id"])]
    table.apply(moved, gone)
    twin.apply(moved, gone)
    if request.param == "settled":
        table.settle()
    return table, twin


@pytest.mark.parametrize("f", FILTERS)
def test_select_is_exact(filled: tuple[RowTable, Twin], f: RowFilter) -> None:
    table, twin = filled
    view = table.view
    slots = view.select(f)
    assert set(view.columns["id"][slots].tolist()) == twin.select(f)
    assert len(slots) == len(twin.select(f))


@pytest.mark.parametrize("f", FILTERS)
@pytest.mark.parametrize("center", [(50.0, 50.0), (50.0, 50.0, 1.0), (-400.0, 3.0)])
@pytest.mark.parametrize("radius", [None, 2.0, 1000.0])
def test_nearest_is_exact(
    filled: tuple[RowTable, Twin], f: RowFilter, center: tuple[float, ...], radius: float | None
) -> None:
    table, twin = filled
    slots, distances = nearest(table.view, f, center, radius, 10)
    every = [twin.distance(id_, center) for id_ in twin.select(f)]
    true = sorted(d for d in every if d <= (radius or np.inf))[:10]
    assert distances.tolist() == pytest.approx(true)
    ids = table.view.columns["id"][slots].tolist()
    assert len(set(ids)) == len(ids)
    assert [twin.distance(id_, center) for id_ in ids] == pytest.approx(true)


@pytest.mark.parametrize("f", FILTERS)
@pytest.mark.parametrize("newest_first", [True, False])
def test_in_time_is_exact(filled: tuple[RowTable, Twin], f: RowFilter, newest_first: bool) -> None:
    table, twin = filled
    name = "last_stamp" if newest_first else "stamp"
    true = sorted(((twin.rows[i][name], i) for i in twin.select(f)), reverse=newest_first)[:20]
    ids = table.view.columns["id"][in_time(table.view, f, newest_first, 20)].tolist()
    assert ids == [id_ for _, id_ in true]


def test_slots_of_ids_and_texts(filled: tuple[RowTable, Twin]) -> None:
    table, twin = filled
    view = table.view
    ids = np.array([*twin.rows, 10_500, 0, -3])
    slots = view.slots(ids)
    assert (slots[-3:] == -1).all()
    assert view.columns["id"][slots[:-3]].tolist() == list(twin.rows)
    texts = np.array([7, 900, 10**6])
    found = view.slots_of_texts(texts)
    found = found[view.passes(RowFilter(internal=True), found)]
    true = {id_ for id_, row in twin.rows.items() if row["text"] in (7, 900)}
    assert set(view.columns["id"][found].tolist()) == true


def test_texts_are_counted_once_settled_or_not(filled: tuple[RowTable, Twin]) -> None:
    table, twin = filled
    assert table.view.texts == len({row["text"] for row in twin.rows.values()} - {0})
    table, twin = RowTable(), Twin()
    rows = random_rows(np.random.default_rng(1), np.arange(1, 31))
    rows["text"] = np.arange(1, 31) // 2
    for now, gone in ((rows, ()), ({}, (1, 2)), ({}, (3,)), ({name: values[:2] for name, values in rows.items()}, ())):
        table.apply(now, gone)
        twin.apply(now, gone)
        for _ in range(2):
            assert table.view.texts == len({row["text"] for row in twin.rows.values()} - {0})
            table.settle()


def test_a_view_never_changes_and_no_batch_is_half_seen() -> None:
    rng = np.random.default_rng(1)
    table = RowTable()
    table.apply(random_rows(rng, np.arange(1, 101)))
    before = table.view
    seen = set(before.columns["id"][before.select(RowFilter(internal=True))].tolist())
    table.apply(random_rows(rng, np.arange(50, 201)), removed=np.arange(1, 20))
    table.settle()
    assert set(before.columns["id"][before.select(RowFilter(internal=True))].tolist()) == seen == set(range(1, 101))
    after = table.view
    ids = after.columns["id"][after.select(RowFilter(internal=True))].tolist()
    assert sorted(ids) == list(range(20, 201))


def test_others_can_tell_that_a_table_is_being_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    table, told, build = RowTable(), list[bool](), Base.build

    def watched(columns: Columns, count: int) -> Base:
        told.append(table.settling)
        return build(columns, count)

    monkeypatch.setattr(Base, "build", watched)
    table.apply(random_rows(np.random.default_rng(2), np.arange(1, 101)))
    told.append(table.settling)
    table.settle()
    assert [*told, table.settling] == [False, True, False]


def test_readers_beside_a_writer_see_whole_batches() -> None:
    """Each batch moves all rows to another map; a reader that saw two maps at once saw half a batch."""
    rng = np.random.default_rng(2)
    rows = random_rows(rng, np.arange(1, 301))
    table = RowTable()
    table.apply({**rows, "map": np.zeros(300, dtype=int)})
    done = threading.Event()
    wrong: list[Any] = []

    def read() -> None:
        while not done.is_set():
            view = table.view
            maps = np.unique(view.columns["map"][view.select(RowFilter(internal=True))])
            if len(maps) != 1 or len(view.select(RowFilter(internal=True))) != 300:
                wrong.append(maps)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for turn in range(1, 200):
        table.apply({**rows, "map": np.full(300, turn)})
        if turn % 20 == 0:
            table.settle()
    done.set()
    for reader in readers:
        reader.join()
    assert not wrong


def test_settling_beside_a_writer_loses_nothing() -> None:
    rng = np.random.default_rng(3)
    table, twin = RowTable(), Twin()
    stop = threading.Event()

    def settle() -> None:
        while not stop.is_set():
            table.settle()

    settler = threading.Thread(target=settle)
    settler.start()
    for turn in range(150):
        rows = random_rows(rng, np.unique(rng.integers(1, 2000, 40)))
        gone = rng.integers(1, 2000, 15)
        gone = gone[~np.isin(gone, rows["id"])]
        table.apply(rows, gone)
        twin.apply(rows, gone)
        assert len(table) == len(twin.rows), turn
    stop.set()
    settler.join()
    view = table.view
    assert set(view.columns["id"][view.alive()].tolist()) == set(twin.rows)


def test_fifty_thousand_rows_leave_at_once() -> None:
    rng = np.random.default_rng(4)
    table = RowTable()
    table.apply(random_rows(rng, np.arange(1, 50_011)))
    table.settle()
    table.apply({}, removed=np.arange(1, 50_001))
    assert len(table) == 10
    table.settle()
    assert len(table) == 10
    assert table.nbytes() < 100_000 + 4 * 50_011  # only the starts of texts keep their numbers


def test_a_row_costs_less_than_ninety_five_bytes() -> None:
    assert sum(np.dtype(kind).itemsize for kind, _ in LAYOUT.values()) == 79
    table = RowTable()
    rows = random_rows(np.random.default_rng(0), np.arange(1, 20_001))
    table.apply({**rows, "text": rows["text"] // 50})
    table.settle()
    assert table.nbytes() / 20_000 < 95


def test_nearest_looks_at_few_rows_when_the_circle_holds_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(6)
    table = RowTable()
    table.apply(random_rows(rng, np.arange(1, 30_001)))
    table.settle()
    looked = []
    passes = type(table.view).passes

    def counted(view: Any, rows: RowFilter, slots: np.ndarray) -> np.ndarray:
        looked.append(len(slots))
        return passes(view, rows, slots)

    monkeypatch.setattr(type(table.view), "passes", counted)
    slots, _ = nearest(table.view, RowFilter(), (50.0, 50.0), 1000.0, 10)
    assert len(slots) == 10
    assert sum(looked) <= 1500  # of which some 1000 to estimate how many pass


def test_time_looks_at_few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    table = RowTable()
    table.apply(random_rows(np.random.default_rng(7), np.arange(1, 30_001)))
    table.settle()
    looked = []
    passes = type(table.view).passes

    def counted(view: Any, rows: RowFilter, slots: np.ndarray) -> np.ndarray:
        looked.append(len(slots))
        return passes(view, rows, slots)

    monkeypatch.setattr(type(table.view), "passes", counted)
    assert len(in_time(table.view, RowFilter(), True, 10)) == 10
    assert sum(looked) <= 1100


def test_rows_of_a_rare_kind_are_found_without_looking_at_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    table = RowTable()
    table.apply(random_rows(np.random.default_rng(8), np.arange(1, 30_001)))
    table.settle()
    table.apply(random_rows(np.random.default_rng(9), np.arange(30_001, 30_101)))
    looked = []
    cheap = type(table.view)._cheap

    def counted(view: Any, rows: RowFilter, at: np.ndarray | slice) -> np.ndarray:
        looked.append(cheap(view, rows, at))
        return looked[-1]

    monkeypatch.setattr(type(table.view), "_cheap", counted)
    gists = RowFilter(kinds=(3,), center=(50.0, 50.0), radius=40.0)
    assert 300 < len(table.view.select(gists)) < 1000
    assert 300 < len(nearest(table.view, RowFilter(kinds=(3,)), (50.0, 50.0), 40.0, 1000)[0]) < 1000
    assert sum(map(len, looked)) <= 2 * (1.1 * 0.05 * 30_000 + 100)


@pytest.fixture(params=[0, places.FEW], ids=["tree", "boxes"])
def few_packs(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a circle's packs are asked of the tree, as those of a large table, or found among all boxes."""
    monkeypatch.setattr(places, "FEW", request.param)


def test_f33_unknown_and_infinite_places_never_reach_the_tree(few_packs: None) -> None:
    index = PlaceIndex(
        np.arange(5), np.array([1.0, np.nan, np.inf, -np.inf, 2.0]), np.array([1.0, 0.0, 0.0, 0.0, 2.0])
    )
    assert len(index) == 2
    slots, distances = index.circle(0.0, 0.0, 10.0)
    assert sorted(zip(slots.tolist(), distances.tolist(), strict=True)) == [(0, 2.0**0.5), (4, 8.0**0.5)]
    assert sorted(index.nearest(0.0, 0.0, 9).tolist()) == [0, 4]


def test_f24_unknown_places_are_not_at_the_origin() -> None:
    rows = random_rows(np.random.default_rng(8), np.arange(1, 11))
    table = RowTable()
    table.apply({**rows, "x": np.full(10, np.nan), "y": np.full(10, np.nan), "z": np.full(10, np.nan)})
    assert nearest(table.view, RowFilter(), (0.0, 0.0), 5.0, 10)[0].tolist() == []
    assert table.view.select(RowFilter(center=(0.0, 0.0), radius=1e9)).tolist() == []


def test_f34_a_moved_row_is_found_once_and_at_its_new_place_only() -> None:
    rng = np.random.default_rng(9)
    rows = random_rows(rng, np.arange(1, WHOLE + 2000))
    table = RowTable()
    table.apply({**rows, "internal": np.zeros(len(rows["id"]), dtype=bool)})
    table.settle()
    one = {name: values[:1] for name, values in rows.items()}
    for turn, x in enumerate((300.0, 400.0, 500.0)):
        table.apply({**one, "x": [x], "y": [x], "z": [0.0], "internal": [False]})
        if turn == 1:
            table.settle()
        for at in (300.0, 400.0, 500.0):
            slots, _ = nearest(table.view, RowFilter(), (at, at), 1.0, 5)
            assert table.view.columns["id"][slots].tolist() == ([1] if at == x else [])


def test_f35_many_threads_read_the_tree_at_once(few_packs: None) -> None:
    rng = np.random.default_rng(10)
    x, y = rng.random(20_000) * 100, rng.random(20_000) * 100
    index = PlaceIndex(np.arange(20_000), x, y)
    wrong: list[int] = []

    def read(seed: int) -> None:
        own = np.random.default_rng(seed)
        for _ in range(200):
            cx, cy = own.random(2) * 100
            true = np.flatnonzero((x - cx) ** 2 + (y - cy) ** 2 <= 4.0)
            if sorted(index.circle(cx, cy, 2.0)[0].tolist()) != true.tolist() or len(index.nearest(cx, cy, 7)) != 7:
                wrong.append(seed)

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_lamp_up_high_is_found_from_the_floor() -> None:
    rows = {name: values[:1] for name, values in random_rows(np.random.default_rng(0), np.arange(1, 3)).items()}
    table = RowTable()
    table.apply({**rows, "x": [5.0], "y": [5.0], "z": [2.6], "internal": [False]})
    flat, space = RowFilter(center=(5.0, 5.0), radius=2.0), RowFilter(center=(5.0, 5.0, 0.0), radius=2.0)
    assert len(table.view.select(flat)) == 1
    assert len(table.view.select(space)) == 0
    assert nearest(table.view, replace(flat, center=None, radius=None), (5.0, 5.0), 2.0, 5)[1].tolist() == [0.0]
    assert nearest(table.view, RowFilter(), (5.0, 5.0, 0.0), 3.0, 5)[1].tolist() == [2.6]
