"""Exact inner products by NumPy: path of small candidate sets, and oracle of every approximate index.

Unit vectors are held as 16-bit fixed-point numbers with one scale a vector. A component is off by at most half a step
of 1/32767 of the largest one, so a cosine is off by some 1e-6 (6.6e-6 was the most seen among 50 000 of 384
dimensions), at half the memory of float32. A scan is bound by memory, so it is no slower than one over float32.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_BLOCK = 1024  # rows turned to float32 at once: few enough for the cache, so many that a lock is seldom passed on


def quantise(vectors: NDArray[np.float32]) -> tuple[NDArray[np.int16], NDArray[np.float32]]:
    """Turn vectors (N, D) into int16 (N, D) and scales (N,), so that vectors = int16 * scale."""
    codes = np.empty(vectors.shape, dtype=np.int16)
    scales = np.empty(len(vectors), dtype=np.float32)
    for start in range(0, len(vectors), _BLOCK):
        rows = vectors[start : start + _BLOCK]
        largest = np.abs(rows).max(axis=1, initial=0.0)
        scale = scales[start : start + _BLOCK]
        scale[:] = np.where(largest > 0.0, largest, 1.0) / 32767.0
        codes[start : start + _BLOCK] = np.rint(rows / scale[:, None])
    return codes, scales


def restore(matrix: NDArray[np.int16], scales: NDArray[np.float32]) -> NDArray[np.float32]:
    """Undo quantise."""
    return matrix.astype(np.float32) * scales[:, None]


def normalise(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return float32 vectors of unit length along the last axis; a zero vector stays zero."""
    vectors = np.asarray(vectors, dtype=np.float32)
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.where(length > 0.0, length, 1.0), dtype=np.float32)


def scores(
    matrix: NDArray[np.int16], scales: NDArray[np.float32], query: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Inner products of quantised rows (N, D) with a query (D,), or with queries (Q, D) as the columns of (N, Q)."""
    queries = query[None] if query.ndim == 1 else query
    count = len(matrix)
    block = np.empty((min(_BLOCK, count), matrix.shape[1]), dtype=np.float32)
    result = np.empty((len(queries), count), dtype=np.float32)
    for start in range(0, count, _BLOCK):
        rows = matrix[start : start + _BLOCK]
        np.copyto(block[: len(rows)], rows)
        # One by one: of two matrices OpenBLAS makes the product in several threads, which gain nothing at this size and
        # afterwards wait for the next product by turning on processors that searches need.
        for row, one in zip(result, queries, strict=True):
            np.dot(block[: len(rows)], one, out=row[start : start + len(rows)])
    result *= scales
    return result[0] if query.ndim == 1 else result.T


def top(values: NDArray[np.float32], k: int) -> NDArray[np.intp]:
    """Return the indices of the k largest values, the largest first; fewer when there are fewer."""
    if k <= 0:
        return np.empty(0, dtype=np.intp)
    chosen = np.argpartition(-values, k - 1)[:k] if k < len(values) else np.arange(len(values))
    return chosen[np.argsort(-values[chosen], kind="stable")]
