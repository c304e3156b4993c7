"""How much resident memory a piece of work needs at its peak, as the Linux kernel counts it."""

from __future__ import annotations

import gc
from pathlib import Path
from types import TracebackType


def resident_mb() -> float:
    """Return the resident memory (MB) of this process after a collection."""
    gc.collect()
    return _megabytes("VmRSS")


class PeakMemory:
    """Measures the growth (MB) of resident memory inside a block, from its start to its peak.

    Attributes:
        growth_mb: peak minus what was resident before; known after the block.
    """

    def __init__(self) -> None:
        self.growth_mb = 0.0
        self._before = 0.0

    def __enter__(self) -> PeakMemory:
        self._before = resident_mb()
        Path("/proc/self/clear_refs").write_text("5")  # resets the peak (VmHWM) to what is resident now
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.growth_mb = max(0.0, _megabytes("VmHWM") - self._before)


def _megabytes(name: str) -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024 / 1e6
    raise OSError(f"/proc/self/status has no {name}")
