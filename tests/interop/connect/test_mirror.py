"""MirrorMaker 2 from one Barnabas to another, with exactly-once support, through kills.

It runs as connectors of a Connect worker, and as its own program. The source has transactions and
sends of several libraries. The worker and both brokers are killed with -9. Then the copy has the
committed records of the source, each once and in their order, and no translated offset of a group
is after a record that the group has not read.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.counterparts.barnabas_process import BarnabasProcess
from tests.counterparts.broker_process import HOST, BrokerProcess
from tests.counterparts.connect import ConnectWorker
from tests.counterparts.mirror_maker import MirrorMakerProcess
from tests.history import checker
from tests.history.model import (
    COMMITTED,
    NOT_KNOWN,
    SEND,
    TRANSACTION,
    History,
    Partition,
    Read,
)
from tests.interop.connect.faults import ROUND_S, ConnectFaults, Rounds
from tests.products import for_the_night
from tests.seeds import SEED
from tests.torture.torture import Outcome, Torture
from tests.torture.turns import NoCuts
from tests.waiting import wait_until
from tests.workload.access import BROKER_SETTINGS, Access
from tests.workload.drivers.confluent import LOOK_S, MOST_RECORDS, Look, consumer
from tests.workload.fleet import Fleet
from tests.workload.judge import read_at_the_end, wait_for_ends
from tests.workload.settings import GROUP, INPUTS, PLACES, TOPICS, Kind

MIRROR = "org.apache.kafka.connect.mirror"
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
COPY_S = 240
KINDS = (
    Kind("writer", "confluent"),
    Kind("writer", "java"),
    Kind("sender", "confluent"),
    Kind("transformer", "confluent"),
)


CHECKPOINTS = "source.checkpoints.internal"
READ_AGAIN = 200
"""The most records that a group may read again at the copy: twice `offset.lag.max`."""


class Checkpoint(NamedTuple):
    """A record of MirrorMaker's topic of translated offsets."""

    group: str
    topic: str
    partition: int
    original: int
    """The offset that the group has committed at the source."""
    translated: int
    """The same position in the copy."""

    @property
    def place(self) -> Partition:
        return self.topic, self.partition


class Mirrored(Torture):
    """The torture of a source; the worker and the target of its copy are killed, too."""

    wire_kinds = (Kind("writer", "wire"),)
    """Writers of transactions in the protocol's second version."""

    def __init__(
        self,
        brokers: Sequence[BrokerProcess],
        worker: ConnectWorker | MirrorMakerProcess,
        directory: Path,
        kinds: Sequence[Kind] = KINDS,
    ) -> None:
        source = brokers[0]
        super().__init__(source, Access(source.bootstrap_servers), directory, print, kinds)
        self._brokers = brokers
        self._worker = worker

    def proxy(self, seed: int) -> AbstractContextManager[NoCuts]:
        return nullcontext(NoCuts())

    def nemesis(self, fleet: Fleet, proxy: object, seed: int, *, harms_broker: bool) -> Rounds:
        def supervise() -> None:
            for member in fleet.members:
                member.restart_if_ended()

        return Rounds(ConnectFaults(self._brokers, [self._worker], supervise), seed)


@pytest.fixture
def brokers(tmp_path) -> Iterator[list[BrokerProcess]]:
    """The source and the target."""
    with (
        BarnabasProcess(tmp_path / "source", **BROKER_SETTINGS) as source,
        BarnabasProcess(tmp_path / "target", **BROKER_SETTINGS) as target,
    ):
        yield [source, target]


BOTH = {
    "replication.policy.class": f"{MIRROR}.IdentityReplicationPolicy",
    "tasks.max": "2",
    "topics": ",".join(TOPICS),
    "groups": GROUP,
}
COPYING = {
    "replication.factor": "1",
    "offset-syncs.topic.replication.factor": "1",
    "refresh.topics.interval.seconds": "2",
    # Without it Connect refuses exactly-once support: it would copy aborted records.
    "source.consumer.isolation.level": "read_committed",
}
TRANSLATING = {
    "checkpoints.topic.replication.factor": "1",
    "sync.group.offsets.enabled": "true",
    "sync.group.offsets.interval.seconds": "1",
    "emit.checkpoints.interval.seconds": "1",
    "refresh.groups.interval.seconds": "2",
}
TASKS = frozenset(
    {"MirrorSourceConnector-0", "MirrorSourceConnector-1", "MirrorCheckpointConnector-0"}
)


@contextmanager
def connectors(source: str, target: str, directory: Path) -> Iterator[ConnectWorker]:
    """Run a worker with the connectors of MirrorMaker 2; its topics are at the target."""
    both = BOTH | {
        "source.cluster.alias": "source",
        "target.cluster.alias": "target",
        "source.cluster.bootstrap.servers": source,
        "target.cluster.bootstrap.servers": target,
        "key.converter": BYTES,
        "value.converter": BYTES,
    }
    copying = COPYING | {
        "connector.class": f"{MIRROR}.MirrorSourceConnector",
        "exactly.once.support": "required",
    }
    translating = TRANSLATING | {"connector.class": f"{MIRROR}.MirrorCheckpointConnector"}
    with ConnectWorker(directory, target) as running:
        running.configure("copying", both | copying)
        running.configure("translating", both | translating)
        yield running


@contextmanager
def program(source: str, target: str, directory: Path) -> Iterator[MirrorMakerProcess]:
    """Run MirrorMaker 2 as its own program."""
    settings = {**BOTH, **COPYING, **TRANSLATING}
    with MirrorMakerProcess(directory, source, target, settings=settings, tasks=TASKS) as running:
        yield running


@pytest.fixture(params=[connectors, program], ids=lambda way: way.__name__)
def worker(request, brokers, tmp_path) -> Iterator[ConnectWorker | MirrorMakerProcess]:
    """A process that copies the source to the target."""
    source, target = (each.bootstrap_servers for each in brokers)
    with request.param(source, target, tmp_path / "connect") as running:
        yield running


@for_the_night(beside="tests/cluster/test_at_random.py::test_clients_lose_nothing")
@pytest.mark.timeout(1200)
@pytest.mark.filterwarnings("ignore")
def test_mirror_maker_copies_each_record_once_through_kills(brokers, worker, tmp_path, say):
    outcome = Mirrored(brokers, worker, tmp_path).run(SEED, ROUND_S, harms_broker=True)
    say("\n  ".join(outcome.lines()))
    assert outcome.report.violations == []
    assert outcome.wrong == []
    source, target = (Look(each.bootstrap_servers) for each in brokers)
    original = committed(source)
    wait_until(
        lambda: count(committed(target)) >= count(original),
        lambda: f"{count(committed(target))} of {count(original)} copied: {worker.output()}",
        seconds=COPY_S,
    )
    say(f"{count(original)} records")
    wait_for_ends([(HOST, brokers[1].port)])
    copied = copy_of(outcome, target)
    report = checker.check(copied)
    assert report.violations == [], "\n".join(checker.lines(report, copied))
    copy = committed(target)
    assert values(copy) == values(original)
    # Connect does not restart a task that has failed.
    assert worker.failures() == []
    check_translations(brokers[1].bootstrap_servers, original, copy, say)
    check_group(target, copy)


def check_translations(servers, original, copy, say) -> None:
    """Check that each translated offset skips no record; say how many it has read again."""
    again = []
    for each in checkpoints(servers):
        before = bisect_left([read.offset for read in original[each.place]], each.original)
        copied = bisect_left([read.offset for read in copy[each.place]], each.translated)
        assert copied <= before, f"{each} skips {copied - before} records"
        again.append(before - copied)
    say(f"{len(again)} translated offsets, before them at most {max(again)} records read again")


def check_group(target: Look, copy: dict[Partition, list[Read]]) -> None:
    """Wait until the group, which has read the source to its end, is near the end of the copy."""

    def read_again() -> dict[Partition, int]:
        found = target.committed(GROUP, INPUTS)
        return {
            each.place: sum(read.offset >= each.offset for read in copy[each.place])
            for each in found
        }

    wait_until(lambda: max(read_again().values()) <= READ_AGAIN, read_again)


def committed(look: Look) -> dict[Partition, list[Read]]:
    """Return the committed records of each partition, in their order."""
    found: dict[Partition, list[Read]] = {place: [] for place in PLACES}
    ends = look.ends(PLACES, COMMITTED)
    for read in look.read(dict.fromkeys(PLACES, 0), ends, COMMITTED):
        found[read.place].append(read)
    return found


def values(records: dict[Partition, list[Read]]) -> dict[Partition, list[str]]:
    """Return the values without their offsets, which differ in a copy."""
    return {place: [read.value for read in reads] for place, reads in records.items()}


def count(records: dict[Partition, list[Read]]) -> int:
    """Return the number of records."""
    return sum(map(len, records.values()))


def copy_of(outcome: Outcome, target: Look) -> History:
    """Return the writes of all clients without their offsets, and the records of the copy."""
    written = [
        replace(
            each,
            reads=(),
            commits=(),
            writes=tuple(write._replace(offset=NOT_KNOWN) for write in each.writes),
        )
        for each in outcome.history
        if each.kind in {TRANSACTION, SEND}
    ]
    # Connect copies the records of an aborted transaction again: only committed ones are unique.
    found = read_at_the_end(target, "copy", PLACES, {})
    return written + [each for each in found if each.isolation == COMMITTED]


def checkpoints(servers: str) -> list[Checkpoint]:
    """Return all translated offsets that MirrorMaker has written."""
    reader = consumer(servers, COMMITTED, {(CHECKPOINTS, 0): 0})
    found: list[Checkpoint] = []

    def is_at_end() -> bool:
        messages = reader.consume(MOST_RECORDS, LOOK_S)
        records = [each for each in messages if each.error() is None]
        found.extend(checkpoint(each.key(), each.value()) for each in records)
        return len(records) < len(messages)

    wait_until(is_at_end)
    reader.close()
    return found


def checkpoint(key: bytes, value: bytes) -> Checkpoint:
    """Return a parsed record: Kafka's strings and numbers; the value begins with a version."""
    group, rest = string(key)
    topic, rest = string(rest)
    (partition,) = struct.unpack(">i", rest)
    original, translated = struct.unpack_from(">2xqq", value)
    return Checkpoint(group, topic, partition, original, translated)


def string(data: bytes) -> tuple[str, bytes]:
    """Return a string of two bytes of length and its text, and the bytes after it."""
    (length,) = struct.unpack_from(">h", data)
    return data[2 : 2 + length].decode(), data[2 + length :]
