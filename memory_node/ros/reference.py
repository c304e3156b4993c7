"""Writes docs/parameters.md from the tables in the code: `python -m memory_node.ros.reference`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from memory_node.config import SettingSpec
from memory_node.ingest.converters import POSE_TYPES, converter_docs
from memory_node.ingest.layers import layer_table
from memory_node.ingest.parameters import MOUNTS, node_table
from memory_node.ros.diagnostics import VALUES
from memory_node.ros.services import SERVICES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "parameters.md"


TOPICS = (
    (
        "`/diagnostics`",
        "`diagnostic_msgs/msg/DiagnosticArray`",
        "sent: state of memory, jobs and layers, see below; a layer of this topic, or of what "
        "diagnostic_aggregator makes of it, leaves them out",
    ),
    ("`~/markers`", "`visualization_msgs/msg/MarkerArray`", "sent: entities, gists and path for RViz"),
    ("each layer's topic", "its type", "taken in"),
    (
        "`odometry.topic`",
        "`odometry.type`",
        "taken in: where the robot is; with AMCL, which says nothing while the robot stands, also set "
        "`position_max_age`",
    ),
    (
        "`/tf`, `/tf_static`",
        "`tf2_msgs/msg/TFMessage`",
        "taken in, where `tf2_ros` is installed: where sensors and base are",
    ),
)


def page() -> str:
    """Return the whole page."""
    return "\n".join(
        [
            "# Parameters, services and messages of the node",
            "",
            "Written from the code by `python -m memory_node.ros.reference`. `config/memory.yaml` shows them in use.",
            "",
            "## Parameters",
            "",
            *parameter_rows(node_table().values()),
            f"| `{MOUNTS}.<frame>` | | six numbers | Sensor on the base: [x, y, z, roll, pitch, yaw], m and rad. Of "
            "how the robot is turned only the yaw counts: where it pitches or rolls, on slopes or legs, use tf2. It "
            "needs a heading no older than 0.2 s (or `position_max_age`), or one before and one after within 2 s "
            "(within `stale_after` if they are alike): else things are stored without position, and counted with that "
            "reason. Odometry of a sensor with a mount (child_frame_id) tells of the sensor: the base is worked out of "
            "it. | |",
            "",
            "The defaults are the node's; the engine alone, `memory_node.config.Settings`, has `fold_repeats` false.",
            "A relative `db_path` lies under `$ROS_HOME/<namespace>` (`~/.ros` without ROS_HOME).",
            "",
            "## Settings of a layer",
            "",
            "Under the layer's name, such as `scene.topic`.",
            "",
            *parameter_rows(layer_table().values()),
            "",
            "A setting that does nothing for a layer's type or side, such as `label_map` for texts, is refused; "
            "where these are found out from the topic, the layer's problem says so.",
            "",
            "## Message types",
            "",
            *table(("type", "what is kept"), types()),
            "",
            "Any other type is read field by field, and so is a layer that names `fields`; without them the first 16 "
            "that say something are told, and how many more there are. The value is their only number, or the first "
            "of `fields`; min_change looks at each. The robot's pose comes from "
            f"`odometry.topic` alone, as {', '.join(f'`{name}`' for name in POSE_TYPES)}; "
            "any other layer of such a type only reads what it says.",
            "",
            "## Services",
            "",
            *table(
                ("service", "type", "while inactive"),
                [(f"`~/{s.name}`", f"`{_type(s.type)}`", "refused" if s.writes else "answered") for s in SERVICES],
            ),
            "",
            "## Topics",
            "",
            *table(("topic", "type", "what"), TOPICS),
            "",
            "## Diagnostics",
            "",
            *table(("status", "values"), diagnostics()),
            "",
        ]
    )


def types() -> list[tuple[str, str]]:
    """Return what is kept of each type that has a converter of its own."""
    return [(f"`{name}`", _kept(doc)) for name, doc in converter_docs().items()]


def diagnostics() -> list[tuple[str, str]]:
    """Return the keys of each kind of status in /diagnostics."""
    return [(name, ", ".join(keys).replace("<", "&lt;")) for name, keys in VALUES.items()]


def parameter_rows(specs: Iterable[SettingSpec]) -> list[str]:
    """Return a table of parameters."""
    rows = [
        (
            f"`{spec.name}`",
            f"`{list(spec.default)}`" if isinstance(spec.default, tuple) else f"`{_yaml(spec.default)}`",
            spec.allowed,
            f"{spec.doc}{f' [{spec.unit}]' if spec.unit else ''}",
            "yes" if spec.runtime else "",
        )
        for spec in specs
    ]
    return table(("name", "default", "allowed", "what", "at run time"), rows)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]


def _yaml(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else '""' if value == "" else str(value)


def _kept(doc: str) -> str:
    return doc.removeprefix("Return ").replace("<", "&lt;")


def _type(service: type) -> str:
    return f"{service.__module__.split('.')[0]}/srv/{service.__name__}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
