"""Memory that the host of a virtual machine has not given to it yet.

The first write to a page that nobody has touched waits for the host there: 6 GB into the page
cache took 15 s of system time, and 3 s when the same pages were written again. Brokers that write
hundreds of megabytes a second would have that counted as theirs, one more than the other.
"""

from __future__ import annotations

import mmap
import subprocess
import sys
from pathlib import Path

_PIECE = b"\1" * (16 << 20)
_LIMIT = Path("/sys/fs/cgroup/memory.max")
_USED = Path("/sys/fs/cgroup/memory.current")


def touch_memory() -> None:
    """Touch most of the memory that is free, and give it back to the kernel."""
    size = free_bytes() * 4 // 5
    # In a process of its own, whose memory is gone with it.
    subprocess.run([sys.executable, "-m", "tests.bench.memory", str(size)], check=True)


def free_bytes() -> int:
    """Return how much could be used without swapping, and within this container's limit."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    values = dict(line.split(":") for line in lines)
    free = int(values["MemAvailable"].split()[0]) * 1024
    limit = _LIMIT.read_text().strip() if _LIMIT.exists() else "max"
    if limit != "max":
        free = min(free, int(limit) - int(_USED.read_text()))
    return free


def touch(size: int) -> None:
    """Write to ``size`` bytes of new memory."""
    with mmap.mmap(-1, size) as memory:
        while memory.tell() + len(_PIECE) <= size:
            memory.write(_PIECE)


if __name__ == "__main__":
    touch(int(sys.argv[1]))
