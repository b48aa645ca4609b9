"""Evidence of a history about partitions: positions of values, and committed operations."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator

from tests.history.model import (
    COMMITTED,
    END,
    MOVED,
    NOT_KNOWN,
    OK,
    SEND,
    UNKNOWN,
    History,
    Operation,
    Partition,
    PartitionEnd,
    Read,
    Write,
)


class Run:
    """The records that a reader got from one partition between two moves."""

    def __init__(self, process: str, place: Partition, isolation: str) -> None:
        self.process = process
        self.place = place
        self.isolation = isolation
        self.reads: list[tuple[int, Read]] = []
        """The values with the number of the operation."""


class Evidence:
    """A history, and what follows from it."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.writers: dict[tuple[Partition, str], tuple[int, Write]] = {}
        self.values_at: dict[tuple[Partition, int], dict[str, int]] = defaultdict(dict)
        """By place and offset: every value that was seen there, with who saw it first."""
        self.offsets_of: dict[tuple[Partition, str], dict[int, int]] = defaultdict(dict)
        """By place and value: every offset where it was seen, with who saw it first."""
        self.committed_values: dict[tuple[Partition, str], int] = {}
        """Values that a `read_committed` reader got, with the first reader."""
        self.ends: dict[Partition, PartitionEnd] = {}
        for number, operation in enumerate(history):
            self._take(number, operation)
        self.committed = {
            number
            for number, operation in enumerate(history)
            if operation.outcome == OK
            or (operation.outcome == UNKNOWN and any(map(self.is_visible, operation.writes)))
        }
        """Operations that took effect: acknowledged, or unknown with a part that was read."""
        self.runs = list(_runs(history))
        self._existing = {
            isolation: self._offsets(isolation == COMMITTED) for isolation in ("", COMMITTED)
        }

    def operation(self, number: int) -> Operation:
        return self.history[number]

    def writes(self) -> Iterator[tuple[int, Operation, Write]]:
        """Yield every write of transactions and sends."""
        for number, operation in enumerate(self.history):
            for write in operation.writes:
                yield number, operation, write

    def reads(self) -> Iterator[tuple[int, Operation, Read]]:
        """Yield every read of committed data."""
        for number, operation in enumerate(self.history):
            if operation.isolation == COMMITTED:
                for read in operation.reads:
                    yield number, operation, read

    def is_visible(self, write: Write) -> bool:
        """Return whether a reader of committed data was given the value."""
        return (write.place, write.value) in self.committed_values

    def offset_of(self, write: Write) -> int:
        """Return the position of a value, if it is known."""
        known = self.offsets_of.get((write.place, write.value))
        return min(known) if known else NOT_KNOWN

    def logs(self) -> dict[Partition, list[tuple[int, int]]]:
        """Return (offset, operation) of everything committed in each partition, in its order."""
        found: dict[Partition, list[tuple[int, int]]] = defaultdict(list)
        for number, _operation, write in self.writes():
            offset = self.offset_of(write)
            if number in self.committed and offset != NOT_KNOWN:
                found[write.place].append((offset, number))
        return {place: sorted(entries) for place, entries in found.items()}

    def existing_between(self, run: Run, after: int, before: int) -> list[int]:
        """Return offsets between two that a reader like this one has to be given."""
        key = COMMITTED if run.isolation == COMMITTED else ""
        offsets = self._existing[key].get(run.place, [])
        return offsets[bisect_right(offsets, after) : bisect_left(offsets, before)]

    def existing_before(self, place: Partition, before: int) -> list[int]:
        """Return offsets before another one that a reader of committed data has to be given."""
        offsets = self._existing[COMMITTED].get(place, [])
        return offsets[: bisect_left(offsets, before)]

    def passed(self, write: Write) -> bool:
        """Return whether readers of committed data got past the place of a write."""
        offset = self.offset_of(write)
        end = self.ends.get(write.place)
        if offset == NOT_KNOWN:
            return end is not None and end.stable == end.high_watermark
        if end is not None and offset < end.stable:
            return True
        return any(
            run.reads[0][1].offset < offset < run.reads[-1][1].offset
            for run in self.runs
            if run.place == write.place and run.isolation == COMMITTED
        )

    def _take(self, number: int, operation: Operation) -> None:
        for write in operation.writes:
            self.writers.setdefault((write.place, write.value), (number, write))
            if write.offset != NOT_KNOWN:
                self._see(number, write.place, write.offset, write.value)
        for read in operation.reads:
            self._see(number, read.place, read.offset, read.value)
            if operation.isolation == COMMITTED:
                self.committed_values.setdefault((read.place, read.value), number)
        if operation.kind == END:
            self.ends.update({end.place: end for end in operation.ends})

    def _see(self, number: int, place: Partition, offset: int, value: str) -> None:
        self.values_at[place, offset].setdefault(value, number)
        self.offsets_of[place, value].setdefault(offset, number)

    def _offsets(self, committed_only: bool) -> dict[Partition, list[int]]:
        found: dict[Partition, set[int]] = defaultdict(set)
        for operation in self.history:
            if operation.isolation == COMMITTED or not committed_only:
                for read in operation.reads:
                    found[read.place].add(read.offset)
            for write in operation.writes if operation.kind == SEND else ():
                if write.offset != NOT_KNOWN:
                    found[write.place].add(write.offset)
        return {place: sorted(offsets) for place, offsets in found.items()}


def _runs(history: History) -> Iterator[Run]:
    open_runs: dict[tuple[str, Partition], Run] = {}
    for number, operation in enumerate(history):
        if operation.kind == MOVED:
            for place in operation.moved:
                ended = open_runs.pop((operation.process, place), None)
                if ended:
                    yield ended
        for read in operation.reads:
            key = operation.process, read.place
            if key not in open_runs:
                open_runs[key] = Run(operation.process, read.place, operation.isolation)
            open_runs[key].reads.append((number, read))
    yield from open_runs.values()
