"""A robot patrols its home, its memory is asked, the truth compared: `python -m examples.home_patrol.demo`."""

from __future__ import annotations

import argparse
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import Any

import rclpy
from ament_index_python.packages import PackageNotFoundError, get_package_prefix

from examples.home_patrol import world
from examples.home_patrol.generate import SEED, generate
from examples.home_patrol.judge import judge
from examples.home_patrol.planner import Planner, Tasks
from examples.home_patrol.player import play
from examples.home_patrol.truth import load

ROOT = Path(__file__).resolve().parents[2]
PARAMETERS = ROOT / "config" / "memory.yaml"
TOPICS = ("/odom", "/detections", "/scene_description", "/battery_state")
SERVICES = ("start_episode", "end_episode", "flush", "consolidate", "get_status")
START_SECONDS, SETTLE_SECONDS, STOP_SECONDS = 40.0, 60.0, 10.0
REPEATS = 5
"""How often each question is asked for its latency."""
COLUMN = 58

_began = time.monotonic()


class DemoError(Exception):
    """The demo cannot go on; the message says why."""


def stage(text: str) -> None:
    """Print a progress line with the seconds since the start."""
    print(f"[{time.monotonic() - _began:5.1f} s] {text}", flush=True)


def find_executable() -> Path:
    """The node's executable, where the package was installed.

    Raises:
        DemoError: The package is not in the environment.
    """
    try:
        return Path(get_package_prefix("robot_memory")) / "lib" / "robot_memory" / "memory_node"
    except (PackageNotFoundError, OSError):
        raise DemoError("robot_memory is not built or not sourced; `make demo` does both") from None


@contextmanager
def memory_node(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The real executable with the shipped configuration and a database in a folder; stopped by Ctrl-C at the end.

    Raises:
        DemoError: The package is not built, or the node did not end with exit code 0 in time.
    """
    command = [str(find_executable()), "--ros-args", "--params-file", str(PARAMETERS)]
    command += ["-p", "use_sim_time:=true", "-p", f"db_path:={folder / 'memory.db'}"]
    with (folder / "memory_node.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        try:
            yield process
            process.send_signal(signal.SIGINT)
            if code := process.wait(STOP_SECONDS):
                raise DemoError(f"memory_node ended with exit code {code}")
        except subprocess.TimeoutExpired:
            raise DemoError(f"memory_node was still there {STOP_SECONDS:.0f} s after Ctrl-C") from None
        finally:
            process.kill()
            process.wait()


def bring_up(planner: Planner, process: subprocess.Popen[bytes], tools: set[str]) -> None:
    """Wait until every service is there.

    Raises:
        DemoError: The node ended, or a service is missing.
    """
    deadline = time.monotonic() + START_SECONDS
    for service in (*SERVICES, *sorted(tools)):
        while True:
            if process.poll() is not None:
                raise DemoError(f"memory_node ended with exit code {process.returncode}")
            try:
                planner.wait_for([service], timeout=1.0)
                break
            except TimeoutError as missing:
                if time.monotonic() > deadline:
                    raise DemoError(f"the node does not come up: {missing}") from None


def patrol(planner: Planner, bag: Path, rate: float) -> None:
    """Play the bag, with the planner's tasks at their times.

    Raises:
        DemoError: A task could not be opened or closed.
        TimeoutError: The node does not subscribe to a topic of the bag.
    """
    tasks = Tasks(planner, world.EPISODES)
    marks = [world.START + 60.0 * minute for minute in range(1, 6)]

    def on_time(nanoseconds: int) -> None:
        tasks.on_time(nanoseconds)
        if marks and nanoseconds >= marks[0] * 1e9:
            stage(f"    simulation time {marks.pop(0):.0f} s")

    played = play(bag, rate, topics=TOPICS, on_time=on_time, discovery_timeout=20.0)
    if faults := tasks.faults():
        raise DemoError("; ".join(faults))
    stage("sent " + ", ".join(f"{number} {topic}" for topic, number in sorted(played.sent.items())))


def wait_for_model(planner: Planner) -> None:
    """Wait until the node answers by meaning: loading the model takes a small computer's whole attention.

    Raises:
        DemoError: It still answers by words only.
    """
    deadline = time.monotonic() + SETTLE_SECONDS
    while time.monotonic() < deadline:
        answer = planner.ask("semantic_search", {"query": "ready"}).answer
        if "by words only" not in answer["message"]:
            return
        time.sleep(0.2)
    raise DemoError(f"no embedding model: {answer['message']}")


def settle(planner: Planner) -> dict[str, Any]:
    """Have everything stored, summarised and embedded; returns the memory's status.

    Raises:
        DemoError: A service refused, or texts still wait for their vectors.
    """
    for service in ("flush", "consolidate"):
        answer = planner.ask(service, {}, timeout=SETTLE_SECONDS).answer
        if not answer["success"]:
            raise DemoError(f"{service}: {answer['message']}")
    deadline = time.monotonic() + SETTLE_SECONDS
    while time.monotonic() < deadline:
        status: dict[str, Any] = planner.ask("get_status", {}).answer["status"]
        if status["backlog"] == 0 and status["index_state"] != "loading":
            return status
        time.sleep(0.2)
    raise DemoError(f"{status['backlog']} texts still wait for their vectors, index {status['index_state']}")


def side_by_side(left: str, right: str) -> Iterator[str]:
    """Lines that show two texts next to each other."""
    columns = [
        [part for line in text.splitlines() for part in textwrap.wrap(line, COLUMN) or [""]] for text in (left, right)
    ]
    for one, other in zip_longest(*columns, fillvalue=""):
        yield f"       {one:<{COLUMN}} | {other}".rstrip()


def interview(planner: Planner, questions: list[dict[str, Any]]) -> tuple[int, dict[str, float]]:
    """Ask every question and print answer and truth; returns the number of wrong answers, and milliseconds by tool."""
    wrong = 0
    times: dict[str, list[float]] = {}
    print(f"\n       {'what the memory says':<{COLUMN}} | what the world really was")
    for question in questions:
        replies = [planner.ask(question["tool"], question["arguments"]) for _ in range(REPEATS)]
        times.setdefault(question["tool"], []).extend(reply.milliseconds for reply in replies)
        answer = replies[0].answer
        faults = judge(question, answer)
        wrong += bool(faults)
        print(f"\n{'WRONG' if faults else 'right'}  {question['tool']}: {question['question']}")
        for line in side_by_side(answer.get("text") or answer["message"], question["truth"]):
            print(line)
        for fault in faults:
            print(f"       wrong because {fault}")
    return wrong, {tool: statistics.median(values) for tool, values in times.items()}


def print_figures(status: dict[str, Any], latencies: dict[str, float]) -> None:
    """Print what the memory holds and how fast it answers."""
    names = ("observations", "entities", "gists", "episodes", "vectors", "db_bytes")
    print("\nfigures: " + ", ".join(f"{status[name]} {name}" for name in names))
    for layer in status["layers"]:
        counts = {name: layer[name] for name in ("received", "stored", "folded", "dropped", "refused") if name in layer}
        print(f"  layer {layer['name']}: " + ", ".join(f"{value} {name}" for name, value in counts.items()))
    print(f"latency of a service call, median of {REPEATS} or more:")
    for tool, milliseconds in sorted(latencies.items()):
        print(f"  {tool:<20} {milliseconds:7.2f} ms")


def run(folder: Path, rate: float, seed: int) -> int:
    """The whole demo in a folder; returns the number of wrong answers.

    Raises:
        DemoError: It could not be carried out.
    """
    stage(f"generating five minutes of a robot in its home, seed {seed}")
    written = generate(folder, seed)
    truth = load(written.truth)
    questions = truth["questions"]
    with memory_node(folder) as process:
        node = rclpy.create_node("planner")
        planner = Planner(node)
        try:
            stage("starting memory_node with config/memory.yaml")
            bring_up(planner, process, {question["tool"] for question in questions})
            stage("waiting for the embedding model")
            wait_for_model(planner)
            stage(f"playing the bag at {rate:g} times its speed")
            patrol(planner, written.bag, rate)
            stage("flushing, consolidating, waiting for the vectors")
            status = settle(planner)
            stage(f"asking {len(questions)} questions")
            wrong, latencies = interview(planner, questions)
            print_figures(status, latencies)
        finally:
            planner.close()
            node.destroy_node()
        stage("stopping the node")
    stage(f"{len(questions) - wrong} of {len(questions)} answers agree with the truth")
    return wrong


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line; returns 0 only when every answer agrees with the ground truth."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=float, default=10.0, help="speed of the play (default %(default)s)")
    parser.add_argument("--seed", type=int, default=SEED, help="seed of the world's noise (default %(default)s)")
    options = parser.parse_args(arguments)
    os.environ.setdefault("ROS_DOMAIN_ID", str(random.randint(20, 100)))
    os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    rclpy.init()
    with tempfile.TemporaryDirectory(prefix="home_patrol_") as name:
        try:
            return 1 if run(Path(name), options.rate, options.seed) else 0
        except (DemoError, TimeoutError) as error:
            log = Path(name) / "memory_node.log"
            tail = log.read_text(errors="replace").splitlines()[-20:] if log.exists() else []
            print("\n".join([f"the demo failed: {error}", *tail]), file=sys.stderr)
            return 1
        finally:
            rclpy.try_shutdown()


if __name__ == "__main__":
    raise SystemExit(main())
