"""Resource usage of a process, as the operating system counts it."""

import contextlib
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
    after_name = _fields(pid)
    return CpuTime(int(after_name[11]) / _TICKS_PER_SECOND, int(after_name[12]) / _TICKS_PER_SECOND)


def tree_cpu_time(pid: int) -> CpuTime:
    """Return the CPU time of a process and its children, those that have ended included."""
    own = _fields(pid)
    user, system = int(own[11]) + int(own[13]), int(own[12]) + int(own[14])
    for child in children(pid):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            fields = _fields(child)
            user, system = user + int(fields[11]), system + int(fields[12])
    return CpuTime(user / _TICKS_PER_SECOND, system / _TICKS_PER_SECOND)


class TreeUsage:
    """CPU time of a process and all below it, those that have ended included.

    The kernel adds the time of an ended process to its parent's unless the parent ignores SIGCHLD,
    as the daemon of PySpark's workers does. So each process counts with what was seen last.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._seen_s: dict[int, float] = {}

    def total_s(self) -> float:
        """Read the CPU time of the processes; return the sum over all that were ever seen."""
        below = [self._pid]
        while below:
            pid = below.pop()
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                self._seen_s[pid] = cpu_time(pid).total_s
                below += children(pid)
        return sum(self._seen_s.values())


def tree_bytes(pid: int) -> int:
    """Return the memory of a process and its children, what they share counted once."""
    total = 0
    for each in (pid, *children(pid)):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            total += _proportional_bytes(each)
    return total


def children(pid: int) -> list[int]:
    """Return the processes that this one has started and that live."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        # Processes may end during the search.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if int(_fields(int(path.name))[1]) == pid:
                found.append(int(path.name))
    return found


def _proportional_bytes(pid: int) -> int:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0


def _fields(pid: int) -> list[str]:
    """Return the kernel's status fields of a process, from its state on."""
    # The name in field 2 may contain spaces and brackets; fields are counted from behind it.
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def resident_bytes(pid: int) -> int:
    """Return the resident memory of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_BYTES
