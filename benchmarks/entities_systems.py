"""The two memories of the entity benchmark behind one small face."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.entities_world import SECOND, SENSOR_FOV, SENSOR_RANGE
from memory_node.graph import Detection, Pose, Position

PEER_PACKAGES = os.environ.get(
    "ROBOT_MEMORY_PEER_PACKAGES", str(Path(__file__).resolve().parent.parent / "build" / "bench_packages")
)
"""Folder that emem is installed in, when it isn't beside us: `pip install --no-deps --target FOLDER emem==0.3.0`."""
CONFIRMED_LIMIT = 1_000_000


def load_embedder() -> Any:
    """Return the packaged model."""
    from memory_node.models.sentence_transformer import SentenceTransformerEmbedder

    embedder = SentenceTransformerEmbedder()
    embedder.embed(["warm up"])
    return embedder


class System(ABC):
    """A memory that is told detections and sentences, and asked where things are."""

    @abstractmethod
    def __init__(self, folder: Path, embedder: Any) -> None: ...

    def __enter__(self) -> System:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @classmethod
    def available(cls) -> bool:
        """Whether the system is installed."""
        return True

    @abstractmethod
    def record(self, detections: Sequence[Detection], pose: Pose) -> list[Any]:
        """Take a message; return an id a detection."""

    @abstractmethod
    def say(self, text: str, position: Position, second: int) -> None:
        """Take a sentence said at a place."""

    @abstractmethod
    def know(self, labels: Sequence[str], places: Sequence[Position]) -> None:
        """Make entities of things."""

    @abstractmethod
    def commit(self) -> None:
        """Return when everything told is stored."""

    @abstractmethod
    def end_pass(self) -> None:
        """Do the housekeeping of a pass."""

    @abstractmethod
    def groups(self, ids: Iterable[Any]) -> dict[Any, Any]:
        """Return the entity of each sighting that has one."""

    @abstractmethod
    def count(self) -> int:
        """Return how many things it is sure of."""

    @abstractmethod
    def is_missing(self, entity: Any) -> bool:
        """Tell whether an entity is said to be gone."""

    @abstractmethod
    def moved(self, label: str) -> list[tuple[Position, list[Position]]]:
        """Return present and earlier places of the things of a label that are said to have moved."""

    @abstractmethod
    def locate(self, concept: str) -> list[Position]:
        """Return the places given for a concept, the best first; none when it refuses."""

    @abstractmethod
    def close(self) -> None: ...


class Ours(System):
    """robot_memory's facade."""

    def __init__(self, folder: Path, embedder: Any) -> None:
        from memory_node.memory import Memory

        self.stamp = 0
        self.memory = Memory.open(folder / "ours.db", embedder=embedder, clock=self)

    def now_ns(self) -> int:
        """The clock of the memory: the newest stamp."""
        return self.stamp

    def record(self, detections: Sequence[Detection], pose: Pose) -> list[Any]:
        self.stamp = pose.stamp
        return self.memory.record_detections(
            detections, stamp=pose.stamp, pose=pose, sensor_range=SENSOR_RANGE, sensor_fov=SENSOR_FOV
        )

    def say(self, text: str, position: Position, second: int) -> None:
        self.stamp = max(self.stamp, (1000 + second) * SECOND)
        self.memory.record(text, layer="scene", position=position, stamp=self.stamp)

    def know(self, labels: Sequence[str], places: Sequence[Position]) -> None:
        for repeat in range(2):
            for start in range(0, len(labels), 500):
                chunk = range(start, min(start + 500, len(labels)))
                seen = [Detection(labels[i], 0.9, places[i]) for i in chunk]
                self.stamp = (1000 + repeat * 1000 + start // 500) * SECOND
                self.memory.record_detections(seen, stamp=self.stamp)
        self.end_pass()

    def commit(self) -> None:
        self.memory.flush()

    def end_pass(self) -> None:
        self.memory.flush()
        self.memory.wait_embedded(timeout=60.0)
        self.memory.run_job("merge_entities")

    def groups(self, ids: Iterable[Any]) -> dict[Any, Any]:
        self.memory.flush()
        entities = self.memory.entity_query(limit=1000).entities
        return {id_: entity.id for entity in entities for id_ in self.memory.entity_observations(entity.id)}

    def count(self) -> int:
        return sum(not entity.tentative for entity in self.memory.entity_query(limit=1000).entities)

    def is_missing(self, entity: Any) -> bool:
        return any(known.missing for known in self.memory.entity_query(limit=1000).entities if known.id == entity)

    def moved(self, label: str) -> list[tuple[Position, list[Position]]]:
        found = self.memory.entity_query(name=label, limit=1000).entities
        return [
            (entity.position, [place.position for place in entity.history])
            for entity in found
            if entity.moved and entity.position is not None and entity.name == label
        ]

    def locate(self, concept: str) -> list[Position]:
        answer = self.memory.locate(concept)
        return [place.position for place in (answer.place, *answer.alternatives) if place is not None]

    def close(self) -> None:
        self.memory.close()


class Emem(System):
    """emem 0.3.0 with its defaults; its extractor names each observation by the detection's label."""

    def __init__(self, folder: Path, embedder: Any) -> None:
        from emem import SpatioTemporalMemory
        from emem.config import SpatioTemporalMemoryConfig

        self.stamp = 0.0
        self.embedder = Cached(embedder)
        config = SpatioTemporalMemoryConfig(
            db_path=str(folder / "emem.db"), hnsw_path=str(folder / "emem.bin"), embedding_dim=embedder.dim
        )
        self.memory = SpatioTemporalMemory(
            config=config, embedding_provider=self.embedder, get_current_time=lambda: self.stamp
        )
        self.memory._consolidation._summarizer = _TrueLabels()
        self.labels: dict[str, str] = {}

    @classmethod
    def available(cls) -> bool:
        if Path(PEER_PACKAGES).is_dir() and PEER_PACKAGES not in sys.path:
            sys.path.append(PEER_PACKAGES)
        return importlib.util.find_spec("emem") is not None

    def record(self, detections: Sequence[Detection], pose: Pose) -> list[Any]:
        self.stamp = pose.stamp / SECOND
        return [self._add(detection) for detection in detections]

    def _add(self, detection: Detection) -> Any:
        """Add one; when its extraction raises (see commit) the row is there, but nobody is told its id."""
        assert detection.position is not None
        try:
            id_ = self.memory.add(
                detection.label,
                *detection.position,
                timestamp=self.stamp,
                layer_name="detections",
                confidence=detection.confidence,
            )
        except RuntimeError:
            return object()
        self.labels[id_] = detection.label
        return id_

    def say(self, text: str, position: Position, second: int) -> None:
        self.stamp = 1000.0 + second
        self.memory.add(text, *position, timestamp=self.stamp, layer_name="scene")

    def know(self, labels: Sequence[str], places: Sequence[Position]) -> None:
        for label, place in zip(labels, places, strict=True):
            self.memory.add_entity(label, *place)

    def commit(self) -> None:
        # Its search for a matching entity raises when the index holds fewer than it asks for; that batch is then lost.
        with contextlib.suppress(RuntimeError):
            self.memory._ensure_flushed()
            self.memory._drain_entity_buffer()

    def end_pass(self) -> None:
        self.commit()

    def groups(self, ids: Iterable[Any]) -> dict[Any, Any]:
        """Of the entities of a sighting's batch, that of its own label."""
        wanted = set(ids)
        names = {entity.id: entity.name for entity in self.memory.store.query_entities(n_results=CONFIRMED_LIMIT)}
        rows = self.memory.store._db.execute("SELECT source_id, target_id FROM edges WHERE edge_type = 'observed_in'")
        return {row[1]: row[0] for row in rows if row[1] in wanted and names.get(row[0]) == self.labels.get(row[1])}

    def count(self) -> int:
        return len(self.memory.store.query_entities(n_results=CONFIRMED_LIMIT))

    def is_missing(self, entity: Any) -> bool:
        return False

    def moved(self, label: str) -> list[tuple[Position, list[Position]]]:
        return []

    def locate(self, concept: str) -> list[Position]:
        try:
            answer = self.memory.locate(concept)
        except RuntimeError:
            return []
        match = re.search(r"Location: \(([-\d.]+), ([-\d.]+), ([-\d.]+)\)", answer)
        return [(float(match[1]), float(match[2]), float(match[3]))] if match else []

    def close(self) -> None:
        self.memory.close()


class _TrueLabels:
    """What a perfect language model would extract: each text is a label."""

    def extract_entities(self, texts: list[str]) -> list[dict[str, Any]]:
        return [{"name": text, "entity_type": text, "confidence": 1.0} for text in texts]


class Cached:
    """The embedder with a memory, so that a label costs once."""

    def __init__(self, embedder: Any) -> None:
        self._embedder = embedder
        self._known: dict[str, Any] = {}
        self.name = embedder.name
        self.dim = embedder.dim

    def embed(self, texts: list[str]) -> Any:
        import numpy as np

        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            self._known.update(zip(new, self._embedder.embed(new), strict=True))
        return np.stack([self._known[text] for text in texts])
