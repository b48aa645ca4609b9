"""The state of each record against what kafka-python reads, in both isolation levels."""

from __future__ import annotations

from typing import NamedTuple

import kafka
import pytest
from confluent_kafka import Producer
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.testing import Broker
from tests.broker.console.asking import HTTP
from tests.broker.console.test_records import all_pages
from tests.counterparts.transaction_client import TransactionClient
from tests.waiting import wait_until

KEYS = ("state-1", "state-2", "state-3")
PARTITIONS = 2
PLAIN = "plain"


class Write(NamedTuple):
    """A batch of a producer, in a transaction if the producer has an id."""

    who: str
    partition: int
    count: int


class End(NamedTuple):
    """The end of a transaction, if there is one."""

    who: str
    commit: bool


class Cut(NamedTuple):
    """The log begins later from now on, by a part of what can be read."""

    partition: int
    part: float


STEPS = st.lists(
    st.one_of(
        st.builds(
            Write,
            st.sampled_from((*KEYS, PLAIN)),
            st.integers(0, PARTITIONS - 1),
            st.integers(1, 4),
        ),
        st.builds(End, st.sampled_from(KEYS), st.booleans()),
        st.builds(Cut, st.integers(0, PARTITIONS - 1), st.floats(0, 1)),
    ),
    min_size=4,
    max_size=24,
)


class Reader:
    """A consumer of kafka-python's, in one isolation level."""

    def __init__(self, broker, isolation):
        self._broker = broker
        self._consumer = kafka.KafkaConsumer(
            bootstrap_servers=broker.bootstrap_servers,
            group_id=None,
            isolation_level=isolation,
            auto_offset_reset="earliest",
        )
        self._committed = isolation == "read_committed"

    def offsets(self, topic):
        """Return the offsets that the consumer receives, by partition, up to its end."""
        places = [kafka.TopicPartition(topic, index) for index in range(PARTITIONS)]
        self._consumer.assign(places)
        self._consumer.seek_to_beginning(*places)
        found = {index: [] for index in range(PARTITIONS)}
        ends = {
            place: log.last_stable_offset if self._committed else log.high_watermark
            for place in places
            for log in [log_of(self._broker, topic, place.partition)]
        }

        def is_done():
            for place, records in self._consumer.poll(timeout_ms=100).items():
                found[place.partition] += [each.offset for each in records]
            return all(self._consumer.position(place) >= end for place, end in ends.items())

        wait_until(is_done, "read to the end")
        return found

    def close(self):
        self._consumer.close()


def log_of(broker, topic, partition):
    return broker.server.catalogue.topic(topic).partitions[partition].log


class Script:
    """Runs steps on a topic of its own, and knows what has become of each transaction."""

    number = 0

    def __init__(self, broker, client, producer):
        Script.number += 1
        self.topic = f"script-{Script.number}"
        self._broker = broker
        self._client = client
        self._producer = producer
        self._open = {}
        self.fates = {index: {} for index in range(PARTITIONS)}
        """The reported state of each written record, by partition and offset."""
        broker.create_topic(self.topic, partitions=PARTITIONS)

    def run(self, step):
        match step:
            case Write(who, partition, count) if who == PLAIN:
                first = self._end(partition)
                for _ in range(count):
                    self._producer.produce(self.topic, b"x", partition=partition)
                assert self._producer.flush(30) == 0
                self._note(partition, first, count, {"state": "plain"})
            case Write(who, partition, count):
                if who not in self._open:
                    self._open[who] = {"state": "open", "at": set()}
                transaction = self._open[who]
                if partition not in transaction["at"]:
                    self._client.add(who, self.topic, partition)
                    transaction["at"].add(partition)
                first = self._end(partition)
                self._client.write(who, self.topic, partition, count)
                self._note(partition, first, count, transaction)
            case End(who, commit) if who in self._open:
                self._client.end(who, commit=commit)
                transaction = self._open.pop(who)
                transaction["state"] = "committed" if commit else "aborted"
                wait_until(lambda: not self._is_open(who, transaction["at"]), "markers are there")
            case Cut(partition, part):
                self._cut(partition, part)

    def _end(self, partition):
        return log_of(self._broker, self.topic, partition).next_offset

    def _is_open(self, who, partitions):
        producer_id, _ = self._client.producers[who]
        logs = [log_of(self._broker, self.topic, partition) for partition in partitions]
        return any(
            log.producers.has_open_transaction(producer_id) or log.high_watermark < log.next_offset
            for log in logs
        )

    def _note(self, partition, first, count, transaction):
        for offset in range(first, first + count):
            self.fates[partition][offset] = transaction

    def _cut(self, partition, part):
        log = log_of(self._broker, self.topic, partition)
        start = log.log_start_offset
        target = start + int((log.last_stable_offset - start) * part)
        self._broker.server.loop.call_soon_threadsafe(log.delete_records, target)
        wait_until(lambda: log.log_start_offset >= target, "the log begins there")

    def end_all(self, commits):
        for who, commit in zip(list(self._open), commits, strict=False):
            self.run(End(who, commit))

    def expected(self, partition):
        """Return the state of each record by the protocol."""
        log = log_of(self._broker, self.topic, partition)
        states = {}
        for offset, transaction in self.fates[partition].items():
            if offset >= log.log_start_offset:
                state = transaction["state"]
                is_held_back = offset >= log.last_stable_offset and state in {"plain", "committed"}
                states[offset] = "waiting" if is_held_back else state
        return states


@pytest.fixture(scope="module")
def broker():
    with Broker(config={**HTTP, "transaction.state.log.num.partitions": "1"}) as running:
        running.port = running.address[1]
        yield running


@pytest.fixture(scope="module")
def readers(broker):
    found = [Reader(broker, each) for each in ("read_uncommitted", "read_committed")]
    yield found
    for each in found:
        each.close()


@pytest.fixture(scope="module")
def producer(broker):
    return Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 0})


@pytest.fixture(scope="module")
def client(broker):
    with TransactionClient(broker) as found:
        for key in KEYS:
            found.init(key)
        yield found


@settings(max_examples=25)
@given(
    steps=STEPS,
    commits=st.lists(st.booleans(), min_size=3, max_size=3),
    order=st.sampled_from(("newest", "oldest")),
    limit=st.sampled_from((1, 3, 50, 500)),
)
def test_states_are_what_kafka_python_reads(
    broker, readers, producer, client, steps, commits, order, limit
):
    script = Script(broker, client, producer)
    try:
        for step in steps:
            script.run(step)
        compare(broker, readers, script, order, limit)
    finally:
        script.end_all(commits)
    compare(broker, readers, script, order, limit)


def compare(broker, readers, script, order, limit):
    uncommitted, committed = (reader.offsets(script.topic) for reader in readers)
    everything, _ = all_pages(broker, script.topic, view="all", order=order, limit=limit)
    default, _ = all_pages(broker, script.topic, order=order, limit=limit)
    for index in range(PARTITIONS):
        rows = [each for each in everything if each["partition"] == index]
        states = {each["offset"]: each["state"] for each in rows if each["state"] != "marker"}
        assert len(rows) == len({each["offset"] for each in rows})
        assert sorted(states) == uncommitted[index]
        readable = [at for at, state in states.items() if state in {"plain", "committed"}]
        assert sorted(readable) == committed[index]
        assert states == script.expected(index)
        shown = [each["offset"] for each in default if each["partition"] == index]
        assert shown == sorted(committed[index], reverse=order == "newest")
