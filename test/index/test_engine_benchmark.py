"""The benchmark of the engine runs to its end, whatever the number of rows, and writes every figure."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import pytest

from benchmarks import engine


def test_few_rows_without_the_peer_give_every_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "figures" / "engine.json"
    monkeypatch.setattr(sys, "argv", ["engine", "--n", "200", "--no-peer", "--json", str(place)])
    engine.main()
    found = json.loads(place.read_text())
    assert found["n"] == found["distinct"] == 200 and found["emem"] == {}
    assert set(found["ours"]) >= {*engine.KEYS, "ingest_default_per_s", "indexed_per_s"}
    assert all(math.isfinite(found["ours"][key]) for key in engine.KEYS)
    assert found["ours"]["recall_at_10"] == found["ours"]["filtered_recall_at_10"] == 1.0  # a scan at this size
    assert found["ratio"] == dict.fromkeys(engine.KEYS)
    assert "| ingest_per_s |" in capsys.readouterr().out
