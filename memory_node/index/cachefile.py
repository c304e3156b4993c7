"""A file of named arrays that is whole or refused: temporary name, fsync, rename, and a checksum over every byte."""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAGIC = b"robot_memory cache 2\n"
_CHUNK = 1 << 20


class DamagedFile(Exception):
    """The file is not what `write` wrote; the message says in what way."""


def write(path: Path, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Replace path by a file of header (plain JSON values) and arrays; on failure the old file stays.

    Raises:
        OSError: the disk does not take it.
    """
    layout = [[name, array.dtype.str, list(array.shape)] for name, array in arrays.items()]
    head = json.dumps({"header": dict(header), "arrays": layout}).encode()
    parts = [MAGIC, struct.pack("<Q", len(head)), head]
    draft = path.with_name(path.name + ".part")
    try:
        with open(draft, "wb") as file:
            check = 0
            for data in [*(memoryview(part) for part in parts), *(_bytes_of(array) for array in arrays.values())]:
                for start in range(0, len(data), _CHUNK):
                    piece = data[start : start + _CHUNK]
                    check = zlib.crc32(piece, check)
                    file.write(piece)
            file.write(struct.pack("<I", check))
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def read(path: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return header and arrays.

    Raises:
        FileNotFoundError: there is none.
        DamagedFile: it is empty, cut, changed, or of another kind.
    """
    data = np.fromfile(path, dtype=np.uint8)
    if len(data) < len(MAGIC) + 12 or data[: len(MAGIC)].tobytes() != MAGIC:
        raise DamagedFile("is empty or of another kind")
    check = 0
    for start in range(0, len(data) - 4, _CHUNK):
        check = zlib.crc32(memoryview(data[start : min(start + _CHUNK, len(data) - 4)]), check)  # type: ignore[arg-type]
    if struct.unpack("<I", data[-4:].tobytes())[0] != check:
        raise DamagedFile("is cut or changed")
    at = len(MAGIC) + 8
    (length,) = struct.unpack("<Q", data[at - 8 : at].tobytes())
    head = json.loads(data[at : at + length].tobytes())
    at += length
    arrays = {}
    for name, kind, shape in head["arrays"]:
        size = int(np.prod(shape)) * np.dtype(kind).itemsize
        part = data[at : at + size]
        if np.dtype(kind).itemsize > 1:
            part = np.frombuffer(part.tobytes(), np.uint8)  # moved to where numbers of its size may lie
        arrays[name] = part.view(kind).reshape(shape)
        at += size
    return head["header"], arrays


def _bytes_of(array: NDArray[Any]) -> memoryview:
    return memoryview(np.ascontiguousarray(array).reshape(-1).view(np.uint8))  # type: ignore[arg-type]
