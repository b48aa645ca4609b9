"""A transactional producer on raw requests, with transaction protocol v1 and v2, and the queries
about its state.

Every request returns its error code, or raises OSError where the broker died of it. What the
producer has to present next survives a broken connection, as in a real client.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from barnabas.coordinator.transactions.state import CLASSIC, TRANSACTIONS_V2
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.add_offsets_to_txn import ADD_OFFSETS_TO_TXN, AddOffsetsToTxnRequest
from barnabas.protocol.messages.add_partitions_to_txn import ADD_PARTITIONS_TO_TXN
from barnabas.protocol.messages.describe_producers import DESCRIBE_PRODUCERS, ProducerState
from barnabas.protocol.messages.end_txn import END_TXN, EndTxnRequest
from barnabas.protocol.messages.fetch import FETCH, FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from barnabas.protocol.messages.list_groups import LIST_GROUPS, ListGroupsRequest
from barnabas.protocol.messages.list_transactions import LIST_TRANSACTIONS, ListTransactionsRequest
from barnabas.protocol.messages.metadata import METADATA, MetadataRequest
from barnabas.protocol.messages.offset_fetch import OFFSET_FETCH
from barnabas.protocol.messages.produce import PRODUCE
from barnabas.protocol.messages.txn_offset_commit import TXN_OFFSET_COMMIT
from barnabas.protocol.records import Record, encode_batch, iterate_batches
from barnabas.storage.runtime.clock import monotonic, now_ns, sleep
from tests.counterparts.wire_client import WireClient
from tests.history.logs import Place, TransactionHistory
from tests.requests import (
    add_partitions_request,
    added_codes,
    codes_of,
    commit_in_transaction_request,
    describe_producers_request,
    fetch_offsets_request,
    produce_request,
    produced,
)
from tests.waiting import wait_until

NONE = ErrorCode.NONE
PATIENCE_S = 60
TIMEOUT_MS = 900_000
RETRIABLE = {
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    # Apache Kafka's partitions have no leader at first.
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
}
_PRODUCE = {CLASSIC: 11, TRANSACTIONS_V2: 12}
_END = {CLASSIC: 4, TRANSACTIONS_V2: 5}
_OFFSETS = {CLASSIC: 3, TRANSACTIONS_V2: 5}


def persistent(ask: Callable[[], int]) -> int:
    """Repeat a request as long as a client would; return the last error."""
    deadline = monotonic() + PATIENCE_S
    while (code := ask()) in RETRIABLE and monotonic() < deadline:
        sleep(0.01)
    return code


@dataclass
class Producer:
    """One transactional id as one client knows it."""

    client: WireClient
    key: str
    generation: int = CLASSIC
    timeout_ms: int = TIMEOUT_MS
    producer_id: int = -1
    epoch: int = -1
    sequences: dict[Place, int] = field(default_factory=lambda: defaultdict(int))

    @property
    def identity(self) -> tuple[int, int]:
        return self.producer_id, self.epoch

    def be(self, producer_id: int, epoch: int) -> Producer:
        """Present this id and epoch from now on."""
        self.producer_id, self.epoch = producer_id, epoch
        return self

    def init(self, *, expected: bool = False) -> int:
        """InitProducerId, with what the producer had if ``expected``."""
        request = InitProducerIdRequest(self.key, self.timeout_ms)
        if expected:
            request = InitProducerIdRequest(self.key, self.timeout_ms, *self.identity)
        answer = self.client.ask(INIT_PRODUCER_ID, request, 5)
        if not answer.error_code:
            self._enter(answer.producer_id, answer.producer_epoch)
        return answer.error_code

    def _enter(self, producer_id: int, epoch: int) -> None:
        if (producer_id, epoch) != self.identity:
            self.producer_id, self.epoch = producer_id, epoch
            self.sequences.clear()

    def add(self, *places: Place) -> int:
        """Send AddPartitionsToTxn with transaction protocol v1; with v2 no request is needed."""
        if self.generation == TRANSACTIONS_V2:
            return NONE
        request = add_partitions_request(self.key, self.identity, *places)
        (code,) = set(added_codes(self.client.ask(ADD_PARTITIONS_TO_TXN, request, 3)))
        return code

    def write(self, place: Place, *values: bytes) -> tuple[int, int]:
        """Produce one batch; the error and the base offset. Only a success moves the sequence."""
        now_ms = now_ns() // 1_000_000
        batch = encode_batch(
            [Record(number, now_ms, None, value, ()) for number, value in enumerate(values)],
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=self.sequences[place],
            transactional=True,
        )
        request = produce_request({place: batch}, transactional_id=self.key)
        result = produced(self.client.ask(PRODUCE, request, _PRODUCE[self.generation]))
        if not result.error_code:
            self.sequences[place] += len(values)
        return result.error_code, result.base_offset

    def add_offsets(self, group: str) -> int:
        """Send AddOffsetsToTxn as transaction protocol v1 requires."""
        added = AddOffsetsToTxnRequest(self.key, *self.identity, group)
        code: int = self.client.ask(ADD_OFFSETS_TO_TXN, added, 3).error_code
        return code

    def send_offsets(self, group: str, place: Place, offset: int) -> int:
        """Commit the offset of a group within the transaction."""
        if self.generation == CLASSIC and (code := self.add_offsets(group)):
            return code
        request = commit_in_transaction_request(self.key, group, self.identity, {place: offset})
        (code,) = codes_of(self.client.ask(TXN_OFFSET_COMMIT, request, _OFFSETS[self.generation]))
        return code

    def end(self, *, commit: bool = True) -> int:
        """EndTxn; in the second generation the answer has the next epoch."""
        request = EndTxnRequest(self.key, *self.identity, commit)
        answer = self.client.ask(END_TXN, request, _END[self.generation])
        if not answer.error_code and self.generation == TRANSACTIONS_V2:
            self._enter(answer.producer_id, answer.producer_epoch)
        return answer.error_code

    def begin(self, *places: Place) -> None:
        """Get an epoch and open a transaction with a record on each partition."""
        code = persistent(self.init)
        assert code == NONE, ErrorCode(code)
        self.open(*places)

    def open(self, *places: Place) -> None:
        """Open a transaction with a record on each partition."""
        code = persistent(lambda: self.add(*places))
        assert code == NONE, ErrorCode(code)
        for place in places:
            value = f"{self.key} {self.epoch} {place[1]}".encode()
            code = persistent(lambda place=place, value=value: self.write(place, value)[0])
            assert code == NONE, ErrorCode(code)


# ---------------------------------------------------------------------------------- what is there


def wait_until_loaded(client: WireClient) -> None:
    """Wait until a broker that has just started has loaded its coordinator state.

    The broker reads for a fifth of a second before it serves; it reads the rest beside its first
    requests, and a client that needs that part has to retry.
    """
    for api, request in (
        (LIST_GROUPS, ListGroupsRequest()),
        (LIST_TRANSACTIONS, ListTransactionsRequest()),
    ):
        wait_until(lambda api=api, request=request: client.ask(api, request, 0).error_code == NONE)


def stored(client: WireClient, place: Place) -> list[bytes]:
    """Every batch of a partition, markers included."""
    found: list[bytes] = []
    offset = 0
    while True:
        wanted = FetchTopic(
            place[0], partitions=[FetchPartition(place[1], -1, offset, -1, -1, 8 << 20)]
        )
        answer = client.ask(FETCH, FetchRequest(max_wait_ms=0, topics=[wanted]), 11)
        data = answer.responses[0].partitions[0]
        assert data.error_code == NONE, data
        if not data.records:
            assert offset == data.high_watermark
            return found
        for position, header in iterate_batches(data.records):
            found.append(bytes(data.records[position : position + header.size]))
            offset = header.next_offset


def partition_counts(client: WireClient) -> dict[str, int]:
    answer = client.ask(METADATA, MetadataRequest(None), 9)
    return {topic.name: len(topic.partitions) for topic in answer.topics}


def unchecked_history(client: WireClient) -> TransactionHistory:
    """Everything that all logs say, at one moment: markers of timeouts come at any time."""
    places = [
        (topic, index)
        for topic, count in partition_counts(client).items()
        for index in range(count)
    ]
    while True:
        before = {place: ends(client, place) for place in places}
        found = {place: stored(client, place) for place in places}
        if before == {place: ends(client, place) for place in places}:
            return TransactionHistory(found)


def history(client: WireClient) -> TransactionHistory:
    """Everything that all logs say; nothing may contradict."""
    found = unchecked_history(client)
    found.check()
    return found


def producers(client: WireClient, place: Place) -> dict[int, ProducerState]:
    """Return the states that DescribeProducers reports for one partition, by producer id."""
    request = describe_producers_request(place)
    (partition,) = client.ask(DESCRIBE_PRODUCERS, request, 0).topics[0].partitions
    assert partition.error_code == NONE
    return {each.producer_id: each for each in partition.active_producers}


def ends(client: WireClient, place: Place) -> tuple[int, int]:
    """Last stable offset and high watermark."""
    wanted = FetchTopic(place[0], partitions=[FetchPartition(place[1], -1, 0, -1, -1, 1)])
    answer = client.ask(FETCH, FetchRequest(max_wait_ms=0, topics=[wanted]), 11)
    data: Any = answer.responses[0].partitions[0]
    return data.last_stable_offset, data.high_watermark


def committed_offset(
    client: WireClient, group: str, place: Place, *, wait: bool = True
) -> int | None:
    """The offset that a stable OffsetFetch answers, -1 without one; None while one is pending."""
    request = fetch_offsets_request(group, of=[place], stable=True)
    deadline = monotonic() + PATIENCE_S
    while True:
        (answer,) = client.ask(OFFSET_FETCH, request, 8).groups
        found = answer.topics[0].partitions[0] if answer.topics else None
        code = answer.error_code or (found.error_code if found else NONE)
        is_pending = code == ErrorCode.UNSTABLE_OFFSET_COMMIT
        if (is_pending and not wait) or code == NONE or monotonic() > deadline:
            break
        assert is_pending or code in RETRIABLE, code
        sleep(0.01)
    if is_pending:
        return None
    assert code == NONE
    return found.committed_offset if found else -1
