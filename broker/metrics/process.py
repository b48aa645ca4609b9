"""What the operating system says about this process, by the names every client library uses."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterator

from barnabas.broker.metrics.families import COUNTER, GAUGE, Family, value

_PAGE_BYTES = resource.getpagesize()
_STARTED_SECONDS = time.time()


def process_families() -> Iterator[Family]:
    """Yield CPU time, memory, descriptors; what the system does not tell is left out."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    yield value(
        "process_cpu_seconds_total",
        COUNTER,
        "CPU time of the process, in user and in system mode.",
        usage.ru_utime + usage.ru_stime,
    )
    yield value(
        "process_start_time_seconds", GAUGE, "Start of the process, since 1970.", _STARTED_SECONDS
    )
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if limit != resource.RLIM_INFINITY:
        yield value("process_max_fds", GAUGE, "Most file descriptors the process may have.", limit)
    try:
        yield value(
            "process_open_fds", GAUGE, "File descriptors in use.", len(os.listdir("/proc/self/fd"))
        )
        virtual_bytes, resident_bytes = memory_bytes()
    except OSError:
        return  # No /proc: not Linux.
    yield value("process_virtual_memory_bytes", GAUGE, "Address space.", virtual_bytes)
    yield value("process_resident_memory_bytes", GAUGE, "Memory in use.", resident_bytes)


def memory_bytes() -> tuple[int, int]:
    """Return the size of the address space and of what of it is in memory; raises OSError."""
    with open("/proc/self/statm", "rb") as file:
        virtual_pages, resident_pages = file.read().split()[:2]
    return int(virtual_pages) * _PAGE_BYTES, int(resident_pages) * _PAGE_BYTES


def disk_bytes() -> tuple[int, int] | None:
    """Return what this process made the disks read and write, where the system tells."""
    try:
        with open("/proc/self/io", "rb") as file:
            lines = dict(line.split(b": ") for line in file.read().splitlines())
    except OSError:
        return None
    return int(lines[b"read_bytes"]), int(lines[b"write_bytes"])
