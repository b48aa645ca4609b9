"""DescribeTransactions: generated from describe_transactions.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import Api
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import ABSENT, Structure, skip_tags
from barnabas.protocol.writer import TaggedFields, Writer


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribeTransactionsRequest(Structure):
    """DescribeTransactions, versions 0-0."""

    transactional_ids: list[str]

    def __init__(self, transactional_ids: list[str] = ABSENT) -> None:
        self.transactional_ids = [] if transactional_ids is ABSENT else transactional_ids


@dataclass(slots=True, init=False, repr=False, eq=False)
class TopicData(Structure):
    """Part of DescribeTransactions."""

    topic: str
    partitions: list[int]

    def __init__(self, topic: str = "", partitions: list[int] = ABSENT) -> None:
        self.topic = topic
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class TransactionState(Structure):
    """Part of DescribeTransactions."""

    error_code: int
    transactional_id: str
    transaction_state: str
    transaction_timeout_ms: int
    transaction_start_time_ms: int
    producer_id: int
    producer_epoch: int
    topics: list[TopicData]
    client_id: str | None
    client_host: str | None

    def __init__(
        self, error_code: int = 0, transactional_id: str = "", transaction_state: str = "",
        transaction_timeout_ms: int = 0, transaction_start_time_ms: int = 0, producer_id: int = 0,
        producer_epoch: int = 0, topics: list[TopicData] = ABSENT, client_id: str | None = None,
        client_host: str | None = None,
    ) -> None:
        self.error_code = error_code
        self.transactional_id = transactional_id
        self.transaction_state = transaction_state
        self.transaction_timeout_ms = transaction_timeout_ms
        self.transaction_start_time_ms = transaction_start_time_ms
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.topics = [] if topics is ABSENT else topics
        self.client_id = client_id
        self.client_host = client_host


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribeTransactionsResponse(Structure):
    """DescribeTransactions, versions 0-0."""

    throttle_time_ms: int
    transaction_states: list[TransactionState]

    def __init__(
        self, throttle_time_ms: int = 0, transaction_states: list[TransactionState] = ABSENT
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.transaction_states = [] if transaction_states is ABSENT else transaction_states


def read_describe_transactions_request(reader: Reader, version: int) -> DescribeTransactionsRequest:
    message = DescribeTransactionsRequest(reader.values(reader.string, 1))
    reader.skip_tags()
    return message


def write_describe_transactions_request(
    writer: Writer, message: DescribeTransactionsRequest, version: int
) -> None:
    writer.values(message.transactional_ids, writer.string)
    writer.no_tags()


def read_topic_data(reader: Reader, version: int) -> TopicData:
    message = TopicData(reader.string(), reader.values(reader.int32, 4))
    reader.skip_tags()
    return message


def write_topic_data(writer: Writer, message: TopicData, version: int) -> None:
    writer.string(message.topic)
    writer.values(message.partitions, writer.int32)
    writer.no_tags()


def read_transaction_state(reader: Reader, version: int) -> TransactionState:
    message = TransactionState(
        reader.int16(),
        reader.string(),
        reader.string(),
        reader.int32(),
        reader.int64(),
        reader.int64(),
        reader.int16(),
        reader.array(read_topic_data, version, 3),
    )
    for _ in range(reader.tags()):
        tag, end = reader.tag()
        if tag == 1000:
            message.client_id = reader.optional_string()
        elif tag == 1001:
            message.client_host = reader.optional_string()
        else:
            reader.position = end
        reader.end_tag(tag, end)
    return message


def write_transaction_state(writer: Writer, message: TransactionState, version: int) -> None:
    writer.int16(message.error_code)
    writer.string(message.transactional_id)
    writer.string(message.transaction_state)
    writer.int32(message.transaction_timeout_ms)
    writer.int64(message.transaction_start_time_ms)
    writer.int64(message.producer_id)
    writer.int16(message.producer_epoch)
    writer.array(message.topics, write_topic_data, version)
    tagged = TaggedFields()
    if message.client_id is not None:
        tagged.string(message.client_id)
        tagged.end(1000)
    if message.client_host is not None:
        tagged.string(message.client_host)
        tagged.end(1001)
    writer.tags(tagged)


def read_describe_transactions_response(
    reader: Reader, version: int
) -> DescribeTransactionsResponse:
    message = DescribeTransactionsResponse(
        reader.int32(),
        reader.array(read_transaction_state, version, 28),
    )
    reader.skip_tags()
    return message


def write_describe_transactions_response(
    writer: Writer, message: DescribeTransactionsResponse, version: int
) -> None:
    writer.int32(message.throttle_time_ms)
    writer.array(message.transaction_states, write_transaction_state, version)
    writer.no_tags()


DESCRIBE_TRANSACTIONS = Api(
    65,
    "DescribeTransactions",
    message_of_fields(
        "DescribeTransactionsRequest", (0, 0), 0, read_describe_transactions_request,
        write_describe_transactions_request, bounded=True,
    ),
    message_of_fields(
        "DescribeTransactionsResponse", (0, 0), 0, read_describe_transactions_response,
        write_describe_transactions_response,
    ),
)
