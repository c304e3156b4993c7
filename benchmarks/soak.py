"""A month of a robot's life in simulated time: memory, vectors, gists and the cost of each job, day by day.

The robot works, idles and sleeps at 2 rows a second; housekeeping runs as its timer would. From the fifth day on
resident memory and the number of indexed vectors, gists apart, must stay flat, and so must the cost of every job.

    python -m benchmarks.soak --days 30 --json soak.json --plot docs/soak.png
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean

from benchmarks.peak_memory import resident_mb
from benchmarks.robot_life import DAY, MONDAY, SECOND, HashEmbedder, Moment, SimulatedClock, life
from memory_node.graph import Detection
from memory_node.memory import Memory

WARM = 5
"""Days after which everything must be flat."""
FLAT = 0.10
"""Share by which a day may lie above the first warm one."""
MAX_GISTS = 60
"""New gists a day, before rollup."""
ROLLED = 9
"""Days after which every job has work."""
COSTLIER = 1.3
"""Share of what a job took in the days after ROLLED that it may take at the end."""
NOISE = 0.3
"""s of processor a day that a job may take more in any case: a day of most jobs is too short to be measured."""


@dataclass(frozen=True)
class Day:
    """What one simulated day left.

    Attributes:
        rss_mb, db_mb: MB resident and in the database.
        vectors: without those of gists, which come to at most MAX_GISTS a day and are rolled up.
        episode_vectors: those among them that are centroids of episodes.
        gist_vectors, new_gists: vectors of gists, and gists whose first row is of this day.
        seconds: real time the day took.
        jobs: s of processor that each job took, in all threads.
    """

    number: int
    rows: int
    rss_mb: float
    vectors: int
    episode_vectors: int
    gist_vectors: int
    new_gists: int
    db_mb: float
    seconds: float
    jobs: dict[str, float]


def soak(
    days: int, rows_per_second: float = 2.0, cycle: float = 600.0, told: Callable[[Day], None] = lambda day: None
) -> list[Day]:
    """Live through days and return what each left.

    Args:
        rows_per_second: rows stored; a moment is two rows, a caption and a detection, and now and then a reading.
        cycle: simulated s between two runs of the timer.
        told: called with each day as it ends.
    """
    clock = SimulatedClock()
    found: list[Day] = []
    with (
        tempfile.TemporaryDirectory() as folder,
        Memory.open(Path(folder) / "soak.db", embedder=HashEmbedder(), clock=clock) as memory,
    ):
        cost: Counter[str] = Counter()
        rows, next_cycle, started = 0, MONDAY + cycle, time.monotonic()
        for moment in life(days, 2.0 / rows_per_second):
            day = int(moment.seconds - MONDAY) // DAY
            clock.ns = round(moment.seconds * SECOND)
            if moment.seconds >= next_cycle:
                next_cycle += cycle
                cost.update(_housekeep(memory))
            if day > len(found):
                found.append(_day(memory, len(found), rows, time.monotonic() - started, cost))
                told(found[-1])
                rows, started, cost = 0, time.monotonic(), Counter()
            rows += _record(memory, moment)
        clock.ns = round((MONDAY + days * DAY) * SECOND)
        cost.update(_housekeep(memory))
        found.append(_day(memory, len(found), rows, time.monotonic() - started, cost))
        told(found[-1])
    return found


def problems(days: list[Day]) -> list[str]:
    """Return what is not as it must be, a sentence each."""
    said = [f"day {day.number}: {day.new_gists} new gists" for day in days if day.new_gists > MAX_GISTS]
    if len(days) <= WARM:
        return said
    first = days[WARM]
    for day in days[WARM + 1 :]:
        if day.rss_mb > first.rss_mb * (1 + FLAT):
            said.append(f"day {day.number}: {day.rss_mb:.0f} MB resident, {first.rss_mb:.0f} on day {WARM}")
        if day.vectors > first.vectors * (1 + FLAT):
            said.append(f"day {day.number}: {day.vectors} vectors, {first.vectors} on day {WARM}")
    return said + _costlier(days)


def _costlier(days: list[Day]) -> list[str]:
    """A sentence for each job that took more at the end than when it first had a day's work."""
    said = []
    if len(days) >= ROLLED + 2 * WARM:
        for name in days[-1].jobs:
            early, late = (
                fmean(day.jobs.get(name, 0.0) for day in some) for some in (days[ROLLED : ROLLED + WARM], days[-WARM:])
            )
            if late > early * COSTLIER + NOISE:
                said.append(f"day {days[-1].number}: {name} takes {late:.1f} s, {early:.1f} from day {ROLLED} on")
    return said


def plot(days: list[Day], path: Path) -> None:
    """Draw memory, vectors, size and cost of jobs over the days as PNG; needs matplotlib."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    numbers = [day.number for day in days]
    figure, axes = pyplot.subplots(2, 2, figsize=(11, 7), constrained_layout=True)
    axes[0, 0].plot(numbers, [day.rss_mb for day in days])
    axes[0, 0].set(title="resident memory (MB)", ylim=0)
    axes[0, 1].plot(numbers, [day.vectors for day in days], label="indexed vectors, gists apart")
    axes[0, 1].plot(numbers, [day.gist_vectors for day in days], label="vectors of gists")
    axes[0, 1].plot(numbers, [day.new_gists for day in days], label="new gists")
    axes[0, 1].set(title="vectors", ylim=0)
    axes[0, 1].legend()
    axes[1, 0].plot(numbers, [day.db_mb for day in days])
    axes[1, 0].set(title="database (MB)", xlabel="simulated day", ylim=0)
    for name in sorted({name for day in days for name in day.jobs}):
        axes[1, 1].plot(numbers, [day.jobs.get(name, 0.0) for day in days], label=name)
    axes[1, 1].set(title="processor time of each job (s a day)", xlabel="simulated day", ylim=0)
    axes[1, 1].legend(fontsize="small")
    figure.savefig(path, dpi=110)


def _record(memory: Memory, moment: Moment) -> int:
    x, y = moment.pose
    memory.record(moment.caption, layer="scene", position=(x, y, 0.0), position_source="observer")
    memory.record_detections(
        [Detection(moment.thing, 0.9, position=moment.thing_at)], layer="detections", pose=(x, y, 0.0, 0.0)
    )
    if moment.seconds % 300 < 1:
        memory.record_body_state(f"battery: {moment.battery:.0%}", "battery", moment.battery)
        return 3
    return 2


def _housekeep(memory: Memory) -> dict[str, float]:
    """What the timer does, whose steady clock can't be simulated; returns the processor time (s) of each job."""
    memory.flush()
    memory.wait_embedded(60.0)  # so that the processor works for the jobs alone
    cost = {}
    for name in memory._rooms.runner.jobs:
        began = time.process_time()
        state = memory._rooms.runner.run(name, forced=False)
        if state.error:
            raise RuntimeError(f"{name}: {state.error}")
        cost[name] = time.process_time() - began
    return cost


def _day(memory: Memory, number: int, rows: int, seconds: float, cost: Counter[str]) -> Day:
    memory.wait_embedded(60.0)
    status = memory.status()
    begin = (MONDAY + number * DAY) * SECOND
    with memory._rooms.db.read() as conn:
        # A long text has several vectors.
        of_gists = conn.execute(
            "SELECT count(*) FROM vector WHERE text_id IN (SELECT text_id FROM gist JOIN node USING (id))"
        ).fetchone()[0]
        of_episodes = conn.execute("SELECT count(*) FROM vector WHERE node_id > 0").fetchone()[0]
        new_gists = conn.execute(
            "SELECT count(*) FROM gist JOIN node USING (id) WHERE level = 0 AND stamp BETWEEN ? AND ?",
            (begin, begin + DAY * SECOND),
        ).fetchone()[0]
    return Day(
        number=number, rows=rows, rss_mb=resident_mb(), vectors=status.vectors - of_gists,
        episode_vectors=of_episodes, gist_vectors=of_gists, new_gists=new_gists,
        db_mb=status.db_bytes / 1e6, seconds=seconds, jobs=dict(cost),
    )  # fmt: skip


def _line(day: Day) -> str:
    return (
        f"day {day.number:3}  rows {day.rows:7}  rss {day.rss_mb:6.0f} MB  vectors {day.vectors:6}"
        f"  gists {day.gist_vectors:5} (+{day.new_gists})  db {day.db_mb:7.1f} MB"
        f"  jobs {sum(day.jobs.values()):5.1f} s  took {day.seconds:6.1f} s"
    )


def main(arguments: list[str] | None = None) -> int:
    """Live through the days, print a line a day, write JSON and plot; 1 when something grew."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__.splitlines()[0])
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--rows-per-second", type=float, default=2.0)
    parser.add_argument("--json", type=Path, help="where the figures go")
    parser.add_argument("--plot", type=Path, help="where the PNG goes; needs matplotlib")
    chosen = parser.parse_args(arguments)
    days = soak(chosen.days, chosen.rows_per_second, told=lambda day: print(_line(day), flush=True))
    if chosen.json:
        chosen.json.write_text(json.dumps([asdict(day) for day in days], indent=1) + "\n")
    if chosen.plot:
        plot(days, chosen.plot)
    for sentence in problems(days):
        print(sentence)
    return 1 if problems(days) else 0


if __name__ == "__main__":
    sys.exit(main())
