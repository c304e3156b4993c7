"""Takes messages from callbacks, and brings what is good of them to the memory from a thread of its own."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from memory_node.errors import InvalidArgument, MemoryNodeError
from memory_node.ingest.converters import Origin, Percept, Refused
from memory_node.ingest.converters.reading import origin_of
from memory_node.ingest.counts import MessageCounts
from memory_node.ingest.delivery import Delivery, Later, Sink
from memory_node.ingest.frames import FrameResolver, StaticMounts
from memory_node.ingest.gates import Gate
from memory_node.ingest.layers import LayerSettings
from memory_node.ingest.stamps import Stamped, StampLimits, sane_stamp
from memory_node.protocols import Clock

log = logging.getLogger(__name__)

NS = 1_000_000_000
_CLOCK_BACK = 1 * NS
_TICK = 0.05
_REPORT_EVERY = 30 * NS
_REPORTS = 20


@dataclass
class Arrival:
    """A message on its way: received in ns of the node's clock, arrived in ns of the steady clock.

    Attributes:
        percept: what it says, once it was converted; the message itself is let go then.
    """

    layer: LayerSettings
    type_name: str
    message: Any
    received: int
    arrived: int
    number: int
    epoch: int
    origin: Origin = field(default_factory=Origin)
    stamped: Stamped = Stamped(0, "")
    percept: Percept | None = None


class Intake:
    """A bounded queue before the memory, one worker behind it.

    `put` only enqueues. The worker takes poses first, so that a perception finds the pose of its moment; what needs a
    pose or a transform that is late waits aside for a moment without holding up the rest. When more waits than may, in
    the queue and aside, the oldest message of the busiest layer goes, and is counted. Nothing a message holds makes it
    stop.

    Attributes:
        auto_store: False: the newest message of each layer is held until `release`.
        layers: layer name -> its settings, which the next message finds; limits: how far stamps may lie.
        counts: layer name -> MessageCounts.
    """

    def __init__(
        self,
        sink: Sink,
        layers: Iterable[LayerSettings],
        clock: Clock,
        resolver: FrameResolver | None = None,
        limits: StampLimits | None = None,
        queue_size: int = 2000,
        auto_store: bool = True,
        steady: Callable[[], int] = time.monotonic_ns,
        decode: Callable[[Any, str], Any] | None = None,
    ) -> None:
        """Make an intake without its worker, see `start`.

        Args:
            queue_size: messages waiting, all layers together, those aside included.
            steady: ns of a clock that never jumps.
            decode: makes a message of what was put and its type name, in the worker, or None when it is to be passed
                over; without it messages are put as such.
        """
        self.auto_store = auto_store
        self.layers = {layer.name: layer for layer in layers}
        self.counts = {name: MessageCounts() for name in self.layers}
        self._clock = clock
        self._sink = sink
        self._resolver = resolver or StaticMounts(sink.settings.frame)
        self._delivery = Delivery(sink, self._resolver, self.counts, self._report)
        self.limits = limits or StampLimits()
        self._queue_size = queue_size
        self._steady = steady
        self._decode = decode
        self._queues: dict[str, deque[Arrival]] = {name: deque() for name in self.layers}
        self._gates: dict[str, Gate[Arrival]] = {}
        self._renew_gates()
        self._aside: dict[str, deque[Arrival]] = {name: deque() for name in self.layers}
        self._fired: deque[str] = deque()
        self._waiting = self._late = self._number = self._epoch = 0
        self._worked_epoch = self._forgotten_epoch = 0
        self._last_seen = 0
        self._is_torn = False  # two clocks quarrel, and gates go by the steady clock
        self._reported: dict[str, dict[str, int]] = {name: {} for name in self.layers}
        self._arrived = threading.Condition()
        self._work = threading.RLock()
        self._stopping = False
        self._thread: threading.Thread | None = None

    # ---- from callbacks

    def put(self, layer: str, message: Any, type_name: str) -> None:
        """Enqueue a message of a layer; takes microseconds, whatever the worker does."""
        counts = self.counts[layer]
        with self._arrived:
            received, steady = self._clock.now_ns(), self._steady()
            self._see(received)
            self._number += 1
            counts.arrive(steady, type_name)
            self._queues[layer].append(
                Arrival(self.layers[layer], type_name, message, received, steady, self._number, self._epoch)
            )
            self._waiting += 1
            self._make_room()
            self._arrived.notify()

    def _see(self, now: int) -> None:
        """Note what the clock says; a clock that went back begins an epoch."""
        if now < self._last_seen - _CLOCK_BACK:
            self._epoch += 1
        self._last_seen = now

    def fire(self, topic: str) -> None:
        """A trigger topic fired: the newest message of each layer that waits for it passes."""
        with self._arrived:
            self._fired.append(topic)
            self._arrived.notify()

    def _make_room(self) -> None:
        """Drop the oldest of the busiest layer while more waits than may."""
        while self._waiting + self._late > self._queue_size:
            busiest = max(self._queues, key=lambda name: len(self._queues[name]) + len(self._aside[name]))
            if self._take_aside(busiest) is None:
                self._queues[busiest].popleft()
                self._waiting -= 1
            self.counts[busiest].dropped += 1

    def _take_aside(self, name: str) -> Arrival | None:
        """The oldest message of a layer that waits aside."""
        with self._arrived:
            if not self._aside[name]:
                return None
            self._late -= 1
            return self._aside[name].popleft()

    def _put_aside(self, arrival: Arrival) -> None:
        with self._arrived:
            self._aside[arrival.layer.name].append(arrival)
            self._late += 1
            self._make_room()

    # ---- control

    def start(self) -> None:
        """Start the worker."""
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="intake", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Work off what waits, and stop the worker."""
        with self._arrived:
            self._stopping = True
            self._arrived.notify()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self.drain()

    def work(self) -> None:
        """Do one round of the worker, for callers without its thread; what waits for a pose stays aside."""
        with self._work:
            self._step(retry=True)

    def drain(self) -> None:
        """Work off everything that waits, without waiting for poses or transforms that may come."""
        with self._work:
            self._step(retry=False)
            self._deliver_aside()

    def release(self) -> None:
        """Let every held message pass: what `flush` asks for."""
        with self._work:
            self.drain()
            for gate in self._gates.values():
                if (held := gate.fire()) is not None:
                    self._deliver(held, patient=False)

    def settle(self, change: Callable[[], None]) -> None:
        """Work off all that came before a change of what it belongs to, such as the map, then make the change.

        What waits for a trigger or for `release` would not have been stored by itself, and is passed over.
        """
        with self._work:
            self.drain()
            self._leave_gates()
            change()

    @property
    def waiting(self) -> int:
        """Messages received of which it is not decided yet what becomes of them."""
        with self._work, self._arrived:
            return self._waiting + self._late + sum(gate.holds for gate in self._gates.values())

    # ---- the worker

    def _run(self) -> None:
        retried = 0.0
        while not self._stopping:
            # What waits aside is looked at once a tick, however often a message arrives.
            if retry := time.monotonic() - retried >= _TICK:
                retried = time.monotonic()
            try:
                with self._work:
                    self._step(retry)
            except Exception:  # the worker is the only way in: it must outlive what nobody foresaw
                log.exception("intake: unexpected error, going on")
            with self._arrived:
                if not self._waiting and not self._fired and not self._stopping:
                    self._arrived.wait(_TICK)

    def _step(self, retry: bool) -> None:
        self._look_at_clock()
        for name, aside in self._aside.items() if retry else ():
            for _ in range(len(aside)):
                if (late := self._take_aside(name)) is not None:
                    self._deliver(late, patient=True)
        while (arrival := self._next()) is not None:
            self._admit(arrival)
        now = self._steady() if self._is_torn else self._clock.now_ns()
        for name, gate in self._gates.items():
            if (held := gate.due(now, not self.auto_store)) is not None:
                self._deliver(held, patient=True)
            self._take_thinned(name, gate)
        while self._fired:
            self._fire(self._fired.popleft())

    def _look_at_clock(self) -> None:
        """Forget transforms of another time, once: those heard after the jump are of the new one."""
        with self._arrived:
            now = self._clock.now_ns()
            self._see(now)
            went_back, self._forgotten_epoch = self._epoch != self._forgotten_epoch, self._epoch
        if reason := self._sink.check_clock() if now > 0 else "":
            log.warning("%s: a new session begins, poses and transforms of the old one are forgotten", reason)
        if reason or (went_back and not self._sink.has_two_clocks):
            self._resolver.reset()
        if self._is_torn != self._sink.has_two_clocks:
            self._leave_gates()
            self._is_torn = not self._is_torn
            self._renew_gates()

    def _next(self) -> Arrival | None:
        """The next message: of the oldest clock, poses first, then in the order of arrival."""
        with self._arrived:
            heads = [queue[0] for queue in self._queues.values() if queue]
            if not heads:
                return None
            first = min(heads, key=lambda a: (a.epoch, not self._delivery.is_pose(a.layer, a.type_name), a.number))
            self._waiting -= 1
            return self._queues[first.layer.name].popleft()

    def _admit(self, arrival: Arrival) -> None:
        """Judge the stamp, and offer the message to its layer's gate."""
        if arrival.epoch != self._worked_epoch:
            self._change_epoch(arrival.epoch)
        name = arrival.layer.name
        try:
            if self._decode is not None:
                arrival.message = self._decode(arrival.message, arrival.type_name)
                if arrival.message is None:
                    self.counts[name].thinned += 1
                    return
            arrival.origin = origin_of(arrival.message)
            arrival.stamped = sane_stamp(arrival.origin.stamp, arrival.received, self.limits)
        except Refused as refusal:
            self._refuse(name, str(refusal))
            return
        except Exception as error:
            self._refuse(name, f"not readable: {type(error).__name__}", detail=str(error))
            return
        if arrival.stamped.fault:
            self._report(
                name, f"stamps are not usable ({arrival.stamped.source}), using the time of arrival", again=False
            )
        gate = self._gates[name]
        when = arrival.arrived if self._is_torn else arrival.received
        passing = gate.offer(arrival, when, not self.auto_store)
        self._take_thinned(name, gate)
        for passed in passing:
            self._deliver(passed, patient=True)

    def _change_epoch(self, epoch: int) -> None:
        """The clock went back: what was held belongs to the old time and passes first.

        Where two clocks quarrel no time is over: what waits for its transform or its turn goes on waiting.
        """
        self._worked_epoch = epoch
        if not self._sink.has_two_clocks:
            self._deliver_aside()
            self._leave_gates()
            self._renew_gates()
        self._look_at_clock()
        self._delivery.reset()

    def _deliver_aside(self) -> None:
        for name in self._aside:
            while (late := self._take_aside(name)) is not None:
                self._deliver(late, patient=False)

    def _renew_gates(self) -> None:
        self._gates = {name: Gate(layer) for name, layer in self.layers.items()}

    def _leave_gates(self) -> None:
        for name, gate in self._gates.items():
            if (held := gate.leave(not self.auto_store)) is not None:
                self._deliver(held, patient=False)
            self._take_thinned(name, gate)

    def _fire(self, topic: str) -> None:
        for name, layer in self.layers.items():
            if layer.trigger_topic == topic and (held := self._gates[name].fire()) is not None:
                self._deliver(held, patient=True)

    def _deliver(self, arrival: Arrival, patient: bool) -> None:
        """Bring one message to the memory, or count why not."""
        name, waited = arrival.layer.name, self._steady() - arrival.arrived
        counts = self.counts[name]
        try:
            if arrival.percept is None:
                arrival.percept = self._delivery.convert(arrival.message, arrival.layer, arrival.type_name)
                arrival.message = None
            waited_for = waited / NS if patient else None
            taken = self._delivery.deliver(
                arrival.percept, arrival.layer, arrival.type_name, arrival.stamped, waited_for
            )
        except Later:
            self._put_aside(arrival)
            return
        except Refused as refusal:
            self._refuse(name, str(refusal))
        except InvalidArgument as error:
            self._refuse(name, f"{error.argument} not accepted", detail=str(error))
        except MemoryNodeError as error:
            counts.dropped += 1
            self._report(name, "not stored: " + type(error).__name__, detail=str(error))
        except Exception as error:
            log.debug("layer %s", name, exc_info=True)
            self._refuse(name, f"not readable: {type(error).__name__}", detail=str(error))
        else:
            counts.take(taken)
            if taken and arrival.stamped.fault:
                counts.skip(arrival.stamped.fault)

    def _take_thinned(self, name: str, gate: Gate[Arrival]) -> None:
        self.counts[name].thinned += gate.thinned
        gate.thinned = 0

    def _refuse(self, layer: str, reason: str, detail: str = "") -> None:
        self.counts[layer].refuse(reason)
        self._report(layer, "message refused: " + reason, detail)

    def _report(self, layer: str, what: str, detail: str = "", again: bool = True) -> None:
        """Log once for one layer and reason, and when `again` once more every half minute.

        A layer with ever new reasons, such as a frame of its own in each message, logs _REPORTS of them in that time.
        """
        now, reported = self._steady(), self._reported[layer]
        last = reported.get(what)
        if last is not None and (not again or now - last < _REPORT_EVERY):
            return
        if len(reported) >= _REPORTS and what not in reported:
            for old in [old for old, at in reported.items() if now - at >= _REPORT_EVERY]:
                del reported[old]
            if len(reported) >= _REPORTS:
                return
        reported[what] = now
        log.warning("layer %s: %s%s", layer, what, f" ({detail[:200]})" if detail else "")
