"""What a tool may use of the memory: storage, search, settings, clock, the query's vector and the robot's pose."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from memory_node.errors import EmbedderError
from memory_node.graph import Filter, Kind, Pose
from memory_node.retrieval import filters

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memory_node.config import Settings
    from memory_node.protocols import Clock
    from memory_node.retrieval.filters import Resolved
    from memory_node.retrieval.search import Searcher
    from memory_node.storage.database import Database

log = logging.getLogger(__name__)

WORDS_ONLY = "by words only"


@dataclass(frozen=True)
class ToolContext:
    """Handed to every tool by the facade.

    Attributes:
        db: the truth. searcher: the projections' search.
        get_settings: the settings of this moment; some change at run time.
        clock: the node's clock.
        embed: vector of a query, float32 (D,), or None without an embedder; may raise EmbedderError.
        embed_names: vectors (N, D) of short texts, kept for the next time, or None when there is no answer.
        get_pose: the robot's latest pose in the memory's frame that is not later than now, or None.
        get_map_id: the present map.
        get_newest: the largest stamp of any row (ns).
        note_recall: takes ids of nodes that were used; writes later, off the query path.
        stale_limits: layer -> age (s) at which its readings are stale, where it is not the setting's.
    """

    db: Database
    searcher: Searcher
    get_settings: Callable[[], Settings]
    clock: Clock
    embed: Callable[[str], NDArray[np.float32] | None]
    embed_names: Callable[[Sequence[str]], NDArray[np.float32] | None]
    get_pose: Callable[[], Pose | None]
    get_map_id: Callable[[], str]
    get_newest: Callable[[], int]
    note_recall: Callable[[Iterable[int]], None]
    stale_limits: dict[str, float] = field(default_factory=dict)

    @property
    def settings(self) -> Settings:
        """The settings of this moment."""
        return self.get_settings()

    def stale_after(self, layer: str) -> float:
        """Age at which a reading of the layer is stale, s."""
        return self.stale_limits.get(layer, self.settings.stale_after)

    @property
    def frame(self) -> str:
        """Frame of stored positions."""
        return self.settings.frame

    @property
    def map_id(self) -> str:
        """Name of the present map."""
        return self.get_map_id()

    def now_ns(self) -> int:
        """Current time of the node's clock (ns)."""
        return self.clock.now_ns()

    def until(self, resolved: Resolved) -> int | None:
        """Time (ns) up to which is told when things were seen: now, or None where the filter asks for a later time."""
        now = self.now_ns()
        asked = [time for time in (resolved.after, resolved.before) if time is not None]
        return None if any(time > now for time in asked) else now

    def pose(self) -> Pose | None:
        """The robot's latest pose in the memory's frame, or None when none is known."""
        return self.get_pose()

    def embed_query(self, text: str) -> NDArray[np.float32] | None:
        """Return the vector of a query, or None when the embedder is absent, still loading or failing."""
        try:
            return self.embed(text)
        except EmbedderError as error:
            log.info("query answered by words only: %s", error)
            return None

    def resolve(self, filter: Filter | None, kinds: tuple[Kind, ...]) -> Resolved:
        """Return the filter with names as ids and times as ns; `kinds` is what an empty filter.kinds means here.

        What is stamped later than now passes only where the filter asks for a later time.
        """
        settings = self.settings
        with self.db.read() as conn:
            return filters.resolve(
                Filter() if filter is None else filter,
                conn,
                kinds=kinds,
                now_ns=self.now_ns(),
                time_zone=settings.time_zone,
                frame=settings.frame,
                map_id=self.map_id,
                newest=self.get_newest(),
            )
