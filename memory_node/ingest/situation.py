"""What every new row is marked with: session, map, running episode; and the counts of each layer."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from memory_node.graph import NO_ID


@dataclass
class LayerCounts:
    """What became of a layer's readings since the start; last_stamp in ns, None before the first."""

    received: int = 0
    stored: int = 0
    folded: int = 0
    refused: int = 0
    last_stamp: int | None = None
    internal: bool = False


@dataclass
class Situation:
    """Changes seldom, is read with each row; hold `lock` to read it together with an id, or to change it."""

    session_id: int
    map_id: str
    frame: str
    episode_id: int = NO_ID
    layers: dict[str, LayerCounts] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def counts(self, layer: str, internal: bool = False) -> LayerCounts:
        """The counts of a layer, made at first use."""
        return self.layers.setdefault(layer, LayerCounts(internal=internal))
