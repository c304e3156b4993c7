"""Where is the robot, what is around it, what happened lately, and how is its body?"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from memory_node.graph import Entity, Gist, Kind, Pose
from memory_node.storage import entities as entity_rows
from memory_node.storage import gists as gist_rows
from memory_node.storage import seen
from memory_node.tools import matches as as_matches
from memory_node.tools import summaries
from memory_node.tools.arguments import LONGEST_SPAN, checked_amount
from memory_node.tools.body_status import latest_readings
from memory_node.tools.by_now import gists_by_now, matches_by_now
from memory_node.tools.context import ToolContext
from memory_node.tools.results import BodyReading, ContextResult, Match
from memory_node.tools.wording import Wording, bearing, duration, point, shortened

if TYPE_CHECKING:
    import sqlite3

RADIUS = 3.0
RECENT_MINUTES = 5.0
SECOND = 1_000_000_000
SHOWN = 10
"""Most results of each kind."""
LONGEST = 1450
"""Characters of the text."""
T = TypeVar("T")


@dataclass(frozen=True)
class _Found:
    """What is near a pose and what was lately, and how many more entities and observations, and gists, there are."""

    entities: tuple[Entity, ...] = ()
    nearby: tuple[Match, ...] = ()
    recent: tuple[Match, ...] = ()
    gists: tuple[Gist, ...] = ()
    more: int = 0
    more_recent: int = 0
    more_gists: int = 0


def get_current_context(context: ToolContext, radius: float = 0.0, recent_minutes: float = 0.0) -> ContextResult:
    """Return the robot's place and what is near it, lately, and in its body.

    Args:
        radius: m that count as near, 0 is 3. recent_minutes: what counts as lately, 0 is 5.

    Raises:
        InvalidArgument: naming the argument.
    """
    radius = checked_amount(radius, "radius", RADIUS)
    minutes = min(checked_amount(recent_minutes, "recent_minutes", RECENT_MINUTES), LONGEST_SPAN)
    now, pose = context.now_ns(), context.pose()
    with context.db.read() as conn:
        found = _found(context, conn, pose, radius, now - round(minutes * 60 * SECOND))
        body = latest_readings(context)
    told: tuple[Entity | Match | Gist, ...] = (*found.entities, *found.nearby, *found.recent, *found.gists)
    context.note_recall(dict.fromkeys(one.id for one in told))
    return ContextResult(
        text=_Text(context, now, pose, found, body).lines(radius, minutes),
        position=pose.position if pose else None,
        frame=pose.frame if pose else context.frame,
        position_stamp=pose.stamp if pose else None,
        position_age=(now - pose.stamp) / SECOND if pose else None,
        heading=pose.yaw if pose else None,
        nearby=found.nearby,
        recent=found.recent,
        gists=found.gists,
        entities=found.entities,
        body=body,
    )


def _found(context: ToolContext, conn: sqlite3.Connection, pose: Pose | None, radius: float, since: int) -> _Found:
    resolved = context.resolve(None, (Kind.OBSERVATION,))
    late = context.searcher.said_lately(replace(resolved, after=since), SHOWN)
    if pose is None:
        (recent,) = as_matches.of_digests(conn, late)
        return _Found(recent=matches_by_now(context, resolved, recent), more_recent=late.more)
    here = pose.position[:2]
    near = context.searcher.said_near(here, radius, SHOWN, resolved)
    nearby, recent = as_matches.of_digests(conn, near, late)
    entities = tuple(seen.as_of(conn, entity_rows.get_many(conn, near.things), context.until(resolved)))
    around = summaries.around(context, conn, here, radius, resolved)
    return _Found(
        entities=entities,
        nearby=matches_by_now(context, resolved, nearby),
        recent=matches_by_now(context, resolved, recent),
        gists=gists_by_now(context, resolved, gist_rows.get_many(conn, list(around)[:SHOWN])),
        more=near.more_things + len(near.things) - len(entities) + near.more,
        more_recent=late.more,
        more_gists=max(0, len(around) - SHOWN),
    )


class _Text:
    """The context in words, every section with its share of the room."""

    def __init__(
        self, context: ToolContext, now: int, pose: Pose | None, found: _Found, body: tuple[BodyReading, ...]
    ) -> None:
        self.words = Wording(now, context.settings.time_zone)
        self.pose = pose
        self.found = found
        self.body = body
        self.pose_age = context.settings.pose_age

    def lines(self, radius: float, minutes: float) -> str:
        found = self.found
        # Shares of the room, so that a full section leaves the others their own; what one does not need is the next's.
        sections: tuple[tuple[str, Sequence[Any], Callable[[Any], str], int, int], ...] = (
            (
                f"Near (within {radius:.1f} m):" if radius < 1e6 else "Anywhere:",
                (*found.entities, *found.nearby), self._near, found.more, 480,
            ),
            ("Summaries of this place:", found.gists, self._gist, found.more_gists, 240),
            (f"Last {duration(minutes * 60)}:", found.recent, self._late, found.more_recent, 330),
            ("Body:", self.body, self.words.reading, 0, 220),
        )  # fmt: skip
        parts = [self._position()]
        spare = 0
        for title, things, say, more, room in sections:
            parts.append(_section(title, things, say, more, room + spare))
            spare = max(0, room + spare - len(parts[-1]))
        return "\n".join(parts)[:LONGEST]

    def _position(self) -> str:
        clock = f"Now {self.words.clock(self.words.now)}."
        pose = self.pose
        if pose is None:
            return f"{clock} The robot's position is not known."
        heading = "heading unknown" if pose.yaw is None else f"heading {_degrees(pose.yaw)} deg"
        age = (self.words.now - pose.stamp) / SECOND
        known = self.words.when_short(pose.stamp) + (" STALE" if age > self.pose_age else "")
        return f"{clock} Robot at {point(pose.position)} {pose.frame}, {heading}, known {known}."

    def _entity(self, entity: Entity) -> str:
        marks = [name for name, holds in (("tentative", entity.tentative), ("missing", entity.missing)) if holds]
        place = bearing(self.pose, entity.position) if self.pose and entity.position else "place unknown"
        seen = f"seen {self.words.when_short(entity.last_seen)}, confidence {entity.confidence:.2f}"
        return ", ".join([f"#{entity.id} {shortened(entity.name, 40)}", place, seen, *marks])

    def _near(self, one: Entity | Match) -> str:
        if isinstance(one, Entity):
            return self._entity(one)
        parts = [self._said(one)]
        if self.pose is not None and one.position is not None:
            where = bearing(self.pose, one.position)
            parts.append(where if one.position_source == "measured" else f"seen from {where}")
        return ", ".join([*parts, *self._when(one)])

    def _late(self, match: Match) -> str:
        return ", ".join([self._said(match), *self._when(match)])

    def _said(self, match: Match) -> str:
        return f'#{match.id} [{shortened(match.layer, 40)}] "{shortened(match.text, 60)}"'

    def _when(self, match: Match) -> list[str]:
        parts = [self.words.when_short(match.last_stamp)]
        if match.repeats > 1:
            parts.append(f"{match.repeats} times")
        if match.confidence < 0.995:
            parts.append(f"confidence {match.confidence:.2f}")
        return parts

    def _gist(self, gist: Gist) -> str:
        return f'#{gist.id} "{shortened(gist.text, 80)}", {self.words.when_short(gist.end)}'


def _section(title: str, things: Sequence[T], say: Callable[[T], str], more: int, room: int) -> str:
    """Title and lines; things without room are counted with the `more` that there are, and not put in words."""
    if not things:
        return f"{title} nothing."
    kept = [title]
    left = room - len(title) - 12
    for number, thing in enumerate(things):
        line = say(thing)
        left -= len(line) + 3
        if left < 0 and number:
            more += len(things) - number
            break
        kept.append(f"- {line}")
    return "\n".join([*kept, f"- {more} more"] if more else kept)


def _degrees(yaw: float) -> int:
    return round(math.degrees(math.remainder(yaw, math.tau)))
