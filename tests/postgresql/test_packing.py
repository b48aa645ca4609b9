"""The size of the tables in PostgreSQL follows retention, and readers do not notice (F12)."""

import threading
from contextlib import closing
from random import Random

import psycopg
import pytest

from barnabas.broker.cluster.leading.upkeep import (
    EXTENTS_AT_ONCE,
    PACKED_BYTES_AT_ONCE,
    PACKED_EXTENTS_AT_ONCE,
    UpkeepSettings,
)
from barnabas.storage.postgresql.primary import Primary
from barnabas.storage.postgresql.schema import migrate, migrations
from barnabas.storage.replicated.log_index import Extent, Flush, Item, Lane, PackedExtents
from tests.counterparts.postgresql_servers import Server
from tests.postgresql.test_upkeep import MISCOUNTED
from tests.postgresql.whole_index import WholeIndex
from tests.seeds import SEED
from tests.storage.upkeep_contract import COMMITTED, MANY, Leader, collect_all

KIB = 1024
MIB = 1024 * KIB
REST_MS = UpkeepSettings().pack_rest_ms
PAYLOADS = "SELECT coalesce(sum(octet_length(payload)), 0)::bigint FROM barnabas.objects"
RELATION = "SELECT pg_total_relation_size('barnabas.objects')"


@pytest.fixture
def server():
    """A server without the data of other tests."""
    with Server() as running:
        yield running


@pytest.fixture
def index(server):
    with closing(WholeIndex.open(server.url, patience_s=60)) as opened:
        yield opened


def assign_at(index):
    def assign(partition_id, session):
        return index.assign_one(partition_id, session, index.partition(partition_id).leader_epoch)

    return assign


class Writer(Leader):
    """A leader that knows the extents of its partitions."""

    def __init__(self, index):
        super().__init__(index, assign_at(index))
        self.extents = {}

    def flush(self, sizes, random):
        """Commit one extent of one record for each partition in ``sizes``."""
        items, bodies, position = [], [], 0
        for partition_id, size in sizes.items():
            known = self.extents.setdefault(partition_id, [])
            base = known[-1].next_offset if known else 0
            body = random.randbytes(size)
            items.append(Item(partition_id, 0, base, base + 1, position, size))
            bodies.append(body)
            position += size
            known.append(Extent(base, base + 1, 0, body))
        flush = Flush(Lane.INLINE, self.flushes[Lane.INLINE], items, (), b"".join(bodies))
        assert self._commit(flush) == COMMITTED

    def delete(self, partition_id, offset):
        """Delete the records of a partition below an offset."""
        self.snapshot(partition_id, offset)
        self.start_at(partition_id, offset)

    def living_bytes(self, partition_id, start):
        return sum(
            len(each.data) for each in self.extents[partition_id] if each.base_offset >= start
        )


def upkeep(index):
    """Collect garbage and pack with the limits of a broker, until nothing is left."""
    while index.collect_garbage(EXTENTS_AT_ONCE) == EXTENTS_AT_ONCE:
        pass
    packed = []
    limits = (PACKED_EXTENTS_AT_ONCE, PACKED_BYTES_AT_ONCE, REST_MS)
    while not packed or packed[-1].extents:
        packed.append(index.pack_extents(*limits))
    return sum(each.size_bytes for each in packed)


def pass_minutes(server, minutes):
    """Move the clock by which packing waits."""
    rest = "UPDATE barnabas.objects SET sparse_since = sparse_since - %s * interval '1 minute'"
    server.execute(f"{rest} WHERE sparse_since IS NOT NULL RETURNING 1", minutes)


def test_one_byte_keeps_no_flush_of_a_mebibyte(server, index):
    """PostgreSQL keeps 40 MiB for 40 bytes without packing."""
    writer = Writer(index)
    bulk, small = writer.lead(), writer.lead()
    for number in range(40):
        writer.flush({bulk: MIB - 1, small: 1}, Random(number))
    assert server.execute(PAYLOADS) == [(40 * MIB,)]
    writer.delete(bulk, 40)
    upkeep(index)
    assert server.execute(PAYLOADS) == [(40 * MIB,)], "they rest for five minutes"
    assert index.space(REST_MS) == (40 * (MIB - 1), 0)
    pass_minutes(server, 5)
    assert index.space(REST_MS) == (40 * (MIB - 1),) * 2
    assert upkeep(index) == 40
    assert index.space(REST_MS) == (0, 0)
    assert server.execute(PAYLOADS) == [(40,)]
    server.execute("VACUUM barnabas.objects")
    ((size_bytes,),) = server.execute(RELATION)
    print("relation of 40 bytes:", size_bytes)
    assert size_bytes < 2 * MIB
    assert index.extents(small, 0, most=MANY) == writer.extents[small]


class MixedRetention:
    """Topics kept for an hour, for a week, offsets and transactions in the same flushes."""

    HOUR_MINUTES = 60
    SEGMENT_MINUTES = 10

    def __init__(self, writer, random):
        self.writer = writer
        self.random = random
        self.hour = [writer.lead() for _ in range(4)]
        self.week = [writer.lead() for _ in range(2)]
        self.offsets, self.transactions = writer.lead(), writer.lead()
        self.starts = dict.fromkeys([*self.hour, *self.week, self.offsets, self.transactions], 0)
        self.ends = {each: [] for each in self.hour}
        """End offsets of the partitions kept for an hour, after each minute."""

    def write(self):
        """Write the records of one minute."""
        for _ in range(2):
            sizes = {each: self.random.randint(20, 36) * KIB for each in self.hour}
            sizes |= {each: self.random.randint(1, 8) * KIB for each in self.week}
            sizes |= {self.offsets: 150, self.transactions: 180}
            self.writer.flush(sizes, self.random)
        self.writer.flush({self.offsets: 150}, self.random)
        for each, ends in self.ends.items():
            ends.append(self.writer.extents[each][-1].next_offset)

    def retain(self, minute):
        """Delete the segments, of ten minutes each, that are older than an hour."""
        for at, each in enumerate(self.hour):
            is_rolled = (minute + 2 * at) % self.SEGMENT_MINUTES == 0
            if is_rolled and minute > self.HOUR_MINUTES:
                self.starts[each] = self.ends[each][minute - self.HOUR_MINUTES]
                self.writer.delete(each, self.starts[each])

    def living_bytes(self):
        return sum(self.writer.living_bytes(*each) for each in self.starts.items())


@pytest.mark.slow
def test_size_follows_mixed_retention_within_a_factor_of_1_5(server, index):
    """Three hours of a moved clock; segments of the internal topics stay active all the time."""
    print("seed", SEED)
    writer = Writer(index)
    topics = MixedRetention(writer, Random(SEED))
    factors, relations, written, packed = [], [], 0, 0
    for minute in range(180):
        topics.write()
        topics.retain(minute)
        pass_minutes(server, 1)
        packed += upkeep(index)
        living = topics.living_bytes()
        ((stored,),) = server.execute(PAYLOADS)
        factors.append(stored / living)
        if minute % 5 == 0:
            server.execute("VACUUM barnabas.objects")
            ((size_bytes,),) = server.execute(RELATION)
            relations.append(size_bytes / living)
    written = sum(len(each.data) for log in writer.extents.values() for each in log)
    print("payloads:", max(factors), "relation:", max(relations[12:]), "packed:", packed / written)
    assert written > 2 * living, "without packing all of it stays"
    assert max(factors) < 1.5
    assert max(relations[12:]) < 1.5
    assert packed < written, "no byte is copied often"
    assert index.space(0).pinned_bytes < 0.5 * living
    for partition_id, start in topics.starts.items():
        found = index.extents(partition_id, start, most=MANY)
        assert found == [each for each in writer.extents[partition_id] if each.base_offset >= start]


def test_readers_see_the_same_log_while_it_is_packed_f12(server, index):
    print("seed", SEED)
    writer = Writer(index)
    bulk, kept = writer.lead(), writer.lead()
    random = Random(SEED)
    ended = threading.Event()
    failures = []

    def watched(act):
        with closing(WholeIndex.open(server.url, patience_s=60)) as way:
            try:
                while not ended.is_set():
                    act(way)
            except BaseException as error:  # noqa: BLE001  Reported below.
                failures.append(error)

    def read(way):
        first = way.partition(kept).log_end_offset
        found = way.extents(kept, 0, most=MANY)
        assert len(found) >= first
        assert found == writer.extents[kept][: len(found)]
        (beginning,) = way.beginnings([kept], most=MANY, most_bytes=MIB)
        assert beginning.extents == writer.extents[kept][: len(beginning.extents)]

    def pack(way):
        way.collect_garbage(4)
        packed.append(way.pack_extents(8, 30 * KIB, 0).extents)

    packed = []
    threads = [threading.Thread(target=watched, args=(act,)) for act in (read, read, pack, pack)]
    for each in threads:
        each.start()
    for number in range(150):
        writer.flush({bulk: 3 * KIB, kept: random.choice((10, 3 * KIB))}, random)
        if number % 10 == 9:
            writer.delete(bulk, number - 5)
    ended.set()
    for each in threads:
        each.join()
    assert failures == []
    assert sum(packed) > 30
    assert server.execute(MISCOUNTED) == []


class OlderIndex(WholeIndex):
    """Index of a broker whose release has no object store."""

    def register(self, token, node_id, endpoints, lease_ms, _store):
        statement = "SELECT barnabas.register(%s, %s::integer, %s::text, %s::integer)"
        return self._primary.value(int, statement, token, node_id, endpoints, lease_ms)

    def begin_objects(self, _session):
        return []


def test_payloads_of_the_release_before_are_packed(server):
    """Payloads written and partly deleted before the migration are packed after it."""
    server.execute("CREATE DATABASE older")
    address = server.url.removesuffix("postgres") + "older"
    primary = Primary(address, patience_s=60)
    primary.start(lambda connection: migrate(connection, migrations()[:7]))
    with closing(OlderIndex(primary, None)) as index, psycopg.connect(address) as connection:
        connection.autocommit = True
        writer = Writer(index)
        bulk, small, alone = (writer.lead() for _ in range(3))
        for number in range(10):
            writer.flush({bulk: 9 * KIB, small: KIB}, Random(number))
        writer.flush({alone: KIB}, Random(0))
        writer.delete(bulk, 5)
        collect_all(index)
        migrate(connection, migrations())
        assert connection.execute(MISCOUNTED).fetchall() == []
        assert index.space(0) == (5 * 9 * KIB,) * 2
        assert index.pack_extents(MANY, MIB, 0) == PackedExtents(5, 5 * KIB)
        assert connection.execute(PAYLOADS).fetchall() == [((5 * 10 + 5 + 1) * KIB,)]
        assert index.extents(small, 0, most=MANY) == writer.extents[small]


def damage_page_of_payloads(server, page):
    """Overwrite a page of the bytes of payloads: eight thousand bytes of the first one."""
    relation = "SELECT reltoastrelid FROM pg_class WHERE oid = 'barnabas.objects'::regclass"
    ((path,),) = server.execute(f"SELECT pg_relation_filepath(({relation}))")
    server.execute("CHECKPOINT")
    server.stop()
    with (server.data / path).open("r+b") as file:
        file.seek(page * 8 * KIB)
        file.write(b"\xff" * 8 * KIB)
    server.start()


@pytest.mark.parametrize(
    ("page", "first"),
    [pytest.param(5, 0, id="a deleted extent"), pytest.param(8, 1, id="a living extent")],
)
def test_unreadable_payload_keeps_no_other_from_being_packed(server, index, page, first):
    writer = Writer(index)
    bulk, *others = (writer.lead() for _ in range(3))
    for number in range(6):
        writer.flush({bulk: 64 * KIB} | dict.fromkeys(others, 10 * KIB), Random(number))
    damage_page_of_payloads(server, page)
    writer.delete(bulk, 6)
    collect_all(index)
    assert index.pack_extents(MANY, MIB, 0) == PackedExtents(10, 100 * KIB)
    assert index.space(0) == (64 * KIB,) * 2
    assert index.pack_extents(MANY, MIB, 0) == PackedExtents(0, 0)
    for each in others:
        assert index.extents(each, first, most=MANY) == writer.extents[each][first:]
