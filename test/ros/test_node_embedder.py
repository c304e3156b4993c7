"""The node with an embeddings endpoint instead of a model of its own."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from support.embeddings_endpoint import endpoint
from support.fakes import WordEmbedder
from support.ros_harness import node_here, peer, wait_until

from memory_node.ingest import turns

EMBEDDER = WordEmbedder(dim=32, same={"stool": "chair"})


class HangingEmbedder(WordEmbedder):
    """Once `stuck` is set it does not come back from texts of stools until `ready` is."""

    def __init__(self) -> None:
        super().__init__(dim=32, name="remote-words", same={"stool": "chair"})
        self.stuck, self.ready = threading.Event(), threading.Event()

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        found = super().embed(texts)
        if self.stuck.is_set() and any("stool" in text for text in texts):
            assert self.ready.wait(120.0)
        return found


class EndingEmbedder(WordEmbedder):
    """Ends the program at a question, as a library may that is called as one."""

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        raise SystemExit(f"no {texts}")


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


def test_a_question_whose_own_call_hangs_is_answered_by_words_and_holds_up_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "QUESTION_PATIENCE", 1.0)
    embedder = HangingEmbedder()
    with endpoint(embedder) as address:
        parameters = {"embedder": {"url": address, "model": embedder.name, "timeout": 120.0}}
        with node_here(tmp_path, parameters) as node, peer() as other:
            assert other.call("store_specific_memory", text="a wooden stool").success
            wait_until(lambda: other.call("get_status").status.index_state == "ready", "it has its vector")
            embedder.calls.clear()
            embedder.stuck.set()
            for service, question in (("recall", "where is the wooden stool"), ("semantic_search", "wooden stools")):
                found = other.call(service, query=question)
                assert (found.message, [match.text for match in found.matches]) == ("by words only", ["a wooden stool"])
            assert len(embedder.calls) <= 2, "all that one question asks shares its patience"
            assert other.call("semantic_search", query="chair").matches[0].similarity > 0.5, "later ones have meaning"
            assert other.call("store_specific_memory", text="an open door").success
            assert node.memory.wait_embedded(20.0), "and so has what comes later"
        embedder.ready.set()


def test_f11_an_embedder_that_ends_the_program_leaves_the_answer_to_words(tmp_path: Path) -> None:
    with node_here(tmp_path, {"num_threads": 6}, embedder=EndingEmbedder(dim=32)), peer() as other:
        assert other.call("store_specific_memory", text="a wooden stool").success
        found = other.call("semantic_search", query="stool")
        assert (found.message, [match.text for match in found.matches]) == ("by words only", ["a wooden stool"])


def test_f11_a_question_that_ends_the_program_gets_a_reason_and_the_next_one_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ends(*_: object) -> None:
        raise SystemExit("as a library may that is called as a program")

    with node_here(tmp_path, {"num_threads": 6}) as node, peer() as other:
        monkeypatch.setattr(node.memory, "semantic_search", ends)
        for times in range(10):  # more often than there are threads
            answer = other.call("semantic_search", query=f"stool {times}")
            assert (answer.success, answer.message) == (False, "internal error, see the log: SystemExit")
        assert other.call("temporal_query").success
