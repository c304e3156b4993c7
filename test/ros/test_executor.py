"""The executor whose threads take turns, and the threads that spin a node."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import rclpy
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.context import Context
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.task import Future
from std_msgs.msg import Int32
from std_srvs.srv import Trigger
from support.ros_harness import Peer, wait_until

from memory_node.ros import executor
from memory_node.ros.executor import Spinner, TurnsExecutor

pytestmark = pytest.mark.usefixtures("domain")


@dataclass
class Callbacks:
    """A node whose services answer at once, hang until they are freed, or raise; which thread ran each."""

    node: Node
    free: threading.Event = field(default_factory=threading.Event)
    hanging: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    threads: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        for name in ("quick", "hang", "fail", "end", "spin"):
            self.node.create_service(Trigger, f"~/{name}", getattr(self, name), callback_group=ReentrantCallbackGroup())

    def quick(self, request: Any, response: Any) -> Any:
        self.threads.append(threading.get_ident())
        response.success = True
        return response

    def hang(self, request: Any, response: Any) -> Any:
        self.hanging.release()
        response.success = self.free.wait(60.0)
        return response

    def fail(self, request: Any, response: Any) -> Any:
        raise ValueError("a fault of the callback")

    def end(self, request: Any, response: Any) -> Any:
        raise SystemExit("a callback that ends the program")

    def spin(self, request: Any, response: Any) -> Any:
        """Ask the node itself, and spin until it has answered."""
        client = self.node.create_client(Trigger, "/memory/quick", callback_group=ReentrantCallbackGroup())
        asked = client.call_async(Trigger.Request())
        self.node.executor.spin_until_future_complete(asked, 10.0)
        response.success = asked.done() and asked.result().success
        return response


class Log:
    """Keeps what is logged as an error."""

    def __init__(self) -> None:
        self.errors: list[str] = []

    def error(self, text: str, **_: Any) -> None:
        self.errors.append(text)


@pytest.fixture
def callbacks(domain: None) -> Iterator[Callbacks]:
    context = Context()
    rclpy.init(context=context)
    of_node = Callbacks(rclpy.create_node("memory", context=context))
    yield of_node
    of_node.free.set()
    rclpy.try_shutdown(context=context)


@pytest.fixture
def other(domain: None) -> Iterator[Peer]:
    asking = Peer()
    yield asking
    asking.close()


def ended(spinner: Spinner) -> bool:
    """Whether all its threads have ended; asked after `close` or a shutdown."""
    return not any(thread.is_alive() for thread in spinner._threads)


def test_short_callbacks_stay_in_the_thread_that_took_them(
    callbacks: Callbacks, other: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executor, "PATIENCE", 60.0)
    spinner = Spinner(callbacks.node, threads=4)
    assert all(other.call("quick", kind=Trigger).success for _ in range(20))
    assert len(callbacks.threads) == 20 and len(set(callbacks.threads)) == 1
    spinner.close()
    assert ended(spinner)


def test_callbacks_that_hang_hold_up_no_other_while_a_thread_is_left(callbacks: Callbacks, other: Peer) -> None:
    spinner = Spinner(callbacks.node, threads=4)
    stuck = [other.ask("hang", kind=Trigger) for _ in range(3)]
    assert all(callbacks.hanging.acquire(timeout=10.0) for _ in stuck)
    assert all(other.call("quick", kind=Trigger).success for _ in range(5))
    last = other.ask("hang", kind=Trigger)
    assert callbacks.hanging.acquire(timeout=10.0)
    waiting = other.ask("quick", kind=Trigger)
    assert len(callbacks.threads) == 5 and not waiting.done()
    callbacks.free.set()
    wait_until(lambda: all(one.done() for one in (*stuck, last, waiting)), "all answers")
    assert all(one.result().success for one in (*stuck, last, waiting))
    spinner.close()
    assert ended(spinner)


@pytest.mark.parametrize(
    ("service", "fault"),
    [("fail", "ValueError: a fault of the callback"), ("end", "SystemExit: a callback that ends the program")],
)
def test_a_callback_that_raises_takes_no_other_with_it(
    callbacks: Callbacks, other: Peer, service: str, fault: str
) -> None:
    log = Log()
    spinner = Spinner(callbacks.node, threads=2, log=log)  # type: ignore[arg-type]
    for times in range(1, 6):  # more often than there are threads
        other.ask(service, kind=Trigger)
        wait_until(lambda times=times: len(log.errors) == times, "the fault in the log")
    assert all(fault in text for text in log.errors)
    assert other.call("quick", kind=Trigger).success
    assert len(spinner._executor._tasks) <= 1, "what failed is let go of"
    spinner.close()
    assert ended(spinner)


def test_closing_leaves_behind_what_hangs(callbacks: Callbacks, other: Peer) -> None:
    spinner = Spinner(callbacks.node, threads=3)
    other.ask("hang", kind=Trigger)
    assert callbacks.hanging.acquire(timeout=10.0)
    began = time.monotonic()
    spinner.close(patience=0.3)
    assert time.monotonic() - began < 5.0
    wait_until(lambda: sum(thread.is_alive() for thread in spinner._threads) == 1, "the idle threads have ended")
    callbacks.free.set()
    wait_until(lambda: ended(spinner), "the last thread has ended")


@pytest.mark.parametrize("threads", [1, 4])
def test_a_shutdown_from_outside_ends_all_threads_and_is_told(callbacks: Callbacks, threads: int) -> None:
    told, log = threading.Event(), Log()
    spinner = Spinner(callbacks.node, threads, log, told.set)  # type: ignore[arg-type]
    rclpy.shutdown(context=callbacks.node.context)
    assert told.wait(10.0)
    spinner.join()
    assert ended(spinner) and log.errors == []


def test_a_callback_that_shuts_the_executor_down_ends_its_threads(callbacks: Callbacks, other: Peer) -> None:
    told = threading.Event()
    spinner = Spinner(callbacks.node, threads=3, ended=told.set)
    callbacks.node.create_subscription(Int32, "/end", lambda _: spinner._executor.shutdown(), 1)
    other.publish("/end", Int32(data=1))
    assert told.wait(10.0)
    spinner.join()
    assert ended(spinner)


def test_one_thread_keeps_the_order_of_a_topic(callbacks: Callbacks, other: Peer) -> None:
    came: list[int] = []
    callbacks.node.create_subscription(
        Int32, "/numbers", lambda message: came.append(message.data), QoSProfile(depth=200)
    )
    spinner = Spinner(callbacks.node)
    other.publish("/numbers", *(Int32(data=number) for number in range(100)))
    wait_until(lambda: len(came) == 100, "all numbers")
    assert came == list(range(100))
    spinner.close()


def test_those_who_spin_go_on_after_one_who_spun_once(callbacks: Callbacks, other: Peer) -> None:
    turns = TurnsExecutor(context=callbacks.node.context)
    turns.add_node(callbacks.node)
    spinning = [threading.Thread(target=turns.spin, daemon=True) for _ in range(2)]
    for thread in spinning:
        thread.start()
    # It takes the turn as soon as a callback takes long; the answer is then another thread's.
    once = threading.Thread(target=turns.spin_once, args=(0.01,), daemon=True)
    once.start()
    other.ask("hang", kind=Trigger)
    assert callbacks.hanging.acquire(timeout=10.0)
    assert all(other.call("quick", kind=Trigger).success for _ in range(5))
    callbacks.free.set()
    assert other.call("quick", kind=Trigger).success
    turns.shutdown()
    for thread in (*spinning, once):
        thread.join(10.0)
        assert not thread.is_alive()


def test_who_spins_for_a_while_beside_others_waits_for_no_longer(callbacks: Callbacks, other: Peer) -> None:
    """The others wait for a callback that does not come."""
    spinner = Spinner(callbacks.node, threads=2)
    turns, done, never = spinner._executor, Future(), Future()
    assert other.call("quick", kind=Trigger).success  # nothing of the start is left to be run
    ways = [
        lambda: turns.spin_once(0.0),
        lambda: turns.spin_once(0.1),
        lambda: turns.spin_until_future_complete(never, 0.1),
        lambda: turns.spin_once_until_future_complete(never, 0.1),
        lambda: turns.spin_until_future_complete(done),
        lambda: turns.spin_until_future_complete(done, 3600.0),
        lambda: turns.spin_once_until_future_complete(done),
    ]
    threads = [threading.Thread(target=way, daemon=True) for way in ways]
    for thread in threads:
        thread.start()
    for thread in threads[:4]:
        thread.join(10.0)
        assert not thread.is_alive()
    assert all(thread.is_alive() for thread in threads[4:])
    done.set_result(None)
    for thread in threads[4:]:
        thread.join(10.0)
        assert not thread.is_alive()
    assert other.call("quick", kind=Trigger).success
    spinner.close()
    assert ended(spinner)


@pytest.mark.parametrize("threads", [1, 3])
def test_f9_a_callback_that_spins_is_answered_and_goes_on(callbacks: Callbacks, other: Peer, threads: int) -> None:
    spinner = Spinner(callbacks.node, threads)
    assert all(other.call("spin", kind=Trigger).success for _ in range(3))
    assert other.call("quick", kind=Trigger).success
    spinner.close()
    assert ended(spinner)
