"""A seeded workload of clients of a ``Life``, with the responses that they received."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from random import Random
from typing import Any

from barnabas.broker.coordination.shard import java_hash
from barnabas.broker.metadata.topic_names import GROUP_OFFSETS
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.add_offsets_to_txn import (
    ADD_OFFSETS_TO_TXN,
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from barnabas.protocol.messages.add_partitions_to_txn import (
    ADD_PARTITIONS_TO_TXN,
    AddPartitionsToTxnResponse,
)
from barnabas.protocol.messages.end_txn import END_TXN, EndTxnRequest, EndTxnResponse
from barnabas.protocol.messages.init_producer_id import (
    INIT_PRODUCER_ID,
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from barnabas.protocol.messages.produce import (
    PRODUCE,
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from barnabas.protocol.messages.txn_offset_commit import (
    TXN_OFFSET_COMMIT,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from barnabas.protocol.records import Record, encode_batch
from tests.crash.pipeline_connection import PipelineConnection
from tests.crash.transaction_life import PARTITIONS, TOPIC, Life
from tests.history.logs import Place, TransactionHistory, require
from tests.requests import add_partitions_request, added_codes

TIMEOUT_MS = 5000
NONE = ErrorCode.NONE
_VALUE = re.compile(rb"#[0-9]+#")


@dataclass(frozen=True)
class Versions:
    """The versions that one generation of clients sends."""

    init_producer_id: int
    add_partitions: int | None
    """The number of AddPartitionsToTxn and AddOffsetsToTxn requests, or None if a write adds its
    partition (KIP-890)."""
    produce: int
    txn_offset_commit: int
    end_txn: int


CLASSIC = Versions(4, 3, 11, 3, 3)
IMPLICIT = Versions(5, None, 12, 5, 5)


@dataclass
class Written:
    """One transaction as its client saw it."""

    values: dict[Place, list[bytes]] = field(default_factory=lambda: defaultdict(list))
    """The acknowledged values, by partition."""
    unsure: list[bytes] = field(default_factory=list)
    """The values that were sent and got no response."""
    refused: list[bytes] = field(default_factory=list)
    """The values whose request failed."""
    told: bool | None = None
    """Whether a response reported a commit (True) or an abort (False), or None if no response
    arrived."""
    may_commit: bool = False
    """Whether a client ever requested its commit."""

    def check(self, found: dict[Place, set[bytes]]) -> None:
        """Whole or not at all; as told (C3, C4, D1)."""
        parts = {
            value: value in found[place] for place, all_ in self.values.items() for value in all_
        }
        seen = set(parts.values())
        require(len(seen) < 2, f"torn: {parts} (C3)")
        told = self.told if self.may_commit else False
        if told is not None:
            require(seen <= {told}, f"told {self.told}, found {parts} (C4, D1)")
        if True not in seen and (parts or told is False):
            there = _among(found, self.unsure)
            require(not there, f"aborted, and {there} is there (C3)")
        there = _among(found, self.refused)
        require(not there, f"refused, and {there} is there (P1)")


def _among(found: dict[Place, set[bytes]], values: list[bytes]) -> list[bytes]:
    """Return the values of ``values`` that are in any partition."""
    return [each for each in values if any(each in some for some in found.values())]


def values_found(history: TransactionHistory) -> dict[Place, set[bytes]]:
    """The committed values of each partition; that of an offset is its metadata."""
    return {
        place: {value for record in part.committed for value in _VALUE.findall(record)}
        for place, part in history.partitions.items()
    }


def produce_request(
    life: Life, place: Place, values: list[bytes], key: str | None = None, **producer: Any
) -> ProduceRequest:
    """One batch for one partition."""
    records = [Record(at, life.clock.now_ms(), None, value) for at, value in enumerate(values)]
    batch = encode_batch(records, **producer)
    data = PartitionProduceData(place[1], memoryview(bytes(batch)))
    return ProduceRequest(key, -1, TIMEOUT_MS, [TopicProduceData(place[0], partition_data=[data])])


def produce_error(response: ProduceResponse) -> int:
    return response.responses[0].partition_responses[0].error_code


class Client:
    """A client that waits for each response before its next request."""

    def __init__(self, load: Load, name: str) -> None:
        self.load = load
        self.name = name
        self.busy = False
        self._connection: PipelineConnection | None = None

    def forget(self) -> None:
        """Start again after a disconnect, as a restarted application does."""
        self.busy = False
        if self._connection is not None:
            self._connection.abandon()
            self._connection = None

    def step(self, life: Life, random: Random) -> None:
        """Send the next request, unless one waits for its response."""
        if not self.busy:
            self.go_on(life, random)

    def go_on(self, life: Life, random: Random) -> None:
        """Send the next request."""
        raise NotImplementedError

    def send(self, life: Life, api: Any, version: int, request: Any, respond: Any) -> None:
        if self._connection is None:
            self._connection = life.connect(self.name)
        self.busy = True

        def answer(response: Any) -> None:
            self.busy = False
            respond(response)

        self._connection.send(api, version, request, answer)


class PlainProducer(Client):
    """Writes without a transaction: acknowledged values survive (D1)."""

    def __init__(self, load: Load) -> None:
        super().__init__(load, "plain")
        self.acknowledged: list[tuple[Place, bytes]] = []

    def go_on(self, life: Life, random: Random) -> None:
        place = TOPIC, random.randrange(PARTITIONS[TOPIC])
        value = self.load.new_value()

        def respond(response: ProduceResponse) -> None:
            code = produce_error(response)
            assert code == NONE, response
            self.acknowledged.append((place, value))

        self.send(life, PRODUCE, 11, produce_request(life, place, [value]), respond)

    def check(self, found: dict[Place, set[bytes]]) -> None:
        lost = [value for place, value in self.acknowledged if value not in found[place]]
        require(not lost, f"acknowledged, and {lost} is not there (D1)")


class Transactional(Client):
    """One transactional id."""

    def __init__(self, load: Load, number: int) -> None:
        super().__init__(load, f"id-{number}")
        self.group = f"group-{number}"
        self.versions = CLASSIC if number % 2 else IMPLICIT
        self.producer: tuple[int, int] | None = None
        self.sequences: dict[Place, int] = {}
        self.added: set[Place] = set()
        self.current: Written | None = None
        self.offsets: set[bytes] = set()
        """The metadata of all offsets that this client ever sent for its group."""

    @property
    def offsets_place(self) -> Place:
        return GROUP_OFFSETS, java_hash(self.group) % PARTITIONS[GROUP_OFFSETS]

    def forget(self) -> None:
        super().forget()
        self.producer = self.current = None
        self.added = set()

    def go_on(self, life: Life, random: Random) -> None:
        if self.producer is None:
            self._init(life)
        elif self.current is None or random.random() < 0.6:
            self._grow(life, random)
        elif random.random() < 0.05:
            self.forget()  # Leaves its transaction open for the next one.
        else:
            self._end(life, commit=random.random() < 0.7)

    def _init(self, life: Life) -> None:
        def respond(response: InitProducerIdResponse) -> None:
            if response.error_code == NONE:
                self._enter(response)
            else:
                assert response.error_code == ErrorCode.CONCURRENT_TRANSACTIONS, response

        request = InitProducerIdRequest(self.name, TIMEOUT_MS, -1, -1)
        self.send(life, INIT_PRODUCER_ID, self.versions.init_producer_id, request, respond)

    def _enter(self, response: InitProducerIdResponse | EndTxnResponse) -> None:
        self.producer = response.producer_id, response.producer_epoch
        self.sequences = {}

    def _begin(self) -> Written:
        if self.current is None:
            self.current = Written()
            self.load.written.append(self.current)
        return self.current

    def _grow(self, life: Life, random: Random) -> None:
        place = TOPIC, random.randrange(PARTITIONS[TOPIC])
        if random.random() < 0.2:
            place = self.offsets_place
        adds = self.versions.add_partitions
        if adds is not None and place not in self.added:
            if place[0] == GROUP_OFFSETS:
                self._add_offsets(life, adds)
            else:
                self._add(life, place, adds)
        elif place[0] == GROUP_OFFSETS:
            self._send_offsets(life)
        else:
            self._write(life, place, random)

    def _add(self, life: Life, place: Place, version: int) -> None:
        assert self.producer is not None
        self._begin()

        def respond(response: AddPartitionsToTxnResponse) -> None:
            (code,) = added_codes(response)
            if code == NONE:
                self.added.add(place)
            else:
                self._failed(code)

        request = add_partitions_request(self.name, self.producer, place)
        self.send(life, ADD_PARTITIONS_TO_TXN, version, request, respond)

    def _add_offsets(self, life: Life, version: int) -> None:
        assert self.producer is not None
        self._begin()

        def respond(response: AddOffsetsToTxnResponse) -> None:
            if response.error_code == NONE:
                self.added.add(self.offsets_place)
            else:
                self._failed(response.error_code)

        request = AddOffsetsToTxnRequest(self.name, *self.producer, self.group)
        self.send(life, ADD_OFFSETS_TO_TXN, version, request, respond)

    def _write(self, life: Life, place: Place, random: Random) -> None:
        assert self.producer is not None
        values = [self.load.new_value() for _ in range(random.choice((1, 1, 3)))]
        first = self.sequences.get(place, 0)
        request = produce_request(
            life,
            place,
            values,
            self.name,
            producer_id=self.producer[0],
            producer_epoch=self.producer[1],
            base_sequence=first,
            transactional=True,
        )
        written = self._sent(values)

        def respond(response: ProduceResponse) -> None:
            code = produce_error(response)
            if code == NONE:
                self.sequences[place] = first + len(values)
            self._answered(written, place, values, code)

        self.send(life, PRODUCE, self.versions.produce, request, respond)

    def _send_offsets(self, life: Life) -> None:
        assert self.producer is not None
        value = self.load.new_value()
        self.offsets.add(value)
        offset = TxnOffsetCommitRequestPartition(0, 1, committed_metadata=value.decode())
        request = TxnOffsetCommitRequest(
            self.name,
            self.group,
            *self.producer,
            topics=[TxnOffsetCommitRequestTopic(TOPIC, [offset])],
        )
        written = self._sent([value])

        def respond(response: TxnOffsetCommitResponse) -> None:
            code = response.topics[0].partitions[0].error_code
            self._answered(written, self.offsets_place, [value], code)

        self.send(life, TXN_OFFSET_COMMIT, self.versions.txn_offset_commit, request, respond)

    def _sent(self, values: list[bytes]) -> Written:
        written = self._begin()
        written.unsure += values
        return written

    def _answered(self, written: Written, place: Place, values: list[bytes], code: int) -> None:
        for value in values:
            written.unsure.remove(value)
        if code:
            written.refused += values
            self._failed(code)
        else:
            written.values[place] += values

    def _end(self, life: Life, *, commit: bool) -> None:
        assert self.producer is not None
        written, self.current = self.current, None
        assert written is not None
        self.added = set()
        written.may_commit = written.may_commit or commit

        def respond(response: EndTxnResponse) -> None:
            if response.error_code == NONE:
                written.told = commit
                if self.versions == IMPLICIT:
                    self._enter(response)
            else:
                self.current = written
                self._failed(response.error_code)

        request = EndTxnRequest(self.name, *self.producer, commit)
        self.send(life, END_TXN, self.versions.end_txn, request, respond)

    def _failed(self, code: int) -> None:
        """Record a transaction that timed out or lost its id: its values must not survive."""
        self.load.refused[ErrorCode(code).name] += 1
        if self.current is not None and code in _FENCED:
            self.current.told = False
        self.forget()


_FENCED = {ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH}


class Load:
    """Several clients; ``written`` outlives the broker."""

    def __init__(self, random: Random, clients: int = 5) -> None:
        self.random = random
        self.written: list[Written] = []
        self.refused: dict[str, int] = defaultdict(int)
        self.plain = PlainProducer(self)
        self.transactional = [Transactional(self, number) for number in range(clients)]
        self.clients: list[Client] = [self.plain, *self.transactional]
        self._values = 0

    def new_value(self) -> bytes:
        self._values += 1
        return b"#%d#" % self._values

    def step(self, life: Life) -> None:
        """One random thing: of a client, of a thread, or of time; then the end of the turn."""
        random = self.random
        kind = random.random()
        if kind < 0.45:
            random.choice(self.clients).step(life, random)
        elif kind < 0.65:
            life.engine.turn(disk_is_quick=kind < 0.55)
        elif kind < 0.88:
            life.engine.commit(random.choice((1, 1, 2, 100)))
        elif kind < 0.93:
            life.engine.write()
        elif kind < 0.96:
            life.engine.aside()
        elif kind < 0.965:
            life.logs.checkpoint()
        elif kind < 0.975:
            life.markers.is_delayed = not life.markers.is_delayed
        else:
            life.clock.advance(milliseconds=random.choice((1, 50, 50, 50, 50, TIMEOUT_MS)))
        life.flush_answers()
        if life.failures:
            raise life.failures[0]

    def die(self) -> None:
        for client in self.clients:
            client.forget()

    def check(self, history: TransactionHistory) -> None:
        """Check that acknowledged results are true (C4, D1)."""
        found = values_found(history)
        self.plain.check(found)
        for written in self.written:
            written.check(found)

    def check_offsets(self, life: Life, history: TransactionHistory) -> None:
        """Check that each group has the offset of the last commit in the log (O1, O2, O8)."""
        for client in self.transactional:
            group = client.group
            in_log = [
                value
                for record in history.partitions[client.offsets_place].committed
                for value in _VALUE.findall(record)
                if value in client.offsets
            ]
            machine = life.groups.machine_of(group)
            present = machine.offsets.of_group(group).get(TOPIC, {}).get(0)
            metadata = None if present is None else present.metadata.encode()
            require(metadata == (in_log[-1] if in_log else None), f"{group}: {metadata} (O8)")
            require(not machine.offsets.is_pending(group, TOPIC, 0), f"{group} is pending (O3)")
