"""The directory of one partition: created, filled and removed by the segment thread, in order.

A directory comes with the first file that is written to it: thousands of partitions that no client
has written to cost no file at all. Writing and removing are operations of commit groups, so that a
topic deleted and created again under one name never sees the two in the wrong order. One that is
filled by another thread has another name until then (``stay_apart``). Nothing here is synced: the
next checkpoint makes durable what it speaks of.
"""

from collections.abc import Callable, Container, Iterable
from typing import Final, TypeVar

from barnabas.storage.files.directory_names import (
    DELETED_SUFFIX,
    LOADING_SUFFIX,
    has_suffix,
    is_hidden,
    partition_of,
)
from barnabas.storage.files.file_system import File, FileSystem
from barnabas.storage.files.open_files import OpenFiles
from barnabas.storage.log.checkpoint import (
    CorruptFile,
    decode_partition_metadata,
    encode_partition_metadata,
)
from barnabas.storage.runtime.threads import new_lock

PARTITION_METADATA: Final = "partition.metadata"
LEADER_EPOCH_CHECKPOINT: Final = "leader-epoch-checkpoint"

Result = TypeVar("Result")

_NAME_BYTES_MAX: Final = 255
"""Maximum length of a file name; topic names are ASCII, and have up to 249 characters."""
_OPEN_FILES_MAX: Final = 16
_STEM_DIGITS: Final = 20


class LogDirectory:
    """Path of one partition's files, and whether the partition was deleted."""

    def __init__(
        self,
        file_system: FileSystem,
        root: str,
        name: str,
        topic_id: bytes,
        open_files: OpenFiles | None = None,
    ) -> None:
        """``name`` is Kafka's ``<topic>-<partition>``; ``topic_id`` has 16 bytes.

        ``open_files`` bounds how many segments of all directories have their file open.
        """
        self.file_system = file_system
        self.root = root
        self.name = name
        self.topic_id = topic_id
        self.open_files = OpenFiles(_OPEN_FILES_MAX) if open_files is None else open_files
        self.path = file_system.join(root, name)
        self._prefix = file_system.join(self.path, "")
        self.removed = False
        self.is_there = False
        """Whether the directory is on disk, with the topic's id inside."""
        self._written: set[str] = set()
        self._moving = new_lock()
        """Held while the path changes."""
        self.is_apart = False
        """Whether the directory on disk still has a temporary name, not that of the partition."""

    def stay_apart(self, unique: str) -> None:
        """Use another name until ``take_place``; the directory does not exist yet.

        Until then only one thread writes to it; it may be any thread.
        """
        assert not self.is_there
        self.is_apart = True
        self._lie_at(self._name_aside(unique, LOADING_SUFFIX))

    def take_place(self) -> None:
        """Move the directory to the partition's name, which is free now; reads continue."""
        if self.removed:
            return
        with self._moving:
            if self.is_there:
                place = self.file_system.join(self.root, self.name)
                self.file_system.rename(self.path, place)
            # Only now: before, a reader would not find it there; and after a full disk the move is
            # repeated from the old path.
            self._lie_at(self.name)
            self.is_apart = False

    def _lie_at(self, name: str) -> None:
        self.path = self.file_system.join(self.root, name)
        self._prefix = self.file_system.join(self.path, "")

    def _name_aside(self, unique: str, suffix: str) -> str:
        """Return a temporary name beside the partition's, shortened as in Kafka."""
        topic, dash, index = self.name.rpartition("-")
        tail = f"{dash}{index}.{unique}{suffix}"
        return topic[: _NAME_BYTES_MAX - len(tail)] + tail

    def file_path(self, file_name: str) -> str:
        """Path of a file in this directory."""
        return self._prefix + file_name

    def open(self, file_name: str, *, create: bool = False) -> File:
        """Open a file of this directory; create both if ``create``."""
        if create and not self.is_there:
            self._create()
        return self._where_it_lies(
            file_name, lambda path: self.file_system.open(path, create=create)
        )

    def read_file(self, file_name: str) -> bytes:
        """Return all of a file. Raises FileNotFoundError."""
        return self._where_it_lies(file_name, self.file_system.read_file)

    def _where_it_lies(self, file_name: str, act: Callable[[str], Result]) -> Result:
        """Call a function with a file's path, and again if the directory was moved during the
        call.
        """
        path = self.file_path(file_name)
        try:
            return act(path)
        except FileNotFoundError:
            with self._moving:
                path_now = self.file_path(file_name)
            if path_now == path:
                raise
            return act(path_now)

    def write_file(self, file_name: str, data: bytes) -> None:
        """Replace a small derived file, without waiting for the disk."""
        if self.removed:
            return
        file = self.open(file_name, create=True)
        self._fill(file, file_name, data)

    def _fill(self, file: File, file_name: str, data: bytes) -> None:
        try:
            file.pwritev([data], 0)
            file.truncate(len(data))
        finally:
            file.close()
        self._written.add(file_name)

    def take_written(self) -> set[str]:
        """Names of the files written since the last call; for the thread that writes them."""
        written, self._written = self._written, set()
        return written

    def sync(self, names: set[str]) -> None:
        """Make the named files and the directory's entries durable."""
        try:
            for name in sorted(names):
                self._sync_file(name)
            self.file_system.sync_directory(self.path)
        except FileNotFoundError:
            # The segment thread may remove the partition at any moment of this.
            if not self.removed:
                raise

    def _sync_file(self, name: str) -> None:
        if not self.file_system.exists(self.file_path(name)):
            return  # A snapshot or a segment that was removed since.
        file = self.open(name)
        try:
            file.fdatasync()
        finally:
            file.close()

    def make_if_missing(self) -> None:
        """Create the directory, which a log without any file lacks, unless it was removed."""
        if not self.removed and not self.is_there:
            self._create()

    def _create(self) -> None:
        """Create the directory with its topic ID; repeatable after a failure."""
        self.file_system.make_directory(self.path, exist_ok=True)
        file = self.file_system.open(self.file_path(PARTITION_METADATA), create=True)
        self._fill(file, PARTITION_METADATA, encode_partition_metadata(self.topic_id))
        self.is_there = True

    def belongs_to_topic(self, names: Container[str]) -> bool:
        """Return whether the directory belongs to this topic, not to an earlier one of the same
        name.

        ``names`` are those of its files. A crash may lose the file with the id; then the directory
        was never durable, and its files are not trusted.
        """
        if PARTITION_METADATA not in names:
            return False
        try:
            data = self.file_system.read_file(self.file_path(PARTITION_METADATA))
            return decode_partition_metadata(data) == self.topic_id
        except CorruptFile:
            return False

    def remove(self) -> None:
        """Rename the directory with Kafka's suffix ``-delete``, then remove its files permanently.

        After an error of a full disk, on which some file systems cannot remove files, call it
        again: it continues.
        """
        self.removed = True
        if not self.file_system.is_directory(self.path):
            return  # Nothing was ever written, or all of it is removed.
        aside = self._name_aside(self.topic_id.hex(), DELETED_SUFFIX)
        doomed = self.file_system.join(self.root, aside)
        if not self.is_apart and self.path != doomed:  # Otherwise no other user has the name.
            if self.file_system.exists(doomed):
                remove_tree(self.file_system, doomed)
            with self._moving:
                self.file_system.rename(self.path, doomed)
                self._lie_at(aside)
        remove_tree(self.file_system, self.path)

    def list_files(self) -> list[str]:
        """Names of the files; empty when the directory does not exist."""
        try:
            return self.file_system.list_directory(self.path)
        except (FileNotFoundError, NotADirectoryError):
            return []

    def clear(self) -> None:
        """Remove the directory of this name, if it exists."""
        if self.file_system.is_directory(self.path):
            remove_tree(self.file_system, self.path)

    def put_in_place(self, file_name: str, new_name: str) -> None:
        """Rename a file, replacing another; repeatable."""
        old = self.file_path(file_name)
        if not self.removed and self.file_system.exists(old):
            self.file_system.rename(old, self.file_path(new_name))
            self._written.add(new_name)

    def unlink(self, file_name: str) -> None:
        """Remove a file, unless it does not exist or another topic has the name now."""
        if self.removed:
            return
        try:
            self.file_system.unlink(self.file_path(file_name))
        except FileNotFoundError:
            return


def is_partition_directory(file_system: FileSystem, root: str, name: str) -> bool:
    """Return whether the name and all files of a directory are those of a partition.

    An empty one counts, unless its name begins with a dot. No other directory is listed.
    """
    if partition_of(name) is None:
        return False
    path = file_system.join(root, name)
    if not is_hidden(name):
        return _holds_partition_files(file_system.list_directory(path))
    try:
        files = file_system.list_directory(path)
    except PermissionError:
        return False
    return PARTITION_METADATA in files and _holds_partition_files(files)


def is_removable(file_system: FileSystem, root: str, name: str, *suffixes: str) -> bool:
    """Return whether a directory is a renamed partition with one of the suffixes.

    False also of one that may not be listed.
    """
    if not has_suffix(name, *suffixes):
        return False
    try:
        return _holds_partition_files(file_system.list_directory(file_system.join(root, name)))
    except PermissionError:
        return False


def _holds_partition_files(names: Iterable[str]) -> bool:
    return all(
        name in (PARTITION_METADATA, LEADER_EPOCH_CHECKPOINT)
        or (name[:_STEM_DIGITS].isdigit() and name[_STEM_DIGITS:].startswith("."))
        for name in names
    )


def remove_tree(file_system: FileSystem, path: str) -> None:
    """Remove a partition directory with its files (it has no subdirectories)."""
    for name in file_system.list_directory(path):
        file_system.unlink(file_system.join(path, name))
    file_system.remove_directory(path)
