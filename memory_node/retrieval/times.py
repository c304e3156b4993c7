"""Times as people and planners write them, read as nanoseconds of the node's clock.

Every form names a span [start, end]; for an instant both ends are equal, unless the clock shows it twice. `time_after`
takes the start of what was written and `time_before` the end, so "yesterday" as both is the whole day.

A bare number is seconds of the node's clock: from 100 000 000 on, 1973, or any while the clock itself is below that, as
in simulation; 0 is the beginning of either. Other numbers could as well be a year, an hour or an age whose unit was
forgotten, and are refused. Eight digits are the date they spell, 20260301.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from functools import lru_cache
from zoneinfo import ZoneInfo

from memory_node.errors import InvalidArgument, shown

SECOND = 1_000_000_000
FORMS = (
    '"-10m", "10 minutes ago", "last 2 hours", "now", "today", "yesterday", "yesterday at 14:30", "this morning", '
    '"monday", "last week", "last month", "14:30", ISO 8601 such as "2026-03-01T14:30:00+01:00" or "2026-03-01", '
    "or Unix seconds such as 1772375400"
)

_Span = tuple[int, int]
_INT64 = 2**63 - 1
_LONGEST = 80
_PLAUSIBLE = 100_000_000 * SECOND
"""Age (ns) of a clock that shows wall time, and least Unix time that is meant by a number then: March 1973."""

_UNITS = {
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), SECOND // 1000),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), SECOND),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60 * SECOND),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3600 * SECOND),
    **dict.fromkeys(("d", "day", "days"), 86_400 * SECOND),
    **dict.fromkeys(("w", "week", "weeks"), 7 * 86_400 * SECOND),
}
_NUMBERS: dict[str, int | Decimal] = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "eleven": 11, "twelve": 12, "fifteen": 15, "twenty": 20, "thirty": 30,
    "half a": Decimal("0.5"), "half an": Decimal("0.5"),
}  # fmt: skip
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
# First and last hour of each part of a day; the night before a day's morning is "last night".
_PARTS = {"morning": (5, 12), "afternoon": (12, 18), "evening": (18, 24), "night": (18, 29)}

_UNIT = "|".join(sorted(_UNITS, key=len, reverse=True))
_COUNT = r"\d+(?:\.\d+)?|" + "|".join(sorted(_NUMBERS, key=len, reverse=True))
_AMOUNT = re.compile(rf"({_COUNT})\s*({_UNIT})(?![a-z])\s*(?:and\s+)?", re.ASCII)
_LAST = re.compile(r"(?:over |during |within |for )?(?:the )?(?:(past)|last|previous) (.+)")
_PREFIX = re.compile(r"^(?:since|on|during|in the|in|at|from) ")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?", re.ASCII)
_CLOCK = re.compile(r"(\d{1,2})(?::(\d{2})(?::(\d{2}))?)?\s*(am|pm|a\.m\.|p\.m\.)?", re.ASCII)
_MONTH = re.compile(r"(\d{4})-(\d{2})", re.ASCII)
_ZONE = r"\s*(z|utc|gmt|[+-]\d{2}(?::?[0-5]\d)?)?"
_FRACTION = r"(?:[.,](\d{1,9}))?"
_ISO = (
    re.compile(
        rf"(\d{{4}})-(\d{{2}})-(\d{{2}})(?:[t ](\d{{2}})(?::(\d{{2}})(?::(\d{{2}}){_FRACTION})?)?{_ZONE})?", re.ASCII
    ),
    re.compile(rf"(\d{{4}})(\d{{2}})(\d{{2}})(?:t(\d{{2}})(?:(\d{{2}})(?:(\d{{2}}){_FRACTION})?)?{_ZONE})?", re.ASCII),
)
"""With signs between the parts, and without."""


def parse_time(text: int | str, now_ns: int, time_zone: str = "UTC", argument: str = "time") -> int:
    """Return the instant that `text` names, its start where it names a span (ns). See parse_span."""
    return parse_span(text, now_ns, time_zone, argument)[0]


def parse_span(text: int | str, now_ns: int, time_zone: str = "UTC", argument: str = "time") -> _Span:
    """Return (start, end) of what `text` names, both included (ns of the node's clock).

    Args:
        text: an int is nanoseconds already; a string is one of FORMS, in any case.
        now_ns: the node's clock (ns).
        time_zone: IANA zone that days, hours of the day and ISO times without a zone are read in.
        argument: name of the argument that `text` came in, for the error.

    Raises:
        InvalidArgument: `text` can't be read (the message shows the forms), or the zone does not exist.
    """
    if isinstance(text, bool) or not isinstance(text, (int, str)):
        raise InvalidArgument(argument, f"got {shown(text)}, allowed is an int (nanoseconds) or a string: {FORMS}")
    if isinstance(text, int):
        if not -_INT64 <= text <= _INT64:
            raise InvalidArgument(argument, "the number is out of range; an int is nanoseconds")
        return text, text
    words = " ".join(text.lower().translate(_DASHES).split()) if len(text) <= _LONGEST else ""
    zone = zone_of(time_zone)
    for read in _READERS:
        try:
            span = read(words, now_ns, zone)
        except (ValueError, ArithmeticError):
            span = None
        if span is not None:
            if not all(-_INT64 <= end <= _INT64 for end in span):
                raise InvalidArgument(argument, f"{shown(text)} is out of range; a number is Unix seconds")
            return span
    unsure = "; a number as small as this may mean many things" if _NUMBER.fullmatch(words) else ""
    raise InvalidArgument(argument, f"can't read {shown(text)} as a time{unsure}, write {FORMS}")


@lru_cache(maxsize=32)
def zone_of(name: str) -> tzinfo:
    """Return the IANA zone of that name; raise InvalidArgument("time_zone") when there is none."""
    if name in ("UTC", ""):
        return timezone.utc
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise InvalidArgument("time_zone", f"no zone {shown(name)}; write an IANA name, Europe/Berlin") from error


def local(stamp: int, time_zone: str) -> datetime:
    """Return a stamp (ns) as a local time of the zone, to the second; clamped to the years a datetime can hold."""
    return datetime.fromtimestamp(min(max(stamp // SECOND, -62_135_000_000), 253_402_000_000), zone_of(time_zone))


def _iso(words: str, now: int, zone: tzinfo) -> _Span | None:
    words = _PREFIX.sub("", words)
    month = _MONTH.fullmatch(words)
    if month is not None:
        return _month(date(int(month[1]), int(month[2]), 1), zone)
    match = next((found for form in _ISO if (found := form.fullmatch(words))), None)
    if match is None:
        return None
    year, month_, day, hour, minute, second, fraction, offset = match.groups()
    day = date(int(year), int(month_), int(day))
    if hour is None:
        return _day(day, zone)
    if hour == "24" and not int((minute or "0") + (second or "") + (fraction or "")):
        day, hour = day + timedelta(days=1), "0"
    clock = time(int(hour), int(minute or 0), int(second or 0))
    start, end = _instant(datetime.combine(day, clock, _offset(offset) if offset else zone))
    part = int((fraction or "0").ljust(9, "0"))
    return start + part, end + part


def _offset(text: str) -> timezone:
    if text in ("z", "utc", "gmt"):
        return timezone.utc
    digits = text[1:].replace(":", "").ljust(4, "0")
    size = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return timezone(-size if text[0] == "-" else size)


def _unix(words: str, now: int, zone: tzinfo) -> _Span | None:
    if _NUMBER.fullmatch(words) is None or len(words) == 8 and words.isdigit():
        return None
    seconds = Decimal(words)
    if seconds.adjusted() > 18:
        return _INT64 + 1, _INT64 + 1
    stamp = int(seconds * SECOND)
    return (stamp, stamp) if seconds == 0 or now < _PLAUSIBLE or abs(stamp) >= _PLAUSIBLE else None


def _relative(words: str, now: int, zone: tzinfo) -> _Span | None:
    words = _PREFIX.sub("", words)
    if words == "now":
        return now, now
    if words[:1] in "+-" and words:
        length = _length(words[1:].lstrip())
        return None if length is None else (now + (length if words[0] == "+" else -length),) * 2
    if words.endswith(" ago"):
        length = _length(words.removesuffix(" ago"))
        return None if length is None else (now - length,) * 2
    match = _LAST.fullmatch(words)
    if match is None or (match[2] == "week" and not match[1]):  # last week is the calendar's
        return None
    length = _length(match[2] if match[2] not in _UNITS else "a " + match[2])
    return None if length is None else (now - length, now)


def _length(words: str) -> int | None:
    """Length of "1h30m", "2 hours and 5 min", "half an hour" in ns, or None."""
    total, at = Decimal(0), 0
    while at < len(words):
        match = _AMOUNT.match(words, at)
        if match is None:
            return None
        count = _NUMBERS.get(match[1])
        total += (Decimal(match[1]) if count is None else Decimal(count)) * _UNITS[match[2]]
        at = match.end()
    return int(total) if at else None


def _calendar(words: str, now: int, zone: tzinfo) -> _Span | None:
    today = local(now, "UTC").astimezone(zone).date()
    at, words = words.startswith("at "), _PREFIX.sub("", words)
    whole = _week_month_or_year(words.removeprefix("the "), today, zone)
    if whole is not None:
        return whole
    if words in ("tonight", "last night", "last evening"):
        return _part(today - timedelta(days=words != "tonight"), "evening" if "evening" in words else "night", zone)
    if words.startswith("this ") and words[5:] in _PARTS:
        return _part(today, words[5:], zone)
    day, rest = _named_day(words, today)
    if day is None:
        return _clock(words, today, zone, at)
    if not rest:
        return _day(day, zone)
    return _part(day, rest, zone) if rest in _PARTS else _clock(rest.removeprefix("at "), day, zone, rest[:3] == "at ")


def _week_month_or_year(words: str, today: date, zone: tzinfo) -> _Span | None:
    """The calendar's own week, month or year, "this" or "last"."""
    which, _, unit = words.partition(" ")
    if which not in ("this", "last"):
        return None
    if unit == "week":
        monday = today - timedelta(days=today.weekday() + 7 * (which == "last"))
        return _day(monday, zone)[0], _day(monday + timedelta(days=6), zone)[1]
    if unit == "month":
        first = today.replace(day=1)
        return _month(first if which == "this" else (first - timedelta(days=1)).replace(day=1), zone)
    if unit == "year":
        year = today.year - (which == "last")
        return _day(date(year, 1, 1), zone)[0], _day(date(year, 12, 31), zone)[1]
    return None


def _named_day(words: str, today: date) -> tuple[date | None, str]:
    """The day that words begin with, None when it is none, and the words after it."""
    before_last = re.match(r"(?:the )?day before yesterday\b ?", words)
    if before_last is not None:
        return today - timedelta(days=2), words[before_last.end() :]
    word, _, rest = words.partition(" ")
    if word in ("today", "yesterday"):
        return today - timedelta(days=word == "yesterday"), rest
    word, _, rest = words.removeprefix("last ").partition(" ")
    if word in _WEEKDAYS:
        return today - timedelta(days=(today.weekday() - _WEEKDAYS.index(word) - 1) % 7 + 1), rest
    return None, ""


def _clock(words: str, day: date, zone: tzinfo, at: bool) -> _Span | None:
    """An hour of a day; at: "at" stood before it, so that a number alone is an hour of 24."""
    match = _CLOCK.fullmatch({"noon": "12:00", "midnight": "0:00"}.get(words, words))
    if match is None or not (match[2] or match[4] or at):
        return None
    hour = int(match[1])
    if match[4]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if match[4][0] == "p" else 0)
    return _instant(datetime.combine(day, time(hour, int(match[2] or 0), int(match[3] or 0)), zone))


def _instant(moment: datetime) -> _Span:
    """A moment; one that the clock shows twice, as summer time ends, is from the first to the second.

    One that it leaves out, as summer time begins, is as much later as the clock is put forward.
    """
    first, second = _ns(moment), _ns(moment.replace(fold=1))
    return first, max(first, second)


def _part(day: date, name: str, zone: tzinfo) -> _Span:
    first, last = _PARTS[name]
    ends = (datetime.combine(day + timedelta(days=hour // 24), time(hour % 24), zone) for hour in (first, last))
    start, end = (_ns(end) for end in ends)
    return start, end - 1


def _day(day: date, zone: tzinfo) -> _Span:
    midnight = datetime.combine(day, time(0), zone)
    return _ns(midnight), _ns(datetime.combine(day + timedelta(days=1), time(0), zone)) - 1


def _month(first: date, zone: tzinfo) -> _Span:
    following = (first + timedelta(days=31)).replace(day=1)
    return _day(first, zone)[0], _day(following, zone)[0] - 1


def _ns(moment: datetime) -> int:
    since = moment - datetime(1970, 1, 1, tzinfo=timezone.utc)
    return ((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds) * 1000


_READERS: tuple[Callable[[str, int, tzinfo], _Span | None], ...] = (_unix, _iso, _relative, _calendar)
_DASHES = {ord(sign): "-" for sign in "\u2010\u2011\u2012\u2013\u2212"}
