"""Merging duplicates, splitting them again, and things that sentences name."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from entities.scene import Scene

from memory_node.errors import InvalidArgument, SummarizerError, SummarizerUnreachable
from memory_node.graph import EdgeType, Kind, Node, PositionSource
from memory_node.housekeeping import entities as housekeeping
from memory_node.housekeeping.entities import MergeEntities, split_entity
from memory_node.housekeeping.name_things import NameThings
from memory_node.housekeeping.runtime import JobContext, JobRunner
from memory_node.protocols import READ_AT_ONCE, NamedThing, SummaryRow
from memory_node.retrieval import concepts
from memory_node.storage import edges, entities, identity, nodes
from memory_node.storage.database import Transaction

A, NEARBY = (2.0, 0.0, 0.5), (2.9, 0.0, 0.5)
FACING_A = (0.0, 0.0, 0.0)


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with Scene(tmp_path) as opened:
        yield opened


class Namer:
    """A language model that answers by a rule."""

    name = "namer"

    def __init__(self, rule: Callable[[Sequence[SummaryRow]], object]) -> None:
        self.rule = rule
        self.rows: list[SummaryRow] = []

    def summarize(self, rows: Sequence[SummaryRow], max_chars: int) -> str:
        return "things"

    def extract(self, rows: Sequence[SummaryRow]) -> list[NamedThing]:
        self.rows += rows
        return self.rule(rows)  # type: ignore[return-value]


def runner(scene: Scene, namer: Namer | None = None) -> JobRunner:
    context = JobContext(
        db=scene.db,
        settings=lambda: scene.settings,
        now_ns=lambda: 0,
        session_id=lambda: scene.session,
        summarizer=namer,
    )
    return JobRunner(context, [MergeEntities(), NameThings(scene.tracker)])


def drifted(scene: Scene) -> tuple[int, int]:
    """A cup that after drift was taken for another one; returns both ids."""
    for _ in range(6):
        scene.look(("cup", A))
    for _ in range(2):
        scene.look(("cup", NEARBY))
    first, second = scene.known()
    return first.id, second.id


def sentence(scene: Scene, text: str, position: tuple[float, float, float] | None) -> int:
    scene.second += 1.0
    stamp = round(scene.second * 1e9)
    node = Node(
        id=0,
        kind=Kind.OBSERVATION,
        layer="scene",
        text=text,
        text_id=None,
        stamp=stamp,
        last_stamp=stamp,
        position=position,
        position_source=PositionSource.OBSERVER if position else PositionSource.NONE,
        frame="map",
        map_id="house",
        session_id=scene.session,
    )
    return scene.db.write(lambda tx: nodes.insert(tx, node))


def test_duplicates_become_one_by_the_weight_of_their_sightings(scene: Scene) -> None:
    """F46"""
    first, second = drifted(scene)
    observations = scene.observations(first) + scene.observations(second)
    assert runner(scene).run("merge_entities").wrote == 1
    cup = scene.only()
    assert (cup.id, cup.sightings) == (first, 8)
    assert cup.position == pytest.approx((2.0 + 0.9 * 2 / 8, 0.0, 0.5))
    assert scene.observations(first) == observations
    with scene.db.read() as conn:
        assert identity.resolve(conn, second) == first
        assert entities.get(conn, second) == cup
        assert identity.resolve(conn, 999) == 0
        assert [node.text for node in nodes.fetch(conn, [second])] == [None]
    assert scene.observations(second) == observations


def test_a_dry_run_shows_the_pair_and_leaves_it_to_be_merged(scene: Scene) -> None:
    first, second = drifted(scene)
    jobs, before = runner(scene), scene.db.revision
    assert jobs.run("merge_entities", dry_run=True).found == ((first, second),)
    assert scene.db.revision == before
    assert jobs.run("merge_entities").wrote == 1
    assert scene.only().id == first


def test_a_job_run_twice_changes_nothing(scene: Scene) -> None:
    """F43: nothing but a sighting makes last_seen younger."""
    drifted(scene)
    jobs = runner(scene)
    jobs.run("merge_entities")
    before = scene.rows()
    assert jobs.run("merge_entities").wrote == 0
    assert runner(scene).run("merge_entities").wrote == 0
    assert scene.rows() == before


def test_a_run_over_what_has_not_changed_reads_none_of_it(tmp_path: Path) -> None:
    """However many things and rows there are, and however long ago the last merge was."""

    def work_of_a_run(things: int) -> int:
        folder = tmp_path / str(things)
        folder.mkdir()
        with Scene(folder) as scene:
            for number in range(things):
                scene.look((f"thing{number}", (5.0 * number, 0.0, 0.5)))
            for _ in range(things):
                sentence(scene, "nothing new", None)
            jobs, counted = runner(scene), []
            assert jobs.run("merge_entities").wrote == 0
            with scene.db.read() as conn:
                conn.set_progress_handler(lambda: counted.append(1), 1)
                jobs.run("merge_entities")
                conn.set_progress_handler(None, 0)
            return len(counted)

    assert 0 < work_of_a_run(200) < 1.5 * work_of_a_run(5)


def test_how_far_a_job_came_is_kept_now_and_then(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the next start does not compare everything again when nothing was ever merged."""
    monkeypatch.setattr(housekeeping, "SAVE_EVERY", 6)
    for number in range(4):
        scene.look((f"thing{number}", A))
    runner(scene).run("merge_entities")
    assert runner(scene).run("merge_entities").scanned == 0


def test_things_seen_together_are_never_merged(scene: Scene) -> None:
    """F45"""
    scene.look(("cup", A), ("cup", (2.2, 0.0, 0.5)))
    for _ in range(4):
        scene.look(("cup", (1.9, 0.0, 0.5)))
        scene.look(("cup", (2.3, 0.0, 0.5)))
    assert runner(scene).run("merge_entities").wrote == 0
    assert len(scene.known()) == 2


def test_things_apart_are_never_merged(scene: Scene) -> None:
    """F45"""
    for _ in range(3):
        scene.look(("chair", A))
    for _ in range(3):
        scene.look(("chair", (5.0, 0.0, 0.5)))
    runner(scene).run("merge_entities")
    assert len(scene.known()) == 2


def test_the_tracker_goes_on_with_the_merged_one(scene: Scene) -> None:
    first, _ = drifted(scene)
    runner(scene).run("merge_entities")
    scene.look(("cup", (2.2, 0.0, 0.5)))
    assert (scene.only().id, scene.only().sightings) == (first, 9)


def test_a_wrong_merge_is_split_and_stays_split(scene: Scene) -> None:
    first, second = drifted(scene)
    of_second = scene.observations(second)
    jobs = runner(scene)
    jobs.run("merge_entities")
    new = scene.db.write(lambda tx: split_entity(tx, second, of_second))
    old, split = scene.known()
    assert (old.id, split.id) == (first, new)
    assert (old.sightings, split.sightings) == (6, 2)
    assert old.position == pytest.approx(A)
    assert split.position == pytest.approx(NEARBY)
    assert scene.observations(new) == of_second
    assert split.first_seen > old.last_seen
    jobs.run("merge_entities")
    assert len(scene.known()) == 2


def moved_from_a_to(scene: Scene, *places: tuple[float, float, float]) -> list[list[int]]:
    """A cup seen at A and then at each place in turn, no more at those before; returns its observations by place."""
    found = []
    for number, place in enumerate((A, *places)):
        scene.second += 3600.0
        found.append([scene.look(("cup", place), at=(place[0] - 2.0, place[1], 0.0))[0] for _ in range(3)])
        for old in (A, *places)[:number]:
            for _ in range(4):
                scene.look(at=(old[0] - 2.0, old[1], 0.0))
    return found


def test_a_wrong_move_is_undone_by_a_split(scene: Scene) -> None:
    at_a, at_b = moved_from_a_to(scene, (8.0, 0.0, 0.5))
    moved = scene.only()
    assert moved.moved and len(moved.history) == 1
    scene.db.write(lambda tx: split_entity(tx, moved.id, at_b))
    old, new = scene.known()
    assert (old.position, new.position) == (pytest.approx(A), pytest.approx((8.0, 0.0, 0.5)))
    for cup, seen in ((old, at_a), (new, at_b)):
        assert (cup.moved, cup.missing, cup.tentative, cup.history, cup.sightings) == (False, False, False, (), 3)
        assert scene.observations(cup.id) == seen
    assert old.first_seen == moved.first_seen and old.last_seen == moved.history[0].last_seen
    assert new.first_seen > old.last_seen and new.last_seen == moved.last_seen


def test_a_wrong_move_that_was_undone_is_not_made_again(scene: Scene) -> None:
    _, at_b = moved_from_a_to(scene, (8.0, 0.0, 0.5))
    scene.db.write(lambda tx: split_entity(tx, scene.only().id, at_b))
    for _ in range(5):
        scene.look(at=FACING_A)
    assert [(cup.missing, cup.moved, cup.sightings) for cup in scene.known()] == [(True, False, 3), (False, False, 3)]
    scene.look(("cup", A), at=FACING_A)
    assert [(cup.missing, cup.sightings) for cup in scene.known()] == [(False, 4), (False, 3)]


def test_what_was_missing_is_missing_after_a_split(scene: Scene) -> None:
    seen = [scene.look(("cup", A), at=FACING_A)[0] for _ in range(6)]
    for _ in range(5):
        scene.look(at=FACING_A)
    missing = scene.only()
    scene.db.write(lambda tx: split_entity(tx, missing.id, seen[:3]))
    rest, new = scene.known()
    assert rest.missing and new.missing
    assert rest.confidence == new.confidence == missing.confidence < 0.1
    scene.look(("cup", A), at=FACING_A)
    assert sorted(cup.missing for cup in scene.known()) == [False, True]


def test_a_split_leaves_out_the_doubt_of_another_place(scene: Scene) -> None:
    shelf = ("shelf", (2.0, 9.5, 0.5))
    for _ in range(3):
        scene.look(("cup", A), at=FACING_A)
        scene.look(shelf, at=(0.0, 9.0, 0.0))
    moved = [scene.look(("cup", (2.0, 9.0, 0.5)), shelf, at=(0.0, 9.0, 0.0))[0] for _ in range(3)]
    for _ in range(4):
        scene.look(at=FACING_A)
    for _ in range(4):
        scene.look(shelf, at=(0.0, 9.0, 0.0))
    cup = scene.known()[0]
    assert cup.moved and cup.missing
    scene.db.write(lambda tx: split_entity(tx, cup.id, moved))
    cups = [entity for entity in scene.known() if entity.name == "cup"]
    assert [(cup.position, cup.missing) for cup in cups] == [
        (pytest.approx(A), False), (pytest.approx((2.0, 9.0, 0.5)), True)
    ]  # fmt: skip


def test_the_history_is_that_of_the_sightings_that_remain(scene: Scene) -> None:
    b, c = (8.0, 0.0, 0.5), (2.0, 20.0, 0.5)
    at_a, at_b, at_c = moved_from_a_to(scene, b, c)
    scene.db.write(lambda tx: split_entity(tx, scene.only().id, at_b))
    old, new = scene.known()
    assert (old.position, old.moved, new.position, new.moved) == (pytest.approx(c), True, pytest.approx(b), False)
    (before,) = old.history
    assert (before.position, before.support, new.history) == (pytest.approx(A), 3, ())
    assert scene.observations(old.id) == at_a + at_c


def three_of_one(scene: Scene) -> tuple[int, list[list[int]]]:
    """One cup made of three that stand in a row; returns it and the observations of each."""
    seen = [[scene.look(("cup", (x, 0.0, 0.5)))[0] for _ in range(3)] for x in (2.0, 2.2, 2.35)]
    return scene.only().id, seen


def test_all_that_was_split_from_one_entity_stays_apart(scene: Scene) -> None:
    cup, (_, second, third) = three_of_one(scene)
    for seen in (second, third):
        scene.db.write(lambda tx, seen=seen: split_entity(tx, cup, seen))
    assert runner(scene).run("merge_entities").wrote == 0
    assert [cup.sightings for cup in scene.known()] == [3, 3, 3]


def test_what_was_split_twice_stays_apart_from_the_first_too(scene: Scene) -> None:
    cup, (_, second, third) = three_of_one(scene)
    both = scene.db.write(lambda tx: split_entity(tx, cup, second + third))
    scene.db.write(lambda tx: split_entity(tx, both, third))
    assert runner(scene).run("merge_entities").wrote == 0
    assert len(scene.known()) == 3


def test_a_merge_with_a_third_undoes_no_split(scene: Scene) -> None:
    cup, (_, second, third) = three_of_one(scene)
    other = scene.db.write(lambda tx: split_entity(tx, cup, second + third))

    def into_one_more(tx: Transaction) -> int:
        gone = split_entity(tx, other, third)
        tx.conn.execute("UPDATE node SET metadata = NULL WHERE id = ?", (gone,))  # one that nobody split
        entities.absorb(tx, gone, other)
        return gone

    third_cup = scene.db.write(into_one_more)
    assert [entity.id for entity in scene.known()] == [cup, third_cup]
    assert runner(scene).run("merge_entities").wrote == 0


@pytest.mark.parametrize(("id_", "which"), [(999, "id"), (None, "observation_ids")])
def test_a_split_says_what_was_wrong(scene: Scene, id_: int | None, which: str) -> None:
    scene.look(("cup", A))
    cup = scene.only().id
    with pytest.raises(InvalidArgument) as caught:
        scene.db.write(lambda tx: split_entity(tx, id_ or cup, scene.observations(cup)))
    assert caught.value.argument == which


def test_words_that_turn_out_to_mean_the_same_are_merged(tmp_path: Path) -> None:
    from memory_node.storage import vectors

    with Scene(tmp_path) as scene:
        for word in ("sofa", "couch"):
            for _ in range(2):
                scene.look((word, A))
        assert len(scene.known()) == 2

        def embed(tx: object) -> None:
            model = vectors.open_model(tx, "words", 2)  # type: ignore[arg-type]
            vectors.activate(tx, model.id)  # type: ignore[arg-type]
            for word, vector in (("sofa", [1.0, 0.0]), ("couch", [0.9, math.sqrt(0.19)])):
                text = tx.conn.execute("SELECT id FROM text WHERE body = ?", (word,)).fetchone()[0]  # type: ignore[attr-defined]
                vectors.add_text(tx, model.id, text, np.float32([vector]))  # type: ignore[arg-type]

        scene.db.write(embed)
        runner(scene).run("merge_entities")
        assert (scene.only().name, scene.only().sightings) == ("sofa", 4)


def test_duplicates_by_two_names_of_one_thing_are_merged(scene: Scene) -> None:
    for word in ("sofa", "couch"):
        for _ in range(2):
            scene.look((word, A))
    assert runner(scene).run("merge_entities").wrote == 0
    scene.look(("couch", A))
    job = MergeEntities(concepts.other_names)
    assert JobRunner(runner(scene).context, [job]).run("merge_entities").wrote == 1
    assert (scene.only().name, scene.only().sightings) == ("sofa", 5)


def test_named_things_belong_to_the_sentence_that_named_them(scene: Scene) -> None:
    kitchen = sentence(scene, "a mug by the sink", (1.0, 0.0, 0.0))
    office = sentence(scene, "a printer", (9.0, 0.0, 0.0))
    namer = Namer(
        lambda rows: [
            NamedThing(kitchen, "Mug", "tableware", 0.8),
            NamedThing(kitchen, "sink"),
            NamedThing(office, "printer"),
        ]
    )
    assert runner(scene, namer).run("name_things").wrote == 3
    mug, sink, printer = scene.known()
    assert (mug.name, mug.entity_type, mug.position, mug.position_source) == (
        "mug",
        "tableware",
        (1.0, 0.0, 0.0),
        PositionSource.OBSERVER,
    )
    assert [scene.observations(thing.id) for thing in (mug, sink, printer)] == [[kitchen], [kitchen], [office]]
    assert (sink.position, printer.position) == ((1.0, 0.0, 0.0), (9.0, 0.0, 0.0))
    with scene.db.read() as conn:
        together = {(e.source, e.target) for e in edges.of(conn, sink.id) if e.type is EdgeType.COOCCURS_WITH}
    assert together == {(mug.id, sink.id)}


def test_sentences_are_read_once(scene: Scene) -> None:
    """F43"""
    id_ = sentence(scene, "a mug", (1.0, 0.0, 0.0))
    namer = Namer(lambda rows: [NamedThing(rows[0].id, "mug")])
    jobs = runner(scene, namer)
    jobs.run("name_things")
    before = scene.rows()
    jobs.run("name_things")
    assert [row.id for row in namer.rows] == [id_]
    assert scene.rows() == before


@pytest.mark.parametrize(
    "answer",
    [
        None, "no list", [None], [NamedThing(999, "ghost")], [NamedThing(-1, "")], [{"name": "mug"}],
        [NamedThing([1], "mug")], [NamedThing(None, "mug")], [NamedThing(1, 7)], [NamedThing(1, "\ud83d\x1b")],
        [NamedThing(1, "very " * 3000)],
    ],  # fmt: skip
)
def test_bad_answers_of_a_language_model_are_skipped(scene: Scene, answer: object) -> None:
    """F47: bad items are skipped."""
    sentence(scene, "a mug", (1.0, 0.0, 0.0))
    assert runner(scene, Namer(lambda rows: answer)).run("name_things").error == ""
    assert scene.known() == []


def test_odd_items_beside_good_ones_are_skipped(scene: Scene) -> None:
    """F47"""
    id_ = sentence(scene, "a mug", None)
    good, huge = NamedThing(id_, "mug", confidence=math.nan), NamedThing(id_, "lamp", confidence=10**400)
    runner(scene, Namer(lambda rows: [NamedThing(id_, "  "), good, good, huge])).run("name_things")
    mug, lamp = scene.known()
    assert (mug.name, mug.sightings, mug.position) == ("mug", 1, None)
    assert (lamp.name, lamp.sightings) == ("lamp", 1)


def test_names_and_types_are_cleaned_where_they_come_in(scene: Scene) -> None:
    """F47"""
    id_ = sentence(scene, "a mug and a lamp", None)
    answer = [NamedThing(id_, "mug \ud83d\0", None), NamedThing(id_, "lamp\x1b", "li\ude00ght", "high")]  # type: ignore[arg-type]
    assert runner(scene, Namer(lambda rows: answer)).run("name_things").error == ""
    assert [(e.name, e.entity_type) for e in scene.known()] == [("mug", "mug"), ("lamp", "light")]


def test_a_batch_is_no_longer_than_what_a_model_reads_at_once(scene: Scene) -> None:
    texts = [f"a mug of kind {i} " + "in a long story " * 50 for i in range(20)] + ["x" * 30_000, "a lamp"]
    for i, text in enumerate(texts):
        sentence(scene, text, (3.0 * i, 0.0, 0.0))
    told: list[list[str]] = []

    def read(rows: Sequence[SummaryRow]) -> object:
        told.append([row.text for row in rows])
        return []

    runner(scene, Namer(read)).run("name_things")
    assert [text for batch in told for text in batch] == texts
    assert all(len(batch) == 1 or sum(len(text) + 100 for text in batch) <= READ_AT_ONCE for batch in told)
    assert max(map(len, told)) == 13


def test_a_text_is_read_once_whatever_becomes_of_its_rows_and_joins_where_it_is_said(scene: Scene) -> None:
    first, quiet = sentence(scene, "a mug", (1.0, 0.0, 0.0)), sentence(scene, "it is quiet", (1.0, 0.0, 0.0))
    namer = Namer(lambda rows: [NamedThing(row.id, "mug") for row in rows if "mug" in row.text])
    jobs = runner(scene, namer)
    jobs.run("name_things")
    for _ in range(3):
        scene.db.write(lambda tx: nodes.count_repeats(tx, [(first, 1, 0), (quiet, 1, 0)]))
        before = scene.db.revision
        jobs.run("name_things")
        assert scene.db.revision == before
    again = sentence(scene, "a mug", (30.0, 0.0, 0.0)), sentence(scene, "a mug", (30.0, 0.0, 0.0))
    jobs.run("name_things")
    assert [row.text for row in namer.rows] == ["a mug", "it is quiet"]
    assert [scene.observations(thing.id) for thing in scene.known()] == [[first], list(again)]


def test_a_failing_language_model_leaves_everything_as_it_was(scene: Scene) -> None:
    """F47"""
    sentence(scene, "a mug", (1.0, 0.0, 0.0))

    def fail(rows: Sequence[SummaryRow]) -> object:
        raise TimeoutError("no answer")

    assert "no answer" in runner(scene, Namer(fail)).run("name_things").error
    assert scene.known() == []
    good = Namer(lambda rows: [NamedThing(rows[0].id, "mug")])
    runner(scene, good).run("name_things")
    assert scene.only().name == "mug"


def test_a_text_that_the_model_fails_at_does_not_keep_the_others_waiting(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    ids = [sentence(scene, "poison" if i == 7 else f"a mug of kind {i}", (3.0 * i, 0.0, 0.0)) for i in range(45)]

    def name_all(rows: Sequence[SummaryRow]) -> object:
        if any(row.text == "poison" for row in rows):
            raise SummarizerError("too strange for me")
        return [NamedThing(row.id, row.text) for row in rows]

    jobs = runner(scene, Namer(name_all))
    for _ in range(2):
        assert "too strange" in jobs.run("name_things").error
        assert [entity.name for entity in scene.known()] == [f"mug of kind {i}" for i in range(7)]
    assert jobs.run("name_things").error == ""
    assert len(scene.known()) == 44
    assert [r.message for r in caplog.records if "cannot name" in r.message] == [
        f"namer cannot name the things of observation {ids[7]}: too strange for me"
    ]
    before = scene.db.revision
    assert jobs.run("name_things").scanned == 0 and scene.db.revision == before


def test_a_model_that_is_down_is_asked_once_a_run_and_loses_nothing(scene: Scene) -> None:
    for i in range(30):
        sentence(scene, f"a mug of kind {i}", (3.0 * i, 0.0, 0.0))

    def down(rows: Sequence[SummaryRow]) -> object:
        raise SummarizerUnreachable("nobody there")

    namer = Namer(down)
    jobs = runner(scene, namer)
    for asked in (20, 40, 60, 80):
        assert "nobody there" in jobs.run("name_things").error
        assert len(namer.rows) == asked
    namer.rule = lambda rows: [NamedThing(row.id, row.text) for row in rows]
    jobs.run("name_things")
    assert len(scene.known()) == 30


def test_closing_does_not_wait_for_a_slow_language_model(scene: Scene) -> None:
    """F47"""
    sentence(scene, "a mug", (1.0, 0.0, 0.0))
    asked, release = threading.Event(), threading.Event()

    def wait(rows: Sequence[SummaryRow]) -> object:
        asked.set()
        release.wait(60.0)
        return [NamedThing(rows[0].id, "mug")]

    jobs = runner(scene, Namer(wait))
    running = threading.Thread(target=jobs.run, args=("name_things",))
    running.start()
    try:
        assert asked.wait(30.0)
        jobs.close()
        running.join(30.0)
        assert not running.is_alive()
    finally:
        release.set()
    assert scene.known() == []


def test_labels_stand_in_order_and_as_many_as_are_asked_for(scene: Scene) -> None:
    scene.look(("cup", A), ("bowl", NEARBY), ("sofa", (5.0, 0.0, 0.5)), ("cup", (8.0, 0.0, 0.5)))
    with scene.db.read() as conn:
        assert entities.labels(conn) == ["bowl", "cup", "sofa"]
        assert entities.labels(conn, 2) == ["bowl", "cup"]
        assert entities.labels(conn, 0) == []
