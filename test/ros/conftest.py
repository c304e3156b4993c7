"""Tests of the node need rclpy and the built interfaces."""

from __future__ import annotations

import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")
pytest.importorskip("robot_memory", reason="the interfaces are not built, see `make build`")


@pytest.fixture
def domain() -> None:
    """A DDS domain of the test's own."""
    from support.ros_harness import fresh_domain

    fresh_domain()
