"""What happens before a database is used and when it cannot be: folders, damaged files, read-only places."""

from __future__ import annotations

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


def ready_to_write(place: Path, durability: str, on_corrupt: str) -> None:
    """Check and migrate the file; a damaged one is set aside. The caller holds the write lock.

    Raises:
        CorruptDatabaseError: SQLite refuses the file and on_corrupt is "stop".
        StorageError: it is locked, full, another program's, or of a newer schema.
    """
    try:
        _check_and_migrate(place, durability)
    except sqlite3.Error as error:
        if not _is_corrupt(error):
            raise StorageError(f"{place}: {error}") from error
        aside = set_aside(place)
        message = f"{place}: SQLite refuses this file ({error}); it was set aside as {aside}"
        if on_corrupt == "stop":
            raise CorruptDatabaseError(message) from error
        logger.warning("%s; going on with an empty database", message)
        _check_and_migrate(place, durability)
    except StorageError as error:
        raise StorageError(f"{place}: {error}") from error


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
    except sqlite3.Error as error:
        kind = CorruptDatabaseError if _is_corrupt(error) else StorageError
        raise kind(f"{place}: {error}") from error


def _real(path: str | Path) -> Path:
    try:
        return Path(path).expanduser().resolve()
    except (OSError, RuntimeError) as error:  # links in a circle, or no home
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


def _check_and_migrate(place: Path, durability: str) -> None:
    size = _bytes(place)
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


def _bytes(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _busy(error: sqlite3.Error) -> bool:
    return "locked" in str(error)


def _is_corrupt(error: sqlite3.Error) -> bool:
    # By SQLite's own words (SQLITE_CORRUPT, SQLITE_NOTADB): Python 3.10 does not tell the code.
    text = str(error)
    return "malformed" in text or "is not a database" in text
