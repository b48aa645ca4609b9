"""Inputs and judge of a program that copies a topic.

Each record of the input has to become one record of the output, at the partition that follows from
its value. The records of an input partition have to keep their order in a partition of the output.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from barnabas.broker.cli.records.record_text import NewRecord
from barnabas.broker.client.topic_reader import ReceivedRecord
from tests.interop.programs.kinds import PARTITIONS


def made(number: int) -> NewRecord:
    """Return the input of a number."""
    return NewRecord(None, f"input.{number}".encode(), ())


def copy_of(value: str) -> tuple[int, str]:
    """Return the partition and the value that belong to an input: see java/Copy.java."""
    return int(value.rpartition(".")[2]) % PARTITIONS, f"<{value}>"


def each_once(inputs: Sequence[ReceivedRecord], outputs: Sequence[ReceivedRecord]) -> Iterator[str]:
    """Yield a line for each copy that is missing, wrong, written twice or out of order."""
    due = _due(inputs)
    found = Counter(map(_written, outputs))
    yield from at_least_once(inputs, outputs)
    yield from (f"{each} was written {count} times" for each, count in found.items() if count > 1)
    last: dict[tuple[int, int], int] = {}
    for each in sorted(outputs, key=lambda each: (each.partition, each.offset)):
        if source := due.get(_written(each)):
            way = source.partition, each.partition
            if source.offset < last.get(way, -1):
                yield f"{_written(each)} was written after a later one"
            last[way] = source.offset


def at_least_once(
    inputs: Sequence[ReceivedRecord], outputs: Sequence[ReceivedRecord]
) -> Iterator[str]:
    """Yield a line for each copy that is missing or wrong."""
    due, found = _due(inputs), set(map(_written, outputs))
    yield from (f"{each} is missing" for each in due if each not in found)
    yield from (f"{each} belongs to no input" for each in found if each not in due)


def _due(inputs: Sequence[ReceivedRecord]) -> dict[tuple[int, str], ReceivedRecord]:
    return {copy_of((each.value or b"").decode()): each for each in inputs}


def _written(output: ReceivedRecord) -> tuple[int, str]:
    return output.partition, (output.value or b"").decode()
