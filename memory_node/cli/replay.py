"""Remembers a recording through the same intake as the node, without ROS; the clock is the recorded one."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import memory_node
from memory_node.errors import InvalidArgument, MemoryNodeError
from memory_node.ingest.frames import StaticMounts
from memory_node.ingest.intake import Intake
from memory_node.ingest.parameters import Parameters, read
from memory_node.memory import Memory
from memory_node.models.loading import local_embedder

_CLOCK = "/clock"
_PAGE = 500


class RecordedClock:
    """The time of the recording: its /clock, or the time at which a message was recorded."""

    kind = "sim"

    def __init__(self) -> None:
        self.ns = 0

    def now_ns(self) -> int:
        """The time of the message at hand, ns."""
        return self.ns


def replay_bag(bag: str, db: str, config: str, model: str | None) -> dict[str, dict[str, int]]:
    """Remember a rosbag2 folder; returns counts by layer.

    Args:
        config: parameter file of the node.
        model: embedding model; None: words, place and time only.

    Raises:
        InvalidArgument: the recording or the parameter file cannot be read.
        MemoryNodeError: rosbags is not installed.
    """
    try:
        from rosbags.highlevel import AnyReader, AnyReaderError
        from rosbags.typesys import Stores, get_typestore
    except ModuleNotFoundError as error:
        raise MemoryNodeError('rosbags, which reads recordings, is not installed: pip install ".[replay]"') from error

    store = get_typestore(Stores.ROS2_HUMBLE)
    store.register(_own_types())
    parameters = read(_parameters(config))
    clock = RecordedClock()
    embedder = local_embedder(model) if model else None
    try:
        with (
            AnyReader([Path(bag)], default_typestore=store) as reader,
            Memory.open(db, embedder=embedder, clock=clock, settings=parameters.settings) as memory,
        ):
            intake = _intake(memory, clock, parameters)
            _play(reader, intake, clock)
            intake.release()
            memory.flush()
            if embedder is not None and embedder.wait():
                memory.wait_embedded(3600.0)
            return {name: _counted(counts) for name, counts in intake.counts.items()}
    except AnyReaderError as error:
        raise InvalidArgument("bag", str(error)) from None


def _intake(memory: Memory, clock: RecordedClock, parameters: Parameters) -> Intake:
    mounts = StaticMounts(parameters.settings.frame, parameters["base_frame"], parameters.mounts)
    mounts.wait = parameters["frame_timeout"]
    memory.track.max_stddev = parameters["position_max_stddev"]
    return Intake(
        memory,
        parameters.layers,
        clock,
        resolver=mounts,
        limits=parameters.stamp_limits,
        queue_size=2 * _PAGE,
        steady=clock.now_ns,  # patience is counted in the recording's time, however fast it is read
    )


def _play(reader: Any, intake: Intake, clock: RecordedClock) -> None:
    topics = {_resolved(layer.topic): layer.name for layer in intake.layers.values()}
    wanted = [c for c in reader.connections if c.topic in topics or c.topic == _CLOCK]
    recorded = any(c.topic == _CLOCK for c in wanted)
    for connection, received, data in reader.messages(connections=wanted):
        message = reader.deserialize(data, connection.msgtype)
        if connection.topic == _CLOCK:
            clock.ns = message.clock.sec * 1_000_000_000 + message.clock.nanosec
            continue
        if not recorded:
            clock.ns = received
        intake.put(topics[connection.topic], message, connection.msgtype)
        if intake.waiting > _PAGE:
            intake.work()
    intake.work()


def _resolved(topic: str) -> str:
    """A topic's name as it is for a node outside any namespace."""
    return topic if topic.startswith("/") else f"/{topic}"


def _own_types() -> dict[str, Any]:
    """The package's detections, for recordings that do not tell how their messages are built."""
    from rosbags.typesys import get_types_from_msg

    roots = [Path(root, "share", "robot_memory") for root in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)]
    roots.append(Path(memory_node.__file__).parents[1])
    found: dict[str, Any] = {}
    for name in ("Detection", "DetectionArray"):
        file = next((path for root in roots if (path := root / "msg" / f"{name}.msg").is_file()), None)
        if file is not None:
            found.update(get_types_from_msg(file.read_text(encoding="utf-8"), f"robot_memory/msg/{name}"))
    return found


def _parameters(config: str) -> Mapping[str, Any]:
    """Flat parameters of a ROS parameter file, whatever node names it is written for."""
    import yaml

    try:
        tree = yaml.safe_load(Path(config).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InvalidArgument("config", f"{config} cannot be read: {error}") from None
    flat: dict[str, Any] = {}
    for block in tree.values() if isinstance(tree, dict) else ():
        if isinstance(block, dict) and isinstance(block.get("ros__parameters"), dict):
            flat.update(_flat(block["ros__parameters"]))
    if not flat:
        raise InvalidArgument("config", f"{config} has no ros__parameters")
    return flat


def _flat(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in tree.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _counted(counts: Any) -> dict[str, int]:
    return {name: getattr(counts, name) for name in ("received", "taken", "thinned", "dropped", "refused")}
