"""Declares the node's parameters from the table, with descriptors, and takes changes at run time."""

from __future__ import annotations

import difflib
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor, SetParametersResult
from rclpy.node import Node
from rclpy.parameter import Parameter

from memory_node.config import SettingSpec
from memory_node.errors import CorruptDatabaseError, InvalidArgument, StorageError, shown
from memory_node.ingest.delivery import ODOMETRY
from memory_node.ingest.layers import UNSET_LISTS, layer_table
from memory_node.ingest.parameters import MOUNTS, Parameters, check_own, node_table, read

_OWN = ("use_sim_time", "start_type_description_service")


def declare(node: Node) -> Parameters:
    """Read what files and arguments gave, check it, and declare every parameter with its type and descriptor.

    The node was made with `automatically_declare_parameters_from_overrides`: the names of layers and frames are not
    known before.

    Raises:
        InvalidArgument: naming the parameter, what came and what is allowed.
    """
    given = {name: p.value for name, p in node.get_parameters_by_prefix("").items()}
    parameters = read(given)
    for name in given:
        if name not in parameters.unread and name not in _OWN:
            node.undeclare_parameter(name)
    for name, spec in node_table().items():
        _declare(node, name, parameters[name], spec)
    for layer in parameters.layers:
        if layer.name == ODOMETRY:
            continue
        for name, spec in layer_table().items():
            # Left out, it is what the type makes it, which is found out later; a value here would read as given.
            if name != "is_internal_state" or layer.tells_of_body() is not None:
                _declare(node, f"{layer.name}.{name}", getattr(layer, name), spec)
    for frame, mount in parameters.mounts.items():
        descriptor = ParameterDescriptor(
            description="Where the sensor is on the base: [x, y, z, roll, pitch, yaw], m and rad.", read_only=True
        )
        node.declare_parameter(f"{MOUNTS}.{frame}", mount, descriptor, ignore_override=True)
    for name, meant in parameters.unread.items():
        node.get_logger().warning(f"parameter {name!r} is not read by this node{_hint(meant)}")
    return parameters


def _hint(meant: str) -> str:
    return f"; did you mean {meant!r}?" if meant else ""


def descriptor_of(spec: SettingSpec) -> ParameterDescriptor:
    """Return the descriptor: description with unit and what is allowed, range, read-only or not."""
    unit = f" [{spec.unit}]" if spec.unit else ""
    descriptor = ParameterDescriptor(
        description=f"{spec.doc}{unit}",
        additional_constraints=spec.allowed,
        read_only=not spec.runtime,
        # A parameter file that says 2 for 2.0 is right; the checks are ours.
        dynamic_typing=spec.type is float,
    )
    if spec.type is float and (math.isfinite(spec.low) or math.isfinite(spec.high)):
        low, high = max(spec.low, -sys.float_info.max), min(spec.high, sys.float_info.max)
        descriptor.floating_point_range = [FloatingPointRange(from_value=low, to_value=high)]
    if spec.type is int and math.isfinite(spec.low) and math.isfinite(spec.high):
        descriptor.integer_range = [IntegerRange(from_value=int(spec.low), to_value=int(spec.high))]
    return descriptor


def _declare(node: Node, name: str, value: Any, spec: SettingSpec) -> None:
    descriptor = descriptor_of(spec)
    if isinstance(value, tuple):
        value = list(value) or UNSET_LISTS[-1]  # rclpy takes an empty list for bytes
    node.declare_parameter(name, value, descriptor, ignore_override=True)


def check_changes(node: Node, parameters: Parameters, changed: Sequence[Parameter]) -> None:
    """Refuse changes as this node words it, before rclpy does: it names neither what came nor what is allowed.

    Raises:
        InvalidArgument: naming the parameter.
    """
    for parameter in changed:
        if not node.has_parameter(parameter.name):
            names = [name for name in node.get_parameters_by_prefix("") if parameters.has(name)]
            meant = next(iter(difflib.get_close_matches(parameter.name, names, 1)), "")
            raise InvalidArgument(parameter.name, "no such parameter" + _hint(meant))
        check_own(parameter.name, parameter.value)
        if parameters.has(parameter.name) or parameter.name.startswith(f"{MOUNTS}."):
            parameters.changed({parameter.name: parameter.value})


def follow_changes(node: Node, parameters: Parameters, apply: Callable[[dict[str, Any]], None]) -> None:
    """Hand changes of parameters to `apply`, names and values of one request at once.

    What it raises as InvalidArgument refuses the request.
    """

    def on_set(changed: list[Parameter]) -> SetParametersResult:
        try:
            apply({p.name: p.value for p in changed if parameters.has(p.name)})
        except InvalidArgument as error:
            return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    node.add_on_set_parameters_callback(on_set)


@contextmanager
def naming_database(db_path: str) -> Iterator[None]:
    """Let what is wrong with the database's place say which parameter gave it, what came and what is allowed."""
    try:
        yield
    except CorruptDatabaseError:
        raise
    except StorageError as error:
        allowed = "allowed is the path of a file that this node can write"
        raise StorageError(f"{error}; db_path: got {shown(db_path)}, {allowed}") from error


def database_path(db_path: str, ros_home: Path, namespace: str) -> Path:
    """Return where the database lies: a relative path is under $ROS_HOME/<namespace>.

    Raises:
        StorageError: ~ is of a user that is not there.
    """
    try:
        path = Path(db_path).expanduser()
    except RuntimeError as error:
        raise StorageError(f"{db_path}: leads nowhere ({error})") from error
    return path if path.is_absolute() else ros_home.expanduser() / namespace.strip("/") / path
