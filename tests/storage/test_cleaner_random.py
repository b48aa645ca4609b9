"""Random writers, passes at random moments, slow readers: no reader misses anything.

A reader of committed records never sees a value that was aborted, and ends with the last committed
value of every key, however slowly it reads and regardless of removals meanwhile (K1, K3). Run one
seed again with ``BARNABAS_CLEANER_SEED=<seed>``.
"""

import os
from random import Random

import pytest

from barnabas.protocol.compression import NAMES
from barnabas.protocol.record_decoding import iterate_records
from barnabas.protocol.records import Record, encode_batch, iterate_batches
from barnabas.storage.log.memory_read import MemorySlice
from barnabas.storage.log.readable_log import READ_COMMITTED
from barnabas.storage.log.segment_read import read_waiting
from barnabas.storage.repair.check import verify
from tests.storage.cleaning import COMPACTED, compact
from tests.storage.stores import Host

SEEDS = (
    [int(os.environ["BARNABAS_CLEANER_SEED"])]
    if "BARNABAS_CLEANER_SEED" in os.environ
    else range(4)
)
STEPS = 400
KEYS = [
    b"a",
    b"b",
    b"c",
    b"d",
    b"a long key, longer than any digest",
    b"another long key, so it is",
]
SELDOM = [b"seldom %d" % number for number in range(16)]
"""Keys whose latest records are old at the end, so that passes have decided about them."""


class Reader:
    """A consumer of committed records that reads a little at a time, by the client's algorithm."""

    def __init__(self):
        self.position = 0
        self.state = {}
        self.values = []

    def read(self, log, max_bytes):
        """One fetch; False at the end."""
        plan = log.plan_read(self.position, max_bytes, READ_COMMITTED)
        if plan is None:
            return False
        if isinstance(plan, MemorySlice):
            chunks, upper = plan.chunks, plan.upper_offset
        else:
            loaded = plan.load(read_waiting)
            chunks, upper = [loaded.data], loaded.upper_offset
        aborted = sorted(
            (entry.first_offset, entry.producer_id)
            for entry in log.aborted_transactions(self.position, upper)
        )
        before, ongoing = self.position, set()
        for chunk in chunks:
            for at, header in iterate_batches(chunk):
                self.position = header.next_offset
                while aborted and aborted[0][0] <= header.last_offset:
                    ongoing.add(aborted.pop(0)[1])
                self._take(header, chunk[at : at + header.size], ongoing)
        assert self.position > before, f"a fetch at {before} does not advance (L5)"
        return True

    def _take(self, header, batch, ongoing):
        if header.is_control:
            if header.record_count and batch[69] == 0:
                ongoing.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in ongoing):
            for record in iterate_records(batch, limit_bytes=1 << 20):
                self.state[record.key] = record.value
                self.values.append(record.value)


class Writers:
    """Plain, idempotent and transactional producers, and what of theirs is committed."""

    def __init__(self, host, random):
        self.host, self.random = host, random
        self.latest = {}
        self.aborted_values = set()
        self.number = 0
        self.sequences = {}
        self.open = {}
        self.sent = {}

    def records(self):
        found = []
        for at in range(self.random.choice((1, 1, 2, 6))):
            self.number += 1
            key = self.random.choice(SELDOM if self.random.random() < 0.1 else KEYS)
            value = b"%d " % self.number * self.random.choice((1, 10, 30))
            is_tombstone = self.random.random() < 0.15
            timestamp = self.host.now_ms + self.random.randrange(50)
            found.append(Record(at, timestamp, key, None if is_tombstone else value, ()))
        return found

    def plain(self):
        self._append(self.records(), -1)

    def idempotent(self):
        self._append(self.records(), self.random.choice((100, 101)))

    def transactional(self):
        self._append(self.records(), self.random.choice((200, 201, 202)), transactional=True)

    def _append(self, records, producer_id, *, transactional=False):
        fields = {}
        if producer_id >= 0:
            sequence = self.sequences.get(producer_id, 0)
            self.sequences[producer_id] = sequence + len(records)
            fields = {
                "producer_id": producer_id,
                "producer_epoch": 0,
                "base_sequence": sequence,
                "transactional": transactional,
            }
        codec = self.random.randrange(len(NAMES))
        batch = encode_batch(records, compression=codec, **fields)
        (base,) = self.host.append(memoryview(bytearray(batch)))
        placed = [(base + record.offset, record) for record in records]
        if producer_id >= 0:
            self.sent[producer_id] = batch, base
        if transactional:
            self.open.setdefault(producer_id, []).extend(placed)
        else:
            self._commit(placed)

    def _commit(self, placed):
        for offset, record in placed:
            if offset > self.latest.get(record.key, (-1, None))[0]:
                self.latest[record.key] = offset, record.value

    def marker(self):
        if not self.open:
            return
        producer_id = self.random.choice(sorted(self.open))
        placed = self.open.pop(producer_id)
        is_commit = self.random.random() < 0.6
        self.host.marker(producer_id, commit=is_commit)
        if is_commit:
            self._commit(placed)
        else:
            self.aborted_values |= {record.value for _, record in placed if record.value}


@pytest.mark.parametrize("seed", SEEDS)
def test_readers_see_no_difference_after_random_compaction(seed):
    random = Random(seed)
    host = Host(COMPACTED)
    host.boot()
    writers = Writers(host, random)
    readers = [Reader() for _ in range(4)]
    groups = 0
    for _ in range(STEPS):
        host.now_ms += random.choice((0, 1, 20, 300))
        action = random.choices(
            ("plain", "idempotent", "transactional", "marker", "compact", "read", "other"),
            (6, 6, 8, 6, 4, 12, 2),
        )[0]
        if action == "compact":
            groups += compact(host.log, host.now_ms, map_bytes=random.choice((600, 1 << 20)))
        elif action == "read":
            random.choice(readers).read(host.log, random.choice((1, 300, 3000)))
        elif action == "other":
            if random.random() < 0.3:
                host.kill()
                host.boot()
            host.checkpoint()
            assert verify(host.log) == [], f"BARNABAS_CLEANER_SEED={seed}"
        else:
            getattr(writers, action)()
    while writers.open:
        writers.marker()
    assert groups > 10, "the workload became too small to mean anything"
    for producer_id, (batch, base) in writers.sent.items():
        # The last sequence survived: a retry is known, and what comes next is in order (K4).
        assert host.append(memoryview(bytearray(batch))) == [base], producer_id
    fresh = Reader()
    for reader in (*readers, fresh):
        while reader.read(host.log, random.choice((1, 300, 3000))):
            pass
        assert not writers.aborted_values & set(reader.values), f"BARNABAS_CLEANER_SEED={seed}"
        for key, (_, value) in writers.latest.items():
            # A reader that takes longer than delete.retention.ms may miss tombstones only.
            if value is not None or reader is fresh:
                assert reader.state.get(key) == value, f"BARNABAS_CLEANER_SEED={seed}"
    assert host.failures == []
