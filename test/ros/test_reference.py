from __future__ import annotations

import yaml

from memory_node.ros.reference import PAGE, page


def test_the_reference_page_is_what_the_code_says() -> None:
    assert PAGE.read_text("utf-8") == page(), "run: scripts/run python -m memory_node.ros.reference"


def test_the_rviz_file_shows_the_markers_as_they_are_sent() -> None:
    file = PAGE.parents[1] / "config" / "memory.rviz"
    displays = yaml.safe_load(file.read_text("utf-8"))["Visualization Manager"]["Displays"]
    markers = next(display for display in displays if display["Class"] == "rviz_default_plugins/MarkerArray")
    assert markers["Topic"]["Value"] == "/memory/markers"
    assert markers["Topic"]["Durability Policy"] == "Transient Local"
