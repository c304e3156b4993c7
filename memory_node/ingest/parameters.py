"""Every parameter of the node: one table that declares, validates and documents them; replay reads the same files."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from memory_node.config import FRAME, Form, Settings, SettingSpec, checked, settings_table
from memory_node.errors import InvalidArgument, shown
from memory_node.ingest.converters import DETECTION_TYPES, POSE_TYPES, without_effect
from memory_node.ingest.delivery import NOT_INTERNAL, ODOMETRY
from memory_node.ingest.frames import StaticMounts
from memory_node.ingest.layers import UNSET_LISTS, LayerSettings, check_names, layer_from, layer_table
from memory_node.ingest.stamps import StampLimits

MOUNTS = "sensor_frames"
_MOUNT = "[x, y, z, roll, pitch, yaw]"
_FARTHEST = 1000.0
"""m: no sensor is farther from the base of its robot."""
_SHARED = ("reliability", "durability", "depth")
_OF_URL = {"embedder": ("key_variable", "timeout"), "summarizer": ("model", "key_variable", "timeout")}
"""Parameters that do nothing without the url of their group."""
_FOREIGN = ("use_sim_time", "start_type_description_service", "qos_overrides.")
"""Parameters that rclpy reads itself."""


def _row(
    name: str,
    default: Any,
    doc: str,
    unit: str = "",
    low: float = -math.inf,
    high: float = math.inf,
    choices: tuple[str, ...] = (),
    runtime: bool = False,
    form: Form | None = None,
) -> SettingSpec:
    return SettingSpec(name, type(default), default, doc, unit, low, high, choices, runtime, form)


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        is_whole = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return not text or (is_whole and text.isprintable() and " " not in text)


_URL = Form("an address such as http://127.0.0.1:8080/v1, or empty", _is_url)
_NODE = (
    _row("layers", (), "Names of the layers; each has settings of its own under its name."),
    _row("autostart", True, "Configure and activate at start. false: a lifecycle manager does it."),
    _row("num_threads", 8, "Threads that answer services and take messages.", low=6, high=64),
    _row("queue_size", 2000, "Messages that may wait for the worker, all layers together.", "messages", 10, 1_000_000),
    _row("odometry.topic", "odom", "Topic that tells where the robot is; empty: none."),
    _row("odometry.type", POSE_TYPES[0], "Its type; empty: found out from its publishers.", choices=(*POSE_TYPES, "")),
    *(
        _row(
            f"{ODOMETRY}.{name}",
            200 if name == "depth" else spec.default,
            spec.doc,
            spec.unit,
            spec.low,
            spec.high,
            spec.choices,
        )
        for name, spec in layer_table().items()
        if name in _SHARED
    ),
    _row(
        "position_max_stddev", 0.0, "Poses with a larger deviation are refused; 0: no limit.", "m", 0.0, 1e6,
        runtime=True,
    ),
    _row(
        "base_frame", "base_link", "Frame of the robot's base; odometry's child_frame_id is known as well.", form=FRAME
    ),
    _row(
        "frame_timeout", 1.0,
        "How long a message waits for the robot's next pose, to tell where it was in between, and for late transforms.",
        "s", 0.0, 60.0, runtime=True,
    ),
    _row(
        "stamp_max_ahead", 5.0, "A stamp farther ahead of the clock gives way to the time of arrival.", "s", 0.0, 1e9,
        runtime=True,
    ),
    _row(
        "stamp_max_age", 600.0, "A stamp farther behind gives way to the time of arrival.", "s", 0.0, 1e9, runtime=True
    ),
    _row(
        "embedder.model",
        "all-MiniLM-L6-v2",
        "Embedding model: a folder, a hub name, or what the endpoint calls it; empty: words, place and time only.",
    ),
    _row(
        "embedder.url", "", "OpenAI-compatible endpoint, such as http://127.0.0.1:8080/v1; empty: in this process.",
        form=_URL,
    ),
    _row("embedder.key_variable", "", "Environment variable that holds the endpoint's key; empty: none."),
    _row(
        "embedder.timeout", 10.0, "Longest time for one answer of the endpoint; a question waits 2 s at most.",
        "s", 0.1, 600.0,
    ),
    _row(
        "summarizer.url", "", "OpenAI-compatible endpoint of a language model that words gists; empty: extractive.",
        form=_URL,
    ),
    _row("summarizer.model", "", "What that endpoint calls the model."),
    _row("summarizer.key_variable", "", "Environment variable that holds its key; empty: none."),
    _row("summarizer.timeout", 30.0, "Longest time for one of its answers.", "s", 0.1, 600.0),
    _row("diagnostics_period", 1.0, "Period of /diagnostics; 0: none.", "s", 0.0, 3600.0),
    _row("markers_period", 1.0, "Shortest time between two updates of ~/markers; 0: no markers.", "s", 0.0, 3600.0),
    _row("path_minutes", 5.0, "Length of the path in ~/markers.", "min", 0.0, 60.0),
)


_DEFAULTS = {"fold_repeats": True}
"""Where the node differs from the engine: topics repeat themselves, a program records what it means to keep."""


def node_table() -> dict[str, SettingSpec]:
    """Return the node's own parameters by name, then those of the memory."""
    memory = {n: replace(s, default=_DEFAULTS.get(n, s.default)) for n, s in settings_table().items()}
    return {spec.name: spec for spec in _NODE} | memory


@dataclass(frozen=True)
class Parameters:
    """Parameters, checked.

    Attributes:
        values: of `node_table`, by name.
        settings: those of the memory; db_path as it was given.
        layers: odometry first when there is one.
        mounts: frame -> [x, y, z, roll, pitch, yaw], m and rad.
        unread: names that nothing reads, each with the name that may have been meant, or "".
    """

    values: dict[str, Any]
    settings: Settings
    layers: tuple[LayerSettings, ...]
    mounts: dict[str, list[float]]
    unread: dict[str, str]

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def has(self, name: str) -> bool:
        """Whether a parameter is of the table or a setting of one of the layers."""
        return self._spec(name) is not None

    def _spec(self, name: str) -> SettingSpec | None:
        layer, _, setting = name.partition(".")
        return layer_table().get(setting) if layer in self["layers"] else node_table().get(name)

    def changed(self, changes: Mapping[str, Any]) -> Parameters:
        """Return the parameters with some changed at run time, each checked.

        Raises:
            InvalidArgument: a value is wrong, or the parameter cannot change.
        """
        values, layers = dict(self.values), {layer.name: layer for layer in self.layers}
        for name, value in changes.items():
            spec = self._spec(name)
            if spec is None:
                raise _fixed(name, value, f"allowed are {_MOUNT}, six numbers in m and rad")
            if not spec.runtime:
                raise _fixed(name, value, f"allowed is {spec.allowed}")
            if name in values:
                values[name] = checked(name, value, spec)
            else:
                layer, _, setting = name.partition(".")
                layers[layer] = replace(layers[layer], **{setting: checked(name, value, spec)})
                _check_effects(layers[layer])
        settings = Settings(**{name: values[name] for name in settings_table()})
        return replace(self, values=values, settings=settings, layers=tuple(layers.values()))

    @property
    def stamp_limits(self) -> StampLimits:
        """How far stamps may lie from the time of arrival."""
        return StampLimits(self["stamp_max_ahead"], self["stamp_max_age"])


def read(given: Mapping[str, Any]) -> Parameters:
    """Check what was given by parameter files and arguments; None and empty lists, also as [""], are unset.

    Raises:
        InvalidArgument: naming the parameter, what came and what is allowed.
    """
    if "use_sim_time" in given:
        check_sim_time(given["use_sim_time"])
    given = {k: v for k, v in given.items() if not _is_unset(v) and not k.startswith(_FOREIGN)}
    _check_nesting(given)
    table = node_table()
    values = {name: checked(name, given.get(name, spec.default), spec) for name, spec in table.items()}
    _check_urls(values)
    settings = Settings(**{name: values[name] for name in settings_table()})
    names = values["layers"]
    check_names(names)
    _check_free(names)
    groups = {name: _group(given, name) for name in names}
    layers = [layer_from(name, group) for name, group in groups.items()]
    for layer in layers:
        if layer.is_internal_state and layer.type in DETECTION_TYPES and not layer.fields:
            raise InvalidArgument(f"{layer.name}.is_internal_state", f"got True, allowed is false: {NOT_INTERNAL}")
        _check_effects(layer)
    if values["base_frame"] == settings.frame:
        raise InvalidArgument("base_frame", f"got {settings.frame!r}, allowed is another frame than that of positions")
    mounts = _mounts(given, (settings.frame, values["base_frame"]))
    StaticMounts(settings.frame, values["base_frame"], mounts)
    known = set(table) | {f"{name}.{key}" for name, group in groups.items() for key in group}
    known |= {name for name in given if name.startswith(f"{MOUNTS}.")}
    likely = sorted(known | {f"{name}.{key}" for name in names for key in layer_table()})
    unread = {name: next(iter(difflib.get_close_matches(name, likely, 1)), "") for name in given if name not in known}
    return Parameters(values, settings, (*_odometry(values), *layers), mounts, unread)


def _check_effects(layer: LayerSettings) -> None:
    for name, why in without_effect(layer, layer.type).items():
        given = shown(getattr(layer, name))
        raise InvalidArgument(f"{layer.name}.{name}", f"got {given}, it has no effect here: {why}")


def check_own(name: str, value: Any) -> None:
    """Refuse a wrong value, or a change, of a parameter that rclpy itself declares, as those of this node are."""
    if name == "use_sim_time":
        check_sim_time(value)
    elif name == "start_type_description_service":
        raise _fixed(name, value, "allowed is true or false")


def _fixed(name: str, value: Any, allowed: str) -> InvalidArgument:
    why = f"it cannot change while the node runs; {allowed}, in the parameters that it starts with"
    return InvalidArgument(name, f"got {shown(_plain(value))}, {why}")


def _check_urls(values: Mapping[str, Any]) -> None:
    for group, names in _OF_URL.items():
        for name in (f"{group}.{name}" for name in names):
            if not values[f"{group}.url"] and values[name] != node_table()[name].default:
                raise InvalidArgument(name, f"got {shown(values[name])}, it has no effect here: {group}.url is empty")


def check_sim_time(value: Any) -> None:
    """Refuse what rclpy would go on with in silence or without the parameter's name."""
    if not isinstance(value, bool):
        raise InvalidArgument("use_sim_time", f"got {shown(value)}, allowed is true or false")


def _is_unset(value: Any) -> bool:
    return value is None or (not isinstance(value, (str, bool, int, float)) and list(value) in UNSET_LISTS)


def _check_nesting(given: Mapping[str, Any]) -> None:
    wrong = [name for name in given if name.startswith("layers.")]
    wrong += ["layers"] if isinstance(given.get("layers"), str) else []
    for name in wrong:
        raise InvalidArgument(name, f"got {shown(_plain(given[name]))}, allowed is a list of names; {RIGHT_FORM}")
    if MOUNTS in given:
        raise InvalidArgument(MOUNTS, f"got {shown(given[MOUNTS])}, allowed is a group: {MOUNTS}.<frame>: {_MOUNT}")


RIGHT_FORM = "write  layers: [scene]  and beside it  scene: {topic: /scene_description, type: std_msgs/msg/String}"
"""How layers are written; ROS parameters hold neither lists of maps nor lists of lists."""


def _check_free(names: tuple[str, ...]) -> None:
    taken = {name.split(".")[0] for name in node_table()} | {MOUNTS, "events"} | {name.strip(".") for name in _FOREIGN}
    for name in names:
        if name in taken:
            raise InvalidArgument("layers", f"{name!r} is the name of something else; call the layer otherwise")


def _group(given: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    return {name[len(prefix) + 1 :]: _plain(value) for name, value in given.items() if name.startswith(prefix + ".")}


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, (str, bool, int, float)) else list(value)


def _numbers(name: str, value: Any) -> list[float]:
    if not isinstance(value, list) or not all(isinstance(n, (int, float)) and not isinstance(n, bool) for n in value):
        raise InvalidArgument(name, f"got {shown(value)}, allowed are {_MOUNT}, six numbers in m and rad")
    numbers = [float(n) for n in value]
    if any(abs(n) > _FARTHEST for n in numbers):
        far = f"allowed are {_MOUNT}, six numbers in m and rad of at most {_FARTHEST:g}"
        raise InvalidArgument(name, f"got {shown(value)}, {far}")
    return numbers


def _mounts(given: Mapping[str, Any], others: tuple[str, ...]) -> dict[str, list[float]]:
    """The mounts by frame, without the leading / that headers lose too; others: frames that no sensor can have."""
    mounts: dict[str, list[float]] = {}
    for name, value in _group(given, MOUNTS).items():
        parameter, frame = f"{MOUNTS}.{name}", name.lstrip("/")
        numbers = _numbers(parameter, value)
        if not FRAME.fits(frame):
            raise InvalidArgument(parameter, f"got {shown(frame)}, allowed is {FRAME.words}")
        if frame in others:
            raise InvalidArgument(parameter, f"got {numbers}, it has no effect here: no sensor's frame")
        if frame in mounts:
            raise InvalidArgument(parameter, f"got {numbers}, allowed is one mount of each frame")
        mounts[frame] = numbers
    return mounts


def _odometry(values: Mapping[str, Any]) -> list[LayerSettings]:
    topic, type_name = values["odometry.topic"], values["odometry.type"]
    if not topic:
        return []
    shared = {name: values[f"odometry.{name}"] for name in _SHARED}
    return [LayerSettings(ODOMETRY, topic=topic, type=type_name, max_rate_hz=0.0, **shared)]
