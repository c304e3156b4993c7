"""Writing through the facade: what is accepted, what is refused, what is kept."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from support.fakes import FakeClock, WordEmbedder

from memory_node.errors import ClosedError, InvalidArgument, LockedError, ReadOnlyError, StorageError
from memory_node.graph import Detection, EdgeType, Filter, Kind, Pose, PositionSource, Tier
from memory_node.memory import Memory

S = 1_000_000_000


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(1000.0)


@pytest.fixture
def memory(tmp_path: Path, clock: FakeClock) -> Iterator[Memory]:
    with Memory.open(tmp_path / "robot.db", embedder=WordEmbedder(), clock=clock) as opened:
        yield opened


def test_a_row_keeps_all_that_was_said_of_it(memory: Memory) -> None:
    id = memory.record(
        "a red chair",
        layer="scene",
        position=(1.0, 2.0, 0.5),
        stamp=5 * S,
        confidence=0.8,
        importance=0.3,
        metadata={"who": "me"},
        frame="map",
    )
    memory.flush()
    (node,) = memory.nodes()
    assert (node.id, node.kind, node.layer, node.text) == (id, Kind.OBSERVATION, "scene", "a red chair")
    assert node.position == (1.0, 2.0, 0.5) and node.position_source is PositionSource.MEASURED and node.frame == "map"
    assert (node.stamp, node.last_stamp, node.repeats) == (5 * S, 5 * S, 1)
    assert (node.confidence, node.importance, dict(node.metadata)) == (0.8, 0.3, {"who": "me"})
    assert node.tier is Tier.SHORT_TERM and node.session_id == memory.status().session


def test_stamp_zero_and_place_zero_are_legal_and_unknown_place_stays_unknown(memory: Memory) -> None:
    memory.record("at the start", stamp=0, position=(0.0, 0.0, 0.0))
    memory.record("somewhere")
    memory.flush()
    first, second = memory.nodes()
    assert first.stamp == 0 and first.position == (0.0, 0.0, 0.0)
    assert second.stamp == 1000 * S and second.position is None and second.position_source is PositionSource.NONE


def test_stamps_in_words(memory: Memory) -> None:
    memory.record("a while ago", stamp="-10m")
    memory.record("by the clock on the wall", stamp="500")
    memory.flush()
    assert [node.stamp for node in memory.nodes()] == [400 * S, 500 * S]


@pytest.mark.parametrize(
    ("argument", "values"),
    [
        ("text", {"text": ""}),
        ("text", {"text": " \n"}),
        ("text", {"text": "x" * 100_001}),
        ("text", {"text": None}),
        ("layer", {"layer": ""}),
        ("layer", {"layer": "a\nb"}),
        ("position", {"position": (1.0, 2.0)}),
        ("position", {"position": (float("nan"), 0.0, 0.0)}),
        ("position", {"position": (1e256, 0.0, 0.0)}),
        ("stamp", {"stamp": 1.5}),
        ("stamp", {"stamp": 2**63}),
        ("confidence", {"confidence": 1.1}),
        ("confidence", {"confidence": float("nan")}),
        ("importance", {"importance": -0.1}),
        ("metadata", {"metadata": {"x": float("nan")}}),
        ("metadata", {"metadata": {"x": object()}}),
        ("frame", {"frame": "camera"}),
        ("source", {"source": "dream"}),
        ("vector", {"vector": [1.0, 2.0]}),
        ("vector", {"vector": [0.0] * 64}),
        ("vector", {"vector": [float("inf")] + [0.0] * 63}),
        ("position_source", {"position_source": "guessed"}),
    ],
)
def test_f11_a_wrong_argument_is_named_and_nothing_is_stored(
    memory: Memory, argument: str, values: dict[str, object]
) -> None:
    with pytest.raises(InvalidArgument) as caught:
        memory.record(**{"text": "a chair", "layer": "scene", **values})  # type: ignore[arg-type]
    assert caught.value.argument == argument and str(caught.value).startswith(argument)
    memory.flush()
    assert memory.nodes() == []


def test_f7_text_that_is_not_utf8_is_repaired(memory: Memory) -> None:
    memory.record("caf\udce9 \0 table")
    memory.flush()
    assert memory.nodes()[0].text == "caf?  table"


def test_f7_metadata_and_units_that_are_not_utf8_are_repaired(memory: Memory) -> None:
    memory.record("a table", metadata={"caf\udce9": ["\ud800", {"deep": "\udfff\u0000"}]})
    memory.record_body_state("21", "temperature", 21.0, unit="\udcb0C")
    memory.start_episode("round", metadata={"where": "caf\udce9"})
    memory.flush()
    rows = {node.text: node for node in memory.nodes()}
    assert dict(rows["a table"].metadata) == {"caf?": ["?", {"deep": "?\0"}]}
    assert dict(rows["round"].metadata) == {"where": "caf?"} and rows["21"].unit == "?C"
    assert memory.status().warnings == ()


def test_detections_give_ids_in_order_entities_and_zero_for_the_unusable(memory: Memory) -> None:
    seen = [
        Detection("chair", 0.9, (1.0, 2.0, 0.4), "7"),
        Detection("", 0.9),
        Detection("table", float("nan")),
        Detection("cup", 3.0, (float("nan"), 0.0, 0.0)),
    ]
    ids = memory.record_detections(seen, pose=(0.0, 0.0, 0.0, 1.57))
    memory.flush()
    assert [id > 0 for id in ids] == [True, False, False, True]
    chair, cup = [node for node in memory.nodes() if node.kind is Kind.OBSERVATION]
    assert (chair.id, chair.text, chair.position) == (ids[0], "chair", (1.0, 2.0, 0.4))
    assert dict(chair.metadata) == {"track_id": "7"}
    assert (cup.id, cup.confidence, cup.position, cup.position_source) == (
        ids[3], 1.0, (0.0, 0.0, 0.0), PositionSource.OBSERVER,
    )
    (entity,) = memory.entity_query(name="chair").entities
    assert memory.entity_observations(entity.id) == [ids[0]]
    assert memory.status().layers[0].refused == 2


def test_an_empty_message_is_a_look_and_stores_nothing(memory: Memory) -> None:
    assert memory.record_detections([], pose=(0.0, 0.0, 0.0, 0.0)) == []
    memory.flush()
    assert memory.nodes() == []


def test_readings_of_the_body_stay_out_of_perception(memory: Memory) -> None:
    memory.record_body_state("battery: 45%", layer="battery", value=0.45, unit="%")
    memory.record("the battery shelf", layer="scene")
    found = memory.semantic_search("battery")
    assert [match.text for match in found.matches] == ["the battery shelf"]
    (reading,) = memory.body_status().readings
    assert (reading.layer, reading.value, reading.unit, reading.stamp) == ("battery", 0.45, "%", 1000 * S)
    assert memory.wait_embedded(10.0) and memory.status().vectors == 1


def test_a_drop_is_an_event_joined_to_what_was_seen_around_it(memory: Memory, clock: FakeClock) -> None:
    for second in range(60):
        clock.advance(1.0)
        value = 0.9 if second < 50 else 0.8
        memory.record_body_state("battery", "battery", value, "fraction", position=(1.0, 0.0, 0.0))
    before = memory.record("the robot climbs the ramp", layer="scene", stamp=1045 * S)
    late = memory.record("back on the flat", layer="scene", stamp=1070 * S)
    far = memory.record("in the kitchen", layer="scene", stamp=1200 * S)
    memory.flush()
    (event,) = [node for node in memory.nodes() if node.layer == "events"]
    assert event.text is not None and event.text.startswith("battery dropped from 90% to 80% within ")
    assert event.position == (1.0, 0.0, 0.0)
    joined = {edge.source for edge in memory.edges(event.id) if edge.type is EdgeType.NEAR_EVENT}
    assert joined == {before, late} and far not in joined


def test_an_event_that_goes_on_is_one_row_that_tells_and_joins_all_of_it(memory: Memory, clock: FakeClock) -> None:
    ids = []
    for second in range(200):
        clock.advance(1.0)
        value = 0.9 - 0.01 * min(max(second - 50, 0), 60)
        memory.record_body_state("battery", "battery", value, "fraction")
        ids.append(memory.record(f"corridor {second}", layer="scene"))
        if second % 7 == 0:
            memory.flush()
    memory.flush()
    (event,) = [node for node in memory.nodes() if node.layer == "events"]
    assert event.text == "battery dropped from 90% to 30% within 60 s"
    assert (event.last_stamp - event.stamp, event.metadata["after"]) == (57 * S, pytest.approx(0.3))
    joined = {edge.source for edge in memory.edges(event.id) if edge.type is EdgeType.NEAR_EVENT}
    assert joined == set(ids[20:141])
    assert len([text for text in (node.text for node in memory.nodes()) if text == event.text]) == 1


@pytest.mark.parametrize(("pause", "there"), [(60.0, True), (2 * 3600.0, False)])
def test_a_drop_across_a_restart_is_an_event_unless_the_pause_was_long(
    tmp_path: Path, clock: FakeClock, pause: float, there: bool
) -> None:
    for value in (0.9, 0.5):
        with Memory.open(tmp_path / "robot.db", clock=clock) as memory:
            for _ in range(20):
                memory.record_body_state("battery", "battery", value, "fraction")
                clock.advance(1.0)
            memory.flush()
            found = memory.temporal_query(Filter(layers=("events",))).matches
        clock.advance(pause)
    said = f"battery dropped from 90% to 50% within {pause + 1:.0f} s"
    assert [match.text for match in found] == ([said] if there else [])


def test_repeats_are_counted_exactly_on_one_row(tmp_path: Path, clock: FakeClock) -> None:
    settings = {"fold_repeats": True}
    with Memory.open(tmp_path / "fold.db", clock=clock, settings=settings) as memory:
        ids = set()
        for _ in range(500):
            clock.advance(1.0)
            ids.add(memory.record("a chair", layer="scene", position=(1.0, 1.0, 0.0)))
        ids.add(memory.record("a chair", layer="scene", position=(5.0, 1.0, 0.0)))
        memory.flush()
        first, second = memory.nodes()
        assert ids == {first.id, second.id}
        assert (first.repeats, first.stamp, first.last_stamp) == (500, 1001 * S, 1500 * S)
        assert second.repeats == 1
        (scene,) = memory.status().layers
        assert (scene.received, scene.stored, scene.folded) == (501, 2, 499)


def test_readings_with_a_vector_are_repeats_too(tmp_path: Path, clock: FakeClock) -> None:
    settings = {"fold_repeats": True}
    with Memory.open(tmp_path / "fold.db", clock=clock, settings=settings) as memory:
        ids = {memory.record("a chair", layer="scene", position=(1.0, 1.0, 0.0))}
        ids |= {memory.record("a chair", "scene", (1.0, 1.0, 0.0), vector=[1.0, 0.0, 0.0]) for _ in range(4)}
        assert memory.wait_embedded(60.0)
        (node,) = memory.nodes()
        assert ids == {node.id} and node.repeats == 5
        assert memory.semantic_search(vector=[1.0, 0.0, 0.0]).matches[0].id == node.id


def test_no_reading_is_counted_on_a_row_that_was_refused(tmp_path: Path, clock: FakeClock) -> None:
    settings = {"fold_repeats": True, "flush_interval": 60.0, "flush_batch_size": 100}
    with Memory.open(tmp_path / "fold.db", clock=clock, settings=settings) as memory:
        memory.record("the first of its layer", layer="scene")
        memory.flush()
        with closing(sqlite3.connect(tmp_path / "fold.db")) as other, other:
            other.execute("CREATE TRIGGER no BEFORE INSERT ON text BEGIN SELECT raise(ABORT, 'no texts'); END")
        refused = memory.record("a chair", layer="scene")
        with pytest.raises(StorageError, match="no texts"):
            memory.flush()
        with closing(sqlite3.connect(tmp_path / "fold.db")) as other, other:
            other.execute("DROP TRIGGER no")
        ids = {memory.record("a chair", layer="scene") for _ in range(3)}
        memory.flush()
        assert [(n.text, n.repeats) for n in memory.nodes()] == [("the first of its layer", 1), ("a chair", 3)]
        assert refused not in ids and ids == {memory.nodes()[1].id}
        (scene,) = memory.status().layers
        assert (scene.received, scene.stored, scene.folded, scene.refused) == (5, 2, 2, 1)


def test_the_first_repeat_of_a_refused_row_becomes_the_row(tmp_path: Path, clock: FakeClock) -> None:
    settings = {"fold_repeats": True, "flush_interval": 60.0, "flush_batch_size": 100}
    with Memory.open(tmp_path / "fold.db", clock=clock, settings=settings) as memory:
        memory.record("the first of its layer", layer="scene")
        memory.flush()
        with closing(sqlite3.connect(tmp_path / "fold.db")) as other, other:
            other.execute(
                "CREATE TRIGGER no BEFORE INSERT ON node WHEN new.confidence = 0.5"
                " BEGIN SELECT raise(ABORT, 'no halves'); END"
            )
        ids = {memory.record("a chair", layer="scene", confidence=share) for share in (0.5, 0.6, 0.7)}
        with pytest.raises(StorageError, match="no halves"):
            memory.flush()
        chair = memory.nodes()[1]
        assert ids == {chair.id} and (chair.text, chair.confidence, chair.repeats) == ("a chair", 0.6, 2)


def test_a_note_without_a_place_lies_where_the_robot_was(memory: Memory) -> None:
    memory.update_pose(Pose(999 * S, (0.0, 0.0, 0.0), 0.0))
    memory.update_pose(Pose(1001 * S, (2.0, 0.0, 0.0), 0.0))
    id = memory.store_specific_memory("the fuse box is here")
    (node,) = memory.nodes()
    assert node.id == id and node.layer == "notes" and node.tier is Tier.LONG_TERM
    assert node.position == (1.0, 0.0, 0.0) and node.position_source is PositionSource.OBSERVER


def test_vectors_that_callers_bring_need_no_embedder(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "given.db", clock=FakeClock()) as memory:
        axes = np.eye(8, dtype=np.float32)
        ids = [memory.record(f"text {i}", layer="scene", vector=axes[i]) for i in range(8)]
        assert memory.wait_embedded(10.0)
        found = memory.semantic_search(vector=axes[3] + 0.1 * axes[4], limit=2)
        assert [match.id for match in found.matches] == [ids[3], ids[4]]
        assert found.matches[0].similarity == pytest.approx(0.995, abs=0.002)
    with Memory.open(tmp_path / "given.db", clock=FakeClock()) as memory:
        assert memory.semantic_search(vector=axes[5], limit=1).matches[0].id == ids[5]


def test_after_close_every_call_says_so(tmp_path: Path) -> None:
    memory = Memory.open(tmp_path / "robot.db", clock=FakeClock())
    memory.close()
    memory.close()
    for call in (lambda: memory.record("x"), memory.flush, lambda: memory.locate("x"), memory.status, memory.jobs):
        with pytest.raises(ClosedError):
            call()


def test_one_process_writes_and_another_may_read(tmp_path: Path, memory: Memory) -> None:
    memory.record("a red chair", layer="scene", position=(1.0, 2.0, 0.0))
    memory.flush()
    script = (
        "import sys\n"
        "from memory_node.memory import Memory\n"
        "from memory_node.errors import LockedError\n"
        "try:\n"
        "    Memory.open(sys.argv[1])\n"
        "except LockedError as error:\n"
        "    print('locked', sys.argv[1] in str(error))\n"
        "with Memory.open(sys.argv[1], read_only=True) as memory:\n"
        "    print(memory.spatial_query((1.0, 2.0), 1.0).matches[0].text)\n"
    )
    path = str(tmp_path / "robot.db")
    done = subprocess.run([sys.executable, "-c", script, path], capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines() == ["locked True", "a red chair"], done.stderr
    with pytest.raises(LockedError):
        Memory.open(path)


def test_a_read_only_memory_follows_the_writer_and_refuses_writes(tmp_path: Path, memory: Memory) -> None:
    memory.record("first", layer="scene", position=(0.0, 0.0, 0.0))
    memory.flush()
    with Memory.open(tmp_path / "robot.db", read_only=True, clock=FakeClock()) as reader:
        assert [m.text for m in reader.spatial_query((0.0, 0.0), 1.0).matches] == ["first"]
        memory.record("second", layer="scene", position=(0.5, 0.0, 0.0))
        memory.flush()
        assert [m.text for m in reader.spatial_query((0.0, 0.0), 1.0).matches] == ["first", "second"]
        with pytest.raises(ReadOnlyError):
            reader.record("third")
        with pytest.raises(ReadOnlyError):
            reader.run_job("gists")


def test_f39_a_folder_that_is_missing_is_made_and_a_file_in_its_place_is_named(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "a" / "b" / "robot.db") as memory:
        memory.record("x")
    assert (tmp_path / "a" / "b" / "robot.db").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="file"):
        Memory.open(tmp_path / "file" / "robot.db")


def test_settings_that_may_change_do_and_others_are_refused_by_name(memory: Memory) -> None:
    memory.configure(recency_weight=0.5)
    assert memory.settings.recency_weight == 0.5
    for name, value in (("hnsw_m", 8), ("recency_weight", -1.0), ("nothing", 1), ("time_zone", "Nowhere/X")):
        with pytest.raises(InvalidArgument) as caught:
            memory.configure(**{name: value})
        assert caught.value.argument == name


@pytest.mark.parametrize("zone", ["Nowhere/X", "", "../etc/passwd", "Europe", "a\0b", "UTC "])
def test_a_time_zone_that_does_not_exist_is_refused_before_a_job_meets_it(memory: Memory, zone: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        memory.configure(time_zone=zone)
    assert str(caught.value) == f"time_zone: got {zone!r}, allowed is an IANA name such as Europe/Berlin"
    memory.configure(time_zone="Europe/Berlin")
    memory.start_episode("patrol")
    memory.record("a door", layer="scene", stamp=0)
    assert "1970-01-01 01:00" in memory.end_episode().summary
