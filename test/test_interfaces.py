"""The interface files keep their promises: every line commented, responses that begin alike, and one list of files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
INTERFACES = sorted([*ROOT.glob("msg/*.msg"), *ROOT.glob("srv/*.srv")])
SERVICES = [path for path in INTERFACES if path.suffix == ".srv"]
TOOLS = {
    "SemanticSearch",
    "SpatialQuery",
    "TemporalQuery",
    "EpisodeSummary",
    "GetCurrentContext",
    "SearchGists",
    "EntityQuery",
    "Locate",
    "Recall",
    "BodyStatus",
}
FIELD = re.compile(
    r"^(?P<type>[a-zA-Z0-9_/]+(\[\d*\])?) (?P<name>[a-z][a-z0-9_]*)(?P<default> [^#]*?)? *(# (?P<comment>.+))?$"
)


def field_lines(text: str) -> list[str]:
    """Lines of an interface text that declare a field."""
    lines = [line.strip() for line in text.splitlines()]
    return [line for line in lines if line and not line.startswith("#") and line != "---"]


def declarations(path: Path) -> list[re.Match[str]]:
    """The fields of a file, parsed; a line that does not parse fails."""
    matches = [(line, FIELD.match(line)) for line in field_lines(path.read_text(encoding="utf-8"))]
    assert [line for line, match in matches if match is None] == []
    return [match for _, match in matches if match is not None]


@pytest.mark.parametrize("path", INTERFACES, ids=lambda path: path.stem)
def test_every_field_has_a_comment(path: Path) -> None:
    uncommented = [match["name"] for match in declarations(path) if not match["comment"]]
    assert uncommented == []
    assert path.read_text(encoding="utf-8").startswith("# "), "the file says first what it is for"


@pytest.mark.parametrize("path", INTERFACES, ids=lambda path: path.stem)
def test_every_number_and_list_says_its_empty_case_or_range(path: Path) -> None:
    vague = []
    for match in declarations(path):
        counted = match["type"].startswith("uint")  # a count is 0 when there is none
        bounded = re.search(r"\d|NaN|empty|radius", match["comment"] or "")
        if (match["type"].startswith(("float", "int")) or match["type"].endswith("]")) and not counted and not bounded:
            vague.append(match["name"])
    assert vague == []


@pytest.mark.parametrize("path", SERVICES, ids=lambda path: path.stem)
def test_responses_begin_alike(path: Path) -> None:
    response = path.read_text(encoding="utf-8").split("\n---\n")[1]
    begin = [line.split()[:2] for line in field_lines(response)]
    assert begin[:2] == [["bool", "success"], ["string", "message"]]
    assert (begin[2:3] == [["string", "text"]]) == (path.stem in TOOLS)


def test_all_ten_tools_have_a_service() -> None:
    assert {path.stem for path in SERVICES} >= TOOLS
    assert len(TOOLS) == 10


def test_requests_carry_their_defaults() -> None:
    defaults = {match["name"]: (match["default"] or "").strip() for match in declarations(ROOT / "srv/StoreMemory.srv")}
    assert (defaults["confidence"], defaults["importance"]) == ("1.0", "0.5")
    episode = {match["name"]: (match["default"] or "").strip() for match in declarations(ROOT / "srv/EndEpisode.srv")}
    assert episode["status"].startswith('"completed"')


def test_nothing_speaks_of_what_is_not_there_yet() -> None:
    words = re.compile(r"belief|purge|remember_|forget", re.IGNORECASE)
    assert [path.name for path in INTERFACES if words.search(path.name + path.read_text(encoding="utf-8"))] == []


def test_cmake_generates_every_file() -> None:
    listed = re.findall(r'"((?:msg|srv)/\w+\.(?:msg|srv))"', (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"))
    assert sorted(listed) == sorted(path.relative_to(ROOT).as_posix() for path in INTERFACES)
    assert listed == sorted(listed)


def test_generated_messages_have_the_defaults() -> None:
    messages = pytest.importorskip("robot_memory.srv", reason="the package is not built: run through scripts/run")
    request = messages.StoreMemory.Request()
    assert (request.confidence, request.importance, request.has_position) == (1.0, 0.5, False)
    assert messages.EndEpisode.Request().status == "completed"
    assert messages.SemanticSearch.Request().filter.any_map is False
    assert messages.Locate.Response().place.support == 0
