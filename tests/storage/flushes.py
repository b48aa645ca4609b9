"""A cluster's flushes without PostgreSQL: what is durable, who leads, and a runner that asks it.

``Flushes`` commits a flush as PostgreSQL has to, in memory: all or nothing, in order, once.
``ScriptedRunner`` stands between a store and it; it takes a step only when a test says so.
"""

from collections import deque
from dataclasses import dataclass, field

from barnabas.protocol.records import iterate_batches
from barnabas.storage.journal import StoredBatches
from barnabas.storage.journal_format import ENTRY, KIND_BATCHES, KIND_LOG_START
from barnabas.storage.loading import DurableLog


@dataclass
class Row:
    """One partition: who leads it, and all that is durable of it."""

    session: int
    epoch: int
    batches: list[tuple[int, int, bytes]] = field(default_factory=list)
    """(base offset, next offset, bytes) of each."""
    log_start_offset: int = 0

    @property
    def end_offset(self):
        return self.batches[-1][1] if self.batches else 0

    def durable(self):
        batches = [memoryview(bytearray(data)) for _, _, data in self.batches]
        return DurableLog(batches, self.log_start_offset)


class Bug(AssertionError):
    """A flush that no order of events excuses: PostgreSQL raises."""


class Flushes:
    """The rows of all partitions, the counter of each session, and which of them live."""

    def __init__(self):
        self.rows = {}
        self.counters = {}
        self.live = set()

    def register(self):
        session = 1 + len(self.counters)
        self.counters[session] = 0
        self.live.add(session)
        return session

    def fence(self, session):
        """Nothing that this session flushes from now on is committed."""
        self.live.discard(session)

    def assign(self, partition_id, session):
        """Have a partition led by a session from now on, in a new epoch."""
        row = self.rows.setdefault(partition_id, Row(session, -1))
        row.session = session
        row.epoch += 1

    def commit_flush(self, session, flush, groups):
        """Returns True: committed; partition ids: refused because of them; None: fenced."""
        counter = self.counters[session]
        if counter > flush:
            return True
        if session not in self.live:
            return None
        if counter != flush:
            raise Bug(f"flush {flush} comes instead of {counter}")
        items = [item for group in groups for item in _items(group)]
        moved = {
            partition_id
            for _, epoch, partition_id, *_ in items
            if (self.rows[partition_id].session, self.rows[partition_id].epoch) != (session, epoch)
        }
        if moved:
            return moved
        self.counters[session] = flush + 1
        for kind, _, partition_id, base_offset, next_offset, body in items:
            row = self.rows[partition_id]
            if kind == KIND_LOG_START:
                row.log_start_offset = max(row.log_start_offset, base_offset)
                continue
            assert kind == KIND_BATCHES
            if base_offset != row.end_offset:
                raise Bug(f"{partition_id} ends at {row.end_offset}, not at {base_offset}")
            for position, header in iterate_batches(body):
                data = bytes(body[position : position + header.size])
                row.batches.append((header.base_offset, header.next_offset, data))
            assert row.end_offset == next_offset
        return True


def _items(group):
    """(kind, epoch, partition id, base, next, body) of each entry of a group."""
    bodies = memoryview(b"".join(group.chunks))
    position = 0
    for kind, epoch, partition_id, base, following, size, _ in ENTRY.iter_unpack(group.table):
        yield kind, epoch, partition_id, base, following, bodies[position : position + size]
        position += size
    assert position == len(bodies) == group.body_bytes


class ScriptedRunner:
    """Flushes what the store submits, as much and as often as it is told."""

    def __init__(self, flushes, listener):
        self.flushes = flushes
        self.listener = listener
        self.session = flushes.register()
        self.flush = 0
        self._run = -1
        """What is of this run or an earlier one was refused."""
        self._waiting = deque()
        self._attempt = []
        """What the flush under way consists of: it is called again until an answer is heard."""
        self._unwritten = deque()

    # What the store asks of a runner

    def submit(self, group):
        self._waiting.append(group)

    def commit_here(self, group, meanwhile):
        del group, meanwhile
        return False

    def stop(self):
        self.write()

    # What a test does

    @property
    def busy(self):
        return bool(self._waiting or self._attempt or self._unwritten)

    def call(self, most=1000):
        """Flush up to ``most`` groups, or those under way; the answer may be lost on its way."""
        while not self._attempt and self._waiting:
            taken = [self._waiting.popleft() for _ in range(min(most, len(self._waiting)))]
            self._attempt = [group for group in taken if group.run > self._run]
        if not self._attempt:
            return True
        return self.flushes.commit_flush(self.session, self.flush, self._attempt)

    def commit(self, most=1000):
        """The same, and tell what came of it."""
        answer = self.call(most)
        if not self._attempt:
            return
        groups, self._attempt = self._attempt, []
        if answer is True:
            self.flush += 1
            self._unwritten.extend(groups)
            self.listener.durable(len(groups))
            return
        self._run = groups[0].run
        if answer is None:
            self.listener.lost()
            self.session, self.flush = self.flushes.register(), 0
        else:
            self.listener.refused(len(groups), answer)

    def write(self, most=1000):
        """Write to the segments what is durable, as the segment thread does."""
        count = min(most, len(self._unwritten))
        for _ in range(count):
            for operation in self._unwritten.popleft().operations:
                if isinstance(operation, StoredBatches):
                    chunk = memoryview(operation.chunk)[operation.start : operation.end]
                    operation.segment.write([chunk], operation.position)
                else:
                    operation()
        if count:
            self.listener.written(count)


class ScriptedTurns:
    """An engine whose loop and whose threads' reports move when a test says so."""

    def __init__(self):
        self._scheduled = []
        self._reports = deque()

    def schedule(self, callback):
        self._scheduled.append(callback)

    def call(self, callback):
        self._reports.append(callback)

    def run_aside(self, work):
        raise AssertionError(f"{work}: there are no checkpoints")

    def start_committer(self, committer, listener):
        raise AssertionError(f"{committer}: there is no journal in files for {listener}")

    @property
    def busy(self):
        return bool(self._scheduled or self._reports)

    def hear(self, most=1000):
        """What threads reported comes to the loop."""
        for _ in range(min(most, len(self._reports))):
            self._reports.popleft()()

    def turns(self):
        """Turns of the loop that bring nothing, until nothing is left to do in them."""
        while self._scheduled:
            self.turn()

    def turn(self):
        """The end of a turn of the loop."""
        scheduled, self._scheduled = self._scheduled, []
        for callback in scheduled:
            callback()
