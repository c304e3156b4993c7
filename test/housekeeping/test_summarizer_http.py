"""F47: a language model behind a real HTTP server that answers badly in every way it can."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from kept_store import Store
from support.fakes import SECOND

from memory_node.errors import SummarizerError, SummarizerUnreachable
from memory_node.models.summarizer_http import HttpSummarizer
from memory_node.protocols import NamedThing, Summarizer, SummaryRow

ROWS = [
    SummaryRow(11, "a red chair by the window", "scene", 0, 0, (1.0, 2.0, 0.0), 3),
    SummaryRow(12, "a mug on the table", "scene", 5 * SECOND, 5 * SECOND, None),
]


class Server:
    """Answers POST with `reply(path, request)`: (status, body); remembers requests. A reply of None never comes."""

    def __init__(self) -> None:
        self.reply: Callable[[], tuple[int, bytes] | None] = lambda: (200, b"")
        self.requests: list[tuple[str, dict[str, Any], str]] = []
        self.release = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.requests.append((self.path, json.loads(body), self.headers.get("Authorization", "")))
                reply = outer.reply()
                if reply is None:
                    outer.release.wait(30)
                    return
                self.send_response(reply[0])
                self.send_header("Content-Length", str(len(reply[1])))
                self.end_headers()
                self.wfile.write(reply[1])

            def log_message(self, *_: Any) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/v1"
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self.thread.start()

    def says(self, content: Any) -> None:
        body = json.dumps({"choices": [{"message": {"role": "assistant", "content": content}}]}).encode()
        self.reply = lambda: (200, body)

    def close(self) -> None:
        self.release.set()
        self.http.shutdown()
        self.http.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    opened = Server()
    yield opened
    opened.close()


def model(server: Server, **more: Any) -> HttpSummarizer:
    return HttpSummarizer(server.url, "small", **more)


def test_it_sends_the_rows_and_the_key_and_returns_the_summary(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL_KEY", "secret")
    server.says("A red chair and a mug.")
    summarizer = model(server, key_variable="MODEL_KEY")
    assert isinstance(summarizer, Summarizer)
    assert summarizer.summarize(ROWS, 600) == "A red chair and a mug."
    ((path, request, key),) = server.requests
    assert path == "/v1/chat/completions" and key == "Bearer secret" and request["model"] == "small"
    told = request["messages"][1]["content"]
    assert told.splitlines() == [
        "1. 1970-01-01 00:00 at (1.0, 2.0) (3 times): a red chair by the window",
        "2. 1970-01-01 00:00: a mug on the table",
    ]
    assert "600" in request["messages"][0]["content"]


def test_times_are_told_in_the_zone_of_the_settings_and_when_a_state_came_back(server: Server) -> None:
    server.says("Open, closed, open.")
    hour = 3600 * SECOND
    rows = [SummaryRow(1, "door open", "scene", 0, 2 * hour, None, 2, (0, 2 * hour))]
    model(server, time_zone="Asia/Tokyo").summarize(rows, 600)
    task, told = (message["content"] for message in server.requests[0][1]["messages"])
    assert told == "1. 1970-01-01 09:00 (2 times): door open (again at 1970-01-01 11:00)"
    assert "zone Asia/Tokyo" in task


@pytest.mark.parametrize(
    ("content", "summary"),
    [
        ("<think>The user wants ... </think>\n\nA chair.", "A chair."),
        ("so far so good</think>A chair.", "A chair."),
        ("A chair.<|im_end|></s>", "A chair."),
        ('```json\n{"summary": "A chair."}\n```', "A chair."),
        ("A  chair\n\nand a\tmug.", "A chair and a mug."),
        ("word " * 500, "word word word word"),
    ],
)
def test_thoughts_control_tokens_and_wrappings_are_taken_off(server: Server, content: str, summary: str) -> None:
    server.says(content)
    assert model(server).summarize(ROWS, 20) == summary


@pytest.mark.parametrize(
    "content", ["", "   ", None, 7, "<think>I wonder", '{"summary": "A cha', '{"summary": null}', "{}"]
)
def test_a_message_without_a_summary_is_an_error(server: Server, content: Any) -> None:
    server.says(content)
    with pytest.raises(SummarizerError):
        model(server).summarize(ROWS, 600)


@pytest.mark.parametrize(
    "reply",
    [
        (500, b"oops"), (200, b""), (200, b'{"choices": [{"mess'), (200, b"{}"), (200, b'{"choices": []}'),
        (200, b'{"choices": null}'), (200, b'{"choices": [{"message": null}]}'), (200, b"\xff\xfe"), (404, b"{}"),
    ],
)  # fmt: skip
def test_an_answer_that_is_none_is_an_error(server: Server, reply: tuple[int, bytes]) -> None:
    server.reply = lambda: reply
    with pytest.raises(SummarizerError):
        model(server).summarize(ROWS, 600)


def test_an_answer_that_does_not_come_in_time_is_an_error(server: Server) -> None:
    server.reply = lambda: None
    with pytest.raises(SummarizerError, match="in time"):
        model(server, timeout=0.1).summarize(ROWS, 600)


def test_nobody_listening_is_an_error() -> None:
    with pytest.raises(SummarizerUnreachable):
        HttpSummarizer("http://127.0.0.1:9/v1", "small").summarize(ROWS, 600)


def test_things_with_null_fields_or_cut_off_are_left_out(server: Server) -> None:
    server.says(
        '<think>hm</think>[{"row": 1, "name": "red chair", "type": "chair", "confidence": 0.9},'
        ' {"row": 2, "name": null, "type": "mug"}, {"row": null, "name": "mug"}, {"row": 7, "name": "mug"}, "noise",'
        ' {"row": 2, "name": " mug ", "type": null, "confidence": null}, {"row": 2, "name": "plate", "confidence": 7},'
        ' {"row": 2, "name": "fork", "confi'
    )
    assert model(server).extract(ROWS) == [
        NamedThing(11, "red chair", "chair", 0.9), NamedThing(12, "mug", "", 0.5), NamedThing(12, "plate", "", 1.0),
    ]
    server.says("I see no things.")
    assert model(server).extract(ROWS) == []


@pytest.mark.parametrize("confidence", ["1" + "0" * 400, "-1" + "0" * 400, "1e999", "NaN", "1" + "0" * 5000])
def test_a_confidence_that_is_no_float_leaves_the_other_things(server: Server, confidence: str) -> None:
    server.says(
        f'[{{"row": 1, "name": "chair", "confidence": {confidence}}}, {{"row": 2, "name": "mug", "confidence": 0.9}}]'
    )
    found = model(server).extract(ROWS)
    assert found[-1] == NamedThing(12, "mug", "", 0.9)
    assert all(0.0 <= thing.confidence <= 1.0 for thing in found)


@pytest.mark.parametrize("content", ['{"a":' * 5000, '[[[{"x":' + "[" * 100_000, "{" * 100_000 + "}"])
def test_an_answer_nested_without_end_is_an_error_of_the_model(server: Server, content: str) -> None:
    server.says(content)
    with pytest.raises(SummarizerError):
        model(server).summarize(ROWS, 600)
    with contextlib.suppress(SummarizerError):
        assert model(server).extract(ROWS) == []
    server.reply = lambda: (200, b'{"choices": ' + b"[" * 100_000)
    with pytest.raises(SummarizerError):
        model(server).summarize(ROWS, 600)


@pytest.mark.parametrize("status", [401, 404, 429, 503])
def test_a_server_that_answers_nobody_is_told_from_one_that_cannot_answer_this(server: Server, status: int) -> None:
    server.reply = lambda: (status, b"")
    with pytest.raises(SummarizerUnreachable, match=str(status)):
        model(server).summarize(ROWS, 600)
    server.reply = lambda: (400, b"too long")
    with pytest.raises(SummarizerError) as caught:
        model(server).summarize(ROWS, 600)
    assert type(caught.value) is SummarizerError


def test_a_long_story_is_cut_before_it_is_sent(server: Server) -> None:
    server.says("Much.")
    rows = [SummaryRow(i, f"a shelf with the number {i}", "scene", 0, 0, None) for i in range(5000)]
    model(server).summarize(rows, 600)
    assert len(server.requests[0][1]["messages"][1]["content"]) < 13_000


# ---- with the jobs


def rows_of_a_chair(store: Store) -> list[int]:
    now = store.clock.ns / SECOND
    return store.add_many([(f"a red chair {i}", now + i, (0.0, 0.0, 0.0), "scene") for i in range(5)])


def test_the_extractive_gist_stands_until_the_model_answers(server: Server, tmp_path: Path) -> None:
    with Store(tmp_path / "m.db", summarizer=model(server), entities=True) as store:
        ids = rows_of_a_chair(store)
        store.clock.advance(4000)
        for bad in ('{"summary": "A cha', "", "<think>"):
            server.says(bad)
            states = {name: store.runner.run(name) for name in store.runner.jobs}
            assert "SummarizerError" in states["summaries"].error
            assert [name for name, state in states.items() if state.error] == ["summaries"]
        (gist,) = store.gists()
        assert gist.author == "extractive" and "a red chair 0" in gist.text
        assert store.members(gist.id) == ids and all(store.node(id_).text for id_ in ids)
        server.says("Five red chairs stood here.")
        store.run()
        (gist,) = store.gists()
        assert gist.author == "small" and gist.text == "Five red chairs stood here."
        assert store.one("SELECT rewrite FROM gist") == 0 and store.members(gist.id) == ids
        asked, before = len(server.requests), store.db.revision
        store.run()
        assert len(server.requests) == asked and store.db.revision == before
        store.clock.advance(1)
        assert {store.node(id_).text for id_ in ids} == {None}


def test_closing_does_not_wait_for_the_model(server: Server, tmp_path: Path) -> None:
    """F14: a model that thinks for minutes must not keep the node from stopping."""
    server.reply = lambda: None
    with Store(tmp_path / "m.db", summarizer=model(server)) as store:
        rows_of_a_chair(store)
        store.clock.advance(4000)
        store.run("gists")
        thread = threading.Thread(target=store.runner.run, args=("summaries",))
        thread.start()
        while not server.requests:
            thread.join(0.01)
        store.runner.close()
        thread.join(10)
        assert not thread.is_alive() and store.one("SELECT rewrite FROM gist") == 1
        server.release.set()
