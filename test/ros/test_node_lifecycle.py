"""Configure, activate, deactivate, cleanup: what answers in which state."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import pytest
from builtin_interfaces.msg import Time
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState, GetState
from rosgraph_msgs.msg import Clock
from std_msgs.msg import String
from support.ros_harness import Peer, layer, node_here, peer, wait_until

from memory_node.errors import shown
from memory_node.memory import Memory
from memory_node.ros.reporting import guarded

SCENE: dict[str, Any] = {"layers": ["scene"], "scene": layer("/scene", "std_msgs/msg/String"), "autostart": False}


def change(other: Peer, transition: int) -> bool:
    request = Transition(id=transition)
    return bool(other.call("change_state", kind=ChangeState, transition=request).success)


def state(other: Peer) -> str:
    return str(other.call("get_state", kind=GetState).current_state.label)


def test_inactive_reads_answer_and_writes_refuse(tmp_path: Path) -> None:
    with node_here(tmp_path, SCENE, up=False), peer() as other:
        assert state(other) == "unconfigured"
        assert change(other, Transition.TRANSITION_CONFIGURE) and state(other) == "inactive"
        assert other.call("temporal_query").success
        for service in ("store_specific_memory", "flush", "start_episode", "end_episode", "consolidate", "set_map"):
            refused = other.call(service)
            assert not refused.success and "the node is not active" in refused.message, service
        assert change(other, Transition.TRANSITION_ACTIVATE) and state(other) == "active"
        other.publish("/scene", String(data="kept"))
        wait_until(lambda: other.layer("scene").received == 1, "it came")
        assert change(other, Transition.TRANSITION_DEACTIVATE)
        # What had come is committed, and nothing more is listened to.
        assert [match.text for match in other.call("temporal_query").matches] == ["kept"]
        wait_until(lambda: other.publisher("/scene", String, expect=False).get_subscription_count() == 0, "deaf")
        assert change(other, Transition.TRANSITION_ACTIVATE)
        other.publish("/scene", String(data="kept too"))
        assert [row.text for row in other.wait_rows(2, "scene")] == ["kept", "kept too"]


def test_a_node_that_does_not_listen_says_so_and_not_that_nobody_speaks(tmp_path: Path) -> None:
    with node_here(tmp_path, SCENE, up=False) as node, peer() as other:
        other.publisher("/scene", String, expect=False)
        deaf, silent = "not listened to: the node is inactive", "/scene has a publisher, and no message ever came"
        steps = (node.trigger_configure, deaf), (node.trigger_activate, silent), (node.trigger_deactivate, deaf)
        for step, told in steps:
            step()
            wait_until(lambda: other.layer("scene").publishers == 1, "its publisher was counted")
            assert other.layer("scene").problem == told
            assert f"layer scene: {told}" in other.call("get_status").status.warnings


def test_cleanup_closes_and_configure_opens_the_same_memory_again(tmp_path: Path) -> None:
    with node_here(tmp_path, SCENE) as node, peer() as other:
        assert other.call("store_specific_memory", text="remember me").success
        assert change(other, Transition.TRANSITION_DEACTIVATE)
        assert change(other, Transition.TRANSITION_CLEANUP) and state(other) == "unconfigured"
        assert node._open is None
        assert change(other, Transition.TRANSITION_CONFIGURE)
        other._clients.clear()
        assert [match.text for match in other.call("temporal_query").matches] == ["remember me"]
        assert change(other, Transition.TRANSITION_INACTIVE_SHUTDOWN) and state(other) == "finalized"


def test_f8_the_clock_is_heard_in_a_node_of_its_own(tmp_path: Path) -> None:
    """Beside the services each /clock message costs milliseconds, and at 200 a second the node hears nothing else."""
    with node_here(tmp_path, SCENE | {"use_sim_time": True}) as node, peer() as other:
        assert "/clock" not in {subscription.topic_name for subscription in node.subscriptions}
        clock = other.publisher("/clock", Clock)

        def told() -> bool:
            clock.publish(Clock(clock=Time(sec=12, nanosec=5)))
            return bool(node.get_clock().now().nanoseconds == node.clock.now_ns() == 12_000_000_005)

        wait_until(told, "the clock is heard")


@pytest.mark.usefixtures("domain")
def test_f13_a_timer_that_is_on_its_way_when_its_publisher_goes_leaves_no_traceback(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with peer() as other:
        publisher = other.node.create_publisher(String, "/told", 1)
        report = guarded(other.node, lambda: publisher.publish(String()))
        other.node.destroy_publisher(publisher)
        report()
    assert "Traceback" not in capfd.readouterr().err


def test_a_failing_transition_is_told_and_leaves_the_node_unconfigured(tmp_path: Path) -> None:
    blocked = tmp_path / "a file"
    blocked.write_text("no folder", encoding="utf-8")
    parameters = SCENE | {"db_path": str(blocked / "memory.db")}
    with node_here(tmp_path, parameters, up=False) as node, peer() as other:
        assert not change(other, Transition.TRANSITION_CONFIGURE)
        assert state(other) == "unconfigured"
        assert str(blocked) in node.failure


@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("{folder}", "is a folder, not a database file"),
        ("{folder}/a file/memory.db", "cannot be created (File exists)"),
        ("{folder}/a file/deep/memory.db", "cannot be created (Not a directory)"),
        ("/proc/memory.db", "cannot be opened for writing (No such file or directory)"),
        ("~nobody_of_that_name/memory.db", "leads nowhere (Could not determine home directory.)"),
        ("{folder}/" + 300 * "m", "File name too long"),
    ],
)
def test_a_db_path_that_cannot_be_is_refused_by_name(tmp_path: Path, place: str, why: str) -> None:
    (tmp_path / "a file").write_text("no folder", encoding="utf-8")
    given = place.format(folder=tmp_path)
    with node_here(tmp_path, SCENE | {"db_path": given}, up=False) as node:
        assert not node.bring_up()
        said, _, parameter = node.failure.partition("; db_path: got ")
        assert why in said
        assert parameter == f"{shown(given)}, allowed is the path of a file that this node can write"


def test_a_failed_configure_leaves_nothing_open(tmp_path: Path) -> None:
    """The namespace begins with a slash, which only the node knows when it resolves the name."""
    parameters = SCENE | {"scene": layer("/{ns}/scene", "std_msgs/msg/String")}
    with node_here(tmp_path, parameters, up=False) as node:
        listening = set(node.get_node_names())
        for _ in range(2):
            assert not node.bring_up()
            assert node.failure.startswith("scene.topic: got '/{ns}/scene', ") and " at /" not in node.failure
            assert set(node.get_node_names()) == listening
        with Memory.open(tmp_path / "memory.db") as memory:
            assert memory.status().observations == 0


def test_collections_of_garbage_leave_out_what_is_there_from_the_start(tmp_path: Path) -> None:
    """A full one over the modules alone holds all answers up for 50 ms and more."""
    gc.unfreeze()
    with node_here(tmp_path, SCENE, up=False), peer() as other:
        assert gc.get_freeze_count() == 0
        assert change(other, Transition.TRANSITION_CONFIGURE)
        assert gc.get_freeze_count() > 50_000
        other.call("temporal_query")
        assert len(gc.get_objects()) < 0.1 * gc.get_freeze_count()
