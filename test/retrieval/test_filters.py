"""Filters: names to ids, times to nanoseconds, and every wrong field named."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from search_world import NOW, World
from support.fakes import SECOND

from memory_node.errors import InvalidArgument
from memory_node.graph import Filter, Kind
from memory_node.storage import nodes


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path / "memory.db")
    world.add("a mug", layer="scene")
    world.add("a cup", layer="notes", map_id="upstairs")
    yield world
    world.close()


def test_an_empty_filter_is_perception_of_the_present_map(world: World) -> None:
    resolved = world.resolved()
    assert resolved.kinds == (int(Kind.OBSERVATION),)
    assert (resolved.layers, resolved.after, resolved.before, resolved.center, resolved.episodes) == (None,) * 5
    assert resolved.map_id == 0 and not resolved.internal


def test_names_become_ids(world: World) -> None:
    with world.db.read() as conn:
        layers, maps = nodes.layers(conn), nodes.maps(conn)
    resolved = world.resolved(Filter(kinds=("gist", "entity"), layers=("notes", "scene"), map_id="upstairs"))
    assert resolved.kinds == (int(Kind.GIST), int(Kind.ENTITY))
    assert resolved.layers == (layers["notes"].id, layers["scene"].id)
    assert resolved.map_id == maps["upstairs"]
    assert world.resolved(Filter(any_map=True)).map_id is None


def test_times_become_nanoseconds_and_zero_is_a_time(world: World) -> None:
    resolved = world.resolved(Filter(time_after=0, time_before="-10s"))
    assert (resolved.after, resolved.before) == (0, NOW - 10 * SECOND)
    assert world.resolved(Filter(time_after="", time_before=None)).after is None


@pytest.mark.parametrize(
    ("argument", "wrong"),
    [
        ("kinds", {"kinds": ("thing",)}),
        ("layers", {"layers": ("no such layer",)}),
        ("layers", {"layers": "scene"}),
        ("map_id", {"map_id": "no such map"}),
        ("time_after", {"time_after": 20, "time_before": 10}),
        ("time_after", {"time_after": "half past never"}),
        ("time_before", {"time_before": "???"}),
        ("center", {"center": (1.0,), "radius": 1.0}),
        ("center", {"center": (1.0, float("nan")), "radius": 1.0}),
        ("center", {"center": (1.0, float("inf"), 0.0), "radius": 1.0}),
        ("radius", {"center": (1.0, 2.0)}),
        ("radius", {"radius": 2.0}),
        ("radius", {"center": (1.0, 2.0), "radius": 0.0}),
        ("radius", {"center": (1.0, 2.0), "radius": float("nan")}),
        ("frame", {"center": (1.0, 2.0), "radius": 1.0, "frame": "camera"}),
        ("episode_id", {"episode_id": 4711}),
        ("min_confidence", {"min_confidence": 1.5}),
        ("min_confidence", {"min_confidence": float("nan")}),
    ],
)
def test_f11_what_is_wrong_is_named(world: World, argument: str, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument) as caught:
        world.resolved(Filter(**wrong))
    assert caught.value.argument == f"filter.{argument}"
    assert str(caught.value).startswith(f"filter.{argument}: ")
