from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import yaml

from memory_node.config import Settings
from memory_node.errors import InvalidArgument, shown
from memory_node.ingest.gates import Gate
from memory_node.ingest.layers import layer_table
from memory_node.ingest.parameters import node_table, read

DETECTIONS = "robot_memory/msg/DetectionArray"
ROOT = Path(__file__).resolve().parents[2]
CONFIG = ROOT / "config" / "memory.yaml"


def flat(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Parameters as ROS names them."""
    result: dict[str, Any] = {}
    for key, value in tree.items():
        result |= flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return result


def shipped() -> dict[str, Any]:
    return flat(yaml.safe_load(CONFIG.read_text("utf-8"))["/**"]["ros__parameters"])


def test_the_shipped_file_is_right_and_explains_every_parameter() -> None:
    parameters = read(shipped())
    assert parameters.unread == {}
    assert [layer.name for layer in parameters.layers] == ["odometry", "detections", "scene", "battery"]
    assert parameters.layers[3].is_internal_state
    assert set(node_table()) <= set(shipped())


def test_the_shipped_file_gives_the_defaults_but_where_it_says_so() -> None:
    given = shipped()
    defaults = {
        name: list(spec.default) if isinstance(spec.default, tuple) else spec.default
        for name, spec in node_table().items()
    }
    differ = {name for name in defaults if given[name] != defaults[name]}
    assert differ == {"layers"}


def test_without_parameters_there_are_defaults_and_only_odometry() -> None:
    parameters = read({})
    assert parameters.settings == Settings(fold_repeats=True)
    assert [(layer.name, layer.topic, layer.max_rate_hz) for layer in parameters.layers] == [("odometry", "odom", 0.0)]


def test_without_odometry_topic_there_is_no_odometry() -> None:
    assert read({"odometry.topic": ""}).layers == ()


def test_f17_one_layer_of_any_kind_is_enough() -> None:
    for type_name in ("robot_memory/msg/DetectionArray", "std_msgs/msg/String", "sensor_msgs/msg/BatteryState"):
        parameters = read({"layers": ["one"], "one.topic": "/one", "one.type": type_name, "odometry.topic": ""})
        assert [(layer.name, layer.type) for layer in parameters.layers] == [("one", type_name)]


@pytest.mark.parametrize("empty", [None, [], b"", (), [""], ("",)])
def test_f15_empty_lists_are_unset(empty: Any) -> None:
    parameters = read({"layers": empty, "flush_interval": 1})
    assert parameters["layers"] == () and parameters.settings.flush_interval == 1.0
    layer = read({"layers": ["a"], "a.topic": "/a", "a.fields": empty, "a.label_map": empty}).layers[1]
    assert layer.fields == () and layer.label_map == ()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"flush_interval": -1.0}, "flush_interval: got -1.0, allowed is a number at least 0.01 and at most 3600"),
        ({"flush_interval": "fast"}, "flush_interval: got 'fast'"),
        ({"flush_batch_size": 2.5}, "flush_batch_size: got 2.5, allowed is a whole number"),
        ({"autostart": "yes"}, "autostart: got 'yes', allowed is true or false"),
        ({"durability": "high"}, "durability: got 'high', allowed is one of normal, full"),
        ({"num_threads": 2}, "num_threads: got 2, allowed is a whole number at least 6"),
        ({"odometry.type": "a/msg/B"}, "odometry.type: got 'a/msg/B', allowed is one of nav_msgs/msg/Odometry"),
        ({"layers": ["a"]}, "a.topic: missing; write  a: {topic: /some_topic}"),
        ({"layers": ["a"], "a.topic": "/a", "a.tpye": "x"}, "a.tpye: no such setting of a layer"),
        ({"layers": ["a", "a"]}, "layers: 'a' is there twice"),
        ({"layers": ["odometry"]}, "layers: 'odometry' is the name of something else"),
        ({"layers": ["embedder"]}, "layers: 'embedder' is the name of something else"),
        ({"layers": "scene"}, "layers: got 'scene', allowed is a list of names; write  layers: [scene]"),
        (
            {"layers.topic": ["/a", "type", "b"]},
            "layers.topic: got ['/a', 'type', 'b'], allowed is a list of names; write  layers: [scene]",
        ),
        ({"layers": ["qos_overrides"]}, "layers: 'qos_overrides' is the name of something else"),
        *(
            ({"layers": ["a"], "a.topic": "/a", "a.fields": [path]}, f"a.fields: got {shown(path)}, allowed is the")
            for path in (" ", "a..b", ".a", "a b", "ü", "0.a", "x" * 300)
        ),
        ({"layers": ["a"], "a.topic": "/a", "a.fields": ["a", ""]}, "a.fields: got '', allowed is the path of a field"),
        *(
            ({"layers": ["a"], "a.topic": "/a", "a.label_map": rules}, f"a.label_map: got {said}")
            for rules, said in (
                (["tv"], "'tv', allowed is \"from: to\""),
                (["62: tv", "62: dog"], "two rules for '62', allowed is one of each label"),
                (["Fire_Truck: car", "fire truck: van"], "two rules for 'fire truck', allowed is one of each label"),
            )
        ),
        ({"layers": ["a"], "a.topic": "/a", "a.type": "a/msg/1B"}, "a.type: got 'a/msg/1B', allowed is \"package/msg"),
        ({"layers": ["a"], "a.topic": "/a", "a.trigger": "1e9 Hz"}, "a.trigger: got '1e9 Hz', allowed is"),
        ({"layers": ["a"], "a.topic": "/a", "a.max_rate_hz": 10**400}, "a.max_rate_hz: got 10000"),
        ({"layers": ["a"], "a.topic": "/a", "a.max_rate_hz": math.nan}, "a.max_rate_hz: got nan, allowed is a number"),
        ({"fold_window": 1e300}, "fold_window: got 1e+300, allowed is a number at least 0 and at most 1e+07"),
        ({"fold_radius": 1e300}, "fold_radius: got 1e+300, allowed is a number at least 0 and at most 10000"),
        ({"max_db_mb": 1e300}, "max_db_mb: got 1e+300, allowed is a number at least 0 and at most 1e+09"),
        *(
            ({f"{group}.url": url}, f"{group}.url: got {shown(url)}, allowed is an address such as http://127.0.0.1")
            for group in ("embedder", "summarizer")
            for url in ("nonsense", "ftp://x", "http://", "http://x:99999", "http://a b", "http://[::1", "x" * 1000)
        ),
        *(
            ({name: value}, f"{name}: got {value!r}, it has no effect here: {name.split('.')[0]}.url is empty")
            for name, value in (
                ("summarizer.model", "m"), ("summarizer.timeout", 5.0), ("embedder.timeout", 5.0),
                ("embedder.key_variable", "KEY"),
            )
        ),
        ({"sensor_frames.cam": [1e308] * 6}, "sensor_frames.cam: got [1e+308, 1e+308"),
        ({"sensor_frames.base_link": [1.0] * 6}, "sensor_frames.base_link: got [1.0, 1.0, 1.0, 1.0, 1.0, 1.0], it has"),
        ({"sensor_frames.map": [1.0] * 6}, "sensor_frames.map: got [1.0, 1.0, 1.0, 1.0, 1.0, 1.0], it has no effect"),
        *(
            ({f"sensor_frames.{name}": [1.0] * 6}, f"sensor_frames.{name}: got {said}")
            for name, said in (
                ("/base_link", "[1.0, 1.0, 1.0, 1.0, 1.0, 1.0], it has no effect here"),
                ("//map", "[1.0, 1.0, 1.0, 1.0, 1.0, 1.0], it has no effect here"),
                *((wrong, f"{wrong.lstrip('/')!r}, allowed is a frame's name") for wrong in ("", "/", " map", "cam ")),
            )
        ),
        (
            {"sensor_frames.cam": [1.0] * 6, "sensor_frames./cam": [2.0] * 6},
            "sensor_frames./cam: got [2.0, 2.0, 2.0, 2.0, 2.0, 2.0], allowed is one mount of each frame",
        ),
        ({"base_frame": "map"}, "base_frame: got 'map', allowed is another frame than that of positions"),
        ({"sensor_frames.cam": [1.0, 2.0]}, "sensor_frames.cam: got [1.0, 2.0], allowed are [x, y, z, roll, pitch"),
        (
            {"layers": ["a"], "a.topic": "/a", "a.type": DETECTIONS, "a.is_internal_state": True},
            "a.is_internal_state: got True, allowed is false: detections are perception",
        ),
        ({"odometry.topic": "bad topic!"}, "odometry.topic: got 'bad topic!', allowed is a topic's name such as"),
        ({"layers": ["a"], "a.topic": "/a//b"}, "a.topic: got '/a//b', allowed is a topic's name such as"),
        ({"layers": ["a"], "a.topic": "/a", "a.type": "std_msgs/String"}, "a.type: got 'std_msgs/String', allowed is"),
        *(
            ({setting: frame}, f"{setting}: got {shown(frame)}, allowed is a frame's name such as map, without a")
            for setting in ("frame", "base_frame")
            for frame in ("/map", "", "/", " map", "map ", "map\n", "m\nap", "m" * 257)
        ),
        *(
            ({"layers": ["a"], "a.topic": topic}, f"a.topic: got {topic!r}, allowed is a topic's name such as")
            for topic in ("/{nope}", "/a{", "/a}b", "/{node")
        ),
        ({"layers": ["a"], "a.topic": "/a", "a.trigger": "/{nope}"}, "a.trigger: got '/{nope}', allowed is"),
        *(
            (
                {"layers": ["a"], "a.topic": "/a", "a.type": type_name, f"a.{setting}": value, **more},
                f"a.{setting}: got {value!r}, it has no effect here: it is for {what}",
            )
            for type_name, setting, value, what, more in (
                (DETECTIONS, "min_change", 0.5, "internal state", {}),
                *(
                    (type_name, setting, 0.5, "internal state", more)
                    for setting in ("min_change", "max_silence", "stale_after")
                    for type_name, more in (("", {"a.is_internal_state": False}), ("std_msgs/msg/String", {}))
                ),
                ("std_msgs/msg/String", "min_confidence", 0.5, "detections", {}),
                (DETECTIONS, "min_confidence", 0.5, "detections and without `fields`", {"a.fields": ["detections.0"]}),
                ("std_msgs/msg/Float32", "percentage_scale", 100.0, "sensor_msgs/msg/BatteryState", {}),
            )
        ),
        *(
            (
                {"layers": ["a"], "a.topic": "/a", "a.trigger": trigger, "a.max_rate_hz": 5.0},
                "a.max_rate_hz: got 5.0, it has no effect here: `trigger` says when",
            )
            for trigger in ("/snapshot", "0.2 Hz")
        ),
        ({"sensor_frames.cam": "front"}, "sensor_frames.cam: got 'front'"),
        ({"sensor_frames": [1.0, 2.0]}, "sensor_frames: got [1.0, 2.0], allowed is a group: sensor_frames.<frame>: ["),
        *(
            ({"map_id": name}, f"map_id: got {shown(name)}, allowed is a name of at most 256 printable characters")
            for name in ("m" * 257, "ground\nfloor", " ", " hall")
        ),
        *(
            ({"layers": [name]}, f"layers: got {shown(name)}, allowed is a name of at most 256 printable characters")
            for name in ("a\n", "a" * 257, " a", "a.b", " ", "a\tb")
        ),
        ({"db_path": ""}, "db_path: got '', allowed is the path of a file"),
        ({"db_path": " "}, "db_path: got ' ', allowed is the path of a file"),
    ],
)
def test_f16_wrong_values_are_refused_naming_the_parameter(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidArgument) as error:
        read(given)
    assert said in str(error.value)


def test_settings_that_may_have_an_effect_once_the_type_is_found_out_are_taken() -> None:
    given = {"min_change": 0.5, "min_confidence": 0.5, "percentage_scale": 100.0, "sensor_range": 3.0}
    given |= {"max_silence": 60.0, "stale_after": 60.0}
    parameters = read({"layers": ["a"], "a.topic": "/a", **{f"a.{name}": value for name, value in given.items()}})
    assert {name: getattr(parameters.layers[1], name) for name in given} == given


@pytest.mark.parametrize("rate", [{}, {"a.max_rate_hz": 0.0}])
@pytest.mark.parametrize("trigger", ["/snapshot", "0.2 Hz"])
def test_a_trigger_is_taken_with_the_default_rate_and_with_none(trigger: str, rate: dict[str, float]) -> None:
    layer = read({"layers": ["a"], "a.topic": "/a", "a.trigger": trigger, **rate}).layers[1]
    assert (layer.trigger, layer.max_rate_hz) == (trigger, rate.get("a.max_rate_hz", 2.0))


def test_a_setting_without_effect_is_refused_at_run_time_too() -> None:
    parameters = read({"layers": ["a"], "a.topic": "/a", "a.type": "std_msgs/msg/String"})
    for setting in ("min_change", "max_silence", "stale_after", "min_confidence"):
        with pytest.raises(InvalidArgument, match=f"a.{setting}: got 0.5, it has no effect here: it is for "):
            parameters.changed({f"a.{setting}": 0.5})
    parameters = read({"layers": ["a"], "a.topic": "/a", "a.is_internal_state": True})
    assert parameters.changed({"a.min_change": 0.0, "a.stale_after": 3.0}).layers[1].stale_after == 3.0


def test_the_slowest_rates_are_taken() -> None:
    """Their periods are longer than a number of nanoseconds can say."""
    for setting, rate in (("trigger", "1e-300 Hz"), ("max_rate_hz", 1e-310)):
        gate: Gate[str] = Gate(read({"layers": ["a"], "a.topic": "/a", f"a.{setting}": rate}).layers[1])
        first = gate.offer("one", 10**18, hold=False)
        assert (first or [gate.due(10**18, hold=False)]) == ["one"]
        assert gate.offer("two", 2 * 10**18, hold=False) == [] and gate.due(2 * 10**18, hold=False) is None


def test_a_map_and_layers_may_have_any_printable_name() -> None:
    parameters = read({"map_id": "ground floor", "layers": ["Küche 1"], "Küche 1.topic": "/kitchen"})
    assert parameters.settings.map_id == "ground floor" and parameters.layers[1].name == "Küche 1"


def test_mounts_take_whole_numbers_too() -> None:
    assert read({"sensor_frames.cam": [1, 0, 0, 0, 0, 0]}).mounts == {"cam": [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]}


def test_names_that_nothing_reads_are_told_with_what_may_be_meant() -> None:
    parameters = read({"flush_intervall": 1.0, "xyzzy": 1, "use_sim_time": True, "qos_overrides./odom.depth": 1})
    assert parameters.unread == {"flush_intervall": "flush_interval", "xyzzy": ""}


def test_only_thresholds_and_weights_change_at_run_time() -> None:
    parameters = read({"layers": ["a"], "a.topic": "/a"})
    changed = parameters.changed({"recency_weight": 1, "stamp_max_age": 5.0, "a.min_confidence": 0.5})
    assert changed.settings.recency_weight == 1.0 and changed.stamp_limits.max_age == 5.0
    assert [layer.min_confidence for layer in changed.layers] == [0.0, 0.5]
    assert parameters.settings.recency_weight == 0.0 and parameters.has("a.topic") and not parameters.has("b.topic")
    with pytest.raises(
        InvalidArgument, match="recency_weight: got 11.0, allowed is a number at least 0 and at most 10"
    ):
        parameters.changed({"recency_weight": 11.0})
    fixed = "it cannot change while the node runs; allowed is a string"
    with pytest.raises(InvalidArgument, match="db_path: got 'other.db', it cannot change while the node runs"):
        parameters.changed({"db_path": "other.db"})
    with pytest.raises(InvalidArgument, match=f"a.topic: got '/b', {fixed}"):
        parameters.changed({"a.topic": "/b"})
    with pytest.raises(InvalidArgument, match="a.min_confidence: got 2.0, allowed is a number at least 0"):
        parameters.changed({"a.min_confidence": 2.0})


def test_thresholds_can_be_changed() -> None:
    runtime = {name for name, spec in (node_table() | layer_table()).items() if spec.runtime}
    assert {"position_max_stddev", "frame_timeout", "stamp_max_ahead", "stamp_max_age", "stale_after"} < runtime
    assert {"min_confidence", "min_change", "max_silence", "sensor_range", "sensor_fov"} < runtime


def test_every_parameter_has_a_description() -> None:
    assert all(spec.doc.endswith(".") and spec.allowed for spec in node_table().values())
