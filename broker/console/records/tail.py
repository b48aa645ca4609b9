"""Sample of the newly written records: at most 50 records and 256 kB a second per viewer.

Filters apply before sampling. A viewer that does not read misses records, and they are counted;
records beyond the limit are skipped, and counted as well. No writer waits for a viewer.
"""

from __future__ import annotations

from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from barnabas.broker.api.checks import READ, TOPIC
from barnabas.broker.console.encoding import text_of
from barnabas.broker.console.pages.topics import topic_of
from barnabas.broker.console.records.events import COMMENT, Events, event
from barnabas.broker.console.records.examining import (
    EXPANDED_BYTES_MAX,
    Examined,
    FoundRecord,
    Wanted,
    examine,
)
from barnabas.broker.console.records.filters import read_filter
from barnabas.broker.console.records.formats import AUTO, KEPT_BYTES
from barnabas.broker.console.records.ranges import FOR_EVER_MS, chosen, read_partitions, read_start
from barnabas.broker.console.records.reading import ALL_STATES, blocking_of
from barnabas.broker.console.records.rows import Formats, json_rows
from barnabas.broker.console.records.shapes import Skipped
from barnabas.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.console.questions import Question
    from barnabas.broker.http.messages.answer import Answer
    from barnabas.broker.metadata.topic import Partition

TICK_SECONDS: Final = 0.2
RECORDS_PER_SECOND: Final = 50
BYTES_PER_SECOND: Final = 256 * 1024
LOOKED_BYTES: Final = 1024 * 1024
"""Number of bytes examined in a tick; the rest of the new records is skipped."""
ROWS_KEPT: Final = 1000
"""Number of records of a partition kept in a tick for sampling."""
COMMENT_TICKS: Final = 75


async def follow(question: Question) -> Answer:
    """Return a live tail; raises KafkaError if the request is invalid."""
    if read_start(question.text("from")).kind != "end":
        raise KafkaError(ErrorCode.INVALID_REQUEST, "follow: goes with from=end only")
    return _Tail(question).answer()


class _Tail(Events):
    """One live tail."""

    def __init__(self, question: Question) -> None:
        super().__init__(question)
        self._topic = topic_of(question)
        self._filter = read_filter(question.text("filter"))
        named = read_partitions(question.text("partition"))
        self._partitions = chosen(self._topic, named, self._filter.partitions)
        self._all_states = question.text("view") == ALL_STATES
        self._formats = Formats(question.text("key_format"), question.text("value_format"))
        self._positions = {each.index: self._end(each) for each in self._partitions}
        self._skipped = self._unseen = 0
        self._told = (0, 0)
        self._records_left = float(RECORDS_PER_SECOND)
        self._bytes_left = float(BYTES_PER_SECOND)

    def _end(self, partition: Partition) -> int:
        log = partition.log_here()
        return log.high_watermark if self._all_states else log.last_stable_offset

    async def show_all(self) -> None:
        quiet = 0
        self.show(COMMENT)
        while True:
            await self._question.broker.clock.sleep(TICK_SECONDS)
            access = self._question.access
            if not access.login_holds() or not access.may(READ, TOPIC, self._topic.name):
                raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            if self._question.broker.catalogue.topic(self._topic.name) is not self._topic:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "the topic was deleted")
            more = TICK_SECONDS * RECORDS_PER_SECOND
            self._records_left = min(RECORDS_PER_SECOND, self._records_left + more)
            more = TICK_SECONDS * BYTES_PER_SECOND
            self._bytes_left = min(BYTES_PER_SECOND, self._bytes_left + more)
            text = await self._news()
            quiet = 0 if text else quiet + 1
            if quiet >= COMMENT_TICKS:
                text, quiet = COMMENT, 0
            if text:
                self.show(text)

    async def _news(self) -> str:
        """Return the events since the last call."""
        found = await self._examine()
        chosen_ones = self._sample(found)
        text = ""
        if chosen_ones and not self.show(COMMENT):
            chosen_ones = []  # The viewer has not read the previous records: none is stored.
        if chosen_ones:
            rows = await self._rows(chosen_ones)
            shown = 0
            for row in rows:
                if self._bytes_left > 0:
                    shown += 1
                    self._bytes_left -= len(row)
                    text += event("record", row)
            self._records_left -= shown
            self._skipped += len(found) - shown
        else:
            self._skipped += len(found)
        if (self._skipped, self._unseen) != self._told:
            self._told = self._skipped, self._unseen
            text += event("skipped", text_of(Skipped(*self._told)))
        return text

    def _sample(self, found: list[FoundRecord]) -> list[FoundRecord]:
        """Return an even sample within the limit."""
        count = min(len(found), int(self._records_left))
        return [found[at * len(found) // count] for at in range(count)]

    async def _rows(self, found: list[FoundRecord]) -> list[str]:
        run, pace = self._question.places.readers.run, self.pace
        if AUTO in {self._formats.key, self._formats.value}:
            name = self._topic.name
            self._formats = await run(partial(self._formats.guessed, name, found, pace))
        blocking = await blocking_of(self._question, self._topic, found)
        return await run(partial(json_rows, found, self._formats, blocking, pace))

    async def _examine(self) -> list[FoundRecord]:
        """Return the new records that match; those above the limit are skipped and counted."""
        rows: list[FoundRecord] = []
        left = LOOKED_BYTES
        for partition in self._partitions:
            index, end = partition.index, self._end(partition)
            while self._positions[index] < end and left > 0:
                found = await self._examined(partition, self._positions[index], end)
                rows += found.rows
                left -= max(1, found.bytes)
                self._positions[index] = max(found.position, self._positions[index] + 1)
            if self._positions[index] < end:
                self._unseen += end - self._positions[index]
                self._positions[index] = end
        rows.sort(key=attrgetter("timestamp_ms"))
        return rows

    async def _examined(self, partition: Partition, start: int, end: int) -> Examined:
        readers = self._question.places.readers
        piece = await readers.after(partition.log_here(), start, end, LOOKED_BYTES // 4, self.pace)
        wanted = Wanted(
            partition.index,
            start,
            end,
            -FOR_EVER_MS,
            FOR_EVER_MS,
            self._all_states,
            self._filter,
            ROWS_KEPT,
            KEPT_BYTES,
            newest_first=False,
        )
        work = partial(examine, piece, wanted, self.pace)
        return await readers.expand(piece.batches, work, EXPANDED_BYTES_MAX)
