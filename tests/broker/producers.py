"""Producers, committed offsets and deleted topics of tests, each by a few blocking requests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Self

from barnabas.protocol import compression as codecs
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.delete_topics import (
    DELETE_TOPICS,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from barnabas.protocol.messages.end_txn import END_TXN, EndTxnRequest
from barnabas.protocol.messages.fetch import FETCH, FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from barnabas.protocol.messages.produce import PRODUCE
from barnabas.protocol.records import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, Record, encode_batch
from barnabas.storage.runtime.clock import now_ns
from tests.broker.data_plane import unpack
from tests.counterparts.offsets_client import CLASSIC, OffsetsClient
from tests.counterparts.offsets_client import Producer as Identity
from tests.counterparts.transaction_client import NOT_YET, PRODUCE_CLASSIC, TransactionClient
from tests.counterparts.wire_client import Addressed, WireClient
from tests.requests import produce_request
from tests.waiting import wait_until

Text = str | bytes | None


class Producer:
    """Connection that writes records; with a ``key``, in transactions of the classic protocol.

    The first record begins a transaction. All errors raise KafkaError.
    """

    def __init__(
        self,
        broker: Addressed,
        key: str | None = None,
        *,
        client_id: str = "wire-client",
        timeout_ms: int = 60_000,
        compression: int = codecs.NONE,
        is_idempotent: bool = False,
    ) -> None:
        self._client = TransactionClient(broker, client_id)
        self.key = key
        self._compression = compression
        self._broker = broker
        self._next_sequences: dict[tuple[str, int], int] = {}
        self._added: set[tuple[str, int]] = set()
        self._has_begun = False
        self._producer = NO_PRODUCER_ID, NO_PRODUCER_EPOCH
        if key is not None:
            self._producer = self._client.init(key, timeout_ms)
        elif is_idempotent:
            answer = self._client.ask(INIT_PRODUCER_ID, InitProducerIdRequest(None, timeout_ms), 4)
            self._producer = answer.producer_id, answer.producer_epoch

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection, and leave an open transaction open."""
        self._client.close()

    def send(
        self,
        topic: str,
        *values: Text,
        partition: int = 0,
        key: Text = None,
        headers: Iterable[tuple[str, Text]] = (),
        time_ms: int | None = None,
    ) -> int:
        """Write a batch, in whose records only the values differ; return its first offset."""
        stamp_ms = now_ns() // 1_000_000 if time_ms is None else time_ms
        named = [(name, _bytes(value)) for name, value in headers]
        return self.send_records(
            topic,
            [
                Record(number, stamp_ms, _bytes(key), _bytes(value), named)
                for number, value in enumerate(values)
            ],
            partition,
        )

    def send_records(self, topic: str, records: list[Record], partition: int = 0) -> int:
        """Write a batch; return its first offset."""
        place = topic, partition
        if self.key is not None and place not in self._added:
            self._client.add(self.key, topic, partition)
            self._added.add(place)
            self._has_begun = True
        has_id = self._producer[0] != NO_PRODUCER_ID
        batch = encode_batch(
            records,
            compression=self._compression,
            producer_id=self._producer[0],
            producer_epoch=self._producer[1],
            base_sequence=self._next_sequences.get(place, 0) if has_id else -1,
            transactional=self.key is not None,
        )
        request = produce_request({place: batch}, transactional_id=self.key)
        found: list[Any] = []

        def written() -> bool:
            answer = self._client.ask(PRODUCE, request, PRODUCE_CLASSIC)
            found[:] = answer.responses[0].partition_responses
            return found[0].error_code not in NOT_YET

        wait_until(written, "written")
        _check(found[0].error_code)
        self._next_sequences[place] = self._next_sequences.get(place, 0) + len(records)
        return int(found[0].base_offset)

    def send_offsets(self, group: str, offsets: dict[tuple[str, int], int]) -> None:
        """Make the offsets of a group part of the transaction."""
        assert self.key is not None
        with OffsetsClient(self._broker) as client:
            self._has_begun = True
            client.committed(Identity(self.key, *self._producer), group, offsets, CLASSIC)

    def commit(self) -> None:
        """Commit the transaction."""
        self._end(commit=True)

    def abort(self) -> None:
        """Abort the transaction."""
        self._end(commit=False)

    def _end(self, *, commit: bool) -> None:
        assert self.key is not None
        if not self._has_begun:
            return
        request = EndTxnRequest(self.key, *self._producer, commit)
        codes: list[int] = []

        def ended() -> bool:
            codes[:] = [self._client.ask(END_TXN, request, 3).error_code]
            return codes[0] not in NOT_YET

        wait_until(ended, "ended")
        _check(codes[0])
        self._added.clear()
        self._has_begun = False


def _bytes(text: Text) -> bytes | None:
    return text.encode() if isinstance(text, str) else text


def _check(code: int) -> None:
    if code:
        raise KafkaError(ErrorCode(code))


@contextmanager
def open_transaction(broker: Addressed, key: str, topic: str, records: int) -> Iterator[Producer]:
    """Write ``records`` to partition 0 in a transaction, which is aborted at the end."""
    with Producer(broker, key) as producer:
        if records:
            producer.send(topic, *map(str, range(records)))
        yield producer
        producer.abort()


def write(broker: Addressed, topic: str, records: int, partition: int = 0) -> None:
    """Write records with the values 0, 1, ... to a partition."""
    with Producer(broker) as producer:
        producer.send(topic, *map(str, range(records)), partition=partition)


def commit(broker: Addressed, group: str, topic: str, offset: int, partition: int = 0) -> None:
    """Commit an offset of a group without members."""
    with OffsetsClient(broker) as client:
        client.find(group, 0)
        codes = client.patiently(
            lambda: client.commit_plainly(group, {(topic, partition): offset}), max
        )
        assert codes == {ErrorCode.NONE}


def committed(broker: Addressed, group: str, *places: tuple[str, int]) -> list[int | str]:
    """Return the committed offsets of a group."""
    with OffsetsClient(broker) as client:
        client.find(group, 0)
        found = client.fetch(group)
    return [found[place] for place in places]


def read(broker: Addressed, topic: str, partition: int = 0) -> list[Record]:
    """Return all records of a partition that has no transactions."""
    found: list[Record] = []
    end = -1
    with WireClient(broker) as client:
        while len(found) < end or end < 0:
            start = found[-1].offset + 1 if found else 0
            wanted = FetchTopic(topic, partitions=[FetchPartition(partition, fetch_offset=start)])
            request = FetchRequest(max_wait_ms=0, min_bytes=1, topics=[wanted])
            data = client.ask(FETCH, request, 12).responses[0].partitions[0]
            _check(data.error_code)
            end = data.high_watermark
            found += unpack(data.records)
    return found


def delete_topic(broker: Addressed, topic: str) -> None:
    """Delete a topic by a request of a client."""
    with WireClient(broker) as client:
        request = DeleteTopicsRequest([DeleteTopicState(topic)], timeout_ms=30_000)
        (answer,) = client.ask(DELETE_TOPICS, request, 6).responses
        _check(answer.error_code)
