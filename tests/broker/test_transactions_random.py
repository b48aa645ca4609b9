"""Many transactional producers, and consumers that see committed records by any request (L).

A random script of producers, plain writers and deleted records goes to one broker over the wire.
A model beside it knows of each record whether it was committed. Readers from every offset, in any
size and version, in sessions and long polls, must be given just that; so again after a restart and
after a power failure, with transactions still open.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.delete_records import DELETE_RECORDS
from barnabas.protocol.messages.describe_producers import DESCRIBE_PRODUCERS
from barnabas.storage.runtime.threads import Thread, start_thread
from barnabas.testing import Broker
from tests.broker.committed_reader import Seen, committed_records
from tests.broker.data_plane import Named, Wire, batch
from tests.broker.raw_producer import RawProducer
from tests.products import case
from tests.requests import codes_of, delete_records_request, describe_producers_request
from tests.seeds import SEED
from tests.waiting import wait_until
from tests.worlds import world

__all__ = ["world"]

PATIENCE_S = 60
PARTITIONS = 3
STEPS = 70
PRODUCERS = 5
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
OPEN, COMMITTED, ABORTED = "open", "committed", "aborted"


@dataclass(eq=False)
class Fate:
    """The end of a transaction; plain records have one that is committed."""

    state: str = OPEN
    starts: dict[int, int] = field(default_factory=dict)
    """First offset by partition."""
    partitions: set[int] = field(default_factory=set)


@dataclass(eq=False)
class Partition:
    """Content of a partition: the offset, value and transaction of each record."""

    end: int = 0
    start: int = 0
    records: list[tuple[int, bytes, Fate]] = field(default_factory=list)
    aborted: list[tuple[int, int, int]] = field(default_factory=list)
    """Producer, first offset and marker of each aborted transaction with data."""
    open: set[Fate] = field(default_factory=set)

    def stable(self, index: int) -> int:
        """Return the last stable offset."""
        first = min((fate.starts[index] for fate in self.open), default=self.end)
        return max(first, self.start)

    def truth(self, begin: int, end: int, isolation: int = READ_COMMITTED) -> list[Seen]:
        """Return the records that a consumer sees between two offsets."""
        return [
            Seen(offset, value)
            for offset, value, fate in self.records
            if max(begin, self.start) <= offset < end
            and (isolation == READ_UNCOMMITTED or fate.state == COMMITTED)
        ]


class Script:
    """Sends random requests, one after the other, and keeps the model up to date."""

    def __init__(self, broker: Broker, topic: Named, chosen: random.Random) -> None:
        self.broker = broker
        self.topic = topic
        self.chosen = chosen
        self.partitions = [Partition() for _ in range(PARTITIONS)]
        self.fates: dict[int, Fate] = {}
        self.number = 0
        self.connect()
        self.producers = [
            RawProducer(self.wire, f"id-{number}", chosen.choice([3, 9, 11, 12, 12, 13]))
            for number in range(PRODUCERS)
        ]

    def connect(self) -> None:
        """Continue through a new connection."""
        self.wire = Wire(self.broker.address, timeout_s=PATIENCE_S)

    def reconnect(self) -> None:
        """The same producers after a restart: nothing of theirs was lost."""
        self.wire.socket.close()
        self.connect()
        for producer in self.producers:
            producer.wire = self.wire

    def step(self) -> None:
        chance = self.chosen.random()
        number = self.chosen.randrange(PRODUCERS)
        if chance < 0.6:
            self.write(number)
        elif chance < 0.75:
            self.end(number, commit=self.chosen.random() < 0.5)
        elif chance < 0.93:
            self.write_plain()
        elif chance < 0.97:
            self.begin_anew(number)
        else:
            self.delete_records()

    def values(self) -> list[bytes]:
        self.number += 1
        size = self.chosen.choice([1, 1, 30, 300, 2000])
        return [
            b"%d-%d-" % (self.number, at) + b"x" * size for at in range(self.chosen.randrange(1, 4))
        ]

    def write(self, number: int) -> None:
        producer = self.producers[number]
        index = self.chosen.randrange(PARTITIONS)
        fate = self.fates.setdefault(number, Fate())
        if index not in fate.partitions:
            assert producer.add(self.topic, index) == 0
            fate.partitions.add(index)
        values = self.values()
        result = producer.send(self.topic, *values, partition=index)
        assert (result.error_code, result.base_offset) == (0, self.partitions[index].end)
        fate.starts.setdefault(index, result.base_offset)
        self.partitions[index].open.add(fate)
        self.note(index, values, fate)

    def write_plain(self) -> None:
        index = self.chosen.randrange(PARTITIONS)
        values = self.values()
        result = self.wire.produce(self.topic, batch(*values), index)
        assert result.error_code == 0
        self.note(index, values, Fate(COMMITTED))

    def note(self, index: int, values: list[bytes], fate: Fate) -> None:
        partition = self.partitions[index]
        partition.records += [(partition.end + at, each, fate) for at, each in enumerate(values)]
        partition.end += len(values)

    def end(self, number: int, *, commit: bool) -> None:
        if number in self.fates:
            producer_id = self.producers[number].producer_id
            self.producers[number].end(commit=commit)
            self.decided(number, producer_id, COMMITTED if commit else ABORTED)

    def begin_anew(self, number: int) -> None:
        """Start a producer again: its open transaction is aborted."""
        producer_id = self.producers[number].producer_id
        self.producers[number].init()
        self.decided(number, producer_id, ABORTED)

    def decided(self, number: int, producer_id: int, state: str) -> None:
        fate = self.fates.pop(number, None)
        if fate is None:
            return
        for index in fate.partitions:
            partition = self.partitions[index]
            if index in fate.starts:
                partition.open.remove(fate)
                if state == ABORTED:
                    partition.aborted.append((producer_id, fate.starts[index], partition.end))
            partition.end += 1
        # Readers in other threads use it at the end of the test.
        fate.state = state

    def delete_records(self) -> None:
        """Delete records up to any offset, also in the middle of an open transaction."""
        index = self.chosen.randrange(PARTITIONS)
        partition = self.partitions[index]
        self.settle()
        offset = self.chosen.randint(
            partition.start, partition.start + (partition.end - partition.start) // 3
        )
        request = delete_records_request({(self.topic.name, index): offset})
        assert codes_of(self.wire.ask(DELETE_RECORDS, request, 2)) == [0]
        partition.start = offset

    # Checks

    def logs(self):
        return [
            each.log for each in self.broker.server.catalogue.topics[self.topic.name].partitions
        ]

    def settle(self) -> None:
        """Wait until every marker is durable: EndTxn is acknowledged after its decision."""
        ends = [partition.end for partition in self.partitions]
        logs = self.logs()
        wait_until(lambda: self.broker.call(lambda: [log.high_watermark for log in logs]) == ends)

    def check_ends(self) -> None:
        """Check the last stable offset in all responses, and the open transactions (L3, L7)."""
        self.settle()
        name = self.topic.name
        asked = describe_producers_request(*((name, index) for index in range(PARTITIONS)))
        described = self.wire.ask(DESCRIBE_PRODUCERS, asked, 0).topics[0].partitions
        for index, partition in enumerate(self.partitions):
            stable = partition.stable(index)
            data = self.wire.fetch_one(self.topic, partition.end, index, isolation=1)
            ends = (data.log_start_offset, data.last_stable_offset, data.high_watermark)
            assert ends == (partition.start, stable, partition.end)
            for isolation, expected in ((0, partition.end), (1, stable)):
                error, _, offset, _ = self.wire.list_offset(name, -1, index, isolation=isolation)
                assert (error, offset) == (0, expected)
            starts = {
                each.current_txn_start_offset
                for each in described[index].active_producers
                if each.current_txn_start_offset >= 0
            }
            assert starts == {fate.starts[index] for fate in partition.open}

    def check_index(self) -> None:
        """Check that every aborted transaction with a marker in the log is in the index (L10)."""
        for log, partition in zip(self.logs(), self.partitions, strict=True):
            start = log.segments[0].base_offset
            found = self.broker.call(
                lambda log=log, start=start: log.aborted_transactions(start, 1 << 40)
            )
            named = [(each.producer_id, each.first_offset, each.last_offset) for each in found]
            assert named == [each for each in partition.aborted if each[2] >= start]

    def check_reads(self, offsets: int) -> None:
        """Read from many offsets in many ways, to the end."""
        self.check_ends()
        self.check_index()
        # Page cache or disk: what is read on a thread meets the log as it is afterwards.
        self.broker.server.file_system.cold = self.chosen.random() < 0.4
        for index, partition in enumerate(self.partitions):
            count = min(offsets, partition.end - partition.start + 1)
            begins = self.chosen.sample(range(partition.start, partition.end + 1), count)
            for begin in {partition.start, *begins}:
                for isolation in (READ_COMMITTED, READ_UNCOMMITTED):
                    end = partition.stable(index) if isolation else partition.end
                    seen, position = self.read(index, begin, end, isolation)
                    assert seen == partition.truth(begin, end, isolation), f"seed {SEED}"
                    assert position == max(begin, end), "no batch crosses the bound"

    def read(self, index: int, begin: int, end: int, isolation: int) -> tuple[list[Seen], int]:
        """Everything from an offset on, as a consumer that asks for this much at a time."""
        seen: list[Seen] = []
        size = self.chosen.choice([1, 200, 1500, 6000, 1 << 20])
        version = self.chosen.choice([4, 6, 7, 11, 12, 13, 16, 18])
        position = begin
        while position < end:
            data = self.wire.fetch_one(
                self.topic,
                position,
                index,
                version,
                isolation=isolation,
                partition_max_bytes=size,
            )
            assert data.error_code == 0
            if isolation == READ_UNCOMMITTED:
                assert data.aborted_transactions is None  # L6
                data.aborted_transactions = []
            more, following = committed_records(data, position)
            assert following > position, "a fetch below the bound moves on (L5)"
            seen += more
            position = following
        return seen, position


class Follower:
    """Polls all partitions from what is stable on while others write; judged afterwards."""

    def __init__(self, script: Script, version: int, *, session: bool, min_bytes: int) -> None:
        self.topic = script.topic
        self.address = script.broker.address
        self.positions = [each.stable(index) for index, each in enumerate(script.partitions)]
        self.begins = list(self.positions)
        self.seen: list[list[Seen]] = [[] for _ in self.positions]
        self.version = version
        self.in_session = session
        self.min_bytes = min_bytes
        self.stopping = False
        self.error: BaseException | None = None
        self.thread: Thread | None = None

    def start(self) -> None:
        self.thread = start_thread("follower", self.run)

    def run(self) -> None:
        try:
            with Wire(self.address, timeout_s=PATIENCE_S) as wire:
                session = (0, 0) if self.in_session else (0, -1)
                changed = set(range(PARTITIONS))
                while not self.stopping:
                    session, changed = self.poll(wire, session, changed)
        except Exception as error:  # noqa: BLE001  the test's own thread raises it
            self.error = error

    def poll(self, wire, session, changed):
        """Fetch once; return the next session and the partitions that have moved."""
        asked = changed if self.in_session else range(PARTITIONS)
        places = [(index, self.positions[index]) for index in asked]
        answer = wire.fetch(
            *([(self.topic, *places)] if places else []),
            version=self.version,
            isolation=READ_COMMITTED,
            session=session,
            max_wait_ms=100,
            min_bytes=self.min_bytes,
            partition_max_bytes=3000,
        )
        assert answer.error_code == 0
        moved = set()
        for topic in answer.responses:
            for data in topic.partitions:
                index = data.partition_index
                if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:  # deleted before it was read
                    self.positions[index] = wire.list_offset(self.topic.name, -2, index)[2]
                    moved.add(index)
                    continue
                assert data.error_code == 0
                if len(data.records):
                    assert data.aborted_transactions is not None
                    seen, position = committed_records(data, self.positions[index])
                    # Visible records are below the bound of their response (L4).
                    assert self.positions[index] < position <= data.last_stable_offset
                    self.seen[index] += seen
                    self.positions[index] = position
                    moved.add(index)
        if self.in_session:
            return (answer.session_id, max(1, session[1] + 1)), moved
        return session, moved

    def stop(self, script: Script) -> None:
        """Read up to the last stable offset, and compare."""
        ends = [partition.stable(index) for index, partition in enumerate(script.partitions)]
        wait_until(lambda: self.error or all(map(int.__ge__, self.positions, ends)))
        self.stopping = True
        self.thread.join()
        if self.error is not None:
            raise self.error
        for index, partition in enumerate(script.partitions):
            assert self.positions[index] == ends[index]
            expected = partition.truth(self.begins[index], ends[index])
            # Deleted records may have been seen before they were deleted.
            kept = [each for each in self.seen[index] if each.offset >= partition.start]
            assert kept == expected, f"seed {SEED}"


@pytest.mark.parametrize("way", [case("restart", in_test=False), case("crash", in_test=True)])
def test_readers_see_what_is_committed_l1_to_l10(way):
    print(f"SEED={SEED}")
    chosen = random.Random(f"{SEED}-{way}")
    with Broker(seed=SEED) as broker:
        settings = {"internal.segment.bytes": "3000", "index.interval.bytes": "500"}
        broker.create_topic("t", PARTITIONS, settings)
        topic = Named("t", broker.call(lambda: broker.server.catalogue.topics["t"].topic_id))
        script = Script(broker, topic, chosen)
        try:
            over_and_over(script, way)
        finally:
            script.wire.socket.close()


def over_and_over(script: Script, way: str) -> None:
    for _ in range(2):
        run(script)
        assert any(partition.open for partition in script.partitions), "something is left open"
        if way == "crash":
            script.broker.crash()
        script.broker.restart()
        script.reconnect()
        script.check_reads(3)
    run(script)
    for number in range(PRODUCERS):
        script.end(number, commit=script.chosen.random() < 0.5)
    script.check_reads(6)
    assert all(len(log.segments) > 3 for log in script.logs())


def run(script: Script) -> None:
    """Some steps, with readers beside them."""
    followers = [
        Follower(script, 11, session=False, min_bytes=1),
        Follower(script, 13, session=True, min_bytes=2000),
    ]
    for follower in followers:
        follower.start()
    for number in range(STEPS):
        script.step()
        if number % 20 == 0:
            script.check_ends()
    script.write(0)
    script.settle()
    for follower in followers:
        follower.stop(script)
    script.check_reads(3)
