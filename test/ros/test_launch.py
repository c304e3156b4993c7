"""The launch file under launch_testing; what it starts is tested as a process in test_node_process.py too."""

from __future__ import annotations

import tempfile
import unittest
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("launch_ros", reason="launch_ros does not import: it has no wheel")
pytest.importorskip("launch_testing", reason="launch_testing does not import: it has no wheel")

import launch_testing.actions  # noqa: E402
import launch_testing.asserts  # noqa: E402
from launch import LaunchDescription  # noqa: E402
from launch.actions import IncludeLaunchDescription, SetEnvironmentVariable  # noqa: E402
from launch.launch_description_sources import PythonLaunchDescriptionSource  # noqa: E402

FILE = Path(__file__).resolve().parents[2] / "launch" / "memory.launch.py"


@pytest.mark.launch_test
def generate_test_description() -> Any:
    """The node in a namespace, with a home of its own."""
    source = PythonLaunchDescriptionSource(str(FILE))
    return LaunchDescription(
        [
            SetEnvironmentVariable("ROS_HOME", tempfile.mkdtemp()),
            IncludeLaunchDescription(source, launch_arguments={"namespace": "robot1", "log_level": "info"}.items()),
            launch_testing.actions.ReadyToTest(),
        ]
    )


class TestRunning(unittest.TestCase):
    def test_the_database_lies_under_the_namespace(self, proc_output: Any) -> None:
        proc_output.assertWaitFor("robot1/memory.db", timeout=30)


@launch_testing.post_shutdown_test()
class TestStopped(unittest.TestCase):
    def test_it_ended_cleanly(self, proc_info: Any) -> None:
        launch_testing.asserts.assertExitCodes(proc_info)
