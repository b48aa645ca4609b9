"""Settings of the whole process that a daemon wants and an embedded broker must not touch."""

from __future__ import annotations

import ctypes
import os
import resource
import sys
import time
from collections.abc import Mapping
from functools import partial
from typing import Final

from barnabas.broker.runtime.process_usage import memory_bytes
from barnabas.storage.runtime.clock import sleep
from barnabas.storage.runtime.threads import start_thread

# With one journal thread beside the loop, the default of 5 ms is what a group commit would wait
# for the interpreter; shorter, and its answers go out as soon as the disk is done.
SWITCH_INTERVAL_SECONDS = 0.0005

# Answers to Fetch are about 1 MiB each. At its defaults glibc gives such memory back to the kernel
# after every answer and faults it in again page by page, 3.8 times the CPU of the whole answer.
# The first limit alone changes nothing; up to so many freed bytes stay with the process.
M_TRIM_THRESHOLD, TRIM_THRESHOLD_BYTES = -1, 536_870_912
M_MMAP_THRESHOLD, MMAP_THRESHOLD_BYTES = -3, 268_435_456
# mallopt's number, the value, and what glibc itself takes from the environment: that is kept.
_LIMITS = (
    (M_MMAP_THRESHOLD, MMAP_THRESHOLD_BYTES, "MALLOC_MMAP_THRESHOLD_", "mmap_threshold"),
    (M_TRIM_THRESHOLD, TRIM_THRESHOLD_BYTES, "MALLOC_TRIM_THRESHOLD_", "trim_threshold"),
)

QUIET_SECONDS: Final = 5.0
QUIET_CPU_SHARE: Final = 0.02
BUSY_CPU_SHARE: Final = 0.5
PATIENCE_LOOKS: Final = 4
"""So many times in a row there is too much, and it goes though the process is not quiet."""
PAUSE_LOOKS: Final = 12
PAUSE_LOOKS_MOST: Final = 120
"""So many looks lie between two searches when the process has not grown: a minute, later ten."""
RETURN_FROM_BYTES: Final = 32 * 1024 * 1024
"""Less than that is not worth looking for: a burst of answers takes it again."""


def tune_process() -> None:
    """Set the interpreter, the allocator and the limit of open files for a broker."""
    sys.setswitchinterval(SWITCH_INTERVAL_SECONDS)
    if tune_allocator():
        return_freed_memory()
    raise_open_files_limit()


def tune_allocator(environment: Mapping[str, str] = os.environ) -> bool:
    """Make glibc keep large freed blocks, by what ``environment`` does not say otherwise.

    False where nothing was set: the C library is another one, or the environment says it all.
    """
    library = ctypes.CDLL(None)
    if not hasattr(library, "gnu_get_libc_version"):
        return False
    tunables = environment.get("GLIBC_TUNABLES", "")
    wanted = [
        (limit, size_bytes)
        for limit, size_bytes, variable, tunable in _LIMITS
        if variable not in environment and f"glibc.malloc.{tunable}=" not in tunables
    ]
    return bool(wanted) and all(library.mallopt(*each) for each in wanted)


def return_freed_memory(quiet_seconds: float = QUIET_SECONDS) -> None:
    """Begin to give freed memory back to the kernel whenever the process has had a quiet time.

    What glibc is told to keep is meant for a load that goes on; one large request, or one load that
    is over, must not hold it for good. Rather in quiet, and never while the process is busy: while
    glibc looks through 200 MB, for some 50 ms (measured), every thread that needs a block from it
    waits.
    """
    start_thread("barnabas-memory", partial(_watch_memory, ctypes.CDLL(None), quiet_seconds))


def _watch_memory(library: ctypes.CDLL, quiet_seconds: float) -> None:
    watch = MemoryWatch(idle_bytes(library))
    _, least_bytes = memory_bytes()
    cpu_s = time.process_time()
    while True:
        sleep(quiet_seconds)
        before_s, cpu_s = cpu_s, time.process_time()
        _, resident_bytes = memory_bytes()
        least_bytes = min(least_bytes, resident_bytes)
        if resident_bytes - least_bytes < RETURN_FROM_BYTES:
            continue  # There can be nothing; to ask takes 15 ms where 100,000 blocks are free.
        found_bytes = idle_bytes(library)
        if watch.is_due((cpu_s - before_s) / quiet_seconds, found_bytes):
            library.malloc_trim(0)
            watch.trimmed(found_bytes, idle_bytes(library))


class _MallocInfo(ctypes.Structure):
    """What ``mallinfo2`` returns."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    ]


def idle_bytes(library: ctypes.CDLL) -> int:
    """Return how much of the process is in memory and not in use by blocks of the C library.

    A glibc before 2.33 does not say what is in use: then it is all that is in memory.
    """
    _, resident_bytes = memory_bytes()
    if not hasattr(library, "mallinfo2"):
        return resident_bytes
    library.mallinfo2.restype = _MallocInfo
    info = library.mallinfo2()
    used_bytes: int = info.uordblks + info.hblkhd
    return resident_bytes - used_bytes


class MemoryWatch:
    """When freed memory is worth looking for, judged by looks at regular times.

    What is idle is an estimate: freed blocks, but also code, stacks and Python's own arenas, and
    what was in use there when it was looked for may be free an hour later. So it is looked for
    again, in quiet, less often each time that nothing was found.
    """

    def __init__(self, idle_bytes: int) -> None:
        """``idle_bytes`` is what the process has without any load."""
        self._least_bytes = self._floor_bytes = idle_bytes
        self._looks = 0
        self._looks_since = 0
        self._pause_looks = PAUSE_LOOKS

    def is_due(self, cpu_share: float, idle_bytes: int) -> bool:
        """Take a look in; return whether freed memory is to be looked for now."""
        self._floor_bytes = min(self._floor_bytes, idle_bytes)
        self._least_bytes = min(self._least_bytes, idle_bytes)
        self._looks_since += 1
        is_quiet = cpu_share < QUIET_CPU_SHARE
        if idle_bytes - self._floor_bytes >= RETURN_FROM_BYTES:
            self._looks += 1
            return cpu_share < BUSY_CPU_SHARE and (is_quiet or self._looks >= PATIENCE_LOOKS)
        self._looks = 0
        return (
            is_quiet
            and self._looks_since >= self._pause_looks
            and idle_bytes - self._least_bytes >= RETURN_FROM_BYTES
        )

    def trimmed(self, before_bytes: int, after_bytes: int) -> None:
        """Take in what was idle before freed memory was given back, and what is idle now."""
        found = before_bytes - after_bytes >= RETURN_FROM_BYTES
        self._pause_looks = PAUSE_LOOKS if found else min(2 * self._pause_looks, PAUSE_LOOKS_MOST)
        self._floor_bytes = after_bytes
        self._looks = self._looks_since = 0


def raise_open_files_limit() -> int:
    """Raise the soft limit of open files to the hard one and return it.

    A connection and a segment each need a file; the usual soft limit of 1024 is for programs that
    call select().
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard
