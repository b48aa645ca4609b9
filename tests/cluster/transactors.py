"""Clients with transactions, of both generations: they write, or consume, transform and produce."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.add_offsets_to_txn import ADD_OFFSETS_TO_TXN, AddOffsetsToTxnRequest
from barnabas.protocol.messages.add_partitions_to_txn import (
    ADD_PARTITIONS_TO_TXN,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from barnabas.protocol.messages.end_txn import END_TXN, EndTxnRequest
from barnabas.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from barnabas.protocol.messages.txn_offset_commit import (
    TXN_OFFSET_COMMIT,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from barnabas.storage.runtime.clock import counter_ns
from tests.broker.data_plane import batch
from tests.broker.raw_producer import ADDS_SINCE, TIMEOUT_MS
from tests.cluster.clients import Abortable, Client, committed_offset, read
from tests.cluster.routing import GROUP, TRANSACTION, Coordinated, Led
from tests.history.model import (
    COMMITTED,
    FAILED,
    MOVED,
    NOT_KNOWN,
    OK,
    SEEK,
    OffsetCommit,
    Operation,
    Read,
    Write,
)
from tests.history.model import TRANSACTION as TRANSACTED

COMMITS = 0.7
"""How many transactions are committed; the others are aborted."""
MOST_INPUTS = 5
"""Records that one transaction makes something of."""


class Transactional(Client):
    """A producer with a transactional id."""

    def __init__(self, name: str, addresses: Any, seed: int, version: int) -> None:
        """``version`` of Produce decides of which generation the transactions are."""
        super().__init__(name, addresses, seed)
        self.version = version
        self.coordinator = Coordinated(TRANSACTION, name)
        self.producer_id = self.epoch = NOT_KNOWN
        self.committed_share = COMMITS
        self.aborted = 0
        """Transactions that it was told to abort."""
        self.writes: list[Write] = []
        self.reads: list[Read] = []
        self.commits: list[OffsetCommit] = []
        self._sequences: dict[Led, int] = {}

    @property
    def is_classic(self) -> bool:
        """Whether it has to add partitions itself."""
        return self.version < ADDS_SINCE

    def once(self) -> None:
        if self.producer_id == NOT_KNOWN:
            request = InitProducerIdRequest(self.name, TIMEOUT_MS)
            answer = self._ask_coordinator(INIT_PRODUCER_ID, request, 4)
            self._use(answer.producer_id, answer.producer_epoch)
        begun_ns = counter_ns()
        self.writes, self.reads, self.commits = [], [], []
        commit = self.random.random() < self.committed_share
        try:
            self.transact()
        except Abortable:
            commit = False
            self.aborted += 1
        if self.writes:
            self._end(begun_ns, commit=commit)

    def transact(self) -> None:
        """Do what one transaction does; with no write there is none."""
        raise NotImplementedError

    def add(self, *places: Led) -> None:
        """Add partitions to the transaction; nothing to do where writing does that."""
        if not self.is_classic:
            return
        topics = {place.topic: [] for place in places}
        for place in places:
            topics[place.topic].append(place.partition)
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(*each) for each in topics.items()],
        )

        def code_of(answer: Any) -> int:
            results = [
                each.partition_error_code
                for topic in answer.results_by_topic_v3_and_below
                for each in topic.results_by_partition
            ]
            # Those that could be added are not when another one could not.
            wrong = [each for each in results if each]
            return next((each for each in wrong if each != _NOT_ATTEMPTED), 0)

        self.asked(
            self.coordinator,
            lambda: self.routing.ask(self.coordinator, ADD_PARTITIONS_TO_TXN, request, 3),
            code_of,
        )

    def write(self, place: Led, value: str, source: str = "") -> None:
        """Write one record in the transaction."""
        sequence = self._sequences.get(place, 0)
        self._sequences[place] = sequence + 1
        records = batch(
            value.encode(),
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=sequence,
            transactional=True,
        )
        self.writes.append(Write(*place, value, source=source))
        offset = self.produce(place, records, self.version, transactional_id=self.name)
        self.writes[-1] = self.writes[-1]._replace(offset=offset)

    def commit_offset(self, group: str, place: Led, offset: int) -> None:
        """Make a group's offset part of the transaction."""
        self.commits.append(OffsetCommit(group, *place, offset))
        if self.is_classic:
            added = AddOffsetsToTxnRequest(self.name, self.producer_id, self.epoch, group)
            self._ask_coordinator(ADD_OFFSETS_TO_TXN, added, 3)
        partition = TxnOffsetCommitRequestPartition(place.partition, offset)
        request = TxnOffsetCommitRequest(
            self.name,
            group,
            self.producer_id,
            self.epoch,
            topics=[TxnOffsetCommitRequestTopic(place.topic, [partition])],
        )
        version = 3 if self.is_classic else 5
        at = Coordinated(GROUP, group)
        self.asked(
            at,
            lambda: self.routing.ask(at, TXN_OFFSET_COMMIT, request, version),
            lambda answer: answer.topics[0].partitions[0].error_code,
        )

    def _end(self, begun_ns: int, *, commit: bool) -> None:
        """Decide the transaction, and note it."""
        asked_ns = counter_ns()
        request = EndTxnRequest(self.name, self.producer_id, self.epoch, commit)
        answer = self._ask_coordinator(END_TXN, request, 3 if self.is_classic else 5)
        if not self.is_classic:
            self._use(answer.producer_id, answer.producer_epoch)
        self.history.append(
            Operation(
                TRANSACTED,
                self.name,
                OK if commit else FAILED,
                begun_ns,
                asked_ns,
                counter_ns(),
                producer=self.name,
                writes=tuple(self.writes),
                reads=tuple(self.reads),
                commits=tuple(self.commits),
            )
        )
        if self.reads and not commit:
            moved = tuple({each.place for each in self.reads})
            self.history.append(Operation(MOVED, self.name, moved=moved, reason=SEEK))

    def _ask_coordinator(self, api: Any, request: Any, version: int) -> Any:
        return self.asked(
            self.coordinator,
            lambda: self.routing.ask(self.coordinator, api, request, version),
            lambda answer: answer.error_code,
        )

    def _use(self, producer_id: int, epoch: int) -> None:
        if (producer_id, epoch) != (self.producer_id, self.epoch):
            self._sequences.clear()
        self.producer_id, self.epoch = producer_id, epoch


_NOT_ATTEMPTED = ErrorCode.OPERATION_NOT_ATTEMPTED


class Transactor(Transactional):
    """Writes to some partitions in each transaction, which it commits or aborts."""

    def __init__(
        self, name: str, addresses: Any, seed: int, version: int, places: Sequence[Led]
    ) -> None:
        super().__init__(name, addresses, seed, version)
        self.places = places

    def transact(self) -> None:
        places = self.random.sample(self.places, self.random.randint(1, len(self.places)))
        self.add(*places)
        for each in places:
            self.write(each, f"{self.name}-{self.done}-{each.partition}")


class Transformer(Transactional):
    """Reads a partition, writes what it makes of it, and commits how far it has come with that."""

    def __init__(
        self, name: str, addresses: Any, seed: int, version: int, source: Led, target: Led
    ) -> None:
        super().__init__(name, addresses, seed, version)
        self.source = source
        self.target = target
        self.group = f"group-{name}"

    def transact(self) -> None:
        position = max(committed_offset(self, self.group, self.source), 0)
        seen, position = read(self, self.source, position, COMMITTED)
        if len(seen) > MOST_INPUTS:
            seen = seen[:MOST_INPUTS]
            position = seen[-1].offset + 1
        self.reads = [
            Read(*self.source, each.offset, (each.value or b"").decode()) for each in seen
        ]
        if not seen:
            return
        self.add(self.target)
        for each in self.reads:
            self.write(self.target, f"{self.name}-{self.done}-of-{each.value}", each.value)
        self.commit_offset(self.group, self.source, position)
