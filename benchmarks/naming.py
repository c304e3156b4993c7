"""What cosines of names and texts are worth, for retrieval/thresholds.py: `python -m benchmarks.naming`.

Names that retrieval/concepts.py lacks are asked for in three sets, by another word for what is there, and by names of
what is not there:

* the vocabulary's own, in worlds of 25 labels, as if it had only the label itself (thing hidden), or all its names but
  the one asked for (word hidden);
* naming_held_out.py, written down after the vocabulary, on which the threshold was chosen;
* naming_unseen.py, written down before that and never tuned on: the figures that docs/entities.md reports.

Texts: how alike to a name is the most alike of 60 sentences that do not have it, drawn from retrieval_home.py?
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import naming_held_out, naming_unseen, retrieval_home
from benchmarks.entities_systems import Cached, load_embedder
from benchmarks.entities_world import CLASSES
from memory_node.retrieval import concepts, naming, thresholds

LABELS, WORLDS, SENTENCES = 25, 100, 60
MODEL = "all-MiniLM-L6-v2"
AROUND = (0.45, 0.5, 0.55, 0.6, 0.65)


def main() -> int:
    """Print what thresholds around the calibrated ones refuse and find."""
    embedder = Cached(load_embedder())
    for title, hidden in (("thing", True), ("word", False)):
        absent, present = _vocabulary(embedder, hidden)
        for least in AROUND:
            refused, found = np.mean(absent < least), np.mean(present >= least)
            print(f"{title} hidden, {least}: found {found:.3f}, refused {refused:.3f}")
    for module in (naming_held_out, naming_unseen):
        for least in AROUND:
            found, refused = measure(embedder, module.PAIRS, module.ABSENT, least)
            print(f"{module.__name__}, {least}: found {found:.3f}, refused {refused:.3f}")
    alike = _sentences(embedder)
    for share in (0.5, 0.9, 0.95, 0.99):
        print(f"most alike of {SENTENCES} sentences without it: {share:.0%} below {np.quantile(alike, share):.3f}")
    for least in AROUND:
        print(f"sentences, {least}: refused {np.mean(alike < least):.3f}")
    return 0


def measure(
    embedder: Any, pairs: Sequence[tuple[str, str]], absent: Sequence[str], least: float = 0.0
) -> tuple[float, float]:
    """Return the share of other words that find their label first, and that of absent names that find nothing.

    The labels of the pairs are there, and the classes of the entity benchmark. least: 0 is the calibrated threshold.
    """
    least = least or thresholds.of_model(MODEL).label
    labels = [label for label, _ in pairs] + list(CLASSES)
    known = np.asarray(embedder.embed(labels))

    def fits(asked: str) -> dict[str, float]:
        cosines = known @ np.asarray(embedder.embed([asked]))[0]
        plain = dict(zip(labels, cosines.tolist(), strict=True))
        sharp = naming.sharpened(embedder.embed, asked, plain)
        return {label: naming.fit(asked, label, sharp.get(label), least) for label in labels}

    answers = [(label, fits(word)) for label, word in pairs]
    found = [scores[label] > 0.0 and scores[label] == max(scores.values()) for label, scores in answers]
    refused = [max(fits(name).values()) <= 0.0 for name in absent]
    return float(np.mean(found)), float(np.mean(refused))


def _vocabulary(embedder: Any, hidden: bool) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the best cosine of each absent thing, and of each other name its cosine where it is the best, else 0."""
    rng = random.Random(1)
    groups = concepts.groups()
    names = sorted({name for group in groups for name in group})
    pictures = naming.pictured(embedder.embed, names)
    assert pictures is not None
    vectors = dict(zip(names, pictures, strict=True))
    absent: list[float] = []
    present: list[float] = []
    for _ in range(WORLDS):
        drawn = rng.sample(groups, len(groups))
        here = [(rng.choice(group), group) for group in drawn[:LABELS]]
        there = {name for _, group in here for name in group}

        def best(asked: str, own: int, here: list[tuple[str, tuple[str, ...]]] = here) -> list[float]:
            known = [
                [label] if hidden and number == own else [name for name in group if name != asked]
                for number, (label, group) in enumerate(here)
            ]
            return [max((float(vectors[name] @ vectors[asked]) for name in some), default=0.0) for some in known]

        absent += [max(best(group[0], -1)) for group in drawn[LABELS : 2 * LABELS] if not there & set(group)]
        for number, (label, group) in enumerate(here):
            for name in group:
                if name != label:
                    cosines = best(name, number)
                    present.append(cosines[number] if cosines[number] == max(cosines) else 0.0)
    return np.asarray(absent), np.asarray(present)


def _sentences(embedder: Any) -> NDArray[np.float64]:
    """Return, for each thing of the vocabulary, the cosine of the most alike of some sentences without its names."""
    rng = random.Random(2)
    said = sorted({row.text for row in retrieval_home.build(1).rows if row.layer == "scene"})
    vectors = np.asarray(embedder.embed(said))
    alike = []
    for group in concepts.groups():
        without = [i for i, text in enumerate(said) if not any(f" {name} " in f" {text.lower()} " for name in group)]
        drawn = rng.sample(without, min(SENTENCES, len(without)))
        alike.append(float((vectors[drawn] @ np.asarray(embedder.embed([group[0]]))[0]).max()))
    return np.asarray(alike)


if __name__ == "__main__":
    sys.exit(main())
