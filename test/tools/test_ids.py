"""An id that one tool told, "#12", is taken by the others in place of words."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from support.fakes import FakeClock

from memory_node.graph import Detection, Filter
from memory_node.memory import Memory

OpenMemory = Callable[..., Memory]


def test_every_id_of_a_text_is_found_by_it(morning: Memory) -> None:
    texts = [
        morning.semantic_search("red mug").text,
        morning.temporal_query(limit=5).text,
        morning.search_gists().text,
        morning.entity_query().text,
        morning.get_current_context(recent_minutes=20).text,
    ]
    for id_ in {int(found) for text in texts for found in re.findall(r"^(?:\d+\.|-) #(\d+)", text, re.MULTILINE)}:
        result = morning.semantic_search(f" #{id_} ")
        assert [match.id for match in result.matches] == [id_]
        assert (result.matches[0].score, result.message) == (1.0, "")
        assert f"#{id_} " in morning.recall(f"#{id_}").text


def test_locate_gives_the_place_of_a_row(morning: Memory) -> None:
    (mug,) = morning.entity_query("red mug").entities
    place = morning.locate(f"#{mug.id}").place
    assert place is not None and place.entity_id == mug.id
    assert place == morning.locate("red mug").place
    (fern,) = morning.temporal_query(Filter(layers=("scene",)), limit=1).matches
    place = morning.locate(f"#{fern.id}").place
    assert place is not None and place.position == fern.position == (4.0, 4.0, 1.0)
    (key,) = morning.temporal_query(Filter(layers=("talk",))).matches
    assert not morning.locate(f"#{key.id}").found


def test_recall_and_entity_query_tell_of_the_thing(morning: Memory) -> None:
    (mug,) = morning.entity_query("red mug").entities
    known = morning.recall(f"#{mug.id}")
    assert [entity.id for entity in known.entities] == [mug.id] and known.found
    assert known.matches and {match.text for match in known.matches} == {"red mug"}
    things = morning.entity_query(f"#{mug.id}")
    assert ([thing.id for thing in things.entities], things.total) == ([mug.id], 1)
    (key,) = morning.temporal_query(Filter(layers=("talk",))).matches
    assert [match.id for match in morning.recall(f"#{key.id}").matches] == [key.id]
    (gist,) = morning.search_gists("spare key", 1).gists
    assert [found.id for found in morning.search_gists(f"#{gist.id}").gists] == [gist.id]


def test_a_merged_thing_is_the_one_that_it_was_merged_into(open_memory: OpenMemory, clock: FakeClock) -> None:
    memory = open_memory("merged.db")
    for x in (2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.9, 2.9):
        memory.record_detections([Detection("cup", 0.9, (x, 0.0, 0.5))])
        clock.advance(1)
    kept, merged = sorted(thing.id for thing in memory.entity_query("cup").entities)
    assert memory.run_job("merge_entities").wrote == 1
    assert [thing.id for thing in memory.entity_query(f"#{merged}").entities] == [kept]
    assert [match.id for match in memory.semantic_search(f"#{merged}").matches] == [kept]
    place = memory.locate(f"#{merged}").place
    assert place is not None and place.entity_id == kept


def test_the_filter_holds_and_readings_of_the_body_stay_out(morning: Memory) -> None:
    (mug,) = morning.entity_query("red mug").entities
    assert morning.semantic_search(f"#{mug.id}", filter=Filter(kinds=("gist",))).matches == ()
    assert not morning.locate(f"#{mug.id}", Filter(center=(50.0, 50.0), radius=1.0)).found
    assert morning.entity_query(f"#{mug.id}", filter=Filter(time_before="yesterday")).total == 0
    body = [node.id for node in morning.nodes() if node.layer == "battery"]
    assert body
    for id_ in body:
        assert id_ not in {match.id for match in morning.semantic_search(f"#{id_}").matches}


def test_a_region_may_be_as_wide_as_numbers_go(morning: Memory) -> None:
    (fern,) = morning.temporal_query(Filter(layers=("scene",)), limit=1).matches
    everywhere = Filter(center=(0.0, 0.0), radius=1e300)
    assert [match.id for match in morning.semantic_search(f"#{fern.id}", filter=everywhere).matches] == [fern.id]
    place = morning.locate(f"#{fern.id}", everywhere).place
    assert place is not None and place.position == fern.position


@pytest.mark.parametrize("asked", ["#0", "#99999", "#999999999999999999"])
def test_of_an_id_that_is_not_there_nothing_is_known(morning: Memory, asked: str) -> None:
    found = morning.semantic_search(asked)
    assert (found.matches, found.message, found.text) == ((), "", f'No match for "{asked}".')
    assert not morning.locate(asked).found
    assert morning.recall(asked).text == f'Nothing is known about "{asked}".'
    assert morning.entity_query(asked).total == 0


@pytest.mark.parametrize("asked", ["#9999999999999999999999", "#-1", "#", "mug #12"])
def test_other_texts_with_the_sign_are_words(morning: Memory, asked: str) -> None:
    assert morning.semantic_search(asked).matches == morning.semantic_search(asked.replace("#", "# ")).matches


def test_an_archived_row_is_still_told_by_its_id(morning: Memory, clock: FakeClock) -> None:
    (key,) = morning.temporal_query(Filter(layers=("talk",))).matches
    clock.advance(4 * 3600)
    for job in ("gists", "archive"):
        morning.run_job(job)
    (found,) = morning.semantic_search(f"#{key.id}").matches
    assert (found.id, found.tier, found.text, found.stamp) == (key.id, "archived", "", key.stamp)
    assert "(archived)" in morning.semantic_search(f"#{key.id}").text
