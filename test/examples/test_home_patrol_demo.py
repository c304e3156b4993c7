"""The demo as a process: it fails, with the reason, when the node does not start or does not know the truth."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.domains import next_domain

pytest.importorskip("rosbags", reason="rosbags reads the bag and is not installed")
pytest.importorskip("rclpy", reason="ROS is neither installed nor sourced")
pytest.importorskip("robot_memory.srv", reason="the interfaces are not built; `make build` builds them")

ROOT = Path(__file__).resolve().parents[2]


def run_demo(prefix: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the demo with the package found in a prefix."""
    environment = dict(os.environ, ROS_DOMAIN_ID=str(next_domain()))
    environment["AMENT_PREFIX_PATH"] = f"{prefix}{os.pathsep}{environment.get('AMENT_PREFIX_PATH', '')}"
    command = [sys.executable, "-m", "examples.home_patrol.demo", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=100, check=False)


def install(prefix: Path, script: str) -> Path:
    """A prefix with a package `robot_memory` whose executable is a shell script."""
    marker = prefix / "share" / "ament_index" / "resource_index" / "packages" / "robot_memory"
    executable = prefix / "lib" / "robot_memory" / "memory_node"
    for folder in (marker.parent, executable.parent):
        folder.mkdir(parents=True)
    marker.touch()
    executable.write_text(f"#!/bin/sh\n{script}\n")
    executable.chmod(0o755)
    return prefix


@pytest.mark.process
def test_a_node_that_ends_at_once_fails_the_demo_with_its_log(tmp_path: Path) -> None:
    ended = run_demo(install(tmp_path, "echo the disk is on fire\nexit 3"))
    assert ended.returncode == 1
    assert "the demo failed: memory_node ended with exit code 3" in ended.stderr
    assert "the disk is on fire" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.process
def test_a_memory_that_remembers_nothing_fails_the_demo(tmp_path: Path) -> None:
    liar = Path(__file__).with_name("liar_node.py")
    ended = run_demo(install(tmp_path, f'exec "{sys.executable}" "{liar}"'), "--rate", "60")
    assert ended.returncode == 1, ended.stderr
    assert "1 of 17 answers agree with the truth" in ended.stdout
    assert ended.stdout.count("WRONG") == 16
    assert ended.stdout.count("wrong because") >= 16
    assert "right  locate: Where is the submarine?" in ended.stdout
    assert "Traceback" not in ended.stdout + ended.stderr
