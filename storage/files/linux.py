"""System calls of Linux that Python's ``os`` lacks; each says so where the system has none."""

import array
import ctypes
import fcntl
import os
import sys
import termios
from collections.abc import Callable
from functools import cache
from itertools import takewhile

_CACHESTAT = 451
"""The number of this system call; the C library has no function for it."""

SYNC_FILE_RANGE_WRITE = 2
FALLOC_FL_KEEP_SIZE = 1
SYNCED_WHOLE = {0xEF53: "ext4", 0x58465342: "xfs", 0x9123683E: "btrfs", 0xF2F52010: "f2fs"}
"""Numbers (as in ``statfs``) of file systems that one ``syncfs`` makes durable: files, names and
the cache of the device. For others, such as NFS and FUSE, that is not known."""

_STATFS_LONGS = 32
"""More than any ``struct statfs`` has; the first says of what kind the file system is."""

TELLS_ERRORS_SINCE = (5, 8)
"""First Linux version on which syncing a whole file system reports a failed write (D9)."""


class _Range(ctypes.Structure):
    """``struct cachestat_range``, bytes."""

    _fields_ = (("position", ctypes.c_uint64), ("size", ctypes.c_uint64))


class _CacheState(ctypes.Structure):
    """``struct cachestat``, pages."""

    _fields_ = tuple(
        (name, ctypes.c_uint64)
        for name in ("cached", "dirty", "writeback", "evicted", "recently_evicted")
    )


def cached_pages(descriptor: int, size: int, position: int) -> int:
    """Return the number of cached pages of a range of a file, or -1 if the kernel does not report
    it.

    A page that is being read counts already: it is available in a moment.
    """
    call = _system_call()
    state = _CacheState()
    asked = _Range(position, size)
    if call is None or call(_CACHESTAT, descriptor, ctypes.byref(asked), ctypes.byref(state), 0):
        return -1
    cached: int = state.cached
    return cached


@cache
def _system_call() -> Callable[..., int] | None:
    """Linux' ``syscall``, or None on another system, whose numbers mean something else."""
    if sys.platform != "linux":
        return None
    function = ctypes.CDLL(None, use_errno=True).syscall
    function.restype = ctypes.c_long
    function.argtypes = [
        ctypes.c_long,
        ctypes.c_uint,
        ctypes.POINTER(_Range),
        ctypes.POINTER(_CacheState),
        ctypes.c_uint,
    ]
    return function


def unsent_bytes(descriptor: int) -> int:
    """Return the number of bytes written to a socket that the peer's system has not confirmed.

    Returns 0 on other systems than Linux: there the same name may mean something else.
    """
    if sys.platform != "linux":
        return 0
    unsent = array.array("i", [0])
    try:
        fcntl.ioctl(descriptor, termios.TIOCOUTQ, unsent)  # SIOCOUTQ of tcp(7) and unix(7).
    except OSError:
        return 0
    return unsent[0]


@cache
def syncfs() -> Callable[[int], int]:
    """Linux' ``syncfs``, which ``os`` lacks."""
    function: Callable[[int], int] = ctypes.CDLL(None, use_errno=True).syncfs
    return function


@cache
def linux_release() -> tuple[int, int]:
    """Major and minor version of the running kernel."""
    major, minor, *_ = os.uname().release.split(".")
    return int(major), int("".join(takewhile(str.isdigit, minor)) or 0)


def file_system_type(descriptor: int) -> int:
    """Return the number by which ``statfs`` names a file system's kind, 0 if it reports none."""
    function = ctypes.CDLL(None, use_errno=True).fstatfs
    state = (ctypes.c_long * _STATFS_LONGS)()
    if function(descriptor, state) != 0:
        return 0
    return int(state[0]) & 0xFFFFFFFF


LibraryFunction = Callable[[int, int, int, int], None]


@cache
def library_function(name: str) -> LibraryFunction | None:
    """Return a Linux call that ``os`` lacks, as ``call(descriptor, position, size, flags)``.

    None where the C library has no such function. Its failures are dropped on purpose: both
    callers are hints, and an I/O error shows again in the next ``fdatasync``.
    """
    function = getattr(ctypes.CDLL(None, use_errno=True), name, None)
    if function is None:
        return None
    if name == "fallocate":  # int fd, int mode, off_t offset, off_t length
        function.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]

        def fallocate(descriptor: int, position: int, size: int, flags: int) -> None:
            function(descriptor, flags, position, size)

        return fallocate
    # int fd, off64_t offset, off64_t length, unsigned flags
    function.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint]

    def sync_file_range(descriptor: int, position: int, size: int, flags: int) -> None:
        function(descriptor, position, size, flags)

    return sync_file_range
