"""Reads of old records from the store: blocks, checks, and what goes first."""

import errno

import pytest

from barnabas.broker.testing.store.blobs import MemoryBlobStore
from barnabas.broker.testing.store.index import MemoryIndex
from barnabas.broker.testing.store.log_index import MemoryLogIndex
from barnabas.storage.errors import Corrupt
from barnabas.storage.log.config import LogConfig
from barnabas.storage.log.memory_read import MemorySlice
from barnabas.storage.log.segment_read import read_cached, read_waiting
from barnabas.storage.objects.blob_store import BlobRefused, BlobStoreError
from barnabas.storage.objects.object_reads import OF_ONE_OBJECT, READS_AT_ONCE
from barnabas.storage.replicated.block_cache import BLOCK_BYTES, BLOCKS_NAME, BlockCache
from barnabas.storage.replicated.cold_store import (
    ASIDE_AT_ONCE,
    UNCLAIMED_MAX,
    NotYetRead,
)
from barnabas.storage.replicated.log_index import Extent
from barnabas.storage.replicated.object_reading import ObjectReader
from barnabas.storage.runtime.clock import monotonic
from barnabas.storage.runtime.threads import Event, new_event, start_thread
from tests.storage.leading import Broker
from tests.storage.remote import CACHE_BYTES, Cold, RemoteBroker, keep_parts
from tests.storage.scripted_objects import IndexWithObjects
from tests.storage.stores import ROOT, batch, read_all
from tests.waiting import wait_until

CONFIG = LogConfig(segment_bytes=8 * 1024 * 1024)
VALUE = b"v" * 250_000
STRETCHES = 6
"""Stretches of four extents, each of one batch."""


@pytest.fixture
def index():
    index = MemoryIndex()
    leader = Broker(index, CONFIG, 0)
    for _ in range(4 * STRETCHES):
        leader.append(batch(value=VALUE))
    keep_parts(leader)
    return index


class Counted(MemoryLogIndex):
    """A connection that counts reads of extents, and can hold or change them."""

    reads = 0
    hold = None
    damage = None

    @classmethod
    def damaged(cls, found):
        return found if cls.damage is None else cls.damage(found)

    def extents(self, *named, **limits):
        type(self).reads += 1
        if self.hold is not None:
            self.hold.wait(60)
        found = super().extents(*named, **limits)
        return self.damaged(found)


@pytest.fixture
def way():
    return type("Way", (Counted,), {})


@pytest.fixture
def cold(index, way):
    made = Cold(index, way=way)
    yield made
    made.store.close()


@pytest.fixture
def log(index, cold):
    return RemoteBroker(index, CONFIG, 1, cold).log


def load(log, offset, max_bytes=1000, read=read_waiting):
    plan = log.plan_read(offset, max_bytes)
    assert not isinstance(plan, MemorySlice)
    return plan.load(read)


def quiet(cold):
    wait_until(lambda: not cold.store._readings, "no read is under way")


def test_cold_read_never_waits_on_the_loop_and_comes_from_the_cache_after_it(log, cold, way):
    assert load(log, 0, read=read_cached) is None
    assert way.reads == 0
    data = load(log, 0).data
    quiet(cold)
    reads = way.reads
    assert (cold.cache.hits, cold.cache.misses) == (0, 1)
    assert load(log, 0, read=read_cached).data == data
    assert load(log, 1, read=read_cached).upper_offset == 2
    assert way.reads == reads
    assert (cold.cache.hits, cold.cache.misses) == (2, 1)


def test_a_reader_that_comes_in_order_has_the_next_stretches_read_ahead(log, cold, way):
    load(log, 0)
    quiet(cold)
    assert way.reads == 1 + 4
    for offset in range(4 * 5):
        assert load(log, offset, read=read_cached) is not None
    assert load(log, 4 * STRETCHES - 1) is not None


def test_nothing_is_read_ahead_of_a_store_that_throttles(index, way):
    cold = Cold(index, way=way, is_throttled=lambda: True)
    log = RemoteBroker(index, CONFIG, 1, cold).log
    load(log, 0)
    quiet(cold)
    assert way.reads == 1
    cold.store.close()


def test_a_reader_elsewhere_has_nothing_read_ahead(log, cold, way):
    load(log, 9)
    quiet(cold)
    assert way.reads == 1


def test_two_readers_read_a_stretch_once(log, cold, way):
    way.hold = new_event()
    found = []
    threads = [start_thread("reader", lambda: found.append(load(log, 9))) for _ in range(4)]
    wait_until(lambda: way.reads == 1, "one read")
    way.hold.set()
    for thread in threads:
        thread.join(60)
    assert len(found) == 4
    assert way.reads == 1


def test_silent_store_is_an_error_after_a_time_and_is_read_in_the_end(index, way):
    cold = Cold(index, way=way, timeout_s=0.01)
    log = RemoteBroker(index, CONFIG, 1, cold).log
    way.hold = new_event()
    with pytest.raises(OSError, match="does not respond"):
        load(log, 9)
    way.hold.set()
    quiet(cold)
    assert load(log, 9, read=read_cached) is not None
    cold.store.close()
    with pytest.raises(OSError, match="stops"):
        load(log, 0)


def test_takeover_waits_for_no_read_of_a_client(cold):
    hold, found = new_event(), []
    for key in range(2 * READS_AT_ONCE):
        with pytest.raises(NotYetRead):
            cold.store.read(key, lambda _: hold.wait(60), until_s=0.0)
    start_thread("takeover", lambda: found.append(cold.store.read("p", id, patiently=True)))
    wait_until(lambda: found, seconds=10)
    hold.set()


class Failing(MemoryBlobStore):
    """Objects of which one is archived, one fails, and one hangs."""

    requested: list[str]
    held: Event

    def get_range(self, key, position, length):
        self.requested.append(key)
        if key.startswith("archived"):
            raise BlobRefused("403 Forbidden: InvalidObjectState")
        if key.startswith("failing"):
            raise BlobStoreError("500")
        if key.startswith("hanging"):
            self.held.wait(60)
        return key.encode()


@pytest.fixture
def failing():
    return type("Failing", (Failing,), {"requested": [], "held": new_event()})


def get(cold, key, number=0, **how):
    return cold.store.read((key, number), lambda way: way.get_range(key, 0, 1), **how)


def test_object_that_the_store_refuses_is_an_error_at_once(index, failing, caplog):
    """An archived object, for example: its readers leave their threads to others."""
    cold = Cold(index, blobs=failing, timeout_s=60)
    began_s = monotonic()
    for number in range(2 * READS_AT_ONCE):
        with pytest.raises(PermissionError, match=r"InvalidObjectState.*archived"):
            get(cold, "archived", number)
    assert monotonic() - began_s < 10
    assert failing.requested == ["archived"], "the store is not asked again at once"
    (line,) = [each.getMessage() for each in caplog.records]
    assert line == (
        "old records unreadable, clients get KAFKA_STORAGE_ERROR key=archived "
        "error=403 Forbidden: InvalidObjectState"
    )
    cold.store.close()


def test_object_that_fails_is_an_error_after_the_timeout_and_delays_no_others(index, failing):
    cold = Cold(index, blobs=failing, timeout_s=1.0)
    for number in range(4 * READS_AT_ONCE):
        with pytest.raises(NotYetRead):
            get(cold, f"failing{number % READS_AT_ONCE}", number, until_s=0.0)
    assert get(cold, "sound") == b"sound"
    assert cold.store._readings, "the others still wait"
    with pytest.raises(TimeoutError):
        get(cold, "failing0", 0)
    cold.store.close()


def test_object_that_hangs_delays_no_reads_of_others(index, failing):
    cold = Cold(index, blobs=failing, timeout_s=60)
    for number in range(2 * READS_AT_ONCE):
        with pytest.raises(NotYetRead):
            get(cold, "hanging", number, until_s=0.0)
    wait_until(lambda: len(failing.requested) == OF_ONE_OBJECT + ASIDE_AT_ONCE)
    assert get(cold, "sound", until_s=monotonic() + 30) == b"sound"
    failing.held.set()
    for number in range(2 * READS_AT_ONCE):
        assert get(cold, "hanging", number) == b"hanging"
    cold.store.close()


def test_objects_of_large_flushes_that_are_archived_delay_no_others():
    """Their reads pass the index, which has the reader of objects."""
    index = IndexWithObjects()
    leader = Broker(index, CONFIG, 0)
    for _ in range(4 * STRETCHES):
        leader.append(batch(value=VALUE))
    keep_parts(leader)
    archived = Archived(index.objects)
    reader = ObjectReader(lambda: archived)
    index.bodies = reader.bodies
    cold = Cold(index, timeout_s=60)
    log = RemoteBroker(index, CONFIG, 1, cold).log
    archived.keys.update(sorted(index.objects)[:8])
    began_s, unreadable = monotonic(), set()
    for offset in range(4 * STRETCHES):
        try:
            assert load(log, offset) is not None
        except PermissionError:
            unreadable.add(offset)
    assert len(unreadable) >= 8
    assert len(unreadable) < 4 * STRETCHES
    assert monotonic() - began_s < 30
    cold.store.close()
    reader.close()


class Archived:
    """A connection to objects of which some are archived."""

    def __init__(self, objects):
        self._objects = objects
        self.keys = set()

    def get_range(self, key, position, length):
        if key in self.keys:
            raise BlobRefused("403 Forbidden: InvalidObjectState")
        return self._objects.get_range(key, position, length)

    def close(self):
        pass


def load_until(log, offset, seconds):
    return log.plan_read(offset, 1000).load(read_waiting, monotonic() + seconds)


@pytest.mark.parametrize("max_bytes", [CACHE_BYTES, 0], ids=["cache", "no cache"])
def test_reader_whose_time_is_over_leaves_the_result_to_the_next_one(index, way, max_bytes):
    cold = Cold(index, way=way, max_bytes=max_bytes)
    log = RemoteBroker(index, CONFIG, 1, cold).log
    way.hold = new_event()
    assert load_until(log, 9, 0.01) is None, "the read of the places of extents"
    assert load_until(log, 9, 0.01) is None, "the read of a stretch"
    assert way.reads == 1
    way.hold.set()
    quiet(cold)
    assert load(log, 9) is not None
    assert way.reads == 1
    cold.store.close()


def test_damage_is_left_to_the_next_reader(log, cold, way):
    assert load(log, 0) is not None
    quiet(cold)
    reads = way.reads
    way.hold = new_event()
    way.damage = staticmethod(lambda found: flipped(found) if found[0].base_offset == 20 else found)
    assert load_until(log, 21, 0.01) is None
    way.hold.set()
    quiet(cold)
    with pytest.raises(Corrupt, match="checksum of the batch at offset 20"):
        load_until(log, 21, 60)
    assert way.reads == reads + 2
    way.damage = None
    assert load(log, 21) is not None


def test_results_that_no_reader_claims_are_few(index, way):
    cold = Cold(index, way=way, max_bytes=0)
    way.hold = new_event()
    for key in range(2 * UNCLAIMED_MAX):
        with pytest.raises(NotYetRead):
            cold.store.read(key, lambda way: way.extents(1, 0, most=1, most_bytes=1), until_s=0.0)
    way.hold.set()
    quiet(cold)
    assert len(cold.store._unclaimed) == UNCLAIMED_MAX
    cold.store.close()


def test_read_older_than_the_timeout_is_an_error_at_the_end_of_the_readers_time(index, way):
    cold = Cold(index, way=way, timeout_s=0.05)
    log = RemoteBroker(index, CONFIG, 1, cold).log
    load(log, 0)
    quiet(cold)
    way.hold = new_event()
    assert load_until(log, 21, 0.001) is None
    with pytest.raises(OSError, match="does not respond"):
        load_until(log, 21, 60)
    way.hold.set()
    quiet(cold)
    assert load_until(log, 21, 60) is not None
    cold.store.close()


def flipped(extents):
    first, *others = extents
    data = bytearray(first.data)
    data[-1] ^= 1
    return [first._replace(data=bytes(data)), *others]


def test_damaged_batch_is_read_once_more_and_the_rest_is_served(log, cold, way):
    way.damage = staticmethod(lambda found: flipped(found) if found[0].base_offset == 8 else found)
    with pytest.raises(Corrupt, match="checksum of the batch at offset 8"):
        load(log, 9)
    assert way.reads == 2
    assert load(log, 4) is not None
    way.damage = None
    assert load(log, 9) is not None


@pytest.mark.parametrize(
    "change",
    [
        lambda found: [found[0]._replace(data=found[0].data[:-1]), *found[1:]],
        lambda found: [found[0]._replace(data=found[1].data), *found[1:]],
    ],
    ids=["cut off", "of other offsets"],
)
def test_wrong_extent_is_corrupt(log, way, change):
    way.damage = staticmethod(change)
    with pytest.raises(Corrupt):
        load(log, 9)


def test_joined_extents_are_read_as_before(index, log, cold):
    before = [data for _, data in read_all(log)]
    row = index.rows[1]
    for begin in range(0, 4 * STRETCHES, 6):  # Across the stretches.
        some = row.extents[begin : begin + 6]
        joined = b"".join(each.data for each in some)
        row.extents[begin : begin + 6] = [
            Extent(some[0].base_offset, some[-1].next_offset, some[0].leader_epoch, joined),
            *[None] * (len(some) - 1),
        ]
    row.extents[:] = [each for each in row.extents if each is not None]
    for stretch in list(cold.cache._stretches):
        cold.cache.forget(stretch)
    assert [data for _, data in read_all(log)] == before


def test_removed_segment_frees_its_blocks(log, cold):
    load(log, 9)
    quiet(cold)
    assert cold.cache.used_bytes
    log.segments[0].remove()
    assert cold.cache.used_bytes == 0


def test_cache_smaller_than_the_log_serves_all_of_it(index, way):
    cold = Cold(index, way=way, max_bytes=3 * BLOCK_BYTES)
    log = RemoteBroker(index, CONFIG, 1, cold).log
    assert [header.base_offset for header, _ in read_all(log)] == list(range(4 * STRETCHES))
    quiet(cold)
    assert 0 < cold.cache.used_bytes <= 3 * BLOCK_BYTES
    cold.store.close()


def test_log_without_a_cache_is_served(index, way):
    cold = Cold(index, way=way, max_bytes=0)
    log = RemoteBroker(index, CONFIG, 1, cold).log
    assert len(read_all(log)) == 4 * STRETCHES
    cold.store.close()


def test_log_is_served_while_the_disk_is_full(index, way):
    cold = Cold(index, way=way)
    cold.disk.capacity_bytes = 0
    log = RemoteBroker(index, CONFIG, 1, cold).log
    assert len(read_all(log)) == 4 * STRETCHES
    cold.store.close()


# The cache alone


@pytest.fixture
def cache(cold):
    return BlockCache(cold.disk, ROOT, 3 * BLOCK_BYTES)


def put(cache, key, size=BLOCK_BYTES):
    cache.put(key, bytes([key]) * size)


def kept(cache):
    return [key for key in range(9) if cache.has(key)]


def test_the_least_recently_used_stretch_goes_first(cache):
    for key in range(3):
        put(cache, key)
    assert cache.read(0, 10, 5, waits=True) == bytes(10)
    put(cache, 3)
    assert kept(cache) == [0, 2, 3]


def test_stretch_that_one_reader_has_finished_goes_first(cache):
    for key in range(3):
        put(cache, key)
    cache.finish(2)
    put(cache, 3)
    assert kept(cache) == [0, 1, 3]
    cache.finish(3)
    cache.finish(3)
    put(cache, 4)
    assert kept(cache) == [1, 3, 4], "a second reader came"


def test_a_stretch_lies_in_blocks_apart_from_each_other(cache):
    for key in range(3):
        put(cache, key)
    cache.forget(0)
    cache.forget(2)
    put(cache, 5, BLOCK_BYTES + 7)
    assert kept(cache) == [1, 5]
    assert cache.read(5, 100, BLOCK_BYTES - 3, waits=True) == bytes([5]) * 10
    assert cache.read(1, 4, 0, waits=True) == bytes([1]) * 4


def test_a_stretch_larger_than_the_cache_is_not_kept(cache):
    put(cache, 0)
    put(cache, 1, 4 * BLOCK_BYTES)
    assert kept(cache) == [0]


@pytest.fixture
def tight(cold):
    """A cache that leaves two blocks of its disk free."""
    return BlockCache(cold.disk, ROOT, 6 * BLOCK_BYTES, 2 * BLOCK_BYTES)


def test_cache_gives_way_when_the_disk_fills(tight, cold):
    cold.disk.capacity_bytes = cold.disk.used_bytes + 5 * BLOCK_BYTES
    for key in range(4):
        put(tight, key)
    assert kept(tight) == [1, 2, 3], "as many as leave two blocks free"
    cold.disk.capacity_bytes -= 2 * BLOCK_BYTES
    assert tight.fit() == 0
    assert kept(tight) == [3], "it lies in the first block"
    assert cold.disk.free_bytes(ROOT) == 2 * BLOCK_BYTES
    assert tight.read(3, 9, 0, waits=True) == bytes([3]) * 9
    cold.disk.capacity_bytes -= 2 * BLOCK_BYTES
    assert tight.fit() == -BLOCK_BYTES, "others have taken more"
    assert tight.used_bytes == 0
    put(tight, 4)
    assert kept(tight) == []


def test_cache_grows_again_once_the_disk_has_space(tight, cold):
    cold.disk.capacity_bytes = cold.disk.used_bytes + 2 * BLOCK_BYTES
    put(tight, 0)
    assert kept(tight) == []
    cold.disk.capacity_bytes = None
    for key in range(8):
        put(tight, key)
    assert kept(tight) == [2, 3, 4, 5, 6, 7]
    assert [tight.read(key, 2, 0, waits=True) for key in kept(tight)] == [
        bytes([key]) * 2 for key in kept(tight)
    ]


def test_stretch_that_is_cut_off_while_it_is_written_is_not_kept(tight, cold):
    put(tight, 0)
    before = cold.disk.before

    def fill(operation):
        if operation.name == "pwritev":
            cold.disk.before = before
            cold.disk.capacity_bytes = cold.disk.used_bytes + BLOCK_BYTES
            assert tight.fit() == -BLOCK_BYTES
            cold.disk.capacity_bytes = None

    cold.disk.before = fill
    put(tight, 1, 2 * BLOCK_BYTES)
    assert kept(tight) == [0]
    for key in range(2, 8):
        put(tight, key)
    assert kept(tight) == [2, 3, 4, 5, 6, 7], "no block is lost"
    assert [tight.read(key, 2, 0, waits=True) for key in kept(tight)] == [
        bytes([key]) * 2 for key in kept(tight)
    ]


def test_cache_without_an_answer_of_its_disk_keeps_nothing(cache, cold, monkeypatch):
    def fail(_path):
        raise OSError(errno.EIO, "the disk is away")

    put(cache, 0)
    monkeypatch.setattr(cold.disk, "free_bytes", fail)
    put(cache, 1)
    assert kept(cache) == [0]


def test_closed_cache_leaves_no_file(cache, cold):
    put(cache, 0)
    assert BLOCKS_NAME in cold.disk.list_directory(ROOT)
    cache.close()
    assert BLOCKS_NAME not in cold.disk.list_directory(ROOT)
    assert cache.read(0, 1, 0, waits=True) is None
