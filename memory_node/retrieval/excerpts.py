"""Where in a long text is what was asked for."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple

from memory_node.retrieval.stems import stem_of
from memory_node.retrieval.words import worth_looking_for

LOOKED_AT = 20_000
"""Characters of a text that are looked through."""
MOST = 500
"""Words of the query's that are looked at in a text."""
_WORTH = 1_000_000
_MARKED = re.compile("[À-ÖØ-öø-ȳḀ-ỹ]")
"""Letters among which are those that stems have without their diacritics."""
_BEGIN = re.compile(r"[.!?。！？\n](?:(?<=[.!?])\s+|(?<=[。！？])\s*|(?<=\n)\n*)")
"""The end of a sentence and what stands between it and the next; it begins with a set, which is quick to look for."""


class _Said(NamedTuple):
    """Words asked for as a text says them, in order, each list by their number.

    Attributes:
        begins, ends: where they stand.
        worth: what each is worth: the less, the more often the text says it.
        before, after: numbers of the same word's last and next place; -1 and MOST where there is none.
    """

    begins: Sequence[int]
    ends: Sequence[int]
    worth: Sequence[int]
    before: Sequence[int]
    after: Sequence[int]


class Excerpt:
    """What to quote of a text: from the sentence on with most of the words asked for.

    A word weighs less the more often the text says it.
    """

    def __init__(self, text: str, asked: str = "") -> None:
        self.text = text
        self._asked = asked
        self._tried = -1, (0, 0, 0)

    def start(self, room: int) -> int:
        """Where to begin to quote `room` characters; 0 where the text says no word, and where that is as good."""
        if not self._asked or len(self.text) <= room or not self._said.begins:
            return 0
        worth, first, last = self._best(room)
        if _worth_of_beginning(self._said, room) >= worth:
            return 0
        # One that begins farther back would cost too much.
        begins = [match.end() for match in _BEGIN.finditer(self.text, max(0, first - 2 * room), first + 1)]
        sentence = max([begin for begin in begins if begin <= first], default=0)
        # A sentence is quoted from its beginning where that costs little.
        return sentence if last - sentence < room - 1 or first - sentence <= room // 8 else first

    def _best(self, room: int) -> tuple[int, int, int]:
        """See below; as a list is put in words again with less room, the same words are the best while they fit."""
        tried, (worth, first, last) = self._tried
        if not last - first <= room <= tried:
            worth, first, last = _best(self._said, room)
            self._tried = room, (worth, first, last)
        return worth, first, last

    @cached_property
    def _said(self) -> _Said:
        """Found once, however often a list is put in words again with less room."""
        return _found(_plain(self.text[:LOOKED_AT]), *_wanted(self._asked))


def _plain(text: str) -> str:
    """The text in small letters without the diacritics that stems lose; each letter stays where it is."""
    return (text if text.isascii() else _MARKED.sub(lambda letter: stem_of(letter.group()), text)).lower()


def _found(text: str, stems: frozenset[str], beginnings: Sequence[re.Pattern[str]]) -> _Said:
    """Where the words of some stems stand in a plain text."""
    found = [
        (word.start(), word.end(), stem)
        for words in beginnings
        for word in words.finditer(text)
        if (stem := stem_of(word[0])) in stems
    ]
    if not found:
        return _Said((), (), (), (), ())
    found.sort()
    begins, ends, told = zip(*found[:MOST], strict=True)
    times = Counter(told)
    before, after = [-1] * len(told), [MOST] * len(told)
    last: dict[str, int] = {}
    for number, stem in enumerate(told):
        if stem in last:
            before[number] = last[stem]
            after[last[stem]] = number
        last[stem] = number
    return _Said(begins, ends, [_WORTH // times[stem] for stem in told], before, after)


def _best(said: _Said, room: int) -> tuple[int, int, int]:
    """The words that are worth the most together and fit into the room: what they are worth, and from where to where.

    Of equals those that stand closest, then the first.
    """
    begins, ends, worths, before, after = said
    best, beyond, worth, count = (0, -room), 0, 0, len(ends)
    first, last = begins[0], ends[0]
    for number, begin in enumerate(begins):
        limit = begin + room
        while beyond < count and (ends[beyond] <= limit or beyond == number):
            if before[beyond] < number:
                worth += worths[beyond]
            beyond += 1
        if worth >= best[0]:
            # The first place of each; words that come again later do not make it longer.
            newest = beyond - 1
            while before[newest] >= number:
                newest -= 1
            if (worth, begin - ends[newest]) > best:
                best, first, last = (worth, begin - ends[newest]), begin, ends[newest]
        if after[number] >= beyond:
            worth -= worths[number]
    return best[0], first, last


def _worth_of_beginning(said: _Said, room: int) -> int:
    """What the words are worth that the first `room` characters say."""
    return sum(said.worth[number] for number in range(bisect_right(said.ends, room)) if said.before[number] < 0)


@lru_cache(maxsize=64)
def _wanted(asked: str) -> tuple[frozenset[str], Sequence[re.Pattern[str]]]:
    """The stems of the words asked for, and the words that begin as one of them does: stems keep that."""
    stems = frozenset(stem_of(word) for word in worth_looking_for(_plain(asked))) - {""}
    heads = {stem[:2] for stem in stems}
    return stems, [_beginning(head) for head in heads if head[:-1] not in heads]


@lru_cache(maxsize=512)
def _beginning(head: str) -> re.Pattern[str]:
    """Words from one or two letters on; these are quick to look for, and what stands before them is looked at then.

    One expression of all that a question's words begin with would be compiled for each question, in the time that its
    search takes.
    """
    begin = re.escape(head)
    return re.compile(rf"{begin}(?<![^\W_]{begin})[^\W_]*")
