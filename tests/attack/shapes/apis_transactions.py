"""Rows of APIs of transactions."""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.protocol.messages.add_offsets_to_txn import ADD_OFFSETS_TO_TXN, AddOffsetsToTxnRequest
from barnabas.protocol.messages.add_partitions_to_txn import (
    ADD_PARTITIONS_TO_TXN,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from barnabas.protocol.messages.describe_transactions import DescribeTransactionsRequest
from barnabas.protocol.messages.end_txn import END_TXN, EndTxnRequest
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.protocol.messages.list_transactions import ListTransactionsRequest
from barnabas.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.attack.peer import frame
from tests.attack.scenarios.arrays import VICTIM
from tests.attack.shapes.apis_groups import regexes
from tests.attack.shapes.building import (
    NAMES_MOST,
    TEXT_BYTES,
    Message,
    Row,
    arrays,
    one,
    unread,
)
from tests.attack.shapes.shape import Shape
from tests.attack.shapes.world import SESSION_MS, TRANSACTION, WIDE, WIDE_PARTITIONS, World

CLASSIC_ADD, CLASSIC_END = 3, 4


def _add(world: World) -> AddPartitionsToTxnRequest:
    """Return a request for partitions that are in the transaction already."""
    producer_id, producer_epoch = world.producer
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=TRANSACTION,
        v3_and_below_producer_id=producer_id,
        v3_and_below_producer_epoch=producer_epoch,
        v3_and_below_topics=[AddPartitionsToTxnTopic(WIDE, list(range(WIDE_PARTITIONS)))] * 3,
    )


def _add_again(world: World) -> Iterable[bytes]:
    yield frame(ADD_PARTITIONS_TO_TXN, CLASSIC_ADD, _add(world))


def _init(world: World) -> InitProducerIdRequest:
    return InitProducerIdRequest(f"{VICTIM}-{world.token()}".ljust(TEXT_BYTES, "x"), SESSION_MS)


def _add_offsets(world: World) -> Iterable[bytes]:
    request = AddOffsetsToTxnRequest(TRANSACTION, *world.producer, "group".ljust(TEXT_BYTES, "x"))
    yield frame(ADD_OFFSETS_TO_TXN, 3, request)


def _end(world: World) -> Iterable[bytes]:
    request = EndTxnRequest(f"{VICTIM}-{world.token()}".ljust(TEXT_BYTES, "x"), *world.producer)
    yield frame(END_TXN, CLASSIC_END, request)


def _commit(world: World) -> TxnOffsetCommitRequest:
    partitions = [
        TxnOffsetCommitRequestPartition(index, 5, -1, "x" * 1000)
        for index in range(WIDE_PARTITIONS)
    ]
    return TxnOffsetCommitRequest(
        TRANSACTION,
        "group-of-transaction",
        *world.producer,
        topics=[TxnOffsetCommitRequestTopic(WIDE, partitions)],
    )


def _describe(_world: World) -> DescribeTransactionsRequest:
    return DescribeTransactionsRequest([TRANSACTION] * NAMES_MOST)


def _describe_one(_world: World) -> DescribeTransactionsRequest:
    return DescribeTransactionsRequest([TRANSACTION])


def _lists() -> list[Shape]:
    def by_regex(regex: str) -> Message:
        return lambda world: ListTransactionsRequest([], [], -1, f"{world.token()}{regex}")

    return [
        one(f"a regular expression of {name}", "ListTransactions", by_regex(regex))
        for name, regex in regexes().items()
    ]


TRANSACTIONS: dict[str, Row] = {
    "InitProducerId": [one("a long transactional id", "InitProducerId", _init)],
    "AddPartitionsToTxn": [
        Shape("10,000 partitions, three times", _add_again),
        *arrays("AddPartitionsToTxn"),
    ],
    "AddOffsetsToTxn": [Shape("a long group id", _add_offsets)],
    "TxnOffsetCommit": [
        one("10,000 partitions with metadata", "TxnOffsetCommit", _commit, 3),
        *arrays("TxnOffsetCommit"),
    ],
    "EndTxn": [Shape("a long transactional id", _end)],
    "WriteTxnMarkers": arrays("WriteTxnMarkers"),
    "DescribeTransactions": [
        one("10,000 partitions, 10,000 times", "DescribeTransactions", _describe),
        unread("the same 50 times, unread", "DescribeTransactions", _describe, 50),
        unread(
            "10,000 partitions 2,000 times, unread", "DescribeTransactions", _describe_one, 2_000
        ),
        *arrays("DescribeTransactions"),
    ],
    "ListTransactions": [*_lists(), *arrays("ListTransactions")],
}
