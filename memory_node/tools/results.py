"""What the tools answer: records with the fields of the service responses, under the same names.

Stamps are integer ns of the node's clock, positions (x, y, z) m in `frame`, or None when unknown. A figure that is not
known or had no part is None (NaN at the ROS edge).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from memory_node.graph import NO_ID, NO_METADATA, Entity, Episode, Gist, Place, Position


class Match(NamedTuple):
    """One stored node that answers a question, with the parts of its score.

    Attributes:
        kind: "observation", "episode", "gist" or "entity".
        stamp, last_stamp: span of all that is folded into this match (ns).
        repeats: how many readings the match stands for, those folded into it included.
        position_source: "", "measured" or "observer".
        score: 0..1, what the results are ordered by; 0 when they are ordered by place or time.
        similarity, lexical, recency: parts of the score, 0..1 (similarity is a cosine); None: had no part.
        tier: "working", "short_term", "long_term" or "archived".
        distance: m from the centre asked for, or from the robot, of a gist to the edge of its circle (0 inside); None
            when none was.
    """

    kind: str
    id: int
    text: str
    layer: str
    stamp: int
    last_stamp: int
    repeats: int = 1
    stamp_source: str = ""
    position: Position | None = None
    frame: str = ""
    position_source: str = ""
    map_id: str = ""
    confidence: float = 1.0
    score: float = 0.0
    similarity: float | None = None
    lexical: float | None = None
    importance: float = 0.5
    recency: float | None = None
    tier: str = "short_term"
    episode_id: int = NO_ID
    metadata: Mapping[str, Any] = NO_METADATA
    distance: float | None = None

    @property
    def has_position(self) -> bool:
        """Whether the place is known."""
        return self.position is not None


@dataclass(frozen=True)
class BodyReading:
    """The latest reading of one internal layer.

    Attributes:
        value: in unit, or None when the reading is no number.
        age: s since stamp. is_stale: older than the layer is expected to be.
        change: value less the value at the start of the window, in unit; None when not known.
        window: s that change is taken over; 0 when change is not known.
    """

    layer: str
    text: str
    value: float | None
    unit: str
    stamp: int
    age: float
    is_stale: bool
    change: float | None = None
    window: float = 0.0


@dataclass(frozen=True)
class Result:
    """What every tool answers: message is "" or a remark such as "by words only"; text is for a language model."""

    success: bool = True
    message: str = ""
    text: str = ""


@dataclass(frozen=True)
class SemanticSearchResult(Result):
    """Best first. plan tells candidates, path and times of the stages when explain was asked, else None."""

    matches: tuple[Match, ...] = ()
    plan: dict[str, Any] | None = None


@dataclass(frozen=True)
class SpatialQueryResult(Result):
    """Nearest first."""

    matches: tuple[Match, ...] = ()


@dataclass(frozen=True)
class TemporalQueryResult(Result):
    """In the order asked for; gists that overlap the window stand in where no observation is left."""

    matches: tuple[Match, ...] = ()


@dataclass(frozen=True)
class EpisodeSummaryResult(Result):
    """Newest first, each followed by its nested episodes in order."""

    episodes: tuple[Episode, ...] = ()


@dataclass(frozen=True)
class ContextResult(Result):
    """Where the robot is and what is around it.

    Attributes:
        position_stamp: ns when position was known. position_age: s since then. All None without a position.
        heading: yaw, rad, counter-clockwise from x, or None.
        nearby, recent: each text of a layer once, the nearest or newest row with the count of all; what only names one
            of the things near is left out of nearby.
        gists: those whose circle reaches what is near.
    """

    position: Position | None = None
    frame: str = ""
    position_stamp: int | None = None
    position_age: float | None = None
    heading: float | None = None
    nearby: tuple[Match, ...] = ()
    recent: tuple[Match, ...] = ()
    gists: tuple[Gist, ...] = ()
    entities: tuple[Entity, ...] = ()
    body: tuple[BodyReading, ...] = ()

    @property
    def has_position(self) -> bool:
        """Whether the robot knows where it is."""
        return self.position is not None


@dataclass(frozen=True)
class SearchGistsResult(Result):
    """Best first, or the newest first when the query was blank."""

    gists: tuple[Gist, ...] = ()


@dataclass(frozen=True)
class EntityQueryResult(Result):
    """Best name first, then latest seen; total counts all that fit, also those beyond the limit."""

    entities: tuple[Entity, ...] = ()
    total: int = 0


@dataclass(frozen=True)
class LocateResult(Result):
    """place is None unless found; alternatives are other places, best first."""

    found: bool = False
    place: Place | None = None
    alternatives: tuple[Place, ...] = ()


@dataclass(frozen=True)
class RecallResult(Result):
    """Everything known about the query; place is None unless found."""

    matches: tuple[Match, ...] = ()
    gists: tuple[Gist, ...] = ()
    entities: tuple[Entity, ...] = ()
    place: Place | None = None
    found: bool = False


@dataclass(frozen=True)
class BodyStatusResult(Result):
    """Latest readings, by layer."""

    readings: tuple[BodyReading, ...] = ()
