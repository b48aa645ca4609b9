"""One transactional producer, for both versions of the transaction protocol.

With v1 (Apache Kafka 2.5 and later), the producer adds partitions to a transaction before it sends
their data. With v2 (KIP-890, `transaction.version` 2), Produce adds them, and each transaction has
its own epoch, which the response to EndTxn carries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from barnabas.broker.client.brokers import GROUP, TRANSACTION
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.add_offsets_to_txn import ADD_OFFSETS_TO_TXN, AddOffsetsToTxnRequest
from barnabas.protocol.messages.add_partitions_to_txn import (
    ADD_PARTITIONS_TO_TXN,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from barnabas.protocol.messages.txn_offset_commit import (
    TXN_OFFSET_COMMIT,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from barnabas.spark_connector.cluster.cluster import Cluster, TopicPartition
from barnabas.spark_connector.cluster.requests import (
    NO_IDENTITY,
    TRANSACTIONS_V2,
    Identity,
    end_all,
    initialize,
    refused,
)
from barnabas.spark_connector.cluster.sender import Sender
from barnabas.spark_connector.errors import BrokerUnreachable, Fenced, InDoubt
from barnabas.spark_connector.rows.encoded import EncodedBatch

__all__ = ["Identity", "TopicPartition", "TransactionalProducer"]

_ADD_CLASSIC = 3
"""The last version of AddPartitionsToTxn that is for clients."""
_OFFSETS_CLASSIC = 4
_OFFSETS_V2 = 5


class TransactionalProducer:
    """A producer with a transactional ID: ``begin`` once, then one transaction after another.

    If another call than ``commit`` raises SinkError, call ``abort``, or wait for the timeout.
    """

    def __init__(self, cluster: Cluster, transactional_id: str, timeout_ms: int) -> None:
        self._cluster = cluster
        self._id = transactional_id
        self._timeout_ms = timeout_ms
        self._is_v2 = False
        self._sender: Sender | None = None
        self._offset_groups: set[str] = set()
        self._is_open = False
        self.identity = NO_IDENTITY

    @property
    def is_open(self) -> bool:
        """Whether a transaction may be open on the broker."""
        return self._is_open

    def begin(self) -> Identity:
        """Fence the previous producer of this ID; return when its transaction has ended."""
        self._is_v2 = self._cluster.transaction_version() >= TRANSACTIONS_V2
        self.identity = initialize(self._cluster, self._id, self._timeout_ms)
        self._start_sender()
        self._is_open = False
        self._offset_groups.clear()
        return self.identity

    def renew(self) -> bool:
        """Start again as the same producer, between transactions; raises Fenced if it was replaced.

        Return false if the broker had forgotten the ID: another producer may have had it since.
        """
        before = self.identity
        self.identity = initialize(self._cluster, self._id, self._timeout_ms, before)
        self._start_sender()
        return self.identity.producer_id == before.producer_id

    def still_owns(self) -> bool:
        """Return whether this is still the producer of the ID; valid between transactions only."""
        try:
            return self.renew()
        except Fenced:
            return False

    def _start_sender(self) -> None:
        if self._sender is not None:
            self._sender.settle()
        add = None if self._is_v2 else self._add_partitions
        self._sender = Sender(self._cluster, self._id, self.identity, add)

    @property
    def _sending(self) -> Sender:
        assert self._sender is not None, "begin() comes first"
        return self._sender

    def write(self, batches: Iterable[EncodedBatch]) -> int:
        """Send batches as they arrive; return the number of their records."""
        sender = self._sending
        count = 0
        for batch in batches:
            self._is_open = True
            sender.send(batch)
            count += batch.record_count
        return count

    def flush(self) -> None:
        """Return when all records are acknowledged."""
        self._sending.flush()

    # ------------------------------------------------------------------------------------ offsets

    def commit_offsets(self, group_id: str, offsets: Mapping[tuple[str, int], int]) -> None:
        """Make the offsets of a consumer group part of the transaction.

        Omit topics that this cluster does not have: a source can be in another cluster.
        """
        waiting = self._known(offsets)
        if not waiting:
            return
        self._is_open = True
        if not self._is_v2:
            self._add_group(group_id)
        deadline = self._cluster.deadline()
        while waiting := self._known(self._commit_offsets(group_id, waiting)):
            if deadline.is_over:
                what = f"Committing the offsets of the group {group_id}"
                raise self._cluster.gave_up(what, deadline, f"{len(waiting)} unknown partitions")
            deadline.pause()

    def _known(self, offsets: Mapping[tuple[str, int], int]) -> dict[tuple[str, int], int]:
        counts = self._cluster.existing(topic for topic, _ in offsets)
        return {
            topic_partition: offset
            for topic_partition, offset in offsets.items()
            if topic_partition[1] < counts.get(topic_partition[0], 0)
        }

    def _add_group(self, group_id: str) -> None:
        if group_id in self._offset_groups:
            return
        what = f"Adding the group {group_id} to the transaction {self._id}"
        answer = self._cluster.ask(
            what,
            self._cluster.coordinator_of(TRANSACTION, self._id),
            ADD_OFFSETS_TO_TXN,
            AddOffsetsToTxnRequest(self._id, *self.identity, group_id),
            error_of=lambda response: response.error_code,
        )
        if answer.error_code:
            raise refused(what, answer.error_code)
        self._offset_groups.add(group_id)

    def _commit_offsets(
        self, group_id: str, offsets: Mapping[tuple[str, int], int]
    ) -> dict[tuple[str, int], int]:
        """Send the offsets; return those whose topics the coordinator did not know."""
        topics: dict[str, list[TxnOffsetCommitRequestPartition]] = {}
        for (topic, partition), offset in offsets.items():
            each = TxnOffsetCommitRequestPartition(partition, offset)
            topics.setdefault(topic, []).append(each)
        what = f"Committing the offsets of the group {group_id} in the transaction {self._id}"
        answer = self._cluster.ask(
            what,
            self._cluster.coordinator_of(GROUP, group_id),
            TXN_OFFSET_COMMIT,
            TxnOffsetCommitRequest(
                self._id,
                group_id,
                *self.identity,
                topics=[TxnOffsetCommitRequestTopic(*each) for each in topics.items()],
            ),
            error_of=_first_offset_error,
            at_most=_OFFSETS_V2 if self._is_v2 else _OFFSETS_CLASSIC,
        )
        code = _first_offset_error(answer)
        if code:
            raise refused(what, code)
        return {
            (topic.name, each.partition_index): offsets[topic.name, each.partition_index]
            for topic in answer.topics
            for each in topic.partitions
            if each.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        }

    # ------------------------------------------------------------------------------------- the end

    def commit(self) -> None:
        """Flush, then commit. Raises InDoubt if the broker did not respond to EndTxn."""
        self.flush()
        if not self._is_open:
            return
        try:
            self._end(commit=True)
        except BrokerUnreachable as error:
            raise InDoubt(
                f"Whether the transaction {self._id} was committed is not known ({error}); nothing "
                "is lost or doubled, the next start of the query finds out."
            ) from None

    def abort(self) -> None:
        """Abort the transaction; the next call must be ``begin``.

        Undelivered batches leave a gap in the sequence numbers, and only a new epoch closes it.
        """
        sender, self._sender = self._sender, None
        if sender is not None:
            sender.settle()
        if self._is_open:
            self._end(commit=False)

    def _end(self, *, commit: bool) -> None:
        answer = end_all(self._cluster, {self._id: self.identity}, commit=commit)[self._id]
        if answer.error_code:
            verb = "Committing" if commit else "Aborting"
            raise refused(f"{verb} the transaction {self._id}", answer.error_code)
        if self._is_v2:
            self.identity = Identity(answer.producer_id, answer.producer_epoch)
        self._is_open = False
        self._offset_groups.clear()
        if self._sender is not None:
            self._sender.begin_next(self.identity)

    def _add_partitions(self, topic_partitions: list[TopicPartition]) -> None:
        """Add partitions before their data (transaction protocol v1)."""
        topics: dict[str, list[int]] = {}
        for topic, partition in topic_partitions:
            topics.setdefault(topic, []).append(partition)
        what = f"Adding partitions to the transaction {self._id}"
        answer = self._cluster.ask(
            what,
            self._cluster.coordinator_of(TRANSACTION, self._id),
            ADD_PARTITIONS_TO_TXN,
            AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self._id,
                v3_and_below_producer_id=self.identity.producer_id,
                v3_and_below_producer_epoch=self.identity.epoch,
                v3_and_below_topics=[AddPartitionsToTxnTopic(*each) for each in topics.items()],
            ),
            error_of=_first_partition_error,
            at_most=_ADD_CLASSIC,
        )
        code = _first_partition_error(answer)
        if code:
            raise refused(what, code)


def _first_partition_error(response: AddPartitionsToTxnResponse) -> int:
    """Return the first error other than OPERATION_NOT_ATTEMPTED, which follows from another one."""
    codes = {
        each.partition_error_code
        for topic in response.results_by_topic_v3_and_below
        for each in topic.results_by_partition
    } - {ErrorCode.NONE}
    return min(codes - {ErrorCode.OPERATION_NOT_ATTEMPTED} or codes or {ErrorCode.NONE})


def _first_offset_error(response: TxnOffsetCommitResponse) -> int:
    """Return the first error other than UNKNOWN_TOPIC_OR_PARTITION."""
    codes = {each.error_code for topic in response.topics for each in topic.partitions}
    return max(codes - {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NONE} or {ErrorCode.NONE})
