"""Two nodes in two namespaces, each fed at 20 Hz: their resident memory must be flat after warm-up.

python -m benchmarks.soak_node --minutes 60 --json soak_node.json
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import signal
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import rclpy
import yaml
from ament_index_python.packages import get_package_prefix
from nav_msgs.msg import Odometry
from robot_memory import srv
from robot_memory.msg import Detection, DetectionArray
from sensor_msgs.msg import BatteryState
from std_msgs.msg import String

HZ = 20.0
ROBOTS = ("robot1", "robot2")
GROWTH = 1.10
"""Most that the last quarter may lie above the second one."""
PARAMETERS: dict[str, Any] = {
    "layers": ["detections", "scene", "battery"],
    "detections": {"topic": "detections", "type": "robot_memory/msg/DetectionArray", "max_rate_hz": 0.0},
    "scene": {"topic": "scene", "type": "std_msgs/msg/String", "max_rate_hz": 0.0},
    "battery": {"topic": "battery", "type": "sensor_msgs/msg/BatteryState", "is_internal_state": True},
    "fold_repeats": True,
    # A day's cycle in minutes, so that what housekeeping gives back is seen.
    "consolidation_window": 60.0,
    "consolidation_interval": 20.0,
    "archive_after_seconds": 120.0,
}


class Robot:
    """Publishes all topics of one robot, driving in circles through a home with twenty things."""

    def __init__(self, node: Any, name: str) -> None:
        self._clock, self._chance, self._step = node.get_clock(), random.Random(name), 0
        self._odometry = node.create_publisher(Odometry, f"/{name}/odom", 10)
        self._detections = node.create_publisher(DetectionArray, f"/{name}/detections", 10)
        self._scene = node.create_publisher(String, f"/{name}/scene", 10)
        self._battery = node.create_publisher(BatteryState, f"/{name}/battery", 10)
        self.status = node.create_client(srv.GetStatus, f"/{name}/memory/get_status")
        self.search = node.create_client(srv.SemanticSearch, f"/{name}/memory/semantic_search")

    def publish(self) -> None:
        """Send one message on each topic."""
        self._step += 1
        angle, now = self._step * 0.002, self._clock.now().to_msg()
        pose = Odometry(child_frame_id="base_link")
        pose.header.stamp, pose.header.frame_id = now, "map"
        pose.pose.pose.position.x, pose.pose.pose.position.y = 8.0 * math.cos(angle), 8.0 * math.sin(angle)
        pose.pose.pose.orientation.w = 1.0
        thing = self._chance.randrange(20)
        seen = Detection(label=f"thing {thing % 10}", confidence=0.9, has_position=True)
        seen.position.x, seen.position.y = 9.0 * math.cos(thing), 9.0 * math.sin(thing)
        look = DetectionArray(detections=[seen])
        look.header.stamp, look.header.frame_id = now, "map"
        battery = BatteryState(percentage=0.5 + 0.4 * math.sin(angle), present=True, voltage=12.0)
        battery.header.stamp = now
        self._odometry.publish(pose)
        self._detections.publish(look)
        self._scene.publish(String(data=f"view {self._step % 2000} of room {thing % 5}"))
        self._battery.publish(battery)


def start(folder: Path, robot: str, model: str) -> subprocess.Popen[bytes]:
    """Start the real executable in the robot's namespace."""
    path = folder / f"{robot}.yaml"
    given = PARAMETERS | {"db_path": str(folder / f"{robot}.db"), "embedder": {"model": model}}
    path.write_text(yaml.safe_dump({"/**": {"ros__parameters": given}}), encoding="utf-8")
    executable = Path(get_package_prefix("robot_memory")) / "lib" / "robot_memory" / "memory_node"
    command = [str(executable), "--ros-args", "--params-file", str(path), "-r", f"__ns:=/{robot}"]
    with (folder / f"{robot}.log").open("wb") as log:
        return subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)


def resident_mb(pid: int) -> float:
    """Resident memory of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def soak(minutes: float, model: str, folder: Path) -> dict[str, list[float]]:
    """Feed both nodes; returns the resident MB of each, sampled so that there are 60 samples or more."""
    rclpy.init()
    node = rclpy.create_node("soak")
    processes = {name: start(folder, name, model) for name in ROBOTS}
    robots = {name: Robot(node, name) for name in ROBOTS}
    samples: dict[str, list[float]] = {name: [] for name in ROBOTS}
    for robot in robots.values():
        assert robot.status.wait_for_service(60.0)
    began = time.monotonic()
    every, ticks = min(30.0, minutes), 0
    while time.monotonic() - began < 60.0 * minutes:
        for robot in robots.values():
            robot.publish()
        ticks += 1
        if ticks % round(HZ) == 0:
            for robot in robots.values():
                future = robot.search.call_async(srv.SemanticSearch.Request(query="thing in a room"))
                rclpy.spin_until_future_complete(node, future, timeout_sec=5.0)
        if ticks % round(HZ * every) == 0:
            for name, process in processes.items():
                samples[name].append(resident_mb(process.pid))
            print(
                f"{(time.monotonic() - began) / 60.0:6.1f} min ",
                {n: round(s[-1]) for n, s in samples.items()},
                flush=True,
            )
        time.sleep(max(0.0, began + ticks / HZ - time.monotonic()))
    for process in processes.values():
        process.send_signal(signal.SIGTERM)
        assert process.wait(10.0) == 0
    node.destroy_node()
    rclpy.try_shutdown()
    return samples


def main() -> int:
    """Command line; 1 when a node grew."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--model", default="", help="embedding model (default: none)")
    parser.add_argument("--json", type=Path, help="write the samples here")
    options = parser.parse_args()
    os.environ.setdefault("ROS_DOMAIN_ID", str(random.SystemRandom().randint(20, 100)))
    os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    with tempfile.TemporaryDirectory() as folder:
        samples = soak(options.minutes, options.model, Path(folder))
    growth = {}
    for name, found in samples.items():
        quarter = max(1, len(found) // 4)
        growth[name] = statistics.median(found[-quarter:]) / statistics.median(found[quarter : 2 * quarter])
        print(
            f"{name}: {found[0]:.0f} MB at first, {found[-1]:.0f} MB at last; "
            f"the last quarter is {growth[name]:.3f} of the second"
        )
    if options.json is not None:
        options.json.write_text(json.dumps({"mb": samples, "growth": growth}, indent=2) + "\n", encoding="utf-8")
    return 0 if all(value <= GROWTH for value in growth.values()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
