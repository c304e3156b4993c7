"""The HTTP embedder against a real server on this machine."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest

from memory_node.errors import EmbedderError
from memory_node.models.http import MOST_LEFT, HttpEmbedder
from memory_node.models.loading import http_embedder

Reply = Callable[[dict[str, Any]], tuple[int, bytes]]


class Server(ThreadingHTTPServer):
    """Answers POST with `reply(request)` and keeps the requests: path, headers, body."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.reply: Reply = vectors
        self.requests: list[tuple[str, dict[str, str], dict[str, Any]]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append((self.path, dict(self.headers), body))
        status, answer = self.server.reply(body)
        self.send_response(status)
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *args: object) -> None:
        """Nothing on the terminal."""


def vectors(request: dict[str, Any]) -> tuple[int, bytes]:
    """Vectors of three numbers, in turned order, as the index says."""
    rows = [
        {"index": i, "embedding": [3.0 * len(text), 4.0 * len(text), 0.0]} for i, text in enumerate(request["input"])
    ]
    return 200, json.dumps({"data": rows[::-1]}).encode()


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def test_vectors_come_at_unit_length_in_the_order_of_the_texts(server: Server) -> None:
    server.reply = lambda request: (
        200,
        json.dumps(
            {"data": [{"index": i, "embedding": [i + 1.0, 0.0]} for i in range(len(request["input"]))][::-1]}
        ).encode(),
    )
    embedder = HttpEmbedder(server.url, "nomic")
    assert (embedder.name, embedder.dim) == ("nomic", 2)
    np.testing.assert_allclose(embedder.embed(["a", "b", "c"]), [[1.0, 0.0]] * 3)
    assert embedder.embed([]).shape == (0, 2)
    assert server.requests[-1][0] == "/v1/embeddings"
    assert server.requests[-1][2] == {"model": "nomic", "input": ["a", "b", "c"]}
    embedder.close()


def test_the_key_comes_from_the_environment(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMBEDDING_KEY", "secret")
    HttpEmbedder(server.url + "/embeddings", "m", key_variable="EMBEDDING_KEY").close()
    assert server.requests[0][0] == "/v1/embeddings"
    assert server.requests[0][1]["Authorization"] == "Bearer secret"


@pytest.mark.parametrize(
    ("reply", "match"),
    [
        ((500, b"down"), "answered 500"),
        ((404, b"{}"), "answered 404"),
        ((200, b"<html>"), "embeddings: "),
        ((200, b'{"data": []}'), "no usable vector"),
        ((200, b'{"data": null}'), "no vectors"),
        ((200, b"[1, 2]"), "no vectors"),
        ((200, b'{"data": [{"index": 0, "embedding": ["x"]}]}'), "no vectors"),
        ((200, b'{"data": [{"index": 0, "embedding": [NaN, 1]}]}'), "no usable vector"),
    ],
)
def test_an_answer_without_vectors_is_an_embedder_error(server: Server, reply: tuple[int, bytes], match: str) -> None:
    server.reply = lambda request: reply
    with pytest.raises(EmbedderError, match=match):
        HttpEmbedder(server.url, "m")


def test_another_dimension_later_is_refused(server: Server) -> None:
    embedder = HttpEmbedder(server.url, "m")
    server.reply = lambda request: (200, b'{"data": [{"index": 0, "embedding": [1, 2]}]}')
    with pytest.raises(EmbedderError, match="2 numbers came, 3 were expected"):
        embedder.embed(["a"])
    embedder.close()


def test_a_server_that_does_not_answer_is_given_up_in_time(server: Server) -> None:
    release = threading.Event()
    server.reply = lambda request: (release.wait(20.0), b"{}")  # type: ignore[return-value]
    with pytest.raises(EmbedderError, match="no answer in time"):
        HttpEmbedder(server.url, "m", timeout=0.2)
    release.set()


def test_a_request_that_hangs_is_left_and_holds_up_no_other(server: Server) -> None:
    embedder, release = HttpEmbedder(server.url, "m", timeout=60.0), threading.Event()

    def reply(request: dict[str, Any]) -> tuple[int, bytes]:
        if request["input"] == ["hang"]:
            assert release.wait(60.0)
        return vectors(request)

    server.reply = reply
    try:
        for _ in range(MOST_LEFT):
            np.testing.assert_allclose(embedder.embed_within(["go"], 30.0), [[0.6, 0.8, 0.0]], rtol=1e-6)
            with pytest.raises(EmbedderError, match="no answer in time"):
                embedder.embed_within(["hang"], 0.1)
        before = len(server.requests)
        with pytest.raises(EmbedderError, match=f"{MOST_LEFT} requests are without an answer"):
            embedder.embed_within(["go"], 0.1)
        assert len(server.requests) == before and embedder.embed(["go"]).shape == (1, 3)
    finally:
        release.set()
    assert embedder.embed_within(["go"], 30.0).shape == (1, 3), "they have ended"
    embedder.close()


def test_an_error_of_a_request_that_may_be_left_is_told(server: Server) -> None:
    embedder = HttpEmbedder(server.url, "m")
    server.reply = lambda request: (500, b"down")
    for _ in range(MOST_LEFT + 1):
        with pytest.raises(EmbedderError, match="answered 500"):
            embedder.embed_within(["a"], 30.0)
    before = len(server.requests)
    with pytest.raises(EmbedderError, match="no answer in time"):
        embedder.embed_within(["a"], 0.0)
    assert len(server.requests) == before
    embedder.close()


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/v1", "http://", "no address", "ftp://127.0.0.1/v1"])
def test_an_address_where_nobody_listens(url: str) -> None:
    with pytest.raises(EmbedderError, match="embeddings: "):
        HttpEmbedder(url, "m", timeout=1.0)


def test_loading_goes_on_until_the_endpoint_is_there() -> None:
    background = http_embedder("http://127.0.0.1:9/v1", "m", timeout=1.0)
    assert not background.wait(10.0)
    assert background.state == "loading"
    with pytest.raises(EmbedderError, match="model m: "):
        background.embed(["a"])
    started = time.monotonic()
    background.close()
    assert background.state == "closed"
    assert time.monotonic() - started < 5.0
