"""Topics and their directories agree after a crash at any point of create, grow and delete.

The workload runs again and again, each time dying at the next file operation or around the next
commit of the MetaStore. What the disk then holds is drawn several times (lost, torn and reordered
unsynced writes), and every image must open to exactly the topics of the MetaStore, each with its
logs, no directory besides, and every record that was acknowledged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any

import pytest

from barnabas.broker.testing.disk.simulated import SimulatedCrash, SimulatedFileSystem
from barnabas.protocol.records import Record, encode_batch, iterate_batches
from barnabas.storage.journal.journal import WhenDurable
from barnabas.storage.log.memory_read import MemorySlice
from barnabas.storage.metastore.sqlite import MEMORY, SqliteMetaStore
from tests.broker.harness import CLUSTER_ID, NODE_ID, Administration
from tests.products import case
from tests.storage.engines import InlineEngine

IMAGES_PER_POINT = 4

CHANGES = {
    "begin_boot",
    "raise_boot_epoch",
    "create_topic",
    "create_partitions",
    "delete_topic",
    "forget_topic",
    "set_topic_configs",
}


class DyingMetaStore:
    """A MetaStore whose process dies just before, or just after, one of its commits."""

    def __init__(self, store: SqliteMetaStore, dies_at: float, *, after: bool) -> None:
        self.store = store
        self.commits = 0
        self._dies_at = dies_at
        self._after = after

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self.store, name)
        if name not in CHANGES:
            return attribute

        def change(*arguments: Any) -> Any:
            self.commits += 1
            dies = self.commits == self._dies_at
            if dies and not self._after:
                raise SimulatedCrash
            result = attribute(*arguments)
            if dies:
                raise SimulatedCrash
            return result

        return change


@dataclass
class Promises:
    """The changes that clients saw acknowledged before the crash."""

    topics: dict[str, int] = field(default_factory=dict)
    records: dict[tuple[str, int], list[bytes]] = field(default_factory=dict)
    in_doubt: set[str] = field(default_factory=set)
    """The topic of the change under way: it may or may not have happened."""


def new_store() -> SqliteMetaStore:
    return SqliteMetaStore.open(MEMORY, node_id=NODE_ID, new_cluster_id=CLUSTER_ID)


async def workload(administration: Administration, promises: Promises) -> None:
    """Create, fill, grow, delete and create again, with a checkpoint on the way."""
    catalogue = administration.catalogue

    async def changing(name: str, change: Any) -> None:
        promises.in_doubt = {name}
        await change
        topic = catalogue.topic(name)
        promises.in_doubt = set()
        if topic is None:
            del promises.topics[name]
            for key in [key for key in promises.records if key[0] == name]:
                del promises.records[key]
        else:
            promises.topics[name] = len(topic.partitions)

    def append(name: str, index: int, count: int) -> None:
        partition = catalogue.partition(name, index)
        assert partition is not None
        written = promises.records.setdefault((name, index), [])
        for _ in range(count):
            value = f"{name}-{index}-{len(written)}".encode()
            batch = encode_batch([Record(0, 1_700_000_000_000, b"k", value, ())])
            appended = partition.log.append(memoryview(bytearray(batch)))
            assert appended.group is not None
            appended.group.add_waiter(WhenDurable(partial(written.append, value)))
            administration.step()

    await changing("a", catalogue.create_topic("a", 2, {}))
    append("a", 0, 2)
    append("a", 1, 1)
    await changing("b", catalogue.create_topic("b", 1, {"retention.ms": "-1"}))
    append("b", 0, 3)
    await changing("a", catalogue.create_partitions("a", 4))
    append("a", 3, 1)
    administration.logs.checkpoint(catalogue.forget_deleted)
    administration.step()
    append("a", 0, 1)
    await changing("a", catalogue.delete_topic(catalogue.topics["a"].topic_id))
    administration.step()
    await changing("a", catalogue.create_topic("a", 1, {}))
    append("a", 0, 1)
    await changing("b", catalogue.delete_topic(catalogue.topics["b"].topic_id))
    administration.logs.checkpoint(catalogue.forget_deleted)
    administration.step()
    await changing("c", catalogue.create_topic("c", 1, {}))
    append("c", 0, 2)
    await changing("b", catalogue.create_topic("b", 2, {}))
    administration.logs.checkpoint(catalogue.forget_deleted)
    administration.step()


def batches_of(log: Any) -> list[bytes]:
    """Every visible batch of a log, by the way a fetch goes."""
    found: list[bytes] = []
    offset = log.log_start_offset
    while (planned := log.plan_read(offset, 1 << 20)) is not None:
        if isinstance(planned, MemorySlice):
            data = b"".join(bytes(chunk) for chunk in planned.chunks)
        else:
            size = planned.end_position - planned.position
            data = planned.file.pread(size, planned.position)
        before = offset
        for position, header in iterate_batches(memoryview(data)):
            if header.base_offset >= offset:
                found.append(bytes(data[position : position + header.size]))
            offset = max(offset, header.next_offset)
        assert offset > before
    return found


def check(administration: Administration, promises: Promises) -> None:
    """Compare a reopened broker with its MetaStore, its disk and the acknowledged changes."""
    catalogue = administration.catalogue
    rows = {row.name: row for row in administration.metastore.load().topics}
    assert set(catalogue.topics) == set(rows)
    for name, topic in catalogue.topics.items():
        assert [each.partition_id for each in topic.partitions] == [
            each.partition_id for each in rows[name].partitions
        ]
        assert all(each.log.topic_id == topic.topic_id for each in topic.partitions)
    disk = administration.file_system
    found = {name for name in disk.list_directory("/data") if disk.is_directory(f"/data/{name}")}
    # A partition without records needs none.
    wanted = {
        f"{topic.name}-{each.index}"
        for topic in catalogue.topics.values()
        for each in topic.partitions
    }
    assert found <= wanted
    for name, count in promises.topics.items():
        if name not in promises.in_doubt:
            assert len(catalogue.topics[name].partitions) == count
    assert set(catalogue.topics) - set(promises.topics) <= promises.in_doubt
    for (name, index), expected in promises.records.items():
        partition = catalogue.partition(name, index)
        if partition is None:
            assert name in promises.in_doubt
        elif name not in promises.in_doubt or partition.log.high_watermark:
            assert not partition.log.high_watermark or f"{name}-{index}" in found
            batches = batches_of(partition.log)
            assert len(batches) >= len(expected)
            assert all(value in batch for value, batch in zip(expected, batches, strict=False))


async def run(
    file_system: SimulatedFileSystem, metastore: Any, promises: Promises
) -> Administration | None:
    """Run the workload until it is done or the crash comes."""
    try:
        administration = Administration(file_system, metastore, engine=InlineEngine())
        await workload(administration, promises)
    except SimulatedCrash:
        return None
    return administration


async def die_and_look(
    make: Callable[[], tuple[SimulatedFileSystem, DyingMetaStore]], seed: int
) -> bool:
    """Die once; return whether the workload came to its end before."""
    file_system, metastore = make()
    promises = Promises()
    ended = await run(file_system, metastore, promises)
    if ended is not None:
        return True
    source = Random(seed)
    saved = metastore.store._connection.serialize()
    for _ in range(IMAGES_PER_POINT):
        store = new_store()
        store._connection.deserialize(saved)
        reopened = Administration(file_system.crash(source), store, engine=InlineEngine())
        check(reopened, promises)
        # What a recovery leaves behind must hold for the next one as well (D3).
        check(Administration(reopened.file_system.crash(source), store), promises)
        store.close()
    return False


@pytest.mark.slow
@pytest.mark.parametrize(
    ("syncs_whole", "stride"),
    [case(False, 2, in_test=True), case(False, 1, in_test=False), case(True, 1, in_test=False)],
)
async def test_at_every_file_operation(syncs_whole, stride):
    points = 0
    for at in range(1, 10_000, stride):

        def make(at=at):
            file_system = SimulatedFileSystem(syncs_whole=syncs_whole)
            file_system.crash_after(at)
            return file_system, DyingMetaStore(new_store(), float("inf"), after=False)

        if await die_and_look(make, seed=at):
            break
        points += 1
    assert points > 180 // stride, "the workload has become shorter than it looks"


@pytest.mark.parametrize("after", [False, True])
async def test_around_every_commit(after):
    for at in range(1, 10_000):

        def make(at=at):
            return SimulatedFileSystem(), DyingMetaStore(new_store(), at, after=after)

        if await die_and_look(make, seed=at):
            break
    assert at > 10, "the workload has become shorter than it looks"


async def test_a_recovery_that_dies_changes_nothing():
    file_system, store = SimulatedFileSystem(), new_store()
    promises = Promises()
    administration = await run(file_system, store, promises)
    assert administration is not None
    source = Random(7)
    for at in range(1, 10_000):
        disk = file_system.crash(source)
        disk.crash_after(at)
        try:
            Administration(disk, store, engine=InlineEngine())
        except SimulatedCrash:
            check(Administration(disk.crash(source), store), promises)
        else:
            break
    assert at > 10
