"""The README says what the code says: its tables, its calls and its snippet."""

from __future__ import annotations

import re
import subprocess
import sys
from argparse import _SubParsersAction
from pathlib import Path
from typing import Any

import pytest

from memory_node.cli.main import parser
from memory_node.graph import EdgeType

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def table(head: str) -> list[list[str]]:
    """Cells of the rows below a table's head, such as "| service | type |"."""
    rows = README.partition(f"\n{head}")[2].split("\n\n")[0].splitlines()[2:]
    assert rows, head
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]] for row in rows]


def block(language: str, holds: str) -> str:
    """The fenced block of a language that holds some text."""
    return next(found for found in re.findall(rf"```{language}\n(.*?)```", README, re.S) if holds in found)


@pytest.fixture(scope="module")
def reference() -> Any:
    """The tables of the node."""
    pytest.importorskip("rclpy", reason="rclpy is not installed")
    pytest.importorskip("robot_memory", reason="the interfaces are not built, see `make build`")
    from memory_node.ros import reference

    return reference


def told(rows: list[str]) -> dict[str, list[str]]:
    """Name -> default and text, out of the rows of the reference page."""
    cells = [[cell.strip() for cell in row.split(" | ")] for row in rows[2:]]
    return {name.lstrip("| "): [default, what] for name, default, _, what, *_ in cells}


def test_services(reference: Any) -> None:
    code = [
        [
            f"`~/{s.name}`",
            f"`{s.type.__module__.split('.')[0]}/srv/{s.type.__name__}`",
            "refused" if s.writes else "answered",
        ]
        for s in reference.SERVICES
    ]
    assert [[name, kind, idle] for name, kind, _, idle in table("| service | type |")] == code


def test_topics(reference: Any) -> None:
    assert table("| topic | type |") == [list(row) for row in reference.TOPICS]


def test_diagnostics(reference: Any) -> None:
    assert table("| status | values |") == [list(row) for row in reference.diagnostics()]


def test_parameters(reference: Any) -> None:
    code = told(reference.parameter_rows(reference.node_table().values()))
    rows = table("| parameter | default |")
    assert {name: more for name, *more in rows} == {name: code.get(name) for name, *_ in rows}


def test_settings_of_a_layer(reference: Any) -> None:
    code = told(reference.parameter_rows(reference.layer_table().values()))
    assert {name: more for name, *more in table("| setting | default |")} == code


def test_message_types(reference: Any) -> None:
    assert table("| type | what is kept |") == [list(row) for row in reference.types()]


def test_commands() -> None:
    commands = next(action for action in parser()._actions if isinstance(action, _SubParsersAction))
    code = {choice.dest: choice.help for choice in commands._choices_actions}
    assert {usage.split()[1].strip("`"): what for usage, what in table("| command | what |")} == code
    for usage, _ in table("| command | what |"):
        options = set(re.findall(r"--[a-z-]+", usage))
        command = commands.choices[usage.split()[1].strip("`")]
        assert options == {o for a in command._actions for o in a.option_strings if o not in ("-h", "--help")}


def test_launch_arguments() -> None:
    text = (ROOT / "launch" / "memory.launch.py").read_text(encoding="utf-8")
    assert [name for name, *_ in table("| launch argument |")] == [
        f"`{name}`" for name in re.findall(r'DeclareLaunchArgument\("(\w+)"', text)
    ]


def test_every_tool_has_a_call_with_fields_of_its_request(reference: Any) -> None:
    yaml = pytest.importorskip("yaml")
    types = {spec.name: spec.type for spec in reference.SERVICES}
    called = set()
    for name, kind, _, fields in re.findall(r'ros2 service call /memory/(\w+) (\S+)( "(.*)")?', README):
        called.add(name)
        assert kind.split("/")[-1] == types[name].__name__
        assert set(yaml.safe_load(fields or "{}")) <= set(types[name].Request.get_fields_and_field_types())
    assert set(types) - called == {"set_map", "get_jobs"}


def test_edges_of_the_picture() -> None:
    drawn = set(re.findall(r"-- ([A-Z_]+) -->", block("mermaid", "graph")))
    assert drawn == {edge.name for edge in EdgeType} - {"DERIVED_FROM"}


def test_links_targets_and_pinned_versions_exist() -> None:
    assert [link for link in re.findall(r"\]\(([^)#]+)\)", README) if not (ROOT / link).exists()] == []
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert [name for name in re.findall(r"`?make ([a-z]+)`?$", README, re.M) if f"\n{name}:" not in makefile] == []
    pinned = "".join(
        (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8") for name in ("engine", "model")
    )
    versions = re.findall(r"[a-z0-9-]+==[0-9.]+", README)
    assert versions and [version for version in versions if f"\n{version}\n" not in pinned] == []


def test_the_snippet_prints_what_it_says(tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers", reason="the default model is not installed")
    script = tmp_path / "snippet.py"
    script.write_text(block("python", "Memory.open"), encoding="utf-8")
    ran = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == block("text", "a red chair beside the window (")
