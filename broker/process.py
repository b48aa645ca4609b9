"""Settings of the whole process that a daemon wants and an embedded broker must not touch."""

from __future__ import annotations

import ctypes
import os
import resource
import sys
from collections.abc import Mapping

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


def tune_process() -> None:
    """Set the interpreter, the allocator and the limit of open files for a broker."""
    sys.setswitchinterval(SWITCH_INTERVAL_SECONDS)
    tune_allocator()
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


def raise_open_files_limit() -> int:
    """Raise the soft limit of open files to the hard one and return it.

    A connection and a segment each need a file; the usual soft limit of 1024 is for programs that
    call select().
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard
