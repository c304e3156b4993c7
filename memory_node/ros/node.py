"""The lifecycle node: brings the memory up and down, and joins topics and services to it."""

from __future__ import annotations

import functools
import os
import threading
import traceback
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PointStamped
from rcl_interfaces.msg import SetParametersResult
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup, ReentrantCallbackGroup
from rclpy.clock import Clock, ClockType
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile
from rclpy.serialization import deserialize_message
from robot_memory.msg import MemoryStatus

from memory_node.config import settings_table
from memory_node.errors import ClosedError, InvalidArgument, MemoryNodeError
from memory_node.graph import Position
from memory_node.ingest.converters.reading import origin_of
from memory_node.ingest.delivery import ODOMETRY
from memory_node.ingest.frames import FrameResolver
from memory_node.ingest.intake import Intake
from memory_node.ingest.parameters import Parameters
from memory_node.memory import Memory
from memory_node.process import preload
from memory_node.protocols import Embedder
from memory_node.ros.clocks import CLOCK_TOPIC, RosClock, SilentClockWatch, with_publisher
from memory_node.ros.conversion import job_message, stamp_ns, status_message
from memory_node.ros.declare import check_changes, database_path, declare, follow_changes, naming_database
from memory_node.ros.diagnostics import without_own
from memory_node.ros.frames import frame_resolver
from memory_node.ros.listener import Listener
from memory_node.ros.models import embedder, summarizer
from memory_node.ros.reporting import Reporting, guarded
from memory_node.ros.services import SERVICES, ServiceSpec, answer
from memory_node.ros.subscriptions import Subscriptions, message_class

_REFRESH = 0.5
_REQUESTS = 100

Transition = Callable[["MemoryNode", LifecycleState], None]


def _logged(transition: Transition) -> Callable[[MemoryNode, LifecycleState], TransitionCallbackReturn]:
    """Turn what a transition raises into its result and a log line: rclpy swallows it."""

    @functools.wraps(transition)
    def run(node: MemoryNode, state: LifecycleState) -> TransitionCallbackReturn:
        try:
            transition(node, state)
        except MemoryNodeError as error:
            node.failure = str(error)
        except Exception as error:
            node.failure = f"{type(error).__name__}: {error}"
            node.get_logger().error(traceback.format_exc())
        else:
            return TransitionCallbackReturn.SUCCESS
        node.get_logger().error(f"{transition.__name__}: {node.failure}")
        return TransitionCallbackReturn.FAILURE

    return run


class MemoryNode(LifecycleNode):
    """Node `memory`: unconfigured it has its parameters, inactive it answers, active it takes in and stores.

    Attributes:
        parameters: checked ones; wrong ones raise InvalidArgument in the constructor.
        failure: why the last transition failed, or "".
    """

    # Those of the class: rclpy listens to the clock before the constructor is through.
    _clock_listener: Listener | None = None
    _clock_ticks = 0
    _clock_publisher: bytes | None = None

    def __init__(self, embedder: Embedder | None = None, **more: Any) -> None:
        """Read the parameters; an embedder given here takes the place of the one they name."""
        super().__init__("memory", automatically_declare_parameters_from_overrides=True, **more)
        self.parameters = declare(self)
        self.failure = ""
        self.given_embedder = embedder
        self.clock = RosClock(self.get_clock(), lambda: self._clock_publisher)
        self._open: _Open | None = None
        self._active = False
        self._transition = threading.RLock()
        follow_changes(self, self.parameters, self._change)

    def create_subscription(self, msg_type: Any, topic: str, callback: Any, *arguments: Any, **more: Any) -> Any:
        """Hear `/clock`, which rclpy subscribes to, in a node of its own.

        At ten times real time it comes 200 times a second, and beside two dozen services each message would cost this
        node's executor four milliseconds.
        """
        if topic != CLOCK_TOPIC:
            return super().create_subscription(msg_type, topic, callback, *arguments, **more)
        if self._clock_listener is None:
            self._clock_listener = Listener(self, "clock")

        def tick(message: Any, publisher: bytes | None) -> None:
            self._clock_ticks += 1
            self._clock_publisher = publisher
            callback(message)

        return self._clock_listener.node.create_subscription(
            msg_type, self.resolve_topic_name(topic), with_publisher(tick), *arguments, **more
        )

    def destroy_subscription(self, subscription: Any) -> bool:
        """Stop hearing a topic, `/clock` among them: rclpy does that when use_sim_time is set back."""
        heard = self._clock_listener is not None and self._clock_listener.node.destroy_subscription(subscription)
        return heard or super().destroy_subscription(subscription)

    def clock_ticks(self) -> int:
        """How many times `/clock` has come."""
        return self._clock_ticks

    def destroy_node(self) -> None:
        """End the listening to the clock as well."""
        if self._clock_listener is not None:
            self._clock_listener.close()
        super().destroy_node()

    def declare_parameters(self, namespace: str, parameters: Any, ignore_override: bool = False) -> Any:
        """Declare parameters; an empty list in a file comes without type or value, and is left unset."""
        kept = [entry for entry in parameters if len(entry) < 2 or entry[1] is not None]
        return super().declare_parameters(namespace, kept, ignore_override)

    def set_parameters_atomically(self, parameter_list: Sequence[Parameter]) -> SetParametersResult:
        """Set parameters, or say which of them was wrong, what came and what is allowed."""
        try:
            check_changes(self, self.parameters, parameter_list)
        except InvalidArgument as error:
            return SetParametersResult(successful=False, reason=str(error))
        return super().set_parameters_atomically(parameter_list)

    # ---- transitions

    @_logged
    def on_configure(self, state: LifecycleState) -> None:
        """Open the database and the services."""
        with self._transition:
            self._open = _Open(self)
            self.get_logger().info(f"memory in {self._open.memory.settings.db_path}")
            if not self.parameters["layers"]:
                self.get_logger().warning("layers: none is given, so only store_specific_memory brings anything in")

    @_logged
    def on_activate(self, state: LifecycleState) -> None:
        """Listen to the topics, and start housekeeping."""
        with self._transition:
            self._rooms.activate()
            self._active = True

    @_logged
    def on_deactivate(self, state: LifecycleState) -> None:
        """Stop listening, and commit what has come."""
        with self._transition:
            self._active = False
            self._rooms.deactivate()

    @_logged
    def on_cleanup(self, state: LifecycleState) -> None:
        """Close the database and the services."""
        self.close()

    @_logged
    def on_shutdown(self, state: LifecycleState) -> None:
        """Commit and close, from any state."""
        self.close()

    @_logged
    def on_error(self, state: LifecycleState) -> None:
        """Close what is open, so that configuring can be tried again."""
        self.close()

    def bring_up(self) -> bool:
        """Configure and activate; returns whether both worked."""
        return (
            self.trigger_configure() == TransitionCallbackReturn.SUCCESS
            and self.trigger_activate() == TransitionCallbackReturn.SUCCESS
        )

    def close(self) -> None:
        """Commit what has come, and close the database; a second call does nothing."""
        with self._transition:
            self._active = False
            opened, self._open = self._open, None
            if opened is not None:
                opened.close()

    # ---- what services need

    @property
    def _rooms(self) -> _Open:
        if self._open is None:
            raise ClosedError("the node is not configured")
        return self._open

    @property
    def memory(self) -> Memory:
        """The open memory. Raises ClosedError."""
        return self._rooms.memory

    @property
    def active(self) -> bool:
        """Whether it takes in and stores."""
        return self._active

    @property
    def has_time(self) -> bool:
        """Whether the clock has started: under use_sim_time it stands at 0 until `/clock` comes."""
        return self.clock.now_ns() > 0

    def to_memory_frame(self, argument: str, point: PointStamped) -> Position:
        """Return a point in the memory's frame; another frame is transformed, or refused by name."""
        rooms = self._rooms
        frame = origin_of(point).frame
        at = (point.point.x, point.point.y, point.point.z)
        stamp = stamp_ns(point.header.stamp)
        when = self.clock.now_ns() if stamp is None else stamp
        settings, pose = rooms.memory.settings, rooms.memory.track.at(when)
        # A pose may hold for longer while the robot stands; transforms of tf2 do not.
        transform = rooms.resolver.transform(frame, when, pose, hold=settings.stale_after)
        if transform is None:
            mine = settings.frame
            why = rooms.resolver.why_unknown(frame, when, pose)
            raise InvalidArgument(argument, f"frame {frame!r} cannot be transformed to {mine!r}: {why}")
        return transform.apply(at)

    def flush(self) -> None:
        """Store what is held, and commit."""
        self._rooms.intake.release()
        self._rooms.memory.flush()

    def set_map(self, map_id: str) -> None:
        """Say which map positions belong to from now on; what came before belongs to the old one."""
        rooms = self._rooms
        rooms.intake.settle(lambda: rooms.memory.set_map(map_id))

    def status_message(self) -> MemoryStatus:
        """The memory's status with its jobs, and the layers as the node sees them."""
        rooms = self._rooms
        status = rooms.memory.status()
        layers = rooms.reporting.layers(status)
        problems = [f"layer {layer.name}: {layer.problem}" for layer in layers if layer.problem]
        message = status_message(status, layers, rooms.reporting.warnings() + problems)
        message.jobs = [job_message(job) for job in rooms.memory.jobs()]
        return message

    def _change(self, changes: dict[str, Any]) -> None:
        with self._transition:
            self.parameters = self.parameters.changed(changes)
            if self._open is not None and changes:
                self._open.apply(self.parameters)


class _Open:
    """What is there between configure and cleanup."""

    def __init__(self, node: MemoryNode) -> None:
        self._node = node
        with ExitStack() as opened:  # what is open already is closed again when the rest cannot be opened
            self._bring_up(node.parameters, opened)
            self._opened = opened.pop_all()

    def _bring_up(self, parameters: Parameters, opened: ExitStack) -> None:
        node = self._node
        given = parameters.settings.db_path
        with naming_database(given):
            path = database_path(given, Path(os.environ.get("ROS_HOME", "~/.ros")), node.get_namespace())
        settings = parameters.settings.changed(db_path=str(path))
        preload()  # now, while no topic waits for its callback
        loading = None if node.given_embedder else embedder(parameters)
        if loading is not None:
            opened.callback(loading.close)
        with naming_database(given):
            self.memory = Memory.open(
                embedder=node.given_embedder or loading,
                summarizer=summarizer(parameters),
                clock=node.clock,
                settings=settings,
            )
        opened.callback(self.memory.close)
        self.resolver: FrameResolver = frame_resolver(node, settings.frame, parameters["base_frame"], parameters.mounts)
        opened.callback(self.resolver.close)
        self.intake = Intake(
            self.memory,
            parameters.layers,
            node.clock,
            self.resolver,
            queue_size=parameters["queue_size"],
            decode=self._decode,
        )
        self.subscriptions = Subscriptions(node, self.intake, parameters.layers, self._declare)
        opened.callback(self.subscriptions.destroy)
        self.apply(parameters)
        self.reporting = Reporting(
            node, self.memory, self.intake, self.subscriptions, SilentClockWatch(node, node.clock, node.clock_ticks)
        )
        opened.callback(self.reporting.close)
        reading, long_writing = ReentrantCallbackGroup(), MutuallyExclusiveCallbackGroup()
        for spec in SERVICES:
            opened.callback(node.destroy_service, self._service(spec, long_writing if spec.long else reading))
        # ROS timers sleep as long as the clock went back.
        timer = node.create_timer(
            _REFRESH,
            guarded(node, self.subscriptions.refresh),
            MutuallyExclusiveCallbackGroup(),
            Clock(clock_type=ClockType.STEADY_TIME),
        )
        opened.callback(node.destroy_timer, timer)

    def _decode(self, data: bytes, type_name: str) -> Any:
        message = deserialize_message(data, message_class(type_name))
        if isinstance(message, DiagnosticArray):
            return without_own(message, self._node.get_fully_qualified_name())
        return message

    def _service(self, spec: ServiceSpec, group: Any) -> Any:
        node = self._node

        def callback(request: Any, response: Any) -> Any:
            return answer(spec, node, node.active, request, response, node.get_logger())

        # The default depth of 10 loses requests when more askers come at once.
        quality = QoSProfile(depth=_REQUESTS)
        return node.create_service(spec.type, f"~/{spec.name}", callback, qos_profile=quality, callback_group=group)

    def activate(self) -> None:
        self.intake.start()
        self.subscriptions.open()
        self.memory.start_housekeeping()

    def deactivate(self) -> None:
        self.subscriptions.close()
        self.intake.stop()
        if self.intake.auto_store:
            self.intake.release()
        self.memory.flush()

    def apply(self, parameters: Parameters) -> None:
        """Let everything that may change at run time be as the parameters say."""
        table, settings = settings_table(), parameters.settings
        self.memory.configure(**{name: getattr(settings, name) for name in table if table[name].runtime})
        self.memory.track.max_stddev = parameters["position_max_stddev"]
        self.resolver.wait = parameters["frame_timeout"]
        self.intake.auto_store, self.intake.limits = settings.auto_store, parameters.stamp_limits
        for layer in parameters.layers:
            self.intake.layers[layer.name] = layer
            self._declare(layer.name, self.subscriptions[layer.name].type_name)

    def _declare(self, name: str, type_name: str) -> None:
        """Tell the memory which side a layer is on, as soon as its type makes that known."""
        layer = self.intake.layers[name]
        if name != ODOMETRY and (body := layer.tells_of_body(type_name)) is not None:
            self.memory.declare_layer(name, body, layer.stale_after or None)

    def close(self) -> None:
        with self._opened:
            self.deactivate()
