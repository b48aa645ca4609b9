"""Sessions that flush at random, and the rules that the database must keep under all faults.

A ``Writer`` is a broker reduced to its flushes: it leads partitions, takes others from their
leaders, and records its attempts and their results. ``violations`` compares the records with the
final state of the primary.
"""

from __future__ import annotations

import itertools
import threading
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from random import Random
from uuid import UUID

from barnabas.storage.errors import IndexClosed
from barnabas.storage.objects.blob_store import UploadKey
from barnabas.storage.postgresql.postgresql_blob_store import PostgreSqlBlobStore
from barnabas.storage.replicated.blob_garbage import delete_dead_objects
from barnabas.storage.replicated.log_index import Flush, IndexMisused, Item, Lane, LogStart, Outcome
from tests.postgresql.whole_index import WholeIndex

LEASE_MS = 600_000
TAKES_PARTITION = 0.1
RAISES_START = 0.1
RECORDS_MOST = 4
UPLOADS = 0.4
"""Share of the flushes whose bytes are put before them."""
DELETES = 0.1
"""Share of those after whose put unused objects are deleted."""


@dataclass
class Attempt:
    """A flush, and its answer once there was one."""

    session: int
    flush: Flush
    payload: bytes
    """Bytes of the flush, in it or put before it."""
    outcome: Outcome | None = None

    def parts(self):
        """(partition id, base, next, epoch, bytes) of each item."""
        for item in self.flush.items:
            data = self.payload[item.position : item.position + item.length]
            yield item.partition_id, item.base_offset, item.next_offset, item.leader_epoch, data


@dataclass
class History:
    """The attempts and results of all writers."""

    attempts: list[Attempt] = field(default_factory=list)
    bugs: list[str] = field(default_factory=list)
    """Errors that no order of events excuses."""
    packed: int = 0
    """Number of extents that were packed."""

    def acknowledged(self):
        return [each for each in self.attempts if each.outcome is Outcome.COMMITTED]


class Writer:
    """One broker; it calls its index on one thread."""

    def __init__(
        self, address, node_id, seed, history, *, index=WholeIndex, patience_s=0.5, uploads=UPLOADS
    ):
        self.index = index.open(address, patience_s=patience_s)
        self._node_id = node_id
        self._random = Random(seed)
        self._history = history
        self._blobs = PostgreSqlBlobStore(self.index._primary, None)
        self._puts = 0
        self._uploads = uploads
        self._tokens = (f"{node_id}.{count}".encode() for count in itertools.count())
        self.register()

    def register(self):
        token = UUID(int=self._random.getrandbits(128))
        self.session = self.index.register(token, self._node_id, "", LEASE_MS)
        self._number = 0
        self.led = {}
        """(epoch, end offset) by partition id."""

    def take(self, partition_id):
        """Lead a partition, regardless of its leader."""
        state = self.index.partition(partition_id)
        if self.index.assign_one(partition_id, self.session, state.leader_epoch):
            self.load(partition_id, state.leader_epoch + 1)

    def load(self, partition_id, epoch):
        """Take over where the log ends, if it is led by this session in this epoch still."""
        state = self.index.partition(partition_id)
        if state[:2] == (self.session, epoch):
            self.led[partition_id] = (epoch, state.log_end_offset)
        else:
            self.led.pop(partition_id, None)

    def flush(self, partition_ids, starts=()):
        """Flush a few records of each of these partitions; return the outcome."""
        items, payload = [], b""
        for partition_id in partition_ids:
            epoch, end = self.led[partition_id]
            count, data = self._random.randint(1, RECORDS_MOST), next(self._tokens)
            items.append(Item(partition_id, epoch, end, end + count, len(payload), len(data)))
            payload += data
        new_starts = [LogStart(each, *self.led[each]) for each in starts]
        flush = Flush(Lane.INLINE, self._number, items, new_starts, payload if items else None)
        if items and self._random.random() < self._uploads:
            flush = replace(flush, payload=None, key=self._upload(payload))
        attempt = Attempt(self.session, flush, payload)
        self._history.attempts.append(attempt)
        try:
            answer = self.index.commit_flush(self.session, flush)
        except IndexMisused as error:
            self._history.bugs.append(str(error))
            raise
        attempt.outcome = answer.outcome
        if answer.outcome is Outcome.COMMITTED:
            self._number += 1
            for item in items:
                self.led[item.partition_id] = (item.leader_epoch, item.next_offset)
        elif answer.outcome is Outcome.REFUSED:
            for partition_id in answer.refused:
                del self.led[partition_id]
            for partition_id in {*partition_ids, *starts} & set(self.led):
                self.load(partition_id, self.led[partition_id][0])
        else:
            self.register()
        return answer.outcome

    def _upload(self, payload):
        """Put the bytes of the next flush, perhaps more than once; return the last key."""
        for _ in range(self._random.choice((1, 1, 2))):
            self._puts += 1
            key = UploadKey(self.session, Lane.INLINE, self._number, self._puts).text
            self._blobs.put(key, [payload])
        if self._random.random() < DELETES:
            delete_dead_objects(self.index, self._blobs)
        return key

    def run(self, partition_ids, stop: threading.Event):
        """Do one thing after the other until told to stop."""
        try:
            while not stop.is_set():
                self._step(partition_ids)
        except IndexClosed:
            if not stop.is_set():
                raise

    def _step(self, partition_ids):
        if not self.led or self._random.random() < TAKES_PARTITION:
            self.take(self._random.choice(partition_ids))
            return
        chosen = self._random.sample(sorted(self.led), self._random.randint(1, len(self.led)))
        raises = self._random.random() < RAISES_START
        self.flush(chosen[raises:], starts=chosen[:1] if raises else ())


class Packer:
    """A broker that packs only; it packs payloads of several extents, dead or not."""

    def __init__(self, address, history, *, patience_s=0.5):
        self.index = WholeIndex.open(address, patience_s=patience_s)
        self._history = history

    def run(self, stop: threading.Event):
        """Pack again and again until told to stop."""
        try:
            while not stop.wait(0.01):
                self._history.packed += self.index.pack_extents(5, 50, 0).extents
        except IndexClosed:
            if not stop.is_set():
                raise


ALL_ARE_SPARSE = """
CREATE FUNCTION barnabas.make_sparse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.dead_bytes := NEW.dead_bytes + 1;
    NEW.sparse_since := clock_timestamp();
    RETURN NEW;
END $$;
CREATE TRIGGER make_sparse BEFORE INSERT ON barnabas.objects
    FOR EACH ROW WHEN (NEW.live_extents > 1) EXECUTE FUNCTION barnabas.make_sparse();
"""
"""Every payload of several extents is to be packed at once, also a packed one."""


def violations(server, history):
    """Return the violated rules, in words."""
    # A flush without a result may still be running.
    server.wait_for(
        "SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'barnabas'"
        " AND state = 'active'"
    )
    logs = defaultdict(list)
    for partition_id, *extent in server.execute(
        "SELECT partition_id, base_offset, next_offset, leader_epoch,"
        " substring(payload FROM position + 1 FOR length)"
        " FROM barnabas.extents JOIN barnabas.objects USING (object_id) ORDER BY 1, 2"
    ):
        logs[partition_id].append(tuple(extent))
    ends = server.execute("SELECT partition_id, log_start, log_end FROM barnabas.partitions")
    found = [f"a bug: {bug}" for bug in history.bugs]
    found += [f"payload {each} is counted wrong" for (each,) in server.execute(_MISCOUNTED)]
    for partition_id, _, end in ends:
        found += _uneven(partition_id, end, logs[partition_id])
    there = {
        (partition_id, *extent) for partition_id, extents in logs.items() for extent in extents
    }
    for attempt in history.attempts:
        parts = set(attempt.parts())
        if attempt.outcome is Outcome.COMMITTED and not parts <= there:
            found.append(f"acknowledged and gone: {parts - there}")
        elif attempt.outcome in {Outcome.REFUSED, Outcome.FENCED} and parts & there:
            found.append(f"refused and there: {parts & there}")
        elif parts & there and not parts <= there:
            found.append(f"torn: {parts & there} without {parts - there}")
    copies = Counter(extent[-1] for extents in logs.values() for extent in extents)
    found += [f"{data!r} is there {count} times" for data, count in copies.items() if count > 1]
    return found + _too_low({partition_id: start for partition_id, start, _ in ends}, history)


_MISCOUNTED = """
SELECT object_id FROM barnabas.objects LEFT JOIN barnabas.extents USING (object_id)
GROUP BY object_id
HAVING live_extents <> count(partition_id) OR live_extents = 0 AND key IS NULL
"""
"""An object without extents is an upload that waits for its flush, and has a key."""


def _uneven(partition_id, end, extents):
    """Yield the gaps, overlaps, falling epochs and wrong ends of a log."""
    position, newest = 0, -1
    for base, following, epoch, _ in extents:
        if base != position:
            yield f"{partition_id}: {base} follows {position}"
        if epoch < newest:
            yield f"{partition_id}: epoch {epoch} follows {newest}"
        position, newest = following, epoch
    if position != end:
        yield f"{partition_id}: its end is {end}, its extents end at {position}"


def _too_low(log_starts, history):
    return [
        f"{start}: the log starts at {log_starts[start.partition_id]}"
        for attempt in history.acknowledged()
        for start in attempt.flush.starts
        if log_starts[start.partition_id] < start.offset
    ]
