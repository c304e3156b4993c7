"""The facade's questions: the ten tools and the lookups, for memories that are written and for read-only ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from memory_node import tools
from memory_node.errors import ClosedError
from memory_node.graph import NO_ID, Edge, Filter, Node
from memory_node.rooms import Rooms
from memory_node.status import MemoryStatus, status_of
from memory_node.storage import edges, entities, nodes
from memory_node.tools import results

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Questions:
    """What a memory can be asked. Safe to use from several threads; a closed memory raises ClosedError."""

    def __init__(self, rooms: Rooms) -> None:
        self._rooms = rooms
        self._closed = False

    def semantic_search(
        self,
        query: str = "",
        limit: int = 0,
        filter: Filter | None = None,
        vector: Sequence[float] | NDArray[np.float32] | None = None,
        explain: bool = False,
    ) -> results.SemanticSearchResult:
        """Find what means or says the same; with `vector` and no query by meaning alone."""
        with self._reading() as rooms:
            return tools.semantic_search(rooms.context, query, limit, filter, vector, explain)

    def spatial_query(
        self, center: Sequence[float], radius: float, limit: int = 0, filter: Filter | None = None
    ) -> results.SpatialQueryResult:
        """Find what lies within radius (m) of (x, y) or (x, y, z), nearest first."""
        with self._reading() as rooms:
            return tools.spatial_query(rooms.context, center, radius, limit, filter)

    def temporal_query(
        self,
        filter: Filter | None = None,
        order: str = "newest",
        last_n_minutes: float = 0.0,
        limit: int = 0,
    ) -> results.TemporalQueryResult:
        """Find what happened in a time, newest or oldest first."""
        with self._reading() as rooms:
            return tools.temporal_query(rooms.context, filter, order, last_n_minutes, limit)

    def episode_summary(
        self, episode_id: int = NO_ID, task_name: str = "", last_n: int = 0
    ) -> results.EpisodeSummaryResult:
        """Tell of an episode by id, by part of its name, or of the last n."""
        with self._reading() as rooms:
            return tools.episode_summary(rooms.context, episode_id, task_name, last_n)

    def get_current_context(self, radius: float = 0.0, recent_minutes: float = 0.0) -> results.ContextResult:
        """Tell where the robot is, what is near, what happened lately, and how the body is."""
        with self._reading() as rooms:
            return tools.get_current_context(rooms.context, radius, recent_minutes)

    def search_gists(self, query: str = "", limit: int = 0, filter: Filter | None = None) -> results.SearchGistsResult:
        """Find summaries by meaning and words; a blank query gives the newest."""
        with self._reading() as rooms:
            return tools.search_gists(rooms.context, query, limit, filter)

    def entity_query(
        self,
        name: str = "",
        entity_type: str = "",
        filter: Filter | None = None,
        last_seen_after: int | str | None = None,
        limit: int = 0,
    ) -> results.EntityQueryResult:
        """Find things by name, type, place and when they were last seen."""
        with self._reading() as rooms:
            return tools.entity_query(rooms.context, name, entity_type, filter, last_seen_after, limit)

    def locate(self, concept: str, filter: Filter | None = None) -> results.LocateResult:
        """Say where a thing is: a place to drive to, and which other places it could be."""
        with self._reading() as rooms:
            return tools.locate(rooms.context, concept, filter)

    def recall(self, query: str, limit: int = 0, filter: Filter | None = None) -> results.RecallResult:
        """Tell everything known about a concept."""
        with self._reading() as rooms:
            return tools.recall(rooms.context, query, limit, filter)

    def body_status(self, layers: Sequence[str] = ()) -> results.BodyStatusResult:
        """Tell the latest reading of each internal layer, its age and its trend."""
        with self._reading() as rooms:
            return tools.body_status(rooms.context, layers)

    # ---- lookups

    def entity_observations(self, entity_id: int) -> list[int]:
        """Return the ids of the observations that saw an entity, oldest first."""
        with self._reading() as rooms, rooms.db.read() as conn:
            return entities.observations(conn, entity_id)

    def nodes(self, after_id: int = NO_ID, limit: int = 1000) -> list[Node]:
        """Return a page of everything that is stored: up to limit nodes with ids above after_id, ascending."""
        with self._reading() as rooms, rooms.db.read() as conn:
            return nodes.fetch(conn, nodes.ids_after(conn, after_id, limit))

    def edges(self, id: int) -> list[Edge]:
        """Return every edge that begins or ends at a node."""
        with self._reading() as rooms, rooms.db.read() as conn:
            return edges.of(conn, id)

    def status(self) -> MemoryStatus:
        """Counts, sizes, backlog, layers and warnings."""
        with self._reading() as rooms:
            return status_of(rooms)

    def check(self) -> list[str]:
        """Check the file and what it holds; returns what is wrong, a sentence each."""
        return self._open().db.check()

    def backup(self, to: str | Path) -> None:
        """Copy the database to another file while it is being written."""
        with self._reading() as rooms:
            pass  # the thread's own rows are committed; what works in the background does not wait for the copy
        rooms.db.backup(to)

    def _open(self) -> Rooms:
        if self._closed:
            raise ClosedError("the memory is closed")
        return self._rooms

    @contextmanager
    def _reading(self) -> Iterator[Rooms]:
        rooms = self._open()
        with rooms.reading():
            yield rooms
