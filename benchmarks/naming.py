"""What a cosine of two names is worth: `python -m benchmarks.naming`, the calibration of retrieval/thresholds.py.

Worlds of 25 known labels are drawn from the everyday things of retrieval/concepts.py. Asked are other names of what is
there and names of what is not. Odd things calibrate, even ones report, and the words themselves are only known to the
model here: this is what locate is left with for a name that concepts.py does not have.
"""

from __future__ import annotations

import random
import sys

import numpy as np
from numpy.typing import NDArray

from benchmarks.entities_systems import load_embedder
from memory_node.retrieval import concepts

LABELS, WORLDS = 25, 200
REFUSED = 0.9
"""Share of absent things that the threshold is to refuse."""


def main() -> int:
    """Print what thresholds around the calibrated one refuse and find among things it was not tuned on."""
    embedder = load_embedder()
    groups = concepts.groups()
    names = sorted({name for group in groups for name in group})
    vectors = dict(zip(names, embedder.embed(names), strict=True))
    absent, present = _asked(groups[1::2], vectors, seed=1)
    calibrated = float(np.quantile(absent, REFUSED))
    print(f"{len(names)} names of {len(groups)} things")
    print(f"{REFUSED:.0%} of absent things are refused from {calibrated:.3f} on")
    absent, present = _asked(groups[::2], vectors, seed=2)
    for threshold in (0.45, 0.5, 0.55, calibrated, 0.6, 0.65):
        refused, found = float((absent < threshold).mean()), float((present >= threshold).mean())
        print(f"threshold {threshold:.3f}: refused {refused:.3f}, found by another name {found:.3f}")
    return 0


def _asked(
    groups: tuple[tuple[str, ...], ...], vectors: dict[str, NDArray[np.float32]], seed: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the best cosine of each absent thing, and of each other name its cosine where it is the best, else 0."""
    rng = random.Random(seed)
    absent: list[float] = []
    present: list[float] = []
    for _ in range(WORLDS):
        drawn = rng.sample(groups, len(groups))
        here = [(rng.choice(group), group) for group in drawn[:LABELS]]
        known = np.stack([vectors[label] for label, _ in here])
        there = {name for _, group in here for name in group}
        absent += [float((known @ vectors[group[0]]).max()) for group in drawn[LABELS:] if not there & set(group)]
        for number, (label, group) in enumerate(here):
            for name in group:
                cosines = known @ vectors[name]
                if name != label:
                    present.append(float(cosines[number]) if int(cosines.argmax()) == number else 0.0)
    return np.asarray(absent), np.asarray(present)


if __name__ == "__main__":
    sys.exit(main())
