"""The one module that touches files: the operating system's, behind ``file_system.py``.

Rules of this file:

1. Errors of the operating system leave as the ``OSError`` they are (ENOSPC, EIO). Nothing here
   retries a failed sync: Linux may have marked the pages clean already, so a second ``fdatasync``
   that succeeds proves nothing (invariant D9).
2. A file may be used by several threads at once (the segment thread writes while the loop reads):
   all access is positional, there is no shared file offset.
3. Files and directories are made for their owner only, under any umask: by ``private_opener``,
   ``make_private`` and ``make_private_directory`` here, for the commands as well
   (``tests/tidy/test_private_files.py``). What exists keeps its mode, which its owner chose.
"""

import ctypes
import errno
import fcntl
import os
import sys
from collections.abc import Iterator, Sequence

from barnabas.protocol.buffers import LargeBuffers
from barnabas.storage.files.file_system import AlreadyLocked, Buffer, replace_file
from barnabas.storage.files.linux import (
    FALLOC_FL_KEEP_SIZE,
    SYNC_FILE_RANGE_WRITE,
    SYNCED_WHOLE,
    TELLS_ERRORS_SINCE,
    cached_pages,
    file_system_type,
    library_function,
    linux_release,
    syncfs,
)

IOV_MAX = 1024
"""Buffers one ``pwritev`` or ``writev`` takes on Linux (UIO_MAXIOV)."""

ZERO_CHUNK_BYTES = 1 << 20
REUSED_BYTES_MIN = 64 * 1024
"""Size from which memory for reading is reused instead of allocated again."""

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
WINDOW_BYTES = 1 << 20
"""Bytes of the page cache that are checked ahead of a slow reader."""

_UNSUPPORTED = (errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)
_READ_BYTES = 1024 * 1024
"""The files that are read whole are smaller than this."""


def window(buffers: Sequence[Buffer], skip: int) -> list[Buffer]:
    """Return the part of ``buffers`` after its first ``skip`` bytes, by reference."""
    for index, buffer in enumerate(buffers):
        if skip < len(buffer):
            return [memoryview(buffer)[skip:], *buffers[index + 1 :]]
        skip -= len(buffer)
    return []


def _batches(buffers: Sequence[Buffer]) -> Iterator[Sequence[Buffer]]:
    if len(buffers) <= IOV_MAX:
        yield buffers
        return
    for start in range(0, len(buffers), IOV_MAX):
        yield buffers[start : start + IOV_MAX]


COPIED_BYTES = 1024 * 1024
PRIVATE_FILE = 0o600
PRIVATE_DIRECTORY = 0o700


def private_opener(path: str, flags: int) -> int:
    """Open a file as an ``opener`` of ``open``; a new file is readable for its owner only."""
    return os.open(path, flags | os.O_CLOEXEC, PRIVATE_FILE)


def make_private_directory(path: str, *, exist_ok: bool = False, parents: bool = False) -> None:
    """Make a directory that only its owner may enter, with ``parents`` the missing ones as well.

    Raises FileExistsError unless ``exist_ok``; a directory that exists keeps its mode.
    """
    parent = os.path.dirname(path.rstrip(os.sep))
    if parents and parent and not os.path.exists(parent):
        make_private_directory(parent, exist_ok=True, parents=True)
    try:
        os.mkdir(path, PRIVATE_DIRECTORY)
    except FileExistsError:
        if not exist_ok or not os.path.isdir(path):
            raise


def copy_private(original: str, copy: str) -> None:
    """Copy a file; only its owner may read the copy."""
    with open(original, "rb") as reading, open(copy, "xb", opener=private_opener) as writing:
        while block := reading.read(COPIED_BYTES):
            writing.write(block)


def make_private(path: str) -> None:
    """Create a file that only its owner may read, or remove others' permissions from an existing
    one.

    A file of another user keeps its permissions.
    """
    descriptor = private_opener(path, os.O_RDWR | os.O_CREAT)
    try:
        if os.fstat(descriptor).st_uid == os.geteuid():
            os.fchmod(descriptor, PRIVATE_FILE)
    finally:
        os.close(descriptor)


class LocalFile:
    """A file of the operating system."""

    __slots__ = ("_buffers", "_descriptor", "path")

    def __init__(self, descriptor: int, path: str, buffers: LargeBuffers) -> None:
        self._descriptor = descriptor
        self._buffers = buffers
        self.path = path

    def pread(self, size: int, position: int) -> bytes:
        """Read until ``size`` bytes are read or the file ends."""
        data = os.pread(self._descriptor, size, position)
        if len(data) == size or not data:
            return data
        return data + self.pread(size - len(data), position + len(data))  # short read or the end

    def pread_cached(self, size: int, position: int) -> Buffer | None:
        """Read with RWF_NOWAIT, for the loop's thread; return None if a page is missing from the
        cache.
        """
        buffer = (
            self._buffers.take(size) if size >= REUSED_BYTES_MIN else memoryview(bytearray(size))
        )
        try:
            count = os.preadv(self._descriptor, [buffer], position, os.RWF_NOWAIT)
        except BlockingIOError:
            return None
        except OSError as error:
            if error.errno not in _UNSUPPORTED:
                raise
            return self.pread(size, position)  # file system without RWF_NOWAIT, such as tmpfs
        if count < size and position + count < self.size():
            return None  # only the front of the range was cached
        return buffer[:count]

    def pread_passing(self, size: int, position: int) -> bytes:
        """Read without reading ahead, and drop the pages again unless some were in the cache.

        The descriptor must serve nothing else: its read-ahead stays off.
        """
        os.posix_fadvise(self._descriptor, 0, 0, os.POSIX_FADV_RANDOM)
        cached = cached_pages(self._descriptor, size, position)
        data = self.pread(size, position)
        if cached == 0:
            os.posix_fadvise(self._descriptor, position, size, os.POSIX_FADV_DONTNEED)
        return data

    def slice(self, size: int, position: int) -> "FileSlice | None":
        """Return a slice if ``cachestat`` (Linux 6.5) finds every page in the cache, else None."""
        return FileSlice(self, size, position) if self.has_cached(size, position) else None

    def has_cached(self, size: int, position: int) -> bool:
        """Return whether all these bytes are in the page cache; False if the kernel does not report
        it.
        """
        pages = (position + size - 1) // PAGE_BYTES - position // PAGE_BYTES + 1
        return cached_pages(self._descriptor, size, position) >= pages

    def will_need(self, size: int, position: int) -> None:
        """Start to read these bytes in the kernel, without waiting."""
        os.posix_fadvise(self._descriptor, position, size, os.POSIX_FADV_WILLNEED)

    def send(self, descriptor: int, size: int, position: int) -> int:
        """Send by ``sendfile``; return the number of bytes sent, 0 at the end of the file."""
        return os.sendfile(descriptor, self._descriptor, position, size)

    def shortened(self) -> OSError:
        """Return the error to raise if bytes that existed are missing."""
        return OSError(errno.EIO, "the file has become shorter", self.path)

    def pwritev(self, buffers: Sequence[Buffer], position: int) -> None:
        """Write all buffers, in as many system calls as it takes: nearly always one."""
        if len(buffers) <= IOV_MAX:
            written = os.pwritev(self._descriptor, buffers, position)
            if written == sum(map(len, buffers)):
                return
            buffers = window(buffers, written)
            position += written
        for batch in _batches(buffers):
            remaining: Sequence[Buffer] = batch
            while remaining:
                written = os.pwritev(self._descriptor, remaining, position)
                position += written
                remaining = window(remaining, written)

    def pwritev_durable(self, buffers: Sequence[Buffer], position: int) -> None:
        """Write with RWF_DSYNC if one call suffices, else write and fdatasync."""
        if len(buffers) <= IOV_MAX:
            try:
                written = os.pwritev(self._descriptor, buffers, position, os.RWF_DSYNC)
            except OSError as error:
                if error.errno not in _UNSUPPORTED:
                    raise
                written = 0
            if written == sum(map(len, buffers)):
                return
            buffers = window(buffers, written)
            position += written
        self.pwritev(buffers, position)
        os.fdatasync(self._descriptor)

    def begin_page(self, buffers: Sequence[Buffer], position: int) -> None:
        """Write, and start the write-back of the dirty pages of the range.

        A range of less than a page stays in the cache. ``sync_file_range`` would not have that
        effect, but ``os`` lacks it, and it costs 10 us more on an idle broker.
        """
        self.pwritev(buffers, position)
        try:
            os.posix_fadvise(self._descriptor, position, 1, os.POSIX_FADV_DONTNEED)
        except OSError:
            return  # A hint; what is wrong with the disk the sync says.

    def fdatasync(self) -> None:
        """Sync data and size; an error here must stop the process (D9)."""
        os.fdatasync(self._descriptor)

    def start_writeback(self, position: int, size: int) -> None:
        """Start ``sync_file_range`` without waiting for it."""
        call = library_function("sync_file_range")
        if call is not None:
            call(self._descriptor, position, size, SYNC_FILE_RANGE_WRITE)

    def truncate(self, size: int) -> None:
        """Set the size with ``ftruncate``."""
        os.ftruncate(self._descriptor, size)

    def allocate(self, position: int, size: int) -> None:
        """Reserve blocks with ``fallocate(KEEP_SIZE)``."""
        call = library_function("fallocate")
        if call is not None:
            call(self._descriptor, position, size, FALLOC_FL_KEEP_SIZE)

    def zero_fill(self, size: int) -> None:
        """Write zeros from the present end up to ``size``."""
        zeros = bytes(ZERO_CHUNK_BYTES)
        position = self.size()
        while position < size:
            step = min(size - position, ZERO_CHUNK_BYTES)
            self.pwritev([memoryview(zeros)[:step]], position)
            position += step

    def reserve(self, size: int) -> None:
        """Allocate with ``posix_fallocate``, or with zeros where the file system cannot."""
        try:
            os.posix_fallocate(self._descriptor, 0, size)
        except OSError as error:
            if error.errno not in _UNSUPPORTED:
                raise
            self.zero_fill(size)

    def size(self) -> int:
        """Return the size from the kernel, so that all handles agree."""
        return os.fstat(self._descriptor).st_size

    def close(self) -> None:
        """Close the descriptor; harmless when it is closed already."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        # A reader on another thread may hold a file whose segment was removed or put aside.
        self.close()


class FileSlice:
    """Bytes of a file that will not change, for the kernel to send without copying them."""

    __slots__ = ("_file", "_position", "_size")

    def __init__(self, file: LocalFile, size: int, position: int) -> None:
        self._file = file
        self._size = size
        self._position = position

    def __len__(self) -> int:
        return self._size

    def send(self, descriptor: int) -> int:
        """Send pages of the kernel to a socket; returns the number of bytes that it took.

        BlockingIOError when the socket takes none; another OSError when it or the disk is broken.
        """
        sent = self._file.send(descriptor, self._size, self._position)
        if not sent:
            raise self._file.shortened()
        return sent

    def is_cached(self) -> bool:
        """Return whether the next bytes can be sent without waiting for the disk."""
        return self._file.has_cached(min(self._size, WINDOW_BYTES), self._position)

    def will_be_needed(self) -> None:
        """Start to read the next bytes in the kernel, without waiting."""
        self._file.will_need(min(self._size, WINDOW_BYTES), self._position)

    def after(self, sent: int) -> "FileSlice":
        """Return the slice after the first ``sent`` bytes."""
        return FileSlice(self._file, self._size - sent, self._position + sent)

    def first(self, size: int) -> "FileSlice":
        """Return the first ``size`` bytes of the slice."""
        return FileSlice(self._file, size, self._position)

    def read(self) -> bytes:
        """Return the bytes of the slice; waits for the disk."""
        data = self._file.pread(self._size, self._position)
        if len(data) < self._size:
            raise self._file.shortened()
        return data


class LocalDevice:
    """A file system of the operating system, by a descriptor of one of its directories.

    The kernel remembers for each descriptor which failed writes it has reported. A descriptor that
    is open from the start on reports all of them.
    """

    __slots__ = ("_descriptor", "_path")

    def __init__(self, descriptor: int, path: str) -> None:
        self._descriptor = descriptor
        self._path = path

    def sync(self) -> None:
        """Call ``syncfs``; an error must stop the process (D9)."""
        if syncfs()(self._descriptor) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), self._path)

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self._descriptor)


class LocalLock:
    """An ``flock`` on a file; the kernel drops it when the process ends, however it ends."""

    __slots__ = ("_descriptor",)

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def release(self) -> None:
        """Close the descriptor, which drops the lock."""
        os.close(self._descriptor)


class LocalFileSystem:
    """The operating system's files.

    ``read_only`` opens them so that they cannot be written and locks without making the lock file:
    for looking at the data of others, on a medium that may not be writable.
    """

    def __init__(self, *, read_only: bool = False) -> None:
        self._buffers = LargeBuffers()
        self._access = os.O_CLOEXEC | (os.O_RDONLY if read_only else os.O_RDWR)
        self._may_create = 0 if read_only else os.O_CREAT

    def open(self, path: str, *, create: bool = False) -> LocalFile:
        """Open for reading and writing; a new file is readable for its owner only."""
        flags = self._access | (self._may_create if create else 0)
        return LocalFile(private_opener(path, flags), path, self._buffers)

    def exists(self, path: str) -> bool:
        """Return whether the path exists."""
        return os.path.exists(path)

    def is_directory(self, path: str) -> bool:
        """Return whether the path is a directory."""
        return os.path.isdir(path)

    def identity(self, path: str) -> int:
        """Return a number by which a file or directory is known as long as it exists."""
        return os.stat(path).st_ino

    def list_directory(self, path: str) -> list[str]:
        """Names in a directory, sorted."""
        return sorted(os.listdir(path))

    def make_directory(self, path: str, *, exist_ok: bool = False) -> None:
        """Create a directory, for its owner only, and its missing parents."""
        make_private_directory(path, exist_ok=exist_ok, parents=True)

    def remove_directory(self, path: str) -> None:
        """Remove an empty directory."""
        os.rmdir(path)

    def rename(self, old: str, new: str) -> None:
        """Rename, replacing ``new`` atomically."""
        os.rename(old, new)

    def unlink(self, path: str) -> None:
        """Remove a file."""
        os.unlink(path)

    def sync_directory(self, path: str) -> None:
        """Open the directory and fsync it."""
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def open_device(self, path: str) -> LocalDevice | None:
        """Return a device if Linux syncs the file system as a whole and reports errors."""
        if sys.platform != "linux" or linux_release() < TELLS_ERRORS_SINCE:
            return None
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        if file_system_type(descriptor) in SYNCED_WHOLE:
            return LocalDevice(descriptor, path)
        os.close(descriptor)
        return None

    def read_file(self, path: str) -> bytes:
        """Content of a whole file. A start reads thousands of small ones."""
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            data = os.read(descriptor, _READ_BYTES)
            while piece := os.read(descriptor, _READ_BYTES):
                data += piece
        finally:
            os.close(descriptor)
        return data

    def write_file_atomically(self, path: str, data: Buffer) -> None:
        """Write a temporary file, fdatasync, rename it, and fsync the directory."""
        replace_file(self, path, data)

    def free_bytes(self, path: str) -> int:
        """Bytes that an ordinary user may still write (``f_bavail``)."""
        state = os.statvfs(path)
        return state.f_bavail * state.f_frsize

    def total_bytes(self, path: str) -> int:
        """Size of the device, with the part that is reserved for root."""
        state = os.statvfs(path)
        return state.f_blocks * state.f_frsize

    def lock(self, path: str) -> LocalLock:
        """Take an exclusive ``flock`` without waiting."""
        descriptor = private_opener(path, self._access | self._may_create)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(descriptor)
            raise AlreadyLocked(f"{path} is locked by another process") from error
        return LocalLock(descriptor)

    def join(self, *parts: str) -> str:
        """Put a path together as the operating system does."""
        return os.path.join(*parts)
