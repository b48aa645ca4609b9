"""The table of the transaction coordinator, asked of a whole broker over the wire.

tests/coordinator/transactions/table.txt has the result of each request in each state, for all
versions; here the responses come from a socket, and the records from the log. AddOffsetsToTxn runs
with AddPartitionsToTxn; Produce and TxnOffsetCommit run where they add or verify partitions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.broker.coordination.markers import MarkerWriter
from barnabas.broker.coordination.shard import decision_batch
from barnabas.coordinator.decision import Decision
from barnabas.coordinator.transactions.commands import Outcome
from barnabas.coordinator.transactions.shard import TransactionShard
from barnabas.coordinator.transactions.state import TopicPartition, Transaction
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.add_offsets_to_txn import ADD_OFFSETS_TO_TXN, AddOffsetsToTxnRequest
from barnabas.protocol.messages.add_partitions_to_txn import (
    ADD_PARTITIONS_TO_TXN,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from barnabas.protocol.messages.end_txn import END_TXN, EndTxnRequest
from barnabas.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from barnabas.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from barnabas.protocol.messages.txn_offset_commit import (
    TXN_OFFSET_COMMIT,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from barnabas.testing import Broker
from tests.broker.data_plane import PRODUCE, Named, Wire, batch, produce_request
from tests.coordinator.transactions.states import (
    P0,
    P1,
    SETTLED,
    STATES,
    TIMEOUT_MS,
    Identities,
    Producer,
    command_of,
    who_comes,
)
from tests.coordinator.transactions.table import (
    COMMANDS,
    ROWS,
    Names,
    shown_outcome,
    shown_place,
    shown_records,
)
from tests.requests import add_partitions_request
from tests.waiting import wait_until
from tests.worlds import world

__all__ = ["world"]

E = ErrorCode
WIRE_COMMANDS = [each for each in COMMANDS if each not in {"Timeout", "Expiry"}]
CONCURRENT = E.CONCURRENT_TRANSACTIONS.name
SETTINGS = {"transaction.two.phase.commit.enable": "true"}
GROUP = "g"


class Served:
    """A broker whose markers can be withheld, and all that its coordinator has written."""

    def __init__(self, broker: Broker, wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
        self.broker = broker
        self.wire = wire
        self.records: dict[str, list[Transaction | None]] = defaultdict(list)
        self.withheld: set[int] = set()
        self.cells = 0
        write, apply = MarkerWriter.write, TransactionShard.apply

        def withhold(writer, topic, index, marker):
            if writer is broker.server.markers and marker.producer_id in self.withheld:
                return E.NOT_LEADER_OR_FOLLOWER
            return write(writer, topic, index, marker)

        def note(shard, record, offset):
            apply(shard, record, offset)
            key = record.key.transactional_id
            self.records[key].append(shard.transactions.get(key))

        monkeypatch.setattr(MarkerWriter, "write", withhold)
        monkeypatch.setattr(TransactionShard, "apply", note)

    @property
    def transactions(self) -> Any:
        return self.broker.server.transactions

    def cell(self, state: str) -> Cell:
        self.cells += 1
        cell = Cell(self, f"{self.broker.bootstrap_servers}-{self.cells}")
        self.broker.call(lambda: cell.build(state))
        return cell


class Cell:
    """One transactional id, brought into a state."""

    who: Identities
    names: Names

    def __init__(self, served: Served, key: str) -> None:
        self.served = served
        self.key = key

    # What a state is built in; runs on the broker's loop.

    def build(self, state: str) -> None:
        assert self.served.transactions.refusal(self.key) == E.NONE
        self.who = STATES[state](self)
        self.names = Names(self.who)
        self.served.records[self.key].clear()

    def do(self, command: Any) -> Outcome:
        return self.served.transactions.decide_now(self.key, command)

    def fresh(self) -> int:
        return self.served.transactions.fresh_producer_id

    def withhold(self) -> None:
        self.served.withheld.add(self.served.transactions.transaction(self.key).producer_id)

    def plant(self, transaction: Transaction) -> None:
        transactions = self.served.transactions
        self.served.broker.server.catalogue.producer_ids.take(transaction.producer_id)
        shard = transactions.log.shard_of(self.key)
        record = shard.machine.record(transaction)
        appended = shard.log.append_records(decision_batch(Decision(records=(record,)), 0))
        shard.machine.apply(record, appended.base_offset)

    # The results.

    def written(self) -> str:
        return shown_records(self.served.records[self.key], self.names)

    def write_markers(self) -> None:
        """Write the markers that were withheld."""
        server = self.served.broker.server
        self.served.withheld.clear()
        transactions = self.served.transactions
        transactions._markers.resume(transactions.log.shard_of(self.key), self.key)
        server.flush_answers()

    def is_held(self) -> bool:
        return self.key in self.served.transactions._waits


def serve(monkeypatch: pytest.MonkeyPatch, wait_ms: int) -> Iterator[Served]:
    settings = SETTINGS | {"barnabas.transaction.wait.ms": str(wait_ms)}
    with Broker(config=settings) as broker, Wire(broker.address) as wire:
        broker.create_topic("a", 2)
        wire.ask(FIND_COORDINATOR, FindCoordinatorRequest("t", 1), 3)
        wire.ask(FIND_COORDINATOR, FindCoordinatorRequest(GROUP, 0), 3)
        assert wire.ask(INIT_PRODUCER_ID, InitProducerIdRequest(None, 0), 0).error_code == 0
        yield Served(broker, wire, monkeypatch)


@pytest.fixture(scope="module")
def refusing():
    """A broker that returns CONCURRENT_TRANSACTIONS at once, as Apache Kafka does."""
    with pytest.MonkeyPatch.context() as patches:
        yield from serve(patches, 0)


@pytest.fixture(scope="module")
def waiting():
    """A broker that waits for the transition in flight."""
    with pytest.MonkeyPatch.context() as patches:
        yield from serve(patches, 600_000)


# ---------------------------------------------------------------------------------------- requests


def versions_of(text: str) -> list[int]:
    """Return the request versions of a line of the table: "v0-4" or "v5"."""
    word = next((each for each in text.split() if each[0] == "v" and each[1].isdigit()), "v4-5")
    low, _, high = word[1:].partition("-")
    return list(range(int(low), int(high or low) + 1))


def request_of(text: str, key: str, producer: Producer, version: int) -> tuple[Any, Any]:
    """The request that a line of the table names, for its own API."""
    name, *words = text.split()
    if name == "InitProducerId":
        return INIT_PRODUCER_ID, InitProducerIdRequest(key, TIMEOUT_MS, *producer)
    if name == "EndTxn":
        return END_TXN, EndTxnRequest(key, *producer, words[1] == "commit")
    assert name == "AddPartitionsToTxn"
    partitions = [int(each[1]) for each in words[-2].split("+")]
    if version >= 4:
        topics = [AddPartitionsToTxnTopic("a", partitions)]
        several = [AddPartitionsToTxnTransaction(key, *producer, "verify" in words, topics)]
        return ADD_PARTITIONS_TO_TXN, AddPartitionsToTxnRequest(several)
    places = [("a", each) for each in partitions]
    return ADD_PARTITIONS_TO_TXN, add_partitions_request(key, producer, *places)


def shown_answer(answer: Any, text: str, version: int, names: Names) -> str:
    """An answer off the wire in the words of the table."""
    if not text.startswith("AddPartitionsToTxn"):
        assert answer.error_code or text.startswith("EndTxn v0") or answer.producer_id >= 0
        identity = getattr(answer, "producer_id", -1), getattr(answer, "producer_epoch", -1)
        return shown_outcome(Outcome(E(answer.error_code), *identity), names)
    topics = answer.results_by_topic_v3_and_below
    if version >= 4:
        assert answer.error_code == 0
        (result,) = answer.results_by_transaction
        topics = result.topic_results
    errors = {
        TopicPartition(topic.name, each.partition_index): E(each.partition_error_code)
        for topic in topics
        for each in topic.results_by_partition
    }
    if "verify" in text:
        return shown_outcome(Outcome(partition_errors=errors), names)
    (error,) = errors.values()
    return error.name


def as_sent(cell: str, text: str, version: int) -> str:
    """The table's answer as this version puts it: old clients do not know PRODUCER_FENCED."""
    known_since = 4 if text.startswith("InitProducerId") else 2
    if version < known_since:
        return cell.replace(E.PRODUCER_FENCED.name, E.INVALID_PRODUCER_EPOCH.name)
    return cell


# ------------------------------------------------------------------------------------------- table


@pytest.mark.parametrize("command", [each for each in WIRE_COMMANDS if "implied" not in each])
def test_every_state_and_version(refusing, command):
    for state in STATES:
        expected, records, _ = ROWS[command, state]
        for version in versions_of(command):
            cell = refusing.cell(state)
            producer = who_comes(command.rsplit(maxsplit=1)[-1], cell.who)
            api, request = request_of(command, cell.key, producer, version)
            answer = refusing.wire.ask(api, request, version)
            shown = shown_answer(answer, command, version, cell.names)
            assert shown == as_sent(expected, command, version), (state, version)
            assert cell.written() == records, (state, version)


@pytest.mark.parametrize("command", ["Timeout", "Expiry"])
def test_internal_commands_change_the_state_as_in_the_table(refusing, command):
    for state in STATES:
        cell = refusing.cell(state)

        def decide(cell=cell) -> None:
            cell.do(command_of(command, cell.key, cell.who, cell.fresh()))

        refusing.broker.call(decide)
        assert cell.written() == ROWS[command, state][1], state


@pytest.mark.parametrize("command", [each for each in COMMANDS if "v0-5 p1" in each])
def test_offsets_are_added_like_partitions(refusing, command):
    for state in STATES:
        for version in (1, 4):
            cell = refusing.cell(state)
            producer = who_comes(command.rsplit(maxsplit=1)[-1], cell.who)
            request = AddOffsetsToTxnRequest(cell.key, *producer, GROUP)
            answer = refusing.wire.ask(ADD_OFFSETS_TO_TXN, request, version)
            expected = as_sent(ROWS[command, state][0], command, version)
            assert E(answer.error_code).name == expected, (state, version)


# ------------------------------------------------------------------------- Produce, TxnOffsetCommit


def produced(served: Served, cell: Cell, producer: Producer, partition: int, version: int) -> E:
    records = batch(
        producer_id=producer[0], producer_epoch=producer[1], base_sequence=0, transactional=True
    )
    topic = served.broker.call(lambda: served.broker.server.catalogue.topic("a"))
    named = Named("a", topic.topic_id)
    answer = served.wire.produce(
        named, records, partition, version=version, transactional_id=cell.key
    )
    return E(answer.error_code)


def is_fenced_by_the_log(served: Served, producer: Producer, partition: int) -> bool:
    """Return whether the partition has a later epoch: its error precedes the coordinator's."""
    log = served.broker.server.catalogue.partition("a", partition).log
    entry = served.broker.call(lambda: log.producers.entry(producer[0]))
    return entry is not None and producer[1] < entry.epoch


def produce_error(code: E, version: int) -> E:
    """The coordinator's word as Produce passes it on (KIP-890)."""
    if code == E.PRODUCER_FENCED:
        return E.INVALID_PRODUCER_EPOCH
    if code == E.TRANSACTION_ABORTABLE and version < 11:
        return E.INVALID_TXN_STATE
    if code == E.CONCURRENT_TRANSACTIONS and version < 12:
        return E.NOT_ENOUGH_REPLICAS
    return code


def offsets_error(code: E, version: int) -> E:
    """Return the error of TxnOffsetCommit in a version."""
    if code == E.PRODUCER_FENCED:
        return E.INVALID_PRODUCER_EPOCH
    if code == E.TRANSACTION_ABORTABLE and version < 4:
        return E.INVALID_TXN_STATE
    return code


def committed_offset(served: Served, cell: Cell, producer: Producer, version: int) -> E:
    topics = [TxnOffsetCommitRequestTopic("a", [TxnOffsetCommitRequestPartition(0, 5)])]
    request = TxnOffsetCommitRequest(cell.key, GROUP, *producer, topics=topics)
    answer = served.wire.ask(TXN_OFFSET_COMMIT, request, version)
    return E(answer.topics[0].partitions[0].error_code)


@pytest.mark.parametrize("command", [each for each in COMMANDS if "implied" in each])
def test_produce_adds_partitions_as_in_the_table(refusing, command):
    for state in STATES:
        expected, records, _ = ROWS[command, state]
        for version in (12, 13):
            cell = refusing.cell(state)
            producer = who_comes(command.rsplit(maxsplit=1)[-1], cell.who)
            found = produced(refusing, cell, producer, 1, version)
            assert found == produce_error(E[expected], version), (state, version)
            assert cell.written() == records, (state, version)
        cell = refusing.cell(state)
        producer = who_comes(command.rsplit(maxsplit=1)[-1], cell.who)
        found = committed_offset(refusing, cell, producer, 5)
        assert found == offsets_error(E[expected], 5), state


@pytest.mark.parametrize("command", [each for each in COMMANDS if "verify" in each])
def test_v1_produce_is_verified_as_in_the_table(refusing, command):
    for state in STATES:
        cells = dict(each.split(":") for each in ROWS[command, state][0].split())
        for version in (10, 11):
            for place in (P0, P1):
                cell = refusing.cell(state)
                producer = who_comes(command.rsplit(maxsplit=1)[-1], cell.who)
                expected = produce_error(E[cells[shown_place(place)]], version)
                if is_fenced_by_the_log(refusing, producer, place.partition):
                    expected = E.INVALID_PRODUCER_EPOCH
                found = produced(refusing, cell, producer, place.partition, version)
                assert found == expected, (state, version, place)
                assert cell.written() == "-"
        for version in (3, 4):
            cell = refusing.cell(state)
            producer = who_comes(command.rsplit(maxsplit=1)[-1], cell.who)
            found = committed_offset(refusing, cell, producer, version)
            assert found == offsets_error(E[cells["p1"]], version), (state, version)


# ----------------------------------------------------------------------------------------- waiting


def wait_until_held(served: Served, cell: Cell) -> None:
    wait_until(lambda: served.broker.call(cell.is_held), "the request waits", pause_s=0.001)


def ask_and_wait(served: Served, cell: Cell, api: Any, request: Any, version: int) -> Any:
    """Send a request that has to wait, then write the markers."""
    served.wire.send(api, request, version)
    wait_until_held(served, cell)
    served.broker.call(cell.write_markers)
    return served.wire.receive()


@pytest.mark.parametrize("command", [each for each in WIRE_COMMANDS if "implied" not in each])
def test_waiting_request_gets_the_result_of_the_transition(waiting, command):
    for state in STATES:
        answer, records, waited = ROWS[command, state]
        expected, _, more = waited.partition("; ")
        if answer != CONCURRENT:
            continue
        version = versions_of(command)[-1]
        cell = waiting.cell(state)
        producer = who_comes(command.rsplit(maxsplit=1)[-1], cell.who)
        api, request = request_of(command, cell.key, producer, version)
        if state in SETTLED:
            answer = ask_and_wait(waiting, cell, api, request, version)
            assert cell.written().endswith(more), state
        else:  # The request itself has ended the transaction, and gets its response at once.
            answer = waiting.wire.ask(api, request, version)
            assert cell.written() == f"{records}, {more}", state
        assert shown_answer(answer, command, version, cell.names) == expected, state


@pytest.mark.parametrize("state", SETTLED)
@pytest.mark.parametrize("command", [each for each in COMMANDS if "implied" in each])
def test_produce_waits_too(waiting, command, state):
    expected = ROWS[command, state][2].partition("; ")[0]
    cell = waiting.cell(state)
    producer = who_comes(command.rsplit(maxsplit=1)[-1], cell.who)
    records = batch(
        producer_id=producer[0], producer_epoch=producer[1], base_sequence=0, transactional=True
    )
    named = Named("a")
    with Wire(waiting.broker.address) as wire:
        request = produce_request(12, named, (1, records), transactional_id=cell.key)
        wire.send(PRODUCE, request, 12)
        wait_until_held(waiting, cell)
        waiting.broker.call(cell.write_markers)
        answer = wire.receive().responses[0].partition_responses[0]
    assert E(answer.error_code) == produce_error(E[expected], 12)


@pytest.mark.parametrize("text", ["EndTxn v5 commit current", "AddPartitionsToTxn v0-5 p1 current"])
def test_waiting_request_gets_concurrent_transactions_after_the_timeout(waiting, text):
    cell = waiting.cell("preparecommit2")
    version = versions_of(text)[-1]
    api, request = request_of(text, cell.key, cell.who.current, version)
    waiting.wire.send(api, request, version)
    wait_until_held(waiting, cell)
    waiting.broker.clock.advance(seconds=601)
    answer = waiting.wire.receive()
    assert shown_answer(answer, text, version, cell.names) == CONCURRENT
    assert not waiting.broker.call(cell.is_held)
    waiting.broker.call(cell.write_markers)
