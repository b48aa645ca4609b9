"""Clients with write permission only do not disturb a transactional producer of a topic.

In a partition a producer ID identifies the producer. A client that writes with another producer's
ID uses up its next sequence, or exceeds its epoch. Later batches of the real producer then look
like repetitions, or like those of a zombie.
"""

from __future__ import annotations

import pytest

from barnabas.broker.metadata.producer_ids import KEYED_FROM
from barnabas.broker.security.acls.operations import Operation
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from barnabas.protocol.messages.produce import PRODUCE
from barnabas.testing import Broker
from tests.broker.data_plane import Wire, batch, produce_request
from tests.broker.raw_producer import RawProducer
from tests.broker.security.changing_rights import (
    TOPIC,
    TRANSACTIONAL_ID,
    controlled_broker,
    log_end,
    right,
    topic_of,
)

NONE, MAPPING = ErrorCode.NONE, ErrorCode.INVALID_PRODUCER_ID_MAPPING
RIGHTS = (right(Operation.WRITE, TOPIC), right(Operation.WRITE, TRANSACTIONAL_ID, "id"))
VERSIONS = [3, 9, 13]
CLASSIC, IMPLICIT = 11, 12
LAST_EPOCH = 32_767


@pytest.fixture
def controlled():
    with controlled_broker(*RIGHTS) as found:
        yield found


def given(wire):
    """A producer id outside of transactions."""
    answer = wire.ask(INIT_PRODUCER_ID, InitProducerIdRequest(None, 60_000), 4)
    assert not answer.error_code
    return answer.producer_id


def plain(wire, topic, producer_id, sequence=0, *, epoch=0, partition=0, version=9, **more):
    """Write outside of transactions; answers the error."""
    records = batch(
        b"v", producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, **more
    )
    return wire.produce(topic, records, version=version, partition=partition).error_code


@pytest.mark.parametrize("epoch", ["its own", "the next", "the last"])
@pytest.mark.parametrize("has_written", [False, True], ids=["at first", "between transactions"])
@pytest.mark.parametrize("version", [CLASSIC, IMPLICIT])
def test_other_client_cannot_write_as_transactional_producer(
    controlled, version, has_written, epoch
):
    broker, _ = controlled
    topic = topic_of(broker, "t")
    with Wire(broker.address) as wire, Wire(broker.address) as other:
        producer = RawProducer(wire, "id", version)
        if has_written:
            producer.begin(topic, b"first")
            producer.end()
        before = log_end(broker, topic)
        claimed = {"its own": producer.epoch, "the next": producer.epoch + 1}
        for sequence in (0, 1):
            for each in VERSIONS:
                code = plain(
                    other,
                    topic,
                    producer.producer_id,
                    sequence,
                    epoch=claimed.get(epoch, LAST_EPOCH),
                    version=each,
                )
                assert code == MAPPING
        assert log_end(broker, topic) == before
        producer.begin(topic, b"second")
        assert producer.send(topic, b"third").error_code == NONE
        producer.end()
        assert log_end(broker, topic) == before + 3


@pytest.mark.parametrize("together", [False, True], ids=["one by one", "together"])
@pytest.mark.parametrize("value", [b"v", b"v" * 5_000], ids=["small", "large"])
@pytest.mark.parametrize("version", VERSIONS)
def test_verified_producer_id_counts_for_one_connection_only(controlled, version, value, together):
    broker, _ = controlled
    topic = topic_of(broker, "t")
    with Wire(broker.address) as wire, Wire(broker.address) as other:
        producer = RawProducer(wire, "id")
        mine = given(other)

        def frame(producer_id, sequence):
            records = batch(
                value, producer_id=producer_id, producer_epoch=0, base_sequence=sequence
            )
            return other.encode(PRODUCE, produce_request(version, topic, (0, records)), version)

        frames = [frame(mine, sequence) for sequence in range(4)]
        frames += [frame(producer.producer_id, 0), frame(mine, 4), frame(producer.producer_id, 1)]
        if together:
            other.socket.sendall(frames[0])
            answers = [other.receive()]
            other.socket.sendall(b"".join(frames[1:]))
            answers += [other.receive() for _ in frames[1:]]
        else:
            answers = []
            for each in frames:
                other.socket.sendall(each)
                answers.append(other.receive())
        codes = [each.responses[0].partition_responses[0].error_code for each in answers]
        assert codes == [NONE] * 4 + [MAPPING, NONE, MAPPING]
        assert log_end(broker, topic) == 5
        producer.begin(topic, b"its own")
        producer.end()


def test_its_own_batches_outside_of_transactions_are_refused_too(controlled):
    broker, _ = controlled
    topic = topic_of(broker, "t")
    with Wire(broker.address) as wire:
        producer = RawProducer(wire, "id", 12)
        producer.begin(topic)
        for sequence in range(1, 4):
            result = producer.send(topic, sequence=sequence, transactional=False)
            assert result.error_code == MAPPING
        assert producer.send(topic).error_code == NONE


def test_unallocated_producer_id_is_refused(controlled):
    """Else it is taken in advance: the next transactional ids get these."""
    broker, _ = controlled
    topic = topic_of(broker, "t")
    with Wire(broker.address) as wire:
        mine = given(wire)
        for ahead in (1, 2, 700, 5_000):
            assert plain(wire, topic, mine + ahead, epoch=LAST_EPOCH) == MAPPING
        assert plain(wire, topic, mine) == NONE
        producer = RawProducer(wire, "id")
        assert producer.producer_id == mine + 1
        producer.begin(topic)


def test_other_batches_of_the_request_are_taken(controlled):
    broker, _ = controlled
    topic = topic_of(broker, "t", 3)
    with Wire(broker.address) as wire:
        producer = RawProducer(wire, "id")
        numbers = {"producer_epoch": 0, "base_sequence": 0}
        batches = [
            batch(b"v", producer_id=given(wire), **numbers),
            batch(b"v", producer_id=producer.producer_id, **numbers),
            batch(b"v"),
        ]
        for version in (9, 13):
            answer = wire.ask(
                PRODUCE, produce_request(version, topic, *enumerate(batches)), version
            )
            codes = [each.error_code for each in answer.responses[0].partition_responses]
            assert codes == [NONE, MAPPING, NONE]


def test_foreign_producer_id_with_acks_0_closes_connection(controlled):
    broker, _ = controlled
    topic = topic_of(broker, "t")
    with Wire(broker.address) as wire, Wire(broker.address) as other:
        producer = RawProducer(wire, "id")
        records = batch(producer_id=producer.producer_id, producer_epoch=0, base_sequence=0)
        other.send(PRODUCE, produce_request(9, topic, (0, records), acks=0), 9, answered=False)
        assert other.hung_up()
        assert log_end(broker, topic) == 0


def test_after_a_restart(controlled):
    broker, _ = controlled
    topic = topic_of(broker, "t")
    with Wire(broker.address) as wire:
        mine = given(wire)
        producer = RawProducer(wire, "id")
        free = producer.producer_id + 5_000
        assert plain(wire, topic, mine) == NONE
    broker.restart()
    with Wire(broker.address) as wire:
        assert plain(wire, topic, mine, 1) == NONE
        assert plain(wire, topic, producer.producer_id) == MAPPING
        assert plain(wire, topic, free) == MAPPING


def test_while_transactional_ids_are_being_loaded_producers_have_to_wait(controlled):
    broker, _ = controlled
    topic = topic_of(broker, "t")
    with Wire(broker.address) as wire:
        mine = given(wire)
        replayed = broker.server.transactions.log.replayed
        broker.call(replayed.clear)
        assert plain(wire, topic, mine) == ErrorCode.NOT_ENOUGH_REPLICAS
        assert wire.produce(topic, batch(b"of nobody")).error_code == NONE
        broker.call(replayed.set)
        assert plain(wire, topic, mine) == NONE


def test_producer_id_of_expired_transactional_id_is_refused():
    settings = {"transactional_id_expiration_ms": "60000"}
    with controlled_broker(*RIGHTS, **settings) as (broker, _):
        expire_one(broker)


def expire_one(broker):
    topic = topic_of(broker, "t")
    with Wire(broker.address) as wire:
        producer = RawProducer(wire, "id")
        producer_id = producer.producer_id
        broker.clock.advance(minutes=2)
        broker.call(broker.server.transactions.expire_ids)
        assert broker.call(lambda: broker.server.transactions.transaction("id")) is None
        assert plain(wire, topic, producer_id) == NONE
        producer.init()
        assert producer.producer_id != producer_id
        producer.begin(topic)


def test_without_access_control_all_is_as_with_kafka():
    with Broker() as broker, Wire(broker.address) as wire:
        topic = topic_of(broker, "t")
        producer = RawProducer(wire, "id")
        for version in VERSIONS:
            for sequence in range(3):
                assert plain(wire, topic, 4711 + version, sequence, version=version) == NONE
        assert plain(wire, topic, producer.producer_id) == NONE


def test_an_id_that_is_made_of_a_key_is_nobodys(controlled):
    """IDs from 2^62 on are never allocated, so none can belong to a transactional ID."""
    broker, _ = controlled
    topic = topic_of(broker, "t")
    with Wire(broker.address) as wire:
        assert plain(wire, topic, KEYED_FROM - 1) == MAPPING
        assert plain(wire, topic, KEYED_FROM) == NONE
