"""Metrics of a broker after requests and failures."""

from __future__ import annotations

import pytest

from barnabas.broker.client.wire_client import WireClient
from barnabas.broker.metrics.exposition import exposition
from barnabas.broker.metrics.families import GAUGE, Family, labels
from barnabas.protocol.messages.delete_topics import DELETE_TOPICS, DeleteTopicsRequest
from barnabas.protocol.messages.fetch import FETCH, FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.messages.metadata import METADATA, MetadataRequest
from barnabas.protocol.messages.produce import PRODUCE
from barnabas.protocol.records import Record, encode_batch
from barnabas.testing import Broker
from tests.broker.metrics.scrape import scrape
from tests.requests import produce_request, produced
from tests.waiting import wait_until


def batch(values=(b"value",), producer_id=-1, sequence=-1):
    records = [Record(n, 1_700_000_000_000, None, each) for n, each in enumerate(values)]
    epoch = -1 if producer_id < 0 else 0
    return encode_batch(
        records, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence
    )


def produce(broker, topic, data, partition=0, version=9):
    request = produce_request({(topic, partition): data})
    with WireClient(broker.address) as client:
        return produced(client.ask(PRODUCE, request, version)).error_code


def fetch(broker, topic, offset=0, max_wait_ms=0):
    request = FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=1 << 20,
        topics=[FetchTopic(topic, partitions=[FetchPartition(0, -1, offset, -1, -1, 1 << 20)])],
    )
    with WireClient(broker.address) as client:
        answer = client.ask(FETCH, request, 11)
    return answer.responses[0].partitions[0]


@pytest.fixture
def broker():
    with Broker() as running:
        running.create_topic("t", 2)
        yield running


def of_topic(seen, name, topic="t"):
    return seen(f"kafka_server_brokertopicmetrics_{name}_total", topic=topic)


def test_records_and_bytes_in_and_out(broker):
    data = memoryview(batch([b"a", b"b", b"c"]))
    assert produce(broker, "t", data) == 0
    assert produce(broker, "t", data, partition=1) == 0
    assert len(fetch(broker, "t").records) == len(data)
    seen = scrape(broker)
    assert of_topic(seen, "messagesin") == 6
    assert of_topic(seen, "bytesin") == 2 * len(data)
    assert of_topic(seen, "bytesout") == len(data)
    assert of_topic(seen, "totalproducerequests") == 2
    assert of_topic(seen, "totalfetchrequests") == 1
    assert of_topic(seen, "failedproducerequests") == 0
    assert seen("kafka_log_log_size", topic="t", partition=0) == len(data)
    assert seen("kafka_topic_partition_current_offset", topic="t", partition=1) == 3
    assert seen("kafka_topic_partitions", topic="t") == 2


def test_small_requests_in_one_packet_are_counted_one_by_one(broker):
    """A shortcut handles such requests, and no other path counts them."""
    request = produce_request({("t", 0): batch()})
    with WireClient(broker.address) as client:
        client.ask(PRODUCE, request, 9)
        sent = []
        for _ in range(5):
            sent += client._connection.request(PRODUCE, 9, request)[1]
        client._socket.sendall(b"".join(sent))
        client.ask(METADATA, MetadataRequest(topics=[]), 9)  # Its response follows the others.
    seen = scrape(broker)
    assert of_topic(seen, "messagesin") == 6
    assert of_topic(seen, "totalproducerequests") == 6
    assert seen("kafka_network_requestmetrics_requests_total", request="Produce") == 6
    assert seen("barnabas_request_seconds_count", api="Produce") == 6
    assert seen("kafka_network_requestmetrics_totaltimems_count", request="Produce") == 6
    assert seen("barnabas_flush_batches_sum") >= 6


def test_failed_produce_and_fetch_are_counted(broker):
    broken = bytearray(batch())
    broken[-1] ^= 1
    assert produce(broker, "t", memoryview(broken)) == 2
    assert fetch(broker, "t", offset=99).error_code == 1
    seen = scrape(broker)
    assert of_topic(seen, "failedproducerequests") == 1
    assert of_topic(seen, "totalproducerequests") == 1
    assert of_topic(seen, "messagesin") == 0
    assert of_topic(seen, "failedfetchrequests") == 1


@pytest.mark.parametrize("by_shortcut", [False, True])
def test_a_repetition_is_a_duplicate_and_counted_once(broker, by_shortcut):
    first = memoryview(batch(producer_id=7, sequence=0))
    second = memoryview(batch(producer_id=7, sequence=1))
    request = produce_request({("t", 0): first})
    with WireClient(broker.address) as client:
        client.ask(PRODUCE, request, 9)
        request.topic_data[0].partition_data[0].records = second
        client.ask(PRODUCE, request, 9)
        if by_shortcut:
            client.ask(PRODUCE, request, 9)
        else:
            assert produce(broker, "t", second) == 0
    seen = scrape(broker)
    assert seen("barnabas_duplicate_batches_total", topic="t") == 1
    assert seen("barnabas_duplicate_batches_total") == 1
    assert of_topic(seen, "messagesin") == 2
    assert of_topic(seen, "totalproducerequests") == 3


def test_sums_over_all_topics_never_go_back(broker):
    broker.create_topic("gone")
    assert produce(broker, "gone", memoryview(batch())) == 0
    assert produce(broker, "t", memoryview(batch())) == 0
    before = scrape(broker)
    assert before("kafka_server_brokertopicmetrics_messagesin_total") == 2
    request = DeleteTopicsRequest(topic_names=["gone"], timeout_ms=5000)
    with WireClient(broker.address) as client:
        (result,) = client.ask(DELETE_TOPICS, request, 5).responses
    assert result.error_code == 0
    after = scrape(broker)
    assert after("kafka_server_brokertopicmetrics_messagesin_total") == 2
    assert not any(("topic", "gone") in labels for _, labels in after.samples)


@pytest.mark.parametrize("how", ["crash", "stop"])
def test_recovery_counts_as_no_traffic(broker, how):
    for _ in range(3):
        produce(broker, "t", memoryview(batch()))
    getattr(broker, how)()
    broker.restart()
    seen = scrape(broker)
    assert seen("kafka_topic_partition_current_offset", topic="t", partition=0) == 3
    for name in ("messagesin", "bytesin", "totalproducerequests"):
        assert of_topic(seen, name) == 0
    produce(broker, "t", memoryview(batch()))
    # A checkpoint resets the counters that trigger snapshots.
    broker.call(broker.server.logs.checkpoint)
    assert of_topic(scrape(broker), "totalproducerequests") == 1


def test_connections_and_what_went_through_them(broker):
    with WireClient(broker.address) as client:
        client.ask(METADATA, MetadataRequest(topics=[]), 9)
        seen = scrape(broker)
        assert seen("barnabas_connections") == 1
        name = "kafka_server_socket_server_metrics_connection_count"
        assert seen(name, listener="PLAINTEXT", networkProcessor=0) == 1
    wait_until(lambda: not scrape(broker)("barnabas_connections"))
    seen = scrape(broker)
    assert seen("barnabas_connections_accepted_total") == 1
    assert seen("barnabas_connections_refused_total") == 0
    assert seen("barnabas_connections_closed_for_memory_total") == 0
    assert seen("barnabas_received_bytes_total") > 0
    assert seen("barnabas_sent_bytes_total") > 0


def test_rejected_connection_is_counted():
    with Broker(config={"max.connections": "0"}) as broker:
        with pytest.raises(ConnectionError), WireClient(broker.address) as client:
            client.ask(METADATA, MetadataRequest(topics=[]), 9)
        assert scrape(broker)("barnabas_connections_refused_total") == 1


def test_a_parked_fetch_took_as_long_as_it_waited(broker):
    fetch(broker, "t", max_wait_ms=120)
    assert scrape(broker)("barnabas_request_seconds_sum", api="Fetch") >= 0.1


def test_partition_series_can_be_switched_off():
    with Broker(config={"barnabas.metrics.partitions": "false"}) as broker:
        broker.create_topic("t")
        seen = scrape(broker)
    assert of_topic(seen, "messagesin") == 0
    assert not any("partition" in dict(labels) for _, labels in seen.samples)


def test_a_part_of_the_broker_registers_its_own(broker):
    mine = Family("barnabas_widgets_open", GAUGE, "Open.", [(labels(state="Ongoing"), 3)])
    broker.server.metrics.register(lambda: [mine])
    assert scrape(broker)("barnabas_widgets_open", state="Ongoing") == 3


def test_thousands_of_partitions_are_served_in_small_pieces():
    with Broker(config={"num.partitions": "1"}) as broker:
        for number in range(4):
            broker.create_topic(f"t{number}", 500)
        pieces = broker.call(lambda: list(exposition(broker.server.metrics.collect())))
    assert sum(piece.count("\n") for piece in pieces) > 2000 * 18
    assert max(map(len, pieces)) < 300_000
