"""AddOffsetsToTxn: generated from add_offsets_to_txn.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import Api
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import Structure, skip_tags
from barnabas.protocol.writer import Writer


@dataclass(slots=True, init=False, repr=False, eq=False)
class AddOffsetsToTxnRequest(Structure):
    """AddOffsetsToTxn, versions 0-4."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    group_id: str

    def __init__(
        self, transactional_id: str = "", producer_id: int = 0, producer_epoch: int = 0,
        group_id: str = "",
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.group_id = group_id


@dataclass(slots=True, init=False, repr=False, eq=False)
class AddOffsetsToTxnResponse(Structure):
    """AddOffsetsToTxn, versions 0-4."""

    throttle_time_ms: int
    error_code: int

    def __init__(self, throttle_time_ms: int = 0, error_code: int = 0) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code


def read_add_offsets_to_txn_request(reader: Reader, version: int) -> AddOffsetsToTxnRequest:
    message = AddOffsetsToTxnRequest(
        reader.string(),
        reader.int64(),
        reader.int16(),
        reader.string(),
    )
    reader.skip_tags()
    return message


def write_add_offsets_to_txn_request(
    writer: Writer, message: AddOffsetsToTxnRequest, version: int
) -> None:
    writer.string(message.transactional_id)
    writer.int64(message.producer_id)
    writer.int16(message.producer_epoch)
    writer.string(message.group_id)
    writer.no_tags()


def read_add_offsets_to_txn_response(reader: Reader, version: int) -> AddOffsetsToTxnResponse:
    message = AddOffsetsToTxnResponse(reader.int32(), reader.int16())
    reader.skip_tags()
    return message


def write_add_offsets_to_txn_response(
    writer: Writer, message: AddOffsetsToTxnResponse, version: int
) -> None:
    writer.int32(message.throttle_time_ms)
    writer.int16(message.error_code)
    writer.no_tags()


ADD_OFFSETS_TO_TXN = Api(
    25,
    "AddOffsetsToTxn",
    message_of_fields(
        "AddOffsetsToTxnRequest", (0, 4), 3, read_add_offsets_to_txn_request,
        write_add_offsets_to_txn_request, bounded=True,
    ),
    message_of_fields(
        "AddOffsetsToTxnResponse", (0, 4), 3, read_add_offsets_to_txn_response,
        write_add_offsets_to_txn_response,
    ),
)
