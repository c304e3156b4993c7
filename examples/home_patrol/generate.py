"""Write the bag `home_patrol` and `ground_truth.json`: `python -m examples.home_patrol.generate --out DIR`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from examples.home_patrol import bag
from examples.home_patrol.recording import record
from examples.home_patrol.truth import ground_truth

SEED = 7
"""Seed of the shipped world."""


@dataclass(frozen=True)
class Written:
    """Where the two results of a generation lie."""

    bag: Path
    truth: Path


def generate(out: Path, seed: int = SEED, variant: str = "robot_memory") -> Written:
    """Write the bag folder and the ground truth into a folder, which is made when missing.

    Args:
        out: The folder; it must not hold a `home_patrol` yet.
        seed: Seed of all noise; the same seed gives the same bytes.
        variant: `robot_memory` or `vision_msgs`, the package that carries the detections.

    Raises:
        FileExistsError: The bag is there already.
        ValueError: The variant is unknown.
    """
    written = Written(out / "home_patrol", out / "ground_truth.json")
    if written.bag.exists():
        raise FileExistsError(f"{written.bag} exists already and is not overwritten")
    out.mkdir(parents=True, exist_ok=True)
    recording = record(seed)
    messages = bag.write(recording, written.bag, variant)
    truth = ground_truth(recording, variant, messages)
    written.truth.write_text(json.dumps(truth, indent=1) + "\n", encoding="utf-8")
    return written


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for the bag and the ground truth")
    parser.add_argument("--seed", type=int, default=SEED, help="seed of all noise (default %(default)s)")
    parser.add_argument("--variant", choices=bag.VARIANTS, default="robot_memory", help="type of the detections")
    options = parser.parse_args(arguments)
    try:
        written = generate(options.out, options.seed, options.variant)
    except FileExistsError as error:
        parser.exit(1, f"{error}\n")
    print(f"{written.bag}\n{written.truth}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
