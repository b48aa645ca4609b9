"""Durable state of the simulated disk, and the part of the rest that survives a power loss.

Rules of this file:

1. The content that a process sees (``content``, ``entries``) is separate from the durable content
   (``durable``). The difference is an ordered list of changes that no sync has covered yet.
2. A power loss keeps an arbitrary part of those changes. Of each sector one of its versions since
   the last sync survives: writes tear and reorder, but a sector is never a mixture. A size may
   survive without its data (zeros). Names that were not synced in their directory survive at random
   and in any order. Files are independent of each other.
3. All random decisions come from one seeded generator: the same seed loses the same bytes.
"""

from collections.abc import Iterator
from random import Random
from typing import NamedTuple

from barnabas.storage.files.file_system import Buffer

SECTOR_BYTES = (512, 4096)


class Content:
    """Bytes of a file. Zeros at the end use no memory, so that a reserved file costs nothing."""

    __slots__ = ("_stored", "size")

    def __init__(self, content: bytes | bytearray = b"", size: int | None = None) -> None:
        self._stored = bytearray(content)
        self.size = len(content) if size is None else size

    def copy(self) -> "Content":
        """Return a copy."""
        return Content(self._stored, self.size)

    def read(self, position: int, size: int) -> bytes:
        """Return the bytes of a range, as far as the file has them."""
        end = min(position + size, self.size)
        with memoryview(self._stored) as stored:
            return bytes(stored[position:end]).ljust(end - position, b"\x00")

    def write(self, position: int, end: int, data: Buffer | None) -> None:
        """Replace bytes, ``None`` by zeros, and extend the file as far as they reach."""
        stored = self._stored
        if data is None:
            data = bytes(max(0, min(end, len(stored)) - position))
        elif position > len(stored):
            stored.extend(bytes(position - len(stored)))
        if data:
            stored[position : position + len(data)] = data
        self.size = max(self.size, end)

    def set_size(self, size: int) -> None:
        """Cut the file, or extend it with zeros."""
        del self._stored[size:]
        self.size = size


class Write(NamedTuple):
    """Bytes written and not synced; zeros if ``data`` is ``None``."""

    position: int
    end: int
    data: bytes | None

    def apply(self, content: Content) -> None:
        """Apply this change of the file to ``content``."""
        content.write(*self)

    def reach(self, present_size: int) -> tuple[int, int]:  # noqa: ARG002
        """First and last byte (exclusive) that this alters in a file of ``present_size``.

        The zeros of a gap before it are left out: bytes beyond the end of a file read as zeros if
        it grows.
        """
        return self.position, self.end

    def outside(self, start: int, end: int) -> Iterator["Write"]:
        """Return the parts of this write outside of ``[start, end)``."""
        for at, until in (self.position, min(self.end, start)), (max(self.position, end), self.end):
            if at < until:
                part = self.data and self.data[at - self.position : until - self.position]
                yield Write(at, until, part)


class Truncate(NamedTuple):
    """Size set and not synced."""

    size: int

    def apply(self, content: Content) -> None:
        """Apply this change of the file to ``content``."""
        content.set_size(self.size)

    def reach(self, present_size: int) -> tuple[int, int]:
        """First and last byte (exclusive) that this alters in a file of ``present_size``."""
        return min(self.size, present_size), max(self.size, present_size)


class Inode:
    """File: its current content, its durable content, and the changes between them."""

    __slots__ = ("content", "durable", "pending")

    def __init__(self, content: Content | None = None) -> None:
        self.content = Content() if content is None else content
        self.durable = self.content.copy()
        self.pending: list[Write | Truncate] = []

    def make_durable(self) -> None:
        """Make all content durable, as ``fdatasync`` does."""
        for change in self.pending:
            change.apply(self.durable)
        self.pending.clear()

    def make_last_write_durable(self) -> None:
        """Make a range durable, as a write with RWF_DSYNC does, and no other part of the file."""
        written = self.pending[-1]
        earlier = [change for change in self.pending[:-1] if isinstance(change, Write)]
        if isinstance(written, Truncate) or len(earlier) + 1 < len(self.pending):
            self.make_durable()  # The file's size must be durable, too.
            return
        self.pending = [
            part for change in earlier for part in change.outside(written.position, written.end)
        ]
        written.apply(self.durable)


Change = dict[str, "Inode | Directory | None"]
"""Atomic change of a directory: names set, or removed (None)."""


class Directory:
    """Directory: its current entries, its durable entries, and the changes between them."""

    __slots__ = ("durable", "entries", "pending")

    def __init__(self) -> None:
        self.entries: dict[str, Inode | Directory] = {}
        self.durable: dict[str, Inode | Directory] = {}
        self.pending: list[Change] = []

    def make_durable(self) -> None:
        """Make the entries durable, as an fsync of the directory does."""
        self.durable = dict(self.entries)
        self.pending.clear()

    def make_all_durable(self) -> None:
        """Make the directory and everything below it durable."""
        self.make_durable()
        for node in self.entries.values():
            if isinstance(node, Inode):
                node.make_durable()
            else:
                node.make_all_durable()

    def inodes(self) -> Iterator[Inode]:
        """Yield all files below this directory."""
        for node in self.entries.values():
            if isinstance(node, Inode):
                yield node
            else:
                yield from node.inodes()


def apply_change(entries: dict[str, Inode | Directory], change: Change) -> None:
    """Apply one atomic change to a directory's entries."""
    for name, node in change.items():
        if node is None:
            entries.pop(name, None)
        else:
            entries[name] = node


class PowerLoss:
    """Chooses, with one seed, the unsynced changes that survive a power loss."""

    def __init__(self, random: Random, sector_bytes: int) -> None:
        self._random = random
        self._sector_bytes = sector_bytes
        self._copies: dict[int, Inode] = {}

    def directory(self, directory: Directory) -> Directory:
        """Return a durable copy of ``directory`` with some of its pending changes.

        Later changes may survive without earlier ones; a rename within a directory is atomic.
        """
        entries = dict(directory.durable)
        likelihood = self._random.choice((0.0, 0.5, 1.0))
        for change in directory.pending:
            if self._random.random() < likelihood:
                apply_change(entries, change)
        copy = Directory()
        copy.entries = {
            name: self.directory(node) if isinstance(node, Directory) else self._file(node)
            for name, node in entries.items()
        }
        copy.durable = dict(copy.entries)
        return copy

    def _file(self, inode: Inode) -> Inode:
        # Two names can refer to one file after a rename of which only half survived.
        copy = self._copies.get(id(inode))
        if copy is None:
            copy = self._copies[id(inode)] = Inode(self._content(inode))
        return copy

    def _content(self, inode: Inode) -> Content:
        if not inode.pending:
            return inode.durable.copy()
        kind = self._random.choice(("nothing", "everything", "prefix", "sectors", "sectors"))
        if kind == "nothing":
            return inode.durable.copy()
        if kind == "sectors":
            return self._sectors(inode)
        count = len(inode.pending)
        survivors = count if kind == "everything" else self._random.randrange(count)
        content = inode.durable.copy()
        for change in inode.pending[:survivors]:
            change.apply(content)
        return content

    def _sectors(self, inode: Inode) -> Content:
        """Return each touched sector as it was after one of its changes, or before all of them."""
        size = self._sector_bytes
        present = inode.durable.copy()
        sizes = [present.size]
        versions: dict[int, list[bytes]] = {}
        for change in inode.pending:
            start, end = change.reach(present.size)
            touched = range(start // size, -(-end // size))
            for sector in touched:
                versions.setdefault(sector, [present.read(sector * size, size)])
            change.apply(present)
            for sector in touched:
                versions[sector].append(present.read(sector * size, size))
            sizes.append(present.size)
        content = inode.durable.copy()
        content.set_size(max(content.size, *sizes))
        for sector, candidates in versions.items():
            chosen = self._random.choice(candidates).ljust(size, b"\x00")
            content.write(sector * size, (sector + 1) * size, chosen)
        survived = self._random.choice(sizes)
        content.set_size(survived)
        return content
