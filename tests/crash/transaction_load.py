"""A seeded workload of transactions on a ``Life``, with what its clients were told."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from random import Random

from barnabas.broker.coordination.key_hash import java_hash
from barnabas.broker.coordination.verification import Writer, verify
from barnabas.broker.topics.topic_names import GROUP_OFFSETS
from barnabas.coordinator.decision import TransactionalProducer
from barnabas.coordinator.groups.commands import Caller, TransactionalOffsetCommit
from barnabas.coordinator.transactions.commands import (
    AddPartitions,
    EndTransaction,
    InitProducer,
    Outcome,
    VerifyPartitions,
)
from barnabas.coordinator.transactions.state import CLASSIC, TRANSACTIONS_V2, TopicPartition
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.protocol.records import Record, encode_batch
from barnabas.storage.errors import Rejected
from tests.crash.transaction_history import Place, TransactionHistory, require
from tests.crash.transaction_life import PARTITIONS, TOPIC, Life

TIMEOUT_MS = 5000
NONE = ErrorCode.NONE
_VALUE = re.compile(rb"#[0-9]+#")


@dataclass
class Written:
    """One transaction as its client saw it."""

    values: dict[Place, list[bytes]] = field(default_factory=lambda: defaultdict(list))
    """What was acknowledged, by partition."""
    unsure: list[bytes] = field(default_factory=list)
    """What was sent and never answered."""
    told: bool | None = None
    """What an answer said: committed, or aborted; None: nobody said anything."""
    may_commit: bool = False
    """Whether anybody ever asked for its commit."""

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
            there = [each for each in self.unsure if any(each in some for some in found.values())]
            require(not there, f"aborted, and {there} is there (C3)")


def values_found(history: TransactionHistory) -> dict[Place, set[bytes]]:
    """The committed values of each partition; that of an offset is its metadata."""
    return {
        place: {value for record in part.committed for value in _VALUE.findall(record)}
        for place, part in history.partitions.items()
    }


class Client:
    """One transactional id. Waits for each answer before it goes on."""

    def __init__(self, load: Load, number: int) -> None:
        self.load = load
        self.key = f"id-{number}"
        self.group = f"group-{number}"
        self.generation = CLASSIC if number % 2 else TRANSACTIONS_V2
        self.busy = False
        self.producer: tuple[int, int] | None = None
        self.sequences: dict[Place, int] = {}
        self.added: set[Place] = set()
        self.current: Written | None = None
        self.offsets: set[bytes] = set()
        """The metadata of all offsets that this client ever sent for its group."""

    def forget(self) -> None:
        """The broker died: begin anew, as an application that is started again."""
        self.busy = False
        self.producer = self.current = None
        self.added = set()

    def step(self, life: Life, random: Random) -> None:
        if self.busy:
            return
        if self.producer is None:
            self._init(life)
        elif self.current is None or random.random() < 0.6:
            self._grow(life, random)
        elif random.random() < 0.05:
            self.forget()  # Leaves its transaction open for the next one.
        else:
            self._end(life, commit=random.random() < 0.7)

    def _init(self, life: Life) -> None:
        self.busy = True
        transactions = life.transactions

        def answer(outcome: Outcome) -> None:
            self.busy = False
            if outcome.error == NONE:
                self._enter(outcome)
            else:
                assert outcome.error == ErrorCode.CONCURRENT_TRANSACTIONS, outcome

        transactions.submit(
            lambda: InitProducer(
                self.key, TIMEOUT_MS, fresh_producer_id=transactions.fresh_producer_id
            ),
            answer,
            key=self.key,
        )

    def _enter(self, outcome: Outcome) -> None:
        self.producer = outcome.producer_id, outcome.producer_epoch
        self.sequences = {}

    def _begin(self) -> Written:
        if self.current is None:
            self.current = Written()
            self.load.written.append(self.current)
        return self.current

    def _grow(self, life: Life, random: Random) -> None:
        place = TOPIC, random.randrange(PARTITIONS[TOPIC])
        if random.random() < 0.2:
            place = GROUP_OFFSETS, java_hash(self.group) % PARTITIONS[GROUP_OFFSETS]
        if self.generation == CLASSIC and place not in self.added:
            self._add(life, place)
        elif place[0] == GROUP_OFFSETS:
            self._send_offsets(life)
        else:
            self._write(life, place, random)

    def _add(self, life: Life, place: Place) -> None:
        assert self.producer is not None
        self._begin()
        self.busy = True
        command = AddPartitions(
            self.key, *self.producer, frozenset({TopicPartition(*place)}), CLASSIC
        )

        def answer(outcome: Outcome) -> None:
            self.busy = False
            if outcome.error == NONE:
                self.added.add(place)
            else:
                self._failed(outcome.error)

        life.transactions.submit(lambda: command, answer, key=self.key)

    def _write(self, life: Life, place: Place, random: Random) -> None:
        assert self.producer is not None
        written = self._begin()
        values = [self.load.new_value() for _ in range(random.choice((1, 1, 3)))]
        batch = encode_batch(
            [Record(at, life.clock.now_ms(), None, value) for at, value in enumerate(values)],
            producer_id=self.producer[0],
            producer_epoch=self.producer[1],
            base_sequence=self.sequences.get(place, 0),
            transactional=True,
        )
        records = memoryview(bytearray(batch))
        code, durable = self.load.append(life, self, place, records)
        if code:
            self._failed(code)
            return
        self.sequences[place] = self.sequences.get(place, 0) + len(values)
        self.busy = True
        written.unsure += values

        def answer() -> None:
            self.busy = False
            for value in values:
                written.unsure.remove(value)
            written.values[place] += values

        durable.add_waiter(answer)

    def _send_offsets(self, life: Life) -> None:
        assert self.producer is not None
        written = self._begin()
        self.busy = True
        value = self.load.new_value()
        written.unsure.append(value)
        self.offsets.add(value)
        offset = OffsetCommitRequestPartition(0, 1, committed_metadata=value.decode())
        topic = OffsetCommitRequestTopic(TOPIC, life.catalogue.topics[TOPIC].topic_id, [offset])
        request = OffsetCommitRequest(self.group, -1, "", topics=[topic])
        place = TopicPartition(GROUP_OFFSETS, java_hash(self.group) % PARTITIONS[GROUP_OFFSETS])

        def allow() -> ErrorCode:
            assert self.producer is not None
            asked = self.key, *self.producer, frozenset({place})
            if self.generation == CLASSIC:
                return life.transactions.verify(VerifyPartitions(*asked))[place]
            return life.transactions.add(AddPartitions(*asked, TRANSACTIONS_V2))

        def answer(code: int) -> None:
            self.busy = False
            written.unsure.remove(value)
            if code:
                self._failed(code)
            else:
                written.values[place].append(value)

        command = TransactionalOffsetCommit(
            Caller("test", "/127.0.0.1", 5), request, TransactionalProducer(*self.producer)
        )
        assert life.groups.refusal(self.group) == NONE
        life.groups.submit(
            self.group,
            command,
            lambda response: answer(response.topics[0].partitions[0].error_code),
            answer,
            admit=allow,
        )

    def _end(self, life: Life, *, commit: bool) -> None:
        assert self.producer is not None
        written, self.current = self.current, None
        assert written is not None
        self.added = set()
        self.busy = True
        written.may_commit = written.may_commit or commit
        command = EndTransaction(self.key, *self.producer, commit, self.generation, -1)

        def answer(outcome: Outcome) -> None:
            self.busy = False
            if outcome.error == NONE:
                written.told = commit
                if self.generation == TRANSACTIONS_V2:
                    self._enter(outcome)
            else:
                self.current = written
                self._failed(outcome.error)

        life.transactions.submit(lambda: command, answer, key=self.key)

    def _failed(self, code: int) -> None:
        """Its time was over, or another took its id: nothing of it may be there in the end."""
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
        self.clients = [Client(self, number) for number in range(clients)]
        self._values = 0

    def new_value(self) -> bytes:
        self._values += 1
        return b"#%d#" % self._values

    def append(self, life, client, place, records):
        """As the handler of Produce does: admitted, and appended with nothing in between."""
        version = 11 if client.generation == CLASSIC else 12
        partition = life.catalogue.partition(*place)
        batches = [(partition.topic_partition, partition.log.producers, records)]
        admission = verify(life.transactions, Writer(client.key, version), batches)
        code = admission.error or next(iter(admission.refused.values()), NONE)
        if code:
            return code, None
        try:
            appended = partition.log.append(records, transaction_version=client.generation)
        except Rejected as refused:
            raise AssertionError(f"{client.key} was refused: {refused!r}") from refused
        return NONE, appended.durable

    def step(self, life: Life) -> None:
        """One random thing: of a client, of a thread, or of time."""
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
        elif kind < 0.97:
            life.logs.checkpoint()
        else:
            life.clock.advance(milliseconds=random.choice((1, 50, 50, 50, 50, TIMEOUT_MS)))
        if life.failures:
            raise life.failures[0]

    def die(self) -> None:
        for client in self.clients:
            client.forget()

    def check(self, history: TransactionHistory) -> None:
        """What clients were told is true (C4, D1)."""
        found = values_found(history)
        for written in self.written:
            written.check(found)

    def check_offsets(self, life: Life, history: TransactionHistory) -> None:
        """What a group has committed is what the log says was committed last (O1, O2, O8)."""
        for client in self.clients:
            group = client.group
            place = GROUP_OFFSETS, java_hash(group) % PARTITIONS[GROUP_OFFSETS]
            in_log = [
                value
                for record in history.partitions[place].committed
                for value in _VALUE.findall(record)
                if value in client.offsets
            ]
            machine = life.groups.machine_of(group)
            present = machine.offsets.of_group(group).get(TOPIC, {}).get(0)
            metadata = None if present is None else present.metadata.encode()
            require(metadata == (in_log[-1] if in_log else None), f"{group}: {metadata} (O8)")
            require(not machine.offsets.is_pending(group, TOPIC, 0), f"{group} is pending (O3)")
