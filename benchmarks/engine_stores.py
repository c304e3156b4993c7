"""The two stores behind one small face, so that both get the very same calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from benchmarks.engine_work import DIM, LAYERS, NEAR, NEAR_RADIUS, START, TOP, Work

NS = 1_000_000_000


class Store(Protocol):
    """Rows in, row numbers out."""

    def add(self, row: int) -> None: ...
    def flush(self) -> None: ...
    def settle(self, timeout: float) -> None: ...
    def meaning(self, query: int, filtered: bool = False) -> list[int]: ...
    def hybrid(self, query: int, filtered: bool = False) -> list[int]: ...
    def spatial(self, radius: float) -> list[int]: ...
    def temporal(self) -> list[int]: ...
    def close(self) -> None: ...


class Ours:
    """robot_memory's facade."""

    hybrid_known = True
    SETTINGS: Mapping[str, Any] = {"flush_batch_size": 100, "working_memory_size": 200}

    def __init__(self, work: Work, folder: Path) -> None:
        from memory_node.graph import Filter
        from memory_node.memory import Memory

        class Clock:
            def now_ns(self) -> int:
                return round(work.stamp(work.n) * NS)

        self.work = work
        self.filter: Any = Filter
        self.memory = Memory.open(folder / "memory.db", clock=Clock(), settings=self.SETTINGS)
        self.near = Filter(layers=(LAYERS[0],), center=NEAR, radius=NEAR_RADIUS)

    def add(self, row: int) -> None:
        work = self.work
        text = int(work.text_of[row])
        x, y = work.positions[row]
        self.memory.record(
            work.bodies[text],
            layer=work.layer(row),
            position=(float(x), float(y), 0.0),
            stamp=round(work.stamp(row) * NS),
            vector=work.vectors[text],
        )

    def flush(self) -> None:
        self.memory.flush()

    def settle(self, timeout: float) -> None:
        self.memory.wait_embedded(timeout)

    def meaning(self, query: int, filtered: bool = False) -> list[int]:
        return self.search("", query, self.near if filtered else None)

    def hybrid(self, query: int, filtered: bool = False) -> list[int]:
        return self.search(self.work.words(query), query, self.near if filtered else None)

    def search(self, words: str, query: int, filter: Any) -> list[int]:
        """Rows of a search by words and the query's vector."""
        found = self.memory.semantic_search(words, limit=TOP, vector=self.work.queries[query], filter=filter)
        return self._rows(found.matches)

    def spatial(self, radius: float) -> list[int]:
        return self._rows(self.memory.spatial_query((50.0, 50.0), radius=radius, limit=TOP).matches)

    def temporal(self) -> list[int]:
        return self._rows(self.memory.temporal_query(last_n_minutes=10.0, limit=TOP).matches)

    def close(self) -> None:
        self.memory.close()

    def _rows(self, matches: Sequence[Any]) -> list[int]:
        return [self.work.row_at(match.stamp / NS) for match in matches]


class OursByDefault(Ours):
    """The same with the settings that nobody changed."""

    SETTINGS: Mapping[str, Any] = {}


class Emem:
    """emem 0.3.0, called below its text formatting, with its own settings."""

    hybrid_known = False

    def __init__(self, work: Work, folder: Path) -> None:
        from emem import SpatioTemporalMemory
        from emem.embeddings import NullEmbeddingProvider

        self.work = work
        self.now = work.stamp(work.n)
        self.memory: Any = SpatioTemporalMemory(
            db_path=str(folder / "memory.db"),
            embedding_provider=NullEmbeddingProvider(DIM),
            get_current_time=lambda: self.now,
        )

    def add(self, row: int) -> None:
        work = self.work
        text = int(work.text_of[row])
        x, y = work.positions[row]
        self.memory.add(
            work.bodies[text],
            x=float(x),
            y=float(y),
            timestamp=work.stamp(row),
            layer_name=work.layer(row),
            embedding=work.vectors[text],
        )

    def flush(self) -> None:
        self.memory._ensure_flushed()

    def settle(self, timeout: float) -> None:
        self.flush()

    def meaning(self, query: int, filtered: bool = False) -> list[int]:
        only: dict[str, Any] = {}
        if filtered:
            only = {"layer": LAYERS[0], "spatial_center": np.array([*NEAR, 0.0]), "spatial_radius": NEAR_RADIUS}
        found = self.memory.store.semantic_search_by_vector(self._query(query), n_results=TOP, **only)
        return self._rows(found)

    def hybrid(self, query: int, filtered: bool = False) -> list[int]:
        raise NotImplementedError("it searches by meaning or by words, not by both")

    def spatial(self, radius: float) -> list[int]:
        return self._rows(self.memory.store.spatial_query(np.array([50.0, 50.0, 0.0]), radius, n_results=TOP))

    def temporal(self) -> list[int]:
        return self._rows(
            self.memory.store.temporal_query(last_n_seconds=600.0, n_results=TOP, reference_time=self.now)
        )

    def close(self) -> None:
        self.memory.close()

    def _query(self, query: int) -> NDArray[np.float32]:
        return self.work.queries[query]

    def _rows(self, found: Sequence[Any]) -> list[int]:
        return [self.work.row_at(item.timestamp) for item in found if getattr(item, "timestamp", START) >= START]


STORES: dict[str, Any] = {"ours": Ours, "emem": Emem}
