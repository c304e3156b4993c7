"""A tracker and a database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from entities.scene import Scene


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with Scene(tmp_path) as opened:
        yield opened
