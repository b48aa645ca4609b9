"""Records of a topic for a job: given offsets, or a search."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from barnabas.broker.console.lengths import RANGES_MOST
from barnabas.broker.console.records.examining import (
    EXPANDED_BYTES_MAX,
    Examined,
    Wanted,
    examine,
)
from barnabas.broker.console.records.filters import Filter
from barnabas.broker.console.records.pieces import PIECE_BYTES
from barnabas.broker.console.records.ranges import FOR_EVER_MS, Range
from barnabas.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.console.records.pace import ThreadPace
    from barnabas.broker.console.records.pieces import RecordReaders
    from barnabas.broker.metadata.topic import Topic

ROWS_TOGETHER: Final = 5000
"""Maximum number of records taken out of one piece at a time."""
_RANGE: Final = re.compile(r"([0-9]{1,9}):([0-9]{1,18})(?:-([0-9]{1,18}))?")


def read_offsets(text: str, topic: Topic) -> list[Range]:
    """Return the ranges of ``0:5 0:10-20``: of partition 0 offset 5, and 10 to 20, both included.

    Overlapping ranges are joined, so that no record is taken twice. Raises KafkaError.
    """
    words = text.replace(",", " ").split()
    if len(words) > RANGES_MOST:
        raise _refused(f"at most {RANGES_MOST} ranges")
    ranges = sorted(_range(each, topic) for each in words)
    joined: list[Range] = []
    for each in ranges:
        last = joined[-1] if joined else None
        if last is not None and last.partition == each.partition and each.low <= last.high:
            joined[-1] = last._replace(high=max(last.high, each.high))
        else:
            joined.append(each)
    return joined


def _range(word: str, topic: Topic) -> Range:
    found = _RANGE.fullmatch(word)
    if found is None:
        raise _refused(f"{word[:80]}: expected PARTITION:OFFSET or PARTITION:FIRST-LAST")
    partition, low, last = int(found[1]), int(found[2]), int(found[3] or found[2])
    if partition >= len(topic.partitions):
        words = f"partition {partition} does not exist: the topic has {len(topic.partitions)}"
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, words)
    if last < low:
        raise _refused(f"{word}: ends before it begins")
    return Range(partition, low, last + 1)


def _refused(words: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, f"offsets: {words}")


def within(topic: Topic, ranges: list[Range]) -> list[Range]:
    """Return the parts of ranges that are committed now.

    Records written later are excluded: a topic can be replayed to itself.
    """
    found = []
    for each in ranges:
        log = topic.partitions[each.partition].log_here()
        low = max(each.low, log.log_start_offset)
        high = min(each.high, log.last_stable_offset)
        if low < high:
            found.append(Range(each.partition, low, high))
    return found


@dataclass(frozen=True, slots=True)
class Selection:
    """Records of one topic."""

    topic: Topic
    ranges: list[Range]
    filter: Filter
    since_ms: int = -FOR_EVER_MS
    until_ms: int = FOR_EVER_MS

    @property
    def offsets(self) -> int:
        """Number of offsets to read."""
        return sum(each.high - each.low for each in self.ranges)

    async def found(
        self, readers: RecordReaders, pace: ThreadPace, *, whole: bool
    ) -> AsyncGenerator[tuple[int, Examined], None]:
        """Yield the found records piece by piece, with the number of offsets read for each.

        Partitions follow each other, each in the order of its offsets, so only one piece is in
        memory. Without ``whole``, the bytes of the records are dropped. Raises KafkaError if
        something cannot be read.
        """
        for partition, start, high in self.ranges:
            log, low = self.topic.partitions[partition].log_here(), start
            while low < high:
                piece = await readers.after(log, low, high, PIECE_BYTES, pace)
                wanted = self._wanted(partition, low, high, whole=whole)
                found = await readers.expand(
                    piece.batches, partial(examine, piece, wanted, pace), EXPANDED_BYTES_MAX
                )
                if found.unread:
                    first = found.unread[0]
                    where = f"{self.topic.name}-{partition}, {first.from_offset}"
                    words = f"{where} to {first.until_offset} cannot be read: {first.reason}"
                    raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, words)
                position = min(high, max(found.position, low + 1))
                yield position - low, found
                low = position

    def _wanted(self, partition: int, low: int, high: int, *, whole: bool) -> Wanted:
        return Wanted(
            partition,
            low,
            high,
            self.since_ms,
            self.until_ms,
            all_states=False,
            filter=self.filter,
            rows=ROWS_TOGETHER,
            kept_bytes=EXPANDED_BYTES_MAX if whole else 0,
            newest_first=False,
        )
