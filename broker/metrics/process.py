"""Metrics of this process from the operating system, by the names of client libraries."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator

from barnabas.broker.metrics.families import COUNTER, GAUGE, Family, value
from barnabas.broker.runtime.process_usage import memory_bytes
from barnabas.storage.runtime.clock import now_ns

_STARTED_SECONDS = now_ns() / 1e9


def process_families() -> Iterator[Family]:
    """Yield the known ones of CPU time, memory and descriptors."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    yield value(
        "process_cpu_seconds_total",
        COUNTER,
        "CPU time of the process in user and system mode.",
        usage.ru_utime + usage.ru_stime,
    )
    yield value("process_start_time_seconds", GAUGE, "Start of the process.", _STARTED_SECONDS)
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if limit != resource.RLIM_INFINITY:
        yield value("process_max_fds", GAUGE, "Limit of open file descriptors.", limit)
    try:
        yield value(
            "process_open_fds", GAUGE, "Open file descriptors.", len(os.listdir("/proc/self/fd"))
        )
        virtual_bytes, resident_bytes = memory_bytes()
    except OSError:
        return  # No /proc: not Linux.
    yield value("process_virtual_memory_bytes", GAUGE, "Size of the address space.", virtual_bytes)
    yield value("process_resident_memory_bytes", GAUGE, "Resident memory.", resident_bytes)
