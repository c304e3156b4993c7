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


def map_name(frame: str, given: str, session_id: int) -> str:
    """Return the name of the map that positions in a frame belong to.

    A name that was given holds. The frame `map` needs none (REP-105: it lasts). Numbers of any other frame say nothing
    in it, so the frame names the map, together with the session where it is odometry's: that begins anew at each start.
    """
    last = frame.rpartition("/")[2]
    if given or last == "map":
        return given
    return f"{frame}/{session_id}" if last == "odom" else frame


@dataclass
class Situation:
    """Changes seldom, is read with each row; hold `lock` to read it together with an id, or to change it.

    Attributes:
        map_id: name of the map, see `map_name`; given_map is what the setting or `set_map` said.
        internal: layer -> whether it tells of the body, of those that had a row or were declared.
        newest: the latest time that the clock showed in this session, ns; 0 while it has not begun.
    """

    session_id: int
    map_id: str
    frame: str
    given_map: str = ""
    episode_id: int = NO_ID
    layers: dict[str, LayerCounts] = field(default_factory=dict)
    internal: dict[str, bool] = field(default_factory=dict)
    newest: int = 0
    lock: threading.RLock = field(default_factory=threading.RLock)

    def look(self, now: int) -> None:
        """Note what the clock shows, ns."""
        self.newest = max(self.newest, now)

    def seen_at(self, stamp: int, now: int) -> int:
        """Return when that was seen which is stamped so, ns: a sender's clock may be ahead, but nobody sees the future.

        What was sent before the clock went back is not later than the time that the session reached.
        """
        self.look(now)
        return min(stamp, self.newest) if self.newest > 0 else stamp

    def counts(self, layer: str, internal: bool = False) -> LayerCounts:
        """The counts of a layer, made at first use."""
        return self.layers.setdefault(layer, LayerCounts(internal=internal))
