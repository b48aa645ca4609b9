"""Produce in transactions: which batches are taken, which are refused and how (P, S)."""

from __future__ import annotations

import pytest

from barnabas.broker.handlers.records.produce_shortcut import ProduceShortcut
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.end_txn import END_TXN
from barnabas.protocol.messages.metadata import METADATA, MetadataRequest
from barnabas.protocol.messages.produce import PRODUCE
from barnabas.protocol.records import iterate_batches
from barnabas.storage.journal.journal import CommitGroup
from barnabas.storage.runtime.threads import start_thread
from barnabas.testing import Broker
from tests.broker.data_plane import (
    PRODUCE_VERSIONS,
    Named,
    Wire,
    batch,
    created,
    topic_name,
    values,
)
from tests.broker.held_markers import Markers
from tests.broker.raw_producer import RawProducer
from tests.waiting import wait_until

PATIENCE_S = 60
"""For one answer: other tests run beside this one."""
CLASSIC = [3, 10, 11]
IMPLICIT = [12, 13]
SOME = [3, 8, 11, 12, 13]
NONE = ErrorCode.NONE
ALWAYS_MS = 600_000


@pytest.fixture
def wire(broker):
    with Wire(broker.address, timeout_s=PATIENCE_S) as opened:
        yield opened


@pytest.fixture
def topic(broker, request):
    return create(broker, request.node.name)


def create(broker, name, partitions=3, **configs):
    return created(broker, topic_name(name), partitions, configs)


@pytest.fixture
def producer(wire, topic, version):
    """One of the version that the test asks for."""
    return RawProducer(wire, topic.name, version)


def everything(wire, topic, partition=0, isolation=0):
    """Return the values of all visible records, of open and ended transactions; no markers."""
    found = []
    offset = 0
    while True:
        data = wire.fetch_one(topic, offset, partition, isolation=isolation)
        view = data.records
        batches = list(iterate_batches(view))
        if not batches:
            return found
        for at, header in batches:
            if not header.is_control:
                found += values(view[at : at + header.size])
        offset = batches[-1][1].next_offset


def stable(wire, topic, partition=0):
    """Return the values that a `read_committed` consumer receives; correct without aborts."""
    return everything(wire, topic, partition, isolation=1)


def state(broker, name):
    return broker.call(lambda: broker.server.transactions.transaction(name))


def log_of(broker, topic, partition=0):
    return broker.server.catalogue.topics[topic.name].partitions[partition].log


def is_open(broker, topic, producer, partition=0):
    producers = log_of(broker, topic, partition).producers
    return broker.call(lambda: producers.has_open_transaction(producer.producer_id))


# -------------------------------------------------------------------------- who asks, about what


@pytest.mark.parametrize("is_repeated", [False, True], ids=["at first", "after its own"])
@pytest.mark.parametrize("version", SOME)
def test_producer_cannot_write_into_the_transaction_of_another_id(
    broker, wire, topic, producer, version, is_repeated
):
    """A client with permissions for its own id can guess the producer ids of other clients."""
    assert producer.add(topic, 0) == NONE
    assert producer.send(topic, b"first").error_code == NONE
    with Wire(broker.address, timeout_s=PATIENCE_S) as other_wire:
        other = RawProducer(other_wire, f"{topic.name}-other", version)
        if is_repeated:  # What comes next is like what its connection already knows.
            assert other.add(topic, 0) == NONE
            for _ in range(3):
                assert other.send(topic, b"own").error_code == NONE
        claimed = {"producer_id": producer.producer_id, "producer_epoch": producer.epoch}
        refused = other.send(topic, b"smuggled", sequence=1, **claimed)
        assert refused.error_code == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert producer.send(topic, b"second").error_code == NONE
    producer.end()
    found = everything(wire, topic)
    assert found[0] == b"first"
    assert found[-1] == b"second"
    assert b"smuggled" not in found


@pytest.mark.parametrize("version", CLASSIC)
def test_a_partition_that_was_not_added_is_refused_before_version_12(broker, wire, topic, producer):
    refused = (
        ErrorCode.TRANSACTION_ABORTABLE if producer.version >= 11 else ErrorCode.INVALID_TXN_STATE
    )
    assert producer.send(topic, b"lost").error_code == refused  # the transaction did not start
    assert producer.add(topic, 1) == NONE
    assert producer.send(topic, b"lost", sequence=0).error_code == refused
    assert producer.send(topic, b"a", partition=1).error_code == NONE
    producer.end()
    # The transaction has ended, and with it the added partitions.
    assert producer.send(topic, b"late", partition=1).error_code == refused
    assert stable(wire, topic, 1) == [b"a"]
    assert everything(wire, topic) == []
    assert not is_open(broker, topic, producer, 1)


@pytest.mark.parametrize("version", IMPLICIT)
def test_writing_adds_the_partition_in_front_of_the_data_p1(
    broker, wire, topic, producer, monkeypatch
):
    placed = []
    add_entry = CommitGroup.add_entry

    def noted(group, kind, epoch, partition_id, *more):
        placed.append(partition_id)
        return add_entry(group, kind, epoch, partition_id, *more)

    monkeypatch.setattr(CommitGroup, "add_entry", noted)
    catalogue = broker.server.catalogue
    states = {each.log.partition_id for each in catalogue.topics["__transaction_state"].partitions}
    data = log_of(broker, topic).partition_id
    assert producer.send(topic).error_code == NONE
    assert len(placed) == 2
    assert placed[0] in states
    assert placed[1] == data
    assert state(broker, producer.name).partitions == {(topic.name, 0)}
    # What is known to be part of it costs nothing more.
    assert producer.send(topic).error_code == NONE
    assert placed[2:] == [data]
    assert producer.ask((topic, (1, producer.batch(topic, partition=1)))) == [NONE]
    assert state(broker, producer.name).partitions == {(topic.name, 0), (topic.name, 1)}


@pytest.mark.parametrize("version", SOME)
def test_ids_and_epochs_that_the_coordinator_does_not_know(broker, wire, topic, producer):
    other = RawProducer(wire, producer.name + "-other", producer.version)
    nobody = producer.request(
        topic, (0, producer.batch(topic, sequence=0)), transactional_id="nobody"
    )
    answer = wire.ask(PRODUCE, nobody, producer.version)
    code = answer.responses[0].partition_responses[0].error_code
    assert code == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    somebody = producer.ask((topic, (0, other.batch(topic))))
    assert somebody == [ErrorCode.INVALID_PRODUCER_ID_MAPPING]
    for epoch in (1, 7):
        code = producer.send(topic, producer_epoch=epoch, sequence=0).error_code
        assert code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert everything(wire, topic) == []
    assert producer.begin(topic) == 0


@pytest.mark.parametrize("version", SOME)
def test_fenced_producer_gets_47_on_each_partition(wire, topic, producer):
    producer.begin(topic, b"a")
    successor = RawProducer(wire, producer.name, producer.version)
    assert successor.epoch > producer.epoch
    for partition in (0, 1):  # the first knows the new epoch by its marker, the other does not
        code = producer.send(topic, b"zombie", partition=partition).error_code
        assert code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert successor.begin(topic, b"b") == 2
    assert producer.send(topic, b"zombie").error_code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert everything(wire, topic) == [b"a", b"b"]


@pytest.mark.parametrize("version", SOME)
def test_no_coordinator_is_something_to_wait_for(version):
    with Broker() as fresh, Wire(fresh.address, timeout_s=PATIENCE_S) as wire:
        topic = create(fresh, "t")
        producer = RawProducer.__new__(RawProducer)
        producer.wire, producer.name, producer.version = wire, "t", version
        producer.producer_id, producer.epoch, producer._next = 5, 0, {}
        assert producer.send(topic).error_code == ErrorCode.NOT_ENOUGH_REPLICAS
        assert everything(wire, topic) == []


# ------------------------------------------------------------------------------ the whole request


@pytest.mark.parametrize("version", SOME)
def test_an_empty_transactional_id_is_nobodys(wire, topic, producer):
    producer.add(topic, 0)
    for _ in range(2):
        records = producer.batch(topic, sequence=0)
        errors = producer.ask((topic, (0, records), (1, batch(b"p"))), transactional_id="")
        assert errors == [ErrorCode.INVALID_REQUEST, NONE]
    assert everything(wire, topic) == []
    assert everything(wire, topic, 1) == [b"p"] * 2


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
def test_without_a_transactional_id_nothing_is_taken(wire, topic, producer):
    producer.add(topic, 0)
    plain = (1, batch(b"plain"))
    for _ in range(3):
        errors = producer.ask(
            (topic, (0, producer.batch(topic, sequence=0)), plain), transactional_id=None
        )
        assert errors == [ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED] * 2
    nowhere = Named("nowhere", bytes([9] * 16))
    errors = producer.ask(
        (nowhere, (0, producer.batch(nowhere))), (topic, plain), transactional_id=None
    )
    assert errors == [ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED] * 2
    assert everything(wire, topic) == everything(wire, topic, 1) == []
    # Also in the place of, and after, a request that the shortcut knows.
    producer.begin(topic, b"a")
    for _ in range(2):
        request = producer.request(
            topic, (0, producer.batch(topic, sequence=1)), transactional_id=None
        )
        answer = wire.ask(PRODUCE, request, producer.version)
        code = answer.responses[0].partition_responses[0].error_code
        assert code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert everything(wire, topic) == [b"a"]


@pytest.mark.parametrize("version", SOME)
def test_batches_of_several_producers_are_refused_together(wire, topic, producer):
    other = RawProducer(wire, producer.name + "-other", producer.version)
    for each in (producer, other):
        each.add(topic, 0, 1)
    ours, theirs = producer.batch(topic), other.batch(topic, partition=1)
    errors = producer.ask((topic, (0, ours), (1, theirs), (2, batch(b"plain"))))
    assert errors == [ErrorCode.INVALID_PRODUCER_ID_MAPPING] * 3
    newer = producer.batch(topic, partition=1, producer_epoch=1, sequence=0)
    errors = producer.ask((topic, (0, ours), (1, newer)))
    assert errors == [ErrorCode.INVALID_PRODUCER_ID_MAPPING] * 2
    assert [everything(wire, topic, partition) for partition in range(3)] == [[], [], []]


@pytest.mark.parametrize("version", SOME)
def test_batches_inside_and_outside_of_a_transaction_share_a_request(broker, wire, topic, producer):
    producer.add(topic, 0)
    idempotent = batch(b"i", producer_id=900, producer_epoch=3, base_sequence=5)
    errors = producer.ask(
        (topic, (0, producer.batch(topic, b"t")), (1, batch(b"p")), (2, idempotent))
    )
    assert errors == [NONE] * 3
    assert stable(wire, topic) == []
    assert [stable(wire, topic, partition) for partition in (1, 2)] == [[b"p"], [b"i"]]
    producer.end()
    assert stable(wire, topic) == [b"t"]


@pytest.mark.parametrize("version", SOME)
def test_each_partition_fails_alone_p7(wire, topic, producer):
    producer.add(topic, 0, 2)
    spoilt = producer.batch(topic, b"spoilt", partition=1)
    spoilt[-1] ^= 1
    errors = producer.ask(
        (
            topic,
            (0, producer.batch(topic, b"a")),
            (7, producer.batch(topic, partition=7)),
            (1, spoilt),
            (2, producer.batch(topic, b"c", partition=2)),
            (2, producer.batch(topic, b"gap", partition=2, sequence=5)),
        ),
        (Named("nope", bytes([9] * 16)), (0, producer.batch(Named("nope")))),
    )
    not_added = {3: 48, 8: 48, 11: 120}.get(producer.version, ErrorCode.CORRUPT_MESSAGE)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    nowhere = ErrorCode.UNKNOWN_TOPIC_ID if producer.version >= 13 else unknown
    gap = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert errors == [NONE, not_added, NONE, gap, unknown, nowhere]
    producer.end()
    stored = [everything(wire, topic, partition) for partition in range(3)]
    assert stored == [[b"a"], [], [b"c"]]


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
def test_markers_of_clients_are_rejected_p5(broker, wire, topic, producer):
    def forged(**more):
        return producer.batch(topic, control=True, sequence=0, **more)

    for records in (forged(), forged(transactional=False), forged(base_sequence=-1)):
        assert producer.ask((topic, (0, records))) == [ErrorCode.INVALID_RECORD]
    producer.begin(topic, b"a")
    for _ in range(2):
        for records in (forged(base_sequence=1), forged(base_sequence=-1)):
            assert producer.ask((topic, (0, records))) == [ErrorCode.INVALID_RECORD]
        assert producer.send(topic, b"a").error_code == NONE
    assert is_open(broker, topic, producer)
    assert state(broker, producer.name).partitions == {(topic.name, 0)}


@pytest.mark.parametrize("version", SOME)
def test_internal_topics_are_not_for_clients_nor_for_their_transactions(broker, wire, producer):
    internal = broker.call(lambda: broker.server.catalogue.topics["__transaction_state"])
    named = Named(internal.name, internal.topic_id)
    errors = producer.ask((named, (0, producer.batch(named))))
    assert errors == [ErrorCode.INVALID_TOPIC_EXCEPTION]
    assert state(broker, producer.name).partitions == frozenset()


# ------------------------------------------------------------------------------------- sequences


@pytest.mark.parametrize("version", SOME)
def test_a_batch_sent_again_gets_its_offset_s4(broker, wire, topic, producer):
    offsets = [producer.begin(topic, b"a")]
    offsets += [producer.send(topic, b"%d" % number).base_offset for number in range(5)]
    for sequence, offset in list(enumerate(offsets))[1:]:
        result = producer.send(topic, b"again", sequence=sequence)
        assert (result.error_code, result.base_offset) == (NONE, offset)
    oldest = producer.send(topic, b"again", sequence=0)  # five are remembered
    assert oldest.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert len(everything(wire, topic)) == 6


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("version", SOME)
def test_a_batch_sent_again_after_the_end_opens_nothing(broker, wire, topic, producer, commit):
    """Apache Kafka returns 120 or 48, or leaves the transaction open (measured on 4.3.0)."""
    offset = producer.begin(topic, b"a")
    late = producer.batch(topic, b"a", sequence=0)
    following = producer.batch(topic, b"late", sequence=1)
    producer.end(commit=commit)
    request = producer.request(topic, (0, late))
    result = wire.ask(PRODUCE, request, producer.version).responses[0].partition_responses[0]
    if producer.is_classic:
        assert (result.error_code, result.base_offset) == (NONE, offset)
    else:  # The marker has the next epoch.
        assert result.error_code == ErrorCode.INVALID_PRODUCER_EPOCH
    # KAFKA-14402: what was delayed beyond the end of its transaction is lost, not in the next one.
    (code,) = producer.ask((topic, (0, following)))
    refused = {3: 48, 8: 48, 11: 120}.get(producer.version, ErrorCode.INVALID_PRODUCER_EPOCH)
    assert code == refused
    assert not is_open(broker, topic, producer)
    assert not state(broker, producer.name).partitions
    end = wire.fetch_one(topic, 0, isolation=1)
    assert end.last_stable_offset == end.high_watermark == 2


@pytest.mark.parametrize("version", SOME)
def test_a_gap_is_refused_and_can_be_closed_s6(wire, topic, producer):
    producer.begin(topic, b"0")
    later = producer.send(topic, b"2", sequence=2)
    assert later.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    for value in (b"1", b"2"):
        assert producer.send(topic, value).error_code == NONE
    assert everything(wire, topic) == [b"0", b"1", b"2"]


@pytest.mark.parametrize("version", SOME)
def test_a_first_sequence_other_than_zero_kafka_18202(broker, wire, topic, producer):
    """State may have been lost; only the second generation begins each transaction at 0."""
    producer.add(topic, 0)
    result = producer.send(topic, b"a", sequence=5)
    if producer.is_classic:
        assert (result.error_code, result.base_offset) == (NONE, 0)
        return
    assert result.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert not is_open(broker, topic, producer)
    assert producer.send(topic, b"a", sequence=0).error_code == NONE
    producer.end()
    refused = producer.send(topic, b"b", sequence=1)  # a marker alone is no beginning either
    assert refused.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert everything(wire, topic) == [b"a"]


@pytest.mark.parametrize("version", CLASSIC)
def test_sequences_continue_over_transactions_of_one_epoch(wire, topic, producer):
    for number in range(3):
        producer.add(topic, 0)
        assert producer.send(topic, b"%d" % number, sequence=number).error_code == NONE
        producer.end(commit=number != 1)
    producer.add(topic, 0)
    again = producer.send(topic, b"x", sequence=1)
    assert again.error_code == NONE  # S4: the batch of the aborted transaction, known by sequence
    assert everything(wire, topic) == [b"0", b"1", b"2"]


@pytest.mark.parametrize("version", SOME)
def test_a_plain_batch_beside_its_producers_open_transaction_p4(wire, topic, producer, monkeypatch):
    """Refused by the ordinary way, and by the shortcut that already knew such requests."""
    taken = []
    take = ProduceShortcut.take

    def counted(shortcut, frames):
        pending = take(shortcut, frames)
        taken.append(pending is not None)
        return pending

    monkeypatch.setattr(ProduceShortcut, "take", counted)
    version = producer.version
    with Wire(wire.socket.getpeername(), timeout_s=PATIENCE_S) as plain:

        def send(sequence):
            records = producer.batch(topic, b"p", sequence=sequence, transactional=False)
            return plain.produce(topic, records, version=version).error_code

        assert [send(number) for number in range(3)] == [NONE] * 3
        known = sum(taken)
        assert known == (2 if version >= 7 else 0)
        producer.add(topic, 0)
        assert producer.send(topic, b"t", sequence=3).error_code == NONE
        assert [send(4) for _ in range(3)] == [ErrorCode.INVALID_TXN_STATE] * 3
        assert sum(taken) == known
        assert producer.send(topic, b"t", sequence=4).error_code == NONE
        if producer.is_classic:
            producer.end()
            assert send(5) == NONE
    expected = [b"p"] * 3 + [b"t"] * 2 + [b"p"] * producer.is_classic
    assert everything(wire, topic) == expected


# --------------------------------------------------------- while the transaction before is ending


@pytest.fixture
def markers(monkeypatch):
    """``markers.stop()``: no marker can be written until ``markers.go_on()``."""
    return Markers(monkeypatch)


def waiting_broker(wait_ms=ALWAYS_MS, **settings):
    return Broker(config={"barnabas.transaction.wait.ms": str(wait_ms), **settings})


def held(broker):
    return broker.call(lambda: broker.server.transactions.held_bytes)


def ending(broker, wire, markers, version=12):
    """A producer whose transaction is decided but has no marker yet, and its topic."""
    topic = create(broker, "t")
    producer = RawProducer(wire, "id", version)
    producer.begin(topic, b"first")
    markers.stop()
    producer.end()
    return producer, topic


@pytest.mark.parametrize("size", [10, 400_000])
@pytest.mark.parametrize("version", IMPLICIT)
def test_produce_waits_for_the_end_and_later_ones_for_it_s12(markers, version, size):
    with waiting_broker() as broker, Wire(broker.address, timeout_s=PATIENCE_S) as wire:
        producer, topic = ending(broker, wire, markers, version)
        sent = [b"%d" % number * size for number in range(3)]
        frames = [
            wire.encode(
                PRODUCE, producer.request(topic, (0, producer.batch(topic, value))), version
            )
            for value in sent
        ]
        frames.append(wire.encode(METADATA, MetadataRequest([]), 12))
        frames.append(wire.encode(END_TXN, producer.end_request(commit=True), 5))
        sending = start_thread("sends", lambda: wire.socket.sendall(b"".join(frames)))
        wait_until(lambda: held(broker))
        with Wire(broker.address, timeout_s=PATIENCE_S) as reader:
            assert everything(reader, topic) == [b"first"]
        markers.go_on()
        answers = [wire.receive() for _ in frames]
        sending.join()
        results = [answer.responses[0].partition_responses[0] for answer in answers[:3]]
        assert [(each.error_code, each.base_offset) for each in results] == [
            (NONE, 2),
            (NONE, 3),
            (NONE, 4),
        ]
        assert answers[3].brokers
        assert answers[4].error_code == NONE
        assert held(broker) == 0
        assert stable(wire, topic) == [b"first", *sent]


@pytest.mark.parametrize("version", [11, 12])
def test_no_wait_where_none_is_wanted(markers, version):
    with waiting_broker(0) as broker, Wire(broker.address, timeout_s=PATIENCE_S) as wire:
        producer, topic = ending(broker, wire, markers, version)
        errors = producer.ask((topic, (0, producer.batch(topic)), (1, batch(b"plain"))))
        if producer.is_classic:  # The log still knows its transaction as open: it belongs to it.
            assert errors == [NONE, NONE]
            errors = producer.ask((topic, (2, producer.batch(topic, partition=2))))
            assert errors == [ErrorCode.NOT_ENOUGH_REPLICAS]
        else:
            assert errors == [ErrorCode.CONCURRENT_TRANSACTIONS, NONE]
        assert stable(wire, topic, 1) == [b"plain"]


def test_waiting_produce_gets_concurrent_transactions_after_the_timeout(markers):
    with waiting_broker(50) as broker, Wire(broker.address, timeout_s=PATIENCE_S) as wire:
        producer, topic = ending(broker, wire, markers)
        errors = producer.ask((topic, (0, producer.batch(topic)), (1, batch(b"plain"))))
        assert errors == [ErrorCode.CONCURRENT_TRANSACTIONS, NONE]
        assert held(broker) == 0
        markers.go_on()
        wait_until(lambda: not state(broker, "id").partitions)
        assert producer.send(topic, sequence=0).error_code == NONE


def test_v1_producer_gets_a_retriable_error_at_once(markers):
    with waiting_broker() as broker, Wire(broker.address, timeout_s=PATIENCE_S) as wire:
        producer, topic = ending(broker, wire, markers, 11)
        assert producer.send(topic, partition=1).error_code == ErrorCode.NOT_ENOUGH_REPLICAS


def test_batch_of_disconnected_client_is_not_written(markers):
    with waiting_broker() as broker, Wire(broker.address, timeout_s=PATIENCE_S) as wire:
        producer, topic = ending(broker, wire, markers)
        with Wire(broker.address, timeout_s=PATIENCE_S) as other:
            producer.wire = other
            request = producer.request(topic, (0, producer.batch(topic, b"nobody knows")))
            other.send(PRODUCE, request, 12)
            wait_until(lambda: held(broker))
        wait_until(lambda: broker.call(lambda: len(broker.server.sockets.connections)) == 1)
        assert held(broker) == 0, "its bytes are not held any more"
        markers.go_on()
        wait_until(lambda: not state(broker, "id").partitions)
        assert everything(wire, topic) == [b"first"]


def test_waiting_batches_have_size_limit(markers):
    settings = {"queued.max.request.bytes": "5000"}
    with (
        waiting_broker(**settings) as broker,
        Wire(broker.address, timeout_s=PATIENCE_S) as wire,
        Wire(broker.address, timeout_s=PATIENCE_S) as other,
    ):
        producer, topic = ending(broker, wire, markers)
        request = producer.request(topic, (0, producer.batch(topic, b"x" * 10_000)))
        other.send(PRODUCE, request, 12)  # too large, but alone
        wait_until(lambda: held(broker))
        refused = producer.send(topic, sequence=0)
        assert refused.error_code == ErrorCode.CONCURRENT_TRANSACTIONS
        markers.go_on()
        assert other.receive().responses[0].partition_responses[0].error_code == NONE


def test_without_an_answer_there_is_no_wait(markers):
    with waiting_broker() as broker, Wire(broker.address, timeout_s=PATIENCE_S) as wire:
        producer, topic = ending(broker, wire, markers)
        request = producer.request(topic, (0, producer.batch(topic)), acks=0)
        wire.send(PRODUCE, request, 12, answered=False)
        assert wire.hung_up()
        with Wire(broker.address, timeout_s=PATIENCE_S) as reader:
            assert everything(reader, topic) == [b"first"]


def test_a_broker_that_stops_does_not_wait_for_what_is_held(markers):
    with waiting_broker() as broker, Wire(broker.address, timeout_s=PATIENCE_S) as wire:
        producer, topic = ending(broker, wire, markers)
        wire.send(PRODUCE, producer.request(topic, (0, producer.batch(topic, b"late"))), 12)
        wait_until(lambda: held(broker))
        broker.stop()
        assert wire.hung_up()
        markers.go_on()
        broker.restart()
        with Wire(broker.address, timeout_s=PATIENCE_S) as again:
            wait_until(lambda: not state(broker, "id").partitions)
            assert everything(again, topic) == [b"first"]
