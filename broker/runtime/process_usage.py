"""What the operating system says that this process uses of memory and of the disks."""

from __future__ import annotations

import resource

_PAGE_BYTES = resource.getpagesize()


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
