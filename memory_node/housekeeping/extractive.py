"""The default summarizer: picks words and sentences out of the rows themselves. Deterministic, without a model.

A summary is a head (when, where) and items divided by "; ": what changed in order of time, things that were named with
their counts, then sentences: the most central, and after it always the one that says most that is not said yet.
"""

from __future__ import annotations

import heapq
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone, tzinfo
from functools import cached_property
from typing import TypeVar
from zoneinfo import ZoneInfo

from memory_node.protocols import NamedThing, SummaryRow

Item = TypeVar("Item")

THING_WORDS = 3
"""A text of at most so many words names a thing; a longer one is a sentence."""
MAX_SENTENCES = 100
"""Sentences that are weighed: half of them the most frequent, the others those that say most that few say."""
MAX_THINGS = 20
"""Named things that are told before any sentence."""
MAX_STATES = 6
"""States told of one thing; of more the first and the last, and how often it changed."""
STATES_SHARE = 0.4
"""Share of a summary that the states of one thing may fill, but for two of them."""
MAX_MISFITS = 5
"""Items too long for what is left of the room after which no shorter one is looked for."""

_WORD = re.compile(r"[^\W_]+")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_COUNTED = re.compile(r"^(?P<text>.*?) \(x(?P<count>\d+)\)$", re.DOTALL)
_OPPOSITES = (
    "open closed", "opened closed", "on off", "locked unlocked", "full empty", "present absent", "here gone",
    "running stopped", "started stopped", "up down", "clean dirty", "wet dry", "occupied free", "occupied empty",
    "connected disconnected", "in out", "lit dark", "inside outside", "awake asleep", "standing lying", "light dark",
)  # fmt: skip
_PAIRS = {
    word: tuple(pair for pair in _OPPOSITES if word in pair.split()) for pair in _OPPOSITES for word in pair.split()
}


@dataclass(frozen=True)
class _Said:
    """One distinct text: how often, and when (ns) it was said first, last and anew."""

    text: str
    count: int
    stamps: tuple[int, ...]

    @cached_property
    def words(self) -> list[str]:
        return _words(self.text)


class Extractive:
    """Summarizer that extracts; time_zone is the IANA zone times are told in."""

    name = "extractive"

    def __init__(self, time_zone: str = "UTC") -> None:
        self._zone: tzinfo = timezone.utc if time_zone == "UTC" else ZoneInfo(time_zone)

    def summarize(self, rows: Sequence[SummaryRow], max_chars: int) -> str:
        """Return what rows say in at most max_chars characters; "" for none."""
        said = _distinct(rows)
        if not said:
            return ""
        text = self._head(rows)
        for share, items in self._items(said, round(STATES_SHARE * max_chars)):
            misfits = 0
            for item in items:
                divided = ("; " if text[-1] != ":" else " ") + item
                if len(text) + len(divided) <= share * max_chars:
                    text += divided
                    continue
                misfits += 1
                if misfits == MAX_MISFITS:
                    break
        if text[-1] == ":":
            text += " " + said[0].text
        return text[:max_chars].rstrip(" :;")

    def extract(self, rows: Sequence[SummaryRow]) -> list[NamedThing]:
        """Return []: it does not know which words are things."""
        return []

    def _head(self, rows: Sequence[SummaryRow]) -> str:
        first, last = min(row.stamp for row in rows), max(row.last_stamp for row in rows)
        head = self._time(first)
        if last // 60_000_000_000 > first // 60_000_000_000:
            same_day = self._time(first)[:10] == self._time(last)[:10]
            head += " to " + (self._time(last)[11:] if same_day else self._time(last))
        places = [(row.position, max(1, row.repeats)) for row in rows if row.position is not None]
        if places:
            weight = sum(count for _, count in places)
            x, y = (sum(place[axis] * count for place, count in places) / weight for axis in (0, 1))
            head += f" at ({x:.2f}, {y:.2f})"
        return head + ":"

    def _items(self, said: list[_Said], room: int) -> Iterable[tuple[float, Iterable[str]]]:
        """Items in the order they are told, with the share of the summary that may be filled when they are."""
        changes, told = self._changes(said, room)
        left = [one for one in said if one.text not in told]
        things = [_counted(one) for one in left if len(one.words) <= THING_WORDS]
        sentences = _weighed([one for one in left if len(one.words) > THING_WORDS])
        frequent = things[:MAX_THINGS] if sentences else things
        yield 0.6, changes
        yield 0.7 if sentences else 1.0, frequent
        yield 1.0, (_counted(one) for one in _in_order(sentences))
        yield 1.0, things[len(frequent) :]

    def _changes(self, said: list[_Said], room: int) -> tuple[list[str], set[str]]:
        """Texts that say the opposite of each other, in order of time: "door open 09:00, door closed 09:05".

        room: characters for one item, which has two states at least.
        """
        changes: list[str] = []
        told: set[str] = set()
        for group in opposed((one.text, one) for one in said):
            fresh = [one for one in group if one.text not in told]
            if len({" ".join(one.words) for one in fresh}) < 2:
                continue
            moments = sorted({(stamp, one.text) for one in fresh for stamp in one.stamps})
            order = [m for i, m in enumerate(moments) if i == 0 or m[1] != moments[i - 1][1]]
            changes.append(_shortened([f"{text.rstrip('.')} {self._time(stamp)[11:]}" for stamp, text in order], room))
            told |= {one.text for one in fresh}
        return changes, told

    def _time(self, stamp: int) -> str:
        return datetime.fromtimestamp(stamp // 1_000_000_000, self._zone).strftime("%Y-%m-%d %H:%M")


def opposed(texts: Iterable[tuple[str, Item]]) -> list[list[Item]]:
    """Return items in groups: those whose texts say the opposite of each other, such as "door open" and "door closed".

    An item of two opposites is in two groups.
    """
    by_frame: dict[tuple[str, ...], dict[tuple[str, ...], list[Item]]] = {}
    for text, item in texts:
        words = _words(text)
        for frame in _frames(words):
            by_frame.setdefault(frame, {}).setdefault(tuple(words), []).append(item)
    return [[item for same in group.values() for item in same] for group in by_frame.values() if len(group) > 1]


def items_of(text: str, author: str = Extractive.name) -> list[tuple[str, int]]:
    """Return what a summary says and how often each was said, so that summaries can be summarised.

    Those are the items of an extractive summary, and the sentences of one of any other author.
    """
    if author != Extractive.name:
        return [(sentence, 1) for sentence in _SENTENCE_END.split(text) if sentence.strip()]
    _, _, body = text.partition(": ") if re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d", text) else ("", "", text)
    items = []
    for item in body.split("; "):
        match = _COUNTED.match(item)
        items.append((match["text"], int(match["count"])) if match else (item, 1))
    return [(item, count) for item, count in items if item.strip()]


def _counted(one: _Said) -> str:
    return one.text if one.count == 1 else f"{one.text} (x{one.count})"


def _distinct(rows: Sequence[SummaryRow]) -> list[_Said]:
    """Distinct texts, the most frequent first, then the earliest."""
    by_key: dict[str, _Said] = {}
    for row in rows:
        text = " ".join(row.text.split())
        if not text:
            continue
        count, stamps = max(1, row.repeats), (row.stamp, row.last_stamp, *row.anew)
        old = by_key.get(text.lower())
        by_key[text.lower()] = (
            _Said(text, count, stamps)
            if old is None
            else _Said(old.text, old.count + count, (min(old.stamps[0], stamps[0]), *old.stamps[1:], *stamps))
        )
    return sorted(by_key.values(), key=lambda one: (-one.count, one.stamps[0], one.text))


def _shortened(states: Sequence[str], room: int) -> str:
    """States in order of time; where they are too many or too long the first and the last, and how often it changed."""
    for number in range(min(MAX_STATES, len(states)), 1, -1):
        item = ", ".join(states)
        if number < len(states):
            first = number // 2
            item = ", ".join([*states[:first], "...", *states[first - number :]]) + f" ({len(states) - 1} changes)"
        if len(item) <= room:
            break
    return item


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _weighed(sentences: list[_Said]) -> list[_Said]:
    """The sentences that are weighed, in the same order."""
    if len(sentences) <= MAX_SENTENCES:
        return sentences
    bags = [frozenset(one.words) for one in sentences]
    holding = Counter(word for bag in bags for word in bag)
    rest = range(MAX_SENTENCES // 2, len(sentences))
    unusual = heapq.nlargest(MAX_SENTENCES // 2, rest, key=lambda i: (_news(bags[i], holding, len(bags)), -i))
    return sentences[: MAX_SENTENCES // 2] + [sentences[i] for i in sorted(unusual)]


def _frames(words: list[str]) -> list[tuple[str, ...]]:
    """The words with each opposite replaced by its pair: texts that share a frame contradict each other."""
    return [(*words[:i], pair, *words[i + 1 :]) for i, word in enumerate(words) for pair in _PAIRS.get(word, ())]


def _in_order(sentences: list[_Said]) -> Iterable[_Said]:
    """The most central sentence, then again and again the one whose words say most that was not said yet.

    Central: the highest mean share of sentences that hold a word (as in SumBasic, Nenkova and Vanderwende 2005). Then a
    word weighs its inverse document frequency and counts once, so that the unusual comes before the paraphrase.
    """
    bags = [frozenset(one.words) for one in sentences]
    holding = Counter(word for bag in bags for word in bag)
    left = list(range(len(sentences)))
    covered: set[str] = set()
    if left:
        best = max(left, key=lambda i: (sum(holding[w] for w in bags[i]) / max(1, len(bags[i])), -i))
        while True:
            left.remove(best)
            covered |= bags[best]
            yield sentences[best]
            if not left:
                return
            best = max(left, key=lambda i: (_news(bags[i] - covered, holding, len(bags)), -i))


def _news(words: Iterable[str], holding: Counter[str], total: int) -> float:
    return sum(math.log(1.0 + total / holding[word]) for word in words)
