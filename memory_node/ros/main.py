"""Starts the node, spins it, and stops it cleanly when it is told to; `memory_node.ros.start` is the executable."""

from __future__ import annotations

import logging
import os
import sys
import threading
from pathlib import Path
from typing import Any

import rclpy
import yaml
from rclpy.impl.rcutils_logger import RcutilsLogger
from rclpy.logging import get_logger
from rclpy.signals import SignalHandlerOptions

from memory_node.errors import InvalidArgument
from memory_node.ingest.parameters import RIGHT_FORM


class RosLogHandler(logging.Handler):
    """Hands the engine's log records to a ROS logger; that of a node also publishes them on `/rosout`."""

    def __init__(self, logger: RcutilsLogger) -> None:
        super().__init__()
        self._logger = logger

    def emit(self, record: logging.LogRecord) -> None:
        """Log a record. Each level has a line of its own: rclpy keeps the level of a calling line."""
        logger, text = self._logger, self.format(record)
        if record.levelno >= logging.ERROR:
            logger.error(text)
        elif record.levelno >= logging.WARNING:
            logger.warning(text)
        elif record.levelno >= logging.INFO:
            logger.info(text)
        else:
            logger.debug(text)


def _parameter_files(arguments: list[str]) -> dict[str, Any]:
    """The files in the arguments by name, parsed; raises ValueError with the file, the line and what is wrong there."""
    files = [after for before, after in zip(arguments, arguments[1:], strict=False) if before == "--params-file"]
    found = {}
    for name in files:
        try:
            found[name] = yaml.safe_load(Path(name).read_text(encoding="utf-8"))
        except OSError as error:
            raise ValueError(f"{name}: {error.strerror}") from error
        except yaml.MarkedYAMLError as error:
            line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
            said = ", ".join(part for part in (error.context, error.problem) if part)
            raise ValueError(f"{name}{line}: {said}") from error
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            raise ValueError(f"{name}: {str(error).splitlines()[0]}") from error
    return found


def explain_parameter_files(files: dict[str, Any]) -> str:
    """Return which parameter of the files ROS cannot read, and the right form, or ""."""
    for name, nodes in files.items():
        if not isinstance(nodes, dict) or not all(isinstance(n, dict) for n in nodes.values()):
            return f"{name}: the top level is a node's name, such as /**:, and under it ros__parameters:"
        if fault := _fault(nodes):
            return f"{name}: {fault}"
    return ""


def _fault(value: Any, path: str = "") -> str:
    if isinstance(value, dict):
        return next((f for key, item in value.items() if (f := _fault(item, f"{path}.{key}".lstrip(".")))), "")
    if not isinstance(value, list):
        return ""
    short = path.rpartition("ros__parameters.")[2]
    if any(isinstance(item, (dict, list)) for item in value):
        return f"{short}: a list of maps or lists is no ROS parameter; {RIGHT_FORM}"
    if len({type(item) for item in value}) > 1:
        return f"{short}: all items of a list must be of one type: write 1.0, not 1, beside 2.5"
    return ""


def run(stop: threading.Event, args: list[str] | None = None) -> int:
    """Run the node until `stop` is set, by SIGINT or SIGTERM; returns the exit code.

    0 after a signal or a shutdown from outside; 1 when it cannot start, with one line that says why.
    """
    if stop.is_set():
        return 0
    arguments = sys.argv if args is None else ["memory_node", *args]
    files: dict[str, Any] = {}
    try:
        files = _parameter_files(arguments)
        # Our own handlers: those of rclpy end the context before anything is flushed.
        rclpy.init(args=arguments, signal_handler_options=SignalHandlerOptions.NO)
    except Exception as error:
        print(f"memory_node: {explain_parameter_files(files) or error}", file=sys.stderr)
        return 1
    try:
        code = _run(stop)
    finally:
        rclpy.try_shutdown()
    if args is None:
        # All is committed and closed. The interpreter's own end takes seconds around a loaded model, and aborts around
        # one that is still loading.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return code


def _run(stop: threading.Event) -> int:
    from memory_node.ros.executor import Spinner
    from memory_node.ros.node import MemoryNode

    try:
        node = MemoryNode()
    except InvalidArgument as error:
        get_logger("memory").fatal(f"wrong parameter: {error}")
        return 1
    _bridge_logging(node.get_logger())
    spinner = Spinner(node, node.parameters["num_threads"], ended=stop.set)
    code = 0
    try:
        if node.parameters["autostart"] and not node.bring_up():
            node.get_logger().fatal(f"cannot start: {node.failure}")
            code = 1
        else:
            stop.wait()
    finally:
        stop.set()
        spinner.close()  # first: no question may be on its way when the services go
        node.close()
        node.destroy_node()
    return code


def _bridge_logging(to: RcutilsLogger) -> None:
    logger = logging.getLogger("memory_node")
    logger.setLevel(logging.INFO)
    logger.handlers = [RosLogHandler(to)]
    logger.propagate = False
