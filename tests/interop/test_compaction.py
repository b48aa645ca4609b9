"""A compacted topic as clients see it, and its files as Kafka's own tool sees them.

Runs against Apache Kafka too (``INTEROP_BROKER=kafka``): what is demanded is what Kafka does.
"""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from tests.counterparts.barnabas_process import BarnabasProcess
from tests.counterparts.broker_process import BrokerProcess
from tests.interop.administration import create
from tests.interop.dump import complaints, segment_files
from tests.products import for_the_night

pytestmark = [pytest.mark.timeout(600), pytest.mark.filterwarnings("ignore")]

WAIT_SECONDS = 120
KEYS = 15
SETTINGS = {"log.cleaner.backoff.ms": "100", "barnabas.checkpoint.interval.ms": "200"}
COMPACTED = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
    "segment.ms": "1000",
    "delete.retention.ms": "0",
}


@pytest.fixture(scope="module")
def broker(
    broker_class: type[BrokerProcess], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerProcess]:
    with broker_class(tmp_path_factory.mktemp("compacting"), **SETTINGS) as running:
        yield running


class Writer:
    """Writes rounds of records, each a segment's age after the one before; knows what counts."""

    def __init__(self, servers: str, topic: str, **options: Any) -> None:
        self.producer = Producer({"bootstrap.servers": servers, "linger.ms": 5, **options})
        self.topic = topic
        # Markers carry the broker's time, so records must not be older than that.
        self.now_ms = int(time.time() * 1000)
        self.latest: dict[bytes, bytes | None] = {}

    def write(self, key: bytes, value: bytes | None, *, counts: bool = True) -> None:
        self.now_ms += 1
        self.producer.produce(self.topic, value, key, partition=0, timestamp=self.now_ms)
        if counts:
            self.latest[key] = value

    def round(self, name: bytes, *, counts: bool = True) -> None:
        self.now_ms += 2000
        for number in range(KEYS):
            self.write(b"key %d" % number, name + b" %d" % number, counts=counts)

    def flush(self) -> None:
        assert self.producer.flush(60) == 0

    def seal(self) -> None:
        """Write a record that ends the active segment; it is the first of the next one."""
        self.now_ms += 2000
        self.write(b"last", b"%d" % self.now_ms)
        self.flush()


def read(servers: str, topic: str, isolation: str) -> list[tuple[int, bytes, bytes | None]]:
    """Every record from the beginning to the end that there is now: offset, key, value."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "reader",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": isolation,
        }
    )
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    found: list[tuple[int, bytes, bytes | None]] = []
    deadline = time.monotonic() + WAIT_SECONDS
    try:
        while time.monotonic() < deadline:
            message = consumer.poll(1)
            if message is None:
                continue
            error = message.error()
            if error is None:
                found.append((message.offset(), message.key(), message.value()))
            elif error.code() == confluent_kafka.KafkaError._PARTITION_EOF:
                return found
            else:
                raise AssertionError(error)
    finally:
        consumer.close()
    raise AssertionError("the end of the partition was never reached")


def wait_until_compacted(writer: Writer, servers: str) -> list[tuple[int, bytes, bytes | None]]:
    """Seal segments until only the latest records are left (and some of the key that seals)."""
    deadline = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < deadline:
        writer.seal()
        time.sleep(0.5)
        found = read(servers, writer.topic, "read_uncommitted")
        keys = [key for _, key, _ in found if key != b"last"]
        living = {key for key, value in writer.latest.items() if value is not None}
        if len(keys) == len(set(keys)) and set(keys) <= living:
            return found
    raise AssertionError(f"not compacted: {found}")


def compacted_values(servers: str, topic: str) -> dict[bytes, bytes | None]:
    values = {key: value for _, key, value in read(servers, topic, "read_committed")}
    return {key: value for key, value in values.items() if value is not None}


def assert_sound(broker: BrokerProcess, topic: str, clean_offset: int) -> None:
    """Check that both tools find no fault in the files, which contain the clean offset."""
    broker.terminate()
    path = Path(broker.data_directory, "cleaner-offset-checkpoint")
    lines = path.read_text(encoding="ascii").splitlines()
    (line,) = [each for each in lines if each.startswith(f"{topic} 0 ")]
    assert int(line.rpartition(" ")[2]) >= clean_offset
    files = segment_files(broker.data_directory)
    assert complaints(files, compacted=True) == []
    if broker.name == "Barnabas":
        check = [sys.executable, "-m", "barnabas", "check", "-d", str(broker.data_directory)]
        environment = BarnabasProcess.python_environment()
        assert subprocess.run(check, env=environment, check=False, timeout=120).returncode == 0
    broker.start()


def test_the_latest_of_every_key_is_left(broker, topic):
    servers = broker.bootstrap_servers
    create(servers, topic, partitions=1, configs=COMPACTED)
    writer = Writer(servers, topic, **{"compression.type": "lz4"})
    for number in range(12):
        writer.round(b"round %d" % number)
    for number in range(3):
        writer.write(b"key %d" % number, None)
    before = 12 * KEYS
    found = wait_until_compacted(writer, servers)
    assert len([key for _, key, _ in found if key != b"last"]) == KEYS - 3
    # Offsets never move: what is left is where it was written.
    assert min(offset for offset, key, _ in found if key != b"last") >= before - KEYS
    living = {key: value for key, value in writer.latest.items() if value is not None}
    assert compacted_values(servers, topic) == living
    assert_sound(broker, topic, before)
    assert compacted_values(servers, topic) == living


@for_the_night(
    beside="tests/storage/test_cleaner_random.py"
    "::test_readers_see_no_difference_after_random_compaction"
)
def test_records_of_transactions_are_compacted(broker, topic):
    servers = broker.bootstrap_servers
    create(servers, topic, partitions=1, configs=COMPACTED)
    writer = Writer(servers, topic, **{"transactional.id": topic})
    producer = writer.producer
    producer.init_transactions(60)
    for number in range(8):
        producer.begin_transaction()
        counts = number % 3 != 2
        writer.round(b"transaction %d" % number, counts=counts)
        if counts:
            producer.commit_transaction(60)
        else:
            producer.flush(60)
            producer.abort_transaction(60)
    plain = Writer(servers, topic)
    plain.now_ms, plain.latest = writer.now_ms, writer.latest
    found = wait_until_compacted(plain, servers)
    values = {value for _, key, value in found if key != b"last"}
    assert values == {b"transaction 7 %d" % number for number in range(KEYS)}
    assert compacted_values(servers, topic) == writer.latest
    assert_sound(broker, topic, 8 * KEYS)
    assert compacted_values(servers, topic) == writer.latest
    # Its last sequence survived: the producer continues, in the same epoch or the next.
    producer.begin_transaction()
    writer.now_ms = plain.now_ms
    writer.round(b"afterwards")
    producer.commit_transaction(60)
    assert compacted_values(servers, topic) == writer.latest
