"""Disk in memory that loses data that was not synced: for crash tests, and for the test broker.

Rules of this file:

1. Its results are those of the operating system, errors included; one suite of tests runs on both.
2. Only ``fdatasync``, durable writes and ``sync_directory`` guarantee anything, and only about
   their own file, range or directory. ``barnabas.broker.testing.disk.unsynced`` draws what survives
   of the rest.
3. Changes are counted (:attr:`SimulatedFileSystem.operations`), so that a test can run a scenario
   once, then crash it after each single change.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from random import Random
from types import UnionType
from typing import NamedTuple

from barnabas.broker.testing.disk.unsynced import (
    SECTOR_BYTES,
    Change,
    Directory,
    Inode,
    PowerLoss,
    Truncate,
    Write,
    apply_change,
)
from barnabas.storage.files.file_system import AlreadyLocked, Buffer, replace_file
from barnabas.storage.runtime.threads import new_rlock

UNLIMITED_BYTES = 1 << 50
NAME_BYTES_MAX = 255
"""Maximum length of a name in a directory, as in every file system of Linux."""


class SimulatedCrash(BaseException):
    """Simulated crash of the machine; not an ``Exception``, so that no handler catches it as an
    error.
    """


class Operation(NamedTuple):
    """Call of the disk, as fault hooks receive it; ``number`` counts changes, from 1."""

    number: int
    name: str
    path: str
    position: int = 0
    size: int = 0


Hook = Callable[[Operation], None]


class SimulatedFile:
    """File handle; like a real one it outlives renames and the file's removal."""

    __slots__ = ("_inode", "_system", "path")

    def __init__(self, system: SimulatedFileSystem, inode: Inode, path: str) -> None:
        self._system = system
        self._inode = inode
        self.path = path

    def pread(self, size: int, position: int) -> bytes:
        """Read from memory."""
        with self._system.lock_of_state:
            self._system.reading("pread", self.path, position, size)
            return self._inode.content.read(position, size)

    def pread_cached(self, size: int, position: int) -> bytes | None:
        """Read from memory; return None while the file system is ``cold``."""
        return None if self._system.cold else self.pread(size, position)

    def pread_passing(self, size: int, position: int) -> bytes:
        """Read from memory; there is no page cache."""
        return self.pread(size, position)

    def slice(self, size: int, position: int) -> None:
        """Do not send the range to a socket: the kernel knows no such file."""

    def pwritev(self, buffers: Sequence[Buffer], position: int) -> None:
        """Write; lost at power loss unless synced."""
        with self._system.lock_of_state:
            self._system.write(self._inode, self.path, buffers, position)

    def pwritev_durable(self, buffers: Sequence[Buffer], position: int) -> None:
        """Write and sync this range; counts as two operations."""
        with self._system.lock_of_state:
            size = self._system.write(self._inode, self.path, buffers, position)
            self._system.sync_range(self._inode, self.path, position, size)

    def begin_page(self, buffers: Sequence[Buffer], position: int) -> None:
        """Write; promises no more than ``pwritev``."""
        self.pwritev(buffers, position)

    def fdatasync(self) -> None:
        """Make the content and the size durable."""
        with self._system.lock_of_state:
            self._system.sync(self._inode, self.path)

    def start_writeback(self, position: int, size: int) -> None:
        """Return at once, without a guarantee."""

    def truncate(self, size: int) -> None:
        """Set the size; lost at power loss unless synced."""
        with self._system.lock_of_state:
            self._system.truncate(self._inode, self.path, size)

    def allocate(self, position: int, size: int) -> None:
        """Return at once, without a guarantee."""

    def zero_fill(self, size: int) -> None:
        """Write zeros from the present end up to ``size``."""
        with self._system.lock_of_state:
            if size > self._inode.content.size:
                self._system.fill(self._inode, self.path, size)

    def reserve(self, size: int) -> None:
        """Reserve space for ``size`` bytes."""
        self.zero_fill(size)

    def size(self) -> int:
        """Present size in bytes."""
        return self._inode.content.size

    def close(self) -> None:
        """Return at once, since nothing is open."""


class SimulatedDevice:
    """Disk as a whole."""

    __slots__ = ("_system",)

    def __init__(self, system: SimulatedFileSystem) -> None:
        self._system = system

    def sync(self) -> None:
        """Make every file and every name durable."""
        self._system.sync_everything()

    def close(self) -> None:
        """Return at once, since nothing is open."""


class SimulatedLock:
    """Lock file that ends with its file system's process."""

    __slots__ = ("_held", "_path")

    def __init__(self, held: set[str], path: str) -> None:
        self._held = held
        self._path = path

    def release(self) -> None:
        """Release the lock."""
        self._held.discard(self._path)


class SimulatedFileSystem:
    """Files in memory with the losses of a disk in a power failure.

    ``capacity_bytes`` limits what all files hold together (ENOSPC beyond). ``track_unsynced=False``
    is plain memory: faster, but it cannot :meth:`crash`. ``lying`` makes every sync a no-op, as a
    disk with a volatile cache does. ``syncs_whole``: whether one call syncs everything.
    """

    def __init__(
        self,
        *,
        capacity_bytes: int | None = None,
        track_unsynced: bool = True,
        lying: bool = False,
        syncs_whole: bool = True,
    ) -> None:
        self.capacity_bytes = capacity_bytes
        self.track_unsynced = track_unsynced
        self.lying = lying
        self.cold = False
        self.syncs_whole = syncs_whole
        self.before: Hook | None = None
        self.after: Hook | None = None
        self.operations = 0
        self.used_bytes = 0
        self.lock_of_state = new_rlock()
        self._root = Directory()
        self._last_operation: int | None = None
        self._failures: dict[int, int] = {}
        self._locks: set[str] = set()

    # ------------------------------------------------------------------------------------- faults

    def crash_after(self, operation_number: int) -> None:
        """Make operation ``operation_number`` the last one that succeeds; see ``operations``."""
        self._last_operation = operation_number

    def fail(self, operation_number: int, error_code: int = errno.EIO) -> None:
        """Make the change with this number raise ``OSError(error_code)``, without effect."""
        self._failures[operation_number] = error_code

    def crash(self, random: Random, *, sector_bytes: int | None = None) -> SimulatedFileSystem:
        """Return the disk as the next boot finds it after a power loss now.

        This disk stays unchanged: many losses can be drawn from one state.
        """
        if not self.track_unsynced:
            raise ValueError("a file system without track_unsynced cannot lose power")
        sector = sector_bytes or random.choice(SECTOR_BYTES)
        with self.lock_of_state:
            survivor = self._successor()
            survivor._root = PowerLoss(random, sector).directory(self._root)  # noqa: SLF001
        survivor.used_bytes = sum(inode.content.size for inode in survivor._root.inodes())  # noqa: SLF001
        return survivor

    def kill(self) -> SimulatedFileSystem:
        """Return the disk as the next process finds it; every later call of this one crashes.

        Nothing is lost, but unsynced data can still be lost later.
        """
        with self.lock_of_state:
            survivor = self._successor()
            survivor._root = self._root  # noqa: SLF001
            survivor.used_bytes = self.used_bytes
            self._root = Directory()
            self._last_operation = -1
        return survivor

    def _successor(self) -> SimulatedFileSystem:
        return SimulatedFileSystem(
            capacity_bytes=self.capacity_bytes,
            track_unsynced=self.track_unsynced,
            lying=self.lying,
            syncs_whole=self.syncs_whole,
        )

    def _check_power(self) -> None:
        if self._last_operation is not None and self.operations >= self._last_operation:
            raise SimulatedCrash

    def reading(self, name: str, path: str, position: int = 0, size: int = 0) -> None:
        """Run the hooks of a call that changes nothing."""
        self._check_power()
        if self.before is not None:
            self.before(Operation(self.operations, name, path, position, size))

    def _changing(self, name: str, path: str, position: int = 0, size: int = 0) -> Operation:
        """Count a change and run the hooks before it."""
        self._check_power()
        self.operations += 1
        operation = Operation(self.operations, name, path, position, size)
        if self.before is not None:
            self.before(operation)
        error_code = self._failures.pop(self.operations, None)
        if error_code is not None:
            raise _refusal(error_code, path)
        return operation

    def _changed(self, operation: Operation) -> None:
        if self.after is not None:
            self.after(operation)

    # ------------------------------------------------------------------------------ file contents

    def write(self, inode: Inode, path: str, buffers: Sequence[Buffer], position: int) -> int:
        """Write all buffers, or as much as fits and raise ENOSPC; return the size."""
        data = buffers[0] if len(buffers) == 1 else b"".join(buffers)
        self._write(inode, path, position, len(data), data)
        return len(data)

    def fill(self, inode: Inode, path: str, size: int) -> None:
        """Write zeros from the present end up to ``size``, or as many as fit and raise ENOSPC."""
        self._write(inode, path, inode.content.size, size - inode.content.size, None)

    def _write(
        self, inode: Inode, path: str, position: int, size: int, data: Buffer | None
    ) -> None:
        operation = self._changing("pwritev", path, position, size)
        room = self._room_for(inode, position, size)
        if data is not None and room < size:
            data = memoryview(data)[:room]
        before = inode.content.size
        if room:
            inode.content.write(position, position + room, data)
            self.used_bytes += inode.content.size - before
            if self.track_unsynced:
                written = None if data is None else bytes(data)
                inode.pending.append(Write(position, position + room, written))
        if room < size:
            raise _refusal(errno.ENOSPC, path)
        self._changed(operation)

    def _room_for(self, inode: Inode, position: int, size: int) -> int:
        """Return the bytes of a write of ``size`` at ``position`` that fit."""
        if self.capacity_bytes is None:
            return size
        present = inode.content.size
        free = self.capacity_bytes - self.used_bytes
        return min(size, max(0, present + free - position))

    def truncate(self, inode: Inode, path: str, size: int) -> None:
        """Cut or extend; not durable."""
        operation = self._changing("truncate", path, 0, size)
        before = inode.content.size
        inode.content.set_size(size)
        self.used_bytes += size - before
        if self.track_unsynced and size != before:
            inode.pending.append(Truncate(size))
        self._changed(operation)

    def sync(self, inode: Inode, path: str) -> None:
        """Make one file's content durable."""
        operation = self._changing("fdatasync", path)
        if self.track_unsynced and not self.lying:
            inode.make_durable()
        self._changed(operation)

    def sync_range(self, inode: Inode, path: str, position: int, size: int) -> None:
        """Make the range just written durable, and nothing else of the file."""
        operation = self._changing("fdatasync", path, position, size)
        if size and self.track_unsynced and not self.lying:
            inode.make_last_write_durable()
        self._changed(operation)

    # ---------------------------------------------------------------------------------- directory

    def open(self, path: str, *, create: bool = False) -> SimulatedFile:
        """Open, or create with a counted operation."""
        with self.lock_of_state:
            self.reading("open", path)
            directory, name = self._parent(path)
            node = _entry(directory, name, path)
            if isinstance(node, Directory):
                raise _refusal(errno.EISDIR, path)
            if node is None:
                if not create:
                    raise _refusal(errno.ENOENT, path)
                operation = self._changing("create", path)
                node = Inode()
                self._change(directory, {name: node})
                self._changed(operation)
            return SimulatedFile(self, node, path)

    def exists(self, path: str) -> bool:
        """Return whether the path exists."""
        with self.lock_of_state:
            self.reading("exists", path)
            return self._is_there(path, Inode | Directory)

    def is_directory(self, path: str) -> bool:
        """Return whether the path is a directory."""
        with self.lock_of_state:
            self.reading("is_directory", path)
            return self._is_there(path, Directory)

    def list_directory(self, path: str) -> list[str]:
        """Names in a directory, sorted."""
        with self.lock_of_state:
            self.reading("list_directory", path)
            return sorted(self._directory(path).entries)

    def make_directory(self, path: str, *, exist_ok: bool = False) -> None:
        """Create a directory and its missing parents, each a counted operation."""
        with self.lock_of_state:
            self._check_power()
            directory, made = self._root, False
            walked = ""
            for name in _parts(path):
                walked += "/" + name
                node = _entry(directory, name, path)
                if node is None:
                    operation = self._changing("make_directory", walked)
                    node, made = Directory(), True
                    self._change(directory, {name: node})
                    self._changed(operation)
                if isinstance(node, Inode):
                    is_last = walked.removeprefix("/") == "/".join(_parts(path))
                    raise _refusal(errno.EEXIST if is_last else errno.ENOTDIR, path)
                directory = node
            if not made and not exist_ok:
                raise _refusal(errno.EEXIST, path)

    def remove_directory(self, path: str) -> None:
        """Remove an empty directory."""
        with self.lock_of_state:
            if self._directory(path).entries:
                raise _refusal(errno.ENOTEMPTY, path)
            operation = self._changing("remove_directory", path)
            directory, name = self._parent(path)
            self._change(directory, {name: None})
            self._changed(operation)

    def rename(self, old: str, new: str) -> None:
        """Rename within or across directories, replacing a file."""
        with self.lock_of_state:
            source, old_name = self._parent(old)
            target, new_name = self._parent(new)
            node = _entry(source, old_name, old)
            if node is None:
                raise _refusal(errno.ENOENT, old)
            replaced = _entry(target, new_name, new)
            self._check_replaceable(node, replaced, old, new)
            operation = self._changing("rename", new)
            if isinstance(replaced, Inode) and replaced is not node:
                self.used_bytes -= replaced.content.size
            if source is target:
                self._change(source, {old_name: None, new_name: node})
            else:
                self._change(target, {new_name: node})
                self._change(source, {old_name: None})
            self._changed(operation)

    def _check_replaceable(
        self,
        node: Inode | Directory,
        replaced: Inode | Directory | None,
        old: str,
        new: str,
    ) -> None:
        """Refuse the renames that an operating system refuses."""
        if _is_below(new, old):
            raise _refusal(errno.EINVAL, new)
        if _is_below(old, new):
            raise _refusal(errno.ENOTEMPTY, new)
        if isinstance(node, Directory):
            if isinstance(replaced, Inode):
                raise _refusal(errno.ENOTDIR, new)
            if replaced is not None and replaced is not node and replaced.entries:
                raise _refusal(errno.ENOTEMPTY, new)
        elif isinstance(replaced, Directory):
            raise _refusal(errno.EISDIR, new)

    def unlink(self, path: str) -> None:
        """Remove a file; its space is free at once."""
        with self.lock_of_state:
            directory, name = self._parent(path)
            node = _entry(directory, name, path)
            if node is None:
                raise _refusal(errno.ENOENT, path)
            if isinstance(node, Directory):
                raise _refusal(errno.EISDIR, path)
            operation = self._changing("unlink", path)
            self._change(directory, {name: None})
            self.used_bytes -= node.content.size
            self._changed(operation)

    def sync_directory(self, path: str) -> None:
        """Make the names in one directory durable; not the files behind them."""
        with self.lock_of_state:
            directory = self._directory(path)
            operation = self._changing("sync_directory", path)
            if not self.lying:
                directory.make_durable()
            self._changed(operation)

    def open_device(self, path: str) -> SimulatedDevice | None:  # noqa: ARG002  (there is one)
        """Return the disk if it ``syncs_whole``, else None."""
        return SimulatedDevice(self) if self.syncs_whole else None

    def sync_everything(self) -> None:
        """Make all files and all names durable, in one counted operation."""
        with self.lock_of_state:
            operation = self._changing("syncfs", "/")
            if self.track_unsynced and not self.lying:
                self._root.make_all_durable()
            self._changed(operation)

    def read_file(self, path: str) -> bytes:
        """Content of a whole file."""
        file = self.open(path)
        return file.pread(file.size(), 0)

    def write_file_atomically(self, path: str, data: Buffer) -> None:
        """Do the same steps as on a real disk, each of them counted."""
        replace_file(self, path, data)

    def free_bytes(self, path: str) -> int:  # noqa: ARG002  (one device holds every path)
        """Return the free bytes, or a large number without a capacity."""
        if self.capacity_bytes is None:
            return UNLIMITED_BYTES
        return max(0, self.capacity_bytes - self.used_bytes)

    def total_bytes(self, path: str) -> int:  # noqa: ARG002  (one device holds every path)
        """Return the capacity, or a large number without one."""
        return UNLIMITED_BYTES if self.capacity_bytes is None else self.capacity_bytes

    def lock(self, path: str) -> SimulatedLock:
        """Take the lock for this file system's only process."""
        with self.lock_of_state:
            self._check_power()
            if path in self._locks:
                raise AlreadyLocked(f"{path} is locked by another process")
            self.open(path, create=True)
            self._locks.add(path)
            return SimulatedLock(self._locks, path)

    def join(self, *parts: str) -> str:
        """Put a path together."""
        return "/".join(part.rstrip("/") if part != "/" else "" for part in parts)

    def _change(self, directory: Directory, change: Change) -> None:
        apply_change(directory.entries, change)
        if self.track_unsynced:
            directory.pending.append(change)

    def _find(self, path: str) -> Inode | Directory | None:
        self._check_power()  # a dead machine does not say "no such file" either
        node: Inode | Directory | None = self._root
        for name in _parts(path):
            if isinstance(node, Inode):
                raise _refusal(errno.ENOTDIR, path)
            if node is None:
                return None
            node = _entry(node, name, path)
        return node

    def _is_there(self, path: str, kind: type | UnionType) -> bool:
        try:
            return isinstance(self._find(path), kind)
        except OSError:
            return False

    def _directory(self, path: str) -> Directory:
        node = self._find(path)
        if node is None:
            raise _refusal(errno.ENOENT, path)
        if isinstance(node, Inode):
            raise _refusal(errno.ENOTDIR, path)
        return node

    def _parent(self, path: str) -> tuple[Directory, str]:
        head, _, name = path.rstrip("/").rpartition("/")
        return self._directory(head), name


def _refusal(code: int, path: str) -> OSError:
    """Return the error of this number; Python picks the subclass (FileNotFoundError ...)."""
    return OSError(code, errno.errorcode[code], path)


def _entry(directory: Directory, name: str, path: str) -> Inode | Directory | None:
    if len(name.encode()) > NAME_BYTES_MAX:
        raise _refusal(errno.ENAMETOOLONG, path)
    return directory.entries.get(name)


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]


def _is_below(path: str, directory: str) -> bool:
    parts, above = _parts(path), _parts(directory)
    return len(parts) > len(above) and parts[: len(above)] == above
