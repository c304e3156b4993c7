"""The launch file under the real `launch_ros`: each of its arguments, memories side by side, and Ctrl-C."""

from __future__ import annotations

import tempfile
import unittest
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("launch_ros", reason="launch_ros is neither installed nor sourced")
pytest.importorskip("robot_memory", reason="the interfaces are not built, see `make build`")

import launch_testing.actions  # noqa: E402
from launch import LaunchDescription  # noqa: E402
from launch.actions import IncludeLaunchDescription, SetEnvironmentVariable  # noqa: E402
from launch.launch_description_sources import PythonLaunchDescriptionSource  # noqa: E402
from lifecycle_msgs.msg import Transition  # noqa: E402
from lifecycle_msgs.srv import ChangeState, GetState  # noqa: E402
from rcl_interfaces.srv import GetParameters  # noqa: E402
from support.ros_harness import QUIET, ROOT, Peer, fresh_domain, layer, parameter_file, peer, wait_until  # noqa: E402

LAUNCH_FILE = ROOT / "launch" / "memory.launch.py"
HOME = tempfile.TemporaryDirectory(prefix="memory_launch_")
START_SECONDS = 30.0


def _memory(**arguments: str) -> IncludeLaunchDescription:
    return IncludeLaunchDescription(PythonLaunchDescriptionSource(str(LAUNCH_FILE)), launch_arguments=arguments.items())


@pytest.mark.launch_test
def generate_test_description() -> Any:
    """Memories: every default, a file of its own, waiting for a lifecycle manager, and a file that is missing."""
    fresh_domain()
    home = Path(HOME.name)
    file = parameter_file(home, QUIET | {"flush_interval": 0.25, "layers": ["door"], "door": layer("door")})
    description = LaunchDescription(
        [
            SetEnvironmentVariable("ROS_HOME", str(home)),
            _memory(),
            _memory(namespace="one", params_file=str(file), log_level="debug"),
            _memory(namespace="two", params_file=str(file), use_sim_time="true", autostart="false", log_level="error"),
            _memory(namespace="three", params_file=str(home / "missing.yaml")),
            launch_testing.actions.ReadyToTest(),
        ]
    )
    return description, {"home": home}


def _state(other: Peer) -> str:
    return str(other.call("get_state", START_SECONDS, kind=GetState).current_state.label)


def _change(other: Peer, transition: int) -> bool:
    request = {"transition": Transition(id=transition)}
    return bool(other.call("change_state", START_SECONDS, kind=ChangeState, **request).success)


def _values(other: Peer, *names: str) -> list[Any]:
    return list(other.call("get_parameters", START_SECONDS, kind=GetParameters, names=list(names)).values)


@contextmanager
def _active(memory: str) -> Iterator[Peer]:
    with peer(memory) as other:
        wait_until(lambda: _state(other) == "active", f"{memory} is active", START_SECONDS)
        yield other


class TestMemories(unittest.TestCase):
    def test_defaults_are_the_shipped_file_and_wall_time(self, home: Path) -> None:
        with _active("/memory") as other:
            layers, simulated, autostart = _values(other, "layers", "use_sim_time", "autostart")
            self.assertEqual(list(layers.string_array_value), ["detections", "scene", "battery"])
            self.assertFalse(simulated.bool_value)
            self.assertTrue(autostart.bool_value)
            self.assertTrue((home / "memory.db").is_file())

    def test_a_file_of_ones_own(self) -> None:
        with _active("/one/memory") as other:
            layers, interval = _values(other, "layers", "flush_interval")
            self.assertEqual(list(layers.string_array_value), ["door"])
            self.assertEqual(interval.double_value, 0.25)
            self.assertEqual(other.layer("door").topic, "/one/door")

    def test_two_namespaces_have_databases_and_answers_of_their_own(self, home: Path) -> None:
        with _active("/one/memory") as one, _active("/memory") as root:
            stored = one.call("store_specific_memory", text="the key hangs behind the door")
            self.assertTrue(stored.success, stored.message)
            self.assertEqual([m.text for m in one.rows("notes")], ["the key hangs behind the door"])
            self.assertEqual(len(root.call("temporal_query").matches), 0)
            self.assertTrue((home / "one" / "memory.db").is_file())

    def test_without_autostart_a_manager_brings_it_up(self, home: Path) -> None:
        with peer("/two/memory") as other:
            simulated, autostart = _values(other, "use_sim_time", "autostart")
            self.assertTrue(simulated.bool_value)
            self.assertFalse(autostart.bool_value)
            self.assertEqual(_state(other), "unconfigured")
            self.assertFalse((home / "two").exists())
            self.assertTrue(_change(other, Transition.TRANSITION_CONFIGURE))
            self.assertTrue(other.call("temporal_query").success)
            self.assertFalse(other.call("flush").success)
            self.assertTrue(_change(other, Transition.TRANSITION_ACTIVATE))
            self.assertTrue(other.call("flush").success)


@launch_testing.post_shutdown_test()
class TestAfterCtrlC(unittest.TestCase):
    def test_every_memory_exits_with_0(self, proc_info: Any) -> None:
        """F13: launch ends its processes by SIGINT, as Ctrl-C does; the one without its file had ended by itself."""
        codes = sorted(process.returncode for process in proc_info)
        self.assertEqual(codes, [0, 0, 0, 1])

    def test_output(self, proc_output: Any) -> None:
        """F13: no traceback. The log level is the one that was asked for, and a missing file is named."""
        texts = {name: b"".join(o.text for o in proc_output[name]).decode() for name in proc_output.process_names()}
        self.assertEqual([name for name, text in texts.items() if "Traceback" in text], [])
        refused = [name for name, text in texts.items() if "missing.yaml: No such file or directory" in text]
        self.assertEqual(len(refused), 1)
        levels = [[level for level in ("DEBUG", "INFO") if f"[{level}]" in text] for text in texts.values()]
        self.assertEqual(sorted(levels), [[], [], ["DEBUG", "INFO"], ["INFO"]])
