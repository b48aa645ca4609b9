"""A client that commits offsets in transactions, by raw requests in any version."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.add_offsets_to_txn import ADD_OFFSETS_TO_TXN, AddOffsetsToTxnRequest
from barnabas.protocol.messages.end_txn import END_TXN, EndTxnRequest, EndTxnResponse
from barnabas.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from barnabas.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from barnabas.protocol.messages.join_group import (
    JOIN_GROUP,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
)
from barnabas.protocol.messages.offset_commit import (
    OFFSET_COMMIT,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.protocol.messages.offset_delete import (
    OFFSET_DELETE,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from barnabas.protocol.messages.offset_fetch import (
    OFFSET_FETCH,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from barnabas.protocol.messages.sync_group import SYNC_GROUP, SyncGroupRequest
from barnabas.protocol.messages.txn_offset_commit import (
    TXN_OFFSET_COMMIT,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from barnabas.storage.runtime.clock import monotonic, sleep
from tests.counterparts.wire_client import WireClient

PATIENCE_SECONDS = 60
CLASSIC, IMPLICIT = 4, 5
"""Version of TxnOffsetCommit: the client adds the group to its transaction, or the commit does."""
UNSTABLE = "unstable"
BUSY = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
}

Places = Mapping[tuple[str, int], int]
"""Offsets by topic and partition."""


class Producer(NamedTuple):
    """The current producer id and epoch of a transactional id."""

    transactional_id: str
    producer_id: int
    epoch: int

    def bumped(self, by: int = 1) -> Producer:
        """The same with another epoch."""
        return self._replace(epoch=self.epoch + by)


class OffsetsClient(WireClient):
    """Asks about offsets and transactions in few words."""

    def patiently(self, ask: Callable[[], Any], code_of: Callable[[Any], int]) -> Any:
        """Repeat a request until the coordinator is available and no transition is in flight."""
        deadline = monotonic() + PATIENCE_SECONDS
        while code_of(answer := ask()) in BUSY:
            assert monotonic() < deadline, answer
            sleep(0.02)
        return answer

    def find(self, key: str, key_type: int) -> None:
        """Send FindCoordinator until the coordinator's topic exists."""
        request = FindCoordinatorRequest(key, key_type)
        self.patiently(
            lambda: self.ask(FIND_COORDINATOR, request, 3), lambda answer: answer.error_code
        )

    # -------------------------------------------------------------------------------- transactions

    def begin_life(self, transactional_id: str, timeout_ms: int = 600_000) -> Producer:
        """Return the current producer of the id: the one before it is fenced."""
        request = InitProducerIdRequest(transactional_id, timeout_ms)
        answer = self.patiently(
            lambda: self.ask(INIT_PRODUCER_ID, request, 4), lambda answer: answer.error_code
        )
        assert answer.error_code == ErrorCode.NONE
        return Producer(transactional_id, answer.producer_id, answer.producer_epoch)

    def add_offsets(self, producer: Producer, group: str, version: int = 3) -> int:
        """Add the group's offsets to the transaction (protocol v1)."""
        request = AddOffsetsToTxnRequest(*producer, group)
        return int(self.ask(ADD_OFFSETS_TO_TXN, request, version).error_code)

    def end(self, producer: Producer, version: int, *, commit: bool) -> EndTxnResponse:
        """Decide the transaction, once."""
        return self.ask(END_TXN, EndTxnRequest(*producer, commit), version)

    def ended(self, producer: Producer, version: int, *, commit: bool) -> Producer:
        """Decide the transaction for sure; the producer of the next one."""
        answer = self.patiently(
            lambda: self.end(producer, version, commit=commit), lambda answer: answer.error_code
        )
        assert answer.error_code == ErrorCode.NONE, answer
        if version < IMPLICIT:
            return producer
        return producer._replace(producer_id=answer.producer_id, epoch=answer.producer_epoch)

    def commit(
        self,
        producer: Producer,
        group: str,
        places: Places,
        version: int = IMPLICIT,
        metadata: str | None = "m",
        **more: Any,
    ) -> dict[tuple[str, int], int]:
        """Commit in the transaction, once; the error for each partition."""
        request = TxnOffsetCommitRequest(producer[0], group, *producer[1:], **more)
        for (topic, index), offset in places.items():
            partition = TxnOffsetCommitRequestPartition(index, offset, 4, metadata)
            request.topics.append(TxnOffsetCommitRequestTopic(topic, [partition]))
        answer = self.ask(TXN_OFFSET_COMMIT, request, version)
        return {
            (topic.name, each.partition_index): each.error_code
            for topic in answer.topics
            for each in topic.partitions
        }

    def committed(
        self, producer: Producer, group: str, places: Places, version: int = IMPLICIT, **more: Any
    ) -> None:
        """Commit in the transaction for sure."""
        if version < IMPLICIT:
            code = self.patiently(lambda: self.add_offsets(producer, group), int)
            assert code == ErrorCode.NONE
        codes = self.patiently(
            lambda: self.commit(producer, group, places, version, **more),
            lambda codes: max(codes.values()),
        )
        assert set(codes.values()) == {ErrorCode.NONE}, codes

    # ------------------------------------------------------------------------------------- offsets

    def commit_plainly(self, group: str, places: Places, **more: Any) -> set[int]:
        """Commit outside of any transaction; the errors."""
        topics = [
            OffsetCommitRequestTopic(
                topic, partitions=[OffsetCommitRequestPartition(index, offset, 4, "p")]
            )
            for (topic, index), offset in places.items()
        ]
        answer = self.ask(OFFSET_COMMIT, OffsetCommitRequest(group, topics=topics, **more), 9)
        return {each.error_code for topic in answer.topics for each in topic.partitions}

    def fetch(
        self,
        group: str,
        wanted: Mapping[str, list[int]] | None = None,
        *,
        stable: bool = True,
        version: int = 9,
    ) -> dict[tuple[str, int], int | str]:
        """Return the group's offsets, UNSTABLE for pending ones; all if ``wanted`` is None."""
        topics = None
        if wanted is not None:
            topics = [
                OffsetFetchRequestTopics(name, partition_indexes=indexes)
                for name, indexes in wanted.items()
            ]
        request = OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group, topics=topics)], require_stable=stable
        )
        answer = self.patiently(
            lambda: self.ask(OFFSET_FETCH, request, version).groups[0],
            lambda answer: answer.error_code,
        )
        assert answer.error_code == ErrorCode.NONE
        return {
            (topic.name, each.partition_index): _found(each)
            for topic in answer.topics
            for each in topic.partitions
        }

    def delete(self, group: str, *places: tuple[str, int]) -> int:
        """Delete offsets; the first error."""
        topics = [
            OffsetDeleteRequestTopic(name, [OffsetDeleteRequestPartition(index)])
            for name, index in places
        ]
        answer = self.ask(OFFSET_DELETE, OffsetDeleteRequest(group, topics), 0)
        codes = [each.error_code for topic in answer.topics for each in topic.partitions]
        return int(answer.error_code or max(codes, default=0))

    # ------------------------------------------------------------------------------------- members

    def join(self, group: str, member_id: str = "", *, sync: bool = True, **more: Any) -> Any:
        """Join a classic group, which has no other members, and lead it; the answer to the join."""
        protocols = [JoinGroupRequestProtocol("range", b"")]
        # Long enough for all requests about a member that has yet to sync.
        request = JoinGroupRequest(group, 300_000, 300_000, member_id, None, "consumer", protocols)
        for field, value in more.items():
            setattr(request, field, value)
        answer = self.patiently(
            lambda: self.ask(JOIN_GROUP, request, 9), lambda answer: answer.error_code
        )
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            return self.join(group, answer.member_id, sync=sync, **more)
        assert answer.error_code == ErrorCode.NONE, answer
        if sync:
            request = SyncGroupRequest(
                group,
                answer.generation_id,
                answer.member_id,
                more.get("group_instance_id"),
                "consumer",
                "range",
            )
            assert self.ask(SYNC_GROUP, request, 5).error_code == ErrorCode.NONE
        return answer


def _found(each: Any) -> int | str:
    if each.error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT:
        assert (each.committed_offset, each.committed_leader_epoch, each.metadata) == (-1, -1, "")
        return UNSTABLE
    assert each.error_code == ErrorCode.NONE
    return int(each.committed_offset)
