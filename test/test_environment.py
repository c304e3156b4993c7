"""The environment of the checkout: which Python it is made with, and that it is made anew for another."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
STAMP = ROOT / ".venv" / "robot_memory.stamp"


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a command in the checkout."""
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_the_python_that_is_found_can_carry_the_build() -> None:
    found = run("scripts/find_python")
    assert found.returncode == 0 and found.stdout.strip() in ("/usr/bin/python3", "python3")
    assert run(found.stdout.strip(), "scripts/setup_env.py", "--check").returncode == 0


def test_a_python_that_is_too_old_is_refused_in_one_line() -> None:
    # The script reads the version when it is asked for; nothing else of it is touched.
    old = "import runpy, sys; sys.version_info = (3, 9, 0); sys.argv.append('--check')"
    refused = run(sys.executable, "-c", f"{old}; runpy.run_path('scripts/setup_env.py', run_name='__main__')")
    assert refused.returncode == 1
    assert "name one of 3.11 to 3.13" in refused.stderr and len(refused.stderr.splitlines()) == 1


def test_the_environment_is_of_the_python_that_its_stamp_names() -> None:
    if not STAMP.is_file() or Path(sys.prefix).resolve() != (ROOT / ".venv").resolve():
        pytest.skip("these tests do not run in the checkout's own .venv")
    made_with = STAMP.read_text(encoding="utf-8").splitlines()[0]
    assert made_with.endswith(f"{sys.base_prefix} {' '.join(sys.version.split())}")
