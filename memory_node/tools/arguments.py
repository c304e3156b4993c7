"""Checks of arguments that several tools share; wrong ones raise InvalidArgument naming the argument."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

from memory_node.errors import InvalidArgument, shown

DEFAULT_LIMIT = 10
MOST = 1000
AHEAD = 100
"""Matches looked for beyond the limit, so that it can be said that there are so many more where not all are counted."""
LARGEST = sys.float_info.max
LONGEST_SPAN = 1e8
"""Minutes that count as all the time there was: what is longer is taken as this."""
LONGEST_QUERY = 2000
"""Characters of a query that are read; what comes after them has no part in the answer."""


def checked_limit(limit: int, argument: str = "limit", default: int = DEFAULT_LIMIT) -> int:
    """Return how many results to give: 0 is the default, more than 1000 is 1000."""
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 0:
        allowed = f"a whole number from 0 (which means {default}) to {MOST}"
        raise InvalidArgument(argument, f"got {shown(limit)}, allowed is {allowed}")
    return min(limit or default, MOST)


def checked_query(query: str, argument: str = "query") -> str:
    """Return the words to look for, without blanks around them; "" when there are none."""
    if not isinstance(query, str):
        raise InvalidArgument(argument, f"got {type(query).__name__}, allowed is a string")
    # Half a surrogate pair can't be written in UTF-8.
    return query[: 2 * LONGEST_QUERY].encode("utf-8", "replace").decode().strip()[:LONGEST_QUERY]


def checked_amount(value: float, argument: str, default: float | None = None) -> float:
    """Return a finite number above 0; where there is a default, 0 means it."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if number and value == 0 and default is not None:
        return default
    if not number or not 0 < value <= LARGEST:
        zero = f", or 0, which means {default:g}" if default is not None else ""
        raise InvalidArgument(argument, f"got {shown(value)}, allowed is a finite number above 0{zero}")
    return float(value)


def checked_center(center: Sequence[float], argument: str = "center") -> tuple[float, ...]:
    """Return (x, y) or (x, y, z) in m as floats."""
    try:
        point = tuple(float(value) for value in center)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidArgument(argument, f"got {shown(center)}, allowed is (x, y) or (x, y, z) in m") from error
    if len(point) not in (2, 3) or not all(map(math.isfinite, point)):
        raise InvalidArgument(argument, f"got {shown(center)}, allowed is (x, y) or (x, y, z), finite, in m")
    return point
