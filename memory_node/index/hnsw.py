"""hnswlib behind a lock: never asked for more than it can give, growing by itself, reusing what was deleted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory_node.index.gate import Gate

State = dict[str, Any]

_DATA = ("label_lookup_external", "label_lookup_internal", "element_levels", "data_level0", "link_lists")
_ROOM = 1024
_READ = 4096


class Graph:
    """HNSW graph of unit vectors by label, a positive integer. Safe to use from any number of threads.

    hnswlib may crash when it is searched while it inserts, resizes or deletes, so one gate stands before all of them;
    insertion holds it for one small batch at a time and lets searches go first.

    Args:
        dim: dimensions.
        links: hnswlib's M.
        ef_construction: candidates while building.
    """

    def __init__(self, dim: int, links: int, ef_construction: int) -> None:
        self.dim = dim
        self._links = links
        self._ef_construction = ef_construction
        self._gate = Gate()
        self._inside = np.zeros(_ROOM, dtype=bool)
        self._deleted = 0
        self._index = self._fresh()

    def __len__(self) -> int:
        return int(self._index.element_count) - self._deleted

    @property
    def deleted(self) -> int:
        """Elements whose place waits to be used again."""
        return self._deleted

    def labels(self) -> NDArray[np.int64]:
        """Labels of the live elements, ascending."""
        return np.flatnonzero(self._inside)

    def add(self, labels: NDArray[np.int64], vectors: NDArray[np.float32]) -> None:
        """Insert vectors (N, D) under labels (N,); labels already inside are left as they are."""
        with self._gate.later():
            if len(labels) and int(labels.max()) >= len(self._inside):
                self._inside = np.concatenate([self._inside, np.zeros(int(labels.max()), dtype=bool)])
            new = ~self._inside[labels]
            labels, vectors = labels[new], vectors[new]
            if not len(labels):
                return
            room = self._index.max_elements - self._index.element_count
            if room < len(labels):
                self._index.resize_index(self._index.max_elements * 3 // 2 + max(_ROOM, len(labels)))
            reused = min(self._deleted, len(labels))
            if reused:
                # One by one: hnswlib hands the same deleted element to two threads that ask at once.
                self._index.add_items(vectors[:reused], labels[:reused], num_threads=1, replace_deleted=True)
                self._deleted -= reused
            if reused < len(labels):
                self._index.add_items(vectors[reused:], labels[reused:], num_threads=2)
            self._inside[labels] = True

    def delete(self, labels: NDArray[np.int64]) -> None:
        """Take elements out of every later answer; labels that are not inside are ignored."""
        labels = labels[labels < len(self._inside)]
        for start in range(0, len(labels), _ROOM):
            with self._gate.soon():
                chunk = labels[start : start + _ROOM]
                chunk = chunk[self._inside[chunk]]
                for label in chunk.tolist():
                    self._index.mark_deleted(label)
                self._inside[chunk] = False
                self._deleted += len(chunk)

    def search(
        self, query: NDArray[np.float32], k: int, ef: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]] | None:
        """Labels and inner products of about the k best, the best first, or None when the graph cannot reach k.

        Args:
            query: unit vector (D,).
            k: no more than are inside are looked for.
            ef: candidates; the more, the better and the slower.
        """
        with self._gate.soon():
            k = min(k, len(self))
            if k <= 0:
                return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)
            self._index.set_ef(max(ef, k))
            try:
                labels, distances = self._index.knn_query(query, k, num_threads=1)
            except RuntimeError:
                return None  # links that many near-identical vectors broke: fewer than k were reached
        return labels[0].astype(np.int64), 1.0 - distances[0]

    def best(self, queries: NDArray[np.float32], ef: int) -> NDArray[np.float32]:
        """The largest inner product that a search finds for each of queries (N, D); for those who can wait."""
        with self._gate.later():
            if not len(self):
                return np.full(len(queries), -1.0, dtype=np.float32)
            self._index.set_ef(ef)
            # One thread: those who cannot wait need a processor meanwhile.
            _, distances = self._index.knn_query(queries, 1, num_threads=1)
        return np.asarray(1.0 - distances[:, 0], dtype=np.float32)

    @contextmanager
    def still(self) -> Iterator[None]:
        """Within it nothing changes, nor is found."""
        with self._gate.soon():
            yield

    def state(self) -> tuple[State, dict[str, NDArray[Any]]]:
        """A copy of everything: plain values, and arrays by name; while `still`, or when nobody else is there."""
        state = self._index.__getstate__()[0]
        return {name: value for name, value in state.items() if name not in _DATA}, {n: state[n] for n in _DATA}

    def restore(self, values: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Become what `state` gave. The caller vouches that it is undamaged: hnswlib does not look."""
        import hnswlib

        index = hnswlib.Index.__new__(hnswlib.Index)
        index.__setstate__(({**values, **arrays},))
        live = np.array(index.get_ids_list(), dtype=np.int64)
        dead = self._dead_labels(values, arrays)
        self._inside = np.zeros(int(live.max(initial=0)) + _ROOM, dtype=bool)
        self._inside[live] = True
        self._inside[dead] = False
        self._deleted = len(dead)
        self._index = index

    @staticmethod
    def saved_vectors(
        values: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]:
        """Labels (N,) and vectors (N, D) of what `state` gave, the deleted too, so many at once as are read quickly."""
        elements = arrays["data_level0"].reshape(-1, values["size_data_per_element"])
        start = values["offset_data"]
        data = elements[:, start : start + 4 * values["dim"]]
        labels, internal = arrays["label_lookup_external"].astype(np.int64), arrays["label_lookup_internal"]
        for at in range(0, len(labels), _READ):
            yield labels[at : at + _READ], data[internal[at : at + _READ]].view(np.float32)

    @staticmethod
    def _dead_labels(values: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> NDArray[np.int64]:
        """hnswlib marks a deleted element in the third byte of its list of links."""
        elements = arrays["data_level0"].reshape(-1, values["size_data_per_element"])
        marked = (elements[:, values["offset_level0"] + 2] & 1).astype(bool)
        internal = arrays["label_lookup_internal"]
        return arrays["label_lookup_external"][marked[internal]].astype(np.int64)

    def _fresh(self) -> Any:
        import hnswlib

        index = hnswlib.Index("ip", self.dim)
        index.init_index(
            _ROOM, M=self._links, ef_construction=self._ef_construction, random_seed=100, allow_replace_deleted=True
        )
        return index
