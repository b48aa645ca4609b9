"""A Fetch of very many partitions: the loop is free for others, and no record is overlooked."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Iterator
from contextlib import closing

import pytest

from barnabas.broker.handlers.records import fetch, fetch_reader
from barnabas.protocol.messages.delete_topics import DELETE_TOPICS, DeleteTopicsRequest
from barnabas.protocol.messages.fetch import FETCH, FetchResponse
from barnabas.protocol.messages.metadata import METADATA, MetadataRequest
from barnabas.testing import Broker
from tests.attack.loop_lag import loop_lag
from tests.broker.data_plane import Named, Wire, batch, fetch_request, values
from tests.garbage import collector_of_a_daemon
from tests.products import case
from tests.waiting import wait_until

pytestmark = pytest.mark.slow
BUSY_MS_MOST = 100
"""The rule is 50; a crowded machine that also traces coverage may take twice as long."""
TOPICS, PARTITIONS = 4, 9900
VERSION = 12
PATIENCE_MS = 60_000
MANY = [Named(f"topic-{number}", bytes(16)) for number in range(TOPICS)]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    ENDS.clear()  # A worker can come back to this file, with a broker of its own each time.
    with Broker() as running:
        for topic in MANY:
            running.create_topic(topic.name, PARTITIONS)
        with collector_of_a_daemon():
            yield running


class Session:
    """A client that fetches every partition there is, and asks on from where it is."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.epoch = 0
        every = [
            (topic, *((index, self._end(topic, index)) for index in range(PARTITIONS)))
            for topic in MANY
        ]
        self.first: FetchResponse = wire.ask(
            FETCH, fetch_request(VERSION, *every, session=(0, 0)), VERSION
        )
        self.session_id = self.first.session_id

    def _end(self, topic: Named, index: int) -> int:
        return ENDS.get((topic.name, index), 0)

    def close(self) -> None:
        """End the session: there is room for few of its size."""
        asked = fetch_request(VERSION, session=(self.session_id, -1))
        assert self.wire.ask(FETCH, asked, VERSION).error_code == 0

    def send(self, **more: object) -> None:
        self.epoch += 1
        session = (self.session_id, self.epoch)
        self.wire.send(FETCH, fetch_request(VERSION, session=session, **more), VERSION)

    def ask(self, **more: object) -> list[tuple[str, int, list[bytes | None]]]:
        self.send(**more)
        return told(self.wire.receive())


ENDS: dict[tuple[str, int], int] = {}
"""The ends of the partitions with records."""


def produce(wire: Wire, topic: Named, index: int, value: bytes) -> None:
    assert wire.produce(topic, batch(value), index).error_code == 0
    ENDS[topic.name, index] = ENDS.get((topic.name, index), 0) + 1


def told(response: FetchResponse) -> list[tuple[str, int, list[bytes | None]]]:
    assert response.error_code == 0
    return [
        (topic.topic, each.partition_index, values(each.records))
        for topic in response.responses
        for each in topic.partitions
    ]


def test_the_loop_is_free_while_very_many_partitions_are_read(broker):
    with Wire(broker.address) as wire:
        with loop_lag(broker, f"Fetch of {TOPICS * PARTITIONS}") as lag:
            session = Session(wire)
        assert session.session_id
        assert len(told(session.first)) == TOPICS * PARTITIONS
        assert lag.busy_ms < BUSY_MS_MOST
        for _ in range(3):
            with loop_lag(broker, "the same in a session") as lag:
                assert session.ask() == []
            assert lag.busy_ms < BUSY_MS_MOST
        with loop_lag(broker, "the same with a wait") as lag:
            assert session.ask(max_wait_ms=200) == []
        assert lag.busy_ms < BUSY_MS_MOST
        session.close()
        session.close()
    wait_until(lambda: not broker.call(lambda: len(broker.server.fetch_waits)))


MOMENTS = [0, 0.01, 0.05, 0.5]
PLACES = [(0, 0), (0, PARTITIONS - 1), (1, 0), (1, PARTITIONS - 1)]
"""Isolation of the reader, and partition of the record."""
DELAYS = [case(0, in_test=False), case(0.02, in_test=True), case(0.5, in_test=False)]


@pytest.mark.parametrize(
    ("delay_s", "isolation", "index"),
    [
        case(delay_s, *place, in_test=PLACES.index(place) == MOMENTS.index(delay_s))
        for delay_s, place in itertools.product(MOMENTS, PLACES)
    ],
)
def test_a_record_ends_the_wait_whenever_it_comes(broker, delay_s, index, isolation):
    """A record arrives before its partition is read, between the slices, or during the wait."""
    topic = MANY[0] if not index else MANY[-1]
    with (
        Wire(broker.address) as wire,
        Wire(broker.address) as producer,
        closing(Session(wire)) as session,
    ):
        begun = time.monotonic()
        session.send(max_wait_ms=PATIENCE_MS, isolation=isolation)
        time.sleep(delay_s)
        produce(producer, topic, index, b"news")
        assert told(wire.receive()) == [(topic.name, index, [b"news"])]
        assert time.monotonic() - begun < PATIENCE_MS / 1000 / 2


@pytest.mark.parametrize("delay_s", DELAYS)
def test_another_request_behind_it_ends_the_wait(broker, delay_s):
    with Wire(broker.address) as wire, closing(Session(wire)) as session:
        session.send(max_wait_ms=PATIENCE_MS)
        time.sleep(delay_s)
        wire.send(METADATA, MetadataRequest([]), 9)
        assert told(wire.receive()) == []
        assert wire.receive().topics == []


@pytest.mark.parametrize("delay_s", DELAYS)
def test_nothing_is_left_of_a_client_that_goes(broker, delay_s):
    with Wire(broker.address) as wire:
        session = Session(wire)
        session.send(max_wait_ms=PATIENCE_MS)
        time.sleep(delay_s)
    with Wire(broker.address) as wire:
        session.wire = wire
        session.close()
    wait_until(lambda: not broker.call(lambda: len(broker.server.fetch_waits)))
    wait_until(lambda: not broker.call(lambda: _running(broker)))


def _running(broker: Broker) -> list[str]:
    return [task.get_name() for task in asyncio.all_tasks() if task.get_name() == "fetch"]


@pytest.mark.parametrize("delay_s", DELAYS)
def test_a_topic_that_is_deleted_ends_the_wait(broker, delay_s, monkeypatch):
    monkeypatch.setattr(fetch, "PARTITIONS_AT_ONCE", 0)
    monkeypatch.setattr(fetch_reader, "PARTITIONS_PER_SLICE", 1)
    brief = Named("brief", bytes(16))
    broker.create_topic(brief.name, 10)
    with Wire(broker.address) as wire, Wire(broker.address) as other:
        asked = fetch_request(
            VERSION, (brief, *((index, 0) for index in range(10))), max_wait_ms=PATIENCE_MS
        )
        wire.send(FETCH, asked, VERSION)
        time.sleep(delay_s)
        other.ask(DELETE_TOPICS, DeleteTopicsRequest(topic_names=[brief.name]), 5)
        found = {each.error_code for each in wire.receive().responses[0].partitions}
        assert found - {0}
