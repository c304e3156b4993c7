"""From which cosine on a name is believed, by model; `python -m benchmarks.naming` prints what each value does.

`label` is for names that `concepts` lacks, compared as `naming.sharpened` does. For all-MiniLM-L6-v2 0.60 refuses 93 %
of absent things of the vocabulary's own kinds and finds 66 % of other names, 75 % where only the word asked for is
unknown; of the names of naming_held_out.py, on which it was chosen, 87 % and 58 % (0.55: 70 % and 63 %, 0.65: 92 % and
45 %). Names that `concepts` has don't depend on it. `sentence` and `strict`: of 60 sentences that do not have a thing's
names, the most alike is below 0.45 for 98 % of things, and below 0.60 for 99.9 %. `named` only shuts out what is
plainly of another thing: texts that have a name of the thing have cosines from 0.19 on.
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


_OF_MODEL = {"all-MiniLM-L6-v2": Thresholds(label=0.60, sentence=0.45, strict=0.60)}
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
