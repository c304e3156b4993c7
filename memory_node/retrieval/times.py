"""Times as people and planners write them, read as nanoseconds of the node's clock.

Every form names a span [start, end]; for an instant both ends are equal. `time_after` takes the start of what was
written and `time_before` the end, so "yesterday" as both is the whole day.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from zoneinfo import ZoneInfo

from memory_node.errors import InvalidArgument

SECOND = 1_000_000_000
FORMS = (
    '"-10m", "10 minutes ago", "last 2 hours", "now", "today", "yesterday", "yesterday at 14:30", "this morning", '
    '"monday", "last week", "14:30", ISO 8601 such as "2026-03-01T14:30:00+01:00" or "2026-03-01", '
    "or Unix seconds as a number"
)

_Span = tuple[int, int]
_INT64 = 2**63 - 1
_LONGEST = 80

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
    "ten": 10, "twelve": 12, "fifteen": 15, "twenty": 20, "thirty": 30,
    "half a": Decimal("0.5"), "half an": Decimal("0.5"),
}  # fmt: skip
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
# First and last hour of each part of a day; the night before a day's morning is "last night".
_PARTS = {"morning": (5, 12), "afternoon": (12, 18), "evening": (18, 24), "night": (18, 29)}

_UNIT = "|".join(sorted(_UNITS, key=len, reverse=True))
_COUNT = r"\d+(?:\.\d+)?|" + "|".join(sorted(_NUMBERS, key=len, reverse=True))
_AMOUNT = re.compile(rf"({_COUNT})\s*({_UNIT})(?![a-z])\s*(?:and\s+)?")
_CLOCK = re.compile(r"(\d{1,2})(?::(\d{2})(?::(\d{2}))?)?\s*(am|pm)?")
_ISO = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})(?:[t ](\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?\s*(z|[+-]\d{2}(?::?\d{2})?)?)?"
)


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
        raise InvalidArgument(argument, f"got {text!r}, allowed is an int (nanoseconds) or a string: {FORMS}")
    if isinstance(text, int):
        return _checked((text, text), argument, str(text))
    words = " ".join(text.lower().split()) if len(text) <= _LONGEST else ""
    zone = zone_of(time_zone)
    for read in _READERS:
        try:
            span = read(words, now_ns, zone)
        except (ValueError, OverflowError):
            span = None
        if span is not None:
            return _checked(span, argument, text)
    raise InvalidArgument(argument, f"can't read {_short(text)} as a time, write {FORMS}")


@lru_cache(maxsize=32)
def zone_of(name: str) -> tzinfo:
    """Return the IANA zone of that name; raise InvalidArgument("time_zone") when there is none."""
    if name in ("UTC", ""):
        return timezone.utc
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise InvalidArgument("time_zone", f"no zone {_short(name)}; write an IANA name, Europe/Berlin") from error


def local(stamp: int, time_zone: str) -> datetime:
    """Return a stamp (ns) as a local time of the zone, to the microsecond; clamped to the years a datetime can hold."""
    seconds = min(max(stamp // SECOND, -62_135_000_000), 253_402_000_000)
    moment = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=seconds, microseconds=stamp % SECOND // 1000)
    return moment.astimezone(zone_of(time_zone))


def _checked(span: _Span, argument: str, text: str) -> _Span:
    if not all(-_INT64 <= end <= _INT64 for end in span):
        raise InvalidArgument(argument, f"{_short(text)} is out of range; in a string a number is Unix seconds")
    return span


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")


def _unix(words: str, now: int, zone: tzinfo) -> _Span | None:
    try:
        seconds = Decimal(words)
    except InvalidOperation:
        return None
    if not seconds.is_finite() or abs(seconds) > _INT64:
        return None if not seconds.is_finite() else (2**64, 2**64)
    return (int(seconds * SECOND),) * 2


def _iso(words: str, now: int, zone: tzinfo) -> _Span | None:
    match = _ISO.fullmatch(words)
    if match is None:
        return None
    year, month, day, hour, minute, second, fraction, offset = match.groups()
    if hour is None:
        return _day(date(int(year), int(month), int(day)), zone)
    moment = datetime(int(year), int(month), int(day), int(hour), int(minute), int(second or 0), tzinfo=zone)
    if offset:
        moment = moment.replace(tzinfo=_offset(offset))
    stamp = _ns(moment) + int((fraction or "0").ljust(9, "0"))
    return stamp, stamp


def _offset(text: str) -> timezone:
    if text == "z":
        return timezone.utc
    digits = text[1:].replace(":", "").ljust(4, "0")
    size = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return timezone(-size if text[0] == "-" else size)


def _relative(words: str, now: int, zone: tzinfo) -> _Span | None:
    if words == "now":
        return now, now
    if words[:1] in "+-" and words:
        length = _length(words[1:].lstrip())
        return None if length is None else (now + (length if words[0] == "+" else -length),) * 2
    if words.endswith(" ago"):
        length = _length(words.removesuffix(" ago"))
        return None if length is None else (now - length,) * 2
    match = re.fullmatch(r"(?:in |over |during |within |for )?(?:the )?(?:last|past|previous) (.+)", words)
    if match is None or match[1] == "week":
        return None
    length = _length(match[1] if match[1] not in _UNITS else "a " + match[1])
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
    words = re.sub(r"^(since|on|during|in the|in|at|from) ", "", words)
    if words in ("this week", "last week"):
        monday = today - timedelta(days=today.weekday() + (7 if words == "last week" else 0))
        return _day(monday, zone)[0], _day(monday + timedelta(days=6), zone)[1]
    if words in ("tonight", "last night"):
        return _part(today if words == "tonight" else today - timedelta(days=1), "night", zone)
    if words.startswith("this ") and words[5:] in _PARTS:
        return _part(today, words[5:], zone)
    first, _, rest = words.removeprefix("last ").partition(" ")
    day = _named_day(first, today)
    if day is None:
        return _clock(words, today, zone)
    if not rest:
        return _day(day, zone)
    return _part(day, rest, zone) if rest in _PARTS else _clock(rest.removeprefix("at "), day, zone)


def _named_day(word: str, today: date) -> date | None:
    if word == "today":
        return today
    if word == "yesterday":
        return today - timedelta(days=1)
    if word in _WEEKDAYS:
        return today - timedelta(days=(today.weekday() - _WEEKDAYS.index(word) - 1) % 7 + 1)
    return None


def _clock(words: str, day: date, zone: tzinfo) -> _Span | None:
    match = _CLOCK.fullmatch({"noon": "12:00", "midnight": "0:00"}.get(words, words))
    if match is None or (match[2] is None and match[4] is None):
        return None
    hour = int(match[1])
    if match[4]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if match[4] == "pm" else 0)
    stamp = _ns(datetime.combine(day, time(hour, int(match[2] or 0), int(match[3] or 0)), zone))
    return stamp, stamp


def _part(day: date, name: str, zone: tzinfo) -> _Span:
    first, last = _PARTS[name]
    ends = (datetime.combine(day + timedelta(days=hour // 24), time(hour % 24), zone) for hour in (first, last))
    start, end = (_ns(end) for end in ends)
    return start, end - 1


def _day(day: date, zone: tzinfo) -> _Span:
    midnight = datetime.combine(day, time(0), zone)
    return _ns(midnight), _ns(datetime.combine(day + timedelta(days=1), time(0), zone)) - 1


def _ns(moment: datetime) -> int:
    since = moment - datetime(1970, 1, 1, tzinfo=timezone.utc)
    return ((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds) * 1000


_READERS: tuple[Callable[[str, int, tzinfo], _Span | None], ...] = (_unix, _iso, _relative, _calendar)
