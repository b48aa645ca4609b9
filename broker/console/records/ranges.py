"""Offsets of partitions for a request, and the cursor of the rest."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from barnabas.broker.console.lengths import PARTITIONS_NAMED_MOST
from barnabas.broker.console.paging import bad_cursor, packed, unpacked
from barnabas.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.console.records.pieces import RecordReaders
    from barnabas.broker.metadata.topic import Partition, Topic

PARTITIONS_MOST: Final = PARTITIONS_NAMED_MOST
"""Maximum number of partitions that are merged into one order: the cursor contains the position in
each."""
NEWEST: Final = "newest"
OLDEST: Final = "oldest"
FOR_EVER_MS: Final = 2**63 - 1
_FROM: Final = re.compile(r"(beginning|end)|(offset|time|last):([0-9]{1,18})")


class Start(NamedTuple):
    """Start of the wanted records."""

    kind: str
    number: int = 0


class Range(NamedTuple):
    """Offsets of one partition, from ``low`` up to ``high``."""

    partition: int
    low: int
    high: int


def _refused(words: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, words)


def read_start(text: str) -> Start:
    """Return the parsed start; raises KafkaError."""
    found = _FROM.fullmatch(text)
    if found is None:
        raise _refused("from: beginning, end, offset:N, time:MILLISECONDS or last:N")
    return Start(found[1]) if found[1] else Start(found[2], int(found[3]))


def read_partitions(text: str) -> frozenset[int] | None:
    """Return the partitions that a text names, None for all; raises KafkaError."""
    if not text:
        return None
    parts = text.split(",", PARTITIONS_NAMED_MOST)
    if len(parts) > PARTITIONS_NAMED_MOST:
        raise _refused(f"partition: at most {PARTITIONS_NAMED_MOST} numbers")
    if not all(each.isascii() and each.isdigit() and len(each) < 10 for each in parts):
        raise _refused("partition: expected numbers separated by commas")
    return frozenset(map(int, parts))


def chosen(topic: Topic, *wanted: frozenset[int] | None) -> list[Partition]:
    """Return the partitions that all selections contain; raises KafkaError."""
    named = [each for each in wanted if each is not None]
    if not named and len(topic.partitions) > PARTITIONS_MOST:
        words = f"of {len(topic.partitions)} partitions choose at most {PARTITIONS_MOST}"
        raise _refused(f"partition: {words}")
    numbers = frozenset.intersection(*named) if named else range(len(topic.partitions))
    if len(numbers) > PARTITIONS_MOST:
        raise _refused(f"partition: at most {PARTITIONS_MOST}")
    count = len(topic.partitions)
    for number in numbers:
        if number >= count:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            raise KafkaError(code, f"partition {number} does not exist: the topic has {count}")
    return [topic.partitions[number] for number in sorted(numbers)]


async def ranges_of(
    partitions: Iterable[Partition],
    start: Start,
    until_ms: int,
    readers: RecordReaders,
    *,
    committed: bool,
) -> list[Range]:
    """Return the ranges of partitions; times are looked up on a thread."""
    found = []
    for partition in partitions:
        log = partition.log_here()
        low = log.log_start_offset
        if start.kind == "time":
            low = await readers.offset_at(log, start.number)
        high = log.last_stable_offset if committed else log.high_watermark
        if until_ms != FOR_EVER_MS:
            high = min(high, await readers.offset_at(log, until_ms))
        match start.kind:
            case "end":
                low = high
            case "offset":
                low = max(low, start.number)
            case "last":
                low = max(low, high - start.number)
        found.append(Range(partition.index, low, max(low, high)))
    return found


def cursor_of(order: str, left: Iterable[Range]) -> str | None:
    """Return the cursor of the rest, or None if nothing is left."""
    rows = [[each.partition, each.low, each.high] for each in left if each.low < each.high]
    return packed([order, rows]) if rows else None


def ranges_from(cursor: str, order: str, partitions: Iterable[Partition]) -> list[Range]:
    """Return the ranges of a cursor, of the requested partitions; raises KafkaError."""
    found = unpacked(cursor)
    rows = found[1] if len(found) == 2 and found[0] == order else None
    logs = {each.index: each.log_here() for each in partitions}
    if not isinstance(rows, list) or not all(_is_range(each) for each in rows):
        raise bad_cursor()
    ranges = []
    for number, low, high in rows:
        if number in logs:
            start = logs[number].log_start_offset
            ranges.append(Range(number, max(low, start), min(high, logs[number].high_watermark)))
    return ranges


def _is_range(row: Any) -> bool:  # noqa: ANN401  What a client has sent.
    return (
        isinstance(row, list)
        and len(row) == 3
        and all(type(each) is int and 0 <= each < 2**63 for each in row)
    )
