"""Requests of a program and their responses, as the proxy sees them, for the story of a run."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records import InvalidBatch, iterate_batches

PRODUCE, FETCH, INIT, END = "Produce", "Fetch", "InitProducerId", "EndTxn"
COMMIT, COMMIT_IN_TRANSACTION = "OffsetCommit", "TxnOffsetCommit"
ADD_OFFSETS, ADD_PARTITIONS = "AddOffsetsToTxn", "AddPartitionsToTxn"
JOIN, LEAVE, BEAT = "JoinGroup", "LeaveGroup", "Heartbeat"
NEW_BEAT: Final = "ConsumerGroupHeartbeat"
WATCHED: Final = frozenset({
    PRODUCE, FETCH, INIT, END, COMMIT, COMMIT_IN_TRANSACTION, ADD_OFFSETS, ADD_PARTITIONS,
    JOIN, LEAVE, BEAT, NEW_BEAT,
})  # fmt: skip
"""APIs whose requests are decoded."""

Spans = Mapping[int, tuple[int, int]]
"""First and last offset by partition."""
_NONE: Final[Mapping[int, Any]] = MappingProxyType({})
"""Empty mapping, shared by all calls, since most calls have only one of the two mappings."""


@dataclass(slots=True)
class Call:
    """One request, and its response if it arrived."""

    api: str
    process: str
    at_s: float
    version: int = 0
    is_answered: bool = False
    errors: tuple[str, ...] = ()
    transactional_id: str = ""
    producer_id: int = -1
    epoch: int = -1
    group: str = ""
    member: str = ""
    instance_id: str = ""
    generation: int = -1
    commits: bool = False
    """EndTxn: whether it requests the commit."""
    acks: int = 0
    isolation: int = 1
    is_idempotent: bool = False
    offsets: Mapping[int, int] = field(default_factory=lambda: _NONE)
    """Committed offsets of the input by partition."""
    counts: Mapping[int, int] = field(default_factory=lambda: _NONE)
    """Produce: records for the output by partition."""
    written: Spans = field(default_factory=lambda: _NONE)
    """Produce: offsets of the output that the broker gave them."""
    read: Spans = field(default_factory=lambda: _NONE)
    """Fetch: offsets of the input that the response has."""


class Topics:
    """Input and output, by name and by topic ID."""

    def __init__(self, source: str, target: str, ids: Mapping[bytes, str]) -> None:
        self.source = source
        self.target = target
        self._ids = dict(ids)

    def name(self, topic: Any) -> str:  # noqa: ANN401
        """Return the name of a structure with a name or an ID."""
        named = getattr(topic, "topic", "") or getattr(topic, "name", "")
        return named or self._ids.get(bytes(getattr(topic, "topic_id", b"")), "")


def requested(call: Call, request: Any, topics: Topics) -> None:  # noqa: ANN401
    """Copy the fields of a request to its call."""
    call.transactional_id = getattr(request, "transactional_id", None) or ""
    call.producer_id = getattr(request, "producer_id", -1)
    call.epoch = getattr(request, "producer_epoch", -1)
    call.group = getattr(request, "group_id", "") or ""
    call.member = getattr(request, "member_id", "") or ""
    call.instance_id = (
        getattr(request, "group_instance_id", None) or getattr(request, "instance_id", None) or ""
    )
    for name in ("generation_id", "generation_id_or_member_epoch", "member_epoch"):
        call.generation = getattr(request, name, call.generation)
    if call.api == PRODUCE:
        _produced(call, request, topics)
    elif call.api == FETCH:
        call.isolation = request.isolation_level
    elif call.api == END:
        call.commits = request.committed
    elif call.api == ADD_PARTITIONS and request.v3_and_below_transactional_id:
        call.transactional_id = request.v3_and_below_transactional_id
    elif call.api in {COMMIT, COMMIT_IN_TRANSACTION}:
        call.offsets = {
            each.partition_index: each.committed_offset
            for topic in request.topics
            if topics.name(topic) == topics.source
            for each in topic.partitions
        }


def positions_of(request: Any, topics: Topics) -> dict[int, int]:  # noqa: ANN401
    """Return the offsets of the input from which a Fetch request reads, by partition."""
    return {
        each.partition: each.fetch_offset
        for topic in request.topics
        if topics.name(topic) == topics.source
        for each in topic.partitions
    }


def _produced(call: Call, request: Any, topics: Topics) -> None:  # noqa: ANN401
    call.acks = request.acks
    counts: dict[int, int] = {}
    for topic in request.topic_data:
        if topics.name(topic) != topics.target:
            continue
        for each in topic.partition_data:
            try:
                for _, header in iterate_batches(memoryview(each.records or b"")):
                    counts[each.index] = counts.get(each.index, 0) + header.record_count
                    call.producer_id, call.epoch = header.producer_id, header.producer_epoch
                    call.is_idempotent = header.producer_id >= 0
            except (InvalidBatch, struct.error, IndexError):
                continue
    call.counts = counts


def responded(call: Call, response: Any, topics: Topics) -> None:  # noqa: ANN401
    """Copy the fields of a response to its call."""
    call.is_answered = True
    call.errors = tuple(dict.fromkeys(ErrorCode(code).name for code in _codes(response) if code))
    if call.api == PRODUCE:
        call.written = {
            each.index: (each.base_offset, each.base_offset + call.counts.get(each.index, 0) - 1)
            for topic in response.responses
            if topics.name(topic) == topics.target
            for each in topic.partition_responses
            if not each.error_code and each.base_offset >= 0
        }
    elif call.api == FETCH:
        _fetched(call, response, topics)
    elif call.api == INIT:
        call.producer_id, call.epoch = response.producer_id, response.producer_epoch
    elif call.api == JOIN:
        call.generation = response.generation_id
        call.member = response.member_id or call.member
    elif call.api == NEW_BEAT:
        call.generation = response.member_epoch
        call.member = response.member_id or call.member


def _fetched(call: Call, response: Any, topics: Topics) -> None:  # noqa: ANN401
    read = {}
    for topic in response.responses:
        if topics.name(topic) != topics.source:
            continue
        for each in topic.partitions:
            if each.records is None or not len(each.records):
                continue
            try:
                headers = [header for _, header in iterate_batches(each.records)]
            except (InvalidBatch, struct.error, IndexError):
                continue
            if headers:
                read[each.partition_index] = headers[0].base_offset, headers[-1].last_offset
    call.read = read


def _codes(structure: Any) -> Iterator[int]:  # noqa: ANN401
    """Yield all error codes of a response."""
    for name in getattr(structure, "__dataclass_fields__", ()):
        value = getattr(structure, name)
        if name.endswith("error_code"):
            yield value
        elif isinstance(value, list):
            for each in value:
                yield from _codes(each)
