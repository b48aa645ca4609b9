"""Transactional ids of a whole broker: timeouts, expiry, records that make no sense, deletion."""

from __future__ import annotations

import logging

import pytest

from barnabas.broker.config.loading.loader import load_config
from barnabas.broker.config.types import ConfigError
from barnabas.broker.coordination.id_expiration import IdExpiration
from barnabas.coordinator.transactions.state import State, Transaction, record_of
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.add_partitions_to_txn import ADD_PARTITIONS_TO_TXN
from barnabas.protocol.messages.end_txn import END_TXN, EndTxnRequest
from barnabas.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from barnabas.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from barnabas.protocol.records import Record, encode_batch
from barnabas.testing import Broker
from tests.broker.data_plane import Wire, complaints
from tests.requests import add_partitions_request, added_codes
from tests.waiting import wait_until
from tests.worlds import world

__all__ = ["world"]

E = ErrorCode
TOPIC = "__transaction_state"
ONE_PARTITION = {"transaction.state.log.num.partitions": "1"}


@pytest.fixture
def broker():
    with Broker(config=ONE_PARTITION) as running:
        running.create_topic("t", 2)
        yield running


@pytest.fixture
def wire(broker):
    with Wire(broker.address) as opened:
        yield opened


def init(wire, key="id", timeout_ms=60_000, expected=(-1, -1)):
    return wire.ask(INIT_PRODUCER_ID, InitProducerIdRequest(key, timeout_ms, *expected), 5)


def begun(wire, key="id", timeout_ms=60_000):
    answer = init(wire, key, timeout_ms)
    assert answer.error_code == E.NONE
    return answer.producer_id, answer.producer_epoch


def add(wire, producer, key="id", partitions=(0,)):
    request = add_partitions_request(key, producer, *(("t", each) for each in partitions))
    return added_codes(wire.ask(ADD_PARTITIONS_TO_TXN, request, 3))


def end(wire, producer, key="id", *, commit=True):
    return E(wire.ask(END_TXN, EndTxnRequest(key, *producer, commit), 4).error_code)


def state_of(broker, key="id"):
    transactions = broker.server.transactions
    found = broker.call(lambda: transactions.transaction(key))
    return None if found is None else found.state


# ------------------------------------------------------------------------------------- timeouts


def test_a_transaction_is_aborted_when_its_time_is_over_c12(broker, wire):
    producer = begun(wire, timeout_ms=30_000)
    assert add(wire, producer) == [E.NONE]
    broker.clock.advance(seconds=29)
    assert state_of(broker) == State.ONGOING
    broker.clock.advance(seconds=2)
    assert state_of(broker) == State.COMPLETE_ABORT
    assert add(wire, producer) == [E.PRODUCER_FENCED]
    assert end(wire, producer) == E.PRODUCER_FENCED
    assert begun(wire)[1] == producer[1] + 2


def test_transaction_timeout_continues_over_a_crash(broker):
    with Wire(broker.address) as wire:
        producer = begun(wire, timeout_ms=30_000)
        assert add(wire, producer) == [E.NONE]
    broker.clock.advance(seconds=20)
    broker.crash()
    broker.restart()
    assert state_of(broker) == State.ONGOING
    broker.clock.advance(seconds=5)
    assert state_of(broker) == State.ONGOING
    broker.clock.advance(seconds=6)
    assert state_of(broker) == State.COMPLETE_ABORT


# ------------------------------------------------------------------------------------ expiry


def test_idle_ids_are_forgotten_some_sooner_than_others_c13():
    settings = ONE_PARTITION | {
        "transactional.id.expiration.ms": "1800000",
        "transaction.remove.expired.transaction.cleanup.interval.ms": "60000",
        "barnabas.transactional.id.expiration.prefixes": "spark.:600000,spark.kept.:864000000",
    }
    keys = ["other", "spark.q.7.3", "spark.kept.1", "spark.open"]
    with Broker(config=settings) as broker, Wire(broker.address) as wire:
        broker.create_topic("t", 2)
        producers = {key: begun(wire, key, timeout_ms=120_000) for key in keys}
        broker.clock.advance(minutes=9)
        assert [state_of(broker, key) for key in keys] == [State.EMPTY] * 4
        assert add(wire, producers["spark.open"], "spark.open") == [E.NONE]
        broker.clock.advance(minutes=4)
        expected = [State.EMPTY, None, State.EMPTY, State.COMPLETE_ABORT]
        assert [state_of(broker, key) for key in keys] == expected
        assert end(wire, producers["spark.q.7.3"], "spark.q.7.3") == E.INVALID_PRODUCER_ID_MAPPING
        assert begun(wire, "spark.q.7.3")[0] not in {each[0] for each in producers.values()}
        broker.clock.advance(minutes=40)
        assert [state_of(broker, key) for key in keys] == [None] * 4
        begun(wire, "last")  # Durable behind what was forgotten: a crash brings nothing back.
        broker.crash()
        broker.restart()
        assert [state_of(broker, key) for key in keys] == [None] * 4


def test_the_longest_prefix_counts_and_none_prolongs():
    config = load_config(
        overrides=[
            "barnabas.transactional.id.expiration.prefixes=a:5000,a:b:3000,ab:9000,c:999999",
            "transactional.id.expiration.ms=8000",
        ]
    ).config
    expiration = IdExpiration(config)
    found = {key: expiration.idle_ms(key) for key in ("a", "a:bc", "abc", "c", "d", "")}
    assert found == {"a": 5000, "a:bc": 3000, "abc": 8000, "c": 8000, "d": 8000, "": 8000}


@pytest.mark.parametrize("text", ["a", ":5", "a:", "a:0", "a:-1", "a:1s"])
def test_prefixes_that_say_nothing(text):
    with pytest.raises(ConfigError, match="prefix:milliseconds"):
        load_config(overrides=[f"barnabas.transactional.id.expiration.prefixes={text}"])


# --------------------------------------------------------------------- records that make no sense


def write(broker, *pairs, partition=0):
    """Append records to the topic as they are, for the next start to find."""

    def append():
        log = broker.server.catalogue.partition(TOPIC, partition).log
        records = [Record(number, 1, *pair, ()) for number, pair in enumerate(pairs)]
        log.append_records(memoryview(bytearray(encode_batch(records))))

    broker.call(append)


def bad_records():
    """By name: pairs of key and value."""
    dead = record_of(Transaction("bad", 1, 0, 1000, State.DEAD), 1).encode()
    fencing = record_of(Transaction("bad", 1, 0, 1000, State.PREPARE_EPOCH_FENCE), 1).encode()
    key, value = record_of(Transaction("bad", 1, 0, 1000), 1).encode()
    assert value is not None
    unknown_state = record_of(Transaction("bad", 1, 0, 1000, 99), 1).encode()  # type: ignore[arg-type]
    return {
        "dead": dead,
        "fencing": fencing,
        "state 99": unknown_state,
        "version 9": (key, b"\0\x09" + value[2:]),
        "cut off": (key, value[:-3]),
    }


BAD = bad_records()


@pytest.mark.parametrize("name", BAD)
def test_an_id_that_cannot_be_read_is_refused_and_the_others_are_served(broker, name, caplog):
    with Wire(broker.address) as wire:
        good = begun(wire, "good")
        begun(wire, "bad")
        write(broker, BAD[name])
    broker.restart()
    assert "id is refused" in caplog.text or "key is refused" in caplog.text
    with Wire(broker.address) as wire:
        for _ in range(2):
            answer = init(wire, "bad")
            assert answer.error_code == E.COORDINATOR_LOAD_IN_PROGRESS
            assert answer.producer_id == -1
        assert end(wire, (1, 0), "bad") == E.COORDINATOR_LOAD_IN_PROGRESS
        assert begun(wire, "good") == (good[0], good[1] + 1)
        write(broker, record_of(Transaction("bad", 77, 5, 1000), 1).encode())
    broker.restart()
    with Wire(broker.address) as wire:
        assert begun(wire, "bad") == (77, 6)


@pytest.mark.parametrize("key", [b"", b"\0", b"\0\0", b"\0\0\0\x09bad", b"\0\0\xff\xfe"])
def test_a_partition_whose_keys_make_no_sense_is_not_served_at_all_d8(broker, key, caplog):
    with Wire(broker.address) as wire:
        begun(wire, "good")
    write(broker, (key, b"\0\0"))
    broker.restart()
    assert [each for each in caplog.records if each.levelno == logging.ERROR]
    with Wire(broker.address) as wire:
        for _ in range(2):
            assert init(wire, "good").error_code == E.COORDINATOR_LOAD_IN_PROGRESS
        assert broker.call(lambda: broker.server.transactions.all) == []


def test_unknown_kinds_of_records_are_passed_over(broker, caplog):
    with Wire(broker.address) as wire:
        producer = begun(wire)
    write(broker, (b"\x00\x63what", b"value"))
    broker.restart()
    assert "unknown kind skipped" in caplog.text
    with Wire(broker.address) as wire:
        assert begun(wire) == (producer[0], producer[1] + 1)


# --------------------------------------------------------------------------------------- corners


def test_a_topic_that_an_operator_deletes_takes_its_ids_along(broker, wire, caplog):
    producer = begun(wire)
    assert add(wire, producer) == [E.NONE]

    async def delete():
        topic = broker.server.catalogue.topic(TOPIC)
        await broker.server.catalogue.delete_topic(topic.topic_id)

    broker._do(delete())
    assert add(wire, producer) == [E.NOT_COORDINATOR]
    assert end(wire, producer) == E.NOT_COORDINATOR
    broker.clock.advance(hours=2)
    wire.ask(FIND_COORDINATOR, FindCoordinatorRequest("id", 1), 3)
    assert add(wire, producer) == [E.INVALID_PRODUCER_ID_MAPPING]
    assert begun(wire)[0] > producer[0]
    assert complaints(caplog) == []


@pytest.mark.parametrize("size", [32_767, 32_768, 40_000])
def test_ids_as_long_as_a_record_can_hold(broker, wire, size):
    begun(wire)
    answer = init(wire, "x" * size) if size < 32_768 else None
    if answer is not None:
        assert answer.error_code == E.NONE
        producer = (answer.producer_id, answer.producer_epoch)
        broker.restart()
        with Wire(broker.address) as again:
            assert add(again, producer, "x" * size) == [E.NONE]
        return
    assert init(wire, "x" * size).error_code == E.INVALID_REQUEST
    assert init(wire, "ä" * (size // 2 + 1)).error_code == E.INVALID_REQUEST
    assert begun(wire)[1] == 1


def test_partitions_that_are_named_twice_are_added_once(broker, wire):
    producer = begun(wire)
    assert add(wire, producer, partitions=[1, 0, 1]) == [E.NONE] * 3
    found = broker.call(lambda: broker.server.transactions.transaction("id"))
    assert len(found.partitions) == 2
    refused = add(wire, producer, partitions=[0, 7, 1])
    assert refused == [
        E.OPERATION_NOT_ATTEMPTED,
        E.UNKNOWN_TOPIC_OR_PARTITION,
        E.OPERATION_NOT_ATTEMPTED,
    ]


def test_waiting_request_ends_with_the_broker(caplog):
    settings = ONE_PARTITION | {"barnabas.transaction.wait.ms": "600000"}
    with Broker(config=settings) as broker, Wire(broker.address) as wire:
        broker.create_topic("t", 1)
        producer = begun(wire)
        assert add(wire, producer) == [E.NONE]
        log = broker.server.catalogue.partition("t", 0).log
        broker.call(lambda: setattr(log, "closed", True))
        assert end(wire, producer) == E.NONE
        wire.send(INIT_PRODUCER_ID, InitProducerIdRequest("id", 1000), 5)
        ended = broker.server.transactions
        wait_until(lambda: broker.call(lambda: len(ended._waits)))
        broker.stop()
        assert len(ended._waits) == 0
        broker.restart()
        assert state_of(broker) == State.COMPLETE_COMMIT
        broker.clock.advance(seconds=601)
        with Wire(broker.address) as again:
            assert begun(again) == (producer[0], producer[1] + 1)
    assert not [each for each in caplog.records if each.levelno >= logging.ERROR]
