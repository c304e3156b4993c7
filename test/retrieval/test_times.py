"""Every form of time, in several zones, and what can't be read."""

from __future__ import annotations

from datetime import datetime, timezone
from zoneinfo import ZoneInfo

import pytest

from memory_node.errors import InvalidArgument
from memory_node.retrieval.times import local, parse_span, parse_time

SECOND = 1_000_000_000
HOUR = 3600 * SECOND
BERLIN = "Europe/Berlin"


def ns(year: int, month: int, day: int, hour: int = 0, minute: int = 0, second: int = 0, zone: str = "UTC") -> int:
    return round(datetime(year, month, day, hour, minute, second, tzinfo=ZoneInfo(zone)).timestamp()) * SECOND


NOW = ns(2026, 3, 4, 15, 30)  # a Wednesday


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("-10m", 600),
        ("-10 m", 600),
        ("-90s", 90),
        ("-1.5h", 5400),
        ("-1h30m", 5400),
        ("-2 days", 172_800),
        ("-1w", 604_800),
        ("-250ms", 0.25),
        ("+1m", -60),
        ("10 minutes ago", 600),
        ("10 MINUTES  ago", 600),
        ("an hour ago", 3600),
        ("half an hour ago", 1800),
        ("two hours and 5 min ago", 7500),
        ("now", 0),
        ("since 10 minutes ago", 600),
        ("eleven minutes ago", 660),
        ("\u221210m", 600),
        ("\u201310m", 600),
    ],
)
def test_relative_times_are_instants_counted_from_the_clock(text: str, seconds: float) -> None:
    assert parse_span(text, NOW) == (NOW - round(seconds * SECOND),) * 2


@pytest.mark.parametrize("text", ["last 2 hours", "the last 2 hours", "in the last 2 hours", "past two hours"])
def test_the_last_so_long_ends_now(text: str) -> None:
    assert parse_span(text, NOW) == (NOW - 2 * HOUR, NOW)


@pytest.mark.parametrize(
    ("text", "length"), [("last hour", HOUR), ("the last minute", 60 * SECOND), ("last day", 24 * HOUR)]
)
def test_the_last_unit_is_one_of_it(text: str, length: int) -> None:
    assert parse_span(text, NOW) == (NOW - length, NOW)


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("today", (3, 4, 0), (3, 5, 0)),
        ("yesterday", (3, 3, 0), (3, 4, 0)),
        ("since yesterday", (3, 3, 0), (3, 4, 0)),
        ("this morning", (3, 4, 5), (3, 4, 12)),
        ("this afternoon", (3, 4, 12), (3, 4, 18)),
        ("yesterday evening", (3, 3, 18), (3, 4, 0)),
        ("last night", (3, 3, 18), (3, 4, 5)),
        ("tonight", (3, 4, 18), (3, 5, 5)),
        ("last week", (2, 23, 0), (3, 2, 0)),
        ("this week", (3, 2, 0), (3, 9, 0)),
        ("monday", (3, 2, 0), (3, 3, 0)),
        ("on Monday", (3, 2, 0), (3, 3, 0)),
        ("wednesday", (2, 25, 0), (2, 26, 0)),
        ("2026-03-01", (3, 1, 0), (3, 2, 0)),
        ("since 2026-03-01", (3, 1, 0), (3, 2, 0)),
        ("20260301", (3, 1, 0), (3, 2, 0)),
        ("2026-02", (2, 1, 0), (3, 1, 0)),
        ("last month", (2, 1, 0), (3, 1, 0)),
        ("this month", (3, 1, 0), (4, 1, 0)),
        ("the day before yesterday", (3, 2, 0), (3, 3, 0)),
        ("last friday morning", (2, 27, 5), (2, 27, 12)),
        ("last evening", (3, 3, 18), (3, 4, 0)),
    ],
)
def test_days_are_those_of_the_zone_and_include_their_last_nanosecond(
    text: str, start: tuple[int, int, int], end: tuple[int, int, int]
) -> None:
    for zone in ("UTC", BERLIN, "Pacific/Auckland"):
        noon = ns(2026, 3, 4, 12, zone=zone)
        assert parse_span(text, noon, zone) == (ns(2026, *start, zone=zone), ns(2026, *end, zone=zone) - 1)


@pytest.mark.parametrize(
    ("text", "stamp"),
    [
        ("14:30", ns(2026, 3, 4, 14, 30, zone=BERLIN)),
        ("9am", ns(2026, 3, 4, 9, zone=BERLIN)),
        ("at 9:05 pm", ns(2026, 3, 4, 21, 5, zone=BERLIN)),
        ("12 am", ns(2026, 3, 4, 0, zone=BERLIN)),
        ("noon", ns(2026, 3, 4, 12, zone=BERLIN)),
        ("yesterday at 14:30", ns(2026, 3, 3, 14, 30, zone=BERLIN)),
        ("yesterday at 9", ns(2026, 3, 3, 9, zone=BERLIN)),
        ("the day before yesterday at 14:30", ns(2026, 3, 2, 14, 30, zone=BERLIN)),
        ("at 9", ns(2026, 3, 4, 9, zone=BERLIN)),
        ("9 a.m.", ns(2026, 3, 4, 9, zone=BERLIN)),
        ("since 2026-03-01T14:30", ns(2026, 3, 1, 14, 30, zone=BERLIN)),
        ("2026-03-01T24:00", ns(2026, 3, 2, zone=BERLIN)),
        ("20260301T1430", ns(2026, 3, 1, 14, 30, zone=BERLIN)),
        ("20260301T143015.5Z", ns(2026, 3, 1, 14, 30, 15) + SECOND // 2),
        ("20260301T143015+0530", ns(2026, 3, 1, 9, 0, 15)),
        ("2026-03-01T14:30", ns(2026, 3, 1, 14, 30, zone=BERLIN)),
        ("2026-03-01 14:30:15", ns(2026, 3, 1, 14, 30, 15, zone=BERLIN)),
        ("2026-03-01T14:30:15Z", ns(2026, 3, 1, 14, 30, 15)),
        ("2026-03-01T14:30:15+0530", ns(2026, 3, 1, 9, 0, 15)),
        ("2026-03-01T14:30:15-08", ns(2026, 3, 1, 22, 30, 15)),
        ("2026-03-01T14:30:15.123456789Z", ns(2026, 3, 1, 14, 30, 15) + 123_456_789),
        ("1700000000", 1_700_000_000 * SECOND),
        ("1700000000.123456789", 1_700_000_000_123_456_789),
        ("1.7e9", 1_700_000_000 * SECOND),
        ("100000000", 100_000_000 * SECOND),
        ("0", 0),
        ("0.0", 0),
    ],
)
def test_instants_are_exact(text: str, stamp: int) -> None:
    assert parse_time(text, NOW, BERLIN) == stamp


def test_an_int_is_nanoseconds_and_zero_is_a_time() -> None:
    assert parse_time(0, NOW) == 0
    assert parse_time(-7, NOW) == -7
    assert parse_time(1_700_000_000_123_456_789, NOW) == 1_700_000_000_123_456_789


def test_a_day_with_a_change_to_summer_time_has_23_hours() -> None:
    start, end = parse_span("2026-03-29", NOW, BERLIN)
    assert end + 1 - start == 23 * HOUR


def test_simulation_time_just_above_zero() -> None:
    assert parse_time("-10s", 3 * SECOND) == -7 * SECOND
    assert parse_span("today", 3 * SECOND) == (0, 24 * HOUR - 1)


@pytest.mark.parametrize("text", ["2026", "14.30", "9", "-10", "99999999.5", "1e-9", "0930", "+5", ".5"])
def test_a_small_number_is_seconds_only_where_the_clock_is_as_small(text: str) -> None:
    assert parse_time(text, 3 * SECOND) == round(float(text) * SECOND)
    with pytest.raises(InvalidArgument, match="a number as small as this may mean many things, write .*Unix seconds"):
        parse_time(text, NOW)


def test_last_year_is_that_of_the_calendar() -> None:
    assert parse_span("last year", NOW, BERLIN) == (ns(2025, 1, 1, zone=BERLIN), ns(2026, 1, 1, zone=BERLIN) - 1)
    assert parse_span("last month", ns(2026, 1, 31)) == (ns(2025, 12, 1), ns(2026, 1, 1) - 1)


@pytest.mark.parametrize(
    "text",
    [
        "1e999999999", "1e999999999999999999999", "-1e999999999", "20261301", "20260230", "20260301T2500",
        "2026-03-01T14:30:00+01:99", "2026-03-01T14:30:00+25:00", "2026-03-01T24:01", "2026-13", "20260301T143000+0199",
        "1_700_000_000", "\u0661\u0667", "last today", "last 14:30", "in 5 minutes", "yesterday 9", "at 25", "at 9:99",
        "", "   ", "soon", "nan", "inf", "-", "ago", "last", "the last", "25:00", "12:60", "13pm", "0am", "2026-13-01",
        "2026-02-30", "2026-03-01T25:00", "-10 parsecs", "ten", "yesterday at", "this", "x" * 1_000_000, "１０分前",
        "📅", "1e400", "9999999999999", "0001-01-01T00:00:00+23:59", "-99999999999w",
    ],
)  # fmt: skip
def test_what_cannot_be_read_names_the_argument_in_a_short_sentence(text: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        parse_time(text, NOW, "UTC", "time_after")
    assert caught.value.argument == "time_after"
    assert str(caught.value).startswith("time_after: ")
    assert len(str(caught.value)) < 600


def test_the_error_shows_the_forms() -> None:
    with pytest.raises(InvalidArgument, match="10 minutes ago.*yesterday.*ISO 8601.*Unix seconds"):
        parse_time("whenever", NOW)


@pytest.mark.parametrize("value", [True, 1.5, None, b"now", ["now"], 2**63])
def test_other_types_and_too_large_ints_are_refused(value: object) -> None:
    with pytest.raises(InvalidArgument, match="^time: "):
        parse_time(value, NOW)  # type: ignore[arg-type]


def test_an_int_too_long_to_be_written_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="^time: the number is out of range"):
        parse_time(10**5000, NOW)


@pytest.mark.parametrize("zone", ["Mars/Base", "../etc/passwd", "x" * 5000, "\x00"])
def test_a_zone_that_does_not_exist_is_named(zone: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        parse_time("today", NOW, zone)
    assert caught.value.argument == "time_zone"


def test_local_time_of_any_stamp() -> None:
    assert local(NOW, BERLIN) == datetime(2026, 3, 4, 16, 30, tzinfo=ZoneInfo(BERLIN))
    assert local(-(2**63), "UTC").year == 1677
    assert local(2**63 - 1, "UTC") > datetime(2262, 1, 1, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("text", "first", "second"),
    [
        ("2026-10-25T02:30", "2026-10-25T00:30Z", "2026-10-25T01:30Z"),
        ("2026-10-25T02:30:15.5", "2026-10-25T00:30:15.5Z", "2026-10-25T01:30:15.5Z"),
        ("today at 2:30", "2026-10-25T00:30Z", "2026-10-25T01:30Z"),
        ("2026-10-25T02:30+02:00", "2026-10-25T00:30Z", "2026-10-25T00:30Z"),
        ("2026-10-25T03:00", "2026-10-25T02:00Z", "2026-10-25T02:00Z"),
    ],
)
def test_an_hour_that_the_clock_shows_twice_is_both(text: str, first: str, second: str) -> None:
    now = ns(2026, 10, 25, 10, zone=BERLIN)
    assert parse_span(text, now, BERLIN) == (parse_time(first, now), parse_time(second, now))


@pytest.mark.parametrize("text", ["2026-03-29T02:30", "today at 2:30", "02:30", "2026-03-29T03:30"])
def test_an_hour_that_the_clock_leaves_out_is_an_hour_later(text: str) -> None:
    now = ns(2026, 3, 29, 10, zone=BERLIN)
    assert parse_span(text, now, BERLIN) == (ns(2026, 3, 29, 1, 30),) * 2


def test_days_of_a_change_of_summer_time_are_whole() -> None:
    for day, hours in (((2026, 3, 29), 23), ((2026, 10, 25), 25)):
        start, end = parse_span("today", ns(*day, 10, zone=BERLIN), BERLIN)
        assert (start, end - start) == (ns(*day, zone=BERLIN), hours * 3600 * SECOND - 1)


def test_the_past_week_is_seven_days_and_last_week_the_calendar_s() -> None:
    week = 7 * 86_400 * SECOND
    for text in ("past week", "the past week", "in the past week", "over the past week", "last 7 days"):
        assert parse_span(text, NOW, BERLIN) == (NOW - week, NOW)
    assert parse_span("last week", NOW, BERLIN)[0] != NOW - week


@pytest.mark.parametrize("text", ["2026-03-01T14", "2026-03-01T14Z", "20260301T14", "2026-03-01T14 UTC"])
def test_hours_alone_and_names_of_utc_are_read(text: str) -> None:
    assert parse_span(text, NOW, "UTC") == (ns(2026, 3, 1, 14),) * 2
    assert parse_time("2026-03-01T14:00:00 GMT", NOW, BERLIN) == ns(2026, 3, 1, 14)
    assert parse_time("2026-03-01T14+01", NOW, "UTC") == ns(2026, 3, 1, 13)
