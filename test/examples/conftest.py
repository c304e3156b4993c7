"""A ROS context of its own for each test that asks for one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from support.domains import next_domain


@pytest.fixture
def ros_context() -> Iterator[Any]:
    """An initialised rclpy context in its own domain, on this machine only."""
    rclpy = pytest.importorskip("rclpy", reason="ROS is neither installed nor sourced")
    before = os.environ.get("ROS_AUTOMATIC_DISCOVERY_RANGE")
    os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
    context = rclpy.Context()
    rclpy.init(context=context, domain_id=next_domain())
    yield context
    rclpy.try_shutdown(context=context)
    if before is None:
        del os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"]
    else:
        os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = before
