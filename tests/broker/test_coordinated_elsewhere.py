"""Transactions whose coordinator is one broker, and their partitions another's, over the wire."""

from __future__ import annotations

from dataclasses import replace

import pytest

from barnabas.broker.metadata.topic_names import GROUP_OFFSETS, TRANSACTION_STATE
from barnabas.protocol.compression import LZ4
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from barnabas.protocol.messages.metadata import METADATA, MetadataRequest
from barnabas.protocol.messages.produce import PRODUCE
from barnabas.storage.log.transaction_marker import TransactionMarker
from barnabas.testing import Broker
from tests.broker.data_plane import Named, Wire, batch
from tests.broker.held_markers import Markers
from tests.broker.moves import log_of
from tests.broker.raw_producer import RawProducer
from tests.broker.security.access_users import AUTHORIZER
from tests.cluster.held import HeldResponses
from tests.cluster.watched import WatchedCluster, alternating, coordinated_key, topic_id
from tests.products import case
from tests.waiting import wait_until
from tests.worlds import world

__all__ = ["world"]

TOPIC = Named("t", topic_id(1))
MANY = Named("many", topic_id(4))
PARTITIONS = {TOPIC.name: 4, TRANSACTION_STATE: 4, GROUP_OFFSETS: 4, MANY.name: 600}
NONE = ErrorCode.NONE
VERSIONS = [3, 8, 10, 11, 12, 13]
CLASSIC = [3, 10, 11]
IMPLICIT = [12, 13]
EITHER = pytest.mark.parametrize("version", [case(11, in_test=False), case(12, in_test=True)])
"""For tests whose brokers are started, stopped and killed."""


class Remote(RawProducer):
    """A producer whose coordinator is the second broker, and whose data go to the first."""

    def __init__(self, data: Wire, coordinator: Wire, name: str, version: int) -> None:
        self.data = data
        super().__init__(coordinator, name, version)

    def send(self, *given, **more):
        coordinator, self.wire = self.wire, self.data
        try:
            return super().send(*given, **more)
        finally:
            self.wire = coordinator

    def ask(self, *given, **more):
        coordinator, self.wire = self.wire, self.data
        try:
            return super().ask(*given, **more)
        finally:
            self.wire = coordinator


def remote(brokers, name, version):
    """A producer that is connected to both."""
    data, coordinator = (Wire(each.address) for each in brokers)
    return Remote(data, coordinator, coordinated_key(2, name), version)


def close(producer):
    producer.data.socket.close()
    producer.wire.socket.close()


@pytest.fixture(scope="module")
def cluster():
    with alternating(PARTITIONS) as running:
        yield running


@pytest.fixture(scope="module")
def brokers(cluster):
    return cluster.brokers


@pytest.fixture
def producer(brokers, request, version):
    made = remote(brokers, request.node.name, version)
    yield made
    close(made)


@pytest.fixture
def held(world, brokers):
    with HeldResponses(world, brokers[1]) as responses:
        yield responses


def transaction(brokers, producer):
    coordinator = brokers[1]
    return coordinator.call(lambda: coordinator.server.transactions.transaction(producer.name))


def is_open(brokers, producer, partition):
    log = log_of(brokers[0], TOPIC.name, partition)
    return brokers[0].call(lambda: log.producers.has_open_transaction(producer.producer_id))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_first_batch_is_verified_or_added_elsewhere(brokers, producer):
    assert producer.add(TOPIC, 0, 2) == NONE
    for number in range(3):
        assert producer.send(TOPIC, b"%d" % number).error_code == NONE
    assert producer.ask((TOPIC, (2, producer.batch(TOPIC, partition=2)))) == [NONE]
    assert transaction(brokers, producer).partitions == {(TOPIC.name, 0), (TOPIC.name, 2)}
    assert is_open(brokers, producer, 0)
    assert is_open(brokers, producer, 2)


@pytest.mark.parametrize("version", VERSIONS)
def test_partitions_of_a_request_are_asked_about_together(brokers, producer, held):
    assert producer.add(TOPIC, 0, 2) == NONE
    batches = [(at, producer.batch(TOPIC, partition=at)) for at in (0, 2)]
    assert producer.ask((TOPIC, *batches)) == [NONE, NONE]
    (request,) = held.asked
    (asked,) = request.transactions
    assert asked.verify_only == producer.is_classic
    assert [(each.name, sorted(each.partitions)) for each in asked.topics] == [(TOPIC.name, [0, 2])]
    # The broker sends no second query about known partitions of the transaction.
    batches = [(at, producer.batch(TOPIC, partition=at)) for at in (0, 2)]
    assert producer.ask((TOPIC, *batches)) == [NONE, NONE]
    assert len(held.asked) == 1


@pytest.mark.parametrize("version", [11, 12])
def test_a_request_of_very_many_batches_is_asked_about_in_parts(brokers, producer, held):
    led_here = range(0, 600, 2)
    assert producer.add(MANY, *led_here) == NONE
    batches = [(at, producer.batch(MANY, partition=at)) for at in led_here]
    assert producer.ask((MANY, *batches)) == [NONE] * 300
    sizes = [
        len(topic.partitions)
        for request in held.asked
        for asked in request.transactions
        for topic in asked.topics
    ]
    assert sizes == [200, 100]


@pytest.mark.parametrize("version", [11, 12])
def test_a_batch_that_a_thread_looks_into_is_asked_about_behind_that(
    brokers, producer, held, monkeypatch
):
    assert producer.add(TOPIC, 0) == NONE
    inspector = brokers[0].server.inspector
    inspect, inspected = inspector.inspect, []
    noted = lambda work: (inspected.append(len(held.asked)), inspect(work))  # noqa: E731
    monkeypatch.setattr(inspector, "inspect", noted)
    large = [b"v" * 100] * 30_000
    assert producer.send(TOPIC, *large, compression=LZ4).error_code == NONE
    assert inspected == [0]
    assert len(held.asked) == 1
    assert is_open(brokers, producer, 0)


@pytest.mark.parametrize("version", VERSIONS)
def test_batch_after_waiting_batch_is_appended_after_it_s12(brokers, producer, held):
    assert producer.add(TOPIC, 0) == NONE
    held.hold()
    for _ in range(3):
        first_batch(producer)
    producer.data.send(METADATA, MetadataRequest([]), 12)
    held.wait_for_one()
    end = brokers[0].call(lambda: log_of(brokers[0], TOPIC.name, 0).next_offset)
    held.let_go()
    answers = [producer.data.receive() for _ in range(4)]
    results = [answer.responses[0].partition_responses[0] for answer in answers[:3]]
    assert [(each.error_code, each.base_offset - end) for each in results] == [
        (NONE, 0),
        (NONE, 1),
        (NONE, 2),
    ]
    assert answers[3].brokers
    assert len(held.asked) == 1


# ------------------------------------------------------- while the transaction before is ending


WAIT_MS = 60_000


@pytest.fixture
def patient():
    """Yield two brokers without a limit on the wait for the end of a transaction."""
    with alternating(PARTITIONS, **{"barnabas.transaction.wait.ms": str(WAIT_MS)}) as running:
        yield running.brokers


def ending(brokers, name, markers, version):
    """Return a producer with a decided transaction at the second broker and pending markers."""
    producer = remote(brokers, coordinated_key(2, name), version)
    data, producer.data = producer.data, producer.wire
    producer.begin(TOPIC, partition=1)
    producer.data = data
    markers.stop()
    producer.end()
    return producer


@pytest.mark.parametrize("version", IMPLICIT)
def test_coordinator_is_queried_until_earlier_transaction_ends(
    world, patient, monkeypatch, version
):
    markers, held = Markers(monkeypatch), HeldResponses(world, patient[1])
    producer = ending(patient, "ending", markers, version)
    first_batch(producer)
    wait_until(lambda: len(held.asked) > 2)
    assert held_bytes(patient[0])
    markers.go_on()
    assert produced(producer.data.receive()) == NONE
    assert held_bytes(patient[0]) == 0
    assert is_open(patient, producer, 0)
    close(producer)


@EITHER
def test_coordinator_queries_end_at_timeout(world, patient, monkeypatch, version):
    markers, held = Markers(monkeypatch), HeldResponses(world, patient[1])
    producer = ending(patient, "ending", markers, version)
    first_batch(producer)
    wait_until(lambda: held.asked)
    if version >= 12:
        wait_until(lambda: len(held.asked) > 1)
        patient[0].clock.advance(milliseconds=WAIT_MS)
        expected = {ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NOT_ENOUGH_REPLICAS}
    else:
        expected = {ErrorCode.NOT_ENOUGH_REPLICAS}
    assert produced(producer.data.receive()) in expected
    assert len(patient[0].server.remote_coordinators) == 0
    markers.go_on()
    close(producer)


# ------------------------------------------------------------------------ lives of both brokers


@EITHER
def test_after_a_restart_it_is_asked_once_more(world, version):
    with alternating(PARTITIONS) as cluster:
        brokers = first, second = cluster.brokers
        producer = remote(brokers, "restarted", version)
        producer.begin(TOPIC, b"before")
        cluster.kill(0)
        cluster.restart(0)
        cluster.alternate(*PARTITIONS)
        producer.data.socket.close()
        producer.data = Wire(first.address)
        held = HeldResponses(world, second)
        assert is_open(brokers, producer, 0)
        for number in range(2):
            assert producer.send(TOPIC, b"%d" % number).error_code == NONE
            assert len(held.asked) == 1
        assert guards_of(first, producer) == 1
        close(producer)


@EITHER
def test_producer_retries_during_an_outage_of_the_coordinator(version):
    with alternating(PARTITIONS) as cluster:
        brokers = cluster.brokers
        producer = remote(brokers, "away", version)
        assert producer.add(TOPIC, 0) == NONE
        cluster.kill(1, expire=False)
        assert producer.send(TOPIC, sequence=0).error_code == ErrorCode.NOT_ENOUGH_REPLICAS
        cluster.restart(1)
        cluster.alternate(*PARTITIONS)
        wait_until(lambda: producer.send(TOPIC, sequence=0).error_code == NONE)
        assert transaction(brokers, producer).partitions == {(TOPIC.name, 0)}
        close(producer)


@EITHER
def test_a_coordinator_that_dies_before_it_answers_has_said_nothing(version):
    with alternating(PARTITIONS) as cluster:
        brokers = _, second = cluster.brokers
        producer = remote(brokers, "dies", version)
        assert producer.add(TOPIC, 0) == NONE
        log, waiting = second.server.transactions.log, []
        second.call(lambda: setattr(log, "when_durable", lambda _, waiter: waiting.append(waiter)))
        first_batch(producer)
        wait_until(lambda: waiting)
        cluster.kill(1, expire=False)
        assert produced(producer.data.receive()) == ErrorCode.NOT_ENOUGH_REPLICAS
        assert not is_open(brokers, producer, 0)
        cluster.restart(1)
        cluster.alternate(*PARTITIONS)
        wait_until(lambda: producer.send(TOPIC, sequence=0).error_code == NONE)
        close(producer)


@EITHER
def test_a_broker_that_stops_does_not_wait_for_an_answer(world, version):
    with alternating(PARTITIONS) as cluster:
        brokers = first, second = cluster.brokers
        producer, held = remote(brokers, "stops", version), HeldResponses(world, second)
        assert producer.add(TOPIC, 0) == NONE
        held.hold()
        first_batch(producer)
        held.wait_for_one()
        remote_coordinators = first.server.remote_coordinators
        cluster.stop(0)
        assert producer.data.hung_up()
        held.let_go()  # No broker acts on the responses that arrive now.
        assert len(remote_coordinators) == 0
        cluster.restart(0)
        cluster.alternate(*PARTITIONS)
        assert not is_open(brokers, producer, 0)
        close(producer)


@pytest.mark.parametrize("version", [11])
def test_guards_are_dropped_with_deleted_log(version):
    """Deleted with its topic here; a refused flush says so by a callback of its own."""
    with alternating(PARTITIONS) as cluster:
        brokers = first, _ = cluster.brokers
        producer = remote(brokers, "deleted", version)
        producer.begin(TOPIC)
        producer.begin(MANY)
        assert guards_of(first, producer) == 2
        first._do(first.server.catalogue.delete_topic(TOPIC.id))
        assert guards_of(first, producer) == 1
        log = log_of(first, MANY.name, 0)
        first.call(lambda: first.server.logs.callbacks.on_forgotten([log], frozenset()))
        assert guards_of(first, producer) == 0
        close(producer)


def plain(wire, producer_id, sequence=0, *, partition=0, epoch=0):
    """Write outside of transactions; return the error."""
    more = {"producer_id": producer_id, "producer_epoch": epoch, "base_sequence": sequence}
    return wire.produce(TOPIC, batch(b"v", **more), version=9, partition=partition).error_code


@pytest.mark.parametrize("version", [11, 12])
def test_other_client_cannot_write_as_known_transactional_producer(world, version):
    """A broker with access control knows ids of other coordinators by their earlier requests."""
    settings = {"authorizer.class.name": AUTHORIZER, "super.users": "User:ANONYMOUS"}
    with alternating(PARTITIONS, **settings) as cluster:
        brokers = first, second = cluster.brokers
        producer, held = remote(brokers, "controlled", version), HeldResponses(world, second)
        mapping = ErrorCode.INVALID_PRODUCER_ID_MAPPING
        with Wire(first.address) as other:
            ids = [other.ask(INIT_PRODUCER_ID, InitProducerIdRequest(None), 4) for _ in range(3)]
            mine = max(each.producer_id for each in ids)
            assert mine != producer.producer_id
            assert producer.add(TOPIC, 0) == NONE
            held.hold()
            first_batch(producer)
            held.wait_for_one()
            assert plain(other, producer.producer_id) == mapping
            held.let_go()
            assert produced(producer.data.receive()) == NONE
            assert plain(other, producer.producer_id, 1) == mapping
            end_here(cluster, producer)
            assert guards_of(first, producer) == 0
            for epoch in (producer.epoch, producer.epoch + 1, 32_767):
                assert plain(other, producer.producer_id, epoch=epoch) == mapping
            for sequence in range(4):
                assert plain(other, mine, sequence) == NONE
                assert plain(other, producer.producer_id) == mapping
        close(producer)


def end_here(cluster: WatchedCluster, producer, topic=TOPIC.name, partition=0):
    """Place a marker that ends the producer's transaction in a log of the first broker."""
    broker, coordinator = cluster.brokers
    log = coordinator.server.transactions.log
    partition_id = cluster.partition_ids(TRANSACTION_STATE)[log.partition_of(producer.name)]
    marker = TransactionMarker(
        producer.producer_id,
        producer.epoch + (not producer.is_classic),
        commit=False,
        coordinator_epoch=cluster.index.partition(partition_id).leader_epoch,
        transaction_version=0 if producer.is_classic else 2,
    )
    markers = broker.server.markers
    assert broker.call(lambda: markers.write(topic, partition, marker)) == NONE


def test_standalone_broker_has_no_remote_coordinators():
    with Broker() as broker:
        assert broker.server.remote_coordinators is None
        assert broker.server.markers._guards is None


# --------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize("version", CLASSIC)
def test_a_partition_that_was_not_added_is_refused(brokers, producer):
    is_told = producer.version >= 11
    refused = ErrorCode.TRANSACTION_ABORTABLE if is_told else ErrorCode.INVALID_TXN_STATE
    assert producer.send(TOPIC, sequence=0).error_code == refused
    assert producer.add(TOPIC, 2) == NONE
    batches = [(0, producer.batch(TOPIC, sequence=0)), (2, producer.batch(TOPIC, partition=2))]
    assert producer.ask((TOPIC, *batches)) == [refused, NONE]
    assert not is_open(brokers, producer, 0)
    assert guards_of(brokers[0], producer) == 1


@pytest.mark.parametrize("version", VERSIONS)
def test_producer_id_of_other_transactional_id_is_refused(brokers, producer):
    producer.begin(TOPIC)
    other = remote(brokers, producer.name + "-other", producer.version)
    assert other.add(TOPIC, 0) == NONE
    claimed = {"producer_id": producer.producer_id, "producer_epoch": producer.epoch}
    code = other.send(TOPIC, sequence=1, **claimed).error_code
    assert code == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    nobody = producer.request(
        TOPIC, (0, producer.batch(TOPIC, sequence=1)), transactional_id=coordinated_key(2, "nobody")
    )
    answer = producer.data.ask(PRODUCE, nobody, producer.version)
    assert produced(answer) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    close(other)


@pytest.mark.parametrize("version", VERSIONS)
def test_fenced_producer_gets_invalid_producer_epoch(brokers, producer):
    successor = remote(brokers, producer.name, producer.version)
    successor.name = producer.name
    successor.init()
    assert successor.epoch > producer.epoch
    assert producer.send(TOPIC, sequence=0).error_code == ErrorCode.INVALID_PRODUCER_EPOCH
    successor.begin(TOPIC)
    close(successor)


@pytest.mark.parametrize("version", [11, 12])
def test_a_client_is_not_left_waiting(brokers, producer, held):
    """The wait is the client's timeout, from 1 s to 30 s; a retriable error follows."""
    assert producer.add(TOPIC, 0) == NONE
    held.hold()
    first_batch(producer)
    held.wait_for_one()
    brokers[0].clock.advance(seconds=31)
    assert produced(producer.data.receive()) == ErrorCode.NOT_ENOUGH_REPLICAS
    held.let_go()
    assert not is_open(brokers, producer, 0)
    assert producer.send(TOPIC, sequence=0).error_code == NONE


@pytest.mark.parametrize("version", VERSIONS)
def test_batch_after_refused_batch_does_not_take_its_place(brokers, producer, held):
    """S9: the log does not know the producer yet, so it would take any sequence."""
    assert producer.add(TOPIC, 0) == NONE
    held.hold()
    first_batch(producer)
    first_batch(producer)
    held.wait_for_one()
    brokers[0].clock.advance(seconds=31)
    assert produced(producer.data.receive()) == ErrorCode.NOT_ENOUGH_REPLICAS
    held.let_go()
    assert produced(producer.data.receive()) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert not is_open(brokers, producer, 0)
    for sequence in (0, 1):
        assert producer.send(TOPIC, sequence=sequence).error_code == NONE


@pytest.mark.parametrize("version", [11, 12])
def test_batch_of_disconnected_client_is_not_written(brokers, producer, held):
    first = brokers[0]
    assert producer.add(TOPIC, 0) == NONE
    held.hold()
    before = first.call(lambda: len(first.server.sockets.connections))
    first_batch(producer)
    held.wait_for_one()
    producer.data.socket.close()
    wait_until(lambda: first.call(lambda: len(first.server.sockets.connections)) < before)
    assert held_bytes(first) == 0
    assert len(first.server.remote_coordinators) == 0
    held.let_go()
    assert not is_open(brokers, producer, 0)
    assert guards_of(first, producer) == 0


def held_bytes(broker):
    return broker.call(lambda: broker.server.transactions.held_bytes)


@pytest.mark.parametrize("version", [11, 12])
def test_waiting_batches_have_size_limit(brokers, producer, held, monkeypatch):
    first = brokers[0]
    other = remote(brokers, producer.name + "-other", producer.version)
    for each in (producer, other):
        assert each.add(TOPIC, 0) == NONE
    config = replace(first.server.config, queued_max_request_bytes=5_000)
    monkeypatch.setattr(first.server, "config", config)
    held.hold()
    large = producer.request(TOPIC, (0, producer.batch(TOPIC, b"x" * 10_000)))
    producer.data.send(PRODUCE, large, producer.version)  # Too large, but alone.
    held.wait_for_one()
    assert other.send(TOPIC, sequence=0).error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    held.let_go()
    assert produced(producer.data.receive()) == NONE
    assert held_bytes(first) == 0
    assert other.send(TOPIC, sequence=0).error_code == NONE
    close(other)


@pytest.mark.parametrize("version", [11, 12])
def test_without_an_answer_its_error_is_a_lost_connection(brokers, producer, held):
    assert producer.add(TOPIC, 0) == NONE
    silent = producer.request(TOPIC, (0, producer.batch(TOPIC)), acks=0)
    producer.data.send(PRODUCE, silent, producer.version, answered=False)
    assert producer.send(TOPIC).error_code == NONE
    fenced = producer.request(TOPIC, (2, producer.batch(TOPIC, partition=2, producer_epoch=9)))
    fenced.acks = 0
    producer.data.send(PRODUCE, fenced, producer.version, answered=False)
    assert producer.data.hung_up()


# ------------------------------------------------------------- between the answer and the append


def a_marker_comes_in_between(cluster, producer, held):
    """Hold the coordinator's answer until a marker is placed; return the client's answer."""
    held.hold()
    first_batch(producer)
    held.wait_for_one()
    end_here(cluster, producer)
    held.let_go()
    return producer.data.receive()


def first_batch(producer):
    request = producer.request(TOPIC, (0, producer.batch(TOPIC)))
    producer.data.send(PRODUCE, request, producer.version)


def produced(answer):
    (topic,) = answer.responses
    (partition,) = topic.partition_responses
    return partition.error_code


@pytest.mark.parametrize("version", VERSIONS)
def test_no_batch_is_appended_behind_a_marker_that_came_after_the_question(
    cluster, brokers, producer, held
):
    """P6, R7: it would hang there, for its transaction has ended. From version 12 on the epoch of
    the marker is enough.
    """
    assert producer.add(TOPIC, 0) == NONE
    answer = a_marker_comes_in_between(cluster, producer, held)
    fenced = ErrorCode.INVALID_PRODUCER_EPOCH
    assert produced(answer) == (ErrorCode.NOT_ENOUGH_REPLICAS if producer.is_classic else fenced)
    assert not is_open(brokers, producer, 0)
    assert guards_of(brokers[0], producer) == 0


def guards_of(broker, producer):
    """Return the number of a broker's logs with a guard for, or a transaction of, a producer."""
    guards = broker.server.remote_coordinators.guards
    return broker.call(
        lambda: sum(producer.producer_id in known for known in guards._by_log.values())
    )
