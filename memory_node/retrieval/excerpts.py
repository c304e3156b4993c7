"""Where in a long text is what was asked for."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from memory_node.retrieval.stems import WORD, stem_of

LOOKED_AT = 20_000
"""Characters of a text that are looked through."""
MOST = 500
"""Words of the query's that are looked at in a text."""
Found = tuple[int, int, str, int]
"""Begin and end of a word, its stem, and what it is worth: the less, the more often the text says it."""
_WORTH = 1_000_000
_BEGIN = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])\s*|\n+")


def start_of(text: str, asked: str, room: int) -> int:
    """Return where to begin to quote `room` characters of a text: at the sentence with most of the words asked for.

    A word weighs less the more often the text says it. 0 where the text says none, and where the beginning is as good.
    """
    if len(text) <= room:
        return 0
    found = _places(text[:LOOKED_AT], asked)
    if not found:
        return 0
    worth, first, last = _best(found, room)
    # The beginning is as good where its own words are worth as much.
    if sum({stem: value for _, end, stem, value in found if end <= room}.values()) >= worth:
        return 0
    begins = [match.end() for match in _BEGIN.finditer(text, 0, first + 1) if match.end() <= first]
    sentence = begins[-1] if begins else 0
    # A sentence is quoted from its beginning where that costs little.
    return sentence if last - sentence < room - 1 or first - sentence <= room // 8 else first


def _best(found: Sequence[Found], room: int) -> tuple[int, int, int]:
    """The words that are worth the most together and fit into the room: what they are worth, and from where to where.

    Of equals those that stand closest, then the first.
    """
    inside: dict[str, int] = {}
    best, after, worth = (0, -room), 0, 0
    first, last = found[0][:2]
    for number, (place, _, stem, value) in enumerate(found):
        while after < len(found) and (found[after][1] <= place + room or after == number):
            _, _, newer, more = found[after]
            worth += 0 if inside.get(newer) else more
            inside[newer] = inside.get(newer, 0) + 1
            after += 1
        if worth >= best[0]:
            # The first place of each; words that come again later do not make it longer.
            end = max({stem: end for _, end, stem, _ in reversed(found[number:after])}.values())
            if (worth, place - end) > best:
                best, first, last = (worth, place - end), place, end
        inside[stem] -= 1
        worth -= 0 if inside[stem] else value
    return best[0], first, last


@lru_cache(maxsize=64)  # a list is put in words again with less room
def _places(text: str, asked: str) -> list[Found]:
    """Where the words asked for stand in a text."""
    stems, word = _wanted(asked)
    found = []
    for match in word.finditer(text.lower()):
        stem = stem_of(match.group())
        if stem in stems:
            found.append((match.start(), match.end(), stem))
            if len(found) == MOST:
                break
    said = Counter(stem for _, _, stem in found)
    return [(begin, end, stem, _WORTH // said[stem]) for begin, end, stem in found]


@lru_cache(maxsize=64)
def _wanted(asked: str) -> tuple[frozenset[str], re.Pattern[str]]:
    """The stems of the words asked for, and the words that begin as one of them does: stems keep that."""
    stems = frozenset(stem_of(word) for word in WORD.findall(asked.lower())) - {""}
    heads = "|".join(sorted({re.escape(stem[:2]) for stem in stems})) or "(?!)"
    return stems, re.compile(rf"(?<![^\W_])(?:{heads})[^\W_]*")
