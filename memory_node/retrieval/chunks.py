"""Splits texts into the parts that are embedded: what a model reads whole, and single sentences.

A model of 256 tokens is blind to what comes after them, and the vector of several sentences is a mean that hides each.
So a text is embedded in windows, and a text of several sentences by its sentences too; it is found by any part. How
much that finds is measured in docs/ranking.md.
"""

from __future__ import annotations

import re
from itertools import pairwise

PART_TOKENS = 220
"""Estimated tokens of a part: the estimate may be some 15 % short before the 256 of all-MiniLM-L6-v2 are passed."""
FINE_WINDOWS = 8
"""Windows up to which a text is embedded by its sentences too; a longer one would cost too many vectors."""
LEAST_WORDS = 4
"""A shorter sentence says too little alone and goes with the one before it."""

_PIECE = re.compile(r"\S+\s*")
_SENTENCE_END = re.compile(r"[.!?;。！？]\W*$|\n\s*$")
_BREAK = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])\s*|\n+")


def split(text: str, tokens: int = PART_TOKENS) -> list[str]:
    """Return the parts of `text`, each about `tokens` tokens at most; the first stands for the whole.

    Windows come first, cut after a sentence where one ends in time, then the sentences. A short text of one sentence is
    its own only part; a blank one gives [""].
    """
    windows = _windows(text, tokens)
    sentences = _sentences(text) if len(windows) <= FINE_WINDOWS else []
    if len(sentences) < 2:
        return windows
    return windows + [part for sentence in sentences for part in _windows(sentence, tokens)]


def _windows(text: str, tokens: int) -> list[str]:
    """The text in stretches of at most `tokens`; no word is lost or said twice."""
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


def _sentences(text: str) -> list[str]:
    """The sentences, too short ones with the one before, or after at the start."""
    starts = [0, *(match.end() for match in _BREAK.finditer(text)), len(text)]
    sentences: list[str] = []
    for sentence in (text[start:end].strip() for start, end in pairwise(starts)):
        if not sentence:
            continue
        if sentences and min(len(sentence.split()), len(sentences[-1].split())) < LEAST_WORDS:
            sentences[-1] = f"{sentences[-1]} {sentence}"
        else:
            sentences.append(sentence)
    return sentences


def _pieces(text: str, tokens: int) -> list[str]:
    """Words with the blanks after them; one that would fill a part alone is cut."""
    words = _PIECE.findall(text.strip())
    return [word[at : at + tokens] for word in words for at in range(0, len(word), tokens)]


def _tokens(piece: str) -> int:
    """Estimate of word pieces: a short word of ASCII is one, a long one splits; every other sign counts."""
    word = piece.rstrip()
    letters = sum(c.isascii() and c.isalpha() for c in word)
    return len(word) - letters + (1 if 0 < letters <= 7 else (letters + 2) // 3)
