"""The number of commits that a metadata store has seen, kept beside its file.

SQLite cannot tell a write-ahead log that is missing, or ends early, from one that never was longer,
nor a missing file from a new store. Then topics, settings and allocated producer ids would be those
of an earlier time. The count is written after each commit, not synced: after a kill it is exact,
after a power loss it may be an older one, which promises less.
"""

from barnabas.storage.files.commit_mark import MARK_BYTES, read_mark, write_mark
from barnabas.storage.files.file_system import File
from barnabas.storage.files.io import LocalFileSystem

SUFFIX = "-mark"


class CommitCount:
    """The count beside the store at a path; ``number`` is the known count, or 0."""

    def __init__(self, path: str) -> None:
        """Read the count; the file is not written before :meth:`begin`."""
        self._path = path + SUFFIX
        self._files = LocalFileSystem()
        self._file: File | None = None
        self.number = 0
        if self._files.exists(self._path):
            data = self._files.read_file(self._path)
            self.number = read_mark(data.ljust(MARK_BYTES, b"\0"), 0) or 0
        self.lacks_store = self.number > 0 and not self._files.exists(path)
        """Whether commits are known, but the store's file does not exist."""

    def begin(self) -> None:
        """Create the file, with room for everything that will be written."""
        self._file = self._files.open(self._path, create=True)
        self._file.zero_fill(MARK_BYTES)

    def advance(self, number: int) -> None:
        """Set the number of durable commits."""
        self.number = number
        if self._file is not None:
            write_mark(self._file, 0, number)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
