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
Found = tuple[int, int, str]
"""Begin and end of a word, and its stem."""
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
    said = Counter(stem for _, _, stem in found)
    # The beginning is as good where its own words are worth as much.
    if round(sum(1.0 / said[stem] for stem in {stem for _, end, stem in found if end <= room}), 6) >= worth:
        return 0
    begins = [match.end() for match in _BEGIN.finditer(text, 0, first + 1) if match.end() <= first]
    sentence = begins[-1] if begins else 0
    return sentence if last - sentence < room - 1 else first


def _best(found: Sequence[Found], room: int) -> tuple[float, int, int]:
    """The words that are worth the most together and fit into the room: what they are worth, and from where to where.

    Of equals those that stand closest, then the first.
    """
    said = Counter(stem for _, _, stem in found)
    inside: Counter[str] = Counter()
    best, after, worth = (0.0, -room), 0, 0.0
    first, last = found[0][0], found[0][1]
    for number, (place, _, stem) in enumerate(found):
        while after < len(found) and found[after][1] <= place + room:
            newer = found[after][2]
            worth += 0.0 if inside[newer] else 1.0 / said[newer]
            inside[newer] += 1
            after += 1
        rated = round(worth, 6)
        if after > number and rated >= best[0]:
            # The first place of each; words that come again later do not make it longer.
            end = max({stem: end for _, end, stem in reversed(found[number:after])}.values())
            if (rated, place - end) > best:
                best, first, last = (rated, place - end), place, end
        inside[stem] -= 1
        worth -= 0.0 if inside[stem] else 1.0 / said[stem]
    return best[0], first, last


@lru_cache(maxsize=64)  # a list is put in words again with less room
def _places(text: str, asked: str) -> list[Found]:
    """Where the words asked for stand in a text: begin, end and stem of each."""
    stems = {stem_of(word) for word in WORD.findall(asked.lower())}
    # Stems keep how a word begins, so most words need not be stemmed.
    heads = {stem[:2] for stem in stems if stem}
    found = []
    for match in WORD.finditer(text.lower()):
        word = match.group()
        if word[:2] in heads and stem_of(word) in stems:
            found.append((match.start(), match.end(), stem_of(word)))
            if len(found) == MOST:
                break
    return found
