"""DDS domains, so that no test hears another one."""

from __future__ import annotations

import itertools
import random
import socket
from collections import deque

DOMAINS = range(20, 101)
HELD = 4
"""Domains that this process keeps for itself: that of the running test, and those before it, not quiet perhaps."""

_order = itertools.cycle(random.SystemRandom().sample(DOMAINS, len(DOMAINS)))
_claims: deque[socket.socket] = deque()


def next_domain() -> int:
    """A domain that no other process on this machine tests in, be it of this run of the tests or of another."""
    for domain in itertools.islice(_order, len(DOMAINS)):
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f"\0robot_memory test in DDS domain {domain}")  # a name that ends with the process, and no file
        except OSError:
            claim.close()
            continue
        _claims.append(claim)
        if len(_claims) > HELD:
            _claims.popleft().close()
        return domain
    raise RuntimeError("every DDS domain is taken")
