"""After consolidation and archival, questions about old days are still answered."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.fakes import WordEmbedder

from benchmarks import old_days
from benchmarks.old_days import Kept

TOOLS = {"semantic_search", "temporal_query", "locate"}


@pytest.mark.parametrize(
    ("live", "least"),
    [
        (old_days.patrol, {"semantic_search": 40, "temporal_query": 120, "locate": 14}),
        (old_days.home, {"semantic_search": 110, "temporal_query": 700, "locate": 40}),
    ],
)
def test_nine_in_ten_answers_outlive_the_rows_they_came_from(
    live: Callable[..., dict[str, Kept]], least: dict[str, int], tmp_path: Path
) -> None:
    kept = live(tmp_path, WordEmbedder(dim=256))
    assert set(kept) == TOOLS
    assert {tool: found.before >= least[tool] for tool, found in kept.items()} == dict.fromkeys(TOOLS, True)
    assert [(tool, found) for tool, found in kept.items() if found.after < 0.9 * found.before] == []
