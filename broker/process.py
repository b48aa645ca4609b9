"""Settings of the whole process that a daemon wants and an embedded broker must not touch."""

from __future__ import annotations

import ctypes
import resource
import sys

# With one journal thread beside the loop, the default of 5 ms is what a group commit would wait
# for the interpreter; shorter, and its answers go out as soon as the disk is done.
SWITCH_INTERVAL_SECONDS = 0.0005

# Answers to Fetch are about 1 MiB each. At its defaults glibc gives such memory back to the kernel
# after every answer and faults it in again page by page, 3.8 times the CPU of the whole answer.
# The first limit alone changes nothing; up to so many freed bytes stay with the process.
M_TRIM_THRESHOLD, TRIM_THRESHOLD_BYTES = -1, 536_870_912
M_MMAP_THRESHOLD, MMAP_THRESHOLD_BYTES = -3, 268_435_456


def tune_process() -> None:
    """Set the interpreter, the allocator and the limit of open files for a broker."""
    sys.setswitchinterval(SWITCH_INTERVAL_SECONDS)
    tune_allocator()
    raise_open_files_limit()


def tune_allocator() -> bool:
    """Make glibc keep large freed blocks; False where the C library is another one."""
    library = ctypes.CDLL(None)
    if not hasattr(library, "gnu_get_libc_version"):
        return False
    return bool(
        library.mallopt(M_MMAP_THRESHOLD, MMAP_THRESHOLD_BYTES)
        and library.mallopt(M_TRIM_THRESHOLD, TRIM_THRESHOLD_BYTES)
    )


def raise_open_files_limit() -> int:
    """Raise the soft limit of open files to the hard one and return it.

    A connection and a segment each need a file; the usual soft limit of 1024 is for programs that
    call select().
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard
