"""The shape of the house: a room imports only from rooms below it, the engine knows no ROS, importing it is light."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "memory_node"
FLOORS = [
    {"ros", "cli"},
    {"memory"},
    {"questions"},
    {"rooms", "status"},
    {"tools"},
    {"retrieval"},
    {"housekeeping", "ingest"},
    {"models"},
    {"index"},
    {"storage"},
    {"graph", "errors", "protocols", "config", "process"},
]
ROS = ("rclpy", "rosidl", "ament_index_python", "tf2_ros", "robot_memory")


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def floor_of(room: str) -> int:
    return next(number for number, rooms in enumerate(FLOORS) if room in rooms)


def imports_of(path: Path) -> set[str]:
    """Names of modules and of what is taken from them; those for type checkers alone are left out."""
    found: set[str] = set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for block in ast.walk(tree):
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING":
            block.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


SOURCES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_room_imports_only_from_rooms_below_it(path: Path) -> None:
    room = room_of(path)
    for name in imports_of(path):
        parts = name.split(".")
        if parts[0] != "memory_node" or len(parts) < 2 or parts[1] in (room, "__version__"):
            continue
        below = floor_of(parts[1])
        assert below > floor_of(room) or {room, parts[1]} <= FLOORS[below], f"{path.name} imports {name}"


def test_only_the_node_knows_ros() -> None:
    for path in SOURCES:
        if room_of(path) != "ros":
            assert not {name for name in imports_of(path) if name.startswith(ROS) or name.endswith("_msgs")}, path


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("memory_node", {"numpy", "hnswlib", "rtree", "sklearn", "scipy", "torch", "httpx", "rclpy"}),
        ("memory_node.memory", {"torch", "sentence_transformers", "rclpy"}),
        ("memory_node.cli.main", {"torch", "sentence_transformers", "rclpy", "rosbags"}),
    ],
)
def test_importing_is_light(module: str, absent: set[str]) -> None:
    script = f"import sys, {module}; print(*sorted({absent!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, timeout=60)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr


def test_sql_stays_in_the_store() -> None:
    """Retrieval, tools, the facade and the adapters ask the store's functions; none builds a statement of its own."""
    for path in SOURCES:
        if room_of(path) in ("ros", "cli", "memory", "tools", "rooms"):
            assert "SELECT " not in path.read_text(encoding="utf-8"), path
