"""Scratch copy of a data directory: it reads the real one and keeps every change to itself.

Rules of this file:

1. The scratch directory has the real one's directories and a link for each of its files. Names are
   created, renamed and removed there, by the operating system.
2. Writes to a linked file go to one file of changes, and reads overlay them on the real file's
   bytes. The real files are only ever opened for reading.
3. SQLite opens its files itself, so those are copies.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from barnabas.storage.files.directory_names import KRAFT_DIRECTORY, is_hidden, partition_of
from barnabas.storage.files.file_system import Buffer, File
from barnabas.storage.files.io import (
    LocalFile,
    LocalFileSystem,
    copy_private,
    make_private_directory,
)

CHANGES = "changes"
DATA = "data"
_COPIED_PREFIX = "barnabas-metadata.sqlite"
_LOCKS = ("barnabas-lock", ".lock")


def link_tree(original: str, scratch: str) -> str:
    """Make ``scratch`` a copy of ``original``; return the directory to use in its place."""
    target = os.path.join(scratch, DATA)
    make_private_directory(target)
    for name in sorted(os.listdir(original)):
        path = os.path.join(original, name)
        if os.path.isdir(path):
            make_private_directory(os.path.join(target, name))
            for file in _files_of(path, name):
                _link(os.path.join(path, file), os.path.join(target, name, file))
        elif name.startswith(_COPIED_PREFIX):
            copy_private(path, os.path.join(target, name))
        elif name not in _LOCKS:
            _link(path, os.path.join(target, name))
    return target


def _files_of(path: str, name: str) -> list[str]:
    """Return a directory's names, or [] if it is no partition's and cannot be listed."""
    try:
        return os.listdir(path)
    except PermissionError:
        if name != KRAFT_DIRECTORY and (partition_of(name) is None or is_hidden(name)):
            return []
        raise


def _link(original: str, link: str) -> None:
    os.symlink(os.path.abspath(original), link)


class _Extent(NamedTuple):
    """Written bytes of a file: from ``start`` to ``end``, stored ``at`` in the changes."""

    start: int
    end: int
    at: int


class _Changes:
    """Writes to one linked file, on top of its first ``kept`` bytes from before."""

    def __init__(self, size: int) -> None:
        self.kept = self.size = size
        self._extents: list[_Extent] = []

    def written(self, start: int, end: int, at: int) -> None:
        """Record that the file's bytes from ``start`` to ``end`` are ``at`` in the changes now."""
        new = _Extent(start, end, at)
        last = self._extents[-1] if self._extents else None
        if last is not None and last.end == start and last.at + (last.end - last.start) == at:
            self._extents[-1] = _Extent(last.start, end, last.at)
        elif last is None or last.end <= start:
            self._extents.append(new)
        else:
            self._extents = sorted([*self._without(start, end), new])
        self.size = max(self.size, end)

    def truncate(self, size: int) -> None:
        """Cut the file, or extend it with zeros."""
        self.kept = min(self.kept, size)
        self._extents = list(self._without(size, max(size, self.size)))
        self.size = size

    def _without(self, start: int, end: int) -> list[_Extent]:
        """Return the extents without the bytes from ``start`` to ``end``."""
        left = []
        for each in self._extents:
            if each.start < start:
                left.append(_Extent(each.start, min(each.end, start), each.at))
            if each.end > end:
                begin = max(each.start, end)
                left.append(_Extent(begin, each.end, each.at + begin - each.start))
        return [each for each in left if each.start < each.end]

    def between(self, start: int, end: int) -> list[_Extent]:
        """Return the extents between ``start`` and ``end``, cut to that range."""
        first = max(bisect_right(self._extents, (start,)) - 1, 0)
        found = []
        for each in self._extents[first:]:
            if each.start >= end:
                break
            begin = max(each.start, start)
            if begin < each.end:
                found.append(_Extent(begin, min(each.end, end), each.at + begin - each.start))
        return found


class ScratchFileSystem(LocalFileSystem):
    """Files of a tree that ``link_tree`` created; ``changes`` is the path of the file of
    changes.
    """

    def __init__(self, changes: str) -> None:
        super().__init__()
        self._originals = LocalFileSystem(read_only=True)
        self._file = super().open(changes, create=True)
        self._end = 0
        self._changes: dict[str, _Changes] = {}

    def close(self) -> None:
        """Close the file of changes."""
        self._file.close()

    def open(self, path: str, *, create: bool = False) -> File:  # type: ignore[override]
        """Open a file; writes to a linked one leave the original unchanged."""
        if not os.path.islink(path):
            return super().open(path, create=create)
        original = self._originals.open(path)
        changes = self._changes.get(path)
        if changes is None:
            changes = self._changes[path] = _Changes(original.size())
        return _ScratchFile(self, original, changes)

    def unlink(self, path: str) -> None:
        """Remove a file's name, and its changes."""
        super().unlink(path)
        self._changes.pop(path, None)

    def rename(self, old: str, new: str) -> None:
        """Rename a file or a directory, and keep the recorded changes of its files."""
        super().rename(old, new)
        self._changes.pop(new, None)
        for path in list(self._changes):
            if path == old or path.startswith(f"{old}/"):
                self._changes[new + path.removeprefix(old)] = self._changes.pop(path)

    def read_file(self, path: str) -> bytes:
        """Return the content of a whole file, with its changes."""
        file = self.open(path)
        try:
            return file.pread(file.size(), 0)
        finally:
            file.close()

    def keep(self, buffers: Sequence[Buffer]) -> tuple[int, int]:
        """Append to the file of changes; return the start and end of the range."""
        start = self._end
        self._file.pwritev(buffers, start)
        self._end = start + sum(len(buffer) for buffer in buffers)
        return start, self._end

    def kept(self, size: int, position: int) -> bytes:
        """Read from the file of changes."""
        return self._file.pread(size, position)


class _ScratchFile:
    """Linked file: the original's bytes, and the changes over them."""

    def __init__(self, files: ScratchFileSystem, original: LocalFile, changes: _Changes) -> None:
        self._files = files
        self._original = original
        self._changes = changes

    def pread(self, size: int, position: int) -> bytes:
        """Return the current bytes of a range."""
        changes = self._changes
        end = min(position + size, changes.size)
        if position >= end:
            return b""
        data = self._original.pread(max(min(end, changes.kept) - position, 0), position)
        extents = changes.between(position, end)
        if not extents and len(data) == end - position:
            return data
        result = bytearray(end - position)
        result[: len(data)] = data
        for extent in extents:
            piece = self._files.kept(extent.end - extent.start, extent.at)
            result[extent.start - position : extent.end - position] = piece
        return bytes(result)

    def pread_cached(self, size: int, position: int) -> Buffer:
        """Read like :meth:`pread`; no event loop waits."""
        return self.pread(size, position)

    def pread_passing(self, size: int, position: int) -> bytes:
        """Read like :meth:`pread`; a check reads everything, and has the directory to itself."""
        return self.pread(size, position)

    def slice(self, size: int, position: int) -> None:
        """Return None, since the file's content is in two places."""

    def pwritev(self, buffers: Sequence[Buffer], position: int) -> None:
        """Write over the original without touching it."""
        start, end = self._files.keep(buffers)
        if end > start:
            self._changes.written(position, position + end - start, start)

    def pwritev_durable(self, buffers: Sequence[Buffer], position: int) -> None:
        """Write; nothing here has to outlive the process."""
        self.pwritev(buffers, position)

    def begin_page(self, buffers: Sequence[Buffer], position: int) -> None:
        """Write; nothing here has to reach a disk."""
        self.pwritev(buffers, position)

    def fdatasync(self) -> None:
        """Return at once, since no change has to outlive the process."""

    def start_writeback(self, position: int, size: int) -> None:
        """Return at once, since no change has to reach a disk."""

    def truncate(self, size: int) -> None:
        """Cut or extend the file."""
        self._changes.truncate(size)

    def allocate(self, position: int, size: int) -> None:
        """Return at once, without reserving space."""

    def zero_fill(self, size: int) -> None:
        """Extend the file."""
        if size > self._changes.size:
            self.truncate(size)

    def reserve(self, size: int) -> None:
        """Extend the file."""
        self.zero_fill(size)

    def size(self) -> int:
        """Return the size of the changed file."""
        return self._changes.size

    def close(self) -> None:
        """Close the original."""
        self._original.close()
