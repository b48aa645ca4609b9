"""The producer state under random histories, against a model that rereads its whole log each time.

The model keeps a plain list of what was appended and derives every answer from it by search; it
shares no code and no idea with the implementation, which keeps windows and indexes.
"""

from typing import NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from barnabas.protocol.records import BatchHeader
from barnabas.storage.log.producer_snapshot import decode_snapshot, encode_snapshot
from barnabas.storage.log.producers import ProducerState
from tests.storage.test_producers import fields

WRAP = 2**31
PRODUCERS = st.integers(0, 2)
EPOCHS = st.integers(0, 3)
EXPIRATION_MS = 1000


class Appended(NamedTuple):
    """One batch or marker in the model's log; ``first`` is -1 and ``count`` 1 for a marker."""

    offset: int
    producer: int
    epoch: int
    first: int
    count: int
    transactional: bool
    commit: bool | None
    coordinator: int
    time_ms: int


class Model:
    """The expected results of a partition, derived only from the list of appends."""

    def __init__(self):
        self.log: list[Appended] = []
        self.forgotten: dict[int, int] = {}

    def history(self, producer):
        start = self.forgotten.get(producer, 0)
        return [entry for entry in self.log[start:] if entry.producer == producer]

    def epoch(self, producer):
        return max((entry.epoch for entry in self.history(producer)), default=None)

    def data(self, producer):
        """Batches of the present epoch."""
        epoch = self.epoch(producer)
        return [e for e in self.history(producer) if e.epoch == epoch and e.commit is None]

    def transactions(self, producer):
        """[first offset, marker's offset or None], oldest first, of forgotten producers too."""
        found = []
        for entry in (entry for entry in self.log if entry.producer == producer):
            if entry.commit is not None:
                if found and found[-1][1] is None:
                    found[-1][1] = entry.offset
            elif entry.transactional and (not found or found[-1][1] is not None):
                found.append([entry.offset, None])
        return found

    def is_open(self, producer):
        transactions = self.transactions(producer)
        return bool(transactions) and transactions[-1][1] is None

    def judge(self, producer, epoch, first, count, transactional, version):
        """(error, original offset or None) by the accept/reject table."""
        known, data = self.epoch(producer), self.data(producer)
        if known is not None and epoch == known:
            for entry in data[-5:]:
                if (entry.first, entry.count) == (first, count):
                    return 0, entry.offset
        if known is not None and epoch < known:
            return 47, None
        if version == 2 and not data and first != 0:
            return 45, None
        if known is None:
            return 0, None
        begins = epoch > known or not data
        if first != (0 if begins else (data[-1].first + data[-1].count) % WRAP):
            return 45, None
        if self.is_open(producer) and not transactional:
            return 48, None
        return 0, None

    def judge_marker(self, producer, epoch, coordinator, version):
        known = self.epoch(producer)
        if known is None:
            return 0
        allowed = epoch >= known
        if version == 2 and epoch == known and self.is_open(producer):
            allowed = False
        if not allowed:
            return 47
        markers = [e for e in self.history(producer) if e.commit is not None]
        return 52 if markers and coordinator < markers[-1].coordinator else 0

    def last_stable_offset(self, high_watermark):
        unstable = [
            first
            for producer in range(3)
            for first, end in self.transactions(producer)
            if end is None or end >= high_watermark
        ]
        return min([*unstable, high_watermark])


class ProducerHistory(RuleBasedStateMachine):
    """Appends of all kinds, restarts, expiry, in any order."""

    def __init__(self):
        super().__init__()
        self.state = ProducerState()
        self.model = Model()
        self.end_offset = 0
        self.high_watermark = 0
        self.now_ms = 0
        self.refused = None

    def header(self, producer, epoch, first, count, transactional):
        return BatchHeader(
            self.end_offset, 100, 0, 2, 0, 0x10 if transactional else 0, count - 1,
            self.end_offset, self.end_offset * 2, producer, epoch, first, count,
        )  # fmt: skip

    def place(self, entry, size):
        self.model.log.append(entry)
        self.end_offset += size

    def try_batch(self, producer, epoch, first, count, transactional, version):
        header = self.header(producer, epoch, first, count, transactional)
        before = encode_snapshot(self.state)
        error, original = self.model.judge(producer, epoch, first, count, transactional, version)
        decision = self.state.check(header, transaction_version=version)
        found = None if decision.duplicate is None else decision.duplicate.base_offset
        assert (decision.error, found) == (error, original)
        assert decision.error in (0, 45, 47, 48)  # S11
        if error or original is not None:
            assert encode_snapshot(self.state) == before  # S5
            return error
        self.state.update(header, self.now_ms)
        self.place(
            Appended(self.end_offset, producer, epoch, first, count, transactional, None, 0,
                     self.now_ms),
            count,
        )  # fmt: skip
        return 0

    @rule(
        producer=PRODUCERS,
        epoch=EPOCHS,
        first=st.sampled_from([0, 1, 3, WRAP - 4, WRAP - 2, WRAP - 1]),
        count=st.integers(1, 4),
        transactional=st.booleans(),
        version=st.sampled_from([0, 2]),
    )
    def any_batch(self, producer, epoch, first, count, transactional, version):
        self.try_batch(producer, epoch, first, count, transactional, version)

    @rule(producer=PRODUCERS, count=st.integers(1, 4), gap=st.sampled_from([0, 0, 0, 1, -1]),
          version=st.sampled_from([0, 2]), stray=st.sampled_from([False, False, True]))  # fmt: skip
    def next_batch(self, producer, count, gap, version, stray):
        data = self.model.data(producer)
        epoch = self.model.epoch(producer) or 0
        first = (data[-1].first + data[-1].count + gap) % WRAP if data else 0
        transactional = self.model.is_open(producer) != stray
        self.try_batch(producer, epoch, first, count, transactional, version)

    @rule(producer=PRODUCERS, back=st.integers(1, 7))
    def retry(self, producer, back):
        data = self.model.data(producer)
        if len(data) >= back:
            entry = data[-back]
            self.try_batch(producer, entry.epoch, entry.first, entry.count, entry.transactional, 0)

    @rule(producer=PRODUCERS, count=st.integers(1, 3))
    def gap_then_the_missing_batch(self, producer, count):
        """S6."""
        data = self.model.data(producer)
        if not data:
            return
        missing = (data[-1].first + data[-1].count) % WRAP
        late = (missing + count) % WRAP
        epoch, transactional = data[-1].epoch, self.model.is_open(producer)
        if any((e.first, e.count) in ((late, 1), (missing, count)) for e in data[-5:]):
            return
        assert self.try_batch(producer, epoch, late, 1, transactional, 0) == 45
        assert self.try_batch(producer, epoch, missing, count, transactional, 0) == 0
        assert self.try_batch(producer, epoch, late, 1, transactional, 0) == 0

    @rule(
        producer=PRODUCERS,
        raise_by=st.sampled_from([0, 0, 1, -1]),
        coordinator=st.integers(0, 2),
        commit=st.booleans(),
        version=st.sampled_from([0, 2]),
    )
    def marker(self, producer, raise_by, coordinator, commit, version):
        epoch = max(0, (self.model.epoch(producer) or 0) + raise_by)
        before = encode_snapshot(self.state)
        error = self.model.judge_marker(producer, epoch, coordinator, version)
        assert self.state.check_marker(producer, epoch, coordinator, version) == error
        if error:
            assert encode_snapshot(self.state) == before  # M3
            return
        transactions = self.model.transactions(producer)
        first = transactions[-1][0] if self.model.is_open(producer) else None
        offset = self.end_offset
        completed = self.state.end_transaction(
            producer, epoch, coordinator, commit, offset, offset * 2, self.now_ms
        )
        self.place(
            Appended(offset, producer, epoch, -1, 1, True, commit, coordinator, self.now_ms), 1
        )
        if first is None:
            assert completed is None
            return
        still_open = [self.model.transactions(p)[-1][0] for p in range(3) if self.model.is_open(p)]
        assert fields(completed) == (
            producer, first, offset, min([*still_open, offset + 1]), not commit
        )  # fmt: skip

    @rule(by=st.integers(0, 10))
    def high_watermark_advances(self, by):
        self.high_watermark = min(self.end_offset, self.high_watermark + by)

    @rule(by=st.sampled_from([0, 1, 400, 999, 1000, 5000]))
    def time_passes(self, by):
        self.now_ms += by

    @rule()
    def expiry(self):
        idle = {
            producer
            for producer in range(3)
            if self.model.history(producer)
            and not self.model.is_open(producer)
            and self.now_ms - self.model.history(producer)[-1].time_ms >= EXPIRATION_MS
        }
        assert self.state.expire(self.now_ms, EXPIRATION_MS) == len(idle)
        for producer in idle:
            self.model.forgotten[producer] = len(self.model.log)

    @precondition(lambda self: self.high_watermark == self.end_offset)
    @rule()
    def restart_from_a_snapshot(self):
        self.state = decode_snapshot(encode_snapshot(self.state), append_time_ms=-1)

    @precondition(lambda self: not self.model.forgotten)
    @rule(data=st.data())
    def restart_from_a_replay(self, data):
        """D4: a snapshot taken at any earlier moment plus the rest of the log is the same state."""
        state = ProducerState()
        cut = data.draw(st.integers(0, len(self.model.log)))
        for number, entry in enumerate(self.model.log):
            if number == cut:
                state = decode_snapshot(encode_snapshot(state), append_time_ms=-1)
            if entry.commit is not None:
                state.end_transaction(
                    entry.producer, entry.epoch, entry.coordinator, entry.commit, entry.offset,
                    entry.offset * 2, entry.time_ms,
                )  # fmt: skip
                continue
            state.update(
                BatchHeader(
                    entry.offset, 100, 0, 2, 0, 0x10 if entry.transactional else 0,
                    entry.count - 1, entry.offset, entry.offset * 2, entry.producer, entry.epoch,
                    entry.first, entry.count,
                ),
                entry.time_ms,
            )  # fmt: skip
        self.high_watermark = self.end_offset
        assert encode_snapshot(state) == encode_snapshot(self.state)
        assert state.last_stable_offset(self.end_offset) == self.state.last_stable_offset(
            self.end_offset
        )
        self.state = state

    @invariant()
    def stable_offset_is_right(self):
        """L3; Kafka's rule: a transaction is unstable until its marker lies below the mark."""
        high_watermark = self.high_watermark
        expected = self.model.last_stable_offset(high_watermark)
        assert self.state.last_stable_offset(high_watermark) == expected

    @invariant()
    def producers_are_those_of_the_log(self):
        expected = {}
        for producer in range(3):
            history = self.model.history(producer)
            if history:
                data = self.model.data(producer)
                last = (data[-1].first + data[-1].count - 1) % WRAP if data else -1
                markers = [e.coordinator for e in history if e.commit is not None]
                transactions = self.model.transactions(producer)
                expected[producer] = (
                    producer, self.model.epoch(producer), last, history[-1].offset * 2,
                    markers[-1] if markers else -1,
                    transactions[-1][0] if self.model.is_open(producer) else -1,
                )  # fmt: skip
        assert {row.producer_id: tuple(row) for row in self.state.producers()} == expected

    @invariant()
    def sequences_have_no_gap_and_no_repetition(self):
        """S1, S2, over the whole log, forgotten producers excepted."""
        for producer in range(3):
            for before, after in zip(
                self.model.data(producer), self.model.data(producer)[1:], strict=False
            ):
                assert after.first == (before.first + before.count) % WRAP


TestProducerHistory = ProducerHistory.TestCase
TestProducerHistory.settings = settings(stateful_step_count=40)
