"""How a query was answered, for those who ask to have it explained."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Plan:
    """Filled in by a search.

    Attributes:
        candidates: distinct texts and nodes that the filter left, or None when it left so many that nobody counted.
        paths: what was done, in order. The filter: "broad" or "filtered"; vectors: "gather", "scan" or "graph"; words:
            "all" or "postings", neither where words could change nothing.
        compared: vectors compared, at most.
        stages: milliseconds by name of the stage.
    """

    candidates: int | None = None
    paths: list[str] = field(default_factory=list)
    compared: int = 0
    stages: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add the time of the block to a stage."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.stages[name] = self.stages.get(name, 0.0) + (time.perf_counter() - start) * 1000.0

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        stages = {name: round(ms, 3) for name, ms in self.stages.items()}
        return {
            "candidates": self.candidates, "path": "+".join(self.paths), "compared": self.compared, "stages_ms": stages,
        }  # fmt: skip
