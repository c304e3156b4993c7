"""Things that sentences name, by a language model that may say anything."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence

import pytest
from entities.scene import Namer, Scene, runner

from memory_node.errors import SummarizerError, SummarizerUnreachable
from memory_node.graph import EdgeType, PositionSource
from memory_node.protocols import READ_AT_ONCE, NamedThing, SummaryRow
from memory_node.storage import edges, nodes


def test_named_things_belong_to_the_sentence_that_named_them(scene: Scene) -> None:
    kitchen = scene.say("a mug by the sink", (1.0, 0.0, 0.0))
    office = scene.say("a printer", (9.0, 0.0, 0.0))
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
    id_ = scene.say("a mug", (1.0, 0.0, 0.0))
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
    scene.say("a mug", (1.0, 0.0, 0.0))
    assert runner(scene, Namer(lambda rows: answer)).run("name_things").error == ""
    assert scene.known() == []


def test_odd_items_beside_good_ones_are_skipped(scene: Scene) -> None:
    """F47"""
    id_ = scene.say("a mug", None)
    good, huge = NamedThing(id_, "mug", confidence=math.nan), NamedThing(id_, "lamp", confidence=10**400)
    runner(scene, Namer(lambda rows: [NamedThing(id_, "  "), good, good, huge])).run("name_things")
    mug, lamp = scene.known()
    assert (mug.name, mug.sightings, mug.position) == ("mug", 1, None)
    assert (lamp.name, lamp.sightings) == ("lamp", 1)


def test_names_and_types_are_cleaned_where_they_come_in(scene: Scene) -> None:
    """F47"""
    id_ = scene.say("a mug and a lamp", None)
    answer = [NamedThing(id_, "mug \ud83d\0", None), NamedThing(id_, "lamp\x1b", "li\ude00ght", "high")]  # type: ignore[arg-type]
    assert runner(scene, Namer(lambda rows: answer)).run("name_things").error == ""
    assert [(e.name, e.entity_type) for e in scene.known()] == [("mug", "mug"), ("lamp", "light")]


def test_a_batch_is_no_longer_than_what_a_model_reads_at_once(scene: Scene) -> None:
    texts = [f"a mug of kind {i} " + "in a long story " * 50 for i in range(20)] + ["x" * 30_000, "a lamp"]
    for i, text in enumerate(texts):
        scene.say(text, (3.0 * i, 0.0, 0.0))
    told: list[list[str]] = []

    def read(rows: Sequence[SummaryRow]) -> object:
        told.append([row.text for row in rows])
        return []

    runner(scene, Namer(read)).run("name_things")
    assert [text for batch in told for text in batch] == texts
    assert all(len(batch) == 1 or sum(len(text) + 100 for text in batch) <= READ_AT_ONCE for batch in told)
    assert max(map(len, told)) == 13


def test_a_text_is_read_once_whatever_becomes_of_its_rows_and_joins_where_it_is_said(scene: Scene) -> None:
    first, quiet = scene.say("a mug", (1.0, 0.0, 0.0)), scene.say("it is quiet", (1.0, 0.0, 0.0))
    namer = Namer(lambda rows: [NamedThing(row.id, "mug") for row in rows if "mug" in row.text])
    jobs = runner(scene, namer)
    jobs.run("name_things")
    for _ in range(3):
        scene.db.write(lambda tx: nodes.count_repeats(tx, [(first, 1, 0), (quiet, 1, 0)]))
        before = scene.db.revision
        jobs.run("name_things")
        assert scene.db.revision == before
    again = scene.say("a mug", (30.0, 0.0, 0.0)), scene.say("a mug", (30.0, 0.0, 0.0))
    jobs.run("name_things")
    assert [row.text for row in namer.rows] == ["a mug", "it is quiet"]
    assert [scene.observations(thing.id) for thing in scene.known()] == [[first], list(again)]


def test_a_failing_language_model_leaves_everything_as_it_was(scene: Scene) -> None:
    """F47"""
    scene.say("a mug", (1.0, 0.0, 0.0))

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
    ids = [scene.say("poison" if i == 7 else f"a mug of kind {i}", (3.0 * i, 0.0, 0.0)) for i in range(45)]

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
        scene.say(f"a mug of kind {i}", (3.0 * i, 0.0, 0.0))

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
    scene.say("a mug", (1.0, 0.0, 0.0))
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
