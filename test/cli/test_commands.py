"""The memory command on the sample world, as a person would use it."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from examples.home_patrol.generate import main as generate
from memory_node.cli import commands
from memory_node.cli.main import main
from memory_node.memory import Memory

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world")
    generate(["--out", str(folder), "--seed", "7"])
    return folder


@pytest.fixture(scope="module")
def db(world: Path) -> Path:
    """The recording, remembered without a model."""
    config = ROOT / "config" / "memory.yaml"
    path = world / "robot.db"
    (bag,) = [folder for folder in world.iterdir() if (folder / "metadata.yaml").exists()]
    assert main(["replay", str(bag), "--db", str(path), "--config", str(config), "--no-model"]) == 0
    return path


def test_replay_counts_what_the_bag_holds_and_stores_it(db: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(db)]) == 0
    status = json.loads(capsys.readouterr().out)
    truth = json.loads(next(db.parent.glob("**/ground_truth.json")).read_text())
    assert status["observations"] > 300 and status["frame_id"] == "map"
    assert len(truth["things"]) <= status["entities"] <= len(truth["things"]) + 3


def test_query_answers_with_the_text_of_the_tool(db: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["query", str(db), "entity_query", '{"name": "chair"}', "--no-model"]) == 0
    assert capsys.readouterr().out.startswith('2 things named "chair"')


def test_inspect_shows_one_node_with_its_edges(db: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["query", str(db), "entity_query", '{"name": "fridge"}', "--no-model"]) == 0
    id = capsys.readouterr().out.split("#")[1].split()[0]
    assert main(["inspect", str(db), id]) == 0
    node = json.loads(capsys.readouterr().out)
    assert (node["kind"], node["text"]) == ("entity", "fridge")
    assert {edge["type"] for edge in node["edges"]} >= {"OBSERVED_IN"}


def test_export_writes_every_node_once(db: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "all.jsonl"
    assert main(["export", str(db), "--to", str(out)]) == 0
    ids = [json.loads(line)["id"] for line in out.read_text().splitlines()]
    conn = sqlite3.connect(db)
    assert ids == [row[0] for row in conn.execute("SELECT id FROM node ORDER BY id")]
    conn.close()


def test_check_and_backup(db: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(db)]) == 0
    assert main(["backup", str(db), str(tmp_path / "copy.db")]) == 0
    assert main(["check", str(tmp_path / "copy.db")]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "ok"


def test_check_finds_missing_postings_beside_a_writer_and_damaged_pages(
    db: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "postings.db"
    shutil.copy(db, path)
    with closing(sqlite3.connect(path)) as conn, conn:
        conn.execute("DELETE FROM text_fts_data WHERE id > 10")
    with Memory.open(path):
        assert main(["check", str(path)]) == 1
    assert "the word index does not fit the texts" in capsys.readouterr().out
    path = tmp_path / "pages.db"
    data = bytearray(db.read_bytes())
    middle = len(data) // 2 // 4096 * 4096
    data[middle : middle + 8192] = random.Random(1).randbytes(8192)
    path.write_bytes(data)
    assert main(["check", str(path)]) == 1
    told = capsys.readouterr()
    assert told.out and "ok" not in told.out.splitlines() and told.err == ""


def test_tools_prints_the_definitions_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tools", "--format", "openai", "--only", "locate,recall"]) == 0
    assert [tool["function"]["name"] for tool in json.loads(capsys.readouterr().out)] == ["locate", "recall"]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["query", "DB", "no_such_tool", "{}", "--no-model"], "no_such_tool"),
        (["query", "DB", "locate", "{", "--no-model"], "arguments"),
        (["query", "DB", "recall", '{"query": "cup", "limit": -3}', "--no-model"], "limit: got -3"),
        (["inspect", "DB", "999999"], "id"),
        (["check", "missing.db"], "missing.db"),
        (["replay", "no_bag", "--db", "x.db", "--config", "no.yaml"], "no.yaml"),
    ],
)
def test_what_cannot_be_done_is_one_line_that_names_it(
    arguments: list[str], named: str, db: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    code = main([str(db) if argument == "DB" else argument for argument in arguments])
    told = capsys.readouterr()
    assert named in told.err
    assert (code, told.err.count("\n"), told.out) == (1, 1, "")


def test_replay_without_rosbags_says_what_is_missing(
    world: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "rosbags.highlevel", None)
    config = ROOT / "config" / "memory.yaml"
    assert main(["replay", str(world), "--db", str(tmp_path / "robot.db"), "--config", str(config), "--no-model"]) == 1
    told = 'memory replay: rosbags, which reads recordings, is not installed: pip install ".[replay]"\n'
    assert capsys.readouterr().err == told


@pytest.mark.parametrize("name", ["no_such_tool", "locate"])
def test_a_query_that_cannot_be_answered_loads_no_model(
    db: Path, name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "local_embedder", pytest.fail)
    path = db if name == "no_such_tool" else db.with_name("missing.db")
    assert main(["query", str(path), name]) == 1
    told = f"no tool {name!r}" if path == db else str(path)
    assert told in capsys.readouterr().err
