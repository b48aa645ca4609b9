"""The common Produce answers byte for byte what the ordinary one does, and falls back to it.

Two brokers in one process, their clocks stopped: one serves Produce with its shortcut, the other
without. The same random requests go to both.
"""

from __future__ import annotations

import random
import struct

import pytest

from barnabas.broker.handlers.records.produce_shortcut import ProduceShortcut, ShortProduce
from barnabas.protocol.messages.add_partitions_to_txn import ADD_PARTITIONS_TO_TXN
from barnabas.protocol.messages.end_txn import END_TXN, EndTxnRequest
from barnabas.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from barnabas.protocol.messages.metadata import METADATA, MetadataRequest
from barnabas.protocol.messages.produce import PRODUCE, ProduceRequest
from barnabas.protocol.records import iterate_batches
from barnabas.testing import Broker
from tests.broker.data_plane import (
    NOW_MS,
    PRODUCE_VERSIONS,
    Named,
    Wire,
    batch,
    produce_request,
    topic_data,
)
from tests.products import case
from tests.requests import add_partitions_request
from tests.seeds import SEED
from tests.worlds import world

__all__ = ["world"]

REQUESTS = 250
LAYOUTS = {3, 7, 9, 13}
"""Versions that differ in what the shortcut reads: none of it, the first, tags, ids of topics."""
PATIENCE_S = 60
"""For one answer: other tests run beside this one."""
TOPICS = ("plain", "stamped", "small", "compacted", "gone")
UNKNOWN = Named("nope", bytes([9] * 16))


class Side:
    """One of the two brokers, one connection to it, and the bytes of its answers."""

    def __init__(self, broker: Broker, client_id: str | None = "one") -> None:
        self.broker = broker
        self.client_id = client_id
        self.wire = Wire(broker.address, client_id, PATIENCE_S)
        self.kept = bytearray()
        self.received = bytearray()
        self.owed = 0

    def send(self, frame: bytes) -> None:
        self.kept += frame
        self.owed += 1

    def flush(self) -> None:
        """Send the kept bytes, so that they arrive together."""
        self.wire.socket.sendall(self.kept)
        self.kept.clear()

    def answers(self) -> list[bytes]:
        """Return the bytes of every pending response."""
        self.flush()
        found = []
        for _ in range(self.owed):
            (size,) = struct.unpack(">i", self.exactly(4))
            found.append(self.exactly(size))
        self.owed = 0
        return found

    def exactly(self, size: int) -> bytes:
        while len(self.received) < size:
            data = self.wire.socket.recv(1 << 16)
            assert data, "hung up"
            self.received += data
        taken = bytes(self.received[:size])
        del self.received[:size]
        return taken

    def reconnect(self, client_id: str | None) -> None:
        self.wire.socket.close()
        self.wire = Wire(self.broker.address, client_id, PATIENCE_S)


def create(broker: Broker, name: str) -> None:
    configs = {
        "stamped": {"message.timestamp.type": "LogAppendTime"},
        "small": {"max.message.bytes": "300"},
        "compacted": {"cleanup.policy": "compact"},
    }
    broker.create_topic(name, 3, configs.get(name, {}))


def remove(broker: Broker, name: str) -> None:
    catalogue = broker.server.catalogue
    broker._do(catalogue.delete_topic(catalogue.topics[name].topic_id))


@pytest.fixture(scope="module")
def brokers():
    with Broker() as short, Broker() as ordinary:
        for broker in (short, ordinary):
            # Append times must agree: both clocks stop at the same moment.
            broker.call(lambda broker=broker: stop_clock(broker))
            for name in TOPICS:
                create(broker, name)
        route = ordinary.server.routes.get(PRODUCE.key)
        without = route.copy(shortcut=None)
        ordinary.call(lambda: ordinary.server.sockets.replace_route(without))
        yield short, ordinary


@pytest.fixture
def sides(brokers):
    """A connection to each broker."""
    opened = [Side(broker) for broker in brokers]
    yield opened
    for side in opened:
        side.wire.socket.close()


def stop_clock(broker: Broker) -> None:
    clock = broker.server.clock
    clock.now_ms = lambda: NOW_MS
    broker.server.logs.now_ms = clock.now_ms


@pytest.fixture
def taken(monkeypatch):
    """Counts how often the shortcut was used."""
    counts = {"taken": 0, "requests": 0}
    take = ProduceShortcut.take

    def counted(self, frames):
        pending = take(self, frames)
        if pending is not None:
            counts["requests"] += pending.requests
            counts["taken"] += 1
        return pending

    monkeypatch.setattr(ProduceShortcut, "take", counted)
    return counts


def topic_ids(broker: Broker) -> dict[str, bytes]:
    topics = broker.server.catalogue.topics
    return broker.call(lambda: {name: topic.topic_id for name, topic in topics.items()})


def random_batch(chosen: random.Random) -> memoryview:
    # The largest come in frames with memory of their own.
    sizes = [0, 1, 50, 150, 400, 5000, 70_000, 280_000]
    size = chosen.choices(sizes, [3, 3, 3, 3, 3, 3, 2, 1])[0]
    settings: dict[str, int] = {}
    if chosen.random() < 0.4:
        settings = {
            "producer_id": chosen.randrange(3),
            "producer_epoch": chosen.randrange(2),
            "base_sequence": chosen.randrange(4),
        }
    if chosen.random() < 0.2:
        settings["compression"] = chosen.randrange(1, 5)
    if chosen.random() < 0.05:
        settings |= {"producer_id": 1, "producer_epoch": 0, "base_sequence": 0, "transactional": 1}
    records = batch(*[b"v" * size] * chosen.randrange(1, 4), **settings)
    if chosen.random() < 0.1:
        records[chosen.randrange(len(records))] ^= 1 << chosen.randrange(8)
    return records


def random_request(chosen: random.Random, version: int, ids: dict[str, bytes]) -> ProduceRequest:
    def topic() -> Named:
        if chosen.random() < 0.05:
            return UNKNOWN
        name = chosen.choices(TOPICS, [8, 3, 2, 1, 1])[0]
        return Named(name, ids[name])

    def data() -> tuple[int, memoryview | None]:
        if chosen.random() < 0.03:
            return 0, chosen.choice([None, memoryview(b"")])
        return chosen.choice([0, 0, 1, 2, 2, 3, -1]), random_batch(chosen)

    acks = chosen.choices([-1, 1, 2, -2], [10, 10, 1, 1])[0]
    transactional_id = "some" if chosen.random() < 0.05 else None
    request = produce_request(version, topic(), data(), acks=acks)
    request.transactional_id = transactional_id
    if chosen.random() < 0.1:
        request.topic_data.append(topic_data(version, topic(), data(), data()))
    return request


def with_tags(frame: bytes, chosen: random.Random, version: int) -> bytes:
    """Put an unknown tagged field at the end of a flexible request, or in its header."""
    if version < 9:
        return frame
    tag = b"\x01\x63\x03abc"
    if chosen.random() < 0.5:
        return struct.pack(">i", len(frame) - 4 + len(tag) - 1) + frame[4:-1] + tag
    (client,) = struct.unpack_from(">h", frame, 12)
    at = 14 + max(client, 0)
    assert frame[at] == 0
    return struct.pack(">i", len(frame) - 4 + len(tag) - 1) + frame[4:at] + tag + frame[at + 1 :]


@pytest.mark.parametrize(
    "version", [case(each, in_test=each in LAYOUTS) for each in PRODUCE_VERSIONS]
)
def test_random_requests_are_answered_alike(brokers, sides, taken, version):
    print(f"SEED={SEED}")  # pytest shows it with any failure
    chosen = random.Random(SEED + version)
    ids = [topic_ids(broker) for broker in brokers]
    request = random_request(chosen, version, ids[0])
    for step in range(REQUESTS):
        # Producers repeat themselves: what they send again differs in its records only.
        if chosen.random() < 0.25:
            request = random_request(chosen, version, ids[0])
        elif chosen.random() < 0.8:
            request = with_other_records(request, chosen)
        tagged = chosen.random() < 0.1
        for side, known in zip(sides, ids, strict=True):
            translated = renamed(request, ids[0], known)
            frame = side.wire.encode(PRODUCE, translated, version, answered=False)
            side.send(with_tags(frame, random.Random(step), version) if tagged else frame)
        if chosen.random() < 0.2:
            for side in sides:
                side.flush()
        if chosen.random() < 0.2:
            compare(sides, ids)
        if chosen.random() < 0.02:
            client_id = chosen.choice(["two", None, "x" * 200])
            compare(sides, ids)
            for side in sides:
                side.reconnect(client_id)
    compare(sides, ids)
    for name in TOPICS:
        for partition in range(3):
            stored = [
                side.wire.read(Named(name, known[name]), partition)
                for side, known in zip(sides, ids, strict=True)
            ]
            assert stored[0] == stored[1], f"seed {SEED}"
    if version >= 7:
        assert taken["requests"] > REQUESTS / 20
    else:
        assert taken["requests"] == 0


def with_other_records(request: ProduceRequest, chosen: random.Random) -> ProduceRequest:
    topics = []
    for topic in request.topic_data:
        data = [(each.index, random_batch(chosen)) for each in topic.partition_data]
        named = Named(topic.name, topic.topic_id)
        topics.append(topic_data(13 if not topic.name else 9, named, *data))
    return ProduceRequest(request.transactional_id, request.acks, 30_000, topics)


def renamed(request: ProduceRequest, mine: dict[str, bytes], known: dict[str, bytes]):
    """The request with the topic ids that the other broker gave."""
    translation = {mine[name]: known[name] for name in mine}
    topics = [
        topic_data(
            13 if not topic.name else 9,
            Named(topic.name, translation.get(topic.topic_id, topic.topic_id)),
            *[(each.index, each.records) for each in topic.partition_data],
        )
        for topic in request.topic_data
    ]
    return ProduceRequest(request.transactional_id, request.acks, 30_000, topics)


def compare(sides: list[Side], ids: list[dict[str, bytes]]) -> None:
    first, second = (side.answers() for side in sides)
    for name, mine in ids[1].items():
        second = [answer.replace(mine, ids[0][name]) for answer in second]
    assert first == second, f"seed {SEED}"


@pytest.mark.parametrize("version", range(7, 14))
def test_topics_come_and_go_under_a_known_request(brokers, sides, taken, version):
    def both(*, by: str = "gone") -> None:
        ids = [topic_ids(broker) for broker in brokers]
        for _ in range(3):
            for side, known in zip(sides, ids, strict=True):
                topic = Named(by, known.get(by, bytes([7] * 16)))
                request = produce_request(version, topic, (0, batch(b"v")))
                side.send(side.wire.encode(PRODUCE, request, version, answered=False))
        compare(sides, [{k: v for k, v in known.items() if k == by} for known in ids])

    both()
    used = taken["requests"]
    assert used >= 2
    for broker in brokers:
        remove(broker, "gone")
    both()
    for broker in brokers:
        create(broker, "gone")
    both()
    assert taken["requests"] > used
    both(by="plain")


@pytest.mark.parametrize("version", range(7, 14))
def test_old_id_of_a_topic_created_again_is_rejected(brokers, version):
    short = brokers[0]
    old = topic_ids(short)["gone"]
    with Wire(short.address) as wire:
        topic = Named("gone", old)
        assert [wire.produce(topic, batch(), version=version).error_code for _ in range(3)] == [
            0,
            0,
            0,
        ]
        remove(short, "gone")
        create(short, "gone")
        expected = 100 if version >= 13 else 0
        for _ in range(2):
            assert wire.produce(topic, batch(), version=version).error_code == expected
    for broker in brokers:  # The other tests need the same offsets on both sides.
        remove(broker, "gone")
        create(broker, "gone")


@pytest.mark.parametrize("version", range(7, 14))
def test_short_answers_keep_their_place(brokers, taken, version):
    """Pipelined, with other requests and ordinary produces between them."""
    # A topic of its own, on both: those of the other tests need the same offsets on both sides.
    name = f"pipelined-{version}"
    for broker in brokers:
        create(broker, name)
    short = brokers[0]
    pipelined = Named(name, topic_ids(short)[name])
    with Wire(short.address) as wire:
        frames = []
        for number in range(300):
            data = [(1, batch(b"%d" % number))]
            if number % 7 == 0:
                data.append((2, batch(b"other")))
            request = produce_request(version, pipelined, *data)
            frames.append(wire.encode(PRODUCE, request, version))
            if number % 50 == 0:
                frames.append(wire.encode(METADATA, MetadataRequest([]), 12))
        wire.socket.sendall(b"".join(frames))
        for number in range(300):
            response = wire.receive()  # Compares the correlation id.
            assert response.responses[0].partition_responses[0].base_offset == number
            if number % 50 == 0:
                assert wire.receive().brokers
    assert taken["requests"] > 100
    assert taken["taken"] < taken["requests"] / 2, "what comes in together is taken together"


class Writer:
    """A transactional producer known to both brokers; it does not always play by the rules."""

    def __init__(self, sides: list[Side], topic: str, name: str, version: int) -> None:
        self.sides = sides
        self.topic = topic
        self.name = name
        self.version = version
        request = InitProducerIdRequest(name, 60_000)
        answer = self.both(INIT_PRODUCER_ID, request, 4)
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        self.next_sequence = [0, 0, 0]
        self.begin()

    def both(self, api, request, version):
        answers = [side.wire.ask(api, request, version) for side in self.sides]
        assert answers[0] == answers[1], f"seed {SEED}"
        return answers[0]

    def begin(self, partitions=(0, 1, 2)) -> None:
        """Start a transaction; before version 12 the producer adds the partitions."""
        if self.version < 12:
            places = [(self.topic, each) for each in partitions]
            request = add_partitions_request(self.name, (self.producer_id, self.epoch), *places)
            self.both(ADD_PARTITIONS_TO_TXN, request, 3)

    def end(self, *, commit: bool) -> None:
        request = EndTxnRequest(self.name, self.producer_id, self.epoch, commit)
        answer = self.both(END_TXN, request, 5 if self.version >= 12 else 4)
        if self.version >= 12 and not answer.error_code:
            self.epoch = answer.producer_epoch
        broker = self.sides[1].broker
        logs = [each.log for each in broker.server.catalogue.topics[self.topic].partitions]
        entries = broker.call(lambda: [log.producers.entry(self.producer_id) for log in logs])
        for partition, entry in enumerate(entries):
            known = entry is not None and entry.epoch == self.epoch
            self.next_sequence[partition] = entry.last_sequence + 1 if known else 0

    def request(self, chosen: random.Random, partition: int) -> ProduceRequest:
        """Mostly the next batch of the transaction."""
        kinds = ["next", "repeated", "gap", "old", "plain", "without id", "control"]
        kind = chosen.choices(kinds, [60, 3, 1, 1, 2, 1, 1])[0]
        count = chosen.randrange(1, 4)
        sequence = self.next_sequence[partition]
        if kind == "next":
            self.next_sequence[partition] += count
        elif kind == "gap":
            sequence += 1
        elif kind == "repeated":
            sequence = max(0, sequence - count)
        size = chosen.choices([1, 50, 400, 5000, 70_000], [4, 4, 4, 2, 1])[0]
        records = batch(
            *[b"%d" % sequence + b"v" * size] * count,
            producer_id=self.producer_id,
            producer_epoch=self.epoch - (kind == "old"),
            base_sequence=sequence,
            transactional=kind != "plain",
            control=kind == "control",
        )
        name = None if kind == "without id" else self.name
        return ProduceRequest(
            name, -1, 1000, [topic_data(9, Named(self.topic), (partition, records))]
        )


@pytest.mark.parametrize("version", range(7, 14))
def test_transactions_are_answered_alike(brokers, sides, taken, version):
    print(f"SEED={SEED}")
    chosen = random.Random(SEED + version)
    # A topic of its own: elsewhere others have used these producer ids, which are the first.
    name = f"transactional-{version}"
    for broker in brokers:
        create(broker, name)
    ids = [{name: topic_ids(broker)[name]} for broker in brokers]
    writers = [Writer(sides, name, f"id-{version}-{number}", version) for number in range(2)]
    writer, partition = writers[0], 0
    for _ in range(REQUESTS):
        if chosen.random() < 0.1:
            writer, partition = chosen.choice(writers), chosen.randrange(3)
        request = writer.request(chosen, partition)
        for side, known in zip(sides, ids, strict=True):
            topic = Named(name, known[name])
            data = request.topic_data[0].partition_data[0]
            asked = topic_data(version, topic, (data.index, data.records))
            sent = ProduceRequest(request.transactional_id, -1, 1000, [asked])
            side.send(side.wire.encode(PRODUCE, sent, version, answered=False))
        if chosen.random() < 0.2:
            compare(sides, ids)
        if chosen.random() < 0.05:
            compare(sides, ids)
            writer.end(commit=chosen.random() < 0.5)
            writer.begin(chosen.choice([(0, 1, 2), (0,)]))
    compare(sides, ids)
    for each in writers:
        each.end(commit=True)
    for partition in range(3):
        stored = [
            fetched_whole(side, Named(name, known[name]), partition)
            for side, known in zip(sides, ids, strict=True)
        ]
        assert stored[0] == stored[1], f"seed {SEED}"
    assert taken["requests"] > REQUESTS / 20


def fetched_whole(
    side: Side, topic: Named, partition: int
) -> tuple[list[bytes], set[tuple[int, int]]]:
    """Batches and aborted transactions of a partition, to a reader of committed records."""
    found: list[bytes] = []
    aborted: set[tuple[int, int]] = set()
    offset = 0
    while True:
        data = side.wire.fetch_one(topic, offset, partition, isolation=1)
        batches = list(iterate_batches(data.records))
        aborted |= {(each.producer_id, each.first_offset) for each in data.aborted_transactions}
        if not batches:
            assert data.last_stable_offset == data.high_watermark == offset, "nothing is open"
            return found, aborted
        found += [bytes(data.records[at : at + header.size]) for at, header in batches]
        offset = batches[-1][1].next_offset


def test_response_of_a_closed_connection_is_dropped():
    pending = ShortProduce(bytearray(b"answer"), 1, None, 0)
    pending.prepare()
    assert pending.chunks is None
