"""How well a label fits what was asked for, 0..1: the same words, another name of the thing, or near in meaning."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from memory_node.ingest.association import differ, is_id, normalise_label
from memory_node.retrieval import concepts
from memory_node.storage import entities, vectors

if TYPE_CHECKING:
    import sqlite3

    from numpy.typing import NDArray

    from memory_node.storage.vectors import Model

    Embed = Callable[[list[str]], NDArray[np.float32] | None]

EXACT, OTHER_NAME, KIND_OF, PART = 1.0, 0.95, 0.9, 0.8
"""Same name; another name of it; a name with or without more said ("red chair", "chair"); letters in common."""
SURER = 0.05
"""How far beyond the threshold a cosine must be for a word before a name to leave the thing what it is."""
NEAREST, MOST_NAMES = 12, 5
"""Labels that a name is compared with more closely, and names of each."""
MOST_LABELS = 300
"""Labels of which the names are embedded ahead of the first question."""
_ATTRIBUTES = """
    black white red green blue yellow orange brown grey gray purple pink golden silver dark bright big large small
    little tiny huge tall short long wide narrow old new broken dirty clean empty full open closed wooden wood metal
    steel iron plastic glass leather paper cardboard ceramic stone concrete rubber fabric round square left right upper
    lower top bottom front back middle first second third last other same nearest heavy light kitchen bathroom bedroom
    office garden hallway living room dining outdoor indoor ceiling wall floor
"""
ATTRIBUTES = frozenset(_ATTRIBUTES.split())
"""Words before a name that say more of the thing and leave it what it is."""
_OTHER_KIND = """
    baby bed bird car cat clothes dog doll fake flower hot model music pet prairie river sea shower solar stuffed teddy
    time toilet toy traffic
"""
OTHER_KIND = frozenset(_OTHER_KIND.split())
"""Words before a name that make it another thing: a teddy bear is no bear, a toilet seat no chair."""
_ASKING = re.compile(
    r"^(?:(?:where|how many|number of|count|find|locate|show|is|are|the|a|an|my|our|any|all|some|nearest|closest|me"
    r"|there|(?:do|did|have) (?:you|we|i)(?: last)? (?:see|seen|know|have|leave|put)(?: of)?)\s+)+"
)
_AFTER = re.compile(
    r"(?:\s+(?:(?:is|are) (?:there|here|it|they|located)|(?:do|did|have) you (?:see|seen|know|have)(?: of)?"
    r"|now|right now|in total))+$"
)
"""What a question says after the thing."""


def concept_of(text: str) -> str:
    """Return what a question asks for, normalised: "Where is the red chair?" asks for "red chair"."""
    plain = normalise_label(re.sub(r"[?!.,;:\"]+", " ", text))
    return _AFTER.sub("", _ASKING.sub("", plain)) or plain


def fit(concept: str, label: str, cosine: float | None, threshold: float) -> float:
    """Return how well label names concept, 0 when it does not.

    Args:
        concept, label: normalised. cosine: of both, None when it isn't known. threshold: least cosine that is believed.
    """
    said = fit_of_words(concept, label)
    return fit_of_meaning(concept, label, cosine, threshold) if said is None else said


def fit_of_words(concept: str, label: str) -> float | None:
    """Return what `fit` does, None where it is the cosine that decides."""
    if concepts.same_word(concept, label):
        return EXACT
    if differ(concept, label):
        return 0.0
    if bare := _without_number(concept, label):
        said = fit_of_words(concept, bare)
        return None if said is None else min(KIND_OF, said)
    asked, known = concepts.things(concept), concepts.things(label)
    if asked & known:
        return OTHER_NAME
    more, of_label = _more_said(concept, label)
    if more:
        if not OTHER_KIND.isdisjoint(more):
            return 0.0
        if ATTRIBUTES.issuperset(more):
            return KIND_OF
        return None if of_label or not asked else 0.0
    if asked and known:
        return 0.0
    return KIND_OF if asked & concepts.things(_head(label)) else None


def fit_of_meaning(concept: str, label: str, cosine: float | None, threshold: float) -> float:
    """Return what `fit` does where it is the cosine that decides."""
    if bare := _without_number(concept, label):
        return min(KIND_OF, fit_of_meaning(concept, bare, cosine, threshold))
    more, of_label = _more_said(concept, label)
    if more:
        return KIND_OF if _is_kind(of_label, cosine, threshold + SURER) else 0.0
    head, other = _head(concept), _head(label)
    if concepts.things(head) and concepts.things(other) and (head, other) != (concept, label):
        cosine = cosine if fit(head, other, None, threshold) else None
    return cosine if cosine is not None and cosine >= threshold else 0.0


def _more_said(concept: str, label: str) -> tuple[Sequence[str], bool]:
    """The words that one name has before the other, and whether it is the label that has them.

    There are none when neither is the other with more said.
    """
    of_label = next((before for before, head in _heads(label) if concepts.same_word(concept, head)), ())
    if of_label:
        return of_label, True
    return next((before for before, head in _heads(concept) if _means(head, label)), ()), False


def _without_number(concept: str, label: str) -> str:
    """The label without the number at its end, "" when it has none, or the concept has one too."""
    bare = _unnumbered(label)
    return "" if bare == label or any(map(is_id, concept.split())) else bare


@lru_cache(maxsize=4096)
def _unnumbered(label: str) -> str:
    """The label without the numbers or letters at its end: "office chair" of "office chair 3"."""
    words = label.split()
    while words and is_id(words[-1]):
        words.pop()
    return " ".join(words)


@lru_cache(maxsize=4096)
def _head(name: str) -> str:
    """What the vocabulary knows of a name without attributes and numbers: "chair" of "red chair 2"; else the name."""
    name = _unnumbered(name) or name
    if concepts.things(name):
        return name
    known = (head for before, head in _heads(name) if ATTRIBUTES.issuperset(before) and concepts.things(head))
    return next(known, name)


@lru_cache(maxsize=4096)
def _heads(name: str) -> tuple[tuple[Sequence[str], str], ...]:
    """The words before and the name that is left of them: "chair" of "red office chair" among others."""
    words = name.split()
    return tuple((words[:i], " ".join(words[i:])) for i in range(1, len(words)))


def _is_kind(of_label: bool, cosine: float | None, least: float) -> bool:
    """Tell whether more words of a name, which are no attributes, leave the thing what it is, as far as it is known."""
    return of_label if cosine is None else cosine >= least


def cosines(
    conn: sqlite3.Connection, model: Model | None, vector: NDArray[np.float32] | None, labels: Iterable[str]
) -> Mapping[str, float]:
    """Return the cosine of a unit vector (D,) of the model and each label that has one stored."""
    if vector is None or model is None:
        return {}
    return {label: float(found @ vector) for label, found in vectors.of_bodies(conn, model.id, labels).items()}


def sharpened(embed: Embed, concept: str, plain: Mapping[str, float]) -> Mapping[str, float]:
    """Return cosines that tell more than those of the bare words, for a name that `concepts` lacks.

    Words are compared as they are and as "a photo of" what they name, and a label by that one of its names that is the
    nearest. Only the NEAREST labels are looked at; the others have no cosine. docs/entities.md has what it gains.

    Args:
        embed: unit vectors (N, D) of texts, or None. plain: cosine of concept and label, by label.
    """
    if concepts.things(concept) or not plain:
        return plain
    near = sorted(plain, key=lambda label: (-plain[label], label))[:NEAREST]
    names = {label: _names(label) for label in near}
    asked = list(dict.fromkeys([concept, *(name for label in near for name in names[label])]))
    found = pictured(embed, asked)
    if found is None:
        return plain
    cosine = dict(zip(asked, (found @ found[0]).tolist(), strict=True))
    return {label: max(cosine[name] for name in names[label]) for label in near}


def asked_of(conn: sqlite3.Connection) -> list[str]:
    """Return the texts that `sharpened` has embedded of the labels of entities, of so many as a memory can keep."""
    names = dict.fromkeys(name for label in entities.labels(conn, MOST_LABELS) for name in _names(label))
    return forms(list(names))


def pictured(embed: Embed, names: Sequence[str]) -> NDArray[np.float32] | None:
    """Return unit vectors (N, D) halfway between each name and "a photo of" it, or None."""
    found = embed(forms(names))
    if found is None:
        return None
    both = found[: len(names)] + found[len(names) :]
    return np.asarray(both / np.linalg.norm(both, axis=1, keepdims=True))


def forms(names: Sequence[str]) -> list[str]:
    """Return the texts that names are compared by: each as it is, and what it names in a photo."""
    return [*names, *(f"a photo of a {name}" for name in names)]


@lru_cache(maxsize=4096)
def _names(label: str) -> tuple[str, ...]:
    return tuple(concepts.names(label)[:MOST_NAMES])


def _means(form: str, label: str) -> bool:
    return concepts.same_word(form, label) or bool(concepts.things(form) & concepts.things(label))
