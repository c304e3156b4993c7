"""The two memories that are asked, behind one small interface: ours, and the closest peer."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from benchmarks.retrieval_home import BodyRow, LookRow, Point, Row
from memory_node.graph import Detection, Filter, Pose
from memory_node.memory import Memory
from memory_node.tools.results import Match

SECOND = 1_000_000_000
PEER_PACKAGES = Path(__file__).resolve().parent.parent / "build" / "bench_packages"


@dataclass(frozen=True)
class Answer:
    """One result: what it says, its span (ns), and where."""

    text: str
    first: int
    last: int
    position: Point | None


class HandClock:
    """A clock that is set by hand; 0 is 1970."""

    def __init__(self, ns: int) -> None:
        self.ns = ns

    def now_ns(self) -> int:
        return self.ns


class CachedEmbedder:
    """Gives both memories the same vector for the same text, computed once."""

    def __init__(self, embedder: Any) -> None:
        self.name, self.dim = embedder.name, embedder.dim
        self._embedder = embedder
        self._known: dict[str, np.ndarray] = {}

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        for start in range(0, len(new), 32):
            batch = new[start : start + 32]
            self._known.update(zip(batch, self._embedder.embed(batch), strict=True))
        return np.stack([self._known[text] for text in texts]).astype(np.float32)


class System(Protocol):
    """What the benchmark asks of a memory. Times are ns."""

    clock: HandClock

    def add(self, row: Row) -> None: ...
    def look(self, row: LookRow) -> None: ...
    def feel(self, row: BodyRow) -> None: ...
    def start_episode(self, name: str) -> None: ...
    def end_episode(self) -> None: ...
    def settle(self) -> None: ...
    def search(self, query: str, limit: int) -> list[Answer]: ...
    def timeline(self, after: int | None, before: int | None, newest: bool, limit: int) -> list[Answer]: ...
    def happening(self, query: str, after: int, before: int, limit: int) -> list[Answer]: ...
    def locate(self, concept: str) -> Point | None: ...
    def count(self, name: str) -> int: ...
    def body(self, layer: str) -> tuple[float | None, float | None]: ...
    def episode(self, name: str) -> tuple[int, int] | None: ...
    def close(self) -> None: ...


class Ours:
    """robot_memory through its facade."""

    def __init__(self, path: Path, embedder: CachedEmbedder, now: int) -> None:
        self.clock = HandClock(now)
        settings = {"flush_batch_size": 256, "working_memory_size": 2048, "embed_batch_size": 64}
        self.memory = Memory.open(path / "ours.db", embedder=embedder, clock=self.clock, settings=settings)

    def add(self, row: Row) -> None:
        self.memory.record(
            row.text, layer=row.layer, position=row.position, stamp=row.stamp, position_source="observer"
        )

    def look(self, row: LookRow) -> None:
        things = [Detection(label, 0.9, position=place) for label, place in row.things]
        x, y, z, yaw = row.pose
        self.memory.record_detections(things, stamp=row.stamp, pose=Pose(row.stamp, (x, y, z), yaw))

    def feel(self, row: BodyRow) -> None:
        self.memory.update_pose(Pose(row.stamp, row.position, 0.0))
        self.memory.record_body_state(row.text, row.layer, row.value, position=row.position, stamp=row.stamp)

    def start_episode(self, name: str) -> None:
        self.memory.start_episode(name)

    def end_episode(self) -> None:
        self.memory.end_episode()

    def settle(self) -> None:
        self.memory.flush()
        if not self.memory.wait_embedded(600.0):
            raise RuntimeError("the texts were not embedded within ten minutes")

    def search(self, query: str, limit: int) -> list[Answer]:
        return _answers(self.memory.semantic_search(query, limit).matches)

    def timeline(self, after: int | None, before: int | None, newest: bool, limit: int) -> list[Answer]:
        window = Filter(layers=("scene",), time_after=after, time_before=before)
        order = "newest" if newest else "oldest"
        return _answers(self.memory.temporal_query(window, order=order, limit=limit).matches)

    def happening(self, query: str, after: int, before: int, limit: int) -> list[Answer]:
        return _answers(self.memory.recall(query, limit, Filter(time_after=after, time_before=before)).matches)

    def locate(self, concept: str) -> Point | None:
        found = self.memory.locate(concept)
        return found.place.position if found.place is not None else None

    def count(self, name: str) -> int:
        found = self.memory.entity_query(name=name, limit=100).entities
        return sum(not entity.tentative and not entity.missing for entity in found)

    def body(self, layer: str) -> tuple[float | None, float | None]:
        readings = self.memory.body_status([layer]).readings
        return (readings[0].value, readings[0].change) if readings else (None, None)

    def episode(self, name: str) -> tuple[int, int] | None:
        episodes = self.memory.episode_summary(task_name=name).episodes
        return (episodes[0].start, episodes[0].end or 0) if episodes else None

    def close(self) -> None:
        self.memory.close()


class Emem:
    """The peer, asked through its store where that gives more than its text; it keeps raw rows, nothing is archived."""

    def __init__(self, path: Path, embedder: CachedEmbedder, now: int) -> None:
        from emem.config import SpatioTemporalMemoryConfig
        from emem.embeddings import CallableEmbeddingProvider
        from emem.memory import SpatioTemporalMemory

        self.clock = HandClock(now)
        config = SpatioTemporalMemoryConfig(
            db_path=str(path / "emem.db"), hnsw_path=str(path / "emem.hnsw.bin"), embedding_dim=embedder.dim,
            flush_batch_size=256, working_memory_size=2048,
        )  # fmt: skip
        self.memory = SpatioTemporalMemory(
            config=config,
            embedding_provider=CallableEmbeddingProvider(embedder.embed, embedder.dim),
            get_current_time=lambda: self.clock.ns / SECOND,
        )

    def add(self, row: Row) -> None:
        self._add(row.text, row.position, row.stamp, row.layer)

    def look(self, row: LookRow) -> None:
        for label, place in row.things:
            self._add(label, place, row.stamp, "detections")

    def _add(self, text: str, position: Point, stamp: int, layer: str) -> None:
        self.memory.add(text, *position, timestamp=stamp / SECOND, layer_name=layer)

    def feel(self, row: BodyRow) -> None:
        self.memory.add_body_state(row.text, row.layer, *row.position, timestamp=row.stamp / SECOND)

    def start_episode(self, name: str) -> None:
        self.memory.start_episode(name)

    def end_episode(self) -> None:
        self.memory.end_episode(consolidate=False)

    def settle(self) -> None:
        self.memory.save()

    def search(self, query: str, limit: int) -> list[Answer]:
        return [_peer_answer(item) for item in self.memory.store.semantic_search(query, n_results=limit)]

    def timeline(self, after: int | None, before: int | None, newest: bool, limit: int) -> list[Answer]:
        window = ((after or 0) / SECOND, (before or self.clock.ns) / SECOND)
        order = "newest" if newest else "oldest"
        found = self.memory.store.temporal_query(time_range=window, layer="scene", order=order, n_results=limit)
        return [_peer_answer(item) for item in found]

    def happening(self, query: str, after: int, before: int, limit: int) -> list[Answer]:
        window = (after / SECOND, before / SECOND)
        return [_peer_answer(i) for i in self.memory.store.semantic_search(query, n_results=limit, time_range=window)]

    def locate(self, concept: str) -> Point | None:
        match = re.search(r"Location: \(([-\d.]+), ([-\d.]+), ([-\d.]+)\)", self.memory.locate(concept))
        return (float(match[1]), float(match[2]), float(match[3])) if match else None

    def count(self, name: str) -> int:
        return len(self.memory.store.query_entities(name=name, n_results=100))

    def body(self, layer: str) -> tuple[float | None, float | None]:
        match = re.search(rf"\[{layer}\] [^\d]*([\d.]+)(%?)", self.memory.body_status(layers=[layer]))
        return (float(match[1]) / (100.0 if match[2] else 1.0) if match else None), None

    def episode(self, name: str) -> tuple[int, int] | None:
        found = self.memory.store.list_episodes(task_name=name, last_n=1)
        return (round(found[0].start_time * SECOND), round((found[0].end_time or 0) * SECOND)) if found else None

    def close(self) -> None:
        self.memory.close()


def systems() -> dict[str, Callable[[Path, CachedEmbedder, int], System]]:
    """The memories that can be asked here, by name."""
    if PEER_PACKAGES.is_dir() and str(PEER_PACKAGES) not in sys.path:
        sys.path.append(str(PEER_PACKAGES))
    return {"ours": Ours, "emem": Emem} if importlib.util.find_spec("emem") else {"ours": Ours}


def _answers(matches: Sequence[Match]) -> list[Answer]:
    return [Answer(match.text, match.stamp, match.last_stamp, match.position) for match in matches]


def _peer_answer(item: Any) -> Answer:
    first = getattr(item, "timestamp", None) or getattr(item, "time_start", 0) or getattr(item, "first_seen", 0)
    last = getattr(item, "timestamp", None) or getattr(item, "time_end", 0) or getattr(item, "last_seen", 0)
    place = getattr(item, "coordinates", None)
    place = getattr(item, "center_position", None) if place is None else place
    position = None if place is None else (float(place[0]), float(place[1]), float(place[2]))
    return Answer(
        getattr(item, "text", "") or getattr(item, "name", ""), round(first * SECOND), round(last * SECOND), position
    )
