"""What was done, episode by episode?"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import replace

from memory_node.errors import InvalidArgument
from memory_node.graph import NO_ID, Episode
from memory_node.ingest.arguments import checked_id
from memory_node.storage import episodes as rows
from memory_node.tools.arguments import MOST, checked_limit, checked_query
from memory_node.tools.context import ToolContext
from memory_node.tools.results import EpisodeSummaryResult
from memory_node.tools.wording import LONGEST, Wording, counted, shortened


def episode_summary(
    context: ToolContext, episode_id: int = NO_ID, task_name: str = "", last_n: int = 0
) -> EpisodeSummaryResult:
    """Return episodes with counts, span and place, the newest first, each followed by those nested in it.

    Args:
        episode_id: one episode by id; the other arguments are not read then.
        task_name: words that the name holds, in any case; "" is any name.
        last_n: the latest so many that began until now and are inside none that is told, 0 is 1.

    Raises:
        InvalidArgument: naming the argument.
    """
    episode_id = checked_id("episode_id", episode_id)
    last, name = checked_limit(last_n, "last_n", default=1), checked_query(task_name, "task_name")
    now = context.now_ns()
    with context.db.read() as conn:
        named = rows.find(conn, name, now) if name else []
        chosen = _chosen(conn, episode_id, named, last) if episode_id or name else rows.last(conn, last, now)
        told = [inner for episode in chosen for inner in _with_nested(conn, episode, now)]
        ids = {episode.id for episode in told}
        left = 0 if episode_id else len(set(named) - ids) if name else rows.count(conn, now) - len(ids)
        found = tuple(_by_now(episode, now) for episode in told[:MOST])
    context.note_recall(episode.id for episode in found)
    if not found:
        about = f' named like "{shortened(name, 60)}"' if name else ""
        return EpisodeSummaryResult(text=f"There is no episode{about}.")
    return EpisodeSummaryResult(text=_text(context, found, len(chosen), _left(left, name)), episodes=found)


def _chosen(conn: sqlite3.Connection, episode_id: int, named: Sequence[int], last: int) -> list[Episode]:
    """One episode, or the first of those named, without those inside another of them: they are told with it."""
    if episode_id != NO_ID:
        episode = rows.get(conn, episode_id)
        if episode is None:
            raise InvalidArgument("episode_id", f"there is no episode {episode_id}")
        return [episode]
    names, chosen = set(named), []
    for id_ in named:
        episode = rows.get(conn, id_)
        if episode is not None and not names.intersection(_ancestors(conn, episode)):
            chosen.append(episode)
            if len(chosen) == last:
                break
    return chosen


def _left(number: int, name: str) -> str:
    """How many more there are, "" without any."""
    of = " of that name" if name else " episode" if number == 1 else " episodes"
    return f"There {'is' if number == 1 else 'are'} {number} more{of}: raise last_n." if number else ""


def _ancestors(conn: sqlite3.Connection, episode: Episode) -> list[int]:
    above: list[int] = []
    parent = episode.parent_id
    while parent != NO_ID and parent not in above:
        above.append(parent)
        outer = rows.get(conn, parent)
        parent = outer.parent_id if outer else NO_ID
    return above


def _by_now(episode: Episode, now: int) -> Episode:
    """An episode that began by now ends with now at the latest: the clock may have gone back since."""
    is_over_later = episode.end is not None and episode.start <= now < episode.end
    return replace(episode, end=now) if is_over_later else episode


def _with_nested(conn: sqlite3.Connection, episode: Episode, now: int) -> list[Episode]:
    """An episode and those in it; of one that began by now those that did, too."""
    children = [child for child in rows.children(conn, episode.id) if child.start <= now or episode.start > now]
    return [episode, *(inner for child in children for inner in _with_nested(conn, child, now))]


def _text(context: ToolContext, found: tuple[Episode, ...], chosen: int, left: str) -> str:
    words = Wording(context.now_ns(), context.settings.time_zone)
    room = min(300, max(0, LONGEST // len(found) - 170))
    nested = f" with {counted(len(found) - chosen, 'nested one')}" if len(found) > chosen else ""
    lines = [f"{counted(chosen, 'episode')}{nested}, newest first"]
    top = found[0].depth
    spare = LONGEST - len(lines[0]) - len(left)
    for place, episode in enumerate(found):
        line = "  " * max(0, episode.depth - top) + "- " + words.episode(episode, room)
        spare -= len(line) + 1
        if spare < 40:
            lines.append(f"({len(found) - place} more left out: ask with episode_id)")
            break
        lines.append(line)
    return "\n".join([*lines, left] if left else lines)
