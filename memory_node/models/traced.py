"""A sentence-transformers model as one call of torch, so that it does not have to win the interpreter back each time.

A forward pass is some two hundred operations, and Python's lock is given up and asked for again at each of them. Beside
threads that take messages in, a question of 10 ms took 25 that way. Traced, the whole pass is one operation.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Encode = Callable[[list[str]], NDArray[np.float32]]

log = logging.getLogger(__name__)

CLOSE = 1e-5
"""The most by which a number of a traced vector may differ."""
_EXAMPLE = ["a red chair stands in the kitchen", "two"]
_TRIALS = (["a"], ["what was seen near the door?"] * 5, ["a long sentence " * 150, "", "ein Stuhl, 椅子"])
"""Other lengths and numbers of texts than the example's: what depends on them must not have been traced as fixed."""


def encode(model: Any, texts: list[str]) -> NDArray[np.float32]:
    """Return unit vectors (N, D) as sentence-transformers computes them."""
    vectors: NDArray[np.float32] = model.encode(
        texts, batch_size=len(texts), normalize_embeddings=True, convert_to_numpy=True, show_progress_bar=False
    )
    return vectors


def traced(model: Any) -> Encode | None:
    """Return a function that does what `encode` does with a model, None for one that cannot be traced."""
    try:
        with _quietly():
            found = _trace(model)
            differ = [abs(found(texts) - encode(model, texts)).max() for texts in _TRIALS]
    except Exception as error:  # whatever a model may do that cannot be traced
        log.info("the model is called operation by operation: %s", str(error).split("\n")[0][:200])
        return None
    if max(differ) > CLOSE:
        log.info("the model is called operation by operation: traced it gives other vectors")
        return None
    return found


@contextmanager
def _quietly() -> Iterator[None]:
    """Without the warnings of tracing, which looks at all that a model has; what they warn of is tried."""
    loggers = [logging.getLogger(name) for name in ("sentence_transformers", "transformers")]
    levels = [logger.level for logger in loggers]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            for logger in loggers:
                logger.setLevel(logging.ERROR)
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)


def _trace(model: Any) -> Encode:
    import torch

    def features(texts: list[str]) -> dict[str, Any]:
        return {
            name: value.to(model.device)
            for name, value in model.preprocess(texts).items()
            if isinstance(value, torch.Tensor)
        }

    example = features(_EXAMPLE)

    class Whole(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *tensors: Any) -> Any:
            vectors = self.model(dict(zip(example, tensors, strict=True)))["sentence_embedding"]
            return torch.nn.functional.normalize(vectors, p=2, dim=1)

    with torch.no_grad():
        whole = torch.jit.trace(Whole().eval(), tuple(example.values()), check_trace=False, strict=False)
        whole = torch.jit.freeze(whole)

    def embed(texts: list[str]) -> NDArray[np.float32]:
        with torch.no_grad():
            vectors: NDArray[np.float32] = whole(*features(texts).values()).cpu().numpy()
        return vectors

    return embed
