"""Where in a long text is what was asked for."""

from __future__ import annotations

import re
from collections import Counter

from memory_node.retrieval.stems import WORD, stem_of

LOOKED_AT = 20_000
"""Characters of a text that are looked through."""
MOST = 500
"""Words of the query's that are looked at in a text."""
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
    said = Counter(stem for _, _, stem in found)

    def window(begin: int) -> tuple[float, int, int]:
        """What words from begin on that fit into the room are worth; how close they stand, negative; their end."""
        inside = [(end, stem) for place, end, stem in found if place >= begin and end <= begin + room]
        end = max((end for end, _ in inside), default=begin)
        return round(sum(1.0 / said[stem] for stem in {stem for _, stem in inside}), 6), begin - end, end

    first = max((place for place, _, _ in found), key=lambda place: window(place)[:2])
    worth, _, last = window(first)
    if window(0)[0] >= worth:
        return 0
    begins = [match.end() for match in _BEGIN.finditer(text, 0, first + 1) if match.end() <= first]
    sentence = begins[-1] if begins else 0
    return sentence if last - sentence < room - 1 else first


def _places(text: str, asked: str) -> list[tuple[int, int, str]]:
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
