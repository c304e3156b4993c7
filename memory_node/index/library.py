"""usearch, loaded so that it harms no library that comes after it.

Its wheels hold a C++ runtime of their own and offer it to whatever is loaded later, half of which then works with the
one and half with the other: torch turned for ever while it compiled a function. The system's runtime, offered before,
serves all of them.
"""

from __future__ import annotations

import contextlib
import ctypes

with contextlib.suppress(OSError):
    ctypes.CDLL("libstdc++.so.6", mode=ctypes.RTLD_GLOBAL)

from usearch.index import Index  # noqa: E402

__all__ = ["Index"]
