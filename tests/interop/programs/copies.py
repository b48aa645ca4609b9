"""The duties of a program that copies a topic, as operations for the judge of ``tests/history``.

A program keeps no journal. Each record of the input has to become one record of the output, at the
partition that follows from its value. The records of an input partition have to keep their order.
In the end the group's offsets have to be at the end of the input.
"""

from __future__ import annotations

from collections import defaultdict

from tests.history.model import (
    OK,
    SEND,
    TRANSACTION,
    History,
    OffsetCommit,
    Operation,
    Partition,
    Write,
)

PARTITIONS = 3
INPUT, OUTPUT = "input", "output"
INPUTS = [(INPUT, number) for number in range(PARTITIONS)]
OUTPUTS = [(OUTPUT, number) for number in range(PARTITIONS)]


def copy_of(write: Write) -> Write:
    """Return the output that belongs to an input: see java/Copy.java."""
    number = int(write.value.rpartition(".")[2])
    return Write(OUTPUT, number % PARTITIONS, f"<{write.value}>", source=write.value)


def duties(sent: History, group: str) -> History:
    """Return the copies of all records that were sent, as if the program had acknowledged them."""
    inputs: dict[Partition, list[Write]] = defaultdict(list)
    for operation in sent:
        assert (operation.kind, operation.outcome) == (SEND, OK), operation.described()
        for write in operation.writes:
            inputs[write.place].append(write)
    return [
        Operation(
            TRANSACTION,
            f"{group} from {topic}-{partition}",
            writes=(copy_of(write),),
            commits=(OffsetCommit(group, topic, partition, write.offset + 1),),
        )
        for (topic, partition), writes in sorted(inputs.items())
        for write in sorted(writes, key=lambda write: write.offset)
    ]
