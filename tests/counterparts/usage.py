"""What a process uses, as the operating system counts it."""

import os
from pathlib import Path
from typing import NamedTuple

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class CpuTime(NamedTuple):
    """CPU seconds of a process since it started, all its threads included."""

    user_s: float
    system_s: float

    @property
    def total_s(self) -> float:
        return self.user_s + self.system_s


def cpu_time(pid: int) -> CpuTime:
    """Return the CPU time of a process, exited threads included, child processes not."""
    # The name in field 2 may contain spaces and brackets; fields are counted from behind it.
    after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return CpuTime(int(after_name[11]) / _TICKS_PER_SECOND, int(after_name[12]) / _TICKS_PER_SECOND)


def resident_bytes(pid: int) -> int:
    """Return the resident memory of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_BYTES
