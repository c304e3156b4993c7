"""DDS domains, so that no test hears another one."""

from __future__ import annotations

import itertools
import os
import random


def _of_this_process() -> list[int]:
    """The domains of this process of pytest, in random order; those that run beside it have the others."""
    number, processes = os.environ.get("PYTEST_XDIST_WORKER", "gw0"), os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")
    domains = range(20, 101)[int(number.removeprefix("gw")) :: int(processes)]
    return random.SystemRandom().sample(domains, len(domains))


_domains = itertools.cycle(_of_this_process())


def next_domain() -> int:
    """A domain that no test of this run has at the same time."""
    return next(_domains)
