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

SECTOR_BYTES = (512, 4096)


class Write(NamedTuple):
    """Bytes written and not synced."""

    position: int
    data: bytes

    @property
    def end(self) -> int:
        """Return the position after the last written byte."""
        return self.position + len(self.data)

    def apply(self, content: bytearray) -> None:
        """Apply this change of the file to ``content``."""
        if self.position > len(content):
            set_size(content, self.position)
        content[self.position : self.end] = self.data

    def reach(self, present_size: int) -> tuple[int, int]:  # noqa: ARG002
        """First and last byte (exclusive) that this alters in a file of ``present_size``.

        The zeros of a gap before it are left out: bytes beyond the end of a file read as zeros if
        it grows.
        """
        return self.position, self.end

    def outside(self, start: int, end: int) -> Iterator["Write"]:
        """Return the parts of this write outside of ``[start, end)``."""
        if self.end <= start or self.position >= end:
            yield self
            return
        if self.position < start:
            yield Write(self.position, self.data[: start - self.position])
        if self.end > end:
            yield Write(end, self.data[end - self.position :])


class Truncate(NamedTuple):
    """Size set and not synced."""

    size: int

    def apply(self, content: bytearray) -> None:
        """Apply this change of the file to ``content``."""
        set_size(content, self.size)

    def reach(self, present_size: int) -> tuple[int, int]:
        """First and last byte (exclusive) that this alters in a file of ``present_size``."""
        return min(self.size, present_size), max(self.size, present_size)


def set_size(content: bytearray, size: int) -> None:
    """Cut ``content``, or extend it with zeros."""
    if size < len(content):
        del content[size:]
    else:
        content.extend(bytes(size - len(content)))


class Inode:
    """File: its current content, its durable content, and the changes between them."""

    __slots__ = ("content", "durable", "pending")

    def __init__(self, content: bytes = b"") -> None:
        self.content = bytearray(content)
        self.durable = bytearray(content)
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

    def _content(self, inode: Inode) -> bytes:
        if not inode.pending:
            return bytes(inode.durable)
        kind = self._random.choice(("nothing", "everything", "prefix", "sectors", "sectors"))
        if kind == "nothing":
            return bytes(inode.durable)
        if kind == "sectors":
            return self._sectors(inode)
        count = len(inode.pending)
        survivors = count if kind == "everything" else self._random.randrange(count)
        content = bytearray(inode.durable)
        for change in inode.pending[:survivors]:
            change.apply(content)
        return bytes(content)

    def _sectors(self, inode: Inode) -> bytes:
        """Return each touched sector as it was after one of its changes, or before all of them."""
        size = self._sector_bytes
        present = bytearray(inode.durable)
        sizes = [len(present)]
        versions: dict[int, list[bytes]] = {}
        for change in inode.pending:
            start, end = change.reach(len(present))
            touched = range(start // size, -(-end // size))
            for sector in touched:
                versions.setdefault(sector, [bytes(present[sector * size : (sector + 1) * size])])
            change.apply(present)
            for sector in touched:
                versions[sector].append(bytes(present[sector * size : (sector + 1) * size]))
            sizes.append(len(present))
        content = bytearray(inode.durable)
        content.extend(bytes(max(0, max(sizes) - len(content))))
        for sector, candidates in versions.items():
            chosen = self._random.choice(candidates).ljust(size, b"\x00")
            content[sector * size : (sector + 1) * size] = chosen
        survived = self._random.choice(sizes)
        set_size(content, survived)
        return bytes(content)
