"""Makes `.venv` from the pinned requirements; does nothing when it is already so.

Run with the Python that `.venv` is to have; with `--check` it only fails where that cannot carry the build. Where a ROS
is sourced (`ROS_DISTRO` is set) the environment sees its packages and no ROS wheel is installed; elsewhere ROS comes
from the wheels of `requirements/ros.txt`.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "robot_memory.stamp"
# The exported CMake files of the ROS wheels name the include folders of the machine that built them.
BUILD_MACHINE_INCLUDES = {
    "include": re.compile(r"/opt/python/[^/;\"]+/include/python3\.\d+"),
    "numpy": re.compile(r"/opt/python/[^;\"]+/numpy/(?:_core|core)/include"),
}


def requirement_files(sourced: bool) -> list[Path]:
    """The files to install, in the order in which each builds on those before it."""
    names = ["engine", "model", "dev"] if sourced else ["engine", "model", "ros", "dev"]
    return [ROOT / "requirements" / f"{name}.txt" for name in names]


def stamp_text(sourced: bool) -> str:
    """First line: where ROS comes from, and the Python. Second line: hash of all that decides what `.venv` holds."""
    digest = hashlib.sha256()
    for path in [ROOT / "requirements" / "build.txt", *requirement_files(sourced), Path(__file__)]:
        digest.update(path.read_bytes())
    python = f"{sys.base_prefix} {' '.join(sys.version.split())}"
    return f"{'sourced' if sourced else 'wheels'}, {python}\n{digest.hexdigest()}\n"


def check_machine(sourced: bool) -> None:
    """Exits with one clear line when this Python cannot carry the build."""
    lowest, highest = (3, 10) if sourced else (3, 11), (3, 99) if sourced else (3, 13)
    if not lowest <= sys.version_info[:2] <= highest:
        sys.exit(f"Python {sys.version.split()[0]} has no ROS wheels; name one of 3.11 to 3.13: make PYTHON=python3.12")
    if not (Path(sysconfig.get_path("include")) / "Python.h").is_file():
        sys.exit("the headers of Python are missing (Debian and Ubuntu: apt install python3-dev)")
    if importlib.util.find_spec("ensurepip") is None:
        sys.exit("Python lacks ensurepip, with which pip comes (Debian and Ubuntu: apt install python3-venv)")


def pip_install(*arguments: str | Path) -> None:
    """Installs into `.venv` and exits with pip's code when that fails."""
    options = ["--quiet", "--disable-pip-version-check"]
    command = [PYTHON, "-m", "pip", "install", *options, *arguments]
    code = subprocess.run(command, check=False).returncode
    if code:
        sys.exit(code)


def rewrite_includes() -> None:
    """Points the CMake files of the ROS wheels to the headers of this Python and this numpy."""
    query = "import numpy, sysconfig; print(sysconfig.get_path('include')); print(numpy.get_include())"
    output = subprocess.run([PYTHON, "-c", query], check=True, capture_output=True, text=True).stdout
    include, numpy_include = output.splitlines()
    for path in (VENV / "share").glob("*/cmake/*.cmake"):
        text = path.read_text(encoding="utf-8")
        fixed = BUILD_MACHINE_INCLUDES["numpy"].sub(numpy_include, text)
        fixed = BUILD_MACHINE_INCLUDES["include"].sub(include, fixed)
        if fixed != text:
            path.write_text(fixed, encoding="utf-8")


def main() -> None:
    """Creates or completes `.venv`."""
    sourced = "ROS_DISTRO" in os.environ
    check_machine(sourced)
    if sys.argv[1:] == ["--check"]:
        return
    wanted = stamp_text(sourced)
    found = STAMP.read_text(encoding="utf-8") if STAMP.is_file() else ""
    if found == wanted:
        return
    print(
        f"setting up .venv with Python {sys.version.split()[0]}, ROS {'sourced' if sourced else 'wheels'}", flush=True
    )
    is_other = bool(found) and found.splitlines()[0] != wanted.splitlines()[0]
    if is_other or not PYTHON.exists():
        venv.create(VENV, clear=True, with_pip=True, system_site_packages=sourced)
    # hnswlib comes as source; its build tools are pinned too, so it is built in .venv itself.
    pip_install("-r", ROOT / "requirements" / "build.txt")
    files = [argument for path in requirement_files(sourced) for argument in ("-r", path)]
    pip_install("--no-build-isolation", *files)
    if not sourced:
        rewrite_includes()
    STAMP.write_text(wanted, encoding="utf-8")


if __name__ == "__main__":
    main()
