"""The broker prepares responses during a sync; none leaves before its records are durable."""

from __future__ import annotations

import errno
from contextlib import contextmanager

import pytest

from barnabas.broker.api.waiting import FetchWaits
from barnabas.protocol.messages.fetch import FETCH
from barnabas.protocol.messages.produce import PRODUCE
from barnabas.storage.files.io import LocalFile
from barnabas.storage.journal.committer import JournalCommitter
from barnabas.storage.runtime.threads import new_event
from barnabas.testing import Broker
from tests.broker.data_plane import Named, Wire, batch, fetch_request, produce_request

TOPIC = Named("t")
VERSION = 12
TIMEOUT_S = 60
SHORT, LONG = b"v", b"v" * 5000


@pytest.fixture
def the_loop_commits(monkeypatch):
    """However long this disk takes: only the loop prepares responses during a sync."""
    monkeypatch.setattr(JournalCommitter, "flushes_are_quick", True)


@contextmanager
def waiting_reader(broker):
    """A producer, and a reader whose Fetch waits for what the producer sends next."""
    broker.create_topic("t", 1)
    with Wire(broker.address) as producer, Wire(broker.address) as reader:
        first = producer.produce(TOPIC, batch(SHORT))
        assert first.error_code == 0
        end = first.base_offset + 1
        request = fetch_request(VERSION, (TOPIC, (0, end)), max_wait_ms=TIMEOUT_S * 1000)
        reader.send(FETCH, request, VERSION)
        assert reader.silent()
        yield producer, reader


def at_the_sync(monkeypatch, name, action):
    """Call ``action`` where the journal would be synced, with the sync: it makes it, or not."""
    genuine = getattr(LocalFile, name)

    def sync(file, *arguments):
        if "journal" in file.path:
            action(lambda: genuine(file, *arguments))
        else:
            genuine(file, *arguments)

    monkeypatch.setattr(LocalFile, name, sync)


def note_answered(monkeypatch):
    """Record the number of waiting fetches at each completion."""
    answered = []
    genuine = FetchWaits.answer_due

    def answer_due(waits):
        answered.append(len(waits._due))
        genuine(waits)

    monkeypatch.setattr(FetchWaits, "answer_due", answer_due)
    return answered


@pytest.mark.usefixtures("the_loop_commits")
@pytest.mark.parametrize(
    ("value", "call"), [(SHORT, "fdatasync"), (LONG, "pwritev_durable")], ids=["short", "long"]
)
def test_nothing_leaves_before_it_is_durable(tmp_path, monkeypatch, value, call):
    synced = new_event()
    silent = []

    def look(sync):
        silent.append(producer.silent(0.2) and reader.silent(0.2))
        sync()
        synced.set()

    with Broker(storage=tmp_path) as broker, waiting_reader(broker) as (producer, reader):
        with monkeypatch.context() as patch:
            at_the_sync(patch, call, look)
            producer.send(PRODUCE, produce_request(9, TOPIC, (0, batch(value))), 9)
            assert synced.wait(TIMEOUT_S)
        assert silent == [True]
        fetched = reader.receive().responses[0].partitions[0]
        assert bytes(fetched.records).endswith(value + b"\0"), "the record, without headers"
        assert producer.receive().responses[0].partition_responses[0].error_code == 0


@pytest.mark.usefixtures("the_loop_commits")
def test_failed_sync_sends_no_prepared_response(tmp_path, monkeypatch):
    """The disk fails after the responses are prepared: both clients are disconnected (D9)."""
    failed = new_event()
    answered = note_answered(monkeypatch)
    in_front = []

    def fail(_):
        in_front.extend(answered)
        failed.set()
        raise OSError(errno.EIO, "planted")

    ended = pytest.raises(RuntimeError, match="the broker had stopped by itself")
    with (
        ended as end,
        Broker(storage=tmp_path) as broker,
        waiting_reader(broker) as (producer, reader),
        monkeypatch.context() as patch,
    ):
        answered.clear()
        at_the_sync(patch, "fdatasync", fail)
        producer.send(PRODUCE, produce_request(9, TOPIC, (0, batch(SHORT))), 9)
        assert failed.wait(TIMEOUT_S)
        assert producer.hung_up()
        assert reader.hung_up()
    assert 1 in in_front, "the fetch was answered in front of the sync"
    assert str(end.value.__cause__) == "[Errno 5] planted"


def test_a_duplicate_is_answered_with_its_original(tmp_path, monkeypatch):
    """Sent again while its original is in flight, and nothing else is appended behind it (S4)."""
    under_way, may_go_on = new_event(), new_event()

    def hold(sync):
        under_way.set()
        assert may_go_on.wait(TIMEOUT_S)
        sync()

    def numbered(sequence):
        records = batch(SHORT, producer_id=7, producer_epoch=0, base_sequence=sequence)
        return produce_request(9, TOPIC, (0, records))

    def answer(wire):
        return wire.receive().responses[0].partition_responses[0]

    with Broker(storage=tmp_path) as broker:
        broker.create_topic("t", 1)
        with Wire(broker.address) as first, Wire(broker.address) as again:
            for sequence, wire in enumerate((first, again)):  # Each knows its shortcut now.
                wire.send(PRODUCE, numbered(sequence), 9)
                assert answer(wire).base_offset == sequence
            with monkeypatch.context() as patch:
                at_the_sync(patch, "pwritev_durable", hold)
                first.send(PRODUCE, numbered(2), 9)
                assert under_way.wait(TIMEOUT_S)
                again.send(PRODUCE, numbered(2), 9)
                assert again.silent()
                may_go_on.set()
                answers = [answer(first), answer(again)]
                assert [(each.error_code, each.base_offset) for each in answers] == [(0, 2)] * 2
