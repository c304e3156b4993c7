"""Costs and the assignment of one message, with values worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from memory_node.graph import Pose
from memory_node.ingest import association


@pytest.mark.parametrize(
    ("raw", "normal"),
    [
        ("Chair", "chair"),
        ("  Dining_Table ", "dining table"),
        ("t-shirt", "t shirt"),
        ("62", "62"),
        ("The Mug", "mug"),
        ("a-an apple", "apple"),
        ("a", "a"),
        ("", ""),
        (" \t", ""),
        ("STRASSE", "strasse"),
        ("ｃｕｐ", "cup"),
    ],
)
def test_labels_are_compared_without_case_and_separators(raw: str, normal: str) -> None:
    assert association.normalise_label(raw) == normal


@pytest.mark.parametrize("position", [(math.nan, 0.0, 0.0), (0.0, math.inf, 0.0), (1e256, 0.0, 0.0), (1.0, 2.0), None])
def test_positions_that_are_no_place_are_unknown(position: tuple[float, ...] | None) -> None:
    assert association.usable(position) is None  # type: ignore[arg-type]


def test_variance_grows_with_range_and_with_the_doubt_of_the_pose() -> None:
    near = association.measured_variance((1.0, 0.0, 5.0), None)
    far = association.measured_variance((3.0, 4.0, 0.0), Pose(0, (0.0, 0.0, 0.0), 0.0, stddev=0.3))
    assert near == pytest.approx(0.15**2)
    assert far == pytest.approx(0.15**2 + 0.1**2 + 0.3**2)


def test_cost_of_a_measured_place_is_its_squared_mahalanobis_distance() -> None:
    costs = association.measured_costs(
        np.array([[0.0, 0.0, 0.0]]),
        np.array([0.09]),
        np.array([[0.4, 0.0, 0.3], [2.0, 0.0, 0.0]]),
        np.array([0.4, 0.4]),
        1.5,
    )
    assert costs[0, 0] == pytest.approx(0.25 / (0.09 + 0.16 + 0.01))
    assert costs[0, 1] == association.IMPOSSIBLE


def test_cost_of_an_observers_place_reaches_that_of_a_new_thing_at_the_gate() -> None:
    costs = association.observer_costs(
        np.array([[0.0, 0.0, 9.0]]), np.array([[3.0, 4.0, 0.0], [0.0, 2.5, 0.0], [5.1, 0, 0]]), 5.0
    )
    assert costs[0, 0] == pytest.approx(association.UNMATCHED)
    assert costs[0, 1] == pytest.approx(association.UNMATCHED / 4.0)
    assert costs[0, 2] == association.IMPOSSIBLE


def test_assignment_is_the_cheapest_as_a_whole_and_never_gives_a_thing_twice() -> None:
    # Greedy would take 1.0 first and be left with 10.0: 11.0 in all instead of 4.0.
    assert association.assign(np.array([[1.0, 2.0], [2.0, 10.0]])) == [1, 0]


def test_what_fits_nothing_stays_alone() -> None:
    assert association.assign(np.array([[association.UNMATCHED + 0.1], [3.0]])) == [-1, 0]
    assert association.assign(np.empty((2, 0))) == [-1, -1]


def test_doubt_costs_as_much_as_the_odds_that_a_look_shows_the_thing() -> None:
    sure, even, gone = association.doubt_costs(np.array([32.0 / 33.0, 0.5, 0.02]))
    assert sure == pytest.approx(0.0, abs=0.1)
    assert even == pytest.approx(2.0 * math.log(9.0) - 2.0 * math.log(0.45 / 0.55) - 0.5)
    assert gone == 8.0


@pytest.mark.parametrize(
    ("label", "other", "one"),
    [
        ("56", "62", False),
        ("chair 1", "chair 2", False),
        ("chair 1", "chair", False),
        ("rack a", "rack b", False),
        ("left door", "right door", False),
        ("upper shelf", "lower shelf", False),
        ("red cup", "blue cup", False),
        ("red cup", "cup", True),
        ("left door", "left doorway", True),
        ("open door", "closed door", True),
        ("sofa", "couch", True),
    ],
)
def test_labels_that_differ_in_a_number_or_an_opposite_never_name_one_thing(label: str, other: str, one: bool) -> None:
    assert association.may_be_one(label, other) is one
    assert association.may_be_one(other, label) is one
