"""F1: the clock jumps while a job runs: nothing is archived by the jump, and everything is summarised once."""

from __future__ import annotations

from pathlib import Path

import pytest
from kept_store import DAY
from support.fakes import FakeClock

from memory_node.graph import EdgeType
from memory_node.memory import Memory

YEAR = 365 * DAY


class JumpingClock(FakeClock):
    """Jumps by `jump` s at the reading number `at` after it was armed."""

    def __init__(self) -> None:
        super().__init__(DAY)
        self.jump, self.at = 0.0, -1
        self.reads = 0

    def now_ns(self) -> int:
        self.reads += 1
        if self.reads == self.at:
            self.advance(self.jump)
        return self.ns

    def arm(self, at: int, jump: float) -> None:
        self.jump, self.reads, self.at = jump, 0, at


def run_jobs(memory: Memory) -> None:
    for job in memory.jobs():
        assert not memory.run_job(job.name).error


def raw_texts(memory: Memory, kind: str = "observation") -> list[str]:
    return [node.text for node in memory.nodes() if node.kind.label == kind and node.text]


@pytest.mark.parametrize("jump", [YEAR, -3000.0], ids=["a year ahead", "back"])
def test_a_jump_at_any_moment_of_the_jobs_archives_nothing(jump: float, tmp_path: Path) -> None:
    moments = 0
    at = 1
    while at:
        clock = JumpingClock()
        with Memory.open(tmp_path / f"{at}.db", clock=clock) as memory:
            old = [memory.record(f"an old chair {i}", position=(0.0, 0.0, 0.0)) for i in range(4)]
            memory.flush()
            clock.advance(4400)
            fresh = [memory.record(f"a new lamp {i}", position=(0.0, 0.0, 0.0)) for i in range(4)]
            memory.flush()
            clock.advance(2000)
            clock.arm(at, jump)
            run_jobs(memory)
            moments, jumped = moments + 1, clock.reads >= at
            assert [text for text in raw_texts(memory) if "lamp" in text] == [f"a new lamp {i}" for i in range(4)]
            for _ in range(2):
                clock.advance(4000)
                run_jobs(memory)
            assert raw_texts(memory) == []
            gists = [node.id for node in memory.nodes() if node.kind.label == "gist"]
            held = [e.target for id_ in gists for e in memory.edges(id_) if e.type is EdgeType.SUMMARIZES]
            assert sorted(held) == [*old, *fresh]
        at = at + 1 if jumped else 0
    assert moments > 20
