"""Real recordings, read with rosbags."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from rosbags.highlevel import AnyReader
from rosbags.typesys import Stores, get_typestore

BAGS = Path(__file__).resolve().parents[3] / "shared" / "bags"


def messages(bag: str) -> Iterator[tuple[str, str, int, Any]]:
    """Topic, type, record time (ns) and message; topics of unknown types are left out."""
    store = get_typestore(Stores.ROS2_HUMBLE)
    with AnyReader([BAGS / bag], default_typestore=store) as reader:
        known = [c for c in reader.connections if c.msgtype in store.types]
        for connection, received, data in reader.messages(connections=known):
            yield connection.topic, connection.msgtype, received, store.deserialize_cdr(data, connection.msgtype)


def odometry_of(bag: str, topic: str) -> tuple[np.ndarray, np.ndarray]:
    """Header stamps (ns) and positions (m) of a nav_msgs/msg/Odometry topic."""
    found = [(m.header.stamp, m.pose.pose.position) for t, _, _, m in messages(bag) if t == topic]
    stamps = np.array([s.sec * 1_000_000_000 + s.nanosec for s, _ in found])
    return stamps, np.array([(p.x, p.y, p.z) for _, p in found])
