"""Mapping of the refusals of storage to error codes of the protocol."""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode
from barnabas.storage import errors

_CODES: dict[type[errors.Rejected], ErrorCode] = {
    errors.OffsetOutOfRange: ErrorCode.OFFSET_OUT_OF_RANGE,
    errors.RecordTooLarge: ErrorCode.MESSAGE_TOO_LARGE,
    errors.InvalidRecord: ErrorCode.INVALID_RECORD,
    errors.CorruptMessage: ErrorCode.CORRUPT_MESSAGE,
    errors.InvalidTimestamp: ErrorCode.INVALID_TIMESTAMP,
    errors.OutOfOrderSequence: ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    errors.InvalidProducerEpoch: ErrorCode.INVALID_PRODUCER_EPOCH,
    errors.InvalidTransactionState: ErrorCode.INVALID_TXN_STATE,
    errors.TransactionCoordinatorFenced: ErrorCode.TRANSACTION_COORDINATOR_FENCED,
    errors.StorageFull: ErrorCode.KAFKA_STORAGE_ERROR,
    errors.OffsetOffline: ErrorCode.KAFKA_STORAGE_ERROR,
    # It is being deleted or led elsewhere, or the broker stops: clients ask Metadata again.
    errors.LogClosed: ErrorCode.NOT_LEADER_OR_FOLLOWER,
}

_COORDINATOR_CODES: dict[type[errors.Rejected], ErrorCode] = {
    errors.StorageFull: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    errors.LogClosed: ErrorCode.NOT_COORDINATOR,
    # Of a transaction's offsets: it was ended behind the coordinator's back, by an operator.
    errors.InvalidProducerEpoch: ErrorCode.INVALID_PRODUCER_EPOCH,
}


def error_code_of(error: errors.Rejected) -> ErrorCode:
    """Return the error that a client receives for a refusal; every kind has its row."""
    return _CODES[type(error)]


def coordinator_error_of(error: errors.Rejected) -> ErrorCode:
    """Return the error for a client whose coordinator could not write its records."""
    return _COORDINATOR_CODES.get(type(error), ErrorCode.UNKNOWN_SERVER_ERROR)
