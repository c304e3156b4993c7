from __future__ import annotations

from memory_node.ros.reference import PAGE, page


def test_the_reference_page_is_what_the_code_says() -> None:
    assert PAGE.read_text("utf-8") == page(), "run: scripts/run python -m memory_node.ros.reference"
