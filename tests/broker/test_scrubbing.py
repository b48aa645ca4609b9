"""The scrubber of a running broker on real files: it finds all damage, and the rest is served."""

import errno
import json
import logging
import os
from collections import deque
from random import Random

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.list_offsets import LIST_OFFSETS
from barnabas.protocol.records import iterate_batches
from barnabas.storage.files.io import LocalFile
from barnabas.testing import Broker
from tests.broker.data_plane import NOW_MS, Named, Wire, batch, complaints, list_offsets_request
from tests.broker.handlers.test_fetch import fill, log_of, positions, settle, use_small_segments
from tests.http_client import urlopen
from tests.waiting import wait_until
from tests.worlds import world

__all__ = ["world"]

CONFIG = {
    "barnabas.http.listener": "127.0.0.1:0",
    "barnabas.scrub.bytes.per.second": "100000000",
    "barnabas.scrub.interval.ms": "3600000",
}
OFFLINE = ErrorCode.KAFKA_STORAGE_ERROR


@pytest.fixture
def broker(tmp_path):
    with Broker(storage=tmp_path, config=CONFIG) as running:
        yield running


@pytest.fixture
def wire(broker):
    with Wire(broker.address) as wire:
        yield wire


@pytest.fixture
def topic(broker):
    return create(broker, "t")


def create(broker, name, configs=None):
    broker.create_topic(name, 1, {"retention.ms": "-1"} | (configs or {}))
    topic = Named(name, broker.call(lambda: broker.server.catalogue.topics[name].topic_id))
    use_small_segments(broker, topic)
    return topic


def a_pass(broker, minutes=61):
    """Make all segments due, and wait until the scrubber has checked them."""
    counts = broker.server.scrubber.counts
    before = counts.last_full_pass_ms
    broker.clock.advance(minutes=minutes)
    wait_until(lambda: counts.last_full_pass_ms > before)


def change(segment, position, data):
    with open(segment.log_path, "r+b") as file:
        file.seek(position)
        file.write(data)


def flip(segment, position):
    with open(segment.log_path, "r+b") as file:
        file.seek(position)
        byte = file.read(1)
        file.seek(position)
        file.write(bytes([byte[0] ^ 0x20]))


def ready(broker):
    host, port = broker.server.http.address
    with urlopen(f"http://{host}:{port}/readyz", timeout=30) as answer:
        return answer.status, json.load(answer)


def metric(broker, name):
    host, port = broker.server.http.address
    with urlopen(f"http://{host}:{port}/metrics", timeout=30) as answer:
        (line,) = [
            each for each in answer.read().decode().splitlines() if each.startswith(f"{name} ")
        ]
    return float(line.split()[1])


def test_all_is_found_and_all_else_is_served(broker, wire, topic, caplog):
    """Bits and pages at many places of many segments, against what was written."""
    random = Random(5)
    caplog.set_level(logging.WARNING)
    fill(broker, wire, topic, 120)
    log = log_of(broker, topic)
    assert len(log.segments) > 10
    a_pass(broker)
    assert complaints(caplog) == []
    expected = set()
    for segment in random.sample(log.segments[:-1], 6):
        batches = [(at, header) for at, header, _ in segment.scan(0)]
        at, header = random.choice(batches)
        if random.random() < 0.5:
            flip(segment, at + random.randrange(header.size))
            expected |= {header.base_offset, header.last_offset}
        else:
            change(segment, at, bytes(segment.size_bytes - at))
            expected |= set(range(header.base_offset, segment.end_offset))
    a_pass(broker)
    offline = {
        offset for each in log.damaged for offset in range(each.base_offset, each.end_offset)
    }
    assert offline == expected
    lines = complaints(caplog)
    assert len(lines) == len(log.damaged)
    assert all(line.startswith("log damaged topic=t partition=0 offsets=") for line in lines)
    for offset in range(log.next_offset):
        data = wire.fetch_one(topic, offset)
        assert data.error_code == (OFFLINE if offset in offline else 0)
        if offset not in offline:
            served = {
                each
                for _, header in iterate_batches(data.records)
                for each in range(header.base_offset, header.next_offset)
            }
            assert offset in served
            assert not served & offline
    status, page = ready(broker)
    assert (status, page["status"]) == (200, "degraded")
    assert page["warnings"]["damage"].startswith("t-0 offsets=")
    assert metric(broker, "barnabas_damaged_ranges") == len(log.damaged)
    assert metric(broker, "barnabas_damaged_offsets") == len(offline)
    assert metric(broker, "barnabas_scrub_batches_total") > 120
    a_pass(broker)
    assert complaints(caplog) == lines, "each is told once"


def test_a_reader_finds_it_first(broker, wire, topic, caplog):
    """The scrubber checks a segment with a failed read at once."""
    caplog.set_level(logging.WARNING)
    fill(broker, wire, topic, 60)
    log = log_of(broker, topic)
    segment = log.segments[2]
    at, header = [(at, header) for at, header, _ in segment.scan(0)][2]
    change(segment, at, b"\x55" * 61)
    assert wire.fetch_one(topic, header.base_offset).error_code == OFFLINE
    wait_until(lambda: log.damaged)
    (damaged,) = log.damaged
    assert (damaged.base_offset, damaged.end_offset) == (header.base_offset, header.next_offset)
    assert positions(wire.fetch_one(topic, header.next_offset))[0] == header.next_offset
    assert len(complaints(caplog)) == 1


def test_wrong_index_is_rebuilt(broker, wire, topic, caplog):
    caplog.set_level(logging.WARNING)
    fill(broker, wire, topic, 60)
    log = log_of(broker, topic)
    segment = log.segments[2]
    path = segment.log_path.replace(".log", ".timeindex")
    with open(path, "r+b") as file:
        content = file.read()
        file.seek(7)
        file.write(bytes([content[7] ^ 1]))
    with open(path.replace(".timeindex", ".txnindex"), "wb") as file:
        file.write(b"x" * 34)
    a_pass(broker)
    wait_until(lambda: broker.call(lambda: segment.is_settled))
    with open(path, "rb") as file:
        assert file.read() == content
    (line,) = complaints(caplog)
    assert line.startswith("indexes rebuilt topic=t partition=0 segment=")
    assert line.endswith("files=.timeindex,.txnindex")
    assert metric(broker, "barnabas_scrub_rebuilt_indexes_total") == 1
    a_pass(broker)
    assert complaints(caplog) == [line]


def test_a_time_is_asked_of_a_damaged_log(broker, wire, topic):
    for number in range(60):
        wire.produce(topic, batch(b"v" * 100, times=[NOW_MS + number]))
    log = settle(broker, topic)
    segment = log.segments[2]
    at, header = [(at, header) for at, header, _ in segment.scan(0)][3]
    flip(segment, at + 70)
    a_pass(broker)
    asked = [NOW_MS, header.max_timestamp, NOW_MS + 59]
    found = []
    for timestamp in asked:
        request = list_offsets_request("t", (0, timestamp))
        (answer,) = wire.ask(LIST_OFFSETS, request, 7).topics[0].partitions
        found.append((answer.error_code, answer.offset))
    assert found == [(0, 0), (OFFLINE, -1), (0, 59)]


def test_compaction_meets_damage(broker, wire, caplog):
    """Compaction does not copy damage as sound, requests a scrub, and compacts earlier records."""
    caplog.set_level(logging.WARNING)
    topic = create(broker, "c", {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"})
    fill(broker, wire, topic, 100)
    log = log_of(broker, topic)
    segment = log.segments[5]
    flip(segment, 70)
    look = broker.server._housekeeping.cleaner.survey
    broker.call(look)
    wait_until(lambda: log.damaged)
    broker.call(look)
    wait_until(lambda: broker.call(lambda: log.cleaning.clean_offset) == segment.base_offset)
    assert segment in log.segments
    assert log.cleaning.failure is None
    assert any(line.startswith("log damaged topic=c") for line in complaints(caplog))


def test_scrubbing_can_be_disabled(tmp_path):
    config = {**CONFIG, "barnabas.scrub.bytes.per.second": "0"}
    with Broker(storage=tmp_path, config=config) as broker, Wire(broker.address) as wire:
        topic = create(broker, "t")
        fill(broker, wire, topic, 60)
        log = log_of(broker, topic)
        change(log.segments[2], 0, b"\x55" * 61)
        broker.clock.advance(minutes=61)
        assert broker.server.scrubber.counts.segments == 0
        # A read of the damage still starts a check.
        assert wire.fetch_one(topic, log.segments[2].base_offset).error_code == OFFLINE
        wait_until(lambda: log.damaged)


def fail_reads(monkeypatch, path):
    """Make reads of a file fail with EIO until ``clear`` of the returned list of failures."""
    failed = deque([False])

    def failing(real):
        def read(file, size, position):
            if failed and os.readlink(f"/proc/self/fd/{file._descriptor}") == path:
                failed.append(True)
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return real(file, size, position)

        return read

    for name in ("pread", "pread_cached"):
        monkeypatch.setattr(LocalFile, name, failing(getattr(LocalFile, name)))
    return failed


@pytest.mark.parametrize("scrubber", ["100000000", "0"])
def test_unavailable_disk_is_read_again_soon(tmp_path, monkeypatch, caplog, scrubber):
    """The next reads check it again, at a limited rate, not after ten minutes or a restart."""
    caplog.set_level(logging.INFO)
    config = {**CONFIG, "barnabas.scrub.bytes.per.second": scrubber}
    with Broker(storage=tmp_path, config=config) as broker, Wire(broker.address) as wire:
        topic = create(broker, "t")
        fill(broker, wire, topic, 60)
        log = log_of(broker, topic)
        segment = log.segments[2]
        offset = segment.base_offset
        failed = fail_reads(monkeypatch, segment.log_path)
        assert wire.fetch_one(topic, offset).error_code == OFFLINE
        wait_until(lambda: log.damaged)
        settled(broker)
        for _ in range(3):
            broker.clock.advance(seconds=6)
            before = len(failed)
            for _ in range(20):
                assert wire.fetch_one(topic, offset).error_code == OFFLINE
            settled(broker)
            assert 1 <= len(failed) - before <= 2, "one try, not one for each read"
        failed.clear()
        assert wire.fetch_one(topic, offset).error_code == OFFLINE, "it was tried just now"
        settled(broker)
        assert log.damaged
        broker.clock.advance(seconds=6)
        assert wire.fetch_one(topic, offset).error_code == OFFLINE
        wait_until(lambda: not log.damaged)
        assert positions(wire.fetch_one(topic, offset))[0] == offset
    told = [each.getMessage() for each in caplog.records if " topic=t " in each.getMessage()]
    assert [line.split(" topic")[0] for line in told] == ["log damaged", "log mended"]


def settled(broker):
    """Wait until the scrubber has nothing in hand."""
    scrubber = broker.server.scrubber
    wait_until(lambda: broker.call(lambda: not scrubber._is_running and not scrubber._suspected))


def test_damaged_bytes_are_not_read_again_for_each_reader(broker, wire, topic):
    """Bytes are read again only after a read error: wrong bytes stay wrong."""
    fill(broker, wire, topic, 60)
    log = log_of(broker, topic)
    flip(log.segments[2], 70)
    a_pass(broker)
    settled(broker)
    before = broker.server.scrubber.counts.segments
    broker.clock.advance(seconds=6)
    for _ in range(5):
        assert wire.fetch_one(topic, log.damaged[0].base_offset).error_code == OFFLINE
    settled(broker)
    assert broker.server.scrubber.counts.segments == before


def checkpoint(broker):
    done = []
    broker.call(lambda: broker.server.logs.checkpoint(lambda: done.append(True)))
    wait_until(lambda: done)


def restart(broker, *, kill):
    (broker.crash if kill else broker.stop)()
    broker.restart()


@pytest.mark.parametrize("kill", [False, True])
def test_a_restart_remembers(broker, wire, topic, caplog, kill, tmp_path):
    """A restart keeps damages at once, and verified segments unless the broker was killed."""
    fill(broker, wire, topic, 60)
    checkpoint(broker)  # Else the journal would give back, after a kill, what is damaged here.
    flip(log_of(broker, topic).segments[2], 70)
    a_pass(broker)
    damaged = log_of(broker, topic).damaged
    note = tmp_path / "barnabas-scrub"
    wait_until(lambda: note.exists() and b"checksum of the batch" in note.read_bytes())
    wait_until(lambda: broker.call(lambda: not broker.server.scrubber._is_running))
    checksums = [segment.index_checksum for segment in log_of(broker, topic).segments[:-1]]
    caplog.clear()
    restart(broker, kill=kill)
    log = log_of(broker, topic)
    assert log.damaged == damaged
    assert [segment.index_checksum for segment in log.segments[:-1]] == checksums
    told = [line for line in complaints(caplog) if line.startswith("log still damaged topic=t ")]
    assert len(told) == 1
    with Wire(broker.address) as again:
        assert again.fetch_one(topic, damaged[0].base_offset).error_code == OFFLINE
    counts = broker.server.scrubber.counts
    wait_until(lambda: counts.segments and not broker.server.scrubber._in_pass)
    assert counts.segments == (len(log.segments) - 1 if kill else 1)


def test_a_note_that_cannot_be_read_counts_for_nothing(broker, wire, topic, tmp_path):
    fill(broker, wire, topic, 60)
    a_pass(broker)
    broker.stop()
    path = tmp_path / "barnabas-scrub"
    path.write_bytes(path.read_bytes().replace(b"partitions", b"partitionz"))
    broker.restart()
    scrubber = broker.server.scrubber
    wait_until(lambda: scrubber.counts.segments and not scrubber._in_pass)
    assert scrubber.counts.segments == len(log_of(broker, topic).segments) - 1
