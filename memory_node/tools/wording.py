"""How answers are put for a language model: short, stable, with ids, places to 0.01 m, times relative and absolute."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple, TypeVar

from memory_node.graph import EVENTS_LAYER, Entity, Episode, Gist, Place, Pose, Position
from memory_node.ingest.body import format_value
from memory_node.retrieval.excerpts import Excerpt
from memory_node.retrieval.times import SECOND, local
from memory_node.tools.results import BodyReading, Match

LONGEST = 1900
"""Characters of a list of results; with head and tail it stays under 2 000."""
ALL = "That is all."
QUOTED = 300
"""Characters that are quoted of a text at most."""
SHORT = 50
"""A text as long as this is quoted whole in a list of ten."""
WHOLE = 1500
"""Characters of the text of a row that was asked for by its id."""
LEAST = 12
"""Characters that are quoted of a text at least."""
MOST_LINES = 50
"""Lines that may fit at all."""
T = TypeVar("T")
_STATES = {
    "missing": "missing, last seen there",
    "tentative": "tentative (seen once or doubtful), last seen",
    "earlier": "an earlier place, last seen there",
}
_DIRECTIONS = (
    "ahead", "ahead to the left", "to the left", "behind to the left", "behind", "behind to the right", "to the right",
    "ahead to the right",
)  # fmt: skip

_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ud800-\udfff\ufeff\U000e0000-\U000e007f]"
)
"""Control characters, marks of direction, characters without width but for joiners, halves of pairs and tags."""


class Line(NamedTuple):
    """A line that quotes a text in as much room as there is: what stands before it, the text, and what stands after."""

    before: str
    text: Excerpt
    after: str

    def within(self, room: int) -> str:
        """The line whose quoted text takes at most `room` characters."""
        return f"{self.before}{excerpt(self.text, room)}{self.after}"


class Wording:
    """Puts things in words at one moment: now (ns of the node's clock) and a time zone (IANA)."""

    def __init__(self, now: int, time_zone: str) -> None:
        self.now = now
        self.zone = time_zone

    def when(self, stamp: int) -> str:
        """Relative and absolute: "10 min ago (2026-03-04 17:50:02)"."""
        return f"{self.ago(stamp)} ({self.clock(stamp)})"

    def when_short(self, stamp: int) -> str:
        """Relative and absolute, without the date where it is that of now: "10 min ago (17:50:02)"."""
        clock = self.clock(stamp)
        return f"{self.ago(stamp)} ({clock[11:] if clock[:10] == self._today else clock})"

    @cached_property
    def _today(self) -> str:
        return self.clock(self.now)[:10]

    def clock(self, stamp: int) -> str:
        """Local date and time to the second."""
        return local(stamp, self.zone).isoformat(" ", "seconds")[:19]

    def ago(self, stamp: int) -> str:
        """Age of a stamp, "10 min ago"; a later one is "in 10 min"."""
        seconds = (self.now - stamp) / SECOND
        if seconds < 0:
            return f"in {duration(-seconds)}"
        return f"{duration(seconds)} ago"

    def span(self, first: int, last: int) -> str:
        """When something was, or from when to when."""
        if last - first < SECOND:
            return self.when(last)
        end = self.clock(last)
        start = self.clock(first)
        return f"{self.ago(last)} ({start} to {end[11:] if end[:10] == start[:10] else end})"

    def match(self, match: Match, asked: str = "") -> Line:
        """One match in a line that quotes its text about what was asked for."""
        name = match.layer if match.kind == "observation" else match.kind
        parts = ['"' if match.text else "(archived)"]
        if match.position is not None:
            parts.append(place(match.position, match.frame, match.position_source))
        if match.distance is not None:
            parts.append(f"{match.distance:.2f} m away")
        parts.append(self.span(match.stamp, match.last_stamp))
        if match.repeats > 1:
            parts.append(f"{match.repeats} times")
        if match.score > 0.0:
            parts.append(f"score {match.score:.2f}")
        if match.confidence < 0.995:
            parts.append(f"confidence {match.confidence:.2f}")
        if match.layer == EVENTS_LAYER:
            parts.append(f'what was near: recall "#{match.id}"')
        quote = '"' if match.text else ""
        return Line(f"#{match.id} [{shortened(name, 40)}] {quote}", Excerpt(match.text, asked), ", ".join(parts))

    def gist(self, gist: Gist, asked: str = "") -> Line:
        """One gist in a line that quotes its text about what was asked for."""
        parts = ['"']
        if gist.position is not None:
            parts.append(f"{place(gist.position, gist.frame, 'observer')} within {gist.radius:.2f} m")
        parts += [self.span(gist.start, gist.end), f"of {counted(gist.observation_count, 'observation')}"]
        if gist.score > 0.0:
            parts.append(f"score {gist.score:.2f}")
        return Line(f'#{gist.id} [gist] "', Excerpt(gist.text, asked), ", ".join(parts))

    def entity(self, entity: Entity, room: int = 60) -> str:
        """One entity in a line."""
        name = shortened(entity.name, room)
        kind = shortened(entity.entity_type, 40) if entity.entity_type != entity.name else ""
        parts = [f"#{entity.id} {name}" + (f" ({kind})" if kind else "")]
        if entity.position is not None:
            parts.append(place(entity.position, entity.frame, entity.position_source.label))
        parts += [f"last seen {self.when(entity.last_seen)}", f"seen {counted(entity.sightings, 'time')}"]
        parts.append(f"confidence {entity.confidence:.2f}")
        marks = (("tentative", entity.tentative), ("moved", entity.moved), ("missing", entity.missing))
        return ", ".join(parts + [name for name, holds in marks if holds])

    def place(self, found: Place, state: str = "") -> str:
        """One place in a line; state: "missing", "tentative", "earlier" or "", see `retrieval.places.Scored`."""
        label = f"{shortened(found.label, 60)} " if found.label else ""
        entity = f"entity #{found.entity_id}, " if found.entity_id else ""
        there = place(found.position, found.frame, found.position_source.label)
        return (
            f"{label}{there} within {found.radius:.2f} m, {entity}confidence {found.confidence:.2f}, "
            f"{counted(found.support, 'sighting')}, {_STATES.get(state, 'last seen')} {self.when(found.last_seen)}"
        )

    def episode(self, episode: Episode, room: int) -> str:
        """One episode in a line, indented by its depth."""
        span = f"since {self.when(episode.start)}" if episode.end is None else self.span(episode.start, episode.end)
        parts = [f'#{episode.id} "{shortened(episode.name, 80)}" {episode.status}', span]
        if episode.end is not None:
            parts.append(f"took {duration((episode.end - episode.start) / SECOND)}")
        parts.append(counted(episode.observation_count, "observation"))
        if episode.position is not None:
            parts.append(f"around {point(episode.position)} {episode.frame} within {episode.radius:.2f} m")
        line = ", ".join(parts)
        return f"{line}: {shortened(episode.summary, room)}" if episode.summary and room else line

    def reading(self, reading: BodyReading) -> str:
        """One reading of the body in a line."""
        text = shortened(reading.text.removeprefix(f"{reading.layer}: "), 80)
        when = self.when_short(reading.stamp) + (" STALE" if reading.is_stale else "")
        parts = [f"{shortened(reading.layer, 80)}: {text}", when]
        if reading.change is not None:
            change = format_value(reading.change, shortened(reading.unit, 16), "+")
            parts.append(f"changed by {change} in {duration(reading.window)}")
        return ", ".join(parts)


def listed(head: str, lines: Sequence[str], more: str = "", longest: int = LONGEST) -> str:
    """Head, numbered lines and a tail; lines that do not fit are counted, not cut, and then the tail is not ALL."""
    kept = [head]
    left = longest - len(head) - len(more)
    for number, line in enumerate(lines, 1):
        left -= len(line) + 6
        if left < 0:
            kept.append(f"({counted(len(lines) - number + 1, 'more line')} left out)")
            more = more if more != ALL else ""
            break
        kept.append(f"{number}. {line}")
    return "\n".join([*kept, more] if more else kept)


def told(head: str, things: Sequence[T], say: Callable[[T], Line], more: str = "", most: int = QUOTED) -> str:
    """A list of things, each said in as much room as lets all of ten be told.

    Args:
        say: puts a thing in a line.
        most: characters that are quoted of a thing where there is room.
    """
    said = [say(thing) for thing in things[:MOST_LINES]]
    around = sum(len(line.before) + len(line.after) + 6 for line in said)
    room = _share(LONGEST - len(head) - len(more) - around, [len(line.text.text) for line in said])
    lines = [line.within(max(LEAST, min(room, most))) for line in said]
    return listed(head, lines + [""] * (len(things) - len(lines)), more)


def _share(room: int, lengths: Sequence[int]) -> int:
    """Characters that each text may take of the room of all; what a shorter one leaves is the others'."""
    for number, length in enumerate(sorted(lengths)):
        share = room // (len(lengths) - number)
        if length > share:
            return share
        room -= length
    return room


def left_over(more: int | None, advice: str, at_least: bool = False) -> str:
    """The last line of a list: how many more there are (None: some), and what to do about it."""
    if more == 0:
        return ALL
    number = "" if more is None else f"at least {more} " if at_least else f"{more} "
    return f"There {'is' if more == 1 else 'are'} {number}more: {advice}."


def shortened(text: str, room: int) -> str:
    """The text on one line, cut to `room` characters with a mark where it goes on.

    Signs that steer a terminal, turn the direction of writing or are not seen are shown as U+FFFD.
    """
    for looked_at in (room + 20, 4 * room + 80):  # many blanks are rare
        line = " ".join(text[:looked_at].split())
        if len(line) > room or len(text) <= looked_at:
            break
    if not line.isprintable():
        line = _UNSEEN.sub("\ufffd", line)
    return line if len(line) <= room else line[: room - 1].rstrip() + "…"


def excerpt(text: Excerpt, room: int) -> str:
    """The text as by `shortened`, but from the sentence on that says most of the words asked for."""
    start = text.start(room)
    return shortened(f"…{text.text[start:]}" if start else text.text, room)


def counted(number: int, thing: str) -> str:
    """Number and thing, "1 time", "2 times", "2 matches", "2 summaries"."""
    if number == 1:
        return f"1 {thing}"
    if thing.endswith("y"):
        return f"{number} {thing[:-1]}ies"
    return f"{number} {thing}{'es' if thing.endswith('ch') else 's'}"


def duration(seconds: float) -> str:
    """A length of time in the unit that suits it."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 100 * 60:
        return f"{seconds / 60:.0f} min"
    if seconds < 48 * 3600:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 86_400:.0f} days"


def point(position: Sequence[float]) -> str:
    """Coordinates to 0.01 m; never a negative zero."""
    return "(" + ", ".join([f"{value:.2f}" for value in position]).replace("-0.00", "0.00") + ")"


def place(position: Position, frame: str, source: str) -> str:
    """Where something is, or where it was seen from."""
    return f"{'seen from' if source == 'observer' else 'at'} {point(position)} {frame}"


def bearing(pose: Pose, position: Position) -> str:
    """Distance and direction from the robot: "2.1 m ahead to the left"; distance alone without a heading (REP-103)."""
    dx, dy = position[0] - pose.position[0], position[1] - pose.position[1]
    distance = math.hypot(dx, dy)
    if pose.yaw is None or distance < 0.3:
        return f"{distance:.1f} m away"
    angle = math.remainder(math.atan2(dy, dx) - pose.yaw, math.tau)
    return f"{distance:.1f} m {_DIRECTIONS[round(angle / (math.pi / 4)) % 8]}"
