"""Validated settings of the engine: one table that declares, validates and documents them.

The node declares its parameters from this table, and the reference page is written from it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from zoneinfo import ZoneInfo

from memory_node.errors import InvalidArgument, shown

INF = math.inf
MAX_NAME = 256
"""Longest name, as of a layer or a map, characters."""


@dataclass(frozen=True)
class Form:
    """What a string must be: in words, and how to tell."""

    words: str
    fits: Callable[[str], bool]


def _is_zone(name: str) -> bool:
    try:
        return name == "UTC" or bool(ZoneInfo(name))
    except (KeyError, ValueError, OSError):
        return False


def _is_name(name: str) -> bool:
    return 0 < len(name) <= MAX_NAME and name.isprintable() and name == name.strip()


NAME = Form(f"a name of at most {MAX_NAME} printable characters, without blanks around it", _is_name)
MAP = Form(f"{NAME.words}, or empty", lambda name: not name or NAME.fits(name))
FRAME = Form(
    "a frame's name such as map, without a leading / or blanks around it",
    lambda name: NAME.fits(name) and not name.startswith("/"),
)
FILE = Form("the path of a file", lambda path: bool(path.strip()))
ZONE = Form("an IANA name such as Europe/Berlin", _is_zone)


def setting(
    default: Any,
    doc: str,
    *,
    unit: str = "",
    low: float = -INF,
    high: float = INF,
    choices: tuple[str, ...] = (),
    form: Form | None = None,
    runtime: bool = False,
) -> Any:
    """Declare one setting; low and high are a closed range, runtime says whether it may change while in use."""
    spec = {"doc": doc, "unit": unit, "low": low, "high": high, "choices": choices, "form": form, "runtime": runtime}
    return field(default=default, metadata=spec)


@dataclass(frozen=True)
class Settings:
    """Settings of a memory. Wrong values raise InvalidArgument naming the setting, what came and what is allowed."""

    # storing
    db_path: str = setting("memory.db", "SQLite file; the folder is created, ~ is expanded.", form=FILE)
    durability: str = setting(
        "normal",
        "normal survives a killed process, full also a power cut right after the commit (SQLite `synchronous`).",
        choices=("normal", "full"),
    )
    on_corrupt: str = setting(
        "stop",
        "When SQLite refuses the file it is set aside as `<file>.corrupt-<time>`; then stop, at every start until a"
        " file takes its place or that one is moved away, or go on with a fresh one.",
        choices=("stop", "fresh"),
    )
    auto_store: bool = setting(
        True, "Store what layers bring. false: only store_specific_memory and flush write.", runtime=True
    )
    working_memory_size: int = setting(
        50, "Rows the working buffer holds before a flush is forced.", unit="rows", low=1, high=100_000
    )
    flush_interval: float = setting(
        2.0, "The longest time a row waits for its commit.", unit="s", low=0.01, high=3600.0, runtime=True
    )
    flush_batch_size: int = setting(
        5, "Rows in the buffer that start a flush at once.", unit="rows", low=1, high=100_000, runtime=True
    )
    frame: str = setting(
        "map", "Frame of stored positions (REP-105); without a map_id any frame but map is a map of its own.",
        form=FRAME,
    )
    map_id: str = setting(
        "",
        "Name of the map that positions belong to; set_map changes it. Empty: none in frame map, else the frame's"
        " name, in frame odom with the session's number: its zero is another at each start.",
        form=MAP,
    )
    time_zone: str = setting(
        "UTC", "IANA zone that 'yesterday' and 'this morning' are read in.", form=ZONE, runtime=True
    )
    max_db_mb: float = setting(
        0.0,
        "Size of the database at which the oldest archived rows are removed; 0: no bound.",
        unit="MB",
        low=0.0,
        high=1e9,
        runtime=True,
    )
    fold_repeats: bool = setting(
        False, "Count a repeat of the layer's last row on that row instead of storing another.", runtime=True
    )
    fold_radius: float = setting(
        0.5, "A repeat lies within this of the last.", unit="m", low=0.0, high=10_000.0, runtime=True
    )
    fold_window: float = setting(
        60.0, "A repeat comes within this of the last.", unit="s", low=0.0, high=1e7, runtime=True
    )

    # meaning
    embed_batch_size: int = setting(
        4,
        "Texts embedded in one go; for 10 s after a question one by one, so that the next does not wait long.",
        unit="texts",
        low=1,
        high=512,
    )
    hnsw_m: int = setting(16, "Links of an HNSW element.", low=2, high=128)
    hnsw_ef_construction: int = setting(200, "HNSW candidates while building.", low=8, high=2000)
    hnsw_ef_search: int = setting(
        50, "HNSW candidates while searching, at least; raised by itself where recall needs it.", low=1, high=5000
    )

    # ranking
    relevance_weight: float = setting(1.0, "Weight of meaning and words in a score.", low=0.0, high=10.0, runtime=True)
    importance_weight: float = setting(0.0, "Weight of importance in a score.", low=0.0, high=10.0, runtime=True)
    recency_weight: float = setting(0.0, "Weight of recency in a score.", low=0.0, high=10.0, runtime=True)
    recency_halflife: float = setting(
        3600.0, "Age at which recency is a half.", unit="s", low=1.0, high=1e9, runtime=True
    )
    locate_threshold: float = setting(
        0.0, "Least cosine at which locate believes a name; 0: the value calibrated for the model.", low=0.0, high=1.0,
        runtime=True,
    )

    # housekeeping
    consolidation_window: float = setting(
        1800.0, "Rows older than this become gists.", unit="s", low=0.0, high=1e8, runtime=True
    )
    consolidation_interval: float = setting(
        60.0, "Steady-clock period of housekeeping.", unit="s", low=0.1, high=86_400.0
    )
    consolidation_spatial_eps: float = setting(
        3.0, "DBSCAN eps.", unit="m", low=0.01, high=1000.0, runtime=True
    )
    consolidation_min_samples: int = setting(3, "DBSCAN min_samples.", low=1, high=1000, runtime=True)
    consolidation_max_radius: float = setting(
        5.0, "Largest radius of a gist; a wider cluster is divided.", unit="m", low=0.1, high=10_000.0, runtime=True
    )
    consolidation_max_text: int = setting(
        600, "Longest text of a gist.", unit="characters", low=80, high=10_000, runtime=True
    )
    archive_after_seconds: float = setting(
        3600.0, "Age at which summarised rows give up text and vector.", unit="s", low=0.0, high=1e9, runtime=True
    )
    episode_gap: float = setting(
        1800.0, "Silence that ends an episode nobody started.", unit="s", low=1.0, high=1e7, runtime=True
    )
    episode_max_duration: float = setting(
        86_400.0, "Longest episode; a running one protects its rows no longer than this.", unit="s", low=60.0, high=1e8,
        runtime=True,
    )
    duplicate_threshold: float = setting(
        0.97, "Cosine at which two stored notes of one layer say the same.", low=0.5, high=1.0, runtime=True
    )
    rollup_after: float = setting(
        604_800.0, "Age at which the gists of one place and day become one.", unit="s", low=0.0, high=1e9, runtime=True
    )

    # things and places
    entity_similarity_threshold: float = setting(
        0.85, "Cosine of two labels that may name one thing.", low=0.0, high=1.0, runtime=True
    )
    entity_gate_measured: float = setting(
        1.5, "Farthest a measured position lies from the thing it belongs to.", unit="m", low=0.01, high=100.0,
        runtime=True,
    )
    entity_spatial_radius: float = setting(
        5.0, "The same when only the observer's pose is known.", unit="m", low=0.01, high=1000.0, runtime=True
    )
    sensor_range: float = setting(
        5.0, "How far a detector sees; a layer may say its own.", unit="m", low=0.1, high=1000.0, runtime=True
    )
    sensor_fov: float = setting(
        1.2, "Horizontal angle that a detector sees; a layer may say its own.", unit="rad", low=0.01, high=6.2832,
        runtime=True,
    )

    # the body
    stale_after: float = setting(
        10.0, "Age at which a body reading or a pose is stale.", unit="s", low=0.0, high=1e7, runtime=True
    )
    position_max_age: float = setting(
        0.0, "How long a pose and its heading hold while no other comes; 0: stale_after, and the heading 0.2 s. For a "
        "localisation that is silent while the robot stands, such as AMCL.", unit="s", low=0.0, high=1e7, runtime=True,
    )
    trend_window: float = setting(
        300.0, "Window over which body_status tells the change.", unit="s", low=1.0, high=1e7, runtime=True
    )
    event_window: float = setting(
        30.0, "Observations within this of a body event are joined to it.", unit="s", low=0.0, high=86_400.0,
        runtime=True,
    )

    def __post_init__(self) -> None:
        for name, spec in settings_table().items():
            object.__setattr__(self, name, checked(name, getattr(self, name), spec))

    @property
    def pose_age(self) -> float:
        """How long a pose tells where the robot is, s."""
        return self.position_max_age or self.stale_after

    def changed(self, **changes: Any) -> Settings:
        """Return a copy with changes; unknown names raise InvalidArgument."""
        table = settings_table()
        for name in changes:
            if name not in table:
                raise InvalidArgument(name, "no such setting")
        return dataclasses.replace(self, **changes)


@dataclass(frozen=True)
class SettingSpec:
    """One row of the settings table."""

    name: str
    type: type
    default: Any
    doc: str
    unit: str
    low: float
    high: float
    choices: tuple[str, ...]
    runtime: bool
    form: Form | None = None

    @property
    def allowed(self) -> str:
        """What values are allowed, in words."""
        if self.choices:
            return "one of " + ", ".join(choice or "(empty)" for choice in self.choices)
        if self.type is bool:
            return "true or false"
        if self.type is str:
            return self.form.words if self.form else "a string"
        if self.type is tuple:
            return "a list of strings"
        kind = "a whole number" if self.type is int else "a number"
        bounds = [f"at least {self.low:g}"] if self.low > -INF else []
        bounds += [f"at most {self.high:g}"] if self.high < INF else []
        return " ".join([kind, " and ".join(bounds)]).strip()


def settings_table() -> dict[str, SettingSpec]:
    """Return the settings by name, in the order of their declaration."""
    return dict(_TABLE)


def table_of(settings: type[Any]) -> dict[str, SettingSpec]:
    """Return the specs of a dataclass by name, as far as its fields are made by `setting`."""
    # The type is the default's: annotations are strings here, and every default is of its setting's type.
    return {
        f.name: SettingSpec(name=f.name, type=type(f.default), default=f.default, **f.metadata)
        for f in dataclasses.fields(settings)
        if "doc" in f.metadata
    }


def checked(name: str, value: Any, spec: SettingSpec) -> Any:
    """Return the value as the spec's type, or raise InvalidArgument with the name, what came and what is allowed."""
    wrong = InvalidArgument(name, f"got {shown(value)}, allowed is {spec.allowed}")
    if spec.type is float and isinstance(value, int) and not isinstance(value, bool):
        try:
            value = float(value)
        except OverflowError:
            raise wrong from None
    if spec.type is tuple and isinstance(value, list):
        value = tuple(value)
    if type(value) is not spec.type:
        raise wrong
    if isinstance(value, tuple) and not all(isinstance(item, str) for item in value):
        raise wrong
    if spec.choices and value not in spec.choices:
        raise wrong
    if isinstance(value, str) and spec.form is not None and not spec.form.fits(value):
        raise wrong
    if isinstance(value, (int, float)) and not (spec.low <= value <= spec.high and math.isfinite(value)):
        raise wrong
    return value


_TABLE = table_of(Settings)
