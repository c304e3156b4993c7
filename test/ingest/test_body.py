"""Which readings of the body are events."""

from __future__ import annotations

import random

import pytest

from memory_node.ingest.body import BodyEvent, BodyWatch, format_value

S = 1_000_000_000


def events(values: list[float], unit: str = "fraction", period: float = 1.0, window: float = 30.0) -> list[BodyEvent]:
    """What is told of each event at the end, in the order in which they were noticed."""
    return list({event.noticed: event for event in tellings(values, unit, period, window)}.values())


def tellings(values: list[float], unit: str, period: float, window: float) -> list[BodyEvent]:
    """All that is told, in order."""
    watch = BodyWatch()
    found = (
        watch.observe("battery", value, round(i * period * S), unit, (1.0, 2.0, 0.0), window)
        for i, value in enumerate(values)
    )
    return [event for some in found for event in some]


def test_a_drop_beyond_noise_is_one_event_with_both_values_and_the_place() -> None:
    noise = random.Random(3)
    steady = [0.9 - 0.0001 * i + noise.gauss(0, 0.0005) for i in range(120)]
    falling = [steady[-1] - 0.005 * (i + 1) for i in range(20)]
    found = events(steady + falling + [falling[-1]] * 60)
    assert len(found) == 1
    event = found[0]
    assert event.after < event.before and event.position == (1.0, 2.0, 0.0)
    assert 120 * S <= event.noticed <= 130 * S and event.stamp == 139 * S
    assert event.text.startswith("battery dropped from 89% to 79% within")


def test_a_steady_discharge_however_fast_is_usual() -> None:
    assert events([1.0 - 0.002 * i for i in range(400)])[1:] == []


def test_a_noisy_reading_makes_no_events() -> None:
    noise = random.Random(5)
    assert events([15.7 + noise.gauss(0, 0.2) for _ in range(600)], unit="V") == []


def test_a_fault_flag_that_rises_and_falls_is_two_events() -> None:
    found = events([0.0] * 50 + [1.0] * 50 + [0.0] * 50, unit="")
    assert [(e.before, e.after) for e in found] == [(0.0, 1.0), (1.0, 0.0)]


@pytest.mark.parametrize("rises", [2, 5, 20])
def test_a_flag_that_rises_soon_after_the_start_is_one_event(rises: int) -> None:
    found = events([float(i >= rises) for i in range(90)], unit="")
    assert [(e.before, e.after) for e in found] == [(0.0, 1.0)]
    found = events([float(i < rises) for i in range(90)], unit="")
    assert [(e.before, e.after) for e in found] == [(1.0, 0.0)]


def test_a_discharge_that_ends_or_slows_down_is_no_event() -> None:
    falling = [1.0 - 0.004 * i for i in range(150)]
    assert events(falling + [falling[-1]] * 100)[1:] == []
    assert events(falling + [falling[-1] - 0.002 * i for i in range(100)])[1:] == []


@pytest.mark.parametrize(
    ("value", "unit", "said"),
    [
        (89.9, "%", "90%"),
        (0.899, "fraction", "90%"),
        (0.899, "ratio", "90%"),
        (0.45, "%", "0.45%"),
        (0.0045, "fraction", "0.45%"),
        (1.0, "fraction", "100%"),
        (23.14, "V", "23.1 V"),
        (3.0, "", "3"),
    ],
)
def test_per_cent_and_shares_of_one_are_told_apart(value: float, unit: str, said: str) -> None:
    assert format_value(value, unit) == said
    assert format_value(value, unit, "+") == f"+{said}"


def test_an_event_of_a_layer_in_per_cent_is_told_in_per_cent() -> None:
    (event,) = events([90.0] * 60 + [75.0] * 60, unit="%")
    assert event.text.startswith("battery dropped from 90% to 75% within")


def test_a_second_drop_later_is_a_second_event() -> None:
    found = events([0.9] * 60 + [0.8] * 100 + [0.7] * 60)
    assert [(e.before, e.after) for e in found] == [(0.9, 0.8), (0.8, 0.7)]


def test_a_layer_read_once_a_minute_has_events_too() -> None:
    """Its readings are farther apart than the window."""
    found = events([0.9] * 10 + [0.7] * 10 + [0.9] * 10, period=60.0)
    assert [(e.before, e.after, e.start, e.stamp) for e in found] == [
        (0.9, 0.7, 9 * 60 * S, 10 * 60 * S), (0.7, 0.9, 19 * 60 * S, 20 * 60 * S)
    ]  # fmt: skip
    assert found[0].text == "battery dropped from 90% to 70% within 60 s"


def test_a_slow_layer_that_drops_on_and_on_is_one_event_and_a_steady_discharge_none() -> None:
    falling = [0.9] * 10 + [0.9 - 0.1 * i for i in range(1, 5)] + [0.5] * 5
    assert [(e.before, round(e.after, 6)) for e in events(falling, period=60.0)] == [(0.9, 0.5)]
    assert events([1.0 - 0.01 * i for i in range(60)], period=60.0) == []


def test_what_a_layer_loses_while_it_is_silent_is_usual_at_its_usual_rate() -> None:
    watch = BodyWatch()
    stamps = [*range(0, 600, 60), 3600]
    found = [watch.observe("battery", 1.0 - stamp / 10_000, stamp * S, "", None, 30.0) for stamp in stamps]
    assert found == [[]] * 11
    assert len(watch.observe("battery", 0.4, 3660 * S, "", None, 30.0)) == 1


def test_late_and_equal_stamps_are_no_change() -> None:
    watch = BodyWatch()
    for i in range(20):
        watch.observe("battery", 0.9, i * S, "", None, 30.0)
    assert watch.observe("battery", 0.1, 5 * S, "", None, 30.0) == []


def test_f48_readings_kept_are_bounded() -> None:
    watch = BodyWatch()
    for i in range(2_000):
        watch.observe("battery", 0.9, i * S // 100, "", None, 30.0)
    assert len(watch._layers["battery"].readings) == 512


@pytest.mark.parametrize("size", [0.1, 0.2, 0.3, 0.6])
def test_an_event_tells_the_whole_drop_whether_steep_or_not(size: float) -> None:
    ramp = [0.9] * 60 + [0.9 - size * i / 20 for i in range(1, 21)] + [0.9 - size] * 70
    (event,) = events(ramp)
    assert event.text == f"battery dropped from 90% to {90 - 100 * size:.0f}% within 20 s"
    assert (event.start, event.stamp) == (59 * S, 79 * S)
    told = tellings(ramp, "fraction", 1.0, 30.0)
    assert len({one.noticed for one in told}) == 1 and 2 < len(told) < 16


def test_what_drops_on_within_the_window_is_one_event_of_both() -> None:
    (event,) = events([0.9] * 40 + [0.86] * 10 + [0.76] * 90)
    assert event.text == "battery dropped from 90% to 76% within 11 s"


def test_the_last_of_a_change_is_told_when_it_is_over() -> None:
    ramp = [0.9] * 60 + [0.8] + [0.79] * 80
    told = tellings(ramp, "fraction", 1.0, 30.0)
    assert [round(one.after, 6) for one in told] == [0.8, 0.79]
    assert tellings(ramp[:80], "fraction", 1.0, 30.0) == told[:1]


def test_a_rise_after_a_drop_ends_it() -> None:
    found = events([0.9] * 60 + [0.8] + [0.79] * 5 + [0.95] * 90)
    assert [(e.before, e.after) for e in found] == [(0.9, 0.79), (0.79, 0.95)]


@pytest.mark.parametrize("period", [1.0, 10.0, 60.0])
@pytest.mark.parametrize("rises", [1, 2, 3, 4, 5, 6])
def test_a_flag_that_rises_is_an_event_however_seldom_it_is_read(period: float, rises: int) -> None:
    found = events([float(i >= rises) for i in range(rises + 5)], unit="", period=period)
    assert [(e.before, e.after, e.noticed) for e in found] == [(0.0, 1.0, round(rises * period * S))]


def test_the_first_error_that_diagnostics_report_is_an_event() -> None:
    (event,) = events([0.0, 2.0, 2.0], unit="", period=10.0)
    assert event.text == "battery rose from 0 to 2 within 10 s"


def test_a_number_that_is_no_flag_needs_more_readings_first() -> None:
    assert events([0.9, 0.5], unit="") == [] and events([0.0, 1.0], unit="V") == []


def test_readings_of_before_a_restart_are_compared_with() -> None:
    watch = BodyWatch()
    assert not watch.knows("battery")
    watch.remember("battery", [(i * S, 0.9) for i in range(50)])
    assert watch.knows("battery")
    (event,) = watch.observe("battery", 0.5, 300 * S, "fraction", None, 30.0)
    assert event.text == "battery dropped from 90% to 50% within 4 min"
