"""A hidden node with an executor of its own for the subscriptions.

rclpy's executors look at every entity of their nodes for each message. Beside two dozen services a message costs
several times what it costs in a node that has subscriptions alone, and one thread keeps a topic's messages in order.
"""

from __future__ import annotations

from collections.abc import Sequence

from rclpy.node import Node
from rclpy.parameter import Parameter

from memory_node.ros.executor import Spinner


class Listener:
    """Spins the hidden node `_<name>_<purpose>` in a thread of its own until it is closed."""

    def __init__(self, node: Node, purpose: str, resolve: Sequence[str] = ()) -> None:
        """Args: resolve: topics that are heard here under the names that the main node's remaps give them."""
        remaps = [argument for name in resolve for argument in ("-r", f"{name}:={node.resolve_topic_name(name)}")]
        # Global arguments would give it the name and remaps of the main node, which resolves the topics.
        self.node = Node(
            f"_{node.get_name()}_{purpose}",
            context=node.context,
            namespace=node.get_namespace(),
            cli_args=["--ros-args", *remaps],
            use_global_arguments=False,
            enable_rosout=False,
            start_parameter_services=False,
            parameter_overrides=[Parameter("start_type_description_service", value=False)],
        )
        self._spinner = Spinner(self.node, log=node.get_logger())

    def close(self) -> None:
        """Stop spinning, and remove the node."""
        self._spinner.close()
        self.node.destroy_node()
