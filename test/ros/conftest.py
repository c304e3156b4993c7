"""Every run of these tests has a DDS domain of its own on this machine alone."""

from __future__ import annotations

import os
import random

import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")
pytest.importorskip("robot_memory", reason="the interfaces are not built, see `make build`")

os.environ["ROS_DOMAIN_ID"] = str(random.SystemRandom().randint(20, 100))
os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
