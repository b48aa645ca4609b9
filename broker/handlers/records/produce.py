"""Produce 3-13 (advertised from 0, see ApiVersions).

Version notes: v3 is the first with magic 2 batches, the only ones that Kafka 4 takes. v7 is the
first that may have zstd; v9 is flexible; v13 names topics by id. Versions 10-12 changed nothing for
idempotent producers. v11 has the error TRANSACTION_ABORTABLE. From v12 on writing to a partition
makes it part of the transaction (KIP-890). A request with acks=1 is acknowledged like acks=all,
once the batch is durable. One with acks=0 gets no response; an error closes the connection, for
there is no other way to report it.

Phase one (everything here) runs before the next request of the connection is handled, so batches
are appended in request order; the response leaves when the commit group is durable. A request
waits, and its connection with it, in three cases: an inspection of its batches would block the
loop, the previous transaction is still ending, or the transaction's coordinator is another broker.

For a partition that another broker leads the response names that broker, from version 10 on.
The permission to write is checked at the moment of the append, however long the request has waited.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from barnabas.broker.api import waits
from barnabas.broker.api.checks import TOPIC, TRANSACTIONAL_ID, WRITE
from barnabas.broker.api.dispatch import CloseConnection, RequestContext, serves
from barnabas.broker.api.driver import Run
from barnabas.broker.api.inspector import Inspector
from barnabas.broker.api.waiting import PendingProduce, without_refused
from barnabas.broker.cluster.coordinating.remote_coordinators import Answer, RemoteCoordinators
from barnabas.broker.cluster.serving.brokers import Brokers
from barnabas.broker.cluster.serving.refused_produce import is_held_back, note_batch
from barnabas.broker.coordination.transactions import Transactions
from barnabas.broker.coordination.verification import (
    ADDS_SINCE,
    NOTHING_REFUSED,
    Batches,
    Verification,
    Writer,
    is_idempotent,
    is_transactional,
    verify,
)
from barnabas.broker.handlers.records.produce_shortcut import ProduceShortcut
from barnabas.broker.handlers.records.produce_slices import (
    ProduceAnswer,
    has_many,
    in_slices,
    own_records,
)
from barnabas.broker.handlers.records.record_errors import (
    RECORD_ERRORS_SINCE,
    BadBatch,
    named,
    refused_by_log,
)
from barnabas.broker.metadata.catalogue import Catalogue
from barnabas.broker.metadata.topic import Partition, Topic
from barnabas.broker.runtime import failpoints
from barnabas.broker.runtime.host import Host
from barnabas.coordinator.transactions.state import CLASSIC, TRANSACTIONS_V2
from barnabas.protocol.compression import ZSTD
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.produce import (
    PRODUCE,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from barnabas.protocol.records import (
    ATTRIBUTES_LOW_BYTE,
    COMPRESSION_MASK,
    HEADER_BYTES,
    read_producer,
    read_record_count,
)
from barnabas.storage.batches.batch_contents import (
    HERE_BYTES,
    Contents,
    Inspection,
    TooMuchToLookHere,
)
from barnabas.storage.batches.batch_encoding import Allowance, Encoding
from barnabas.storage.errors import InvalidRecord, Rejected
from barnabas.storage.journal.appended import Appended
from barnabas.storage.journal.journal import CommitGroup
from barnabas.storage.log.batch_rules import FEW_RECORDS
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.store.log_store import LogStore

Known: TypeAlias = dict[int, Contents]
"""Contents of the batches of a request, by the id of their PartitionProduceData."""
Aside: TypeAlias = list[tuple[PartitionProduceData, Encoding | None]]
"""Batches for the inspector's thread, and the codec that each must be brought into."""

SMALL_BYTES: Final = 16 * 1024
"""Maximum size of uncompressed batches that the logs inspect, in 40 us each."""
ASKED_MS: Final = (1_000, 30_000)
"""Minimum and maximum wait for another coordinator, regardless of the client's timeout."""
TOPIC_IDS_SINCE: Final = 13
ZSTD_SINCE: Final = 7
NAMES_LEADERS_SINCE: Final = 10
NO_OFFSET: Final = -1


def refuse_produce(
    request: ProduceRequest, code: ErrorCode, message: str | None
) -> ProduceResponse:
    """Return one error for every partition of the request."""
    return ProduceResponse(
        [
            TopicProduceResponse(
                topic.name,
                topic.topic_id,
                [_refused(data.index, code, message) for data in topic.partition_data],
            )
            for topic in request.topic_data
        ]
    )


class ProduceHandler:
    """Handles Produce requests; one for the whole broker."""

    def __init__(
        self,
        catalogue: Catalogue,
        transactions: Transactions,
        inspector: Inspector,
        logs: LogStore,
        brokers: Brokers,
        host: Host,
        remote_coordinators: RemoteCoordinators | None,
    ) -> None:
        self.transactions = transactions
        self.remote_coordinators = remote_coordinators
        self.inspector = inspector
        self.host = host
        self._catalogue = catalogue
        self._logs = logs
        self._brokers = brokers

    def __call__(self, context: RequestContext, request: ProduceRequest) -> ProduceAnswer:
        """Append every batch of the request; each partition succeeds or fails alone (P7)."""
        acks = request.acks
        if not -1 <= acks <= 1:
            return refuse_produce(request, ErrorCode.INVALID_REQUIRED_ACKS, None)
        if has_many(request):
            _keep_records(context, request)
            return Run(in_slices(self, context, request))
        contents, aside = self._inspect(context, request)
        if aside:
            if not self.inspector.has_room(_size(request)):
                return refuse_produce(request, ErrorCode.REQUEST_TIMED_OUT, "too many wait already")
            _keep_records(context, request)
            return Run(self._after_inspection(context, request, contents, aside))
        verification = self.verification(context, request)
        if verification.is_pending and self.may_wait(context, request, verification):
            _keep_records(context, request)
            size_bytes = _size(request)
            return Run(self._after_decision(context, request, contents, verification, size_bytes))
        response, newest, bad = self.append_all(
            context, request, verification, contents, stable=context.records_stay
        )
        if acks == 0:
            _disconnect_on_error(response)
            return None
        if bad is not None and self._can_name(bad):
            if not context.records_stay:  # What they point to is used again.
                bad = [each._replace(records=bytes(each.records)) for each in bad]
            return Run(named(self.inspector, response, newest, bad), is_parked=False)
        if newest is None:
            return response
        pending = PendingProduce(response)
        newest.add_answer(pending)
        return pending

    # A request that waits holds its bytes until its batches are appended. It is not completed
    # early: later requests on the connection were sent after it, and must be appended after it
    # (S12). If its client disconnects, none of it is appended.

    async def _after_inspection(
        self, context: RequestContext, request: ProduceRequest, known: Known, aside: Aside
    ) -> ProduceResponse | None:
        """Append after a thread has inspected some batches and converted their codecs."""
        allowance = Allowance()
        inspections = [
            Inspection(data.records, encoding, allowance)
            for data, encoding in aside
            if data.records is not None
        ]
        held_bytes = size_bytes = _size(request)
        found = await waits.Aside(lambda: self.inspector.inspect_all(inspections, held_bytes))
        for (data, _), contents in zip(aside, found, strict=True):
            known[id(data)] = contents
            if contents.encoded is not None:
                size_bytes += len(contents.encoded)
        verification = self.verification(context, request)
        if verification.is_pending and self.may_wait(context, request, verification):
            return await self._after_decision(context, request, known, verification, size_bytes)
        return await self._append_and_wait(context, request, verification, known)

    async def _after_decision(
        self,
        context: RequestContext,
        request: ProduceRequest,
        known: Known,
        verification: Verification,
        size_bytes: int,
    ) -> ProduceResponse | None:
        """Append once the producer's transaction has ended, or another broker has answered."""
        transactions, answer = self.transactions, None
        transactions.held_bytes += size_bytes
        try:
            if verification.question is not None:
                assert self.remote_coordinators is not None
                least_ms, most_ms = ASKED_MS
                wait_ms = min(max(request.timeout_ms, least_ms), most_ms)
                question = verification.question
                answer = await waits.Asked(self.remote_coordinators, question, wait_ms)
            else:
                assert request.transactional_id
                await waits.TransactionEnded(transactions, request.transactional_id)
        finally:
            transactions.held_bytes -= size_bytes
        verification = self.verification(context, request, answer)
        return await self._append_and_wait(context, request, verification, known)

    async def _append_and_wait(
        self,
        context: RequestContext,
        request: ProduceRequest,
        verification: Verification,
        known: Known,
    ) -> ProduceResponse | None:
        """Append; errors known now are in the response, which is durable on return."""
        response, newest, bad = self.append_all(context, request, verification, known, stable=True)
        if request.acks == 0:
            _disconnect_on_error(response)
            return None
        if bad is not None and self._can_name(bad):
            return await named(self.inspector, response, newest, bad)
        refusal = None if newest is None else await waits.Durable(newest)
        return response if refusal is None else without_refused(response, refusal)

    def _inspect(self, context: RequestContext, request: ProduceRequest) -> tuple[Known, Aside]:
        """Inspect batches for the logs; return separately the work that would block the loop.

        The logs inspect small batches of known writers themselves if there are few, in the codec
        of their topic.
        """
        known: Known = {}
        aside: Aside = []
        encodes = self._catalogue.configs.encodes
        always = not context.connection.seen.is_known_writer
        size_bytes = spent = 0
        for topic_data in request.topic_data:
            for data in topic_data.partition_data:
                records = data.records
                if records is None or len(records) < HEADER_BYTES:
                    continue
                size_bytes += len(records)
                compressed = records[ATTRIBUTES_LOW_BYTE] & COMPRESSION_MASK
                is_small = len(records) <= SMALL_BYTES and size_bytes <= HERE_BYTES
                is_for_log = not always or read_record_count(records) <= FEW_RECORDS
                is_simple = is_small and is_for_log and not compressed
                if is_simple and not encodes:
                    continue
                log = self._log(context, topic_data, data.index)
                if log is None or (is_simple and log.rules.encoding is None):
                    continue
                if spent > HERE_BYTES:
                    aside.append((data, log.rules.encoding_of(records)))
                    continue
                try:
                    contents = log.rules.inspect(records, always=always)
                except TooMuchToLookHere:
                    aside.append((data, log.rules.encoding_of(records)))
                    continue
                if contents is not None:
                    known[id(data)] = contents
                    spent += len(records) + contents.expanded_bytes
        return known, aside

    def _log(
        self, context: RequestContext, topic_data: TopicProduceData, index: int
    ) -> PartitionLog | None:
        topic = self._topic(context, topic_data)
        if topic is None or topic.is_internal or not 0 <= index < len(topic.partitions):
            return None
        if not context.access.may_see(TOPIC, topic.name, WRITE):
            return None  # A client without permission to write costs no inspection.
        return topic.partitions[index].log

    def verification(
        self,
        context: RequestContext,
        request: ProduceRequest,
        answer: Answer | None = None,
    ) -> Verification:
        """Verify all transactional batches of existing partitions at once.

        ``answer`` is that of another coordinator; what it admits has to be appended now.

        A client that may not use the transactional id writes nothing at all (CVE-2018-17196: every
        batch is checked), and what it may not write to becomes no part of the transaction.
        """
        if not _names_transactions(request):
            return NOTHING_REFUSED
        access, key = context.access, request.transactional_id
        if key is not None and not access.may(WRITE, TRANSACTIONAL_ID, key):
            return Verification({}, error=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        found: Batches = []
        for topic_data in request.topic_data:
            topic = self._topic(context, topic_data)
            if topic is None or topic.is_internal or not access.may_see(TOPIC, topic.name, WRITE):
                continue
            for data in topic_data.partition_data:
                records = data.records
                known = 0 <= data.index < len(topic.partitions)
                if records is not None and known and is_transactional(records):
                    partition = topic.partitions[data.index]
                    if partition.log is not None:
                        found.append((partition.topic_partition, partition.log, records))
        guards = None if self.remote_coordinators is None else self.remote_coordinators.guards
        writer = Writer(key, context.api_version)
        verification = verify(self.transactions, writer, found, guards, answer)
        if verification.has_added and key:
            self.transactions.used(key, context)
        elif key and ErrorCode.INVALID_PRODUCER_EPOCH in verification.refused.values():
            self.transactions.was_fenced(key, context)
        return verification

    def may_wait(
        self, context: RequestContext, request: ProduceRequest, verification: Verification
    ) -> bool:
        """Return whether a request may wait for pending results.

        For another coordinator any may, for the transaction before it only one that adds: KIP-890
        made that Kafka's, too.
        """
        if verification.question is None and (
            context.api_version < ADDS_SINCE
            or not request.acks
            or not self.host.config.transaction_wait_ms
        ):
            return False
        room = self.host.config.queued_max_request_bytes - self.transactions.held_bytes
        is_alone = not self.transactions.held_bytes
        return is_alone or self.host.config.queued_max_request_bytes < 0 or _size(request) <= room

    def append_all(
        self,
        context: RequestContext,
        request: ProduceRequest,
        verification: Verification,
        known: Known,
        *,
        stable: bool,
    ) -> tuple[ProduceResponse, CommitGroup | None, list[BadBatch] | None]:
        """Append every batch; return the response and the last group to wait for.

        Also returns the batches whose bad records the response is to name, or None.

        ``known``: contents of the batches that were inspected. ``stable``: the batches' memory does
        not change.
        """
        if verification.error:
            return refuse_produce(request, verification.error, None), None, None
        response = ProduceResponse()
        newest: CommitGroup | None = None
        bad: list[BadBatch] | None = None
        for topic_data in request.topic_data:
            results, group, refused = self._produce_topic(
                context, topic_data, verification, known, stable=stable
            )
            if refused is not None:
                bad = refused if bad is None else bad + refused
            response.responses.append(
                TopicProduceResponse(topic_data.name, topic_data.topic_id, results)
            )
            newest = group or newest
        if self._brokers.are_several:
            self._add_endpoints(context, response)
        return response, newest, bad

    def _can_name(self, batches: list[BadBatch]) -> bool:
        """Whether the inspector has room for batches whose bad records are to be named."""
        return self.inspector.has_room(sum(len(each.records) for each in batches))

    def _add_endpoints(self, context: RequestContext, response: ProduceResponse) -> None:
        """Add the endpoints of the leaders that the response names."""
        leaders = [
            result.current_leader.leader_id
            for topic in response.responses
            for result in topic.partition_responses
            if result.current_leader is not None
        ]
        if leaders:
            reachable = self._brokers.reachable_of(context, leaders)
            response.node_endpoints = [NodeEndpoint(*each) for each in reachable]

    def _produce_topic(
        self,
        context: RequestContext,
        topic_data: TopicProduceData,
        verification: Verification,
        known: Known,
        *,
        stable: bool,
    ) -> tuple[list[PartitionProduceResponse], CommitGroup | None, list[BadBatch] | None]:
        """Append the batches for one topic; return as ``append_all`` does, with the results."""
        topic = self._topic(context, topic_data)
        error = self._topic_error(context, topic_data, topic)
        if topic is None or error:
            return [_refused(data.index, error) for data in topic_data.partition_data], None, None
        newest: CommitGroup | None = None
        bad: list[BadBatch] | None = None
        results: list[PartitionProduceResponse] = []
        may_be_zstd = context.api_version >= ZSTD_SINCE
        partitions = topic.partitions
        is_controlled = not context.access.is_open
        transaction_version = TRANSACTIONS_V2 if context.api_version >= ADDS_SINCE else CLASSIC
        for data in topic_data.partition_data:
            index = data.index
            if not 0 <= index < len(partitions):
                results.append(_refused(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
                continue
            log = partitions[index].log
            if log is None:
                results.append(self._without_log(context, partitions[index], data.records))
                continue
            if partitions[index].refused is not None and is_held_back(
                partitions[index], log, data.records, self.host.clock.monotonic()
            ):
                log.counts.refused += 1
                results.append(_refused(index, ErrorCode.NOT_LEADER_OR_FOLLOWER))
                continue
            if not may_be_zstd and _is_zstd(data.records):
                results.append(_refused(index, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE))
                continue
            if verification.refused or is_controlled:
                code = self._producer_error(partitions[index], data.records, verification, context)
                if code:
                    log.counts.refused += 1
                    results.append(_refused(index, code))
                    continue
            try:
                appended = _append(
                    log, data, transaction_version, known.get(id(data)), stable=stable
                )
            except TooMuchToLookHere:  # The topic's rules have changed while the request waited.
                results.append(_refused(index, ErrorCode.REQUEST_TIMED_OUT))
                continue
            except Rejected as refused:
                log.counts.refused += 1
                results.append(refused_by_log(log, index, refused))
                if refused.rule is not None and context.api_version >= RECORD_ERRORS_SINCE:
                    assert data.records is not None
                    bad = bad or []
                    bad.append(BadBatch(results[-1], data.records, refused.rule, refused.keyless))
                continue
            if failpoints.ARMED is not None and is_transactional(data.records):
                failpoints.ARMED.reached("Data", self._logs.journal)
            results.append(
                PartitionProduceResponse(
                    index,
                    0,
                    appended.base_offset,
                    appended.log_append_time_ms,
                    appended.log_start_offset,
                )
            )
            newest = appended.group or newest
        return results, newest, bad

    def _without_log(
        self, context: RequestContext, partition: Partition, records: memoryview | None
    ) -> PartitionProduceResponse:
        if partition.is_coming:
            note_batch(partition, records, self.host.clock.monotonic())
        result = _refused(partition.index, partition.error_without_log)
        if partition.is_unreadable:
            return result
        if context.api_version >= NAMES_LEADERS_SINCE:
            leader = self._brokers.view.leader_of(partition.partition_id)
            result.current_leader = LeaderIdAndEpoch(leader.node_id, leader.epoch)
        return result

    def _producer_error(
        self,
        partition: Partition,
        records: memoryview | None,
        verification: Verification,
        context: RequestContext,
    ) -> ErrorCode:
        """Return the error of a batch whose producer may not write it, or NONE."""
        if is_transactional(records):
            return verification.refused.get(partition.topic_partition, ErrorCode.NONE)
        if records is not None and not context.access.is_open and is_idempotent(records):
            producer_id = read_producer(records)[0]
            code = self.transactions.refusal_outside(producer_id)
            if not code and self.remote_coordinators is not None and partition.log is not None:
                code = self.remote_coordinators.refusal_outside(partition.log, producer_id)
            return code
        return ErrorCode.NONE

    def _topic_error(
        self, context: RequestContext, topic_data: TopicProduceData, topic: Topic | None
    ) -> ErrorCode:
        """Return the error of a write to a topic; without permission it hides the topic."""
        by_id = context.api_version >= TOPIC_IDS_SINCE
        if topic is None and by_id:
            return ErrorCode.UNKNOWN_TOPIC_ID
        name = topic_data.name if topic is None else topic.name
        if not context.access.may(WRITE, TOPIC, name):
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        if topic is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return ErrorCode.INVALID_TOPIC_EXCEPTION if topic.is_internal else ErrorCode.NONE

    def _topic(self, context: RequestContext, topic_data: TopicProduceData) -> Topic | None:
        if context.api_version >= TOPIC_IDS_SINCE:
            return self._catalogue.topic_by_id(topic_data.topic_id)
        return self._catalogue.topic(topic_data.name)


def _keep_records(context: RequestContext, request: ProduceRequest) -> None:
    """Copy the batches of a request that waits, unless their memory stays as it is."""
    if not context.records_stay:
        own_records(request)


def _names_transactions(request: ProduceRequest) -> bool:
    """Return whether any batch of the request is transactional."""
    for topic in request.topic_data:
        for data in topic.partition_data:
            if is_transactional(data.records):
                return True
    return False


def _size(request: ProduceRequest) -> int:
    """Return the number of bytes of records in a request."""
    return sum(
        len(data.records)
        for topic in request.topic_data
        for data in topic.partition_data
        if data.records is not None
    )


def _is_zstd(records: memoryview | None) -> bool:
    """Return whether a batch has a codec that old versions do not support."""
    return (
        records is not None
        and len(records) > ATTRIBUTES_LOW_BYTE
        and records[ATTRIBUTES_LOW_BYTE] & COMPRESSION_MASK == ZSTD
    )


def _append(
    log: PartitionLog,
    data: PartitionProduceData,
    transaction_version: int,
    contents: Contents | None,
    *,
    stable: bool,
) -> Appended:
    records = data.records
    if not records:
        raise InvalidRecord("the partition has no records")
    if contents is not None and contents.encoded is not None:
        records, stable = memoryview(contents.encoded), True
    return log.append(
        records, stable=stable, transaction_version=transaction_version, contents=contents
    )


def _refused(index: int, code: ErrorCode, message: str | None = None) -> PartitionProduceResponse:
    return PartitionProduceResponse(index, code, NO_OFFSET, error_message=message)


def _disconnect_on_error(response: ProduceResponse) -> None:
    """Close the connection on an error of a request with acks=0."""
    for topic in response.responses:
        for result in topic.partition_responses:
            if result.error_code:
                raise CloseConnection(
                    f"acks=0 and error {result.error_code} for partition {result.index}"
                )


serves(PRODUCE, versions=(3, 13), refuse=refuse_produce, shortcut=ProduceShortcut, short=True)(
    ProduceHandler
)
