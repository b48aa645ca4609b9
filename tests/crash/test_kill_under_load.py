"""kill -9 under load and during recovery: what was acknowledged is there once, in its place.

Two kinds of producers write at the same time, five requests in flight each. The idempotent ones
send again, with the same sequences, whatever a kill left unanswered: each of their batches must be
in the log exactly once, in order, wherever the kills fell (S2, S3, S12). The plain ones do not:
what they were told is there must be there at that offset, and what they were not told may be there
or not (D1).
"""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass, field
from random import Random

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.create_topics import (
    CREATE_TOPICS,
    CreatableTopic,
    CreateTopicsRequest,
)
from barnabas.protocol.messages.fetch import FETCH, FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from barnabas.protocol.messages.produce import (
    PRODUCE,
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.protocol.records import Record, encode_batch, iterate_batches, iterate_records
from tests.counterparts.barnabas_process import BarnabasProcess
from tests.counterparts.broker_process import BrokerDied
from tests.counterparts.wire_client import WireClient
from tests.crash.amounts import amounts
from tests.waiting import wait_until

IN_FLIGHT = 5
ANSWERS_AT_LEAST = 40
"""Before a kill; some follow each other without a load between them."""
TOPIC = "survivors"
PARTITIONS = 4
SIZES = (100, 100, 100, 2_000, 20_000, 100_000, 400_000)
"""Below and above what is copied, kept by reference, and received outside the ring."""


@dataclass
class Batch:
    """Some numbered records; ``offset`` is what the broker answered."""

    first: int
    count: int
    size: int
    offset: int | None = None

    def values(self, partition: int) -> list[bytes]:
        return [
            f"{partition}:{number}:".encode().ljust(self.size, b"%d" % (number % 10))
            for number in range(self.first, self.first + self.count)
        ]


@dataclass
class Writer:
    """Writes to one partition until the connection breaks; goes on where it was."""

    partition: int
    idempotent: bool
    random: Random
    batches: list[Batch] = field(default_factory=list)
    unanswered: deque[Batch] = field(default_factory=deque)
    producer_id: int = -1
    next_number: int = 0

    def run(self, broker: BarnabasProcess) -> None:
        try:
            with WireClient(broker) as client:
                self._start(client)
                while True:
                    while len(self.unanswered) < IN_FLIGHT:
                        self._send(client, self._new_batch())
                    self._note(client.receive())
        except OSError:
            return

    def _start(self, client: WireClient) -> None:
        if not self.idempotent:
            self.unanswered.clear()
            return
        if self.producer_id < 0:
            response = client.ask(INIT_PRODUCER_ID, InitProducerIdRequest(None), 4)
            assert response.error_code == ErrorCode.NONE
            self.producer_id = response.producer_id
        again, self.unanswered = self.unanswered, deque()
        for batch in again:
            self._send(client, batch)

    def _new_batch(self) -> Batch:
        count = self.random.randint(1, 8)
        batch = Batch(self.next_number, count, self.random.choice(SIZES) // count + 20)
        self.next_number += count
        self.batches.append(batch)
        return batch

    def _send(self, client: WireClient, batch: Batch) -> None:
        now_ms = int(time.time() * 1000)
        records = [
            Record(delta, now_ms, None, value, ())
            for delta, value in enumerate(batch.values(self.partition))
        ]
        producer = (
            {"producer_id": self.producer_id, "producer_epoch": 0, "base_sequence": batch.first}
            if self.idempotent
            else {}
        )
        data = PartitionProduceData(self.partition, memoryview(encode_batch(records, **producer)))
        request = ProduceRequest(None, -1, 30_000, [TopicProduceData(TOPIC, partition_data=[data])])
        self.unanswered.append(batch)
        client.send(PRODUCE, request, 9)

    def _note(self, response) -> None:
        (topic,) = response.responses
        (result,) = topic.partition_responses
        assert result.error_code == ErrorCode.NONE, (self, result)
        self.unanswered.popleft().offset = result.base_offset


def read_all(client: WireClient, partition: int) -> list[tuple[int, bytes]]:
    """Return every (offset, value) of a partition."""
    found: list[tuple[int, bytes]] = []
    offset = 0
    while True:
        wanted = FetchTopic(
            TOPIC, partitions=[FetchPartition(partition, -1, offset, -1, -1, 8 << 20)]
        )
        response = client.ask(FETCH, FetchRequest(max_wait_ms=0, topics=[wanted]), 11)
        (topic,) = response.responses
        (data,) = topic.partitions
        assert data.error_code == ErrorCode.NONE, data
        if not data.records:
            assert offset == data.high_watermark
            return found
        for position, header in iterate_batches(data.records):
            batch = data.records[position : position + header.size]
            assert header.base_offset == offset
            found += [
                (record.offset, record.value)
                for record in iterate_records(batch, limit_bytes=1 << 30)
            ]
            offset = header.next_offset


def check(writer: Writer, found: list[tuple[int, bytes]]) -> None:
    """Hold what the log has against what the writer was told."""
    values = [value for _, value in found]
    assert [offset for offset, _ in found] == list(range(len(found)))
    assert len(set(values)) == len(values), "a record is there twice"
    for batch in writer.batches:
        if batch.offset is not None:
            place = slice(batch.offset, batch.offset + batch.count)
            assert values[place] == batch.values(writer.partition), batch
    numbers = [int(value.split(b":", 2)[1]) for value in values]
    assert numbers == sorted(numbers), "records changed places"
    if writer.idempotent:
        assert numbers == list(range(len(numbers))), "a record was passed over"


def kill_during_recovery(broker: BarnabasProcess, random: Random) -> None:
    """Start the broker and kill it at any moment of its start."""
    start = threading.Thread(target=_start_until_killed, args=(broker,))
    start.start()
    time.sleep(random.uniform(0.02, 0.5))
    broker.kill()
    start.join()
    broker.kill()  # On a busy machine the process may have been born after the first one.


def answered(writers: list[Writer]) -> int:
    """How many batches were acknowledged so far."""
    return sum(batch.offset is not None for writer in writers for batch in list(writer.batches))


def any_lives(threads: list[threading.Thread]) -> bool:
    return any(thread.is_alive() for thread in threads)


def _start_until_killed(broker: BarnabasProcess) -> None:
    """Returns normally only when the kill came after the start had ended."""
    try:
        broker.restart()
    except BrokerDied as error:
        if "exited -9" not in str(error):
            raise


@pytest.mark.timeout(900)
@amounts("kills_wanted", in_test=12, at_night=40)
def test_acknowledged_records_survive_kills(kills_wanted):
    seed = 20
    print(f"seed {seed}")
    random = Random(seed)
    writers = [Writer(index, index % 2 == 0, Random(seed + index)) for index in range(PARTITIONS)]
    kills = 0
    with BarnabasProcess(
        barnabas_checkpoint_interval_ms="300",
        barnabas_journal_file_bytes=str(4 << 20),
        barnabas_journal_max_bytes=str(32 << 20),
        barnabas_checkpoint_journal_bytes=str(8 << 20),
        log_segment_bytes=str(2 << 20),
    ) as broker:
        with WireClient(broker) as client:
            request = CreateTopicsRequest([CreatableTopic(TOPIC, PARTITIONS, 1)])
            (created,) = client.ask(CREATE_TOPICS, request, 5).topics
            assert created.error_code == ErrorCode.NONE
        while kills < kills_wanted:
            load = [threading.Thread(target=writer.run, args=(broker,)) for writer in writers]
            for thread in load:
                thread.start()
            time.sleep(random.uniform(0.05, 0.6))
            # A busy machine gets the time for something to happen.
            enough = answered(writers) + ANSWERS_AT_LEAST
            wait_until(
                lambda e=enough, load=load: answered(writers) >= e or not any_lives(load),
                "much is answered",
            )
            broker.kill()
            kills += 1
            for thread in load:
                thread.join()
            while random.random() < 0.4:
                kill_during_recovery(broker, random)
                kills += 1
            broker.restart()
        with WireClient(broker) as client:
            found = [read_all(client, index) for index in range(PARTITIONS)]
        for writer, records in zip(writers, found, strict=True):
            check(writer, records)
        broker.kill()
        broker.restart()
        with WireClient(broker) as client:
            again = [read_all(client, index) for index in range(PARTITIONS)]
        assert again == found, "recovering once more changed something (D3)"
    acknowledged = answered(writers)
    print(f"{kills} kills, {acknowledged} batches acknowledged, {sum(map(len, found))} records")
    assert acknowledged > 10 * kills, "the kills came before anything happened"
