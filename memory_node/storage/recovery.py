"""What happens before a database is used and when it cannot be: folders, damaged files, read-only places."""

from __future__ import annotations

import glob
import logging
import os
import sqlite3
from contextlib import closing
from datetime import datetime, timezone
from pathlib import Path

from memory_node.errors import CorruptDatabaseError, StorageError
from memory_node.storage.connections import connect_reader, connect_writer
from memory_node.storage.migrations import migrate, migrations, version_of

logger = logging.getLogger(__name__)

_MAGIC = b"SQLite format 3\0"
_FORMATS = slice(18, 20)  # of the header: versions needed to write and to read the file

QUICK_CHECK_BYTES = 64 * 1024 * 1024
"""Files up to this size are checked page by page when they are opened; larger ones by `memory check`."""


def writable(path: str | Path) -> Path:
    """Return path absolute, with `~` expanded and links followed, so that it has one lock; its folder is created.

    Raises:
        StorageError: naming the folder or file that cannot be written.
    """
    place = _real(path)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"{place.parent}: cannot be created ({error.strerror})") from error
    if place.is_dir():
        raise StorageError(f"{place}: is a folder, not a database file")
    if not os.access(place.parent, os.W_OK | os.X_OK):
        raise StorageError(f"{place.parent}: folder is not writable; open read-only, or choose another db_path")
    if place.exists() and not os.access(place, os.R_OK | os.W_OK):
        raise StorageError(f"{place}: file is not writable; open read-only, or choose another db_path")
    return place


def ready_to_write(place: Path, durability: str, on_corrupt: str) -> str:
    """Check and migrate the file; a damaged one is set aside. The caller holds the write lock.

    Returns why the memory begins empty where a file was there, else "".

    Raises:
        CorruptDatabaseError: SQLite refuses the file and on_corrupt is "stop"; or it was set aside before and nothing
            took its place.
        StorageError: it is locked, full, another program's, or of a newer schema.
    """
    if on_corrupt == "stop":
        _refuse_what_is_set_aside(place)
    emptied = place.exists() and not _bytes(place)
    try:
        _check_and_migrate(place, durability)
    except (sqlite3.Error, UnicodeDecodeError) as error:
        if not _is_corrupt(error):
            raise StorageError(f"{place}: {error}") from error
        aside = set_aside(place)
        message = f"{place}: SQLite refuses this file ({_reason(error)}); it was set aside as {aside}"
        if on_corrupt == "stop":
            raise CorruptDatabaseError(message) from error
        _check_and_migrate(place, durability)
        note = f"{message}; the memory began empty"
    except StorageError as error:
        raise StorageError(f"{place}: {error}") from error
    else:
        note = f"{place}: was a file of 0 bytes; the memory began empty" if emptied else ""
    if note:
        logger.warning("%s", note)
    return note


def ready_to_read(path: str | Path) -> tuple[Path, bool]:
    """Return the absolute path of an existing database and whether it must be opened as immutable.

    Raises:
        CorruptDatabaseError: SQLite refuses the file, which stays where it is.
        StorageError: it does not exist, cannot be read, or its schema is not the present one.
    """
    place = _real(path)
    if not place.is_file():
        raise StorageError(f"{place}: no such database")
    try:
        try:
            _probe(place, immutable=False)
            return place, False
        except sqlite3.OperationalError as error:
            if _is_corrupt(error) or _busy(error):
                raise
            # The folder cannot hold -shm, so nobody can be writing: the file alone is read.
            _probe(place, immutable=True)
            if _bytes(place.with_name(place.name + "-wal")):
                logger.warning("%s: its log cannot be read in this folder; the newest rows are missing", place)
            return place, True
    except (sqlite3.Error, UnicodeDecodeError) as error:
        kind = CorruptDatabaseError if _is_corrupt(error) else StorageError
        raise kind(f"{place}: {_reason(error)}") from error


def _real(path: str | Path) -> Path:
    try:
        place = Path(path).expanduser().resolve()
        place.is_dir()
        return place
    except (OSError, RuntimeError, ValueError) as error:  # links in a circle, no home, a name too long or of no file
        raise StorageError(f"{path}: leads nowhere ({error})") from error


def set_aside(place: Path) -> Path:
    """Rename the file with its -wal and -shm to `<name>.corrupt-<UTC time>` and return the new path."""
    stamp = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%S.%fZ")
    aside = place.with_name(f"{place.name}.corrupt-{stamp}")
    for suffix in ("", "-wal", "-shm"):
        part = place.with_name(place.name + suffix)
        if part.exists():
            part.rename(aside.with_name(aside.name + suffix))
    return aside


def sync(path: Path) -> None:
    """Make a file, or the names in a folder, durable."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _refuse_what_is_set_aside(place: Path) -> None:
    """Without this the start after the one that stopped would go on with an empty memory, as if it had been asked."""
    if place.exists():
        return
    aside = sorted(path for path in place.parent.glob(f"{glob.escape(place.name)}.corrupt-*Z") if path.is_file())
    if aside:
        raise CorruptDatabaseError(
            f"{place}: is missing since it was damaged and set aside as {aside[-1]}; put a backup in its place,"
            f" or move {aside[-1].name} to another folder or set on_corrupt to fresh to begin with an empty memory"
        )


def _check_and_migrate(place: Path, durability: str) -> None:
    size = _bytes(place)
    _check_header(place, size)
    with closing(connect_writer(place, durability)) as conn:
        if size:
            version_of(conn, migrations())
            if size <= QUICK_CHECK_BYTES:
                found = conn.execute("PRAGMA quick_check(1)").fetchone()[0]
                if found != "ok":
                    raise sqlite3.DatabaseError(f"database disk image is malformed: {found}")
        migrate(conn, migrations())


def _probe(place: Path, immutable: bool) -> None:
    with closing(connect_reader(place, immutable)) as conn:
        version = version_of(conn, migrations())
    newest = migrations()[-1].version
    if version < newest:
        raise StorageError(f"{place}: its schema is {version}, needed is {newest}; open it once for writing")


def _check_header(place: Path, size: int) -> None:
    """Find the damages that SQLite takes for an empty file, a file of the future or one that must not be written."""
    if not place.exists():
        return
    log, graph = (place.with_name(place.name + suffix) for suffix in ("-wal", ".hnsw.bin"))
    if not size and (_bytes(log) or _bytes(graph)):
        raise sqlite3.DatabaseError("malformed: it is empty, what lies beside it is not")
    with place.open("rb") as file:
        header = file.read(len(_MAGIC) + 4)
    if header.startswith(_MAGIC) and not set(header[_FORMATS]) <= {1, 2}:
        raise sqlite3.DatabaseError("malformed: its header names a format that there is not")


def _bytes(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _busy(error: sqlite3.Error) -> bool:
    return "locked" in str(error)


def _is_corrupt(error: sqlite3.Error | UnicodeDecodeError) -> bool:
    # By SQLite's own words (SQLITE_CORRUPT, SQLITE_NOTADB): Python 3.10 does not tell the code.
    text = _reason(error)
    return any(words in text for words in ("malformed", "is not a database", "unsupported file format"))


def _reason(error: sqlite3.Error | UnicodeDecodeError) -> str:
    """What SQLite said; where it quotes a damaged schema, its words are no UTF-8."""
    if isinstance(error, UnicodeDecodeError):
        return error.object.decode("utf-8", "backslashreplace")
    return str(error)
