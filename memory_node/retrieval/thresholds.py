"""From which cosine on a name is believed, by model.

`label` comes from `python -m benchmarks.naming`: worlds of 25 known labels, asked for by other names of what is there
and by names of what is not, with words that only the model knows. For all-MiniLM-L6-v2 nine of ten absent things are
refused from 0.52 on; on things it was not tuned on 0.55 refuses 93 % and finds 63 % of the other names (0.45: 70 % and
76 %, 0.65: 98 % and 51 %). Those things are of the vocabulary's own kinds: for an office, a workshop and the outdoors,
written down after it, 0.55 refuses 51 of 60 absent things and finds 23 of 40 other names. Names that `concepts` has
don't depend on it. `sentence` is the same for sentences: of 60 scenes that do not speak of a thing, the most alike is
below 0.44 for nine of ten things.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Thresholds:
    """Least cosines: of two names, and of a name and a text.

    Attributes:
        label: of a query and a label, when not both are in `concepts`.
        sentence: of a query and a text that does not have its words.
        strict: the same for a query in `concepts`: a text about it would have had one of its names.
        named: of a query and a text that has another of its names.
    """

    label: float
    sentence: float
    strict: float
    named: float = 0.15


_OF_MODEL = {"all-MiniLM-L6-v2": Thresholds(label=0.55, sentence=0.45, strict=0.60)}
_OTHERS = Thresholds(label=0.60, sentence=0.50, strict=0.60)


def of_model(name: str | None, chosen: float = 0.0) -> Thresholds:
    """Return the thresholds of a model; those of an unknown one are guessed on the safe side.

    Args:
        chosen: the setting locate_threshold, in place of `label`; 0: the calibrated one.
    """
    found = _OTHERS if name is None else _OF_MODEL.get(name.rsplit("/", 1)[-1], _OTHERS)
    if chosen <= 0.0:
        return found
    return Thresholds(chosen, min(chosen, found.sentence), max(chosen, found.strict), min(chosen, found.named))
