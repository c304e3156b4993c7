"""What tests of the index share."""

from __future__ import annotations

import pytest

from memory_node.index import vectors


@pytest.fixture
def small_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Build graphs from a few hundred vectors on, so that tests stay quick."""
    monkeypatch.setattr(vectors, "EXACT_BELOW", 400)
    monkeypatch.setattr(vectors, "GRAPH_COST", 0.01)
