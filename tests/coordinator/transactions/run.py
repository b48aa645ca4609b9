"""One transaction coordinator without a broker: its records, its timers, its markers.

Every command is decided twice, every record is read back from bytes, and after every step the
machine is compared with one after a restart. The invariants of every history of records
(C1, C2, C10, C11) are checked as they are written.
"""

from __future__ import annotations

from typing import Any

from barnabas.coordinator.decision import Cancel, Now, Record, Schedule, Timer, decode_record
from barnabas.coordinator.transactions.commands import (
    MarkersPlaced,
    MarkersWritten,
    Outcome,
    TakeProducerId,
    TimerExpired,
    WriteMarkers,
)
from barnabas.coordinator.transactions.shard import TransactionShard
from barnabas.coordinator.transactions.state import (
    LARGEST_CLIENT_EPOCH,
    NEVER_MS,
    NO_EPOCH,
    NO_PRODUCER_ID,
    PREDECESSORS,
    TRANSACTIONS_V2,
    State,
    Transaction,
    transaction_of,
)

TOPIC = "__transaction_state"
WALL_MS = 1_700_000_000_000
FIRST_ID = 1000

Log = list[tuple[bytes, bytes | None]]


class Run:
    """A shard with everything around it in plain sight."""

    def __init__(self, version: int = TRANSACTIONS_V2, key: str = "t") -> None:
        self.key = key
        self.version = version
        self.producer_ids: dict[int, str] = {}
        self.shard = TransactionShard(version, self.producer_ids)
        self.log: Log = []
        self.history: list[Transaction | None] = []
        """Every record of ``key``, as it was read back."""
        self.timers: dict[Timer, int] = {}
        self.tick_ms = 0
        self.wall_ms = WALL_MS
        self.next_id = FIRST_ID
        self.oldest_id = 0
        """Ids below it are of before a restore: they are exchanged early."""
        self.withheld = False
        self.shard.begin(self.now)

    @property
    def now(self) -> Now:
        return Now(self.wall_ms, self.tick_ms)

    @property
    def transaction(self) -> Transaction | None:
        return self.shard.transactions.get(self.key)

    def known(self) -> Transaction:
        assert self.transaction is not None
        return self.transaction

    def fresh(self) -> int:
        return self.next_id

    def pass_time(self, passed_ms: int, wall_jump_ms: int = 0) -> None:
        self.tick_ms += passed_ms
        self.wall_ms += passed_ms + wall_jump_ms

    # --------------------------------------------------------------------------------- commands

    def do(self, command: Any) -> Outcome:
        """Decide a command and apply the decision; without a response the outcome is NONE."""
        decision = self.shard.decide(command, self.now)
        assert self.shard.decide(command, self.now) == decision, "decide has changed something"
        for record in decision.records:
            self.append(record)
        for change in decision.changes:
            self.shard.change(change)
        for effect in decision.effects:
            self.take(effect)
        self.check()
        outcome: Outcome = decision.response or Outcome()
        assert outcome.producer_epoch <= 32_766, "C11"
        return outcome

    def take(self, effect: Any) -> None:
        if isinstance(effect, TakeProducerId):
            assert effect.producer_id == self.next_id
            self.next_id += 1
        elif isinstance(effect, Schedule):
            self.timers[effect.timer] = effect.at_tick_ms
        elif isinstance(effect, Cancel):
            self.timers.pop(effect.timer, None)
        else:
            assert effect == WriteMarkers(self.key)
            if not self.withheld:
                self.write_markers()

    def write_markers(self) -> None:
        """Every partition that awaits a marker gets it, and the transaction is complete."""
        self.withheld = False
        transaction = self.known()
        self.shard.change(MarkersPlaced(self.key, self.shard.awaiting_markers(self.key)))
        self.do(MarkersWritten(self.key, *transaction.producer))

    def withhold(self) -> None:
        self.withheld = True

    def plant(self, transaction: Transaction) -> None:
        self.next_id = max(self.next_id, transaction.producer_id + 1)
        self.append(self.shard.record(transaction))

    def append(self, record: Record) -> None:
        """Write a record, and apply it as it is read back."""
        before = self.transaction
        self.log.append(record.encode())
        stored = decode_record(TOPIC, *self.log[-1])
        assert stored is not None
        if record.version and record.meaning is not None:
            assert transaction_of(stored) == record.meaning, "a restart reads something else"
        self.shard.apply(stored, len(self.log) - 1)
        self.history.append(self.transaction)
        self.check_step(before, self.transaction)

    def due(self) -> bool:
        """Expire the transaction's timer, if it is set and due."""
        for timer, at_tick_ms in list(self.timers.items()):
            if at_tick_ms <= self.tick_ms:
                del self.timers[timer]
                self.do(TimerExpired(timer, self.fresh()))
                return True
        return False

    def restart(self, *, records: int | None = None) -> None:
        """Start again from the log, or from the first records of it."""
        if records is not None:
            del self.log[records:]
            del self.history[records:]
        self.producer_ids = {}
        self.shard = self.replayed(self.producer_ids)
        self.timers.clear()
        for effect in self.shard.begin(self.now):
            self.take(effect)
        self.check()

    # ----------------------------------------------------------------------------------- checks

    def replayed(self, producer_ids: dict[int, str] | None = None) -> TransactionShard:
        """Return the machine after a restart."""
        shard = TransactionShard(self.version, producer_ids)
        for offset, (key, value) in enumerate(self.log):
            record = decode_record(TOPIC, key, value)
            assert record is not None
            shard.apply(record, offset)
        return shard

    def check(self) -> None:
        """Check the invariants between two commands."""
        if self.version > 0:  # Version 0 of the record has no room for all of it.
            assert self.replayed().transactions == self.shard.transactions
        used = {
            producer_id: each.transactional_id
            for each in self.shard.transactions.values()
            for producer_id in (each.producer_id, each.next_producer_id)
            if producer_id != NO_PRODUCER_ID
        }
        assert self.producer_ids == used
        transaction = self.transaction
        if transaction is None:
            assert not self.timers
            return
        runs_out = transaction.state == State.ONGOING and transaction.timeout_ms != NEVER_MS
        assert bool(self.timers) == runs_out, "what is open is timed, and nothing else"
        assert bool(self.shard.awaiting_markers(self.key)) <= transaction.state.is_decided

    def check_step(self, before: Transaction | None, after: Transaction | None) -> None:
        if after is None:
            assert before is not None
            assert before.state.is_idle, "C13"
            return
        if before is None:
            return
        assert before.state in PREDECESSORS[after.state], "C1"
        assert after.last_update_ms >= before.last_update_ms, "T1"
        assert after.producer >= before.producer, "C2"
        if after.producer_id == before.producer_id:
            owner_epoch = max(before.producer_epoch, before.next_epoch)
            assert after.producer_epoch in {before.producer_epoch, owner_epoch, owner_epoch + 1}
        else:
            # What was kept: those that took it over may have used up the epochs, not the data.
            if before.next_epoch == NO_EPOCH and before.producer_id >= self.oldest_id:
                assert before.producer_epoch >= LARGEST_CLIENT_EPOCH, "C11"
            assert after.producer_epoch == max(before.next_epoch, 0)
        if before.state.is_decided:
            assert before.commits == (after.state == State.COMPLETE_COMMIT), "C3"
