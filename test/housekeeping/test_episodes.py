"""Episodes that somebody starts and ends, and those linked by silence."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kept_store import DAY, Store
from support.fakes import SECOND, FakeClock, WordEmbedder

from memory_node.errors import InvalidArgument
from memory_node.graph import EdgeType, Kind, Tier
from memory_node.housekeeping import episodes as keeping
from memory_node.housekeeping.purge import purge
from memory_node.memory import Memory
from memory_node.storage import edges, episodes, vectors
from memory_node.storage.writer import Work


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "m.db", embedder=WordEmbedder()) as opened:
        yield opened


def start(store: Store, name: str, parent_id: int = 0) -> int:
    now, session = store.clock.now_ns(), store.session_id
    return store.write(lambda tx: keeping.start_episode(tx, name, now, session, parent_id, {"by": "test"}, "home"))


def end(store: Store, id_: int = 0, status: str = "") -> keeping.EndedEpisode:
    now, settings = store.clock.now_ns(), store.settings
    return store.write(lambda tx: keeping.end_episode(tx, id_, status, now, settings))


def get(store: Store, id_: int) -> episodes.Episode:
    with store.db.read() as conn:
        found = episodes.get(conn, id_)
    assert found is not None
    return found


def targets(store: Store, id_: int, type_: EdgeType) -> list[int]:
    with store.db.read() as conn:
        return edges.targets(conn, id_, type_)


def inside(store: Store, id_: int, count: int = 5, text: str = "a red chair", x: float = 0.0) -> list[int]:
    now = store.clock.ns / SECOND
    rows = [store.add(f"{text} {i}", now + i, (x + i, 0.0, 0.0), episode_id=id_) for i in range(count)]
    store.clock.advance(count)
    return rows


def test_episodes_nest_in_the_running_one_and_follow_the_one_before_at_their_level(store: Store) -> None:
    first = start(store, "kitchen patrol")
    child, store.clock.ns = start(store, "open the door"), store.clock.ns + SECOND
    end(store)
    second_child = start(store, "look inside")
    end(store), end(store)
    store.clock.advance(10)
    second = start(store, "hall patrol")
    assert targets(store, child, EdgeType.SUBTASK_OF) == [first]
    assert targets(store, second_child, EdgeType.SUBTASK_OF) == [first]
    assert targets(store, second_child, EdgeType.FOLLOWS) == [child]
    assert targets(store, second, EdgeType.FOLLOWS) == [first]
    assert targets(store, first, EdgeType.FOLLOWS) == targets(store, child, EdgeType.FOLLOWS) == []
    assert get(store, child).depth == 1 and get(store, child).parent_id == first
    assert get(store, first).metadata == {"by": "test"}


def test_ending_an_episode_answers_with_its_gist_and_closes_what_still_runs_inside(store: Store) -> None:
    outer = start(store, "patrol")
    rows = inside(store, outer)
    inner = start(store, "open the door")
    inner_rows = inside(store, inner, text="a brass handle", x=20.0)
    ended = end(store, outer)
    assert ended.id == outer and len(ended.gist_ids) == 2
    assert "chair" in ended.summary and "handle" in ended.summary
    assert {get(store, outer).status, get(store, inner).status} == {"completed"}
    assert get(store, outer).observation_count == 5 and get(store, inner).observation_count == 5
    gists = {gist.id: gist for gist in store.gists()}
    assert sorted(id_ for gist in gists for id_ in store.members(gist)) == sorted(rows + inner_rows)
    assert {store.node(id_).tier for id_ in rows + inner_rows} == {Tier.LONG_TERM}
    assert {gist.episode_id for gist in gists.values()} == {outer, inner}
    assert all(len(gist.text) <= store.settings.consolidation_max_text for gist in gists.values())


def test_place_and_radius_of_an_episode_are_those_of_its_rows(store: Store) -> None:
    id_ = start(store, "patrol")
    inside(store, id_, count=5)
    end(store)
    episode = get(store, id_)
    assert episode.position == pytest.approx((2.0, 0.0, 0.0)) and episode.radius == pytest.approx(2.0)


def test_f25_an_episode_on_two_maps_has_its_place_on_the_one_it_began_on(store: Store) -> None:
    id_ = start(store, "up the lift")
    inside(store, id_, count=5)
    store.add("the first floor", store.clock.ns / SECOND, (90.0, 90.0, 0.0), episode_id=id_, map_id="upstairs")
    end(store)
    episode = get(store, id_)
    assert episode.position == pytest.approx((2.0, 0.0, 0.0)) and episode.radius == pytest.approx(2.0)
    assert episode.observation_count == 6


def test_an_episode_that_silence_made_names_its_frame_where_its_first_row_has_no_place(store: Store) -> None:
    now = store.clock.ns / SECOND
    store.add("before the robot knows where it is", now, None, frame="")
    store.add("here", now + 1.0, (1.0, 2.0, 0.0))
    store.clock.advance(7200.0)
    store.run("episodes")
    ((id_,),) = store.all("SELECT id FROM episode")
    episode = get(store, id_)
    assert (episode.position, episode.frame, episode.status) == ((1.0, 2.0, 0.0), "map", "completed")


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda store: start(store, "  "), "name"),
        (lambda store: start(store, "x", parent_id=99), "parent_id"),
        (lambda store: end(store), "id"),
        (lambda store: end(store, 99), "id"),
        (lambda store: (start(store, "x"), end(store, status="done")), "status"),
    ],
)
def test_wrong_arguments_are_named(store: Store, call: object, argument: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        call(store)  # type: ignore[operator]
    assert caught.value.argument == argument


def test_an_episode_that_a_killed_node_left_open_ends_abandoned_at_its_last_row(store: Store) -> None:
    outer = start(store, "patrol")
    inner = start(store, "open the door")
    rows = inside(store, inner)
    store.clock.advance(5000)
    assert set(store.write(lambda tx: keeping.close_abandoned(tx, store.settings))) == {outer, inner}
    for id_ in (outer, inner):
        assert get(store, id_).status == "abandoned" and get(store, id_).end == store.node(rows[-1]).stamp
    empty = start(store, "nothing came")
    store.write(lambda tx: keeping.close_abandoned(tx, store.settings))
    assert get(store, empty).end == get(store, empty).start
    store.run()
    assert sorted(store.members(store.gists()[0].id)) == rows


def test_silence_divides_rows_that_nobody_put_into_an_episode(store: Store) -> None:
    start_at = store.clock.ns / SECOND
    morning = store.add_many([("a cup", start_at + i, (0.0, 0.0, 0.0), "scene") for i in range(10)])
    evening = store.add_many([("a lamp", start_at + 10 + 1801 + i, None, "scene") for i in range(4)])
    store.clock.advance(2000)
    store.run("episodes")
    with store.db.read() as conn:
        newest, oldest = episodes.last(conn, 5)
    assert [store.node(id_).episode_id for id_ in morning] == [oldest.id] * 10
    assert [store.node(id_).episode_id for id_ in evening] == [newest.id] * 4
    assert not oldest.explicit and oldest.status == "completed" and oldest.end == store.node(morning[-1]).stamp
    assert newest.status == "active" and newest.observation_count == 4
    assert targets(store, newest.id, EdgeType.FOLLOWS) == [oldest.id]
    assert targets(store, morning[0], EdgeType.BELONGS_TO) == [oldest.id]
    late = store.add("another lamp", start_at + 1820)
    store.run("episodes")
    assert store.node(late).episode_id == newest.id and get(store, newest.id).observation_count == 5
    store.clock.advance(1900)
    store.run("episodes")
    assert get(store, newest.id).status == "completed" and "lamp" in get(store, newest.id).summary


@pytest.mark.parametrize("left", [0, 2])
def test_rows_purged_just_before_they_are_linked_are_in_no_episode(
    store: Store, left: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = store.clock.ns / SECOND
    rows = store.add_many([("a cup", now + i, (0.0, 0.0, 0.0), "scene") for i in range(6)])
    store.clock.advance(6)
    write = store.db.write

    def purge_first(work: Work[Any]) -> Any:
        monkeypatch.undo()
        assert write(lambda tx: purge(tx, rows[left:])) == 6 - left
        return write(work)

    monkeypatch.setattr(store.db, "write", purge_first)
    store.run("episodes")
    assert store.db.check() == []
    with store.db.read() as conn:
        assert [one.observation_count for one in episodes.last(conn)] == ([left] if left else [])


def test_an_episode_nobody_ends_is_bounded_at_a_day(store: Store) -> None:
    begin = store.clock.ns / SECOND
    rows = store.add_many([("a cup", begin + i * 1000.0, None, "scene") for i in range(100)])
    store.clock.advance(100_000)
    store.run("episodes")
    spans = store.all("SELECT stamp, last_stamp FROM node WHERE kind = 2 ORDER BY stamp")
    assert [round((last - first) / SECOND) for first, last in spans] == [86_000, 12_000]
    assert {store.node(id_).episode_id for id_ in rows} == {row[0] for row in store.all("SELECT id FROM episode")}


def test_an_episode_that_silence_links_lasts_as_long_as_its_rows_are_repeated(tmp_path: Path) -> None:
    clock, settings = FakeClock(DAY), {"fold_repeats": True, "episode_max_duration": 7200.0}
    with Memory.open(tmp_path / "fold.db", clock=clock, settings=settings) as memory:

        def see(minutes: int, x: float = 0.0) -> None:
            for _ in range(minutes):
                clock.advance(60.0)
                memory.record("the hall is quiet", layer="scene", position=(x, 0.0, 0.0))
            memory.flush()
            assert not memory.run_job("episodes").error

        def span() -> tuple[str, int, int]:
            (node,) = (node for node in memory.nodes() if node.kind is Kind.EPISODE)
            (episode,) = memory.episode_summary(node.id).episodes
            first, last = (round((stamp / SECOND - DAY) / 60.0) for stamp in (node.stamp, node.last_stamp))
            assert episode.end in (None, node.last_stamp)
            return episode.status, first, last

        see(1)
        see(40)
        assert span() == ("active", 1, 41)
        see(20, x=5.0)
        assert span() == ("active", 1, 61)
        # Two hours are the longest here, however long the row goes on.
        see(70, x=5.0)
        assert span() == ("active", 1, 121)
        see(30, x=5.0)
        assert span() == ("completed", 1, 121)
        assert [node.repeats for node in memory.nodes() if node.kind is Kind.OBSERVATION] == [41, 120]


def test_an_explicit_episode_divides_what_silence_would_have_joined(store: Store) -> None:
    begin = store.clock.ns / SECOND
    before = store.add("a cup", begin)
    store.clock.advance(10)
    explicit = start(store, "patrol")
    within = inside(store, explicit)
    end(store)
    after = store.add("a cup", store.clock.ns / SECOND + 1)
    store.clock.advance(5)
    store.run("episodes")
    first, last = store.node(before).episode_id, store.node(after).episode_id
    assert len({first, explicit, last}) == 3
    assert {store.node(id_).episode_id for id_ in within} == {explicit}
    assert targets(store, explicit, EdgeType.FOLLOWS) == [first]
    assert targets(store, last, EdgeType.FOLLOWS) == [explicit]


def test_readings_of_the_body_are_in_no_episode_that_silence_made(store: Store) -> None:
    reading = store.add_reading("battery: 45%", store.clock.ns / SECOND, "battery", 0.45)
    store.run("episodes")
    assert store.node(reading).episode_id == 0 and store.one("SELECT count(*) FROM episode") == 0


def test_the_vector_of_an_episode_is_the_centroid_of_its_members(store: Store) -> None:
    id_ = start(store, "patrol")
    store.add_many([("red chair", store.clock.ns / SECOND, None, "scene")] * 3, episode_id=id_)
    store.add("blue lamp", store.clock.ns / SECOND, None, episode_id=id_)
    end(store)
    store.run("episodes")
    with store.db.read() as conn:
        assert len(vectors.of_nodes(conn, store.model.id, [id_])[0]) == 0
    store.embed()
    store.run("episodes")
    chair, lamp = store.embedder.embed(["red chair", "blue lamp"])  # type: ignore[union-attr]
    centroid = 3 * chair + lamp
    with store.db.read() as conn:
        _, (vector,) = vectors.of_nodes(conn, store.model.id, [id_])
    assert vector @ (centroid / np.linalg.norm(centroid)) == pytest.approx(1.0, abs=1e-3)


def test_episodes_are_found_by_part_of_their_name_whatever_its_letters(store: Store) -> None:
    patrol = start(store, "Kitchen 100%_patrol")
    end(store)
    start(store, "hall")
    with store.db.read() as conn:
        assert episodes.find(conn, "kitchen") == [patrol]
        assert episodes.find(conn, "0%_p") == [patrol]
        assert episodes.find(conn, "%x") == []


def test_rows_of_another_session_are_another_episode(store: Store) -> None:
    first = store.add("a cup", store.clock.ns / SECOND)
    store.new_session("clock went back")
    second = store.add("a cup", store.clock.ns / SECOND + 1)
    store.run("episodes")
    assert store.node(first).episode_id != store.node(second).episode_id
    assert get(store, store.node(first).episode_id).status == "completed"
    assert get(store, store.node(second).episode_id).status == "active"


def test_a_day_of_rows_is_not_read_again_by_the_next_run(store: Store) -> None:
    store.add_many([("a cup", DAY + i, None, "scene") for i in range(3000)])
    assert store.run("episodes")[0].scanned == 3000
    store.add("a cup", DAY + 3000)
    assert store.run("episodes")[0].scanned == 1
