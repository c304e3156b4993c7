"""The embedder and the summarizer that the parameters ask for."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from memory_node.ingest.parameters import Parameters
from memory_node.models.loading import BackgroundEmbedder, http_embedder, local_embedder
from memory_node.process import settle_heap

if TYPE_CHECKING:
    from memory_node.protocols import Summarizer


def embedder(parameters: Parameters) -> BackgroundEmbedder | None:
    """Begin to load the embedding model; None when none is asked for.

    Raises:
        EmbedderError: the model is a folder that is not there.
    """
    model, url = parameters["embedder.model"], parameters["embedder.url"]
    if url:
        return http_embedder(url, model, parameters["embedder.key_variable"], parameters["embedder.timeout"])
    if not model:
        return None
    # Half of the processors: on all of them the model and the callbacks of topics would wait for each other.
    loading = local_embedder(model, threads=max(1, (os.cpu_count() or 1) // 2))
    loading.add_listener(settle_heap)
    return loading


def summarizer(parameters: Parameters) -> Summarizer | None:
    """Return the language model that words gists; None when none is asked for: gists are then extractive."""
    url = parameters["summarizer.url"]
    if not url:
        return None
    from memory_node.models.summarizer_http import HttpSummarizer

    return HttpSummarizer(
        url, parameters["summarizer.model"], parameters["summarizer.key_variable"], parameters["summarizer.timeout"],
        parameters.settings.time_zone,
    )  # fmt: skip
