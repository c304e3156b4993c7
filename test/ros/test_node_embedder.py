"""The node with an embeddings endpoint instead of a model of its own."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from support.fakes import WordEmbedder
from support.ros_harness import node_here, peer, wait_until

EMBEDDER = WordEmbedder(dim=32, same={"stool": "chair"})


class Endpoint(BaseHTTPRequestHandler):
    """Answers like an OpenAI-compatible endpoint."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        texts = asked["input"] if isinstance(asked["input"], list) else [asked["input"]]
        data = [{"index": i, "embedding": [float(v) for v in row]} for i, row in enumerate(EMBEDDER.embed(texts))]
        body = json.dumps({"data": data, "model": asked["model"]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()


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
