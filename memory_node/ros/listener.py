"""A hidden node with an executor of its own for the subscriptions.

rclpy's executors look at every entity of their nodes for each message. Beside two dozen services a message costs
several times what it costs in a node that has subscriptions alone, and one thread keeps a topic's messages in order.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Sequence

from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter


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
        self._log = node.get_logger()
        self._executor = SingleThreadedExecutor(context=node.context)
        self._executor.add_node(self.node)
        self._closing = False
        self._thread = threading.Thread(target=self._spin, name="listener", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop spinning, and remove the node."""
        self._closing = True
        self._executor.shutdown(timeout_sec=1.0)
        self._thread.join(2.0)
        self.node.destroy_node()

    def _spin(self) -> None:
        while not self._closing:
            try:
                self._executor.spin()
            except ExternalShutdownException:
                return
            except Exception:
                if not self._closing:
                    self._log.error(f"a subscription failed: {traceback.format_exc()}", throttle_duration_sec=30.0)
