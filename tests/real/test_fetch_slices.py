"""Fetch of what the page cache has: sent from there, to quick readers and to slow ones."""

from __future__ import annotations

import errno
import os
import random
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from barnabas.broker.network.sending import Remainder
from barnabas.protocol.messages.api_versions import API_VERSIONS, ApiVersionsRequest
from barnabas.protocol.messages.delete_topics import DELETE_TOPICS, DeleteTopicsRequest
from barnabas.protocol.messages.fetch import FETCH
from barnabas.protocol.records import iterate_batches
from barnabas.storage.files.io import FileSlice, LocalFile
from barnabas.testing import Broker
from tests.broker.data_plane import Named, Wire, batch, complaints, fetch_request
from tests.storage.page_cache import all_is_cached
from tests.waiting import wait_until

PARTITIONS = 3
BATCHES = 40
LARGE = 64 << 20


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    with Broker(storage=tmp_path_factory.mktemp("data")) as running:
        yield running


@pytest.fixture(autouse=True)
def page_cache(monkeypatch):
    all_is_cached(monkeypatch)


@pytest.fixture(scope="module")
def topic(broker):
    return fill(broker, "large")


def fill(broker, name):
    """Create a topic with about 8 MB in each partition, all of it in the segment files."""
    chance = random.Random(11)
    broker.create_topic(name, PARTITIONS, {"retention.ms": "-1", "max.message.bytes": "2000000"})
    topic = Named(name, broker.call(lambda: broker.server.catalogue.topics[name].topic_id))
    with Wire(broker.address) as wire:
        for partition in range(PARTITIONS):
            for _ in range(BATCHES):
                value = chance.randbytes(chance.choice([100, 50_000, 600_000]))
                wire.produce(topic, batch(value), partition)
    for partition in range(PARTITIONS):
        log = broker.server.catalogue.topics[name].partitions[partition].log
        wait_until(lambda log=log: broker.call(lambda: not log.unflushed))
    return topic


def content(broker, topic, partition):
    """Return the content of a partition's segment files."""
    log = broker.server.catalogue.topics[topic.name].partitions[partition].log
    return b"".join(
        broker.call(lambda each=each: each.file.pread(each.written_bytes, 0))
        for each in log.segments
    )


@pytest.fixture
def sends(monkeypatch):
    """The number of bytes that each ``sendfile`` sent."""
    taken = []
    send = LocalFile.send

    def noted(file, *arguments):
        sent = send(file, *arguments)
        taken.append(sent)
        return sent

    monkeypatch.setattr(LocalFile, "send", noted)
    return taken


@pytest.fixture
def remainders(monkeypatch):
    """Every answer that a socket did not take whole."""
    made = []
    begin = Remainder.__init__

    def noted(remainder, *arguments):
        begin(remainder, *arguments)
        made.append(remainder)

    monkeypatch.setattr(Remainder, "__init__", noted)
    return made


def everything(topic, **more):
    limits = {"max_bytes": LARGE, "partition_max_bytes": LARGE} | more
    places = [(topic, (partition, 0)) for partition in range(PARTITIONS)]
    return fetch_request(12, *places, **limits)


def records(response):
    return [bytes(data.records) for topic in response.responses for data in topic.partitions]


def test_large_reads_are_sent_from_the_page_cache(broker, wire, topic, sends):
    offset, received, stored = 0, b"", content(broker, topic, 0)
    while len(received) < len(stored):
        data = wire.fetch_one(topic, offset, partition_max_bytes=1_000_000)
        received += data.records
        assert received == stored[: len(received)]
        *_, (_, last) = iterate_batches(data.records)
        offset = last.next_offset
    assert sum(sends) > len(stored) // 2


def test_many_partitions_in_one_answer(broker, wire, topic, sends):
    response = wire.ask(FETCH, everything(topic), 12)
    assert records(response) == [content(broker, topic, each) for each in range(PARTITIONS)]
    assert sum(sends) == sum(map(len, records(response)))


def test_a_slow_reader_gets_the_same(broker, wire, topic, remainders):
    wire.send(FETCH, everything(topic), 12)
    wire.send(API_VERSIONS, ApiVersionsRequest(), 0)
    wire.send(FETCH, everything(topic), 12)
    wait_until(lambda: remainders)
    time.sleep(0.1)
    (connection,) = [
        each
        for each in broker.call(lambda: list(broker.server.sockets.connections))
        if each._writer.sends_files
    ]
    assert connection.requests == 1, "nothing is handled while an answer is being sent"
    expected = [content(broker, topic, each) for each in range(PARTITIONS)]
    assert records(wire.receive()) == expected
    assert wire.receive().error_code == 0
    assert records(wire.receive()) == expected
    # The last bytes arrive before the broker knows that they were the last.
    wait_until(lambda: not connection._writer.sends_files)


def test_disconnecting_reader_leaves_no_descriptor(broker, topic, remainders):
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        remainders.clear()
        with Wire(broker.address) as wire:
            wire.send(FETCH, everything(topic), 12)
            wait_until(lambda: remainders)
    wait_until(lambda: len(os.listdir("/proc/self/fd")) <= before)


def test_without_a_free_descriptor_the_answer_goes_through_memory(
    broker, wire, topic, remainders, monkeypatch
):
    def none_is_free(descriptor):
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr("barnabas.broker.network.sending.os.dup", none_is_free)
    wire.send(FETCH, everything(topic), 12)
    time.sleep(0.1)
    assert records(wire.receive()) == [content(broker, topic, each) for each in range(PARTITIONS)]
    assert not remainders


@pytest.mark.parametrize("reader_goes_on", [True, False])
def test_a_deleted_topic_is_still_sent_or_the_connection_closed(
    broker, remainders, caplog, reader_goes_on
):
    topic = fill(broker, f"deleted-{reader_goes_on}")
    stored = [content(broker, topic, each) for each in range(PARTITIONS)]
    with Wire(broker.address) as wire, Wire(broker.address) as other:
        wire.send(FETCH, everything(topic), 12)
        wait_until(lambda: remainders)
        deletion = DeleteTopicsRequest(topic_names=[topic.name], timeout_ms=60_000)
        assert other.ask(DELETE_TOPICS, deletion, 3).responses[0].error_code == 0
        if reader_goes_on:
            assert records(wire.receive()) == stored
    wait_until(lambda: broker.call(lambda: not broker.server.sockets.connections))
    assert not complaints(caplog)


def test_disk_failure_during_a_send_closes_the_connection(
    broker, topic, remainders, monkeypatch, caplog
):
    with Wire(broker.address) as wire:
        wire.send(FETCH, everything(topic), 12)
        wait_until(lambda: remainders)

        def broken(self, descriptor):
            raise OSError(errno.EIO, "Input/output error", "the-file")

        monkeypatch.setattr(FileSlice, "send", broken)
        with pytest.raises(ConnectionError):
            wire.receive()
    (complaint,) = complaints(caplog)
    assert "connection closed" in complaint
    assert "the-file" in complaint


def test_a_stop_waits_for_a_reader(tmp_path, remainders):
    with Broker(storage=tmp_path) as broker, ThreadPoolExecutor(1) as other_thread:
        topic = fill(broker, "large")
        expected = [content(broker, topic, each) for each in range(PARTITIONS)]
        with Wire(broker.address) as wire:
            wire.send(FETCH, everything(topic), 12)
            wait_until(lambda: remainders)
            stop = other_thread.submit(broker.stop)
            time.sleep(0.1)
            assert not stop.done()
            assert records(wire.receive()) == expected
            assert wire.hung_up()
        stop.result()
