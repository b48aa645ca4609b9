"""Logs that an import brings into an object store are packed already."""

import pytest

from barnabas.broker.testing.store.index import MemoryIndex
from barnabas.broker.testing.store.log_index import MemoryLogIndex
from barnabas.storage.log.config import COMPACT, LogConfig
from barnabas.storage.objects.blob_store import BlobStoreError, SegmentKey
from barnabas.storage.replicated import log_import
from barnabas.storage.replicated.cluster_transfer import TransferRefused
from barnabas.storage.replicated.log_import import import_logs
from barnabas.storage.replicated.segment_packing import find_unpacked
from tests.cluster.objects import Bucket, ObjectsInMemory
from tests.storage.flushes import Stranger, assign, register
from tests.storage.stores import Host, batch
from tests.worlds import world

__all__ = ["world"]

VALUE = bytes(1_000)
MANY = 10**9
SIZES = {"SEGMENT_BYTES": 10_000, "OBJECT_BYTES_MIN": 3_000, "FLUSH_BYTES": 4_000}


class Importing:
    """An import of the logs of a host into an object store."""

    def __init__(self, monkeypatch, config=None, topics=("topic",)):
        for name, size in SIZES.items():
            monkeypatch.setattr(log_import, name, size)
        self.index, self.bucket = MemoryIndex(), Bucket()
        self.session = register(self.index, 1)
        self.way = MemoryLogIndex(self.index)
        self.host = Host(config, topics=topics)
        self.host.boot()

    def append(self, count, partition_id=1):
        log = self.host.store.get(partition_id)
        for _ in range(count):
            log.append(batch(value=VALUE))
            self.host.step()

    def import_logs(self, session, epoch, bases):
        """Create the partitions, as a transfer does."""
        for partition_id in bases:
            assert assign(self.index, partition_id, session) == epoch

    def run(self):
        logs = [self.host.store.get(each.partition_id) for each in self.host.specs]
        blobs = ObjectsInMemory(self.bucket)
        import_logs(logs, self, self.way, self.session, 0, blobs=blobs)

    def sizes(self, partition_id=1):
        return [*self.way.extent_sizes(partition_id, 0, most=1000)]

    def kinds(self):
        return [key.partition("/")[0] for key in self.bucket]


def test_log_is_segments_and_its_rest_is_a_row(world, monkeypatch):
    importing = Importing(monkeypatch)
    importing.append(21)
    importing.run()
    first, second, rest = importing.sizes()
    for segment in (first, second):
        key = SegmentKey.parse(segment.key)
        assert {key.text, key.sidecar} <= {*importing.bucket}
        body = importing.bucket.get_range(key.text, 0, MANY)
        assert len(body) == segment.length >= SIZES["SEGMENT_BYTES"]
    assert rest.key is None
    assert rest.next_offset == importing.index.rows[1].log_end_offset == 21
    assert importing.kinds() == ["seg"] * 4
    unpacked, _ = find_unpacked(importing.way, 1, 0, 21, MANY)
    assert [(each.begin, each.has_object_store) for each in unpacked] == [(rest.base_offset, False)]


def test_rests_of_several_logs_are_rows_even_if_they_fill_an_object(world, monkeypatch):
    importing = Importing(monkeypatch, topics=("a", "b", "c"))
    for partition_id in (1, 2, 3):
        importing.append(2, partition_id)
    importing.run()
    assert importing.kinds() == []
    assert [importing.index.rows[each].log_end_offset for each in (1, 2, 3)] == [2, 2, 2]


def test_compacted_log_is_not_packed(world, monkeypatch):
    importing = Importing(monkeypatch, LogConfig(cleanup_policy=COMPACT))
    importing.append(21)
    importing.run()
    assert {*importing.kinds()} == {"wal"}
    assert not any(each.is_segment for each in importing.sizes())


def test_failed_attempt_has_a_key_of_its_own_f7(world, monkeypatch):
    importing = Importing(monkeypatch)
    importing.append(21)
    tried = []

    def fail_at_first(key, put):
        tried.append(key)
        if len(tried) in (1, 3):
            raise BlobStoreError("503 Slow Down")
        put()

    importing.bucket.on_put = fail_at_first
    importing.run()
    assert len({*tried}) == len(tried) == 7
    named = [SegmentKey.parse(each.key) for each in importing.sizes() if each.key]
    assert [each.number for each in named] == [2, 3]
    garbage = {*importing.bucket} - {key for each in named for key in (each.text, each.sidecar)}
    assert {*importing.index.dead_keys([*garbage])} == garbage, "an attempt without its sidecar"
    assert len(garbage) == 1


def test_store_that_fails_for_long_ends_the_import(world, monkeypatch):
    importing = Importing(monkeypatch)
    importing.append(21)

    def fail(key, put):
        raise BlobStoreError("503 Slow Down")

    importing.bucket.on_put = fail
    with pytest.raises(BlobStoreError, match="503"):
        importing.run()
    assert importing.sizes() == []


def test_import_that_another_one_replaces_is_refused(world, monkeypatch):
    importing = Importing(monkeypatch)
    importing.append(21)

    def lose(key, put):
        put()
        assign(importing.index, 1, Stranger(importing.index).session)
        importing.bucket.on_put = lambda _key, put: put()

    importing.bucket.on_put = lose
    with pytest.raises(TransferRefused):
        importing.run()
    assert importing.sizes() == []


def test_lost_result_of_a_segment_is_requested_again_f3(world, monkeypatch):
    importing = Importing(monkeypatch)
    importing.append(11)
    importing.way.lose_answers(40)
    importing.run()
    assert [each.is_segment for each in importing.sizes()] == [True, False]
    assert importing.index.rows[1].log_end_offset == 11
