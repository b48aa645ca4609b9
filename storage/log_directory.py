"""The directory of one partition: created, filled and removed by the segment thread, in order.

Creating and removing directories are operations of commit groups, so that a topic deleted and
created again under one name never sees the two in the wrong order. Nothing here is synced: the
MetaStore knows which directories must exist, and the next checkpoint makes them durable.
"""

from typing import Final

from storage.checkpoint import CorruptFile, decode_partition_metadata, encode_partition_metadata
from storage.io import File, FileSystem
from storage.open_files import OpenFiles

PARTITION_METADATA: Final = "partition.metadata"
LEADER_EPOCH_CHECKPOINT: Final = "leader-epoch-checkpoint"
DELETED_SUFFIX: Final = "-delete"

_OPEN_FILES_MAX: Final = 16


class LogDirectory:
    """Path of one partition's files, and whether the partition is gone."""

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
        self.removed = False
        self._written: set[str] = set()

    def file_path(self, file_name: str) -> str:
        """Path of a file in this directory."""
        return self.file_system.join(self.path, file_name)

    def open(self, file_name: str, *, create: bool = False) -> File:
        """Open a file of this directory."""
        return self.file_system.open(self.file_path(file_name), create=create)

    def write_file(self, file_name: str, data: bytes) -> None:
        """Replace a small derived file, without waiting for the disk."""
        if self.removed:
            return
        file = self.open(file_name, create=True)
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

    def create(self) -> None:
        """Make the directory with its topic id inside. Harmless when it is there."""
        if self.removed:
            return
        self.file_system.make_directory(self.path, exist_ok=True)
        self.write_file(PARTITION_METADATA, encode_partition_metadata(self.topic_id))

    def belongs_to_topic(self) -> bool:
        """Whether the directory on disk is this topic's, not one of an earlier topic of the name.

        A crash may lose the file with the id; then the directory was never made durable and what is
        in it is not trusted either.
        """
        try:
            data = self.file_system.read_file(self.file_path(PARTITION_METADATA))
            return decode_partition_metadata(data) == self.topic_id
        except (FileNotFoundError, CorruptFile):
            return False

    def remove(self) -> None:
        """Take the name away first (Kafka's ``-delete`` suffix), then the files. Final."""
        self.removed = True
        if not self.file_system.is_directory(self.path):
            return
        unique = f"{self.name}.{self.topic_id.hex()}{DELETED_SUFFIX}"
        doomed = self.file_system.join(self.root, unique)
        if self.file_system.exists(doomed):
            remove_tree(self.file_system, doomed)
        self.file_system.rename(self.path, doomed)
        remove_tree(self.file_system, doomed)

    def list_files(self) -> list[str]:
        """Names of the files; empty when the directory does not exist."""
        if not self.file_system.is_directory(self.path):
            return []
        return self.file_system.list_directory(self.path)

    def put_in_place(self, file_name: str, new_name: str) -> None:
        """Rename a file, replacing another; harmless when that was done before."""
        old = self.file_path(file_name)
        if not self.removed and self.file_system.exists(old):
            self.file_system.rename(old, self.file_path(new_name))
            self._written.add(new_name)

    def unlink(self, file_name: str) -> None:
        """Remove a file; harmless when it is not there, or when another topic has the name now."""
        if self.removed:
            return
        try:
            self.file_system.unlink(self.file_path(file_name))
        except FileNotFoundError:
            return


def remove_tree(file_system: FileSystem, path: str) -> None:
    """Remove a partition directory with its files (it has no subdirectories)."""
    for name in file_system.list_directory(path):
        file_system.unlink(file_system.join(path, name))
    file_system.remove_directory(path)
