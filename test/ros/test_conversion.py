"""Records as messages: every field of every message is set, and comes out of the wire as the record says."""

from __future__ import annotations

import math
from typing import Any

import pytest
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point, PointStamped
from rclpy.serialization import deserialize_message, serialize_message
from robot_memory import msg
from std_msgs.msg import Header

from memory_node import graph
from memory_node.ros import conversion as to
from memory_node.tools.results import Match

FIRST, LAST = 1_000_000_000, 2_000_000_005
HERE = (1.0, -2.0, 0.5)
MEASURED = graph.PositionSource.MEASURED
PLACE = graph.Place(HERE, "map", MEASURED, 0.25, 0.5, 3, FIRST, LAST, 7, "mug")
GIST = graph.Gist(4, "mugs", ("scene", "notes"), FIRST, LAST, 9, HERE, "map", 2.0, 5, score=0.75)
ENTITY = graph.Entity(
    7, "red mug", "mug", HERE, MEASURED, 0.1, "map", FIRST, LAST, 6, 0.9, False, True, True, history=(PLACE,)
)
MATCH = Match(
    "observation", 3, "a mug", "scene", FIRST, LAST, 4, "header", HERE, "map", "measured", "home", 0.5, 0.6, 0.7, 0.8,
    0.9, 0.25, "long_term", 5, {"key": 1},
)  # fmt: skip


def wired(message: Any) -> Any:
    """The message after its way; a field that was never set would not set out."""
    for name in message.get_fields_and_field_types():
        assert hasattr(message, name), name
    return deserialize_message(serialize_message(message), type(message))


def at(stamp: int) -> Time:
    return Time(sec=stamp // 10**9, nanosec=stamp % 10**9)


def here(stamp: int) -> PointStamped:
    return PointStamped(header=Header(stamp=at(stamp), frame_id="map"), point=Point(x=1.0, y=-2.0, z=0.5))


def test_a_place() -> None:
    place = msg.Place(
        position=here(LAST), position_source="measured", radius=0.25, confidence=0.5, support=3, first_seen=at(FIRST),
        last_seen=at(LAST), entity_id=7, label="mug",
    )  # fmt: skip
    assert wired(to.place_message(PLACE)) == place
    assert wired(to.place_message(None)) == msg.Place()


def test_a_gist() -> None:
    gist = msg.Gist(
        id=4, text="mugs", layers=["notes", "scene"], start=at(FIRST), end=at(LAST), observation_count=9,
        has_position=True, position=here(FIRST), radius=2.0, episode_id=5, score=0.75,
    )  # fmt: skip
    assert wired(to.gist_message(GIST)) == gist
    gist.has_position, gist.position = False, PointStamped()
    assert wired(to.gist_message(GIST._replace(position=None))) == gist


def test_an_entity() -> None:
    entity = msg.Entity(
        id=7, name="red mug", entity_type="mug", position=here(LAST), position_source="measured", position_stddev=0.1,
        first_seen=at(FIRST), last_seen=at(LAST), sightings=6, confidence=0.9, tentative=False, moved=True,
        missing=True, history=[to.place_message(PLACE)],
    )  # fmt: skip
    assert wired(to.entity_message(ENTITY)) == entity
    nowhere = wired(to.entity_message(ENTITY._replace(position=None, history=())))
    assert nowhere.position == PointStamped() and math.isnan(nowhere.position_stddev) and nowhere.history == []


def test_a_match() -> None:
    match = msg.Match(
        kind="observation", id=3, text="a mug", layer="scene", stamp=at(FIRST), last_stamp=at(LAST), repeats=3,
        stamp_source="header", has_position=True, position=here(FIRST), position_source="measured", map_id="home",
        confidence=0.5, score=0.6, similarity=0.7, lexical=0.8, importance=0.9, recency=0.25, tier="long_term",
        episode_id=5, metadata='{"key": 1}',
    )  # fmt: skip
    assert wired(to.match_message(MATCH)) == match
    unknown = wired(to.match_message(Match("gist", 3, "", "", FIRST, LAST)))
    assert (unknown.has_position, unknown.position, unknown.map_id) == (False, PointStamped(), "")
    assert math.isnan(unknown.similarity) and math.isnan(unknown.lexical) and math.isnan(unknown.recency)


@pytest.mark.parametrize("stamp", [0, -1, 2**31 * 10**9, -(2**31 + 1) * 10**9])
def test_a_stamp_that_time_cannot_hold_is_0(stamp: int) -> None:
    message = wired(to.time_message(stamp))
    assert (message.sec, message.nanosec) == ((-1, 999_999_999) if stamp == -1 else (0, 0))
