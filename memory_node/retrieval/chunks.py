"""Splits long texts into parts that a model reads whole; a model of 256 tokens is blind to what comes after them."""

from __future__ import annotations

import re

PART_TOKENS = 220
"""Estimated tokens of a part: the estimate may be some 15 % short before the 256 of all-MiniLM-L6-v2 are passed."""

_PIECE = re.compile(r"\S+\s*")
_SENTENCE_END = re.compile(r"[.!?;。！？]\W*$|\n\s*$")


def split(text: str, tokens: int = PART_TOKENS) -> list[str]:
    """Return the parts of `text`, each about `tokens` tokens at most, cut after a sentence where one ends in time.

    A short text is its own only part; a blank one gives [""]. No word is lost or said twice.
    """
    if len(text) <= tokens:
        return [text.strip()]
    parts: list[str] = []
    pieces: list[str] = []
    used, end = 0, 0  # `end` counts the pieces up to the last sentence's end
    for piece in _pieces(text, tokens):
        cost = _tokens(piece)
        if used + cost > tokens:
            cut = end if 2 * end >= len(pieces) else len(pieces)
            parts.append("".join(pieces[:cut]).strip())
            pieces, end = pieces[cut:], 0
            used = sum(map(_tokens, pieces))
        pieces.append(piece)
        used += cost
        if _SENTENCE_END.search(piece):
            end = len(pieces)
    return parts + ["".join(pieces).strip()]


def _pieces(text: str, tokens: int) -> list[str]:
    """Words with the blanks after them; one that would fill a part alone is cut."""
    words = _PIECE.findall(text.strip())
    return [word[at : at + tokens] for word in words for at in range(0, len(word), tokens)]


def _tokens(piece: str) -> int:
    """Estimate of word pieces: a short word of ASCII is one, a long one splits; every other sign counts."""
    word = piece.rstrip()
    letters = sum(c.isascii() and c.isalpha() for c in word)
    return len(word) - letters + (1 if 0 < letters <= 7 else (letters + 2) // 3)
