"""Builds the package into `install/` and the test-only `vision_msgs` into `build/test_install/`.

Run by `make build`. Where the published `vision_msgs` is installed, that one is used.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TEST_INSTALL = ROOT / "build" / "test_install"


def colcon_build(package: Path, build: Path, install: Path) -> None:
    """Builds the one package in a folder and exits with colcon's code when that fails."""
    command = ["colcon", "--log-base", ROOT / "log", "build", "--symlink-install", "--base-paths", package]
    command += ["--build-base", build, "--install-base", install]
    command += ["--cmake-args", f"-DPython3_EXECUTABLE={sys.executable}", "--no-warn-unused-cli"]
    if "ROS_DISTRO" not in os.environ:
        command.append("-DUNITY_TYPESUPPORT=ON")
    code = subprocess.run(command, check=False, cwd=ROOT).returncode
    if code:
        sys.exit(code)


def main() -> None:
    """Builds what is not built yet."""
    colcon_build(ROOT, ROOT / "build", ROOT / "install")
    published = importlib.util.find_spec("vision_msgs")
    if published is None or str(TEST_INSTALL) in str(published.origin):
        colcon_build(ROOT / "test" / "support" / "vision_msgs", ROOT / "build" / "test_support", TEST_INSTALL)


if __name__ == "__main__":
    main()
