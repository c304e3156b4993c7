"""A disk that is full, a folder that cannot be written, and many who read while one writes."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from support.fakes import FakeClock, WordEmbedder

from memory_node.graph import Detection, Filter
from memory_node.memory import Memory

ROOT = Path(__file__).resolve().parents[2]
READERS, SECONDS, TOGETHER = 4, 20.0, 3

FILLING = """
import resource, sys
from support.fakes import FakeClock, WordEmbedder
from memory_node.errors import StorageError
from memory_node.memory import Memory
memory = Memory.open(sys.argv[1], embedder=WordEmbedder(), clock=FakeClock())
memory.record("a red chair", layer="scene")
assert memory.wait_embedded(60.0)
resource.setrlimit(resource.RLIMIT_FSIZE, (1_500_000, resource.RLIM_INFINITY))
stored = refused = 0
while refused < 5:
    memory.record(f"view {stored} " + "x" * 3000, layer="scene")
    try:
        memory.flush()
        stored += 1
    except StorageError:
        refused += 1
assert memory.status().refused == refused, memory.status().refused
assert memory.semantic_search("red chair").matches[0].text == "a red chair"
assert memory.spatial_query((0.0, 0.0), 1.0).success
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
memory.record("space again", layer="scene")
memory.flush()
assert memory.wait_embedded(60.0)
assert memory.semantic_search("space again").matches[0].text == "space again"
assert memory.status().observations == stored + 2
assert memory.check() == []
memory.close()
print("survived", stored > 10)
"""


AS_NOBODY = """
import os, shutil, sys, tempfile
from support.fakes import FakeClock, WordEmbedder
from memory_node.memory import Memory

def ask(path):
    with Memory.open(path, embedder=WordEmbedder(), clock=FakeClock(), read_only=True) as memory:
        found = memory.semantic_search("red chair").matches + memory.spatial_query((1.0, 1.0), 0.5).matches
        return [match.text for match in found], found[0].similarity is not None, memory.check()

with tempfile.TemporaryDirectory() as elsewhere:  # imports all it needs, which another user may not be allowed to read
    ask(shutil.copy(sys.argv[1], elsewhere))
if os.getuid() == 0:
    os.setuid(65534)
print(ask(sys.argv[1]))
"""


def run_child(source: str, path: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", source, str(path)], capture_output=True, text=True, timeout=100,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "test")])},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_f39_a_memory_in_a_folder_that_cannot_be_written_answers_read_only() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with Memory.open(folder / "robot.db", embedder=WordEmbedder(), clock=FakeClock()) as memory:
            memory.record("a red chair", layer="scene", position=(1.0, 1.0, 0.0))
            assert memory.wait_embedded(60.0)
        (folder / "robot.db.lock").unlink()
        there = sorted(path.name for path in folder.iterdir())
        for path in folder.iterdir():
            path.chmod(0o444)
        folder.chmod(0o555)
        try:
            assert run_child(AS_NOBODY, folder / "robot.db") == "(['a red chair', 'a red chair'], True, [])"
            assert sorted(path.name for path in folder.iterdir()) == there
        finally:
            folder.chmod(0o700)


def test_f37_the_status_says_why_a_memory_began_empty(tmp_path: Path) -> None:
    (tmp_path / "robot.db").write_text("this is no database\n" * 1000)
    with Memory.open(tmp_path / "robot.db", clock=FakeClock(), on_corrupt="fresh") as memory:
        (warning,) = memory.status().warnings
        assert "it was set aside as " in warning and warning.endswith("; the memory began empty")
    with Memory.open(tmp_path / "robot.db", clock=FakeClock()) as memory:
        assert memory.status().warnings == ()


def test_f38_on_a_full_disk_refused_rows_are_counted_questions_go_on_and_writing_resumes(tmp_path: Path) -> None:
    assert run_child(FILLING, tmp_path / "robot.db") == "survived True"


def test_f36_four_who_ask_beside_one_who_writes_for_twenty_seconds(tmp_path: Path) -> None:
    """Each message of three detections is seen whole or not at all, by every way to ask, and nobody fails."""
    embedder, clock = WordEmbedder(), FakeClock()
    faults: list[BaseException] = []
    asked = [0] * READERS
    end = time.monotonic() + SECONDS
    with Memory.open(tmp_path / "robot.db", embedder=embedder, clock=clock) as memory:
        memory.declare_layer("detections")
        written = [0]

        def write() -> None:
            while time.monotonic() < end and not faults:
                number = written[0]
                things = [Detection(f"kind{number % 50}", position=(i, number % 7, 0.0)) for i in range(TOGETHER)]
                ids = memory.record_detections(things, stamp=number + 1)
                assert len(set(ids)) == TOGETHER
                written[0] = number + 1
            memory.flush()

        def read(reader: int) -> None:
            while time.monotonic() < end and not faults:
                newest = memory.temporal_query(order="newest", limit=30, filter=Filter(kinds=("observation",))).matches
                counts: dict[int, int] = {}
                for match in newest:
                    counts[match.stamp] = counts.get(match.stamp, 0) + 1
                assert set(counts.values()) <= {TOGETHER}, counts
                assert memory.semantic_search(f"kind{asked[reader] % 50}", limit=5).success
                assert memory.spatial_query((1.0, 3.0), radius=2.0, limit=5).success
                asked[reader] += 1

        def guarded(work, *arguments: int) -> None:
            try:
                work(*arguments)
            except BaseException as error:
                faults.append(error)

        threads = [threading.Thread(target=guarded, args=(read, number)) for number in range(READERS)]
        threads.append(threading.Thread(target=guarded, args=(write,)))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60.0)
        assert faults == [] and min(asked) > 0
        assert memory.status().observations == TOGETHER * written[0]
        assert memory.check() == []
