"""Play a rosbag2 over DDS with `/clock`: `python -m examples.home_patrol.player BAG --rate 10`.

Reads with `rosbags`, so it needs no rosbag2. Messages are sent as the bytes that were recorded.
"""

from __future__ import annotations

import argparse
import heapq
import importlib
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import rclpy
from rclpy.duration import Duration
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.serialization import deserialize_message, serialize_message
from rosbags.interfaces import Connection
from rosbags.rosbag2 import Reader
from rosgraph_msgs.msg import Clock  # type: ignore[import-untyped]

CLOCK = "/clock"
QUEUE_DEPTH = 100
ACKNOWLEDGE_SECONDS = 5.0
"""How long the end of a play waits for reliable subscribers to have taken everything."""

OnTime = Callable[[int], None]
Event = tuple[int, str, bytes]


@dataclass
class Played:
    """What a play did.

    Attributes:
        sent: Number of messages sent, by topic; `/clock` included.
        skipped: Why a topic of the bag was left out, by topic.
    """

    sent: Counter[str] = field(default_factory=Counter)
    skipped: dict[str, str] = field(default_factory=dict)


def message_type(name: str) -> type:
    """The Python class of a message such as `nav_msgs/msg/Odometry`.

    Raises:
        ImportError: Its package is not installed, or has no such message.
    """
    package, folder, short = name.split("/")
    module = importlib.import_module(f"{package}.{folder}")
    try:
        found: type = getattr(module, short)
    except AttributeError:
        raise ImportError(f"{package} has no message {short}") from None
    return found


def clock_bytes(stamp: int) -> bytes:
    """A serialized rosgraph_msgs/msg/Clock of a time in nanoseconds."""
    message = Clock()
    message.clock.sec, message.clock.nanosec = divmod(stamp, 1_000_000_000)
    return serialize_message(message)


def _quality(connection: Connection) -> QoSProfile:
    """Reliable, so that both kinds of subscriber receive it; latched when the recorded publisher was."""
    offered: list[Any] = connection.ext.offered_qos_profiles  # type: ignore[union-attr]
    latched = bool(offered) and offered[0].durability.name == "TRANSIENT_LOCAL"
    durability = DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE
    return QoSProfile(depth=QUEUE_DEPTH, reliability=ReliabilityPolicy.RELIABLE, durability=durability)


class _Play:
    """One play of an open bag: its publishers and its pace."""

    def __init__(self, node: Node, reader: Reader, rate: float, topics: Collection[str] | None) -> None:
        self.result = Played()
        self._reader, self._rate = reader, rate
        self._node = node
        self._publishers: dict[str, Publisher] = {}
        self._connections: list[Connection] = []
        for connection in reader.connections:
            if topics is None or connection.topic in topics:
                self._add(connection)
        self._recorded_clock = CLOCK in self._publishers
        if not self._recorded_clock:
            self._publishers[CLOCK] = node.create_publisher(Clock, CLOCK, QUEUE_DEPTH)

    def _add(self, connection: Connection) -> None:
        topic, kind = connection.topic, connection.msgtype
        try:
            self._publishers[topic] = self._node.create_publisher(message_type(kind), topic, _quality(connection))
        except ImportError as missing:
            self.result.skipped[topic] = f"{kind}: {missing}"
        else:
            self._connections.append(connection)

    def close(self) -> None:
        """Wait for the subscribers to have taken everything, then remove the publishers."""
        deadline = time.monotonic() + ACKNOWLEDGE_SECONDS
        for publisher in self._publishers.values():
            left = max(0.0, deadline - time.monotonic())
            if self._node.context.ok():
                publisher.wait_for_all_acked(Duration(seconds=left))
            self._node.destroy_publisher(publisher)

    def wait(self, wait_for: Collection[str], timeout: float, start_delay: float) -> None:
        """Show the start of the clock until the subscribers are there.

        Raises:
            TimeoutError: A topic of `wait_for` found no subscriber.
        """
        deadline = time.monotonic() + timeout
        while missing := [topic for topic in wait_for if not self._subscribed(topic)]:
            if time.monotonic() > deadline:
                raise TimeoutError(f"nobody subscribes to {', '.join(missing)} after {timeout:.0f} s")
            self._show_start()
        ready = time.monotonic() + start_delay
        while time.monotonic() < ready:
            self._show_start()

    def _subscribed(self, topic: str) -> bool:
        publisher = self._publishers.get(topic)
        return publisher is not None and publisher.get_subscription_count() > 0

    def _show_start(self) -> None:
        if not self._recorded_clock:
            self._send(CLOCK, clock_bytes(self._reader.start_time))
        time.sleep(0.05)

    def _send(self, topic: str, data: bytes) -> None:
        self._publishers[topic].publish(data)
        self.result.sent[topic] += 1

    def _ticks(self, period: int) -> Iterator[Event]:
        """Ticks from the start until the first one at or after the last message."""
        start, last = self._reader.start_time, self._reader.end_time - 1
        for index in range(-(-(last - start) // period) + 1):
            stamp = start + index * period
            yield stamp, CLOCK, clock_bytes(stamp)

    def run(self, clock_period: int, on_time: OnTime | None) -> None:
        """Send everything once, each message when its record time has come."""
        messages = ((stamp, c.topic, bytes(data)) for c, stamp, data in self._reader.messages(self._connections))
        ticks = iter(()) if self._recorded_clock else self._ticks(clock_period)
        began, start = time.monotonic(), self._reader.start_time
        for stamp, topic, data in heapq.merge(ticks, messages, key=lambda event: event[0]):
            ahead = began + (stamp - start) / 1e9 / self._rate - time.monotonic()
            if ahead > 0.001:
                time.sleep(ahead)
            self._send(topic, data)
            if topic == CLOCK and on_time is not None:
                clock = deserialize_message(data, Clock).clock
                on_time(clock.sec * 1_000_000_000 + clock.nanosec)


def play(
    bag: Path | str,
    rate: float = 10.0,
    node: Node | None = None,
    topics: Collection[str] | None = None,
    start_delay: float = 0.5,
    on_time: OnTime | None = None,
    wait_for: Collection[str] | None = None,
    discovery_timeout: float = 10.0,
    clock_hz: float = 20.0,
    loops: int = 1,
) -> Played:
    """Play a bag and return when its last message is sent; rclpy must be initialised.

    A bag with its own `/clock` is played with that one; otherwise `/clock` follows the record times. Topics whose type
    is not installed are skipped. A second loop sends the clock back to the start, as `ros2 bag play --loop` does.

    Args:
        bag: Folder of the bag, or a storage file of it.
        rate: Speed; 1.0 is real time.
        node: Node that publishes; one of its own when None. It must not follow `/clock` itself.
        topics: Topics to play; all when None.
        start_delay: Seconds between the discovery of the subscribers and the first message.
        on_time: Called after each tick of the clock with its nanoseconds; must return at once.
        wait_for: Topics that must have a subscriber before the start; the ones in `topics` when None.
        discovery_timeout: How many seconds to wait for them.
        clock_hz: Ticks of `/clock` a second of simulation time.
        loops: How often to play.

    Raises:
        FileNotFoundError: There is no such bag.
        TimeoutError: Nobody subscribed to a topic of `wait_for`.
        ValueError: `rate`, `clock_hz` or `loops` is not positive.
    """
    if not (rate > 0.0 and clock_hz > 0.0 and loops > 0):
        raise ValueError(f"rate {rate}, clock_hz {clock_hz} and loops {loops} must be positive")
    publishing_node = rclpy.create_node("bag_player") if node is None else node
    try:
        with Reader(bag) as reader:
            player = _Play(publishing_node, reader, rate, topics)
            try:
                if reader.message_count:
                    player.wait(wait_for if wait_for is not None else topics or (), discovery_timeout, start_delay)
                    for _ in range(loops):
                        player.run(round(1e9 / clock_hz), on_time)
            finally:
                player.close()
            return player.result
    finally:
        if node is None:
            publishing_node.destroy_node()


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bag", type=Path, help="folder of a rosbag2")
    parser.add_argument("--rate", type=float, default=1.0, help="speed, 1.0 is real time (default %(default)s)")
    parser.add_argument("--loop", type=int, default=1, metavar="N", help="play so many times (default %(default)s)")
    parser.add_argument("--topics", nargs="+", help="topics to play (default: all)")
    parser.add_argument(
        "--delay", type=float, default=1.0, help="seconds before the first message (default %(default)s)"
    )
    options = parser.parse_args(arguments)
    rclpy.init()
    try:
        result = play(options.bag, options.rate, None, options.topics, options.delay, wait_for=(), loops=options.loop)
    except (KeyboardInterrupt, ExternalShutdownException):
        return 0
    except (OSError, ValueError) as error:
        parser.exit(1, f"{error}\n")
    finally:
        rclpy.try_shutdown()
    for topic, reason in result.skipped.items():
        print(f"skipped {topic}: {reason}")
    for topic, number in sorted(result.sent.items()):
        print(f"{number:7d} {topic}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
