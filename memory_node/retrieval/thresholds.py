"""From which cosine on a name is believed, by model.

The values come from `python -m benchmarks.naming`: 416 groups of names of everyday things, worlds of 25 known labels,
queries that are another name of a known thing or a thing that is not there but belongs beside one that is. `label` is
where 9 of 10 absent things are refused; as sentences are compared with single words, `sentence` is the same for texts.
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
    """

    label: float
    sentence: float
    strict: float


_OF_MODEL = {"all-MiniLM-L6-v2": Thresholds(label=0.60, sentence=0.45, strict=0.60)}
_OTHERS = Thresholds(label=0.60, sentence=0.50, strict=0.60)


def of_model(name: str | None, chosen: float = 0.0) -> Thresholds:
    """Return the thresholds of a model; those of an unknown one are guessed on the safe side.

    Args:
        chosen: the setting locate_threshold, in place of `label`; 0: the calibrated one.
    """
    found = _OTHERS if name is None else _OF_MODEL.get(name.rsplit("/", 1)[-1], _OTHERS)
    return Thresholds(chosen, min(chosen, found.sentence), max(chosen, found.strict)) if chosen > 0.0 else found
