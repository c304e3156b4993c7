"""How well a label fits what was asked for, 0..1: the same words, another name of the thing, or near in meaning."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from memory_node.ingest.association import normalise_label
from memory_node.retrieval import concepts
from memory_node.storage import vectors

if TYPE_CHECKING:
    import sqlite3

    import numpy as np
    from numpy.typing import NDArray

    from memory_node.storage.vectors import Model

EXACT, OTHER_NAME, KIND_OF, PART = 1.0, 0.95, 0.9, 0.8
"""Same name; another name of it; a name with or without more said ("red chair", "chair"); letters in common."""
_ASKING = re.compile(
    r"^(?:(?:where|how many|find|locate|show|is|are|the|a|an|my|our|any|some|nearest|closest|me|there)\s+)+"
)


def concept_of(text: str) -> str:
    """Return what a question asks for, normalised: "Where is the red chair?" asks for "red chair"."""
    plain = normalise_label(re.sub(r"[?!.,;:\"]+", " ", text))
    return _ASKING.sub("", plain) or plain


def fit(concept: str, label: str, cosine: float | None, threshold: float) -> float:
    """Return how well label names concept, 0 when it does not.

    Args:
        concept, label: normalised. cosine: of both, None when it isn't known. threshold: least cosine that is believed.
    """
    if concepts.same_word(concept, label):
        return EXACT
    asked, known = concepts.things(concept), concepts.things(label)
    if asked & known:
        return OTHER_NAME
    if label.endswith(" " + concept) or (not asked and _means(_shortened(concept), label)):
        return KIND_OF
    if asked and known:
        return 0.0
    return cosine if cosine is not None and cosine >= threshold else 0.0


def cosines(
    conn: sqlite3.Connection, model: Model | None, vector: NDArray[np.float32] | None, labels: Iterable[str]
) -> Mapping[str, float]:
    """Return the cosine of a unit vector (D,) of the model and each label that has one stored."""
    if vector is None or model is None:
        return {}
    return {label: float(found @ vector) for label, found in vectors.of_bodies(conn, model.id, labels).items()}


def _shortened(concept: str) -> list[str]:
    """The concept with fewer and fewer words before its head."""
    words = concept.split()
    return [" ".join(words[i:]) for i in range(1, len(words))]


def _means(forms: Iterable[str], label: str) -> bool:
    return any(concepts.same_word(form, label) or concepts.things(form) & concepts.things(label) for form in forms)
