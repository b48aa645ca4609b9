"""The cost of thousands of partitions: files, syncs and disk accesses, not time."""

import gc
from collections import Counter
from dataclasses import replace

import pytest

from barnabas.broker.testing.disk.simulated import SimulatedFileSystem
from barnabas.storage.log.checkpoint import PartitionCheckpoint
from barnabas.storage.log.config import LogConfig
from barnabas.storage.store.store_parts import PartitionSpec
from tests.storage.stores import ROOT, SETTINGS, Host, from_producer, read_all

PARTITIONS = 2000
LOOKS_PER_PARTITION = 5
"""One list of its directory, and its topic id, log, producers and leader epochs, each once."""
WRITES_PER_PARTITION = 20
"""Directory, topic id, epochs, log; at a clean stop also producers."""


class CountedHost(Host):
    """A host whose disk counts its calls, by name."""

    def __init__(self, disk=None, *, partitions=PARTITIONS, settings=SETTINGS):
        super().__init__(disk=disk, settings=settings)
        self.specs = [
            PartitionSpec(number + 1, "topic", number, bytes([7] * 16), LogConfig())
            for number in range(partitions)
        ]
        self.seen = Counter()
        self.disk.before = lambda operation: self.seen.update([operation.name])

    def counted(self, do):
        """Do something; answers what it asked of the disk."""
        self.seen.clear()
        do()
        return Counter(self.seen)

    def write_to_all(self):
        for spec in self.specs:
            log = self.store.get(spec.partition_id)
            log.append(from_producer(spec.partition_id, 0))
        self.step()

    def after(self, disk):
        """The same host on what is left of its disk."""
        return CountedHost(disk, partitions=len(self.specs), settings=self.settings)


def syncs(seen):
    return seen["fdatasync"] + seen["sync_directory"] + seen["syncfs"]


def test_empty_partitions_have_no_files():
    host = CountedHost()
    host.boot()
    seen = host.counted(host.shut_down)
    assert not seen["make_directory"], seen
    assert seen["create"] < 5, seen
    assert syncs(seen) < 20, seen
    assert not any(
        host.disk.is_directory(f"{ROOT}/{name}") for name in host.disk.list_directory(ROOT)
    )
    again = host.after(host.disk.kill())
    assert sum(again.counted(again.boot).values()) < 100


def test_new_partitions_are_made_without_a_look_at_the_disk():
    host = CountedHost(partitions=1)
    host.boot()

    def create():
        for number in range(PARTITIONS):
            host.store.create(100 + number, "new", number, bytes(16), LogConfig())
        host.step()

    assert sum(host.counted(create).values()) == 0


def test_a_stop_syncs_all_partitions_together():
    host = CountedHost()
    host.boot()
    host.write_to_all()
    seen = host.counted(host.shut_down)
    assert syncs(seen) < 20, seen
    assert sum(seen.values()) < WRITES_PER_PARTITION * PARTITIONS, seen


def test_a_stop_makes_one_file_for_each_tiny_log():
    """The file has the producers. Index files of such small logs are neither read nor written."""
    host = CountedHost()
    host.boot()
    host.write_to_all()
    seen = host.counted(host.shut_down)
    assert seen["create"] < PARTITIONS + 20, seen
    assert not host.files("index")


def test_a_tiny_log_with_an_aborted_transaction_keeps_it_over_a_clean_stop():
    host = CountedHost(partitions=1)
    host.boot()
    host.append(from_producer(9, 0, transactional=True))
    host.marker(9, commit=False)
    host.shut_down()
    again = host.after(host.disk.kill())
    again.boot()
    assert again.report.clean
    (aborted,) = again.log.aborted_transactions(0, again.log.next_offset)
    assert aborted.producer_id == 9


def test_a_checkpoint_leaves_nothing_for_the_collector():
    """The collector would have to visit the objects of thousands of partitions."""
    host = CountedHost(partitions=50)
    host.boot()
    host.write_to_all()
    gc.collect()
    gc.disable()
    try:
        before = sum(isinstance(each, PartitionCheckpoint) for each in gc.get_objects())
        host.checkpoint()
        after = sum(isinstance(each, PartitionCheckpoint) for each in gc.get_objects())
    finally:
        gc.enable()
    assert after <= before


def test_a_disk_that_is_not_synced_as_a_whole_is_synced_file_by_file():
    host = CountedHost(SimulatedFileSystem(syncs_whole=False), partitions=100)
    host.boot()
    host.write_to_all()
    seen = host.counted(host.shut_down)
    assert seen["syncfs"] == 0
    assert seen["fdatasync"] > 3 * 100
    assert seen["sync_directory"] >= 100


def test_few_files_are_synced_alone():
    host = CountedHost(partitions=3)
    host.boot()
    host.write_to_all()
    assert host.counted(host.shut_down)["syncfs"] == 0


@pytest.mark.parametrize("syncs_whole", [False, True])
def test_a_clean_start_looks_at_each_partition_a_few_times(syncs_whole):
    host = CountedHost(SimulatedFileSystem(syncs_whole=syncs_whole))
    host.boot()
    host.write_to_all()
    host.shut_down()
    again = host.after(host.disk.kill())
    seen = again.counted(again.boot)
    assert again.report.clean
    assert seen["list_directory"] < PARTITIONS + 10, seen
    looks = sum(seen[name] for name in ("open", "list_directory", "is_directory", "exists"))
    assert looks < LOOKS_PER_PARTITION * PARTITIONS + 100, seen
    assert syncs(seen) < 20, seen
    assert seen["create"] < 10, seen
    for spec in again.specs:
        log = again.store.get(spec.partition_id)
        assert (log.high_watermark, len(read_all(log))) == (1, 1)
        assert log.producers.entry(spec.partition_id) is not None


def test_a_start_after_a_kill_finds_what_was_never_synced():
    host = CountedHost()
    host.boot()
    host.write_to_all()
    again = host.after(host.disk.kill())
    again.boot()
    assert not again.report.clean
    assert again.report.batches_replayed == PARTITIONS
    assert all(log.high_watermark == 1 for log in again.store.logs.values())


def test_a_walk_over_the_log_at_a_start_is_not_repeated_at_every_one():
    host = CountedHost(partitions=50)
    host.boot()
    host.write_to_all()
    host.checkpoint()
    killed = host.after(host.disk.kill())
    killed.boot()
    assert all(log.producers.entry(number) for number, log in killed.store.logs.items())
    killed.shut_down()
    again = killed.after(killed.disk.kill())
    again.boot()
    assert again.report.clean
    assert all(log.snapshots.newest_offset == log.next_offset for log in again.store.logs.values())
    assert all(log.producers.entry(number) for number, log in again.store.logs.items())


def test_indexes_are_written_by_the_clean_stop_after_a_checkpoint_that_left_them():
    # A log that is longer than the space between two entries of its index.
    host = CountedHost(partitions=2, settings=replace(SETTINGS, synced_alone_max=0))
    host.boot()
    log = host.store.get(1)
    for sequence in range(100):
        log.append(from_producer(9, sequence))
        host.step()
    host.checkpoint()
    host.shut_down()
    assert host.disk.read_file(f"{ROOT}/topic-0/{0:020d}.index")
    again = host.after(host.disk.kill())
    reads = []
    again.disk.before = reads.append
    again.boot()
    assert f"{ROOT}/topic-0/{0:020d}.index" in {each.path for each in reads}
    assert len(read_all(again.store.get(1))) == 100
