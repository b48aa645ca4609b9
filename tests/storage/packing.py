"""Packing of one log into segments, step by step, over objects that fail on demand."""

from barnabas.broker.testing.store.blobs import MemoryBlobStore
from barnabas.storage.objects.blob_store import BlobStoreError, SegmentKey
from barnabas.storage.replicated.segment_packing import (
    PackLimits,
    PackNumbers,
    SegmentPacking,
    find_unpacked,
)
from barnabas.storage.replicated.segment_sidecar import (
    blocks_by_reading,
    blocks_of,
    read_head,
    read_parts,
)
from tests.storage.leading import MANY, Now
from tests.storage.scripted_blobs import Ledger

LIMITS = PackLimits(segment_bytes=700, object_bytes_min=150, extents_max=5)


class PackedLedger(Ledger):
    """A ledger that fails on a segment that breaks F6, F7 or F12."""

    def replace_by_segment(self, session, partition_id, epoch, number, segment):
        key = SegmentKey.parse(segment.key)
        assert key[:2] == (partition_id, segment.base_offset)
        assert key[2:] == (session, number), "a number of another attempt"
        for each in (key.text, key.sidecar):
            assert each in self.uploads.bodies, f"{each} is named before it is durable"
        before = stored_batches(self)
        is_replaced = super().replace_by_segment(session, partition_id, epoch, number, segment)
        assert stored_batches(self) == before, "packing changes the log"
        return is_replaced


class FailingOnce(MemoryBlobStore):
    """Objects whose next puts fail or not, each by its turn: "", "before", "after", or "ghost"."""

    repeats_calls = False

    def __init__(self, index):
        super().__init__(index.uploads)
        self.fates = []
        self.ghosts = []
        self.used = set()
        """All keys that were ever put."""

    def put(self, key, body):
        assert key not in self.used, f"{key} is used twice"
        self.used.add(key)
        fate = self.fates.pop(0) if self.fates else ""
        if fate == "ghost":
            self.ghosts.append((key, body))
        elif fate != "before":
            super().put(key, body)
        if fate:
            raise BlobStoreError("503 Slow Down")

    def let_ghosts_arrive(self):
        while self.ghosts:
            super().put(*self.ghosts.pop())


class Packing:
    """The packer of a leader, which may end at any step."""

    def __init__(self, broker, blobs, limits=LIMITS):
        self.broker = broker
        self.blobs = blobs
        self.limits = limits
        self.numbers = PackNumbers()
        self.packed = 0

    def portions(self, end, begin=0):
        begin = max(begin, self.broker.log.log_start_offset)
        return find_unpacked(self.broker.way, 1, begin, end, self.limits.segment_bytes)[0]

    def begin(self, portion):
        broker = self.broker
        packing = SegmentPacking(
            broker.log, broker.session, broker.way, self.blobs, Now, self.numbers, self.limits
        )
        return packing.pack(portion)

    def run(self, portion, *, steps=MANY, at=None, meanwhile=lambda: None):
        """Pack a portion; return the result, or None if it ends after ``steps`` steps."""
        walk, taken = self.begin(portion), 0
        try:
            while taken < steps:
                if taken == at:
                    meanwhile()
                walk.send(None)
                taken += 1
        except StopIteration as stop:
            self.packed += bool(stop.value)
            return stop.value
        walk.close()
        return None

    def run_all(self, end):
        return [self.run(each) for each in self.portions(end)]


def stored_batches(index, partition_id=1):
    """Return all bytes of a log in the index, and its first and last offset."""
    extents = index.rows[partition_id].extents
    ends = extents and (extents[0].base_offset, extents[-1].next_offset)
    return b"".join(each.data for each in extents), ends


def packed_extents(index, partition_id=1):
    found = index.extent_sizes(partition_id, 0, most=MANY)
    return [each for each in found if each.is_segment]


def check_segments(index):
    """Assert that the store has each packed segment, with a sidecar that fits it."""
    get = MemoryBlobStore(index.uploads).get_range
    for size in packed_extents(index):
        key = SegmentKey.parse(size.key)
        body, sidecar = get(key.text, 0, MANY**2), get(key.sidecar, 0, MANY**2)
        head = read_head(sidecar)
        assert (head.base_offset, head.next_offset, head.size_bytes) == size[:3]
        assert len(body) == size.length
        assert len(read_parts(sidecar)) == 5
        blocks = blocks_of(get, size)
        assert blocks_by_reading(get, size) == blocks
        assert sum(each.length for each in blocks) == size.length
        assert index.dead_keys([key.text, key.sidecar]) == []
