"""Two days of a simulated robot, and the parked robot: that the benchmarks run and what they say."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import consolidating, parked, soak
from benchmarks.robot_life import life


@pytest.mark.timeout(900)
def test_two_days_of_a_robot_leave_few_vectors_few_gists_and_nothing_raw() -> None:
    """They take a processor some two minutes; the time that is allowed is for one that has other work."""
    days = soak.soak(2)
    assert [day.rows for day in days] == [173_088, 173_088]
    assert all(0 < day.new_gists <= soak.MAX_GISTS for day in days)
    assert all(day.vectors < 200 for day in days) and days[1].vectors < days[0].vectors * 2
    assert days[1].gist_vectors <= 2 * soak.MAX_GISTS
    assert days[1].db_mb < 3 * days[0].db_mb
    assert [day.episode_vectors for day in days] == [0, 1]
    assert set(days[0].jobs) >= {"episodes", "gists", "archive", "rollup", "duplicates", "snapshots"}
    assert soak.problems(days) == []


def test_growth_after_the_warm_days_is_a_problem() -> None:
    flat = [soak.Day(n, 10, 100.0, 50, 9, 40, 40, 1.0, 1.0, {"gists": 9.0, "rollup": 1.0}) for n in range(20)]
    assert soak.problems(flat) == [] and soak.problems(flat[:8]) == []
    costlier = [replace(day, jobs={"gists": 9.0, "rollup": 1.0 + day.number / 20}) for day in flat]
    assert soak.problems(costlier) == []
    costlier = [replace(day, jobs={"gists": 9.0, "rollup": 1.0 + day.number / 4}) for day in flat]
    # All jobs together take a tenth more only.
    assert soak.problems(costlier) == ["day 19: rollup takes 5.2 s, 3.8 from day 9 on"]
    grown = [*flat[:7], replace(flat[7], rss_mb=111.0, vectors=56, new_gists=61)]
    assert [sentence.split(":")[0] for sentence in soak.problems(grown)] == ["day 7"] * 3


def test_a_life_is_the_same_each_time() -> None:
    assert list(life(1, 600.0)) == list(life(1, 600.0)) and len(list(life(1, 600.0))) == 144


def test_the_parked_benchmark_writes_its_figures(tmp_path: Path) -> None:
    """F41: the figures a parked robot is judged by."""
    assert parked.main(["--n", "3000", "--peer", "none", "--json", str(tmp_path / "parked.json")]) == 0
    figures = json.loads((tmp_path / "parked.json").read_text())
    assert figures["n"] == 3000 and figures["ours"]["clusters"] == 1
    assert figures["ours"]["seconds"] > 0.0 and 0.0 <= figures["ours"]["peak_mb"] < 300.0


def test_the_benchmark_of_searches_while_consolidating_writes_its_figures(tmp_path: Path) -> None:
    assert consolidating.main(["--n", "3000", "--json", str(tmp_path / "figures.json")]) == 0
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert figures["n"] == 3000 and figures["gists"] > 0
    assert figures["alone"]["searches"] == consolidating.ALONE and figures["consolidating"]["searches"] > 0
