"""Settings of the whole process that a daemon needs and an embedded broker must not change."""

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

# With one journal thread beside the loop, a group commit would wait up to the default of 5 ms for
# the interpreter. With a shorter interval its responses are sent as soon as the disk is done.
SWITCH_INTERVAL_SECONDS = 0.0005

# Responses to Fetch are about 1 MiB each. By default glibc returns such memory to the kernel after
# every response and faults it in again page by page, 3.8 times the CPU of the whole response. The
# first limit, of the freed bytes that the process keeps, has no effect without the second one.
M_TRIM_THRESHOLD, TRIM_THRESHOLD_BYTES = -1, 536_870_912
M_MMAP_THRESHOLD, MMAP_THRESHOLD_BYTES = -3, 268_435_456
# Number for mallopt, value, and glibc's own variable in the environment, which has priority.
_LIMITS = (
    (M_MMAP_THRESHOLD, MMAP_THRESHOLD_BYTES, "MALLOC_MMAP_THRESHOLD_", "mmap_threshold"),
    (M_TRIM_THRESHOLD, TRIM_THRESHOLD_BYTES, "MALLOC_TRIM_THRESHOLD_", "trim_threshold"),
)

QUIET_SECONDS: Final = 5.0
QUIET_CPU_SHARE: Final = 0.02
BUSY_CPU_SHARE: Final = 0.5
PATIENCE_CHECKS: Final = 4
"""Number of consecutive checks with too much memory after which it is returned in a busy
process."""
PAUSE_CHECKS: Final = 12
PAUSE_CHECKS_MOST: Final = 120
"""Number of checks between two attempts if the process has not grown: a minute, later ten."""
RETURN_FROM_BYTES: Final = 32 * 1024 * 1024
"""Least idle memory worth returning: a burst of responses needs it again."""


def tune_process() -> None:
    """Set the interpreter, the allocator and the limit of open files for a broker."""
    sys.setswitchinterval(SWITCH_INTERVAL_SECONDS)
    if tune_allocator():
        return_freed_memory()
    raise_open_files_limit()


def tune_allocator(environment: Mapping[str, str] = os.environ) -> bool:
    """Make glibc keep large freed blocks, unless ``environment`` has other settings.

    Returns False if nothing was set: the C library is not glibc, or the environment sets
    everything.
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
    """Start returning freed memory to the kernel after each quiet time of the process.

    The memory that glibc keeps is meant for a continuous load; after a large request or a past load
    it must not stay forever. The return waits for a quiet time and never runs while the process is
    busy: glibc takes about 50 ms for 200 MB (measured), and every thread that needs a block from it
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
    """Result of ``mallinfo2``."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    ]


def idle_bytes(library: ctypes.CDLL) -> int:
    """Return the resident bytes of the process that the C library's blocks do not use.

    A glibc before 2.33 does not report the used bytes: then the result is all resident bytes.
    """
    _, resident_bytes = memory_bytes()
    if not hasattr(library, "mallinfo2"):
        return resident_bytes
    library.mallinfo2.restype = _MallocInfo
    info = library.mallinfo2()
    used_bytes: int = info.uordblks + info.hblkhd
    return resident_bytes - used_bytes


class MemoryWatch:
    """Decides at regular checks whether to return freed memory.

    The idle bytes are an estimate. They include freed blocks, but also code, stacks and Python's
    own arenas, and a block in use may be freed an hour later. So the attempts are repeated in quiet
    times, less often after each attempt without effect.
    """

    def __init__(self, idle_bytes: int) -> None:
        """``idle_bytes`` is the memory of the process without any load."""
        self._least_bytes = self._floor_bytes = idle_bytes
        self._looks = 0
        self._looks_since = 0
        self._pause_looks = PAUSE_CHECKS

    def is_due(self, cpu_share: float, idle_bytes: int) -> bool:
        """Count a check; return whether to return freed memory now."""
        self._floor_bytes = min(self._floor_bytes, idle_bytes)
        self._least_bytes = min(self._least_bytes, idle_bytes)
        self._looks_since += 1
        is_quiet = cpu_share < QUIET_CPU_SHARE
        if idle_bytes - self._floor_bytes >= RETURN_FROM_BYTES:
            self._looks += 1
            return cpu_share < BUSY_CPU_SHARE and (is_quiet or self._looks >= PATIENCE_CHECKS)
        self._looks = 0
        return (
            is_quiet
            and self._looks_since >= self._pause_looks
            and idle_bytes - self._least_bytes >= RETURN_FROM_BYTES
        )

    def trimmed(self, before_bytes: int, after_bytes: int) -> None:
        """Record the idle bytes before and after freed memory was returned."""
        found = before_bytes - after_bytes >= RETURN_FROM_BYTES
        self._pause_looks = PAUSE_CHECKS if found else min(2 * self._pause_looks, PAUSE_CHECKS_MOST)
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
