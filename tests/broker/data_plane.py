"""Requests of the data plane in few words, and a blocking client that sends them to any broker."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from socket import MSG_PEEK
from typing import Any, NamedTuple, Self

from barnabas.broker.client.dialing import connect
from barnabas.protocol.client import NEED_DATA, ClientConnection
from barnabas.protocol.messages.fetch import (
    FETCH,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
)
from barnabas.protocol.messages.list_offsets import (
    LIST_OFFSETS,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas.protocol.messages.produce import (
    PRODUCE,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.protocol.record_decoding import iterate_records
from barnabas.protocol.records import Record, encode_batch, iterate_batches
from barnabas.protocol.wire import ZERO_UUID
from barnabas.testing import Broker

NOW_MS = 1_700_000_000_000
PRODUCE_VERSIONS = range(3, 14)
FETCH_VERSIONS = range(4, 19)
LIST_OFFSETS_VERSIONS = range(1, 12)
PRODUCE_BY_ID = 13
FETCH_BY_ID = 13
EXPANDED_BYTES = 64 * 1024 * 1024


class Named(NamedTuple):
    """A topic's name and id: newer versions want the one, older the other."""

    name: str
    id: bytes = ZERO_UUID


def topic_name(text: str) -> str:
    """A legal name of a topic for a test."""
    return "".join(each if each.isalnum() else "-" for each in text)


def created(broker: Broker, name: str, partitions: int, configs: Mapping[str, str]) -> Named:
    """A new topic."""
    broker.create_topic(name, partitions, configs)
    return Named(name, broker.call(lambda: broker.server.catalogue.topics[name].topic_id))


def complaints(caplog: Any) -> list[str]:
    """Return the broker's warnings and errors, without those of asyncio on a slow machine."""
    return [
        record.getMessage()
        for record in caplog.records
        if record.levelno > logging.INFO and record.name.partition(".")[0] != "asyncio"
    ]


def batch(*values: bytes | None, times: Iterable[int] = (), **settings: Any) -> memoryview:
    """One batch with a record per value; ``times`` are the records' timestamps."""
    values = values or (b"v",)
    stamps = [*times] or [NOW_MS] * len(values)
    records = [
        Record(offset, stamps[offset], b"k%d" % offset, value, ())
        for offset, value in enumerate(values)
    ]
    return memoryview(bytearray(encode_batch(records, **settings)))


def produce_request(
    version: int,
    topic: Named,
    *data: tuple[int, Any],
    acks: int = -1,
    transactional_id: str | None = None,
) -> ProduceRequest:
    """Produce to partitions of one topic: pairs of partition and records."""
    return ProduceRequest(transactional_id, acks, 30_000, [topic_data(version, topic, *data)])


def topic_data(version: int, topic: Named, *data: tuple[int, Any]) -> TopicProduceData:
    name, topic_id = ("", topic.id) if version >= PRODUCE_BY_ID else (topic.name, ZERO_UUID)
    return TopicProduceData(name, topic_id, [PartitionProduceData(*each) for each in data])


def fetch_topic(version: int, topic: Named, *partitions: Any, max_bytes: int) -> FetchTopic:
    """``partitions``: FetchPartitions, or pairs of partition and offset."""
    asked = [
        each
        if isinstance(each, FetchPartition)
        else FetchPartition(each[0], fetch_offset=each[1], partition_max_bytes=max_bytes)
        for each in partitions
    ]
    name, topic_id = ("", topic.id) if version >= FETCH_BY_ID else (topic.name, ZERO_UUID)
    return FetchTopic(name, topic_id, asked)


def fetch_request(
    version: int,
    *topics: tuple[Any, ...],
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 1 << 26,
    partition_max_bytes: int = 1 << 20,
    isolation: int = 0,
    session: tuple[int, int] = (0, -1),
    forget: Iterable[tuple[Named, list[int]]] = (),
) -> FetchRequest:
    """Fetch from ``topics``, tuples of a Named and its partitions (see ``fetch_topic``)."""
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation,
        session_id=session[0],
        session_epoch=session[1],
        topics=[
            fetch_topic(version, topic, *partitions, max_bytes=partition_max_bytes)
            for topic, *partitions in topics
        ],
        forgotten_topics_data=[
            ForgottenTopic("", topic.id, partitions)
            if version >= FETCH_BY_ID
            else ForgottenTopic(topic.name, ZERO_UUID, partitions)
            for topic, partitions in forget
        ],
    )


def list_offsets_request(
    name: str, *asked: tuple[int, int] | ListOffsetsPartition, isolation: int = 0
) -> ListOffsetsRequest:
    """ListOffsets of one topic: pairs of partition and timestamp."""
    partitions = [
        each
        if isinstance(each, ListOffsetsPartition)
        else ListOffsetsPartition(each[0], -1, each[1])
        for each in asked
    ]
    return ListOffsetsRequest(-1, isolation, [ListOffsetsTopic(name, partitions)])


class Wire:
    """`with Wire(broker.address) as wire`: one blocking connection."""

    def __init__(
        self, address: tuple[str, int], client_id: str | None = "wire", timeout_s: float = 60
    ) -> None:
        self.socket = connect(address, timeout_s)
        self._connection = ClientConnection(client_id)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.socket.close()

    def encode(self, api: Any, request: Any, version: int, *, answered: bool = True) -> bytes:
        """A whole frame; its answer is expected from now on."""
        _, chunks = self._connection.request(api, version, request, expects_response=answered)
        return b"".join(bytes(chunk) for chunk in chunks)

    def send(self, api: Any, request: Any, version: int, *, answered: bool = True) -> None:
        self.socket.sendall(self.encode(api, request, version, answered=answered))

    def receive(self) -> Any:
        """Return the oldest pending response; raise ConnectionError if the broker disconnects."""
        while (answer := self._connection.next_response()) is NEED_DATA:
            received = self.socket.recv(1 << 20)
            if not received:
                raise ConnectionError("hung up")
            self._connection.receive_data(received)
        return answer[1]

    def ask(self, api: Any, request: Any, version: int) -> Any:
        self.send(api, request, version)
        return self.receive()

    def hung_up(self) -> bool:
        """Whether the broker closes the connection without another word."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def silent(self, seconds: float = 0.1) -> bool:
        """Return whether the broker sends no byte for ``seconds``."""
        patience_s = self.socket.gettimeout()
        self.socket.settimeout(seconds)
        try:
            self.socket.recv(1, MSG_PEEK)
        except TimeoutError:
            return True
        finally:
            self.socket.settimeout(patience_s)
        return False

    # One partition of one topic

    def produce(
        self, topic: Named, records: Any, partition: int = 0, version: int = 9, **more: Any
    ) -> PartitionProduceResponse:
        request = produce_request(version, topic, (partition, records), **more)
        response = self.ask(PRODUCE, request, version)
        return response.responses[0].partition_responses[0]

    def fetch(self, *topics: tuple[Any, ...], version: int = 12, **more: Any) -> FetchResponse:
        response: FetchResponse = self.ask(FETCH, fetch_request(version, *topics, **more), version)
        return response

    def fetch_one(
        self, topic: Named, offset: int, partition: int = 0, version: int = 12, **more: Any
    ) -> Any:
        response = self.fetch((topic, (partition, offset)), version=version, **more)
        assert response.error_code == 0
        return response.responses[0].partitions[0]

    def read(self, topic: Named, partition: int = 0, **more: Any) -> list[bytes | None]:
        """The values of all records of a partition, in as many fetches as it takes."""
        found: list[bytes | None] = []
        offset = 0
        while True:
            data = self.fetch_one(topic, offset, partition, **more)
            assert data.error_code == 0
            end = data.last_stable_offset if more.get("isolation") else data.high_watermark
            if offset >= end:
                return found
            batches = list(iterate_batches(data.records))
            assert batches, "a fetch below the end must move on (L5)"
            found += values(data.records)
            offset = batches[-1][1].next_offset

    def list_offset(
        self, name: str, timestamp: int, partition: int = 0, version: int = 7, **more: Any
    ) -> tuple[int, int, int, int]:
        """Error, timestamp, offset, leader epoch."""
        request = list_offsets_request(name, (partition, timestamp), **more)
        response = self.ask(LIST_OFFSETS, request, version)
        found = response.topics[0].partitions[0]
        return found.error_code, found.timestamp, found.offset, found.leader_epoch


def values(records: memoryview | None) -> list[bytes | None]:
    """The values of all records in some batches."""
    return [record.value for record in unpack(records)]


def unpack(records: memoryview | None) -> list[Record]:
    """All records in some batches, with their offsets."""
    view = records or memoryview(b"")
    return [
        record
        for at, header in iterate_batches(view)
        for record in iterate_records(view[at : at + header.size], limit_bytes=EXPANDED_BYTES)
    ]
