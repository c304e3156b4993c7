"""Episodes that somebody starts and ends; each function runs inside a write of the facade.

`silence.py` has the job that links the rows outside them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from memory_node.errors import InvalidArgument, shown
from memory_node.graph import NO_ID, EdgeType, Episode, PositionSource
from memory_node.housekeeping import gists, members
from memory_node.housekeeping.extractive import Extractive
from memory_node.storage import edges, episodes, jobs

if TYPE_CHECKING:
    from memory_node.config import Settings
    from memory_node.storage.database import Transaction

JOB = "episodes"
"""Name of the job that links rows; its cursor holds the ended episodes whose count and vector are still to come."""
ENDINGS = ("completed", "abandoned")


@dataclass(frozen=True)
class EndedEpisode:
    """What ending an episode gave: id, summary, gists of its rows and of sub-episodes that ended with it."""

    id: int
    gist_ids: tuple[int, ...]
    summary: str


def start_episode(
    tx: Transaction,
    name: str,
    now: int,
    session_id: int,
    parent_id: int = NO_ID,
    metadata: Mapping[str, Any] | None = None,
    map_id: str = "",
    frame: str = "map",
) -> int:
    """Start an episode and return its id. It follows the episode before it at its level.

    Args:
        name: not blank.
        now: time of the node's clock, ns.
        parent_id: a running episode; 0: the innermost that somebody started and that still runs, if there is one.
        map_id: name of the present map.

    Raises:
        InvalidArgument: name is blank, or parent_id isn't a running episode.
    """
    if not name.strip():
        raise InvalidArgument("name", "must not be blank")
    running = episodes.active(tx.conn)
    if parent_id == NO_ID:
        parent_id = running[-1].id if running else NO_ID
    elif parent_id not in {episode.id for episode in running}:
        raise InvalidArgument("parent_id", f"no running episode {parent_id}")
    episode = Episode(
        id=NO_ID, name=name.strip(), status="active", start=now, end=None, parent_id=parent_id, frame=frame,
        metadata=metadata or {},
    )
    id_ = episodes.insert(tx, episode, session_id, map_id)
    if parent_id != NO_ID:
        edges.add(tx, id_, parent_id, EdgeType.SUBTASK_OF)
    episodes.chain(tx, id_)
    return id_


def end_episode(
    tx: Transaction, id_: int, status: str, now: int, settings: Settings, rewrite: bool = False
) -> EndedEpisode:
    """End an episode with its running sub-episodes, and summarise their rows at once, without a language model.

    Args:
        id_: 0: the innermost running one that somebody started.
        status: completed or abandoned; "" is completed.
        now: time of the node's clock, ns.
        rewrite: a language model shall write the gists anew later.

    Raises:
        InvalidArgument: there is no such running episode, or status is neither.
    """
    if (status or ENDINGS[0]) not in ENDINGS:
        raise InvalidArgument("status", f"got {shown(status)}, allowed is {' or '.join(ENDINGS)}")
    running = episodes.active(tx.conn)
    if id_ == NO_ID:
        if not running:
            raise InvalidArgument("id", "no episode is running")
        id_ = running[-1].id
    inside = set(episodes.descendants(tx.conn, id_))
    ending = [episode.id for episode in reversed(running) if episode.id in inside]
    if id_ not in ending:
        raise InvalidArgument("id", f"no running episode {id_}")
    gist_ids: list[int] = []
    for one in ending:
        gist_ids += gists.summarise_episode(tx, one, settings, rewrite)
        close(tx, one, status or ENDINGS[0], now, settings)
    ended = episodes.get(tx.conn, id_)
    assert ended is not None
    return EndedEpisode(id_, tuple(gist_ids), ended.summary)


def close_abandoned(tx: Transaction, settings: Settings) -> list[int]:
    """Close every episode that somebody started and nobody ended, at its last row; return their ids.

    For the start of a node after a kill, and for a clock that went back.
    """
    ids = [episode.id for episode in reversed(episodes.active(tx.conn))]
    for id_ in ids:
        end = members.last_stamp(tx.conn, episodes.descendants(tx.conn, id_))
        close(tx, id_, "abandoned", end, settings)
    return ids


def close(
    tx: Transaction, id_: int, status: str, end: int | None, settings: Settings, count: int | None = None
) -> None:
    """Write what is known of an episode once it is over: its end (ns), place, spread, count and summary.

    Of a long one a sample of the rows tells place, spread and summary, and the job counts exactly.

    Args:
        count: of its rows, when it is known.
    """
    episode = episodes.get(tx.conn, id_)
    assert episode is not None
    ids = episodes.descendants(tx.conn, id_)
    end = episode.start if end is None else max(end, episode.start)
    rows = members.sample(tx.conn, ids)
    place, radius = members.place(tx.conn, id_, rows)
    summary = Extractive(settings.time_zone).summarize(
        members.of_episodes(tx.conn, ids, rows), settings.consolidation_max_text
    )
    episodes.update(
        tx, id_, status=status, ended=end, last_stamp=end, position=place, radius=radius, summary=summary,
        position_source=PositionSource.NONE if place is None else PositionSource.OBSERVER,
        observation_count=members.count(tx.conn, id_) if count is None else count,
    )
    waiting = jobs.cursor(tx.conn, JOB).get("pending", [])
    jobs.save_cursor(tx, JOB, {"pending": [*(one for one in waiting if one != id_), id_]})
