"""The facade: one object with every read and write, used alike by node, command line, tests and notebooks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from memory_node import tools
from memory_node.config import Settings, settings_table
from memory_node.errors import InvalidArgument, ReadOnlyError
from memory_node.graph import NO_ID, Detection, Pose
from memory_node.ingest.arguments import checked_id, checked_metadata, checked_name
from memory_node.ingest.clockwatch import SystemClock
from memory_node.ingest.embedding import wait_until
from memory_node.questions import Questions
from memory_node.retrieval.times import parse_time
from memory_node.rooms import Rooms
from memory_node.storage import nodes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memory_node.housekeeping.consolidation import Consolidation
    from memory_node.housekeeping.episodes import EndedEpisode
    from memory_node.housekeeping.runtime import JobState
    from memory_node.ingest.track import PositionTrack
    from memory_node.protocols import Clock, Embedder, Summarizer


class Memory(Questions):
    """A robot's memory. Safe to use from several threads; made by `Memory.open`.

    Times: a Python int is nanoseconds of the clock; a string is "-10m", ISO 8601, Unix seconds and what else
    `parse_time` reads. Positions are metres in the memory's frame. Wrong arguments raise InvalidArgument naming the
    argument; any call after `close` raises ClosedError. A thread reads its own writes; no read waits for others'.
    """

    @classmethod
    def open(
        cls,
        path: str | Path | None = None,
        embedder: Embedder | None = None,
        summarizer: Summarizer | None = None,
        clock: Clock | None = None,
        settings: Settings | Mapping[str, Any] | None = None,
        read_only: bool = False,
        on_corrupt: str | None = None,
    ) -> Memory:
        """Open the memory kept in a SQLite file; the file and its folder are made when missing.

        Args:
            path: None: `db_path` of the settings.
            embedder: None: words, place and time answer, and meaning where callers bring vectors.
            summarizer: a language model for gists; None: extractive gists.
            clock: None: wall time.
            settings: Settings, or a mapping of some of them.
            read_only: beside another process that writes; every write raises ReadOnlyError.
            on_corrupt: "stop" or "fresh", see the setting of that name.

        Raises:
            LockedError, CorruptDatabaseError, StorageError: as `Database.open`.
        """
        chosen = settings if isinstance(settings, Settings) else Settings().changed(**dict(settings or {}))
        if on_corrupt is not None:
            chosen = chosen.changed(on_corrupt=on_corrupt)
        if path is not None:
            chosen = chosen.changed(db_path=str(path))
        return cls(Rooms(embedder, summarizer, clock or SystemClock(), chosen, read_only))

    def __enter__(self) -> Memory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Commit what waits, save the caches, close the file. A second call does nothing."""
        if not self._closed:
            self._closed = True
            self._rooms.close()

    # ---- writing

    def record(
        self,
        text: str,
        layer: str = "notes",
        position: Sequence[float] | None = None,
        stamp: int | str | None = None,
        source: str = "perception",
        confidence: float = 1.0,
        importance: float = 0.5,
        metadata: Mapping[str, Any] | None = None,
        frame: str = "",
        vector: Sequence[float] | NDArray[np.float32] | None = None,
        position_source: str = "measured",
        stamp_source: str = "caller",
    ) -> int:
        """Record one observation; returns its id, or that of the row it repeats (`fold_repeats`).

        It is committed at most `flush_interval` later; `flush` waits for that.

        Args:
            position: (x, y, z) m of the thing (measured) or of the robot (observer), None when unknown.
            stamp: None: now.
            source: "perception", or "interoception" for a reading without a number.
            frame: "" is the memory's frame; positions in another are refused.
            vector: of the text, shape (dim,), when the caller has it.
        """
        rooms = self._writable()
        if source == "interoception":
            return self.record_body_state(text, layer, None, position=position, stamp=stamp, stamp_source=stamp_source)
        if source != "perception":
            raise InvalidArgument("source", f"got {source!r}, allowed is perception or interoception")
        return rooms.recorder.observation(
            text,
            layer=layer,
            stamp=self._stamp(stamp),
            position=position,
            frame=frame,
            position_source=position_source,
            confidence=confidence,
            importance=importance,
            metadata=metadata,
            vector=vector,
            stamp_source=stamp_source,
        )

    def record_detections(
        self,
        detections: Sequence[Detection],
        layer: str = "detections",
        stamp: int | str | None = None,
        pose: Pose | Sequence[float] | None = None,
        frame: str = "",
        stamp_source: str = "caller",
        sensor_range: float | None = None,
        sensor_fov: float | None = None,
    ) -> list[int]:
        """Record one message of a detector: an observation a detection, in order, and the entities that it sighted.

        An empty message is a look that saw nothing. A detection without a usable label or confidence gets id 0.

        Args:
            pose: of the robot: Pose, or (x, y, z, yaw) in m and rad; None when unknown.
            sensor_range: m; sensor_fov: rad; None: the settings of those names.
        """
        rooms = self._writable()
        return rooms.recorder.detections(
            detections,
            layer=layer,
            stamp=self._stamp(stamp),
            pose=pose,
            frame=frame,
            stamp_source=stamp_source,
            sensor_range=sensor_range,
            sensor_fov=sensor_fov,
        )

    def record_body_state(
        self,
        text: str,
        layer: str,
        value: float | None = None,
        unit: str = "",
        position: Sequence[float] | None = None,
        stamp: int | str | None = None,
        stamp_source: str = "caller",
    ) -> int:
        """Record one reading of the robot's own body (interoception); returns its id.

        The unit says what value is in: "%" is per cent, "fraction" is 0 to 1; both are told as per cent.
        Without a position it lies where the robot was at stamp, and so does an event that it completes.
        """
        rooms, when = self._writable(), self._stamp(stamp)
        pose = rooms.track.at(when) if position is None else None
        return rooms.recorder.reading(
            text,
            layer=layer,
            value=value,
            unit=unit,
            stamp=when,
            position=pose.position if pose else position,
            stamp_source=stamp_source,
        )

    def store_specific_memory(
        self,
        text: str,
        layer: str = "notes",
        position: Sequence[float] | None = None,
        stamp: int | str | None = None,
        confidence: float = 1.0,
        importance: float = 0.5,
        metadata: Mapping[str, Any] | None = None,
        frame: str = "",
    ) -> int:
        """Record a note on purpose and commit it; without a position it lies where the robot was at stamp."""
        rooms, when = self._writable(), self._stamp(stamp)
        pose = rooms.track.at(when) if position is None else None
        id = self.record(
            text,
            layer or "notes",
            pose.position if pose else position,
            when,
            confidence=confidence,
            importance=importance,
            metadata=metadata,
            frame=frame,
            position_source="observer" if pose else "measured",
        )
        rooms.buffer.commit_own()
        rooms.note_stored(id)
        return id

    def declare_layer(self, name: str, is_internal_state: bool = False, stale_after: float | None = None) -> None:
        """Make a layer known before its first row: a question about it then finds nothing, instead of being wrong.

        Rows of the other side are refused from then on; those that are there already change sides with their layer.
        stale_after: age (s) at which its readings are stale; None: the setting of that name.
        """
        rooms, clean = self._writable(), checked_name("name", name)
        rooms.context.stale_limits.pop(clean, None)
        if stale_after is not None:
            rooms.context.stale_limits[clean] = stale_after
        rooms.db.write(lambda tx: nodes.layer_id(tx, clean, is_internal_state))
        with rooms.situation.lock:
            rooms.situation.internal[clean] = is_internal_state

    def flush(self) -> None:
        """Commit what waits in the working buffer.

        Raises:
            StorageError: rows that this thread recorded since its last flush, or any thread since anybody's last flush,
                could not be written.
        """
        self._writable().buffer.flush()

    def wait_embedded(self, timeout: float = 60.0) -> bool:
        """Wait until every text has its vector and every vector is in the index; returns False after timeout s."""
        rooms = self._writable()
        rooms.buffer.flush()
        return wait_until(rooms.all_indexed, timeout)

    def update_pose(self, pose: Pose) -> str:
        """Take a pose of the robot; returns "" or why it was refused."""
        return self._open().track.add(pose)

    def set_map(self, map_id: str) -> None:
        """Say that positions belong to another map from now on."""
        self._writable().change_map(checked_name("map_id", map_id) if map_id else "")

    def new_session(self, reason: str) -> None:
        """Close the open episodes as abandoned, forget poses, and mark what follows with a session of its own."""
        self._writable().new_session(reason)

    def check_clock(self) -> str:
        """Look at the clock; when it has jumped open a new session and return why, else return ""."""
        return self._writable().check_clock()

    @property
    def has_two_clocks(self) -> bool:
        """Whether the clock jumps to and fro, as if two nodes published `/clock`: no session begins until that ends."""
        return bool(self._open().clock_watch.warning)

    def configure(self, **changes: Any) -> None:
        """Change settings that may change at run time."""
        rooms, table = self._open(), settings_table()
        for name in changes:
            if name in table and not table[name].runtime:
                raise InvalidArgument(name, "cannot change while the memory is open")
        rooms.settings.value = rooms.settings.value.changed(**changes)
        rooms.track.follow(rooms.settings.value)

    # ---- episodes and housekeeping

    def start_episode(self, name: str, parent_id: int = NO_ID, metadata: Mapping[str, Any] | None = None) -> int:
        """Begin an episode; returns its id. It nests in the one that runs, or in parent_id."""
        parent, details = checked_id("parent_id", parent_id), checked_metadata("metadata", metadata)
        return self._writable().start_episode(checked_name("name", name), parent, details)

    def end_episode(self, id: int = NO_ID, status: str = "completed") -> EndedEpisode:
        """End an episode (0: the innermost that runs) as completed or abandoned; has .id, .gist_ids and .summary."""
        return self._writable().end_episode(checked_id("id", id), status or "completed")

    def run_job(self, name: str, dry_run: bool = False) -> JobState:
        """Run one housekeeping job to its end.

        Args:
            dry_run: write nothing and leave no trace; `.found` of the state has what would be done, in the job's own
                records: gists, pairs of entities that are one, or notes that say the same with their cosine.
        """
        return self._writable().run_job(name, dry_run)

    def housekeep(self) -> list[JobState]:
        """Run what the timer of `start_housekeeping` runs each time, now; returns the state of each job that ran."""
        return self._writable().housekeep()

    def jobs(self) -> list[JobState]:
        """State of every housekeeping job."""
        return self._writable().runner.states()

    def start_housekeeping(self) -> None:
        """Run all jobs every `consolidation_interval` of the steady clock, until `close`."""
        self._writable().runner.start()

    def consolidate(self, dry_run: bool = False) -> Consolidation:
        """Write the gists that are due, or say which would be written; has .gists and .clusters."""
        return self._writable().consolidate(dry_run)

    def split_entity(self, id: int, observation_ids: Sequence[int]) -> int:
        """Undo a wrong merge: the sightings become another entity, whose id is returned."""
        return self._writable().split_entity(id, observation_ids)

    def purge(self, ids: Sequence[int]) -> int:
        """Remove observations and entities for good, with their vectors, words and edges; returns how many went.

        An entity that loses sightings is what the others make of it, and goes with its last one. Texts of gists and
        episodes stay as they are.
        """
        return self._writable().purge(ids)

    def call_tool(self, name: str, arguments: Mapping[str, Any] | None = None) -> str:
        """Call a tool as a language model does, with JSON arguments; wrong ones come back as a text to act on."""
        return tools.call_tool(self, name, arguments or {})

    @property
    def track(self) -> PositionTrack:
        """The robot's recent poses."""
        return self._rooms.track

    @property
    def settings(self) -> Settings:
        """The settings of this moment."""
        return self._rooms.settings()

    def _writable(self) -> Rooms:
        rooms = self._open()
        if rooms.db.read_only:
            raise ReadOnlyError("the memory was opened read-only")
        return rooms

    def _stamp(self, stamp: int | str | None) -> int:
        if isinstance(stamp, str) and stamp:
            now = self._rooms.clock.now_ns()
            return parse_time(stamp, now, self._rooms.settings().time_zone, "stamp")
        if stamp is None or stamp == "":
            self._rooms.check_clock()
            return self._rooms.clock.now_ns()
        return stamp
