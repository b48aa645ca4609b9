"""The common Produce, without decoding it: one topic, one partition, the same bytes as last time.

A producer's requests to one partition differ in their correlation id and records only. So the first
such request of a connection is decoded the ordinary way and its fixed bytes are remembered; later
requests are compared with them. A request that differs, or that may end in an error, takes the
ordinary way (``handlers/records/produce.py``), so there is one place for the rules. Small requests
that arrive together are handled together: one place in the journal, one response to send. The
response is learned as well: the generated encoder writes one, its numbers are replaced.
Versions before 7 are excluded: they may not have zstd, so each batch would have to be checked for
it.

A request that a client may not send is never learned, and the whole shortcut is dropped as soon as
any permission of the client changes (``network/pipeline.py``).

A transactional batch is taken if the log has its transaction as open, and its producer id belonged
to the request's transactional id when the request was learned. Then no coordinator needs to be
queried (``coordination/verification.py``). A transaction's first batch is not among those. Under
access control a batch outside of transactions is taken without a producer, or with the producer id
of the learned request, if that belongs to no transactional id. With other brokers such a batch with
a producer takes the ordinary way: the log decides whether the id belongs to one of their
transactional ids. So does a transactional batch whose coordinator is another broker.

For a client whose software is not a known writer only batches of few records are taken: the records
of larger ones have to be compared with their headers.
"""

from __future__ import annotations

from struct import Struct, error
from typing import TYPE_CHECKING, Any, Final

from barnabas.broker.api.checks import TOPIC, TRANSACTIONAL_ID, WRITE
from barnabas.broker.api.dispatch import DurableAnswer, RequestContext
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.produce import (
    PRODUCE,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from barnabas.protocol.records import (
    ATTRIBUTES_LOW_BYTE,
    HEADER_BYTES,
    NO_PRODUCER_ID,
    PRODUCER_ID_POSITION,
    TRANSACTIONAL_BIT,
    read_record_count,
)
from barnabas.storage.batches.batch_contents import TooMuchToLookHere
from barnabas.storage.errors import Rejected
from barnabas.storage.log.append_run import append_run
from barnabas.storage.log.batch_rules import FEW_RECORDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from barnabas.broker.cluster.coordinating.remote_coordinators import RemoteCoordinators
    from barnabas.broker.coordination.transactions import Transactions
    from barnabas.broker.metadata.catalogue import Catalogue
    from barnabas.broker.metadata.topic import Topic
    from barnabas.protocol.frame import FrameBuffer
    from barnabas.storage.journal.journal import CommitGroup
    from barnabas.storage.journal.refusal import Refusal
    from barnabas.storage.log.partition_log import PartitionLog

FIRST_VERSION: Final = 7
FLEXIBLE_SINCE: Final = 9
TOPIC_IDS_SINCE: Final = 13

RUN_BYTES: Final = 16 * 1024
"""Number of received bytes that are handled together."""
SMALL_BYTES: Final = 4 * 1024
"""Maximum size of requests that are handled together: copying them costs less than inspecting
each."""

_NO_TAGS: Final = b"\0\0\0"
"""End of a flexible request: no tags of the partition, of the topic, of the request."""
_LENGTH_BYTES: Final = 4
_KEY_BYTES: Final = 4
_FIXED_FROM: Final = 8
"""Position in a frame after the correlation id."""
_INDEX_AND_SIZE_BYTES: Final = 4 + 5
_SENTINEL: Final = 0x7EADBEEF
"""Stands for the partition index while a response is learned; the bytes behind it never hold it."""

_integer: Final = Struct(">i").unpack_from
_producer: Final = Struct(">qh").unpack_from
_index_and_size: Final = Struct(">ii").unpack_from
_pack_correlation_id: Final = Struct(">i").pack_into
_result: Final = Struct(">ihq").unpack_from
_pack_result: Final = Struct(">ihqqq").pack_into


class ShortProduce(DurableAnswer):
    """Encoded responses to some requests in a row, which wait until their batches are durable."""

    __slots__ = ("_answers", "_log", "_result_position")

    def __init__(
        self, answers: bytearray, requests: int, log: PartitionLog, result_position: int
    ) -> None:
        """``answers`` are of one length, with the result for ``log`` at one position of each."""
        # Not super().__init__(): no other field of it is used, and this is a hot object.
        self.chunks = self.connection = self.run = self.usage = None
        self.requests = requests
        self._answers = answers
        self._log = log
        self._result_position = result_position

    def prepare(self) -> None:
        """Send the responses once their batches are on disk."""
        if self.connection is not None:
            self.complete_encoded([self._answers])

    def refused(self, _refusal: Refusal) -> None:
        """Respond with an error for batches at or above the log's high watermark."""
        answers = self._answers
        for at in range(self._result_position, len(answers), len(answers) // self.requests):
            index, _, base_offset = _result(answers, at)
            if base_offset >= self._log.high_watermark:
                _pack_result(answers, at, index, ErrorCode.NOT_LEADER_OR_FOLLOWER, -1, -1, -1)
        self.prepare()


class CommonRequest:
    """The bytes that all requests of one producer to one topic share, and the places of the other
    bytes.
    """

    __slots__ = ("_fixed", "_flexible", "_index_position", "_key", "tail")

    def __init__(self, frame: memoryview, version: int, index_position: int) -> None:
        """Learn from a request whose partition index is at ``index_position`` of ``frame``."""
        self._flexible = version >= FLEXIBLE_SINCE
        self._key = bytes(frame[:_KEY_BYTES])
        self._fixed = bytes(frame[_FIXED_FROM:index_position])
        self._index_position = index_position
        self.tail = _NO_TAGS if self._flexible else b""
        """The bytes that must follow the records."""

    @property
    def head_bytes(self) -> int:
        """Number of bytes of a frame that ``locate`` reads."""
        return self._index_position + _INDEX_AND_SIZE_BYTES

    def is_like(self, frame: memoryview, span: tuple[int, int, int]) -> bool:
        """Return whether a complete frame has this shape; ``span`` is the result of ``locate``."""
        try:
            found = self.locate(bytes(frame[: self.head_bytes]), 0, len(frame))
        except (IndexError, error):
            return False
        return found == span and frame[span[2] :] == self.tail

    def locate(self, data: bytes, start: int, end: int) -> tuple[int, int, int] | None:
        """Return a frame's partition index and the start and end of its records, or None if it
        differs.

        The frame is ``data[start:end]``, of which only ``head_bytes`` must be present. Raises
        IndexError or struct.error where it ends too early.
        """
        if not (
            data.startswith(self._key, start) and data.startswith(self._fixed, start + _FIXED_FROM)
        ):
            return None
        at = start + self._index_position
        if not self._flexible:
            index, size = _index_and_size(data, at)
            first = at + 8
        else:
            index = _integer(data, at)[0]
            at += 4
            low = data[at]
            size = (low & 0x7F) - 1  # The length is sent plus one.
            shift = 7
            while low & 0x80:
                at += 1
                low = data[at]
                size += (low & 0x7F) << shift
                shift += 7
            first = at + 1
        stop = first + size
        if stop + len(self.tail) != end or size <= ATTRIBUTES_LOW_BYTE or index < 0:
            return None
        return index, first, stop


class ProduceShortcut:
    """The repeated request of one connection's producer, for one API version and client id."""

    __slots__ = (
        "_access",
        "_answer",
        "_by_id",
        "_client",
        "_common",
        "_is_alone",
        "_plain_producer_id",
        "_producer_id",
        "_result_position",
        "_topic_key",
        "_topics",
        "_transactions",
        "_version",
    )

    def __init__(
        self,
        catalogue: Catalogue,
        transactions: Transactions,
        remote_coordinators: RemoteCoordinators | None,
        context: RequestContext,
    ) -> None:
        """Start without a known request."""
        self._transactions = transactions
        self._is_alone = remote_coordinators is None
        self._access = context.access
        self._client = context.connection.seen
        self._version = context.api_version
        self._by_id = context.api_version >= TOPIC_IDS_SINCE
        self._topics: Mapping[Any, Topic] = (
            catalogue.topics_by_id if self._by_id else catalogue.topics
        )
        self._common: CommonRequest | None = None
        self._topic_key: str | bytes = b""
        self._producer_id = NO_PRODUCER_ID
        """Producer id of the transactional id in the known request, if it has one."""
        self._plain_producer_id: int | None = None
        """The only producer id that the client may use outside of transactions, or None for any."""
        self._answer = bytearray()
        self._result_position = 0

    # ------------------------------------------------------------------------------------ learning

    def learn(self, frame: memoryview, position: int, request: ProduceRequest) -> None:
        """Remember the fixed bytes of a decoded request if it has the common shape.

        ``position`` is where the body begins in ``frame``.
        """
        known, self._common = self._common, None
        if self._version < FIRST_VERSION or request.acks not in {-1, 1}:
            return
        if len(request.topic_data) != 1 or len(request.topic_data[0].partition_data) != 1:
            return
        topic = request.topic_data[0]
        index, records = topic.partition_data[0].index, topic.partition_data[0].records
        if records is None or not self._may_write(topic, request.transactional_id):
            return
        size = len(records)
        flexible = self._version >= FLEXIBLE_SINCE
        tail_bytes = len(_NO_TAGS) if flexible else 0
        stop = len(frame) - tail_bytes
        index_position = stop - size - (_varint_bytes(size + 1) if flexible else 4) - 4
        if index_position <= position:
            return
        span = (index, stop - size, stop)
        self._producer_id = self._producer_of(request.transactional_id, records)
        if not self._access.is_open:
            self._plain_producer_id = self._plain_producer_of(records)
        if known is not None and known.is_like(frame, span):
            self._common = known  # With all that was learned along with it.
            return
        common = CommonRequest(frame, self._version, index_position)
        # Otherwise it has unknown tags: not the common kind.
        if common.is_like(frame, span):
            self._common = common
            self._topic_key = topic.topic_id if self._by_id else topic.name
            self._learn_answer(topic)

    def _producer_of(self, transactional_id: str | None, records: memoryview) -> int:
        """Return the producer id of a request's batch, if it is that of its transactional id."""
        if not transactional_id or len(records) < HEADER_BYTES:
            return NO_PRODUCER_ID
        producer_id: int = _producer(records, PRODUCER_ID_POSITION)[0]
        known = self._transactions.has_producer(transactional_id, producer_id)
        return producer_id if known else NO_PRODUCER_ID

    def _plain_producer_of(self, records: memoryview) -> int:
        """Return the producer ID of a request's batch if it is valid outside of transactions."""
        if len(records) < HEADER_BYTES or not self._is_alone:
            return NO_PRODUCER_ID
        producer_id: int = _producer(records, PRODUCER_ID_POSITION)[0]
        refused = producer_id < 0 or self._transactions.refusal_outside(producer_id)
        return NO_PRODUCER_ID if refused else producer_id

    def _may_write(self, topic_data: TopicProduceData, transactional_id: str | None) -> bool:
        """Return whether the client may write the batches of a request, also transactional ones."""
        access = self._access
        if access.is_open:
            return True
        name = topic_data.name
        if self._by_id:
            topic = self._topics.get(topic_data.topic_id)
            name = "" if topic is None else topic.name
        return access.may_see(TOPIC, name, WRITE) and (
            not transactional_id or access.may_see(TRANSACTIONAL_ID, transactional_id, WRITE)
        )

    def _learn_answer(self, topic: TopicProduceData) -> None:
        result = PartitionProduceResponse(_SENTINEL)
        response = ProduceResponse([TopicProduceResponse(topic.name, topic.topic_id, [result])])
        head = bytearray(9 if self._version >= FLEXIBLE_SINCE else 8)
        chunks = PRODUCE.encode_response(response, self._version, head)
        answer = bytearray().join(chunks)
        self._result_position = answer.rindex(_SENTINEL.to_bytes(4, "big"))
        _pack_correlation_id(answer, 0, len(answer) - 4)
        self._answer = answer

    # -------------------------------------------------------------------------------------- taking

    def take(self, frames: FrameBuffer) -> ShortProduce | None:
        """Append the batches of the next requests of the known kind, or return None if the next
        differs.

        Requests that were taken are not among the ``frames`` any more.
        """
        common = self._common
        if common is None:
            return None
        view = frames.pending()
        if len(view) <= _LENGTH_BYTES:
            return None
        size = _integer(view)[0]
        if size > frames.max_frame_bytes:
            return None
        try:
            if size > SMALL_BYTES:
                return self._take_large(common, frames, view, _LENGTH_BYTES + size)
            return self._take_small(common, frames, bytes(view[:RUN_BYTES]))
        except (IndexError, error):
            return None

    def _take_large(
        self, common: CommonRequest, frames: FrameBuffer, view: memoryview, end: int
    ) -> ShortProduce | None:
        """Handle one request; its records are copied once, into the journal."""
        if end > len(view):
            return None
        head = bytes(view[: _LENGTH_BYTES + common.head_bytes])
        found = common.locate(head, _LENGTH_BYTES, end)
        if found is None:
            return None
        index, first, stop = found
        records = view[first:stop]
        if bytes(view[stop:end]) != common.tail:
            return None
        return self._append(frames, index, records, _integer(head, 8)[0], end)

    def _take_small(
        self, common: CommonRequest, frames: FrameBuffer, data: bytes
    ) -> ShortProduce | None:
        """Handle all received requests for one partition together."""
        correlation_ids: list[int] = []
        batches: list[bytes] = []
        ends: list[int] = []
        partition = -1
        position, available = 0, len(data)
        known_writer = self._client.is_known_writer
        largest = min(SMALL_BYTES, frames.max_frame_bytes)
        while position + _LENGTH_BYTES < available:
            size = _integer(data, position)[0]
            start = position + _LENGTH_BYTES
            end = start + size
            if not 0 < size <= largest or end > available:
                break
            found = common.locate(data, start, end)
            if found is None:
                break
            index, first, stop = found
            if index != partition:
                if batches:
                    break
                partition = index
            if not known_writer and read_record_count(data, first) > FEW_RECORDS:
                break
            if data[stop:end] != common.tail:
                break
            correlation_ids.append(_integer(data, start + _KEY_BYTES)[0])
            batches.append(data[first:stop])
            ends.append(end)
            position = end
        log = self._log_of(partition)
        if log is None or not batches:
            return None
        offsets, group = append_run(log, batches, self._producer_id, self._plain_producer_id)
        if group is None:  # The first is something special: a repetition, a roll, an error.
            records = memoryview(batches[0])
            return self._append(frames, partition, records, correlation_ids[0], ends[0])
        frames.skip(ends[len(offsets) - 1])
        log_start_offset = log.log_start_offset
        answer = self._answer
        answers = answer * len(offsets)
        at = 0
        for correlation_id, base_offset in zip(correlation_ids, offsets, strict=False):
            _pack_correlation_id(answers, at + 4, correlation_id)
            result = at + self._result_position
            _pack_result(answers, result, partition, 0, base_offset, -1, log_start_offset)
            at += len(answer)
        return self._promise(answers, len(offsets), log, group)

    def _append(
        self,
        frames: FrameBuffer,
        index: int,
        records: memoryview,
        correlation_id: int,
        end: int,
    ) -> ShortProduce | None:
        """Append the batch of one request, which ends at ``end``."""
        log = self._log_of(index)
        if log is None or not self._is_admitted(log, records):
            return None
        try:
            appended = log.append(records)
        except (Rejected, TooMuchToLookHere):
            # Nothing was changed: the ordinary way is refused as well, and reports why.
            return None
        if appended.group is None:
            log.uncount_duplicate()  # Repeated the ordinary way, it is found, and counted, again.
            return None
        frames.skip(end)
        answer = self._answer[:]
        _pack_correlation_id(answer, 4, correlation_id)
        at = self._result_position
        _pack_result(
            answer,
            at,
            index,
            0,
            appended.base_offset,
            appended.log_append_time_ms,
            appended.log_start_offset,
        )
        return self._promise(answer, 1, log, appended.group)

    def _promise(
        self, answers: bytearray, requests: int, log: PartitionLog, group: CommitGroup
    ) -> ShortProduce:
        pending = ShortProduce(answers, requests, log, self._result_position)
        group.add_answer(pending)
        return pending

    def _is_admitted(self, log: PartitionLog, records: memoryview) -> bool:
        """Return whether a batch needs no check of its transaction or its records."""
        if len(records) < HEADER_BYTES:
            return False
        if not self._client.is_known_writer and read_record_count(records) > FEW_RECORDS:
            return False
        producer_id, epoch = _producer(records, PRODUCER_ID_POSITION)
        if not records[ATTRIBUTES_LOW_BYTE] & TRANSACTIONAL_BIT:
            only = self._plain_producer_id
            return only is None or producer_id < 0 or producer_id == only
        return producer_id == self._producer_id and log.producers.is_in_transaction(
            producer_id, epoch
        )

    def _log_of(self, partition: int) -> PartitionLog | None:
        topic = self._topics.get(self._topic_key)
        if topic is None or topic.is_internal or not 0 <= partition < len(topic.partitions):
            return None
        found = topic.partitions[partition]
        return found.log if found.refused is None else None


def _varint_bytes(value: int) -> int:
    """Return the number of bytes of an unsigned varint."""
    return max(1, -(-value.bit_length() // 7))
