"""A script of transactions for two brokers: what partitions answer, in words that can be equal.

Producer ids, coordinator epochs and the times of markers belong to one broker; the script names
producers and says of a marker what it decides.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.delete_records import DELETE_RECORDS
from barnabas.protocol.messages.describe_producers import DESCRIBE_PRODUCERS
from barnabas.protocol.messages.describe_transactions import (
    DESCRIBE_TRANSACTIONS,
    DescribeTransactionsRequest,
)
from barnabas.protocol.messages.fetch import FETCH
from barnabas.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from barnabas.protocol.messages.list_offsets import LIST_OFFSETS
from barnabas.protocol.messages.produce import PRODUCE
from barnabas.protocol.record_decoding import read_marker
from barnabas.protocol.records import iterate_batches
from tests.broker.data_plane import (
    NOW_MS,
    Named,
    Wire,
    batch,
    fetch_request,
    list_offsets_request,
    values,
)
from tests.broker.raw_producer import RawProducer
from tests.requests import codes_of, delete_records_request, describe_producers_request

Answer = tuple[str, Any]
PATIENCE_S = 60
TRANSACTION = 1
PLAIN_PRODUCERS = 1_000_000
TRY_AGAIN = {ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.CONCURRENT_TRANSACTIONS}
VERSIONS = (3, 11, 12, 13)
LONG_POLL_MS = 30_000


class Transactions:
    """One broker, one version of Produce, one topic of three partitions."""

    def __init__(self, wire: Wire, topic: Named, version: int) -> None:
        self.wire = wire
        self.topic = topic
        self.version = version
        self.names = {-1: ""}

    def producer(self, name: str) -> RawProducer:
        transactional_id = f"{self.topic.name}-{name}"
        # The first request creates the coordinator's topic.
        self.wire.ask(FIND_COORDINATOR, FindCoordinatorRequest(transactional_id, TRANSACTION), 1)
        producer = RawProducer(self.wire, transactional_id, self.version)
        self.names[producer.producer_id] = name
        return producer

    def settle(self, producer: RawProducer) -> None:
        """Wait until the transaction has its markers; brokers take their time for that."""
        asked = DescribeTransactionsRequest([producer.name])
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            (found,) = self.wire.ask(DESCRIBE_TRANSACTIONS, asked, 0).transaction_states
            if not found.transaction_state.startswith("Prepare"):
                return
            time.sleep(0.01)
        raise TimeoutError(producer.name)

    def end(self, producer: RawProducer, *, commit: bool) -> None:
        name = self.names[producer.producer_id]
        producer.end(commit=commit)
        self.names[producer.producer_id] = name
        self.settle(producer)

    def plain_batch(self) -> memoryview:
        """A batch outside of transactions that may be sent twice."""
        producer_id = PLAIN_PRODUCERS + len(self.names)
        self.names[producer_id] = "plain"
        return batch(b"p", producer_id=producer_id, producer_epoch=0, base_sequence=0)

    def write(self, producer: RawProducer, *data: tuple[int, Any], **more: Any) -> list[Any]:
        """Results by partition. On a busy machine Kafka may not find its coordinator at once."""
        request = producer.request(self.topic, *data, **more)
        deadline = time.monotonic() + PATIENCE_S
        while True:
            answer = self.wire.ask(PRODUCE, request, self.version)
            results = sorted(answer.responses[0].partition_responses, key=lambda each: each.index)
            if not any(each.error_code in TRY_AGAIN for each in results):
                return results
            assert time.monotonic() < deadline, results
            time.sleep(0.05)

    def codes(self, producer: RawProducer, *data: tuple[int, Any], **more: Any) -> list[str]:
        return [ErrorCode(each.error_code).name for each in self.write(producer, *data, **more)]

    def send(self, producer: RawProducer, *values: bytes, partition: int = 0, **more: Any) -> Any:
        records = producer.batch(self.topic, *values, partition=partition, **more)
        return self.write(producer, (partition, records))[0]

    # Queries

    def state(self, label: str) -> Iterator[Answer]:
        """Yield the results of all queries about the partitions in their current state."""
        for isolation in (0, 1):
            for partition in range(3):
                yield (
                    f"{label}: fetch {partition} in {isolation}",
                    self.fetched(partition, isolation),
                )
            for asked in (-1, -2, -3, NOW_MS, NOW_MS + 15, NOW_MS + 35, NOW_MS + 500):
                request = list_offsets_request(self.topic.name, (0, asked), isolation=isolation)
                found = self.wire.ask(LIST_OFFSETS, request, 7).topics[0].partitions[0]
                answer = (found.error_code, self.told(found.timestamp), found.offset)
                yield (
                    f"{label}: offset of {asked - NOW_MS if asked > 0 else asked} in {isolation}",
                    answer,
                )
        yield f"{label}: producers", self.described()

    def told(self, timestamp: int) -> int | str:
        """A record's time; that of a marker is the broker's."""
        return timestamp - NOW_MS if NOW_MS <= timestamp < NOW_MS + 1000 else str(timestamp < 0)

    def fetched(self, partition: int, isolation: int, offset: int = 0, **more: Any) -> Any:
        """Return all records from an offset on: brokers differ in the size of a response."""
        aborted: set[tuple[str, int]] = set()
        batches: list[Any] = []
        while True:
            data = self.wire.fetch_one(self.topic, offset, partition, isolation=isolation, **more)
            ends = (data.log_start_offset, data.last_stable_offset, data.high_watermark)
            found = list(iterate_batches(data.records))
            if not found:
                is_told = data.aborted_transactions is not None
                return ErrorCode(data.error_code).name, ends, is_told and sorted(aborted), batches
            offset = found[-1][1].next_offset
            aborted.update(self.aborted(data, offset))
            batches += [self.stored(data.records[at:], header) for at, header in found]

    def aborted(self, data: Any, upper_offset: int) -> list[tuple[str, int]]:
        """Return the aborted transactions that a reader needs; both brokers may list more."""
        return sorted(
            (self.names[each.producer_id], each.first_offset)
            for each in data.aborted_transactions or ()
            if each.first_offset < upper_offset
        )

    def stored(self, view: memoryview, header: Any) -> Any:
        records = view[: header.size]
        marker = read_marker(records) if header.is_control else None
        return (
            (header.base_offset, header.last_offset),
            (header.attributes, header.producer_epoch, header.base_sequence, header.record_count),
            self.names[header.producer_id],
            marker.commit if marker is not None else values(records),
        )

    def described(self) -> Any:
        asked = describe_producers_request(*((self.topic.name, index) for index in range(3)))
        partitions = self.wire.ask(DESCRIBE_PRODUCERS, asked, 0).topics[0].partitions
        return sorted(
            (
                each.partition_index,
                each.error_code,
                sorted(
                    (
                        self.names[row.producer_id],
                        row.producer_epoch,
                        row.last_sequence,
                        self.told(row.last_timestamp),
                        row.coordinator_epoch >= 0,
                        row.current_txn_start_offset,
                    )
                    for row in each.active_producers
                ),
            )
            for each in partitions
        )

    def delete_records(self, offset: int) -> None:
        request = delete_records_request({(self.topic.name, 0): offset})
        assert codes_of(self.wire.ask(DELETE_RECORDS, request, 2)) == [0]

    def result(self, found: Any) -> Any:
        return ErrorCode(found.error_code).name, found.base_offset

    # What happens

    def run(self) -> Iterator[Answer]:
        for part in (
            self.refusals,
            self.one_ends,
            self.two_overlap,
            self.deleted,
            self.waited_for,
            self.repeated,
        ):
            for label, answer in part():
                yield f"{label} v{self.version}", answer

    def refusals(self) -> Iterator[Answer]:
        topic, first = self.topic, self.producer("first")
        other = self.producer("other")
        yield "nothing yet", self.described()
        records = first.batch(topic, b"x", partition=2, sequence=0)
        if first.is_classic:
            yield "not added", self.codes(first, (2, records))
        yield "somebody else's id", self.codes(first, (2, other.batch(topic, sequence=0)))
        yield "nobody's id", self.codes(first, (2, records), transactional_id="nobody")
        for name in (None, ""):
            errors = self.codes(first, (2, records), (1, self.plain_batch()), transactional_id=name)
            yield f"id {name!r}", errors
        for epoch in (1, 5):
            later = first.batch(topic, sequence=0, producer_epoch=epoch)
            yield f"epoch {epoch}", self.codes(first, (2, later))
        first.add(topic, 0, 2)
        several = ((2, records), (1, other.batch(topic, sequence=0, partition=1)))
        yield "several producers", self.codes(first, *several, (0, self.plain_batch()))
        spoilt = first.batch(topic, b"spoilt", sequence=0)
        spoilt[-1] ^= 1
        yield "spoilt", self.codes(first, (0, spoilt), (2, records))
        yield "again", self.result(self.send(first, b"x", partition=2, sequence=0))
        gap = self.send(first, b"x", partition=2, sequence=3)
        yield "a gap", self.result(gap)
        plain = first.batch(topic, b"plain", partition=2, sequence=1, transactional=False)
        yield "outside of its transaction", self.codes(first, (2, plain))
        control = first.batch(topic, b"c", partition=2, sequence=1, control=True)
        yield "a control batch", self.codes(first, (2, control))
        if not first.is_classic:
            fresh = first.batch(topic, b"f", partition=1, sequence=5)
            yield "not from the start", self.codes(first, (1, fresh))
        self.end(first, commit=True)
        yield from self.state("refused")

    def one_ends(self) -> Iterator[Answer]:
        topic, first = self.topic, self.producer("first")
        for commit in (True, False):
            first.add(topic, 0, 1)
            times = [NOW_MS + 10 * commit + at for at in range(2)]
            records = first.batch(topic, b"a", b"b", times=times)
            yield (
                f"{commit} beside a plain one",
                self.codes(first, (0, records), (1, self.plain_batch())),
            )
            yield from self.state(f"{commit} open")
            late = first.batch(topic, b"late", sequence=first._next[topic.name, 0])
            self.end(first, commit=commit)
            yield f"{commit} late", self.codes(first, (0, late))
            yield from self.state(f"{commit} ended")
            for offset in (1, 2, 3):
                yield f"{commit} from {offset}", self.fetched(0, 1, offset)
        successor = self.producer("first")
        yield "fenced", self.result(self.send(first, b"zombie", sequence=0))
        assert successor.epoch > first.epoch

    def two_overlap(self) -> Iterator[Answer]:
        topic = self.topic
        first, second = self.producer("first"), self.producer("second")
        stamps = iter(range(20, 100, 10))

        def write(producer: RawProducer) -> None:
            producer.add(topic, 0)
            result = self.send(producer, b"o", times=[NOW_MS + next(stamps)])
            assert result.error_code == 0, result

        for producer in (first, second, first):
            write(producer)
        self.wire.produce(topic, batch(b"plain", times=[NOW_MS + next(stamps)]))
        yield from self.state("both open")
        self.end(second, commit=False)
        write(second)
        yield from self.state("one ended")
        self.end(first, commit=False)
        yield from self.state("the other open")
        self.end(second, commit=True)
        yield from self.state("none open")
        for offset in range(12):
            data = self.wire.fetch_one(topic, offset, 0, isolation=1, partition_max_bytes=1)
            ((_, header),) = iterate_batches(data.records)
            batch_there = self.stored(data.records, header)
            aborted = self.aborted(data, header.next_offset)
            yield f"small from {offset}", (aborted, batch_there)

    def deleted(self) -> Iterator[Answer]:
        topic, first = self.topic, self.producer("first")
        first.add(topic, 0)
        for _ in range(3):
            last = self.send(first, b"d").base_offset
        self.delete_records(last)
        yield from self.deleted_state("deleted", last)
        self.end(first, commit=False)
        yield from self.deleted_state("deleted and ended", last)

    def deleted_state(self, label: str, offset: int) -> Iterator[Answer]:
        for isolation in (0, 1):
            yield f"{label}: fetch in {isolation}", self.fetched(0, isolation, offset)
            request = list_offsets_request(self.topic.name, (0, -1), isolation=isolation)
            found = self.wire.ask(LIST_OFFSETS, request, 7).topics[0].partitions[0]
            yield f"{label}: end in {isolation}", (found.error_code, found.offset)
        yield f"{label}: producers", self.described()

    def waited_for(self) -> Iterator[Answer]:
        """A long poll answers with what an abort has made visible (KAFKA-5376)."""
        topic, first = self.topic, self.producer("first")
        first.add(topic, 2)
        begin = self.send(first, b"w", partition=2).base_offset
        with Wire(self.wire.socket.getpeername(), timeout_s=PATIENCE_S) as poll:
            request = fetch_request(12, (topic, (2, begin)), isolation=1, max_wait_ms=LONG_POLL_MS)
            poll.send(FETCH, request, 12)
            assert poll.silent(0.2)
            self.end(first, commit=False)
            answer = poll.receive()
        data = answer.responses[0].partitions[0]
        (_, header), *_ = iterate_batches(data.records)
        yield "waited for", (self.aborted(data, begin + 1), self.stored(data.records, header))

    def repeated(self) -> Iterator[Answer]:
        """Apache Kafka refuses what was a success before, and then what comes next as well."""
        topic, first = self.topic, self.producer("first")
        first.add(topic, 1)
        self.send(first, b"r", partition=1)
        again = first.batch(topic, b"r", partition=1, sequence=0)
        self.end(first, commit=True)
        yield "again after the end", self.codes(first, (1, again))
