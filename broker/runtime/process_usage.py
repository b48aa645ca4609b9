"""Memory and disk use of this process, as the operating system reports it."""

from __future__ import annotations

import resource

_PAGE_BYTES = resource.getpagesize()


def memory_bytes() -> tuple[int, int]:
    """Return the sizes of the address space and of its resident part; raises OSError."""
    with open("/proc/self/statm", "rb") as file:
        virtual_pages, resident_pages = file.read().split()[:2]
    return int(virtual_pages) * _PAGE_BYTES, int(resident_pages) * _PAGE_BYTES


def disk_bytes() -> tuple[int, int] | None:
    """Return the bytes that this process has read from and written to disks, or None if unknown."""
    try:
        with open("/proc/self/io", "rb") as file:
            lines = dict(line.split(b": ") for line in file.read().splitlines())
    except OSError:
        return None
    return int(lines[b"read_bytes"]), int(lines[b"write_bytes"])
