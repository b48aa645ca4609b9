"""kill -9 at every point of a transaction: the state afterwards, and the client's next steps.

One test for each row of the crash table. The broker is a process with failpoints: it dies with
exactly the prefix of its journal that the row is about. The client's retry is a raw request;
afterwards a real client commits under the same transactional id, nothing hangs on any partition,
and the logs of all requests that this broker received hold all invariants.

Rows 1 to 18 are crashes of one node. Row 19 is about two, of which the older writes a marker late.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import groupby
from pathlib import Path

import pytest

from barnabas.broker.coordination.shard import decision_batch
from barnabas.coordinator.decision import Decision
from barnabas.coordinator.transactions.state import (
    CLASSIC,
    LARGEST_CLIENT_EPOCH,
    LARGEST_EPOCH,
    TRANSACTIONS_V2,
    State,
    Transaction,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from barnabas.protocol.messages.write_txn_markers import (
    WRITE_TXN_MARKERS,
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from barnabas.testing import Broker
from tests.counterparts.broker_process import BrokerDied
from tests.counterparts.wire_client import WireClient
from tests.crash.failing_broker import FailingBroker
from tests.crash.transaction_client import (
    Producer,
    committed_offset,
    ends,
    history,
    persistent,
    producers,
    wait_until_loaded,
)
from tests.history.logs import Ended, TransactionHistory
from tests.interop.transactional import Confluent
from tests.requests import create_topic
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(600)

NONE = ErrorCode.NONE
PARTITIONS = 3
# Each row in both generations and with both decisions, but not everything with everything.
BOTH = pytest.mark.parametrize(
    ("generation", "commit"),
    [(CLASSIC, False), (TRANSACTIONS_V2, True)],
    ids=["tv1-abort", "tv2-commit"],
)
GENERATIONS = pytest.mark.parametrize("generation", [CLASSIC, TRANSACTIONS_V2], ids=["tv1", "tv2"])
DECISIONS = pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
COMPLETE = {True: State.COMPLETE_COMMIT, False: State.COMPLETE_ABORT}
PREPARE = {True: State.PREPARE_COMMIT, False: State.PREPARE_ABORT}
SETTINGS = {
    "transaction.state.log.num.partitions": "3",
    "offsets.topic.num.partitions": "3",
    "barnabas.journal.file.bytes": str(4 << 20),
    "barnabas.journal.max.bytes": str(32 << 20),
    "barnabas.checkpoint.journal.bytes": str(8 << 20),
}


class Stage:
    """One row's topic and transactional id, and the broker that dies under them."""

    def __init__(self, broker: FailingBroker, name: str) -> None:
        self.broker = broker
        self.topic = self.key = name
        self.places = [(name, index) for index in range(PARTITIONS)]
        self.client = WireClient(broker)
        create_topic(self.client, name, PARTITIONS)

    def producer(self, generation: int) -> Producer:
        return Producer(self.client, self.key, generation)

    def crash(
        self,
        failpoints: str,
        request: Callable[[], object],
        producer: Producer,
        *,
        torn: bool = False,
    ) -> None:
        """Kill the broker at a failpoint in the middle of a request; start it again."""
        self.broker.arm(failpoints)
        with pytest.raises(OSError):
            request()
        self.broker.wait_for_death()
        if torn:
            self.broker.tear_last_group()
        self.restart(producer)

    def restart(self, producer: Producer) -> None:
        self.client.close()
        self.broker.restart()
        producer.client = self.client = WireClient(self.broker)
        wait_until_loaded(self.client)

    def history(self) -> TransactionHistory:
        return history(self.client)

    def records(self) -> list[Transaction | None]:
        """Every record of this row's id."""
        return self.history().states[self.key]

    def states(self) -> list[State | None]:
        """The states that this row's id has gone through; ONGOING grows with each partition."""
        return [state for state, _ in groupby(each and each.state for each in self.records())]

    def latest(self) -> Transaction:
        return self.history().latest(self.key)

    def markers(self, producer: tuple[int, int]) -> list[list[Ended]]:
        """The markers of a producer on each partition."""
        found = self.history().partitions
        return [
            [marker for marker in found[place].markers if marker.producer == producer]
            for place in self.places
        ]

    def values(self) -> list[bytes]:
        """All that a READ_COMMITTED reader gets of the topic, partition after partition."""
        values = self.history().values(self.topic)
        return [value for index in sorted(values) for value in values[index]]

    def go_on(self) -> None:
        """Commit as a real client under the same id; nothing stays open or unwritten."""
        confluent = Confluent(self.broker.bootstrap_servers, self.key)
        confluent.begin()
        for topic, index in self.places:
            confluent.send(topic, index, b"went on")
        confluent.commit()
        confluent.close()
        found = self.history()
        found.check_complete(self.topic, self.key)
        for values in found.values(self.topic).values():
            assert values[-1] == b"went on"
        for place in self.places:
            stable, end = ends(self.client, place)
            assert stable == end
            rows = producers(self.client, place).values()
            assert all(row.current_txn_start_offset == -1 for row in rows)


@pytest.fixture(scope="module")
def one_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FailingBroker]:
    directory: Path = tmp_path_factory.mktemp("crashes")
    with FailingBroker(directory, **SETTINGS) as running:
        yield running


@pytest.fixture
def stage(one_broker: FailingBroker, request: pytest.FixtureRequest) -> Iterator[Stage]:
    name = "".join(each if each.isalnum() else "-" for each in request.node.name).strip("-")
    stage = Stage(one_broker, name)
    yield stage
    stage.client.close()


def test_row_1_a_producer_id_whose_record_is_lost_is_a_gap(stage):
    producer = stage.producer(CLASSIC)
    stage.crash("InitProducer:lose", producer.init, producer)
    assert stage.key not in stage.history().states
    assert persistent(producer.init) == NONE
    assert producer.epoch == 0
    stage.go_on()


@pytest.mark.parametrize("expected", [True, False], ids=["expected", "anew"])
def test_row_2_a_bump_whose_answer_is_lost_is_recognised_when_asked_for_again(stage, expected):
    producer = stage.producer(CLASSIC)
    assert persistent(producer.init) == NONE
    first = producer.identity
    stage.crash("InitProducer:keep", lambda: producer.init(expected=expected), producer)
    assert stage.latest().producer == (first[0], first[1] + 1)
    assert persistent(lambda: producer.init(expected=expected)) == NONE
    assert producer.identity == (first[0], first[1] + (1 if expected else 2))
    stage.go_on()


def test_row_3_partitions_whose_record_is_lost_are_added_again(stage):
    producer = stage.producer(CLASSIC)
    assert persistent(producer.init) == NONE
    stage.crash("AddPartitions:lose", lambda: producer.add(*stage.places), producer)
    assert stage.states() == [State.EMPTY]
    producer.open(*stage.places)
    assert producer.end() == NONE
    assert len(stage.values()) == PARTITIONS
    stage.go_on()


def test_row_4_partitions_that_are_there_are_not_written_again(stage):
    producer = stage.producer(CLASSIC)
    assert persistent(producer.init) == NONE
    stage.crash("AddPartitions:keep", lambda: producer.add(*stage.places), producer)
    begun = stage.latest()
    assert begun.state == State.ONGOING
    assert begun.partitions == set(stage.places)
    assert producer.add(*stage.places) == NONE
    assert len(stage.records()) == 2
    producer.open(*stage.places)
    assert stage.latest() == begun, "the clock of the transaction goes on from its start"
    assert producer.end() == NONE
    stage.go_on()


@DECISIONS
def test_row_5_added_by_a_write_that_is_lost(stage, commit):
    producer = stage.producer(TRANSACTIONS_V2)
    assert persistent(producer.init) == NONE
    place = stage.places[0]
    stage.crash("AddPartitions:keep", lambda: producer.write(place, b"v"), producer)
    assert stage.states() == [State.EMPTY, State.ONGOING]
    assert ends(stage.client, place) == (0, 0)
    if commit:
        assert producer.write(place, b"v") == (NONE, 0)
    assert producer.end(commit=commit) == NONE
    assert stage.values() == ([b"v"] if commit else [])
    assert ends(stage.client, place) == (2, 2) if commit else (1, 1)
    stage.go_on()


@pytest.mark.parametrize(
    ("generation", "torn"), [(CLASSIC, False), (TRANSACTIONS_V2, True)], ids=["lost", "torn"]
)
def test_row_6_data_that_is_lost_or_torn_is_accepted_again(stage, generation, torn):
    producer = stage.producer(generation)
    producer.begin(stage.places[1])
    place = stage.places[0]
    assert producer.add(place) == NONE
    action = "keep" if torn else "lose"
    stage.crash(f"Data:{action}", lambda: producer.write(place, b"v"), producer, torn=torn)
    assert ends(stage.client, place) == (0, 0)
    assert ends(stage.client, stage.places[1]) == (0, 1)
    assert producer.write(place, b"v") == (NONE, 0)
    assert producer.end() == NONE
    assert len(stage.values()) == 2
    stage.go_on()


@GENERATIONS
def test_row_7_data_whose_answer_is_lost_is_found_to_be_there(stage, generation):
    producer = stage.producer(generation)
    producer.begin(stage.places[1])
    place = stage.places[0]
    assert producer.add(place) == NONE
    stage.crash("Data:keep", lambda: producer.write(place, b"1", b"2"), producer)
    assert ends(stage.client, place) == (0, 2)
    row = producers(stage.client, place)[producer.producer_id]
    assert (row.producer_epoch, row.last_sequence) == (producer.epoch, 1)
    assert row.current_txn_start_offset == 0
    assert producer.write(place, b"1", b"2") == (NONE, 0)
    assert producer.write(place, b"3") == (NONE, 2)
    assert producer.end() == NONE
    assert stage.values()[:3] == [b"1", b"2", b"3"]
    stage.go_on()


@GENERATIONS
def test_row_8_an_open_transaction_continues(stage, generation):
    producer = stage.producer(generation)
    producer.begin(*stage.places)
    stage.broker.kill()
    stage.restart(producer)
    assert stage.latest().state == State.ONGOING
    producer.open(*stage.places)
    assert producer.end() == NONE
    assert len(stage.values()) == 2 * PARTITIONS
    stage.go_on()


@GENERATIONS
def test_row_9_a_decision_that_is_lost_is_taken_again(stage, generation):
    producer = stage.producer(generation)
    producer.begin(*stage.places)
    stage.crash("EndTransaction:lose", producer.end, producer)
    assert stage.latest().state == State.ONGOING
    assert producer.end() == NONE
    assert len(stage.values()) == PARTITIONS
    stage.go_on()


ONCE, TWICE = [True], [True, False]
DECIDED = {
    "row-10-decided": ("EndTransaction:keep", [ONCE, ONCE, ONCE]),
    "row-11-some": ("Marker#2:keep", [TWICE, TWICE, ONCE]),
    "row-12-torn": ("EndTransaction:sync,Marker:keep", [ONCE, ONCE, ONCE]),
    "row-13-all": ("Marker#3:keep", [TWICE, TWICE, TWICE]),
    "row-14-complete": ("MarkersWritten:keep", [ONCE, ONCE, ONCE]),
}
# Each row once; the rows together meet each generation with each decision.
MET = [
    ("row-10-decided", CLASSIC, False),
    ("row-11-some", TRANSACTIONS_V2, True),
    ("row-12-torn", CLASSIC, True),
    ("row-13-all", TRANSACTIONS_V2, False),
    ("row-14-complete", TRANSACTIONS_V2, True),
]


@pytest.mark.parametrize(("row", "generation", "commit"), MET, ids=[each[0] for each in MET])
def test_rows_10_to_14_a_decision_stands(stage, generation, commit, row):
    """``found``: for each marker of each partition, whether it ended something."""
    failpoints, found = DECIDED[row]
    producer = stage.producer(generation)
    producer.begin(*stage.places)
    begun, wanted = producer.identity, producer.epoch + (generation == TRANSACTIONS_V2)
    before = stage.history().highest_coordinator_epoch
    stage.crash(failpoints, lambda: producer.end(commit=commit), producer, torn="torn" in row)
    # Before any client sends a request: the start finishes it, with an epoch of its own (C6, D6).
    wait_until(lambda: stage.latest().state == COMPLETE[commit])
    assert stage.states() == [State.EMPTY, State.ONGOING, PREPARE[commit], COMPLETE[commit]]
    completed = stage.latest()
    markers = stage.markers((begun[0], wanted))
    assert [[each.had_data for each in partition] for partition in markers] == found
    if "MarkersWritten" not in failpoints:
        assert all(partition[-1].coordinator_epoch > before for partition in markers)
    assert producer.end(commit=commit) == NONE
    assert producer.identity == (begun[0], wanted)
    assert stage.latest() == completed, "the retry has changed something"
    assert stage.producer(generation).be(*begun).end(commit=not commit) != NONE
    assert len(stage.values()) == (PARTITIONS if commit else 0)
    stage.go_on()


def preset_epoch(broker: FailingBroker, producer: Producer, epoch: int) -> None:
    """Write a record that has a producer near the end of its epochs."""
    assert broker.terminate() == 0
    with Broker(storage=broker.data_directory) as inner:

        def write() -> None:
            transactions = inner.server.transactions
            shard = transactions.log.shard_of(producer.key)
            present = transactions.transaction(producer.key)
            assert present is not None
            record = shard.machine.record(present._replace(producer_epoch=epoch))
            shard.log.append_records(decision_batch(Decision(records=(record,)), 0))

        inner.call(write)


@pytest.mark.parametrize(
    ("commit", "failpoint"), [(True, "EndTransaction:keep"), (False, "MarkersWritten:keep")]
)
def test_row_15_the_epochs_are_used_up(stage, commit, failpoint):
    producer = stage.producer(TRANSACTIONS_V2)
    assert persistent(producer.init) == NONE
    preset_epoch(stage.broker, producer, LARGEST_CLIENT_EPOCH - 1)
    stage.restart(producer)
    assert persistent(producer.init) == NONE
    old = producer.identity
    assert old[1] == LARGEST_CLIENT_EPOCH
    producer.open(*stage.places)
    stage.crash(failpoint, lambda: producer.end(commit=commit), producer)
    wait_until(lambda: stage.latest().state == COMPLETE[commit])
    latest = stage.latest()
    assert latest.producer_id > old[0]
    assert latest.producer_epoch == 0
    assert all(stage.markers((old[0], LARGEST_EPOCH)))
    assert producer.end(commit=commit) == NONE
    assert producer.identity == latest.producer
    producer.open(*stage.places)
    assert producer.end() == NONE
    assert len(stage.values()) == PARTITIONS * (1 + commit)
    stage.go_on()


def test_row_16_an_id_that_was_forgotten_stays_forgotten(tmp_path):
    expiring = {
        "transactional.id.expiration.ms": "1",
        "transaction.remove.expired.transaction.cleanup.interval.ms": "100",
    }
    with FailingBroker(tmp_path, **SETTINGS) as broker:
        stage = Stage(broker, "expired")
        producer = stage.producer(TRANSACTIONS_V2)
        producer.begin(*stage.places)
        assert producer.end() == NONE
        first = producer.identity
        broker.kill()
        broker.arm("Expire:keep")
        kept, broker.overrides = broker.overrides, broker.overrides | expiring
        with suppress(BrokerDied):  # It may die before it has answered anything.
            broker.restart()
        broker.wait_for_death()
        broker.overrides = kept
        stage.restart(producer)
        assert stage.states()[-1] is None
        assert producer.end() == ErrorCode.INVALID_PRODUCER_ID_MAPPING
        assert producer.write(stage.places[0], b"v")[0] == ErrorCode.INVALID_PRODUCER_ID_MAPPING
        assert persistent(producer.init) == NONE
        assert producer.producer_id > first[0]
        stage.go_on()
        stage.client.close()


def pending(stage: Stage, producer: Producer, failpoint: str) -> None:
    """Open a transaction and let the broker die of its offsets."""
    found = stage.client.ask(FIND_COORDINATOR, FindCoordinatorRequest(stage.key), 3)
    assert found.error_code == NONE
    producer.begin(*stage.places)
    place = stage.places[0]
    stage.crash(failpoint, lambda: producer.send_offsets(stage.key, place, 7), producer)


@BOTH
def test_row_17_offsets_stay_pending(stage, generation, commit):
    producer = stage.producer(generation)
    pending(stage, producer, "TransactionalOffsetCommit:keep")
    assert committed_offset(stage.client, stage.key, stage.places[0], wait=False) is None
    assert producer.end(commit=commit) == NONE
    assert committed_offset(stage.client, stage.key, stage.places[0]) == (7 if commit else -1)
    stage.go_on()


@GENERATIONS
def test_row_18_offsets_whose_marker_is_there_are_committed(stage, generation):
    producer = stage.producer(generation)
    producer.begin(*stage.places)
    assert (
        stage.client.ask(FIND_COORDINATOR, FindCoordinatorRequest(stage.key), 3).error_code == NONE
    )
    place = stage.places[0]
    assert producer.send_offsets(stage.key, place, 7) == NONE
    # The markers go in the order of the topics' names: that of __consumer_offsets is the first.
    stage.crash("Marker:keep", producer.end, producer)
    assert committed_offset(stage.client, stage.key, place, wait=False) == 7
    wait_until(lambda: stage.latest().state.is_idle)
    assert producer.end() == NONE
    stage.go_on()


@GENERATIONS
def test_row_19_a_marker_of_an_older_coordinator_leaves_no_trace(stage, generation):
    producer = stage.producer(generation)
    producer.begin(*stage.places)
    stage.crash("EndTransaction:keep", producer.end, producer)
    wait_until(lambda: stage.latest().state.is_idle)
    place = stage.places[0]
    (row,) = producers(stage.client, place).values()
    markers = stage.markers((row.producer_id, row.producer_epoch))
    late = WritableTxnMarker(
        *(row.producer_id, row.producer_epoch),
        transaction_result=False,
        topics=[WritableTxnMarkerTopic(stage.topic, [0])],
        coordinator_epoch=row.coordinator_epoch - 1,
        transaction_version=generation,
    )
    answer = stage.client.ask(WRITE_TXN_MARKERS, WriteTxnMarkersRequest([late]), 2)
    (result,) = answer.markers[0].topics[0].partitions
    assert result.error_code == ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert stage.markers((row.producer_id, row.producer_epoch)) == markers
    assert producer.end() == NONE
    stage.go_on()
