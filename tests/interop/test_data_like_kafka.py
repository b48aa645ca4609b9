"""Produce, Fetch and ListOffsets answer what Apache Kafka 4.3.0 answers, in every version.

One script is for both brokers. Ids, epochs and append times cannot be equal and are compared by
whether they are set; what differs on purpose is listed, each with its reason, and must differ.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import pytest

from barnabas.protocol.messages.delete_records import DELETE_RECORDS
from barnabas.protocol.messages.fetch import FETCH, FetchPartition
from barnabas.protocol.messages.list_offsets import LIST_OFFSETS, ListOffsetsPartition
from barnabas.protocol.messages.produce import PRODUCE, ProduceRequest
from barnabas.protocol.records import Record, encode_batch, iterate_batches
from barnabas.protocol.wire import ZERO_UUID
from tests.broker.data_plane import (
    FETCH_VERSIONS,
    LIST_OFFSETS_VERSIONS,
    NOW_MS,
    PRODUCE_VERSIONS,
    Named,
    Wire,
    batch,
    fetch_request,
    list_offsets_request,
    produce_request,
    topic_data,
)
from tests.counterparts.broker_process import BrokerProcess
from tests.interop import transactions_on_partitions
from tests.interop.recorded_kafka import Barnabas, plain
from tests.requests import codes_of, create_topic, delete_records_request

HOST = "127.0.0.1"
GZIP, ZSTD = 1, 4
UNKNOWN = Named("nope", bytes([9] * 16))
UNEQUAL = {"topic_id", "session_id", "log_append_time_ms"}
EPOCH_OF_BATCH = slice(12, 16)

MISTAKEN = "Kafka answers -1 (its bug) where the request is"
DAMAGED = "Kafka finds no batch in it; ours says that it came damaged, which clients try again"
STABLE = "Kafka names none where the youngest record of all is not stable, ours the youngest stable"
ON_PURPOSE = {
    "produce a short batch": DAMAGED,
    "produce a header": DAMAGED,
    "produce with acks 2 to nowhere": "Kafka looks for the topic first",
    "fetch less than nothing from 3": MISTAKEN,
    "fetch less than nothing from 5": MISTAKEN,
    "fetch isolated strangely from 3": MISTAKEN,
    "fetch isolated strangely from 5": MISTAKEN,
    "fetch isolated strangely from 12": MISTAKEN,
    "offsets strange": MISTAKEN,
    "offsets twice": "Kafka answers once, ours each time it was asked",
    "-3 isolation 0 of 1": "Kafka names a record that has no time",
    "-3 isolation 1 of 1": "Kafka names a record that has no time",
    "one ended: offset of -3 in 1": STABLE,
    "the other open: offset of -3 in 1": STABLE,
    "again after the end": "ours remembers the batch, Kafka asks the coordinator first",
}
"""Labels without their version; they may differ in some versions and not in others."""

Answer = tuple[str, Any]


def comparable(value: Any, name: str = "") -> Any:
    """Turn a response into plain data in which equal answers are equal."""
    if name in UNEQUAL:
        return value not in (None, 0, -1, ZERO_UUID)
    if name == "leader_epoch":
        return value >= 0
    if name == "records":
        return stored(value)
    if is_dataclass(value):
        found = {
            each.name: comparable(getattr(value, each.name), each.name) for each in fields(value)
        }
        for ours in ("error_message", "record_errors", "current_leader", "node_endpoints"):
            found.pop(ours, None)
        if found.get("error_code"):
            # Null or empty, the log's or unknown: the value is arbitrary, and no client reads it.
            found.pop("aborted_transactions", None)
            if "base_offset" in found:
                found.pop("log_start_offset")
        return found
    if isinstance(value, list):
        return sorted((comparable(each) for each in value), key=repr)
    return value


def stored(records: memoryview | None) -> list[str] | None:
    """Return the whole batches, without the leader epoch in their headers."""
    if records is None:
        return None
    batches = []
    for at, header in iterate_batches(records):
        data = bytearray(records[at : at + header.size])
        data[EPOCH_OF_BATCH] = bytes(4)
        batches.append(data.hex())
    return batches


class Script:
    """The requests, one method per family; each yields labels and comparable answers."""

    def __init__(self, broker: BrokerProcess, family: str) -> None:
        self.address = (HOST, broker.port)
        self.data_directory = broker.data_directory
        self.wire = Wire(self.address)
        self.family = family

    def topic(self, name: str, partitions: int = 1, **configs: str) -> Named:
        name = f"{self.family.replace(' ', '-')}-{name}"
        # The records are old: half a minute after its start Kafka would delete them.
        settings = {key.replace("_", "."): value for key, value in configs.items()}
        topic_id = create_topic(self.wire, name, partitions, {"retention.ms": "-1"} | settings)
        created = Named(name, topic_id)
        self.settle(created, partitions)
        return created

    def settle(self, topic: Named, partitions: int) -> None:
        """Wait until every partition is open."""
        asked = [(index, 0) for index in range(partitions)]
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            response = self.wire.fetch((topic, *asked))
            if all(each.error_code == 0 for each in response.responses[0].partitions):
                return
            time.sleep(0.05)
        raise TimeoutError(topic.name)

    def ask(self, label: str, api: Any, request: Any, version: int) -> Answer:
        """Return the label and the response, or `hung up` if the broker closes the connection."""
        try:
            return label, comparable(self.wire.ask(api, request, version))
        except ConnectionError:
            self.wire = Wire(self.address)
            return label, "hung up"

    # --------------------------------------------------------------------------------- produce

    def produced(self) -> Iterator[Answer]:
        topic = self.topic("p", 2)
        stamped = self.topic("stamped", message_timestamp_type="LogAppendTime")
        small = self.topic("small", max_message_bytes="500")
        compacted = self.topic("compacted", cleanup_policy="compact")

        def produce(label, version, target, *data, **more):
            request = produce_request(version, target, *data, **more)
            return self.ask(f"produce {label} v{version}", PRODUCE, request, version)

        for version in PRODUCE_VERSIONS:
            yield produce("a batch", version, topic, (0, batch(b"a", b"b")))
            yield produce("with acks 1", version, topic, (1, batch()), acks=1)
            yield produce("stamped", version, stamped, (0, batch(b"a")))
            yield produce("to nowhere", version, UNKNOWN, (0, batch()))
            yield produce("to a missing partition", version, topic, (9, batch()), (0, batch()))
            yield produce("with acks 2", version, topic, (0, batch()), (1, batch()), acks=2)
            yield produce("compressed", version, topic, (0, batch(b"a" * 99, compression=GZIP)))
            yield produce("with zstd", version, topic, (0, batch(b"a" * 99, compression=ZSTD)))
            empty = ProduceRequest(None, -1, 1000, [])
            yield self.ask(f"produce to no topic v{version}", PRODUCE, empty, version)
        for version in (3, 9, 13):
            for label, records in malformed():
                yield produce(label, version, topic, (0, records), (1, batch()))
            yield produce("too much", version, small, (0, batch(b"x" * 500)))
            yield produce("with an id", version, topic, (0, batch()), transactional_id="id")
            yield produce("without a key", version, compacted, (0, keyless()))
            yield produce("with acks 2 to nowhere", version, UNKNOWN, (0, batch()), acks=2)
            request = produce_request(version, topic, (0, batch()))
            request.topic_data.append(topic_data(version, UNKNOWN, (0, batch())))
            request.topic_data.append(topic_data(version, small, (0, batch())))
            yield self.ask(f"produce here and nowhere v{version}", PRODUCE, request, version)

    def idempotence(self) -> Iterator[Answer]:
        for version in PRODUCE_VERSIONS:
            topic = self.topic(f"i{version}")
            for step, (epoch, sequence, count) in enumerate(
                [
                    (0, 0, 1),
                    (0, 1, 2),
                    (0, 3, 1),
                    (0, 0, 1),
                    (0, 1, 2),
                    (0, 1, 1),
                    (0, 5, 1),
                    (0, 4, 3),
                    (1, 1, 1),
                    (1, 0, 1),
                    (0, 7, 1),
                    (1, 0, 1),
                    (1, 1, 1),
                ]
            ):
                records = batch(
                    *[b"v"] * count, producer_id=4711, producer_epoch=epoch, base_sequence=sequence
                )
                request = produce_request(version, topic, (0, records))
                label = f"step {step}: epoch {epoch} sequence {sequence} count {count} v{version}"
                yield self.ask(label, PRODUCE, request, version)

    # ----------------------------------------------------------------------------------- fetch

    def fetched(self) -> Iterator[Answer]:
        topic = self.topic("f", 3)
        for number in range(6):
            self.wire.produce(topic, batch(b"%d" % number, b"x" * 100))
        self.wire.produce(topic, batch(b"y" * 100), partition=1)
        self.delete_records(topic, 3)
        self.gather(topic, 0, 3)
        self.gather(topic, 1)
        for version in FETCH_VERSIONS:
            for label, more in (
                ("all", {}),
                ("committed", {"isolation": 1}),
                ("one batch", {"partition_max_bytes": 1}),
                ("two batches", {"partition_max_bytes": 500}),
                ("little", {"max_bytes": 1}),
                ("nothing", {"max_bytes": 0, "partition_max_bytes": 0}),
                ("less than nothing", {"max_bytes": -1, "partition_max_bytes": -1}),
                ("isolated strangely", {"isolation": 7}),
            ):
                for offset in (3, 5, 12):
                    yield self.fetch(
                        f"{label} from {offset}", version, (topic, (0, offset)), **more
                    )
            for offset in (-1, 0, 2, 13, 1 << 60):
                yield self.fetch(f"from {offset}", version, (topic, (0, offset), (1, 0)))
            yield self.fetch("partitions", version, (topic, (1, 0), (0, 4), (2, 0), (7, 0)))
            yield self.fetch("in turn", version, (topic, (1, 0), (0, 4)), max_bytes=150)
            yield self.fetch("from nowhere", version, (UNKNOWN, (0, 0)), (topic, (1, 0)))
            yield self.fetch("of no topic", version)
            for epoch in (0, 1_000_000):
                asked = FetchPartition(1, epoch, 0, partition_max_bytes=1000)
                if epoch or version < 9:
                    yield self.fetch(f"in epoch {epoch}", version, (topic, asked))
            for epoch in (1_000_000,):
                for offset in (0, 3):
                    asked = FetchPartition(0, -1, offset, epoch, partition_max_bytes=1000)
                    yield self.fetch(f"{offset} after epoch {epoch}", version, (topic, asked))

    def sessions(self) -> Iterator[Answer]:
        topic = self.topic("s", 3)
        other = self.topic("o", 1)
        for version in range(7, 19):
            self.produce(topic)
            started = self.wire.fetch((topic, (0, 0), (1, 0)), version=version, session=(0, 0))
            yield f"started v{version}", comparable(started)
            name = started.session_id

            def go_on(label, epoch, *asked, name=name, version=version, **more):
                return self.fetch(f"{label}", version, *asked, session=(name, epoch), **more)

            end = version - 6
            yield go_on("the same", 1)
            yield go_on("at the end", 2, (topic, (0, end)))
            yield go_on("nothing new", 3)
            self.produce(topic, partition=1)
            yield go_on("news", 4)
            yield go_on("an error", 5, (topic, (1, 1 << 40)))
            yield go_on("the error again", 6)
            yield go_on("healed", 7, (topic, (1, version - 6)))
            yield go_on("added", 8, (other, (0, 0)))
            yield go_on("unknown", 9, (UNKNOWN, (0, 0)))
            yield go_on("forgotten", 10, forget=[(UNKNOWN, [0]), (topic, [0, 2])])
            yield go_on("forgotten and asked", 11, (topic, (0, 0)), forget=[(topic, [0])])
            yield go_on("with an old epoch", 11)
            yield go_on("with a future epoch", 20)
            yield go_on("with no such session", 12, name=name ^ 1)
            if version >= 13:
                label = f"by name v{version}"
                yield self.fetch(label, 12, session=(name, 12))
                label = f"by name, wrong epoch v{version}"
                yield self.fetch(label, 12, session=(name, 40))
            yield go_on("still there", 12)
            yield go_on("emptied", 13, forget=[(topic, [1]), (other, [0])])
            yield go_on("gone", 14)
            again = self.wire.fetch((topic, (1, 0)), version=version, session=(0, 0)).session_id
            yield self.fetch("closed", version, (topic, (1, end)), session=(again, -1))
            yield self.fetch("after closing", version, session=(again, 1))
            yield self.fetch("started with nothing", version, session=(0, 0))

    # ---------------------------------------------------------------------------- transactions

    def transactions(self) -> Iterator[Answer]:
        for version in transactions_on_partitions.VERSIONS:
            topic = self.topic(f"x{version}", 3)
            script = transactions_on_partitions.Transactions(self.wire, topic, version)
            yield from script.run()

    def fetch(self, label: str, version: int, *topics: Any, **more: Any) -> Answer:
        request = fetch_request(version, *topics, **more)
        return self.ask(f"fetch {label} v{version}", FETCH, request, version)

    def produce(self, topic: Named, partition: int = 0) -> None:
        """Append a batch and wait until every answer can hold it."""
        self.wire.produce(topic, batch(b"a"), partition=partition)
        self.gather(topic, partition)

    def gather(self, topic: Named, partition: int = 0, offset: int = 0) -> None:
        """Wait until the batches from ``offset`` on are in the file.

        Those in different places need not come together; in memory they do not stay.
        """
        files = self.data_directory / f"{topic.name}-{partition}"
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            response = self.wire.fetch((topic, (partition, offset)))
            data = response.responses[0].partitions[0]
            assert data.error_code == 0, data
            records = data.records or b""
            ends = [header.next_offset for _, header in iterate_batches(records)]
            if ends and ends[-1] == data.high_watermark:
                segments = [path.read_bytes() for path in files.glob("*.log")]
                if any(segment.endswith(records) for segment in segments):
                    return
            time.sleep(0.02)
        raise TimeoutError(f"{topic.name} from {offset}")

    def delete_records(self, topic: Named, offset: int, partition: int = 0) -> None:
        request = delete_records_request({(topic.name, partition): offset})
        assert codes_of(self.wire.ask(DELETE_RECORDS, request, 2)) == [0]

    # ---------------------------------------------------------------------------- list offsets

    def offsets_listed(self) -> Iterator[Answer]:
        topic = self.topic("l", 3)
        for times in ([10, 20, 20, 30], [30, 25, 40], [40, 40], [5], [35, 50, 45]):
            for codec in (0, GZIP):
                records = batch(*[b"v"] * len(times), times=[NOW_MS + t for t in times])
                if codec:
                    stamps = [NOW_MS + 100 + t for t in times]
                    records = batch(*[b"v"] * len(times), times=stamps, compression=codec)
                self.wire.produce(topic, records)
        self.wire.produce(topic, batch(b"u", times=[-1]), partition=1)
        self.delete_records(topic, 2)
        asked = [-1, -2, -3, -4, -5, -6, -7, -100, 0, 1 << 60]
        asked += [NOW_MS + time for time in range(0, 160, 5)]
        for version in LIST_OFFSETS_VERSIONS:
            for isolation in (0, 1):
                for timestamp in asked:
                    for partition in (0, 1, 2):
                        if timestamp < NOW_MS or not partition:
                            label = f"{timestamp} isolation {isolation} of {partition} v{version}"
                            request = list_offsets_request(
                                topic.name, (partition, timestamp), isolation=isolation
                            )
                            yield self.ask(label, LIST_OFFSETS, request, version)
            for label, request in (
                ("twice", list_offsets_request(topic.name, (0, -1), (1, -1), (0, -2))),
                ("missing", list_offsets_request(topic.name, (9, -1), (0, -1))),
                ("nowhere", list_offsets_request("nope", (0, -1))),
                ("strange", list_offsets_request(topic.name, (0, -1), isolation=7)),
                (
                    "in epoch",
                    list_offsets_request(topic.name, ListOffsetsPartition(0, 1_000_000, -1)),
                ),
            ):
                yield self.ask(f"offsets {label} v{version}", LIST_OFFSETS, request, version)


def keyless() -> memoryview:
    return memoryview(encode_batch([Record(0, NOW_MS, None, b"v", ())]))


def malformed() -> Iterator[tuple[str, memoryview | None]]:
    """Records that no log may take."""

    def changed(position: int, *data: int) -> memoryview:
        records = batch(b"v")
        records[position : position + len(data)] = bytes(data)
        return records

    yield "empty records", memoryview(b"")
    yield "two batches", memoryview(bytes(batch(b"a")) + bytes(batch(b"b")))
    yield "a control batch", batch(b"v", control=True, producer_id=5, producer_epoch=0)
    yield "a wrong checksum", changed(17, 1, 2, 3, 4)
    yield "another magic", changed(16, 1)
    yield "a short batch", batch(b"v")[:-1]
    yield "a header", batch(b"v")[:40]
    yield "no sequence", batch(b"v", producer_id=5, producer_epoch=0)


FAMILIES: dict[str, Callable[[Script], Iterator[Answer]]] = {
    "produced": Script.produced,
    "idempotence": Script.idempotence,
    "fetched": Script.fetched,
    "sessions": Script.sessions,
    "offsets listed": Script.offsets_listed,
    "transactions": Script.transactions,
}


@pytest.fixture(scope="module")
def barnabas(tmp_path_factory) -> Iterator[BrokerProcess]:
    with Barnabas(tmp_path_factory.mktemp("barnabas")) as running:
        yield running


def answers(broker: BrokerProcess, family: str) -> dict[str, Any]:
    script = Script(broker, family)
    found = list(FAMILIES[family](script))
    script.wire.socket.close()
    labels = [label for label, _ in found]
    assert len(labels) == len(set(labels)), "labels must differ"
    return dict(found)


@pytest.mark.parametrize("family", FAMILIES)
def test_answers_are_kafkas(barnabas, kafka, family):
    theirs = kafka.observe(family, lambda broker: answers(broker, family))
    ours = plain(answers(barnabas, family))
    assert set(ours) == set(theirs), "run `make record` after a change of the script"
    assert ours
    differing = {label for label, answer in ours.items() if answer != theirs[label]}
    for label in sorted(differing):
        if unversioned(label) not in ON_PURPOSE:
            assert ours[label] == theirs[label], label
    expected = ON_PURPOSE.keys() & {unversioned(label) for label in ours}
    assert {unversioned(label) for label in differing} == expected


def unversioned(label: str) -> str:
    return label.rpartition(" ")[0]
