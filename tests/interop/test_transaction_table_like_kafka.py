"""The table of the transaction coordinator beside Apache Kafka 4.3.0's responses over raw sockets.

tests/coordinator/transactions/table.txt has the responses of Barnabas
(tests/broker/test_transaction_table.py compares them over the wire); Apache Kafka's responses are
recorded, in the states that clients can bring it into. ``ON_PURPOSE`` must contain every
difference.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.coordinator.transactions.commands import (
    AddPartitions,
    EndTransaction,
    InitProducer,
    Outcome,
)
from barnabas.coordinator.transactions.state import TRANSACTIONS_V2, Transaction
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.add_partitions_to_txn import ADD_PARTITIONS_TO_TXN
from barnabas.protocol.messages.describe_transactions import (
    DESCRIBE_TRANSACTIONS,
    DescribeTransactionsRequest,
)
from barnabas.protocol.messages.end_txn import END_TXN, EndTxnRequest
from barnabas.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from barnabas.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from barnabas.protocol.messages.produce import PRODUCE
from barnabas.protocol.records import Record, encode_batch
from tests.coordinator.transactions.states import STATES, command_of
from tests.coordinator.transactions.table import COMMANDS, ROWS, Names, shown_outcome
from tests.counterparts.apache_kafka import ApacheKafka
from tests.counterparts.broker_process import BrokerProcess
from tests.counterparts.wire_client import WireClient
from tests.interop.administration import create
from tests.requests import add_partitions_request, added_codes, produce_request, produced
from tests.waiting import wait_until

pytestmark = [pytest.mark.timeout(600), pytest.mark.filterwarnings("ignore")]

E = ErrorCode
PATIENCE_SECONDS = 60
BUSY = {
    E.CONCURRENT_TRANSACTIONS,
    E.COORDINATOR_LOAD_IN_PROGRESS,
    E.COORDINATOR_NOT_AVAILABLE,
    E.NOT_COORDINATOR,
    E.UNKNOWN_TOPIC_OR_PARTITION,
    E.NOT_LEADER_OR_FOLLOWER,
}

REACHED = [
    "nothing",
    "empty",
    "bumped",
    "ongoing1",
    "ongoing2",
    "commit1",
    "commit2",
    "abort1",
    "abort2",
    "empty-abort",
]
"""States that clients can bring a broker into, and in which nothing is in flight."""

ASKED = [
    each
    for each in COMMANDS
    if each.startswith(("InitProducerId", "AddPartitionsToTxn v0-5", "EndTxn"))
    and not ("EndTxn" in each and each.endswith(("stale", "ahead")))
    and not ("p1" in each and each.endswith(("stale", "ahead")))
]

ZOMBIE = "whoever knows the producer id aborts the transaction of who came after it"
FENCED = "a fenced producer is told of a transaction that was not its own"
LATER = "later versions of Apache Kafka answer like Barnabas (KAFKA-20785)"

ON_PURPOSE: dict[tuple[str, str], tuple[str, str]] = {
    (f"InitProducerId v3-6 {who}", state): (E.CONCURRENT_TRANSACTIONS.name, ZOMBIE)
    for who in ("retry", "stale", "ahead")
    for state in ("ongoing1", "ongoing2")
} | {
    ("EndTxn v5 commit retry", "commit1"): ("NONE A:3", FENCED),
    ("EndTxn v5 commit retry", "abort1"): (E.INVALID_TXN_STATE.name, FENCED),
    ("EndTxn v5 abort retry", "commit1"): (E.INVALID_TXN_STATE.name, FENCED),
    ("EndTxn v5 abort retry", "abort1"): ("NONE A:3", FENCED),
    ("EndTxn v5 commit retry", "abort2"): (E.INVALID_TXN_STATE.name, LATER),
    ("EndTxn v5 commit retry", "empty-abort"): (E.INVALID_TXN_STATE.name, LATER),
}
"""By command and state: what Apache Kafka answers, and why Barnabas does not."""


class Asker:
    """One transactional id of a broker."""

    def __init__(self, client: WireClient, key: str) -> None:
        self.client = client
        self.key = key

    def do(self, command: Any) -> Outcome:
        """Repeat the command until the broker is not busy; return its outcome."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (outcome := self.ask(command)).error in BUSY:
            assert time.monotonic() < deadline, outcome
            time.sleep(0.002)
        assert outcome.error == E.NONE, (command, outcome)
        return outcome

    def fresh(self) -> int:
        return -1  # The broker has its own.

    def withhold(self) -> None:
        raise NotImplementedError

    def plant(self, transaction: Transaction) -> None:
        raise NotImplementedError(transaction)

    def settle(self) -> None:
        """Wait until nothing is in flight."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self.state().startswith("Prepare"):
            assert time.monotonic() < deadline
            time.sleep(0.002)

    def state(self) -> str:
        request = DescribeTransactionsRequest([self.key])
        (found,) = self.client.ask(DESCRIBE_TRANSACTIONS, request, 0).transaction_states
        return found.transaction_state

    def ask(self, command: Any) -> Outcome:
        if isinstance(command, InitProducer):
            expected = (command.expected_producer_id, command.expected_epoch)
            request = InitProducerIdRequest(self.key, command.timeout_ms, *expected)
            answer = self.client.ask(INIT_PRODUCER_ID, request, 5)
            return Outcome(E(answer.error_code), answer.producer_id, answer.producer_epoch)
        producer = (command.producer_id, command.producer_epoch)
        if isinstance(command, EndTransaction):
            version = 5 if command.transaction_version == TRANSACTIONS_V2 else 4
            request = EndTxnRequest(self.key, *producer, command.commit)
            answer = self.client.ask(END_TXN, request, version)
            return Outcome(E(answer.error_code), answer.producer_id, answer.producer_epoch)
        assert isinstance(command, AddPartitions)
        ((topic, index),) = command.partitions
        if command.transaction_version == TRANSACTIONS_V2:
            return Outcome(self.produce(producer, topic, index))
        asked = add_partitions_request(self.key, producer, (topic, index))
        (code,) = added_codes(self.client.ask(ADD_PARTITIONS_TO_TXN, asked, 3))
        return Outcome(E(code))

    def produce(self, producer: tuple[int, int], topic: str, index: int) -> ErrorCode:
        batch = encode_batch(
            [Record(0, 1_700_000_000_000, b"k", b"v", ())],
            producer_id=producer[0],
            producer_epoch=producer[1],
            base_sequence=0,
            transactional=True,
        )
        request = produce_request({(topic, index): batch}, transactional_id=self.key)
        return E(produced(self.client.ask(PRODUCE, request, 12)).error_code)


@pytest.fixture(scope="module")
def live_kafka(tmp_path_factory) -> Iterator[BrokerProcess]:
    directory = tmp_path_factory.mktemp("transactions-like-kafka")
    with ApacheKafka(directory) as broker:
        # The records are old: half a minute after its start Kafka would delete them.
        kept = {"retention.ms": "-1"}
        create(broker.bootstrap_servers, "a", partitions=2, configs=kept)
        with WireClient(broker) as client:
            client.ask(FIND_COORDINATOR, FindCoordinatorRequest("t", 1), 3)
            Asker(client, "first").do(InitProducer("first", 1000))
            wait_until(lambda: _knows_of_nobody(client), "every coordinator has loaded")
        yield broker


def _knows_of_nobody(client: WireClient) -> bool:
    """Return whether the broker has loaded all partitions: it reports unknown ids."""
    request = DescribeTransactionsRequest([f"nobody-{number}" for number in range(100)])
    found = client.ask(DESCRIBE_TRANSACTIONS, request, 0).transaction_states
    return {each.error_code for each in found} == {E.TRANSACTIONAL_ID_NOT_FOUND}


def cells(broker: BrokerProcess, command: str) -> dict[str, str]:
    """Return the outcome of a command in each state, as the table shows it."""
    found = {}
    with WireClient(broker) as client:
        for state in REACHED:
            asker = Asker(client, f"{state} {command}")
            who = STATES[state](asker)
            asker.settle()
            outcome = asker.ask(command_of(command, asker.key, who, -1))
            found[state] = shown_outcome(outcome, Names(who))
    return found


@pytest.mark.parametrize("command", ASKED)
def test_apache_kafka_answers_by_the_table(kafka, command):
    wanted = {}
    found = kafka.observe(command, lambda broker: cells(broker, command))
    for state in REACHED:
        wanted[state] = ON_PURPOSE.get((command, state), ROWS[command, state])[0]
        if (command, state) in ON_PURPOSE:
            assert found[state] != ROWS[command, state][0], "not a difference any more"
    assert found == wanted
