"""ListTransactions: generated from list_transactions.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import Api
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import ABSENT, Structure, skip_tags
from barnabas.protocol.writer import Writer


@dataclass(slots=True, init=False, repr=False, eq=False)
class ListTransactionsRequest(Structure):
    """ListTransactions, versions 0-2."""

    state_filters: list[str]
    producer_id_filters: list[int]
    duration_filter: int
    transactional_id_pattern: str | None

    def __init__(
        self, state_filters: list[str] = ABSENT, producer_id_filters: list[int] = ABSENT,
        duration_filter: int = -1, transactional_id_pattern: str | None = None,
    ) -> None:
        self.state_filters = [] if state_filters is ABSENT else state_filters
        self.producer_id_filters = [] if producer_id_filters is ABSENT else producer_id_filters
        self.duration_filter = duration_filter
        self.transactional_id_pattern = transactional_id_pattern


@dataclass(slots=True, init=False, repr=False, eq=False)
class TransactionState(Structure):
    """Part of ListTransactions."""

    transactional_id: str
    producer_id: int
    transaction_state: str

    def __init__(
        self, transactional_id: str = "", producer_id: int = 0, transaction_state: str = ""
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.transaction_state = transaction_state


@dataclass(slots=True, init=False, repr=False, eq=False)
class ListTransactionsResponse(Structure):
    """ListTransactions, versions 0-2."""

    throttle_time_ms: int
    error_code: int
    unknown_state_filters: list[str]
    transaction_states: list[TransactionState]

    def __init__(
        self, throttle_time_ms: int = 0, error_code: int = 0,
        unknown_state_filters: list[str] = ABSENT,
        transaction_states: list[TransactionState] = ABSENT,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.unknown_state_filters = [] if unknown_state_filters is ABSENT else unknown_state_filters
        self.transaction_states = [] if transaction_states is ABSENT else transaction_states


def read_list_transactions_request(reader: Reader, version: int) -> ListTransactionsRequest:
    message = ListTransactionsRequest(
        reader.values(reader.string, 1),
        reader.values(reader.int64, 8),
        reader.int64() if version >= 1 else -1,
        reader.optional_string() if version >= 2 else None,
    )
    reader.skip_tags()
    return message


def write_list_transactions_request(
    writer: Writer, message: ListTransactionsRequest, version: int
) -> None:
    writer.values(message.state_filters, writer.string)
    writer.values(message.producer_id_filters, writer.int64)
    if version >= 1:
        writer.int64(message.duration_filter)
    if version >= 2:
        writer.optional_string(message.transactional_id_pattern)
    writer.no_tags()


def read_transaction_state(reader: Reader, version: int) -> TransactionState:
    message = TransactionState(reader.string(), reader.int64(), reader.string())
    reader.skip_tags()
    return message


def write_transaction_state(writer: Writer, message: TransactionState, version: int) -> None:
    writer.string(message.transactional_id)
    writer.int64(message.producer_id)
    writer.string(message.transaction_state)
    writer.no_tags()


def read_list_transactions_response(reader: Reader, version: int) -> ListTransactionsResponse:
    message = ListTransactionsResponse(
        reader.int32(),
        reader.int16(),
        reader.values(reader.string, 1),
        reader.array(read_transaction_state, version, 11),
    )
    reader.skip_tags()
    return message


def write_list_transactions_response(
    writer: Writer, message: ListTransactionsResponse, version: int
) -> None:
    writer.int32(message.throttle_time_ms)
    writer.int16(message.error_code)
    writer.values(message.unknown_state_filters, writer.string)
    writer.array(message.transaction_states, write_transaction_state, version)
    writer.no_tags()


LIST_TRANSACTIONS = Api(
    66,
    "ListTransactions",
    message_of_fields(
        "ListTransactionsRequest", (0, 2), 0, read_list_transactions_request,
        write_list_transactions_request, bounded=True,
    ),
    message_of_fields(
        "ListTransactionsResponse", (0, 2), 0, read_list_transactions_response,
        write_list_transactions_response,
    ),
)
