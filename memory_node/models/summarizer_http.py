"""Summarizer behind an OpenAI-compatible chat endpoint: Ollama, vLLM, llama.cpp and hosted ones."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from memory_node.errors import SummarizerError, SummarizerUnreachable
from memory_node.protocols import READ_AT_ONCE, NamedThing, SummaryRow

MAX_ANEW = 10
"""Times at which a state came back that are told."""
MAX_ANSWER = 30_000
"""Characters of an answer that are read."""
_DOWN = frozenset({401, 403, 404, 408, 429, 502, 503, 504})
"""HTTP states that say nothing of what was asked: any other question would get the same."""

_SUMMARIZE = (
    "You write the memory of a robot. Summarise the observations below in at most {limit} characters of plain text:"
    " which things, how many, where, what changed and when, and whatever was unusual. State only what they say."
    " Times are those of the zone {zone}."
    " Answer with the summary alone."
)
_EXTRACT = (
    "List the physical things named in the numbered observations of a robot. Answer with a JSON list alone, one object"
    ' a thing: {"row": number of the observation, "name": short name, "type": kind of thing, "confidence": 0 to 1}.'
)
_THOUGHT = re.compile(r"<(think|thinking)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_THOUGHT_END = re.compile(r"^.*</(?:think|thinking)>", re.DOTALL | re.IGNORECASE)
_THOUGHT_OPEN = re.compile(r"<(?:think|thinking)>.*$", re.DOTALL | re.IGNORECASE)
_CONTROL = re.compile(r"<\|[^|<>]*\|>|</?s>")


class HttpSummarizer:
    """Asks `POST <url>/chat/completions`. An unusable answer raises SummarizerError; bad things of a list are skipped.

    SummarizerUnreachable, one kind of it, is raised when nobody answers there.

    Attributes:
        name: the model's name.
    """

    def __init__(
        self, url: str, model: str, key_variable: str = "", timeout: float = 30.0, time_zone: str = "UTC"
    ) -> None:
        """Nothing is asked before the first summary.

        Args:
            url: base such as http://127.0.0.1:11434/v1, or the whole address ending in /chat/completions.
            model: name the endpoint knows the model by.
            key_variable: name of the environment variable that holds the key; "": none is sent.
            timeout: s to wait for each part of an answer.
            time_zone: IANA zone that times are told to the model in.
        """
        import httpx

        base = url.rstrip("/")
        self._url = base if base.endswith("/chat/completions") else base + "/chat/completions"
        key = os.environ.get(key_variable, "") if key_variable else ""
        self._client = httpx.Client(timeout=timeout, headers={"Authorization": f"Bearer {key}"} if key else {})
        self.name = model
        self._zone_name = time_zone
        self._zone: tzinfo = timezone.utc if time_zone == "UTC" else ZoneInfo(time_zone)

    def summarize(self, rows: Sequence[SummaryRow], max_chars: int) -> str:
        """Return the model's summary, cut at a word to at most max_chars characters.

        Raises:
            SummarizerError: no answer in time, no text in it, or half a JSON object instead of one.
        """
        text = self._unpacked(self._ask(_SUMMARIZE.format(limit=max_chars, zone=self._zone_name), rows))
        text = " ".join(text.split())
        if not text:
            raise SummarizerError(f"{self._url}: an empty answer")
        if len(text) <= max_chars:
            return text
        return text[: max_chars + 1].rsplit(" ", 1)[0][:max_chars]

    def extract(self, rows: Sequence[SummaryRow]) -> list[NamedThing]:
        """Return the things that the model found in rows; objects that are incomplete or wrong are left out.

        Raises:
            SummarizerError: no answer in time, no text in it, or one that is nested without end.
        """
        found = (self._thing(item, rows) for item in _objects(self._ask(_EXTRACT, rows)))
        return [thing for thing in found if thing is not None]

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _ask(self, task: str, rows: Sequence[SummaryRow]) -> str:
        """Return the text of the answer, without thoughts and control tokens."""
        import httpx

        messages = [{"role": "system", "content": task}, {"role": "user", "content": _told(rows, self._zone)}]
        try:
            answer = self._client.post(self._url, json={"model": self.name, "messages": messages, "temperature": 0})
            answer.raise_for_status()
            content = answer.json()["choices"][0]["message"]["content"]
        except httpx.HTTPStatusError as error:
            kind = SummarizerUnreachable if error.response.status_code in _DOWN else SummarizerError
            raise kind(f"{self._url}: answered {error.response.status_code}") from error
        except httpx.ReadTimeout as error:
            # Perhaps it thinks for ever about these rows alone.
            raise SummarizerError(f"{self._url}: no answer in time") from error
        except (KeyError, IndexError, TypeError, RecursionError) as error:
            raise SummarizerError(f"{self._url}: the answer holds no message") from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise SummarizerUnreachable(f"{self._url}: {error}") from error
        except ValueError as error:
            raise SummarizerError(f"{self._url}: {error}") from error
        if not isinstance(content, str):
            raise SummarizerError(f"{self._url}: the message holds no text")
        content = content[:MAX_ANSWER]
        for noise in (_THOUGHT, _THOUGHT_END, _THOUGHT_OPEN, _CONTROL):
            content = noise.sub("", content)
        return content.strip()

    def _unpacked(self, text: str) -> str:
        """The summary itself where the model wrapped it in a JSON object."""
        text = re.sub(r"^```\w*\s*|\s*```$", "", text)
        if not text.startswith(("{", "[")):
            return text
        for item in _objects(text):
            for value in (item.get("summary"), item.get("text")):
                if isinstance(value, str):
                    return value
        raise SummarizerError(f"{self._url}: JSON without a summary, or half of it")

    def _thing(self, item: dict[str, Any], rows: Sequence[SummaryRow]) -> NamedThing | None:
        name, row, kind, confidence = (item.get(key) for key in ("name", "row", "type", "confidence"))
        if not isinstance(name, str) or not name.strip() or isinstance(row, bool) or not isinstance(row, int):
            return None
        if not 1 <= row <= len(rows):
            return None
        kind = kind.strip() if isinstance(kind, str) else ""
        return NamedThing(rows[row - 1].id, name.strip(), kind, _share(confidence))


def _share(confidence: Any) -> float:
    """A confidence as a number 0..1; 0.5 where it is none."""
    # Compared before it is converted: a whole number of 400 digits is too much for a float.
    if not isinstance(confidence, (int, float)) or not abs(confidence) < math.inf:
        return 0.5
    return float(min(1, max(0, confidence)))


def _told(rows: Sequence[SummaryRow], zone: tzinfo) -> str:
    """The first rows, as many as are sent, as numbered lines: time in zone, place (m), how often, text, times anew."""
    lines: list[str] = []
    length = 0
    for number, row in enumerate(rows, 1):
        when = _time(row.stamp, zone)
        where = "" if row.position is None else f" at ({row.position[0]:.1f}, {row.position[1]:.1f})"
        often = f" ({row.repeats} times)" if row.repeats > 1 else ""
        again = [_time(stamp, zone) for stamp in row.anew if stamp != row.stamp]
        anew = f" (again at {', '.join(again[:MAX_ANEW])})" if again else ""
        line = f"{number}. {when}{where}{often}: {row.text}{anew}"
        length += len(line) + 1
        if lines and length > READ_AT_ONCE:
            break
        lines.append(line[:READ_AT_ONCE])
    return "\n".join(lines)


def _time(stamp: int, zone: tzinfo) -> str:
    return datetime.fromtimestamp(stamp // 1_000_000_000, zone).strftime("%Y-%m-%d %H:%M")


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """Every whole JSON object in a text that may be cut, in order; of nested ones the outermost.

    Raises:
        SummarizerError: one is nested without end.
    """
    decoder = json.JSONDecoder()
    place = text.find("{")
    while place >= 0:
        try:
            item, end = decoder.raw_decode(text, place)
        except ValueError:
            end = place + 1
        except RecursionError as error:
            raise SummarizerError("an answer nested without end") from error
        else:
            if isinstance(item, dict):
                yield item
        place = text.find("{", end)
