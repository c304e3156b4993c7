"""Subscriptions of the layers: types found out, QoS that fits the publishers, faults told."""

from __future__ import annotations

import difflib
import functools
import importlib
import itertools
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.subscription import Subscription
from rclpy.type_support import check_is_valid_msg_type

from memory_node.errors import InvalidArgument
from memory_node.ingest.intake import Intake
from memory_node.ingest.layers import LayerSettings
from memory_node.ros.listener import Listener

try:
    from rclpy.event_handler import SubscriptionEventCallbacks
except ImportError:  # Humble
    from rclpy.qos_event import SubscriptionEventCallbacks

_ALIKE = 0.6
_KNOWN = 10_000
"""Latched messages of a topic that are known again: more than a subscription may hold back."""
_INACTIVE = "not listened to: the node is inactive"
_HAS_INFO = hasattr(Subscription, "CallbackType")
"""Whether callbacks are told when a message was sent; not in Humble."""
_DURABILITY = {
    "volatile": DurabilityPolicy.VOLATILE,
    "transient_local": DurabilityPolicy.TRANSIENT_LOCAL,
}


def message_class(type_name: str) -> Any:
    """Return the class of "package/msg/Type".

    Raises:
        ImportError: the name is no type, or its package is not installed.
    """
    package, _, short = type_name.partition("/msg/")
    if not package or not short:
        raise ImportError(f'{type_name!r} is no message type such as "std_msgs/msg/String"')
    try:
        return getattr(importlib.import_module(f"{package}.msg"), short)
    except AttributeError:
        raise ImportError(f"{package} has no message {short}") from None


@dataclass
class Feed:
    """One topic and its subscription.

    Attributes:
        problem: why nothing can come, or "".
        publishers: how many there are now.
        known: latched messages that came, by when they were sent and what they say.
    """

    layer: LayerSettings
    topic: str
    take: Callable[[bytes, str], None]
    subscription: Subscription | None = None
    type_name: str = ""
    reliable: bool = True
    problem: str = _INACTIVE
    told: set[str] = field(default_factory=set)
    publishers: int = 0
    known: dict[tuple[int, int], None] = field(default_factory=dict)

    def is_new(self, sent: int, data: bytes) -> bool:
        """Whether a latched message comes for the first time; `sent`, ns of its publisher's clock, 0 if not known."""
        if not sent:
            return True
        message = (sent, hash(data))
        if message in self.known:
            return False
        self.known[message] = None
        if len(self.known) > _KNOWN:
            del self.known[next(iter(self.known))]
        return True


class Subscriptions:
    """All feeds of a node. `refresh` is called by a timer; its callbacks only enqueue the bytes that came."""

    def __init__(
        self,
        node: Node,
        intake: Intake,
        layers: Iterable[LayerSettings],
        tell_type: Callable[[str, str], None],
    ) -> None:
        """Args: tell_type: is told the name and the type of a layer before the first message of that type can come."""
        self._node = node
        self._tell_type = tell_type
        self._lock = threading.RLock()
        self._feeds = {layer.name: self._feed(layer, intake) for layer in layers}
        self._triggers = [
            Feed(
                LayerSettings(f"trigger of {layer.name}", topic=layer.trigger_topic),
                self._resolve(f"{layer.name}.trigger", layer.trigger_topic),
                _firing(intake, layer.trigger_topic),
            )
            for layer in layers
            if layer.trigger_topic
        ]
        self._active = False
        self._listener = Listener(node, "intake")

    def _feed(self, layer: LayerSettings, intake: Intake) -> Feed:
        def take(data: bytes, type_name: str) -> None:
            intake.put(layer.name, data, type_name)

        return Feed(layer, self._resolve(f"{layer.name}.topic", layer.topic), take)

    def _resolve(self, parameter: str, topic: str) -> str:
        try:
            return str(self._node.resolve_topic_name(topic))
        except (RuntimeError, ValueError) as error:
            raise InvalidArgument(parameter, f"got {topic!r}, {str(error).partition(', at ')[0]}") from None

    def __getitem__(self, layer: str) -> Feed:
        return self._feeds[layer]

    def open(self) -> None:
        """Begin to listen."""
        self._active = True
        self.refresh()

    def close(self) -> None:
        """Stop listening."""
        with self._lock:
            self._active = False
            for feed in (*self._feeds.values(), *self._triggers):
                self._drop(feed)
                feed.problem = _INACTIVE

    def destroy(self) -> None:
        """Stop listening for good."""
        self.close()
        self._listener.close()

    def refresh(self) -> None:
        """Look at the publishers of each topic, and subscribe as fits them while open."""
        with self._lock:
            for feed in (*self._feeds.values(), *self._triggers):
                self._refresh(feed)

    def _refresh(self, feed: Feed) -> None:
        # The topic's name is remapped already, and the main node would remap it again.
        offers = self._listener.node.get_publishers_info_by_topic(feed.topic)
        feed.publishers = len(offers)
        if not self._active:
            return
        offered = sorted({offer.topic_type for offer in offers})
        wanted = feed.layer.type or _discovered(feed.type_name, offered)
        qualities = [offer.qos_profile for offer in offers]
        problem = self._type_problem(feed, wanted, offered)
        reliable = self._reliable(feed, [quality.reliability for quality in qualities])
        if offered and wanted not in offered:
            # Nothing can come, and a process can't hear one topic as two types: another layer may name the right one.
            self._drop(feed)
        elif wanted and (feed.subscription is None or reliable != feed.reliable or wanted != feed.type_name):
            failed = self._subscribe(feed, wanted, reliable)
            problem = problem or failed
        problem = problem or self._quality_problem(feed, qualities)
        # Set once, when all is known: others read it meanwhile.
        feed.problem = problem
        if problem and problem not in feed.told:
            feed.told.add(problem)
            self._node.get_logger().warning(f"layer {feed.layer.name}: {problem}")

    def _type_problem(self, feed: Feed, wanted: str, offered: list[str]) -> str:
        if not offered:
            return ""
        if not wanted:
            return f"{feed.topic} is published with several types, {', '.join(offered)}; say which by `type`"
        others = [name for name in offered if name != wanted]
        return f"{feed.topic} is published as {', '.join(others)}, not as {wanted}" if others else ""

    def _quality_problem(self, feed: Feed, offers: list[QoSProfile]) -> str:
        """Say why a publisher is not heard although its type is right."""
        if feed.layer.reliability == "reliable" and any(o.reliability == ReliabilityPolicy.BEST_EFFORT for o in offers):
            return f"a publisher of {feed.topic} offers best effort only; the layer asks for reliable"
        latched = DurabilityPolicy.TRANSIENT_LOCAL
        if feed.layer.durability == "transient_local" and any(o.durability != latched for o in offers):
            return f"a publisher of {feed.topic} is volatile; the layer asks for transient_local"
        return ""

    def _reliable(self, feed: Feed, offers: list[ReliabilityPolicy]) -> bool:
        if feed.layer.reliability != "auto":
            return feed.layer.reliability == "reliable"
        if not offers:
            return feed.reliable
        return all(offer == ReliabilityPolicy.RELIABLE for offer in offers)

    def _subscribe(self, feed: Feed, type_name: str, reliable: bool) -> str:
        """Subscribe anew; returns why that cannot be, or ""."""
        try:
            message_type = message_class(type_name)
            check_is_valid_msg_type(message_type)
        except Exception as error:  # a package that was built for another Python may raise anything
            return f"type {type_name} cannot be read here: {error}"
        self._drop(feed)
        if type_name != feed.type_name and feed.layer.name in self._feeds:
            self._tell_type(feed.layer.name, type_name)
        if feed.type_name and reliable != feed.reliable:
            kind = "reliable" if reliable else "best effort"
            self._node.get_logger().info(f"layer {feed.layer.name}: now listening to {feed.topic} as {kind}")
        feed.type_name, feed.reliable = type_name, reliable
        policy = ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT
        durability = _DURABILITY[feed.layer.durability]
        try:
            feed.subscription = self._listener.node.create_subscription(
                message_type,
                feed.topic,
                _taking(feed, type_name),
                QoSProfile(depth=feed.layer.depth, reliability=policy, durability=durability),
                event_callbacks=SubscriptionEventCallbacks(incompatible_qos=lambda event: self.refresh()),
                raw=True,
            )
        except RuntimeError as error:  # another layer hears it as another type; rclpy's RCLError
            return f"cannot listen to {feed.topic} as {type_name}: {str(error).partition(', at ')[0]}"
        return ""

    def _drop(self, feed: Feed) -> None:
        if feed.subscription is not None:
            self._listener.node.destroy_subscription(feed.subscription)
            feed.subscription = None

    def nearest_topics(self, feed: Feed) -> list[str]:
        """Return up to three other topics that somebody publishes and a feed may mean: of its type, or of like name."""
        wanted, ranked = feed.layer.type or feed.type_name, []
        for name, types in self._node.get_topic_names_and_types():
            same, like = wanted in types, _likeness(feed.topic, name)
            if name != feed.topic and (same or like >= _ALIKE):
                ranked.append((not same, -like, name))
        published = (name for *_, name in sorted(ranked) if self._node.count_publishers(name))
        return list(itertools.islice(published, 3))


@functools.lru_cache(4096)
def _likeness(topic: str, other: str) -> float:
    """How like each other two names are, 0 to 1, or any two of their parts: namespaces differ from robot to robot."""
    parts = itertools.product(*([name, *name.strip("/").split("/")] for name in (topic, other)))
    return max(difflib.SequenceMatcher(None, a, b).ratio() for a, b in parts)


def _discovered(before: str, offered: list[str]) -> str:
    """The type of a topic whose layer names none: what is offered, or what was, as long as nothing else is clear."""
    if len(offered) == 1:
        return offered[0]
    return before if before in offered or not offered else ""


def _taking(feed: Feed, type_name: str) -> Callable[..., None]:
    """The callback of a subscription. Latched messages come again whenever it is made anew, and are taken once."""
    if feed.layer.durability != "transient_local" or not _HAS_INFO:
        return lambda data: feed.take(data, type_name)

    def take(data: bytes, info: Mapping[str, Any]) -> None:
        if feed.is_new(info["source_timestamp"], data):
            feed.take(data, type_name)

    return take


def _firing(intake: Intake, topic: str) -> Callable[[bytes, str], None]:
    return lambda data, type_name: intake.fire(topic)
