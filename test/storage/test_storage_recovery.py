"""Before the first read: folders, rights, damaged files, a full disk (F37, F38, F39)."""

from __future__ import annotations

import logging
import os
import sqlite3
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memory_node.errors import CorruptDatabaseError, LockedError, StorageError
from memory_node.graph import Node
from memory_node.storage import meta, nodes, texts
from memory_node.storage.database import Database, Transaction

Make = Callable[..., Node]


@pytest.fixture
def stored(tmp_path: Path, observation: Make) -> Path:
    """A closed database of 500 rows."""
    db = Database.open(tmp_path / "robot.db")
    db.write(lambda tx: nodes.insert_many(tx, [observation(f"chair number {i}", stamp=i) for i in range(500)]))
    db.close()
    return db.path


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def shorten_to_nothing_useful(path: Path) -> None:
    os.truncate(path, 50)


def scramble_header(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(os.urandom(4096))


def scramble_middle(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(8192)
        file.write(b"\xa5" * (path.stat().st_size - 3 * 4096))


def replace_by_text(path: Path) -> None:
    path.write_text("this is no database\n" * 1000)


def scramble_schema(path: Path) -> None:
    data = path.read_bytes()
    at = data.index(b"CREATE TABLE edge")
    path.write_bytes(data[:at] + b"CREATE TABL\xc3 edge" + data[at + 17 :])


def name_another_format(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(18)
        file.write(b"\x07")


def need_another_format(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(19)
        file.write(b"\x07")


def empty_beside_its_index(path: Path) -> None:
    path.with_name("robot.db.hnsw.bin").write_bytes(b"graph")
    os.truncate(path, 0)


DAMAGES = [truncate, shorten_to_nothing_useful, scramble_header, scramble_middle, replace_by_text]
DAMAGES += [scramble_schema, name_another_format, need_another_format, empty_beside_its_index]


@pytest.mark.parametrize("damage", DAMAGES)
def test_f37_a_damaged_file_is_set_aside_whole_and_stops(stored: Path, damage: Callable[[Path], None]) -> None:
    damage(stored)
    stored.with_name("robot.db-wal").write_bytes(b"log")
    before = stored.read_bytes()
    with pytest.raises(CorruptDatabaseError) as caught:
        Database.open(stored)
    (aside,) = (path for path in stored.parent.glob("robot.db.corrupt-*") if not path.name.endswith(("-wal", "-shm")))
    assert str(aside) in str(caught.value)
    assert aside.read_bytes() == before
    assert not stored.exists() and not stored.with_name("robot.db-wal").exists()
    for _ in range(2):  # a node that is started again must not begin an empty memory either
        with pytest.raises(CorruptDatabaseError, match="set aside as .* put a backup in its place"):
            Database.open(stored)
    fresh = Database.open(stored, on_corrupt="fresh")
    assert fresh.check() == []
    fresh.close()
    Database.open(stored).close()  # it has taken the place
    stored.unlink()
    aside.rename(stored.parent / "damaged.db")
    Database.open(stored).close()


def test_an_empty_file_with_nothing_beside_it_becomes_a_database_that_says_so(tmp_path: Path) -> None:
    (tmp_path / "robot.db").touch()
    for note in (f"{tmp_path / 'robot.db'}: was a file of 0 bytes; the memory began empty", ""):
        db = Database.open(tmp_path / "robot.db")
        assert db.note == note
        db.close()


@pytest.mark.parametrize("damage", DAMAGES)
def test_f37_fresh_goes_on_empty_with_one_warning(
    stored: Path, damage: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    damage(stored)
    with caplog.at_level(logging.WARNING):
        db = Database.open(stored, on_corrupt="fresh")
    assert len(caplog.records) == 1
    assert "set aside as" in caplog.text and "robot.db.corrupt-" in caplog.text
    with db.read() as conn:
        assert conn.execute("SELECT count(*) FROM node").fetchone()[0] == 0
    assert db.new_id() == 1
    db.close()


def test_f37_garbage_beside_a_good_file_does_no_harm(stored: Path) -> None:
    for suffix in ("-wal", "-shm"):
        stored.with_name(stored.name + suffix).write_bytes(os.urandom(40_000))
    db = Database.open(stored)
    assert db.check() == []
    with db.read() as conn:
        assert len(nodes.fetch(conn, range(1, 1000))) == 500
    db.close()


def test_f37_read_only_never_moves_a_damaged_file(stored: Path) -> None:
    scramble_header(stored)
    with pytest.raises(CorruptDatabaseError, match="not a database"):
        Database.open(stored, read_only=True)
    assert stored.exists()
    assert list(stored.parent.glob("*.corrupt-*")) == []


def test_f37_a_locked_database_is_not_taken_for_a_damaged_one(stored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memory_node.storage.connections.BUSY_TIMEOUT_MS", 50)
    viewer = sqlite3.connect(stored, isolation_level=None)
    viewer.execute("PRAGMA locking_mode = EXCLUSIVE")
    viewer.execute("BEGIN IMMEDIATE")
    viewer.execute("UPDATE meta SET value = value")
    with pytest.raises(StorageError, match="locked") as caught:
        Database.open(stored)
    assert not isinstance(caught.value, (CorruptDatabaseError, LockedError))
    viewer.close()
    db = Database.open(stored)
    with db.read() as conn:
        assert conn.execute("SELECT count(*) FROM node").fetchone()[0] == 500
    db.close()


def test_a_database_of_another_program_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    conn = sqlite3.connect(path)
    conn.execute("CREATE TABLE theirs (x)")
    conn.commit()
    conn.close()
    before = path.read_bytes()
    with pytest.raises(StorageError, match="database of another program"):
        Database.open(path)
    conn = sqlite3.connect(path)
    assert conn.execute("SELECT name FROM sqlite_master").fetchall() == [("theirs",)]
    conn.close()
    assert len(path.read_bytes()) == len(before)


def test_f39_missing_folders_are_created_and_tilde_is_expanded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    db = Database.open("~/deep/er/robot.db")
    assert db.path == tmp_path / "deep" / "er" / "robot.db"
    assert db.path.is_file()
    db.close()
    reader = Database.open("~/deep/er/robot.db", read_only=True)
    assert reader.path == db.path
    reader.close()


def test_f39_impossible_places_are_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match=f"^{tmp_path}/file/below: cannot be created"):
        Database.open(tmp_path / "file" / "below" / "robot.db")
    with pytest.raises(StorageError, match=f"^{tmp_path}: is a folder"):
        Database.open(tmp_path)
    with pytest.raises(StorageError, match=f"^{tmp_path}/none.db: no such database"):
        Database.open(tmp_path / "none.db", read_only=True)
    assert not (tmp_path / "none.db").exists()
    for name in (300 * "m", "a\0b", "\ud800"):
        for read_only in (False, True):
            with pytest.raises(StorageError, match="leads nowhere"):
                Database.open(tmp_path / name, read_only=read_only)


@pytest.fixture
def sealed(observation: Make) -> Iterator[Path]:
    """A closed database in a folder that other users may read but not write."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        db = Database.open(folder / "robot.db")
        db.write(lambda tx: nodes.insert_many(tx, [observation(f"chair {i}") for i in range(20)]))
        db.close()
        (folder / "robot.db.lock").unlink()
        for path in folder.iterdir():
            path.chmod(0o444)
        folder.chmod(0o555)
        yield db.path
        folder.chmod(stat.S_IRWXU)


DIES = """
import os, sys
from memory_node.storage import texts
from memory_node.storage.database import Database
db = Database.open(sys.argv[1])
db.write(lambda tx: texts.intern(tx, "only in the log"))
print(db.wal_bytes() > 0, flush=True)
os._exit(0)
"""


@pytest.mark.parametrize("index_file", [True, False])
def test_f39_read_only_beside_a_log_that_nobody_folded(
    sealed: Path, run_child: Callable[..., str], index_file: bool
) -> None:
    folder = sealed.parent
    folder.chmod(stat.S_IRWXU)
    sealed.chmod(0o644)
    assert run_child(DIES, sealed) == "True"
    if not index_file:
        (folder / "robot.db-shm").unlink()
    for path in folder.iterdir():
        path.chmod(0o444)
    folder.chmod(0o555)
    source = AS_NOBODY.replace("print(len(", "print(texts.exists(conn, 21), len(").replace("nodes\n", "nodes, texts\n")
    assert run_child(source, sealed, "read") == f"{index_file} 20 [] True", "without -shm only what was folded is seen"


AS_NOBODY = """
import os, sys
from memory_node.errors import StorageError
from memory_node.storage import nodes
from memory_node.storage.database import Database
import memory_node.storage.migrations as migrations
migrations.migrations()
if os.getuid() == 0:
    os.setuid(65534)
try:
    db = Database.open(sys.argv[1], read_only=sys.argv[2] == "read")
    with db.read() as conn:
        print(len(nodes.fetch(conn, range(100))), db.check(), db.size_bytes() > 0)
except StorageError as error:
    print(type(error).__name__, error)
"""


def test_f39_a_folder_that_cannot_be_written_stops_with_one_clear_line(
    sealed: Path, run_child: Callable[..., str]
) -> None:
    told = run_child(AS_NOBODY, sealed, "write")
    assert told.startswith(f"StorageError {sealed.parent}: folder is not writable")
    assert "\n" not in told


def test_f39_read_only_works_in_a_folder_that_cannot_be_written(sealed: Path, run_child: Callable[..., str]) -> None:
    assert run_child(AS_NOBODY, sealed, "read") == "20 [] True"
    assert sorted(path.name for path in sealed.parent.iterdir()) == ["robot.db"]


def test_f38_a_full_database_refuses_the_write_keeps_reading_and_recovers(db: Database, observation: Make) -> None:
    db.write(lambda tx: nodes.insert(tx, observation("before")))
    undone: list[int] = []

    def limit(tx: Transaction, pages: int) -> None:
        tx.conn.execute(f"PRAGMA max_page_count = {pages}")

    pages = db.write(lambda tx: tx.conn.execute("PRAGMA page_count").fetchone()[0])
    db.write(lambda tx: limit(tx, pages + 2))

    def too_much(tx: Transaction) -> None:
        tx.on_rollback(lambda: undone.append(1))
        nodes.insert_many(tx, [observation(f"text {i} " + "x" * 500) for i in range(200)])

    for _ in range(2):
        with pytest.raises(StorageError, match="database or disk is full"):
            db.write(too_much)
    assert undone == [1, 1]
    with db.read() as conn:
        assert [node.text for node in nodes.fetch(conn, range(1, 500))] == ["before"]
    db.write(lambda tx: limit(tx, 1_000_000))
    db.write(too_much)
    with db.read() as conn:
        assert len(nodes.fetch(conn, range(1, 1000))) == 201
    assert db.check() == []


FILLING = """
import resource, sys
from memory_node.errors import StorageError
from memory_node.storage import texts
from memory_node.storage.database import Database
db = Database.open(sys.argv[1])
stored, refused = 0, 0
resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, resource.RLIM_INFINITY))
while refused < 5:
    try:
        db.write(lambda tx: texts.intern(tx, f"{stored} " + "x" * 3000))
        stored += 1
    except StorageError:
        refused += 1
with db.read() as conn:
    readable = conn.execute("SELECT count(*) FROM text").fetchone()[0]
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
db.write(lambda tx: texts.intern(tx, "space again"))
db.checkpoint()
problems = db.check()
db.close()
print(stored > 10, readable == stored, problems)
"""


def test_f38_files_that_may_not_grow_refuse_writes_until_they_may(
    tmp_path: Path, run_child: Callable[..., str]
) -> None:
    assert run_child(FILLING, tmp_path / "robot.db") == "True True []"
    db = Database.open(tmp_path / "robot.db")
    assert db.write(lambda tx: texts.intern(tx, "space again")) == db.write(
        lambda tx: tx.conn.execute("SELECT max(id) FROM text").fetchone()[0]
    )
    db.close()


def test_checkpoint_forgets_removals_of_long_ago(
    db: Database, observation: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory_node.storage.database.REMOVALS_KEPT", 10)
    for i in range(8):
        ids = db.write(lambda tx, i=i: nodes.insert_many(tx, [observation(f"{i} {j}") for j in range(5)]))
        db.write(lambda tx, ids=ids: nodes.remove(tx, ids))
    middle = db.revision - 2
    db.checkpoint()
    with db.read() as conn:
        assert conn.execute("SELECT count(*) FROM removed").fetchone()[0] == 10
        assert meta.removed_since(conn, "node", 1) is None
        assert len(meta.removed_since(conn, "node", middle) or ()) == 5
        assert nodes.since(conn, 1).complete
        assert not nodes.since(conn, middle).complete


def test_f36_a_link_to_a_database_has_the_lock_of_the_database(stored: Path, tmp_path: Path) -> None:
    link = tmp_path / "elsewhere" / "memory.db"
    link.parent.mkdir()
    link.symlink_to(stored)
    db = Database.open(stored)
    with pytest.raises(LockedError, match=str(stored)):
        Database.open(link)
    reader = Database.open(link, read_only=True)
    assert reader.path == stored and [path.name for path in link.parent.iterdir()] == ["memory.db"]
    reader.close()
    db.close()
    circle = tmp_path / "circle"
    circle.symlink_to(circle)
    with pytest.raises(StorageError, match="circle"):
        Database.open(circle / "memory.db")


FULL = """
import os, resource, signal, sys
from memory_node.errors import StorageError
from memory_node.storage.database import Database
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
before = len(os.listdir("/proc/self/fd"))
for _ in range(2):
    try:
        Database.open(sys.argv[1])
    except StorageError as error:
        print(error)
print(len(os.listdir("/proc/self/fd")) - before)
"""


def test_f38_opening_on_a_full_disk_names_the_file_and_leaves_nothing_open(
    stored: Path, run_child: Callable[..., str]
) -> None:
    told = f"{stored}.lock: cannot be written (File too large)"
    assert run_child(FULL, stored).splitlines() == [told, told, "0"]
