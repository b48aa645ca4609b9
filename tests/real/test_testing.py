"""The embedded broker: what it promises to the tests of others."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
import time

import pytest

from barnabas.broker.api.dispatch import RequestContext
from barnabas.broker.client.topic_reader import next_offset, visible_batches
from barnabas.broker.client.wire_client import WireClient
from barnabas.broker.config.types import ConfigError
from barnabas.broker.network.socket_server import ListenError
from barnabas.broker.testing.embedded import KAFKA_3_9, Broker
from barnabas.protocol.client import NEED_DATA
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.fetch import FETCH, FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from barnabas.protocol.messages.list_offsets import LIST_OFFSETS
from barnabas.protocol.messages.metadata import METADATA, MetadataRequest, MetadataResponse
from barnabas.protocol.messages.produce import PRODUCE
from barnabas.protocol.records import Record, control_batch, encode_batch
from tests.requests import alter_configs, produce_request, produced
from tests.waiting import wait_until


@pytest.fixture(params=["memory", "disk"])
def broker(request, tmp_path):
    with Broker(storage=tmp_path if request.param == "disk" else None, seed=7) as broker:
        yield broker


@pytest.fixture
def client(broker):
    with WireClient(broker.address) as client:
        yield client


def produce(client, topic, *values, acks=-1):
    records = [Record(number, 1000 + number, b"k", value) for number, value in enumerate(values)]
    request = produce_request({(topic, 0): encode_batch(records)}, acks=acks)
    return produced(client.ask(PRODUCE, request, 9)).error_code


def values(broker, topic):
    return [record.value for record in broker.records(topic).result]


def test_produced_records_are_read_back(broker, client):
    assert broker.create_topic("orders", partitions=3).result == "orders"
    assert produce(client, "orders", b"a", b"b") == 0
    first, second = broker.records("orders").result
    assert first == ("orders", 0, 0, 1000, b"k", b"a", ())
    assert (second.offset, second.value) == (1, b"b")
    assert broker.bootstrap_servers == "{}:{}".format(*broker.address)


def test_errors_reach_the_test(broker):
    broker.create_topic("orders")
    with pytest.raises(KafkaError, match="already exists"):
        broker.create_topic("orders")
    with pytest.raises(KafkaError):
        broker.records("no such topic")


def test_levels_of_loggers_are_those_of_before_a_client_changed_them():
    name = "barnabas.broker.server"
    before = logging.getLogger(name).level, logging.root.level
    with Broker() as broker, WireClient(broker.address) as client:
        changed = ((name, "FATAL"), ("root", "ERROR"), ("root", "FATAL"))
        for logger, level in changed:
            alter_configs(client, 8, "1", (logger, 0, level))
        assert logging.getLogger(name).level == logging.root.level == logging.CRITICAL
    assert (logging.getLogger(name).level, logging.root.level) == before


def test_a_crash_keeps_what_was_acknowledged(broker, client):
    broker.create_topic("orders")
    for number in range(20):
        assert produce(client, "orders", b"%d" % number) == 0
    address = broker.address
    broker.crash()
    with pytest.raises(OSError):
        socket.create_connection(address, 1)
    broker.restart()
    assert broker.address == address
    assert values(broker, "orders") == [b"%d" % number for number in range(20)]


def test_crash_after_crash(broker):
    broker.create_topic("orders")
    for number in range(5):
        with WireClient(broker.address) as client:
            assert produce(client, "orders", b"%d" % number) == 0
        broker.crash()
        broker.restart()
    assert len(values(broker, "orders")) == 5


def test_stop_and_restart(broker, client):
    broker.create_topic("orders")
    produce(client, "orders", b"a")
    broker.stop()
    broker.restart()
    broker.restart()
    assert values(broker, "orders") == [b"a"]


def test_a_crashed_broker_can_be_left():
    with Broker() as broker:
        broker.crash()


def test_the_clock_moves_by_itself_and_by_hand(broker):
    before = broker.clock.now_ms()
    broker.clock.advance(minutes=15)
    assert 900_000 <= broker.clock.now_ms() - before < 960_000
    time.sleep(0.01)
    assert broker.clock.now_ms() - before > 900_000


def test_a_waiting_fetch_is_let_go_by_the_clock(broker):
    broker.create_topic("orders")
    with WireClient(broker.address) as client:
        _, chunks = client._connection.request(FETCH, 12, fetch_request("orders", 60_000))
        client._socket.sendall(b"".join(chunks))
        waits = broker.server.fetch_waits
        wait_until(lambda: len(waits))
        broker.clock.advance(minutes=1)
        client._socket.settimeout(60)
        assert client._socket.recv(4)


def test_settings_are_kafkas():
    with Broker(config={"num.partitions": "4", "node.id": "7"}) as broker:
        assert broker.server.config.num_partitions == 4
        assert broker.server.node_id == 7


def test_a_slip_of_the_pen_is_an_error():
    with pytest.raises(ConfigError, match=r"num\.partitons, did you mean num\.partitions\?"):
        Broker(config={"num.partitons": "2"})
    with Broker(config={"num.io.threads": "2"}):  # Kafka's own, without effect here.
        pass


@pytest.mark.parametrize("storage", ["memory", "disk"])
def test_a_broker_that_cannot_start_says_why_and_leaves_nothing(storage, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        directory = tmp_path if storage == "disk" else None
        before = set(threading.enumerate())
        with pytest.raises(ListenError, match=f"{port}: "), Broker(port=port, storage=directory):
            pass
        # Of others, of tests before this one, some may end meanwhile.
        assert set(threading.enumerate()) <= before
    with pytest.raises(ConfigError, match=r"num\.partitions"):
        Broker(config={"num.partitions": "none"})


def test_an_older_broker_can_be_imitated():
    with Broker(max_versions=KAFKA_3_9) as broker, WireClient(broker.address) as client:
        assert client.version_of(FETCH) == 17
        assert client.version_of(METADATA) == 12
        assert client.version_of(LIST_OFFSETS) == 8
        assert client.version_of(INIT_PRODUCER_ID) == 5
        broker.create_topic("orders")
        assert produce(client, "orders", b"a") == 0
        assert values(broker, "orders") == [b"a"]
    with Broker() as broker, WireClient(broker.address) as client:
        assert client.version_of(FETCH) == 18


# ------------------------------------------------------------------------------- interception


def metadata(client):
    return client.ask(METADATA, MetadataRequest(topics=[]), 12)


def test_a_request_can_be_refused_some_times(broker, client):
    with broker.intercept(
        INIT_PRODUCER_ID, fail=ErrorCode.COORDINATOR_NOT_AVAILABLE, times=2
    ) as caught:
        codes = [
            client.ask(INIT_PRODUCER_ID, InitProducerIdRequest(None, 0), 4).error_code
            for _ in range(3)
        ]
    assert codes == [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 2 + [0]
    assert caught.count == 2
    assert isinstance(caught.requests[0], InitProducerIdRequest)


def test_a_refused_produce_names_its_partitions(broker, client):
    broker.create_topic("orders")
    with broker.intercept(PRODUCE, fail=ErrorCode.NOT_LEADER_OR_FOLLOWER):
        assert produce(client, "orders", b"a") == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert produce(client, "orders", b"b") == 0
    assert values(broker, "orders") == [b"b"]


def test_a_producer_that_has_found_its_shortcut_is_caught_too(broker, client):
    broker.create_topic("orders")
    for _ in range(3):
        assert produce(client, "orders", b"a") == 0
    with broker.intercept(PRODUCE, fail=ErrorCode.NOT_LEADER_OR_FOLLOWER) as caught:
        assert produce(client, "orders", b"b") == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert caught.count == 1
    assert produce(client, "orders", b"a") == 0
    assert values(broker, "orders") == [b"a"] * 4


def test_a_request_can_be_answered_otherwise(broker, client):
    def answer(context, request):
        assert isinstance(context, RequestContext)
        return MetadataResponse(cluster_id="another", topics=[])

    with broker.intercept(METADATA, answer=answer):
        assert metadata(client).cluster_id == "another"
    assert metadata(client).cluster_id == broker.server.cluster_id


def test_a_dropped_request_has_done_nothing(broker, client):
    broker.create_topic("orders")
    with broker.intercept(PRODUCE, drop=True, times=1), pytest.raises(ConnectionError):
        produce(client, "orders", b"a")
    assert values(broker, "orders") == []


def test_a_lost_answer_has_done_everything(broker, client):
    broker.create_topic("orders")
    with broker.intercept(PRODUCE, lose_answer=True, times=1), pytest.raises(ConnectionError):
        produce(client, "orders", b"a")
    assert values(broker, "orders") == [b"a"]


@pytest.mark.parametrize("api", [PRODUCE, METADATA, INIT_PRODUCER_ID, LIST_OFFSETS])
def test_an_answer_can_be_late(broker, client, api):
    broker.create_topic("orders")
    asks = {
        PRODUCE: lambda: produce(client, "orders", b"a"),
        METADATA: lambda: metadata(client),
        INIT_PRODUCER_ID: lambda: client.ask(api, InitProducerIdRequest(None, 0), 4),
        LIST_OFFSETS: lambda: broker.records("orders"),
    }
    asks[api]()
    with broker.intercept(api, delay_ms=150) as caught:
        started = time.monotonic()
        asks[api]()
        assert time.monotonic() - started >= 0.14
    assert caught.count >= 1


def fetch_request(topic, max_wait_ms):
    partition = FetchPartition(0, partition_max_bytes=1000)
    return FetchRequest(
        max_wait_ms=max_wait_ms, min_bytes=1, topics=[FetchTopic(topic, partitions=[partition])]
    )


def test_a_waiting_fetch_can_be_late_and_is_still_completed_early(broker):
    broker.create_topic("orders")
    with broker.intercept(FETCH, delay_ms=100), WireClient(broker.address) as client:
        started = time.monotonic()
        _, fetch = client._connection.request(FETCH, 12, fetch_request("orders", 60_000))
        client._socket.sendall(b"".join(fetch))
        time.sleep(0.05)
        _, chunks = client._connection.request(METADATA, 12, MetadataRequest(topics=[]))
        client._socket.sendall(b"".join(chunks))
        answers = []
        while len(answers) < 2:
            received = client._socket.recv(65536)
            assert received, "the broker hung up"
            client._connection.receive_data(received)
            while (answer := client._connection.next_response()) is not NEED_DATA:
                answers.append(type(answer[1]).__name__)
        assert answers == ["FetchResponse", "MetadataResponse"]
        assert 0.1 <= time.monotonic() - started < 50


def test_delayed_fetch_ends_with_its_connection(broker):
    broker.create_topic("orders")
    with broker.intercept(FETCH, delay_ms=100):
        with WireClient(broker.address) as client:
            _, fetch = client._connection.request(FETCH, 12, fetch_request("orders", 60_000))
            client._socket.sendall(b"".join(fetch))
            waits = broker.server.fetch_waits
            wait_until(lambda: len(waits))
        wait_until(lambda: not len(waits))


@pytest.mark.parametrize("api", [METADATA, INIT_PRODUCER_ID])
def test_an_answer_of_any_kind_can_be_lost(broker, client, api):
    requests = {METADATA: MetadataRequest(topics=[]), INIT_PRODUCER_ID: InitProducerIdRequest()}
    with broker.intercept(api, lose_answer=True), pytest.raises(ConnectionError):
        client.ask(api, requests[api], 4)


def test_requests_can_just_be_counted(broker, client):
    with broker.intercept(METADATA) as outer:
        metadata(client)
        with broker.intercept(METADATA) as inner:
            metadata(client)
        metadata(client)
    metadata(client)
    assert (outer.count, inner.count) == (3, 1)


# ------------------------------------------------------------------------------- in a loop


async def test_in_the_callers_loop():
    async with Broker() as broker:
        assert await broker.create_topic("orders") == "orders"
        with await asyncio.to_thread(WireClient, broker.address) as client:
            assert await asyncio.to_thread(produce, client, "orders", b"a") == 0
        await broker.crash()
        await broker.restart()
        (record,) = await broker.records("orders")
        assert record.value == b"a"
        with broker.intercept(METADATA, fail=ErrorCode.UNKNOWN_SERVER_ERROR) as caught:
            pass
        assert caught.count == 0
        broker.clock.advance(seconds=1)
        outcome = broker.create_topic("still-more")
        with pytest.raises(AssertionError, match="await it"):
            _ = outcome.result
        await outcome


# --------------------------------------------------------------------------------- reading


def transactional(*values, producer_id, base_offset):
    records = [
        Record(base_offset + number, 1000, None, value) for number, value in enumerate(values)
    ]
    return encode_batch(
        records,
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
        transactional=True,
    )


def test_read_committed_leaves_out_what_was_aborted():
    data = b"".join(
        [
            transactional(b"aborted", b"too", producer_id=1, base_offset=0),
            transactional(b"kept", producer_id=2, base_offset=2),
            control_batch(1, 0, commit=False, coordinator_epoch=0, timestamp=0, base_offset=3),
            control_batch(2, 0, commit=True, coordinator_epoch=0, timestamp=0, base_offset=4),
            transactional(b"the next of 1", producer_id=1, base_offset=5),
        ]
    )
    view = memoryview(data)
    seen = [header.base_offset for _, header in visible_batches(view, [(0, 1)])]
    assert seen == [2, 5]
    assert [header.base_offset for _, header in visible_batches(view, [])] == [0, 2, 5]
    assert next_offset(view, 0) == 6
