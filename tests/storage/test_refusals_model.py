"""Flushes that are committed, refused, lost or late, in any order that may happen.

After every step the derived state of every open log is that of a rebuild from the durable and the
placed batches (D4). A forgotten log refuses appends and reads. Each waiter is notified once,
correctly. No reader sees a high watermark or a last stable offset go back.
"""

from collections import deque
from dataclasses import dataclass

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from barnabas.broker.testing.disk.simulated import SimulatedFileSystem
from barnabas.protocol.record_decoding import read_marker
from barnabas.protocol.records import CONTROL_BIT, TRANSACTIONAL_BIT, placed, read_header
from barnabas.storage.errors import LogClosed
from barnabas.storage.journal.journal import CommitGroup
from barnabas.storage.log.append_run import append_run
from barnabas.storage.log.config import LogConfig
from barnabas.storage.log.leader_epochs import epochs_from
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log.transaction_marker import TransactionMarker
from barnabas.storage.repair.check import verify
from barnabas.storage.replicated.loading import DurableLog
from barnabas.storage.replicated.log_reading import read_log
from barnabas.storage.store.log_store import LogStore
from barnabas.storage.store.store_parts import PartitionSpec, StoreCallbacks
from tests.crash.scripted_engine import ScriptedEngine
from tests.storage.flushes import FlushEngine, Stranger, assign, durable_batches
from tests.storage.stores import NOW_MS, ROOT, batch, from_producer, read_all

PARTITIONS = (1, 2, 3)
CONFIG = LogConfig(segment_bytes=600, index_interval_bytes=150)
partitions = st.sampled_from(PARTITIONS)
few = st.integers(1, 3)
kinds = st.sampled_from(
    (
        "append",
        "append_idempotent",
        "append_transactional",
        "append_run",
        "append_again",
        "commit",
        "abort",
        "delete_records",
        "delete_records",
        "delete_records",
    )
)
settled = [(step, 1000) for step in ("turn", "flush", "hear", "write")]
threads = st.sampled_from(
    ("turn", "turn", "flush", "flush", "hear", "hear", "flush_unheard", "write")
)


def spec_of(partition_id, epoch):
    topic_id = bytes([partition_id] * 16)
    return PartitionSpec(partition_id, f"t{partition_id}", 0, topic_id, CONFIG, epoch)


def new_store(engine, **more):
    disk = SimulatedFileSystem()
    disk.make_directory(ROOT)
    return LogStore(disk, ROOT, engine=engine, now_ms=lambda: NOW_MS, **more)


class Answer:
    """A client that waits for a batch, which is what it was sent with: no two are alike."""

    def __init__(self, history, log, base_offset, data):
        self.history = history
        self.log = log
        self.base_offset = base_offset
        self.data = data
        self.told = []

    @property
    def is_durable(self):
        return self.data in durable_batches(self.history.index, self.log.partition_id)

    def prepare(self):
        self.told.append("success")
        assert self.is_durable

    def refused(self, refusal):
        refused = refusal.takes_back(self.log.topic, 0, self.base_offset)
        assert refused == refusal.takes_back(self.log.topic_id, 0, self.base_offset)
        self.told.append("refused" if refused else "success")
        assert self.is_durable != refused


class Waiter:
    """A waiter for a commit group that records the durable end of its log."""

    def __init__(self, known, next_offset):
        self.known = known
        self.next_offset = next_offset
        self.told = []

    def durable(self):
        self.told.append(True)
        self.known.durable_end = max(self.known.durable_end, self.next_offset)

    def refused(self, _refusal):
        self.told.append(False)
        log = self.known.log
        assert log.closed or log.high_watermark >= self.next_offset, "another log was refused"


class StartWaiter(Waiter):
    """A waiter for a log start."""

    def durable(self):
        self.told.append(True)
        self.known.start = max(self.known.start, self.next_offset)


@dataclass(eq=False)
class Known:
    """An open log, and what a test knows of it without asking it."""

    log: PartitionLog
    batches: list[bytes]
    durable_end: int
    start: int
    placed_start: int = 0
    loading: CommitGroup | None = None
    """The group that writes its files; until that is done a refusal forgets the log."""
    rebuilt: tuple | None = None

    @property
    def end(self):
        return read_header(memoryview(self.batches[-1])).next_offset if self.batches else 0

    @property
    def is_ahead(self):
        is_loading = self.loading is not None and not self.loading.durable
        return is_loading or self.end > self.durable_end or self.placed_start > self.start

    def place(self, sent, base_offset):
        header = read_header(memoryview(sent))
        data = bytes(placed(bytes(sent), header, base_offset, self.log.leader_epoch))
        self.batches.append(data)
        return data

    def stable_end(self):
        """Return the last stable offset, by the definition (L3)."""
        unstable = []
        began = {}
        for data in self.batches:
            header = read_header(memoryview(data))
            if header.attributes & CONTROL_BIT:
                assert read_marker(memoryview(data)) is not None
                first = began.pop(header.producer_id, None)
                if first is not None and header.base_offset >= self.durable_end:
                    unstable.append(first)
            elif header.attributes & TRANSACTIONAL_BIT:
                began.setdefault(header.producer_id, header.base_offset)
        return max(self.start, min([self.durable_end, *unstable, *began.values()]))


def derived(log):
    """All that is worked out from the batches, append times apart.

    Epochs of records that were deleted are forgotten when a log is loaded, not before.
    """
    return (
        {
            entry.producer_id: (
                entry.epoch,
                tuple(entry.batches),
                entry.coordinator_epoch,
                entry.transaction_first_offset,
            )
            for entry in log.producers.entries()
        },
        [entry.producer_id for entry in log.producers.open_transactions()],
        log.next_offset,
        log.log_start_offset,
        epochs_from(log.leader_epochs, log.log_start_offset),
        log.aborted_transactions(log.segments[0].base_offset, log.next_offset),
        [(segment.base_offset, segment.size_bytes) for segment in log.segments],
    )


class Refusals(RuleBasedStateMachine):
    """One store, its runner, and other sessions that take partitions away."""

    def __init__(self):
        super().__init__()
        self.engine = FlushEngine()
        self.index = self.engine.index
        self.rows = self.index.rows
        self.stranger = Stranger(self.index)
        self.store = new_store(
            self.engine,
            callbacks=StoreCallbacks(on_fatal=self._fatal, on_forgotten=self._forgotten),
        )
        self.told_of = deque()
        self.engine.start(self.store, listener=self)
        self.open = {}
        self.closed = []
        self.answers = []
        self.waiters = []
        self.seen = dict.fromkeys(PARTITIONS, (0, 0))
        self.numbers = iter(range(1_000_000))
        for partition_id in PARTITIONS:
            assign(self.index, partition_id, self.engine.session)
            self.gain(partition_id)

    def _fatal(self, error):
        raise error

    # The runner's events reach the store through these methods.

    def durable(self, groups):
        self.store.durable(groups)

    def written(self, groups):
        self.store.written(groups)

    def refused(self, groups, partition_ids):
        self.told_of.append("refused")
        self.store.refused(groups, partition_ids)

    def lost(self):
        self.told_of.append("lost")
        self.store.lost()

    def _forgotten(self, logs, moved):
        assert all(waiter.told for waiter in self.waiters), "they are told first"
        ahead = {each.log for each in self.open.values() if each.is_ahead}
        ids = {log.partition_id for log in logs}
        if self.told_of.popleft() == "lost":
            assert ids == moved == set(self.open)
        else:
            assert set(logs) == ahead
            assert moved <= ids
            assert all(self.rows[each].leader_session != self.engine.session for each in moved)
        for each in ids:
            known = self.open.pop(each)
            self.closed.append((known.log, known.durable_end))
            assert each not in self.store.logs

    # ------------------------------------------------------------------------------------ clients

    def fresh(self):
        return b"value %d" % next(self.numbers)

    def placed(self, known, sent, appended):
        data = known.place(sent, appended.base_offset)
        self.wait(known, data, appended.base_offset, appended.group)

    def wait(self, known, data, base_offset, group):
        answer = Answer(self, known.log, base_offset, data)
        self.answers.append(answer)
        if group is None:
            answer.prepare()
            return
        group.add_answer(answer)
        waiter = Waiter(known, known.end)
        self.waiters.append(waiter)
        group.add_waiter(waiter)

    def next_of(self, known, producer_id):
        entry = known.log.producers.entry(producer_id)
        if entry is None:
            return 0, 0
        return entry.epoch, entry.batches[-1].last_sequence + 1 if entry.batches else 0

    @rule(
        requests=st.lists(st.tuples(partitions, kinds, st.integers(0, 3)), min_size=1, max_size=5)
    )
    def serve(self, requests):
        """Run requests of clients and coordinators; open a forgotten log again."""
        for partition_id, kind, number in requests:
            if partition_id not in self.open and not self.load(partition_id):
                continue
            getattr(self, kind)(self.open[partition_id], number)

    def append(self, known, number):
        sent = batch(number + 1, value=self.fresh())
        self.placed(known, sent, known.log.append(sent))

    def append_idempotent(self, known, number):
        producer_id = 2 + number % 2 * 2
        epoch, sequence = self.next_of(known, producer_id)
        sent = from_producer(producer_id, sequence, number + 1, epoch=epoch, value=self.fresh())
        self.placed(known, sent, known.log.append(sent))

    def append_transactional(self, known, number):
        producer_id = 1 + number % 2 * 2
        epoch, sequence = self.next_of(known, producer_id)
        sent = from_producer(
            producer_id, sequence, number + 1, epoch=epoch, transactional=True, value=self.fresh()
        )
        self.placed(known, sent, known.log.append(sent))

    def append_run(self, known, number):
        producer_id = 2 + number % 2 * 2
        epoch, sequence = self.next_of(known, producer_id)
        sent = [
            bytes(from_producer(producer_id, sequence + at, epoch=epoch, value=self.fresh()))
            for at in range(number + 1)
        ]
        offsets, group = append_run(known.log, sent)
        for base_offset, each in zip(offsets, sent, strict=False):
            self.wait(known, known.place(each, base_offset), base_offset, group)

    def append_again(self, known, number):
        """A client that has heard nothing, or whose answer was lost, sends its batch again."""
        repeatable = [
            cached
            for each in known.log.producers.entries()
            for cached in each.batches
            if each.producer_id % 2 == 0
        ]
        if not repeatable:
            return
        cached = repeatable[-1 - number % len(repeatable)]
        (stored,) = [
            each
            for each in known.batches
            if read_header(memoryview(each)).last_offset == cached.last_offset
        ]
        appended = known.log.append(memoryview(bytearray(stored)))
        assert appended.base_offset == read_header(memoryview(stored)).base_offset
        self.wait(known, stored, appended.base_offset, appended.group)

    def commit(self, known, number):
        self.end_transaction(known, number, commit=True)

    def abort(self, known, number):
        self.end_transaction(known, number, commit=False)

    def end_transaction(self, known, number, *, commit):
        """By the classic protocol, or by KIP-890's with the next epoch."""
        producer_id, bump = 1 + number % 2 * 2, number // 2
        epoch, _ = self.next_of(known, producer_id)
        marker = TransactionMarker(
            producer_id,
            epoch + bump,
            coordinator_epoch=1,
            commit=commit,
            transaction_version=2 * bump,
        )
        self.placed(known, marker.batch(NOW_MS), known.log.append_marker(marker))

    def delete_records(self, known, number):
        target = known.durable_end * (number + 1) // 4
        group = known.log.delete_records(target)
        if group is None:
            assert target <= known.start
            return
        known.placed_start = max(known.placed_start, target)
        waiter = StartWaiter(known, target)
        self.waiters.append(waiter)
        group.add_waiter(waiter)

    # ------------------------------------------------------------------- the loop and the threads

    @rule(steps=st.just(settled) | st.lists(st.tuples(threads, few), min_size=1, max_size=6))
    def run(self, steps):
        for step, most in steps:
            getattr(self, step)(most)

    def turn(self, _most):
        self.engine.end_turn()

    def hear(self, most):
        self.engine.hear(most)

    def flush(self, most):
        self.engine.commit(most)

    def flush_unheard(self, most):
        """Commit without a response; a later repetition of the call must count once."""
        self.engine.commit_unheard(most)

    def write(self, _most):
        self.engine.write()

    # --------------------------------------------------------------------------- who leads what

    @rule(partition_id=partitions, transactional=st.booleans(), count=st.integers(0, 2))
    def move(self, partition_id, transactional, count):
        """Another session leads a partition, and may append to it at once."""
        epoch = assign(self.index, partition_id, self.stranger.session)
        for _ in range(count):
            value = self.fresh()
            sent = (
                from_producer(next(self.numbers) + 100, 0, transactional=True, value=value)
                if transactional
                else batch(value=value)
            )
            base_offset = self.rows[partition_id].log_end_offset
            data = bytes(placed(bytes(sent), read_header(sent), base_offset, epoch))
            self.stranger.append(partition_id, data)

    @rule(rarely=st.integers(0, 3))
    def fence(self, rarely):
        if not rarely:
            self.index.fence(self.engine.session)

    def load(self, partition_id):
        """Open a log again: at its epoch if it is still led here, else at the next one.

        False: it cannot be led here, for the session has ended, which is known by that.
        """
        if self.rows[partition_id].leader_session != self.engine.session:
            epoch = assign(self.index, partition_id, self.engine.session)
            if epoch is None:
                self.engine.end_session(self.store)
                return False
        self.gain(partition_id)
        return True

    def gain(self, partition_id):
        row = self.rows[partition_id]
        durable = read_log(self.index, partition_id)
        log = self.store.load(spec_of(partition_id, row.leader_epoch), durable)
        assert log.leader_epoch == row.leader_epoch
        group = self.store.journal.group_for(0)
        self.open[partition_id] = Known(
            log,
            durable_batches(self.index, partition_id),
            row.log_end_offset,
            row.log_start_offset,
            loading=group if log in group.ends else None,
        )

    # ------------------------------------------------------------------------------- what must hold

    @invariant()
    def nobody_is_told_twice(self):
        assert all(len(each.told) <= 1 for each in (*self.answers, *self.waiters))

    @invariant()
    def open_logs_are_what_a_rebuild_gives(self):
        for known in self.open.values():
            log = known.log
            key = len(known.batches), known.start
            if known.rebuilt is None or known.rebuilt[0] != key:
                known.rebuilt = key, self.rebuild(known)
            assert derived(log) == known.rebuilt[1]
            assert log.high_watermark == known.durable_end
            assert log.last_stable_offset == known.stable_end()

    def rebuild(self, known):
        batches = [memoryview(bytearray(data)) for data in known.batches]
        spec = spec_of(known.log.partition_id, known.log.leader_epoch)
        return derived(new_store(ScriptedEngine()).load(spec, DurableLog(batches, known.start)))

    @invariant()
    def readers_see_what_is_durable(self):
        for partition_id, known in self.open.items():
            seen = [data for _, data in read_all(known.log)]
            durable = durable_batches(self.index, partition_id)
            assert seen == [
                data
                for data in known.batches
                if known.start < read_header(memoryview(data)).next_offset <= known.durable_end
            ]
            assert set(seen) <= set(durable)

    @invariant()
    def nothing_goes_back(self):
        for partition_id, known in self.open.items():
            log = known.log
            now = log.high_watermark, log.last_stable_offset
            before = self.seen[partition_id]
            assert now[0] >= before[0]
            assert now[1] >= before[1]
            self.seen[partition_id] = now

    @invariant()
    def a_forgotten_log_takes_and_gives_nothing(self):
        sent = batch()
        marker = TransactionMarker(1, 9, coordinator_epoch=9, commit=True)
        for log, durable_end in self.closed:
            for refused in (
                lambda log=log: log.append(sent),
                lambda log=log: log.append_records(sent),
                lambda log=log: log.append_marker(marker),
                lambda log=log: log.delete_records(-1),
                lambda log=log: log.plan_read(0, 1000),
                lambda log=log, end=durable_end: log.plan_read(end, 1000),
                lambda log=log: log.end_offset_for_epoch(log.leader_epoch),
            ):
                with pytest.raises(LogClosed):
                    refused()
            assert append_run(log, [bytes(sent)]) == ([], None)
            assert log.high_watermark == durable_end

    def settle(self):
        while self.engine.busy:
            self.run(settled)

    def teardown(self):
        """End all work, and check that each waiter was notified once, correctly."""
        self.settle()
        assert self.store.journal.backlog_bytes == 0
        for each in (*self.answers, *self.waiters):
            assert len(each.told) == 1
        for answer in self.answers:
            assert answer.told == ["success" if answer.is_durable else "refused"]
        for known in self.open.values():
            assert not known.log.unflushed
            assert verify(known.log) == []
        for partition_id in PARTITIONS:
            while partition_id not in self.open and not self.load(partition_id):
                self.settle()
        self.open_logs_are_what_a_rebuild_gives()
        self.readers_see_what_is_durable()
        self.nothing_goes_back()


TestRefusals = Refusals.TestCase
TestRefusals.settings = settings(
    stateful_step_count=50, max_examples=max(150, settings().max_examples)
)
