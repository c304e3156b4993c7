"""Which topic a layer hears when names are remapped."""

from __future__ import annotations

from pathlib import Path

import pytest
from std_msgs.msg import Float32, String
from support.ros_harness import layer, node_here, peer, wait_until

STRING = "std_msgs/msg/String"


@pytest.mark.parametrize(("type_name", "second"), [("", "/nothing"), (STRING, "/rear")])
def test_f6_a_name_that_a_remap_gave_is_not_remapped_again(tmp_path: Path, type_name: str, second: str) -> None:
    parameters = {"layers": ["front"], "front": layer("/front", type_name)}
    remaps = ("-r", "/front:=/back", "-r", f"/back:={second}")
    with node_here(tmp_path, parameters, arguments=remaps), peer() as other:
        other.publisher("/rear", Float32, expect=False)
        other.publish("/back", String(data="a red chair"))
        assert [row.text for row in other.wait_rows(1, "front")] == ["a red chair"]
        wait_until(lambda: other.layer("front").publishers == 1, "its publishers were counted")
        status = other.layer("front")
        assert (status.topic, status.type, status.problem) == ("/back", STRING, "")
