"""Settings of a layer: one topic whose messages are remembered."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from memory_node.config import NAME, SettingSpec, checked, setting, table_of
from memory_node.errors import InvalidArgument, shown
from memory_node.ingest.association import normalise_label

TOPIC_FORM = (
    """a topic's name such as "/camera/found": letters, digits and _, no part beginning with a digit; """
    "in braces node, ns and namespace"
)
_TOPIC = re.compile(r"(~/|/)?[A-Za-z_]\w*(/[A-Za-z_]\w*)*", re.ASCII)
_SUBSTITUTION = re.compile(r"\{(node|ns|namespace)\}")
UNSET_LISTS: tuple[list[str], ...] = ([], [""])
"""What says nothing in a list of strings: rclpy has no empty one, so a running node shows [""] instead."""
_TYPE = re.compile(r"[A-Za-z]\w*/msg/[A-Za-z]\w*", re.ASCII)
_FIELD = re.compile(r"[A-Za-z_]\w*(\.([A-Za-z_]\w*|\d+))*", re.ASCII)
_MAX_FIELD = 256
_BODY_TYPES = ("sensor_msgs/msg/JointState",)


@dataclass(frozen=True)
class LayerSettings:
    """Settings of one layer. Wrong values raise InvalidArgument naming "<layer>.<setting>".

    Attributes:
        side_is_known: False: neither is_internal_state nor the type was given, and the type found out decides.
    """

    name: str
    topic: str = setting("", "Topic to listen to; must be given.")
    type: str = setting("", 'ROS type such as "std_msgs/msg/String"; empty: found out from the topic\'s publishers.')
    is_internal_state: bool = setting(
        False,
        "The layer tells about the robot's own body; perception tools never return it, body_status does. Left out it is"
        " true where the type is sensor_msgs/msg/JointState, given or found out.",
    )
    fields: tuple[str, ...] = setting(
        (), "Fields to keep of a message, dotted paths such as pose.position.x; empty: what the type's converter says."
    )
    label_map: tuple[str, ...] = setting(
        (), 'Labels of detections in other words, each as "from: to" ("62: tv"); "from:" leaves that label out. Of'
        ' several colons the last before a blank or the end divides: "coco:62: tv".'
    )
    min_confidence: float = setting(
        0.0,
        "Detections with less confidence are left out; a message of only such ones is a look that saw nothing.",
        low=0.0,
        high=1.0,
        runtime=True,
    )
    max_rate_hz: float = setting(
        2.0,
        "Messages kept a second of the node's clock, the newest ones; 0: all. Not beside a trigger.",
        unit="Hz",
        low=0.0,
        high=10_000.0,
    )
    min_change: float = setting(
        0.0,
        "Body layers: store when a number moved by this much, a word changed, or max_silence passed; 0: store all.",
        low=0.0,
        runtime=True,
    )
    max_silence: float = setting(
        5.0, "Longest time without a row while nothing changes by min_change.", unit="s", low=0.0, high=1e6,
        runtime=True,
    )
    stale_after: float = setting(
        0.0, "Age at which a reading of this layer is stale; 0: the memory's stale_after.", unit="s", low=0.0, high=1e7,
        runtime=True,
    )
    percentage_scale: float = setting(
        1.0,
        "What a full BatteryState sends as percentage: 1.0 as the message defines, 100.0 of some drivers.",
        low=0.01,
        high=1e6,
    )
    sensor_range: float = setting(
        0.0, "How far this detector sees; 0: the memory's sensor_range.", unit="m", low=0.0, high=1000.0,
        runtime=True,
    )
    sensor_fov: float = setting(
        0.0, "Horizontal angle that this detector sees; 0: the memory's sensor_fov.", unit="rad", low=0.0, high=6.2832,
        runtime=True,
    )
    trigger: str = setting(
        "", 'Store the newest message only when this topic fires, or so often: "/snapshot" or "0.2 Hz"; empty: always.'
    )
    reliability: str = setting(
        "auto",
        "QoS; auto: reliable when every publisher is, else best effort, changed when that changes.",
        choices=("auto", "reliable", "best_effort"),
    )
    durability: str = setting(
        "volatile", "QoS; transient_local also brings what was sent before.", choices=("volatile", "transient_local")
    )
    depth: int = setting(
        100, "QoS history depth: what a busy moment may hold back.", unit="messages", low=1, high=10_000
    )
    side_is_known: bool = True

    def __post_init__(self) -> None:
        for name, spec in layer_table().items():
            object.__setattr__(self, name, checked(f"{self.name}.{name}", getattr(self, name), spec))
        self._check_lists()
        if self.topic and not _is_topic(self.topic):
            raise InvalidArgument(f"{self.name}.topic", f"got {self.topic!r}, allowed is {TOPIC_FORM}")
        if self.type and not _TYPE.fullmatch(self.type):
            allowed = 'allowed is "package/msg/Type", or empty'
            raise InvalidArgument(f"{self.name}.type", f"got {self.type!r}, {allowed}")
        topic = self.trigger_topic
        if topic and not (_is_topic(topic) and topic.startswith(("/", "~/"))):
            allowed = 'allowed is "/topic" or "0.2 Hz", a rate of at most 1000 Hz'
            raise InvalidArgument(f"{self.name}.trigger", f"got {self.trigger!r}, {allowed}")

    def _check_lists(self) -> None:
        for path in self.fields:
            if len(path) > _MAX_FIELD or not _FIELD.fullmatch(path):
                allowed = "allowed is the path of a field such as pose.position.x or ranges.0"
                raise InvalidArgument(f"{self.name}.fields", f"got {shown(path)}, {allowed}")
        seen: set[str] = set()
        for rule in self.label_map:
            source = normalise_label(_pair(rule)[0])
            if ":" not in rule:
                raise InvalidArgument(f"{self.name}.label_map", f'got {shown(rule)}, allowed is "from: to"')
            if source in seen:
                twice = f"got two rules for {shown(source)}, allowed is one of each label"
                raise InvalidArgument(f"{self.name}.label_map", twice)
            seen.add(source)

    def tells_of_body(self, type_name: str = "") -> bool | None:
        """Whether messages of this type tell of the robot's own body; None while neither type nor side is known."""
        if self.side_is_known:
            return self.is_internal_state
        return type_name in _BODY_TYPES if type_name else None

    @property
    def labels(self) -> dict[str, str]:
        """label_map as a dictionary."""
        return dict(_pair(rule) for rule in self.label_map)

    @property
    def trigger_rate(self) -> float | None:
        """Rate of the trigger, Hz, when it is one; None: a topic, or no trigger."""
        words = self.trigger.split()
        if not words or len(words) > 2 or (len(words) == 2 and words[1].lower() != "hz"):
            return None
        try:
            rate = float(words[0])
        except ValueError:
            return None
        return rate if 0.0 < rate <= 1000.0 else None

    @property
    def trigger_topic(self) -> str:
        """Topic of the trigger, or ""."""
        return self.trigger if self.trigger_rate is None else ""


def _pair(rule: str) -> tuple[str, str]:
    """Return the label that a rule of label_map is about, and what it is called, "" for not at all.

    The last colon before a blank or the end divides, without one the last of all: labels may hold colons.
    """
    ended = f"{rule} "
    source, _, target = ended.rpartition(": " if ": " in ended else ":")
    return source.strip(), target.strip()


def _is_topic(name: str) -> bool:
    return _TOPIC.fullmatch(_SUBSTITUTION.sub("x", name)) is not None


def layer_table() -> dict[str, SettingSpec]:
    """Return the settings of a layer by name, in the order of their declaration."""
    return dict(_TABLE)


def layer_from(name: str, values: Mapping[str, Any]) -> LayerSettings:
    """Build a layer from what a parameter file says. Empty lists, also as [""], are unset.

    Raises:
        InvalidArgument: an unknown setting, a wrong value, or no topic.
    """
    lists = {key for key, value in values.items() if isinstance(value, (list, tuple)) and list(value) in UNSET_LISTS}
    known = {key: value for key, value in values.items() if key not in lists}
    for key in known:
        if key not in _TABLE:
            raise InvalidArgument(f"{name}.{key}", f"no such setting of a layer; there are: {', '.join(_TABLE)}")
    side_is_known = "is_internal_state" in known or bool(known.get("type"))
    known.setdefault("is_internal_state", known.get("type") in _BODY_TYPES)
    layer = LayerSettings(name, side_is_known=side_is_known, **known)
    if not layer.topic:
        raise InvalidArgument(f"{name}.topic", f"missing; write  {name}: {{topic: /some_topic}}")
    return layer


def check_names(names: Iterable[str]) -> None:
    """Refuse names of layers that the memory could not hold, that hold a dot, or that are there twice.

    Raises:
        InvalidArgument: naming what is wrong.
    """
    seen: set[str] = set()
    for name in names:
        if not NAME.fits(name) or "." in name:
            raise InvalidArgument("layers", f"got {shown(name)}, allowed is {NAME.words} and without dots")
        if name in seen:
            raise InvalidArgument("layers", f"{name!r} is there twice; allowed is each name once")
        seen.add(name)


_TABLE = table_of(LayerSettings)
