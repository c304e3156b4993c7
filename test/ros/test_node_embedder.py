"""The node with an embeddings endpoint instead of a model of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.embeddings_endpoint import endpoint
from support.fakes import WordEmbedder
from support.ros_harness import node_here, peer, wait_until

EMBEDDER = WordEmbedder(dim=32, same={"stool": "chair"})


@pytest.fixture
def url() -> Iterator[str]:
    with endpoint(EMBEDDER) as address:
        yield address


def test_meaning_comes_from_the_endpoint(tmp_path: Path, url: str) -> None:
    parameters = {"embedder": {"url": url, "model": "remote-words"}}
    with node_here(tmp_path, parameters) as node, peer() as other:
        assert other.call("store_specific_memory", text="a wooden stool").success
        wait_until(lambda: other.call("get_status").status.index_state == "ready", "the endpoint is known")
        assert node.memory.wait_embedded(20.0)
        status = other.call("get_status").status
        assert (status.model, status.dimension, status.backlog) == ("remote-words", 32, 0)
        found = other.call("semantic_search", query="chair")
        assert found.success and found.matches[0].text == "a wooden stool" and found.matches[0].similarity > 0.5


def test_without_an_answer_of_the_endpoint_words_still_find(tmp_path: Path) -> None:
    parameters = {"embedder": {"url": "http://127.0.0.1:9/v1", "model": "nobody"}}
    with node_here(tmp_path, parameters), peer() as other:
        assert other.call("store_specific_memory", text="a wooden stool").success
        found = other.call("semantic_search", query="stool")
        assert found.success and [match.text for match in found.matches] == ["a wooden stool"]
