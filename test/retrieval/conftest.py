"""A world to search, see `search_world`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from search_world import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path / "memory.db")
    yield world
    world.close()
