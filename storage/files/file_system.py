"""Files, directories and devices, as storage needs them.

Everything else in ``storage`` is written against :class:`FileSystem` and :class:`File`, so that
tests can swap in ``simulated.py``, a disk that loses, tears and reorders what was not synced. Calls
without a guarantee (:meth:`File.start_writeback`, :meth:`File.allocate`) are best effort and never
raise if the kernel does not support them.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from barnabas.storage.files.io import FileSlice

Buffer = bytes | bytearray | memoryview


class AlreadyLocked(Exception):
    """Another process holds the lock of this data directory."""


class Lock(Protocol):
    """An exclusive lock, held until released or until the process ends."""

    def release(self) -> None:
        """Release the lock for the next process."""
        ...


class Device(Protocol):
    """Device of a directory; one call syncs all of its files."""

    def sync(self) -> None:
        """Return when all earlier writes to the device are on stable storage.

        Raises OSError when any write to it has failed since the device was opened.
        """
        ...

    def close(self) -> None:
        """Close the file; syncs nothing."""
        ...


class File(Protocol):
    """One open file; positions and sizes are bytes."""

    def pread(self, size: int, position: int) -> bytes:
        """Read ``size`` bytes at ``position``; fewer at the end of the file."""
        ...

    def pread_cached(self, size: int, position: int) -> Buffer | None:
        """Read like :meth:`pread`, or return None if that would wait for the disk."""
        ...

    def pread_passing(self, size: int, position: int) -> bytes:
        """Read like :meth:`pread` without adding pages to the page cache."""
        ...

    def slice(self, size: int, position: int) -> "FileSlice | None":
        """Return these bytes for sending, or None if that would wait for the disk.

        Returns None also if that is unknown, and for a file outside of the operating system.
        """
        ...

    def pwritev(self, buffers: Sequence[Buffer], position: int) -> None:
        """Write all of ``buffers`` one after the other at ``position``, to the page cache."""
        ...

    def pwritev_durable(self, buffers: Sequence[Buffer], position: int) -> None:
        """Write all of ``buffers`` and return when these bytes are on stable storage.

        Says nothing about bytes written earlier by other calls.
        """
        ...

    def begin_page(self, buffers: Sequence[Buffer], position: int) -> None:
        """Write one page and start its write-back; durable after :meth:`fdatasync`."""
        ...

    def fdatasync(self) -> None:
        """Return when all that was written, and the file's size, are on stable storage."""
        ...

    def start_writeback(self, position: int, size: int) -> None:
        """Start to write this range back in the kernel; best effort, guarantees nothing."""
        ...

    def truncate(self, size: int) -> None:
        """Cut or extend (with zeros) to ``size`` bytes; durable only after :meth:`fdatasync`."""
        ...

    def allocate(self, position: int, size: int) -> None:
        """Reserve disk blocks without changing the file's size; best effort."""
        ...

    def zero_fill(self, size: int) -> None:
        """Extend the file to ``size`` bytes by writing zeros; not synced."""
        ...

    def reserve(self, size: int) -> None:
        """Extend the file to ``size`` bytes with blocks of its own; not synced.

        Afterwards writes within it do not fail because the disk is full. OSError (ENOSPC) leaves
        the file somewhere between its old size and ``size``.
        """
        ...

    def size(self) -> int:
        """Size of the file in bytes."""
        ...

    def close(self) -> None:
        """Close the descriptor; syncs nothing."""
        ...


class FileSystem(Protocol):
    """Files and directories by path (``str``, separated by ``/``)."""

    def open(self, path: str, *, create: bool = False) -> File:
        """Open for reading and writing; raises FileNotFoundError without ``create``."""
        ...

    def exists(self, path: str) -> bool:
        """Return whether a file or directory of this name exists."""
        ...

    def is_directory(self, path: str) -> bool:
        """Return whether a directory of this name exists."""
        ...

    def list_directory(self, path: str) -> list[str]:
        """Names in a directory, sorted."""
        ...

    def make_directory(self, path: str, *, exist_ok: bool = False) -> None:
        """Create a directory and its missing parents."""
        ...

    def remove_directory(self, path: str) -> None:
        """Remove an empty directory."""
        ...

    def rename(self, old: str, new: str) -> None:
        """Rename a file or directory, replacing a file of the new name."""
        ...

    def unlink(self, path: str) -> None:
        """Remove a file; handles that are open on it stay usable."""
        ...

    def sync_directory(self, path: str) -> None:
        """Make creations, renames and removals in this directory durable."""
        ...

    def open_device(self, path: str) -> Device | None:
        """Return the device of ``path``, or None if it cannot be synced as a whole."""
        ...

    def read_file(self, path: str) -> bytes:
        """Content of a whole file."""
        ...

    def write_file_atomically(self, path: str, data: Buffer) -> None:
        """Replace a file so that a crash leaves the old or the new content; durable on return."""
        ...

    def free_bytes(self, path: str) -> int:
        """Bytes this process may still write on the device that holds ``path``."""
        ...

    def total_bytes(self, path: str) -> int:
        """Size of the device that holds ``path``."""
        ...

    def lock(self, path: str) -> Lock:
        """Take the exclusive lock file ``path``; raises :class:`AlreadyLocked`."""
        ...

    def join(self, *parts: str) -> str:
        """Put a path together."""
        ...


def temporary_name(path: str) -> str:
    """Return the name under which :meth:`FileSystem.write_file_atomically` prepares a file."""
    return path + ".tmp"


def replace_file(files: FileSystem, path: str, data: Buffer) -> None:
    """Replace a file by the steps of ``write_file_atomically``: write, sync, rename, sync."""
    temporary = temporary_name(path)
    file = files.open(temporary, create=True)
    try:
        file.truncate(0)  # a leftover of a crash may be longer than the new content
        file.pwritev([data], 0)
        file.fdatasync()
    finally:
        file.close()
    files.rename(temporary, path)
    files.sync_directory(path.rpartition("/")[0] or ("/" if path.startswith("/") else "."))
