"""A board without a clock meets NTP while the node runs; and localisation that is not trusted."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import pytest
from geometry_msgs.msg import PoseWithCovarianceStamped
from rclpy.parameter import Parameter
from rosgraph_msgs.msg import Clock
from std_msgs.msg import String
from support.ros_harness import Peer, layer, node_here, peer, stamp, wait_until

from memory_node.ingest import clockwatch

SCENE: dict[str, Any] = {"layers": ["scene"], "scene": layer("/scene", "std_msgs/msg/String")}


class SteppedClock:
    """The wall clock, behind by some hours until NTP sets it."""

    kind = "ros"

    def __init__(self, behind: float) -> None:
        self.behind = behind

    def now_ns(self) -> int:
        return time.time_ns() - round(self.behind * 1e9)


def test_f2_a_clock_that_is_set_forward_by_hours_begins_a_session_and_archives_nothing(tmp_path: Path) -> None:
    parameters = SCENE | {"consolidation_window": 600.0, "consolidation_min_samples": 2, "archive_after_seconds": 600.0}
    with node_here(tmp_path, parameters, up=False) as node, peer() as other:
        node.clock = clock = SteppedClock(behind=5 * 3600.0)
        assert node.bring_up(), node.failure
        before = [f"before {i}" for i in range(6)]
        other.publish("/scene", *(String(data=text) for text in before))
        rows = other.wait_rows(6, "scene")
        assert all(row.stamp.sec < time.time() - 4 * 3600 for row in rows)
        session = other.call("get_status").status.session
        clock.behind = 0.0
        other.publish("/scene", String(data="after"))
        rows = other.wait_rows(7, "scene")
        status = wait_until(
            lambda: s if (s := other.call("get_status").status).session > session else None, "a new session"
        )
        assert status.session == session + 1
        assert abs(rows[-1].stamp.sec - time.time()) < 60 and rows[-1].text == "after"
        node.memory.housekeep()
        assert other.call("get_status").status.archived == 0
        assert {match.text for match in other.rows("scene")} == {*before, "after"}
        assert [m.text for m in other.call("temporal_query", last_n_minutes=10.0).matches] == ["after"]


def test_poses_with_covariance_are_refused_while_localisation_is_not_trusted(tmp_path: Path) -> None:
    parameters = SCENE | {
        "odometry": {"topic": "/amcl_pose", "type": "geometry_msgs/msg/PoseWithCovarianceStamped"},
        "position_max_stddev": 0.5,
    }
    with node_here(tmp_path, parameters) as node, peer() as other:
        for x, variance in ((1.0, 0.04), (50.0, 9.0), (60.0, math.inf), (2.0, -1.0)):
            pose = PoseWithCovarianceStamped()
            pose.header.frame_id, pose.header.stamp = "map", stamp(time.time())
            pose.pose.pose.position.x, pose.pose.pose.orientation.w = x, 1.0
            pose.pose.covariance[0] = pose.pose.covariance[7] = variance
            other.publish("/amcl_pose", pose)
        wait_until(lambda: other.layer("odometry").received == 4, "all poses")
        wait_until(lambda: other.layer("odometry").refused == 2, "two refused")
        refused = other.layer("odometry").refused_because
        assert sorted(refused) == ["covariance not finite: 1", "position_max_stddev exceeded: 1"]
        wait_until(lambda: other.call("get_current_context").position.point.x == 2.0, "the last good one counts")
        assert node.memory.track.at(node.memory.track.latest.stamp).stddev is None, "a negative variance is unknown"


def test_f2_simulated_time_that_is_set_forward_by_hours_begins_a_session_and_archives_nothing(tmp_path: Path) -> None:
    parameters = SCENE | {
        "use_sim_time": True,
        "consolidation_window": 600.0,
        "consolidation_min_samples": 2,
        "archive_after_seconds": 600.0,
        "consolidation_interval": 3600.0,
    }
    with node_here(tmp_path, parameters) as node, peer() as other:
        clock = other.publisher("/clock", Clock)

        def tick(seconds: float) -> None:
            def told() -> bool:
                clock.publish(Clock(clock=stamp(seconds)))
                return bool(node.clock.now_ns() == round(seconds * 1e9))

            wait_until(told, "the clock is heard")

        session = other.call("get_status").status.session
        for i in range(6):  # half a minute between two ticks, as of a simulation that runs fast
            tick(1000.0 + 30.0 * i)
            other.publish("/scene", String(data=f"before {i}"))
            wait_until(lambda n=i + 1: other.layer("scene").received == n, "it came")
        assert len(other.rows("scene")) == 6
        assert other.call("get_status").status.session == session, "neither its start nor its pace is a jump"
        tick(1200.0 + 5 * 3600.0)
        wait_until(lambda: other.call("get_status").status.session == session + 1, "a new session")
        node.memory.housekeep()
        assert other.call("get_status").status.archived == 0
        assert [row.text for row in other.rows("scene")] == [f"before {i}" for i in range(6)]


def test_two_publishers_of_the_clock_are_told_apart_and_one_that_takes_over_is_a_new_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clockwatch, "QUARREL", 300_000_000)
    with node_here(tmp_path, SCENE | {"use_sim_time": True}) as node, peer() as other, peer() as rival, peer() as third:
        began = time.monotonic()

        def show(who: Peer, ahead: float, times: int = 1) -> tuple[int, bool]:
            """Let a publisher's clock go on, ahead of a steady one by some s; the session then, and if two quarrel."""
            publisher = who.publisher("/clock", Clock)
            for _ in range(times):
                before = node.clock_ticks()

                def told(before: int = before) -> bool:
                    publisher.publish(Clock(clock=stamp(time.monotonic() - began + ahead)))
                    return node.clock_ticks() > before

                wait_until(told, "the clock is heard")
                time.sleep(0.02)
                node.memory.check_clock()
            return node.memory.status().session, node.memory.has_two_clocks

        first, _ = show(other, 1000.0, 5)
        assert show(rival, 500.0) == (first + 1, False), "it may be a simulator that was started again"
        for _ in range(5):  # so seldom that the number of jumps tells nothing
            session, _ = show(other, 1000.0, 10)
            assert session <= first + 2
            assert show(rival, 500.0) == (session, True)
        assert node.memory.status().warnings[0].startswith("two clocks on /clock?")
        assert show(other, 1000.0, 40) == (first + 2, False)
        assert show(third, 5.0) == (first + 3, False), "at once"


def test_f3_a_paused_simulation_is_not_a_silent_clock(tmp_path: Path) -> None:
    with node_here(tmp_path, SCENE | {"use_sim_time": True}) as node, peer() as other:
        clock = other.publisher("/clock", Clock)
        watch = node._rooms.reporting._clock_watch

        def come(seconds: float) -> None:
            """A minute later /clock comes again."""
            watch._heard -= 60.0
            before = node.clock_ticks()
            wait_until(lambda: clock.publish(Clock(clock=stamp(seconds))) or node.clock_ticks() > before, "it is heard")

        come(0.0)
        assert watch.look() == "use_sim_time is true and /clock says 0: nothing is stored"
        for _ in range(2):
            come(100.0)
            assert watch.look() == "" and node.clock.now_ns() == 100_000_000_000
        watch._heard -= 60.0
        assert watch.look() == "nothing comes on /clock any more: the time stands still at 100.000 s"


def test_simulated_time_set_to_and_fro_leaves_one_subscription_or_none(tmp_path: Path) -> None:
    with node_here(tmp_path, SCENE) as node, peer() as other:
        clock = other.publisher("/clock", Clock, expect=False)

        def set_to(simulated: bool) -> None:
            assert node.set_parameters([Parameter("use_sim_time", value=simulated)])[0].successful
            # The graph tells of it a little later.
            wait_until(lambda: len(node.get_subscriptions_info_by_topic("/clock")) == simulated, "one or none")

        for simulated in (True, False) * 3:
            set_to(simulated)
        assert node.set_parameters([Parameter("use_sim_time", value=True)])[0].successful

        def heard() -> bool:
            clock.publish(Clock(clock=stamp(50.0)))
            return bool(node.clock.now_ns() == 50_000_000_000)

        wait_until(heard, "the clock is heard again")
