"""Memory for the page cache to grow into.

A virtual machine with free page reporting returns memory to the host after two seconds without
use. The next write to the memory waits for the host at each page. Brokers that write hundreds of
megabytes a second spent three quarters of their CPU time there, except one that ran just after the
deletion of files (100x1 KB: 2,900 or 5,300 requests a second, at random).

So the benchmark touches as much memory as a measurement may write right before it. The memory is
then free, and the host has not taken it yet.
"""

from __future__ import annotations

import mmap
import subprocess
import sys
from pathlib import Path

_PIECE = b"\1" * (16 << 20)
_LIMIT = Path("/sys/fs/cgroup/memory.max")
_USED = Path("/sys/fs/cgroup/memory.current")


def touch_memory(size: int) -> None:
    """Touch ``size`` bytes, or half of what is free, and give them back to the kernel."""
    size = min(size, free_bytes() // 2)
    # A child process frees the memory at its end.
    subprocess.run([sys.executable, "-m", "tests.bench.memory", str(size)], check=True)


def free_bytes() -> int:
    """Return the number of bytes free without swapping, within this container's limit."""
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
