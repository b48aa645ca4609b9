"""A log whose records before its snapshot are only in the store, in one thread."""

from functools import partial

from barnabas.broker.testing.disk.simulated import SimulatedFileSystem
from barnabas.broker.testing.store.blobs import MemoryBlobStore
from barnabas.broker.testing.store.log_index import MemoryLogIndex
from barnabas.storage.replicated.block_cache import BlockCache
from barnabas.storage.replicated.cold_store import ColdStore
from barnabas.storage.replicated.header_loading import log_by_headers
from barnabas.storage.replicated.log_parts import NewParts, covering_parts, new_parts
from barnabas.storage.replicated.log_reading import (
    head_of,
    is_elsewhere,
    log_behind_snapshot,
    needed_from,
    recent_from,
)
from barnabas.storage.replicated.log_snapshot import take_snapshot
from barnabas.storage.replicated.remote_segment import remote_segments
from barnabas.storage.store.flush_start import open_cache
from tests.storage.leading import Broker
from tests.storage.stores import NOW_MS, ROOT

CACHE_BYTES = 8 * 1024 * 1024


class Cold:
    """A store for old records, with its cache on a simulated disk."""

    def __init__(self, index, *, max_bytes=CACHE_BYTES, way=MemoryLogIndex, blobs=None, **more):
        self.disk = SimulatedFileSystem()
        self.disk.make_directory(ROOT, exist_ok=True)
        self.cache = BlockCache(self.disk, ROOT, max_bytes)
        blobs = partial(blobs or MemoryBlobStore, index.uploads)
        self.store = ColdStore(lambda: way(index), blobs, self.cache, lambda: NOW_MS, **more)


def parts_of(log, known_offset):
    """Return the parts of a log after ``known_offset``, as upkeep stores them."""
    parts = new_parts(log, known_offset)
    if not isinstance(parts, NewParts):
        return parts
    parts.note_stored()
    return parts.encode()


def keep_parts(broker, known_offset=0, *, before=()):
    """Keep a snapshot with its parts, as upkeep does; answers its offset.

    ``before``: batches that follow the snapshot in the flush that makes its records durable.
    """
    log, snapshot = broker.log, take_snapshot(broker.log)
    parts = parts_of(log, known_offset)
    broker.append(*before)
    epoch = log.leader_epoch
    assert broker.way.put_snapshot(broker.session, 1, epoch, snapshot, parts)
    return snapshot.next_offset


def durable_remote(index, cold):
    """The log behind its snapshot, with remote segments; None where it has to be read whole."""
    head = head_of(index, 1)
    parts = covering_parts(index, [head])[1]
    if not parts:
        return None
    remote = remote_segments(1, parts, cold.store)
    extents = list(recent_from(index, head))
    if is_elsewhere(extents):
        return log_by_headers(index, head, extents, remote, cold.store)
    return log_behind_snapshot(head, extents, remote)


class RemoteBroker(Broker):
    """The next leader: it loads its log without the records before the snapshot."""

    def __init__(self, index, config, life, cold, **more):
        self._cold = cold
        super().__init__(index, config, life, **more)

    def open(self, spec):
        open_cache(self.store, self.way, self.session)
        durable = durable_remote(self.index, self._cold)
        assert durable is not None, "the parts do not cover the log"
        self.store.load(spec, durable)


class HeadersBroker(RemoteBroker):
    """The next leader: it loads its log from the headers of all batches."""

    def open(self, spec):
        open_cache(self.store, self.way, self.session)
        head = head_of(self.index, 1)
        extents = needed_from(self.index, head)
        self.store.load(spec, log_by_headers(self.way, head, extents, (), self._cold.store))
