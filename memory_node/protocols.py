"""The replaceable parts of the memory: clock, embedder, summarizer, frames."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


READ_AT_ONCE = 12_000
"""Characters of rows, with what is told of them, that a summarizer is sure to read at once."""


@runtime_checkable
class Clock(Protocol):
    """The time that rows are stamped and aged with (ROS time in the node)."""

    def now_ns(self) -> int:
        """Current time, integer nanoseconds."""
        ...


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors of meaning.

    Attributes:
        name: identifies the model; vectors of different names are never ranked together.
        dim: length of each vector.
    """

    name: str
    dim: int

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        """Return an array of shape (len(texts), dim), one row a text. May raise; called by one thread at a time."""
        ...


def embed_within(embedder: Embedder, texts: list[str], timeout: float) -> NDArray[np.float32]:
    """Embed for at most timeout s where the embedder can be left, else for as long as it takes.

    One that computes elsewhere can: it has a method of this name, which takes the same texts and timeout, raises
    EmbedderError in time whatever becomes of its call, and may be called while another call hangs.
    """
    leave: Callable[[list[str], float], NDArray[np.float32]] | None = getattr(embedder, "embed_within", None)
    return embedder.embed(texts) if leave is None else leave(texts, timeout)


@dataclass(frozen=True)
class SummaryRow:
    """One observation as a summarizer sees it: text, layer, stamp (ns), position (m) or None, repeats.

    Attributes:
        anew: stamps (ns) at which it was said after its opposite ("door open" after "door closed").
    """

    id: int
    text: str
    layer: str
    stamp: int
    last_stamp: int
    position: tuple[float, float, float] | None
    repeats: int = 1
    anew: tuple[int, ...] = ()


@dataclass(frozen=True)
class NamedThing:
    """A thing that a text names: the observation that named it, its name and type, confidence 0..1."""

    observation_id: int
    name: str
    entity_type: str = ""
    confidence: float = 0.5


@runtime_checkable
class Summarizer(Protocol):
    """Turns many observations into a few sentences, and may find named things in them."""

    name: str

    def summarize(self, rows: Sequence[SummaryRow], max_chars: int) -> str:
        """Return at most max_chars characters; raise SummarizerError when there is nothing usable."""
        ...

    def extract(self, rows: Sequence[SummaryRow]) -> list[NamedThing]:
        """Return the things that the rows name, each with the row that named it; [] when it can't tell."""
        ...
