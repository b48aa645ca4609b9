"""A copy of a data directory, also of one that a broker is using: as a power cut would leave it.

Rules of this file:

1. The broker receives no request, and its directory is not changed.
2. A copy is good if no checkpoint was completed while it was taken: until then all files stay that
   the last one names, and the journal has all later changes. A copy that a checkpoint overtook is
   repeated; segments copied already are not copied again, so each pass is shorter.
3. Within a pass, files copied later are newer: the journal's mark, the partitions, the journal, the
   metadata. An older mark promises less; a topic in the metadata without a directory is a new one,
   a directory without a topic would be a stray one.
4. The journal is copied from its end to its beginning: the copy has a group appended meanwhile only
   together with all groups before it.
5. Only segments below the checkpoint's are linked: nothing ever writes to those again. Everything
   else is cloned where the file system can do that (FICLONE), or copied.
6. Only the owner may read the files of a copy, except linked segments, which keep their modes.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from barnabas.broker.cli.errors import CommandError
from barnabas.storage.errors import Corrupt
from barnabas.storage.files.commit_mark import FILE_NAME as COMMIT_MARK
from barnabas.storage.files.directory_names import KRAFT_DIRECTORY, is_hidden, partition_of
from barnabas.storage.files.io import (
    LocalFileSystem,
    make_private,
    make_private_directory,
    private_opener,
)
from barnabas.storage.journal.journal_files import FILE_NAME_PREFIX as JOURNAL_PREFIX
from barnabas.storage.journal.journal_files import JournalFiles
from barnabas.storage.journal.journal_format import GROUP_HEADER_BYTES, decode_header
from barnabas.storage.log.checkpoint import Checkpoint, newest_checkpoint
from barnabas.storage.log.log_directory import PARTITION_METADATA
from barnabas.storage.metastore.commit_count import SUFFIX as COUNT_SUFFIX
from barnabas.storage.metastore.sqlite import FILE_NAME as METADATA
from barnabas.storage.runtime.clock import sleep
from barnabas.storage.store.checkpoint_work import CHECKPOINT_NAMES
from barnabas.storage.store.log_store import LOCK_NAME

PASSES_MAX: Final = 50
PASSES_AT_ONCE: Final = 11
PAUSE_SECONDS_MAX: Final = 0.5
DIRECTORY_ATTEMPTS_MAX: Final = 20
_BLOCK_BYTES: Final = 1 << 20
_FICLONE: Final = 0x40049409
_LOG_SUFFIX: Final = ".log"
_LEFT_OUT: Final = frozenset({LOCK_NAME, ".lock", f"{METADATA}-shm", f"{METADATA}-wal"})


@dataclass(slots=True)
class Copied:
    """Counts of the copied files of a directory."""

    files: int = 0
    copied_bytes: int = 0
    cloned_bytes: int = 0
    linked_bytes: int = 0
    passes: int = 0


@dataclass(frozen=True, slots=True)
class _Seen:
    """One file of the source when it was copied."""

    inode: int
    size: int
    modified_ns: int

    @classmethod
    def of(cls, path: str) -> _Seen:
        found = os.stat(path)
        return cls(found.st_ino, found.st_size, found.st_mtime_ns)


class DirectoryCopy:
    """``run`` copies ``source`` to ``target``, an empty directory."""

    def __init__(self, source: str, target: str, *, in_use: bool) -> None:
        """``in_use``: a broker has the source open. Otherwise no broker can start in it during the
        copy.
        """
        self._source = source
        self._target = target
        self._in_use = in_use
        self._seen: dict[str, _Seen] = {}
        self._can_clone = True
        self._sealed_below: dict[str, int] = {}
        """Base offset of the active segment at the checkpoint, by partition directory."""
        self.copied = Copied()

    def run(self, on_pass: Callable[[Copied], None] = lambda _copied: None) -> Copied:
        """Copy until the source did not change during a pass; raises CommandError, OSError and
        Corrupt.
        """
        for _ in range(PASSES_MAX):
            self.copied.passes += 1
            if self._pass():
                sync_tree(self._target)  # A backup may be needed after a power loss.
                self.copied.files = len(self._seen)
                return self.copied
            on_pass(self.copied)
            # The first ones begin right after a checkpoint; later ones outlast a burst of load.
            sleep(min(max(self.copied.passes - PASSES_AT_ONCE, 0) * 0.02, PAUSE_SECONDS_MAX))
        raise CommandError(
            f"{self._source}: a checkpoint came in the middle of each of {PASSES_MAX} attempts"
        )

    # ------------------------------------------------------------------------------- one pass

    def _pass(self) -> bool:
        """Copy new data; return whether the whole copy belongs to one checkpoint."""
        before = self._checkpoints()
        checkpoint = self._newest(before)
        self._learn_what_is_sealed(checkpoint)
        found = sorted(set(os.listdir(self._source)) - _LEFT_OUT)
        directories = [name for name in found if self._is_partition(name)]
        names = [*directories, *(each for each in found if os.path.isfile(self._in_source(each)))]
        journals = [name for name in names if name.startswith(JOURNAL_PREFIX)]
        special = {*directories, *journals, *CHECKPOINT_NAMES, COMMIT_MARK}
        self._copy_again(COMMIT_MARK)
        self._remove_others({*names, *CHECKPOINT_NAMES})
        for name in directories:
            self._copy_partition(name)
        if self._checkpoints() != before:
            return False  # The next pass begins at once, with nearly all of the interval left.
        for name in names:
            if name not in special and not name.startswith(METADATA):
                self._copy_again(name)
        for name in self._in_order_of_reuse(journals, checkpoint):
            self._copy_backwards(name)
        self._copy_metadata()
        for name, data in before.items():
            with open(self._in_target(name), "wb", opener=private_opener) as file:
                file.write(data)
        return self._checkpoints() == before and self._is_whole(checkpoint)

    def _is_partition(self, name: str) -> bool:
        """Return whether a directory is that of a partition of an existing topic."""
        if partition_of(name) is None and name != KRAFT_DIRECTORY:
            return False
        if is_hidden(name):  # As .Trash-1000, which may be another user's.
            return os.path.exists(self._in_source(os.path.join(name, PARTITION_METADATA)))
        return os.path.isdir(self._in_source(name))

    def _checkpoints(self) -> dict[str, bytes]:
        """Return the existing ones of the two checkpoint files."""
        found = {}
        for name in CHECKPOINT_NAMES:
            with suppress(FileNotFoundError), open(self._in_source(name), "rb") as file:
                found[name] = file.read()
        return found

    def _newest(self, files: dict[str, bytes]) -> Checkpoint:
        newest = newest_checkpoint(*map(files.get, CHECKPOINT_NAMES))
        if newest is None:
            raise CommandError(f"{self._source}: no checkpoint can be read")
        return newest

    def _is_whole(self, checkpoint: Checkpoint) -> bool:
        """Return whether the copy of the journal has all commit groups up to its mark."""
        files = JournalFiles(LocalFileSystem(read_only=True), self._target, 0)
        try:
            for _ in files.verify(checkpoint.journal_sequence, marked=checkpoint.marked):
                pass
        except Corrupt:
            if not self._in_use:
                raise
            return False
        finally:
            files.close()
        return True

    # -------------------------------------------------------------------------- partitions

    def _learn_what_is_sealed(self, checkpoint: Checkpoint) -> None:
        """Determine the offset below which each partition's segments are sealed and synced."""
        if not os.path.exists(self._in_target(METADATA)):
            self._copy_metadata()
        active = {each.partition_id: each.segment_base_offset for each in checkpoint.partitions}
        with closing(sqlite3.connect(self._in_target(METADATA))) as metadata:
            rows = metadata.execute(
                "SELECT partition_id, name, partition_index FROM partitions JOIN topics"
                " USING (topic_id)"
            ).fetchall()
        self._sealed_below = {
            f"{name}-{index}": active[partition_id]
            for partition_id, name, index in rows
            if partition_id in active
        }

    def _copy_partition(self, directory: str) -> None:
        """Copy a directory's files; repeat while its names change."""
        with suppress(FileExistsError):
            make_private_directory(self._in_target(directory))
        names: list[str] = []
        for _ in range(DIRECTORY_ATTEMPTS_MAX):
            try:
                names = sorted(os.listdir(self._in_source(directory)))
                for name in names:
                    self._copy_changed(os.path.join(directory, name))
                if sorted(os.listdir(self._in_source(directory))) == names:
                    break
            except FileNotFoundError:
                continue
        if not os.path.isdir(self._in_source(directory)):
            names = []  # Its topic was deleted: the metadata, which comes last, says so.
        self._remove_others(set(names), directory)

    def _copy_changed(self, name: str) -> None:
        """Copy a file of a partition if it changed; of a grown log only the appended bytes."""
        source, target = self._in_source(name), self._in_target(name)
        now, before = _Seen.of(source), self._seen.get(name)
        if now == before:
            return
        is_same_log = name.endswith(_LOG_SUFFIX) and before is not None
        if is_same_log and before is not None and now.inode == before.inode:
            if now.size > before.size:
                self._copy_range(source, target, before.size, now.size)
        elif not self._link(name, now):
            self._clone_or_copy(source, target, now.size)
        self._seen[name] = now

    def _link(self, name: str, now: _Seen) -> bool:
        directory, _, file = name.rpartition(os.sep)
        stem, suffix = os.path.splitext(file)
        if suffix != _LOG_SUFFIX or not stem.isdigit():
            return False
        if int(stem) >= self._sealed_below.get(directory, 0):
            return False
        target = self._in_target(name)
        with suppress(FileNotFoundError):
            os.unlink(target)
        try:
            os.link(self._in_source(name), target)
        except OSError as error:
            if error.errno == errno.ENOENT:
                raise
            return False  # Another file system, or one without links.
        self.copied.linked_bytes += now.size
        return True

    # ------------------------------------------------------------------------------ journal

    def _in_order_of_reuse(self, names: list[str], checkpoint: Checkpoint) -> Iterator[str]:
        """Yield the journal's files: those that are free first, then the newest of the others."""
        first = {name: self._first_sequence(name) for name in names}
        ordered = sorted(names, key=lambda name: first[name])
        needed: list[str] = []
        for name, following in zip(ordered, [*ordered[1:], None], strict=True):
            is_over = following is not None and first[following] <= checkpoint.journal_sequence
            if is_over or not first[name]:
                yield name
            else:
                needed.append(name)
        yield from reversed(needed)

    def _first_sequence(self, name: str) -> int:
        """Return the sequence of the first commit group in a journal file, or 0."""
        with open(self._in_source(name), "rb") as file:
            header = decode_header(memoryview(file.read(GROUP_HEADER_BYTES)))
        return 0 if header is None else header.sequence

    def _copy_backwards(self, name: str) -> None:
        source, target = self._in_source(name), self._in_target(name)
        with open(source, "rb") as reading, open(target, "ab", opener=private_opener) as writing:
            size = os.fstat(reading.fileno()).st_size
            os.ftruncate(writing.fileno(), size)
        with open(source, "rb") as reading, open(target, "r+b") as writing:
            if self._clone(reading.fileno(), writing.fileno(), size):
                return
            for start in reversed(range(0, size, _BLOCK_BYTES)):
                block = os.pread(reading.fileno(), _BLOCK_BYTES, start)
                os.pwrite(writing.fileno(), block, start)
            self.copied.copied_bytes += size

    # ----------------------------------------------------------------------------- metadata

    def _copy_metadata(self) -> None:
        """Copy the metadata store, and before it the count of its commits."""
        self._copy_again(METADATA + COUNT_SUFFIX)
        target = self._in_target(METADATA)
        if not self._in_use:
            for suffix in ("", "-wal"):
                self._copy_again(METADATA + suffix)
            return
        with suppress(FileNotFoundError):
            os.unlink(target)
        make_private(target)  # SQLite would make it by the umask.
        uri = f"file:{quote(os.path.abspath(self._in_source(METADATA)))}?mode=ro"
        with (
            closing(sqlite3.connect(uri, uri=True)) as reading,
            closing(sqlite3.connect(target)) as writing,
        ):
            reading.backup(writing)

    # -------------------------------------------------------------------------------- files

    def _copy_again(self, name: str) -> None:
        """Copy a small file, if it exists."""
        try:
            with open(self._in_source(name), "rb") as reading:
                data = reading.read()
        except FileNotFoundError:
            return
        with open(self._in_target(name), "wb", opener=private_opener) as writing:
            writing.write(data)

    def _clone_or_copy(self, source: str, target: str, size: int) -> None:
        with suppress(FileNotFoundError):
            os.unlink(target)  # It may be a link.
        with open(source, "rb") as reading, open(target, "xb", opener=private_opener) as writing:
            if self._clone(reading.fileno(), writing.fileno(), size):
                return
        self._copy_range(source, target, 0, size)

    def _clone(self, source: int, target: int, size: int) -> bool:
        """Share the source's blocks with the target, if the file system supports that."""
        if not self._can_clone:
            return False
        try:
            fcntl.ioctl(target, _FICLONE, source)
        except OSError:
            self._can_clone = False
            return False
        self.copied.cloned_bytes += size
        return True

    def _copy_range(self, source: str, target: str, start: int, end: int) -> None:
        with open(source, "rb") as reading, open(target, "r+b") as writing:
            reading.seek(start)
            writing.seek(start)
            left = end - start
            while left and (block := reading.read(min(left, _BLOCK_BYTES))):
                writing.write(block)
                left -= len(block)
        self.copied.copied_bytes += end - start - left

    def _remove_others(self, names: set[str], directory: str = "") -> None:
        """Remove copies of an earlier pass whose originals were deleted since."""
        for name in set(os.listdir(self._in_target(directory))) - names:
            path = os.path.join(directory, name)
            if os.path.isdir(self._in_target(path)):
                shutil.rmtree(self._in_target(path))
            elif not (directory == "" and name.startswith(METADATA)):
                os.unlink(self._in_target(path))
                self._seen.pop(path, None)

    def _in_source(self, name: str) -> str:
        return os.path.join(self._source, name)

    def _in_target(self, name: str) -> str:
        return os.path.join(self._target, name)


def copy_file(source: str, target: str) -> int:
    """Copy a file, without its blocks where the file system can share them; return its size."""
    with open(source, "rb") as reading, open(target, "xb", opener=private_opener) as writing:
        try:
            fcntl.ioctl(writing.fileno(), _FICLONE, reading.fileno())
        except OSError:
            shutil.copyfileobj(reading, writing, _BLOCK_BYTES)
        return os.fstat(reading.fileno()).st_size


def write_file(path: str, data: bytes) -> None:
    """Create a file with this content, durable on return."""
    with open(path, "xb", opener=private_opener) as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def sync_tree(directory: str) -> None:
    """Make the files and names below a directory durable."""
    for path, _, names in os.walk(directory):
        for name in (*names, ""):
            _sync(os.path.join(path, name))


def sync_name(path: str) -> None:
    """Make the name of a directory durable."""
    _sync(os.path.dirname(os.path.abspath(path)))


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
