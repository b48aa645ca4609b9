"""A coordinator, three partitions and a group over one journal, of which a crash leaves a prefix.

What decides is real: the transaction machine, the admission of Produce, the partitions' producer
state, the group's offsets. What a broker does around them is here in its simplest form: place a
record, take it in, write the pending markers. ``take_in`` is all that a restart needs.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Final, NamedTuple

from barnabas.broker.coordination.verification import Writer, verify
from barnabas.coordinator.decision import Cancel, Now, Record, Schedule, Timer, decode_record
from barnabas.coordinator.groups.config import GroupConfig
from barnabas.coordinator.groups.offset_records import commit_record
from barnabas.coordinator.groups.offset_table import BY_RETENTION, CommittedOffset
from barnabas.coordinator.groups.shard import GroupShard
from barnabas.coordinator.transactions.commands import (
    AddPartitions,
    Command,
    Expire,
    MarkersPlaced,
    MarkersWritten,
    Outcome,
    TakeProducerId,
    TimerExpired,
    VerifyPartitions,
)
from barnabas.coordinator.transactions.shard import TransactionShard
from barnabas.coordinator.transactions.state import (
    CLASSIC,
    TRANSACTIONS_V2,
    TopicPartition,
    Transaction,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records import BatchHeader, encode_batch, read_header
from barnabas.protocol.records import Record as LogRecord
from barnabas.storage.log.producers import ProducerState

TOPIC: Final = "__transaction_state"
PLACES: Final = (TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0))
OFFSETS: Final = TopicPartition("__consumer_offsets", 0)
GROUP: Final = "g"
WALL_MS: Final = 1_700_000_000_000


class Stated(NamedTuple):
    """Journal: a record of ``__transaction_state``."""

    key: bytes
    value: bytes | None


class Data(NamedTuple):
    """Journal: a batch of a producer; ``value`` names it."""

    place: TopicPartition
    header: BatchHeader
    value: int


class Offset(NamedTuple):
    """Journal: what a group has committed; without a producer it is a plain commit."""

    record: Record
    producer: tuple[int, int] | None
    value: int
    place: TopicPartition = OFFSETS


class Mark(NamedTuple):
    """Journal: the end of a producer's transaction on a partition."""

    place: TopicPartition
    producer: tuple[int, int]
    commit: bool
    coordinator_epoch: int
    transaction_version: int


Entry = Stated | Data | Offset | Mark


class World:
    """The broker."""

    def __init__(self, version: int) -> None:
        self.version = version
        self.journal: list[Entry] = []
        self.next_id = 1
        self.coordinator_epoch = 0
        self.tick_ms = 0
        self.wall_ms = WALL_MS
        self.withheld: set[TopicPartition] = set()
        self.start()

    # ------------------------------------------------------------------------------- life and death

    def start(self) -> None:
        """Begin with what the journal holds."""
        self.coordinator_epoch += 1
        self.shard = TransactionShard(self.version)
        self.group = GroupShard(GroupConfig())
        self.producers = {place: ProducerState() for place in (*PLACES, OFFSETS)}
        self.ends = dict.fromkeys(self.producers, 0)
        self.states = 0
        self.timers: dict[Timer, int] = {}
        for entry in self.journal:
            self.take_in(entry)
        self.take_effects(self.shard.begin(self.now))

    def crash(self, kept: int) -> None:
        """Lose all but the first entries of the journal, and start again."""
        del self.journal[kept:]
        self.start()

    @property
    def now(self) -> Now:
        return Now(self.wall_ms, self.tick_ms)

    def place(self, entry: Entry) -> None:
        self.journal.append(entry)
        self.take_in(entry)

    def take_in(self, entry: Entry) -> None:
        if isinstance(entry, Stated):
            record = decode_record(TOPIC, entry.key, entry.value)
            assert record is not None
            self.shard.apply(record, self.states)
            self.states += 1
            return
        offset = self.ends[entry.place]
        self.ends[entry.place] += 1
        producers = self.producers[entry.place]
        if isinstance(entry, Data):
            producers.update(entry.header._replace(base_offset=offset), 0)
        elif isinstance(entry, Mark):
            decided = (entry.commit, offset, 0, 0)
            producers.end_transaction(*entry.producer, entry.coordinator_epoch, *decided)
            if entry.place == OFFSETS:
                self.group.end_transaction(entry.producer[0], commit=entry.commit)
        else:
            if entry.producer is not None:
                header = read_header(_batch(entry.producer, 0, entry.value))
                producers.update(header._replace(base_offset=offset), 0)
            self.group.apply(entry.record, offset)

    # ------------------------------------------------------------------------------------- deciding

    def execute(self, command: Command) -> Outcome:
        """Decide, place, take in, and do what follows, markers included."""
        decision = self.shard.decide(command, self.now)
        for record in decision.records:
            self.place(Stated(*record.encode()))
        for change in decision.changes:
            self.shard.change(change)
        self.take_effects(decision.effects)
        return decision.response or Outcome()

    def take_effects(self, effects: Any) -> None:
        for effect in effects:
            if isinstance(effect, TakeProducerId):
                assert effect.producer_id == self.next_id
                self.next_id += 1
            elif isinstance(effect, Schedule):
                self.timers[effect.timer] = effect.at_tick_ms
            elif isinstance(effect, Cancel):
                self.timers.pop(effect.timer, None)
            else:
                self.write_markers(effect.transactional_id)

    def write_markers(self, key: str) -> None:
        transaction = self.shard.transactions[key]
        for place in self.shard.awaiting_markers(key):
            producers = self.producers[place]
            mark = Mark(
                place,
                transaction.producer,
                transaction.commits,
                self.coordinator_epoch,
                transaction.transaction_version,
            )
            if place in self.withheld:
                continue
            asked = (*mark.producer, mark.coordinator_epoch, mark.transaction_version)
            assert not producers.check_marker(*asked), "a marker of the coordinator is refused"
            self.place(mark)
            self.shard.change(MarkersPlaced(key, [place]))
        if not self.shard.awaiting_markers(key):
            self.execute(MarkersWritten(key, *transaction.producer))

    def heal(self) -> None:
        """Allow markers on all partitions again."""
        self.withheld.clear()
        for key, transaction in list(self.shard.transactions.items()):
            if transaction.state.is_decided:
                self.write_markers(key)

    def pass_time(self, passed_ms: int, jump_ms: int) -> None:
        """Advance the time and run what is due; the wall clock may be moved meanwhile."""
        self.tick_ms += passed_ms
        self.wall_ms += passed_ms + jump_ms
        for timer, at_tick_ms in sorted(self.timers.items()):
            if at_tick_ms <= self.tick_ms and self.timers.pop(timer, None) is not None:
                self.execute(TimerExpired(timer, self.next_id))

    def expire(self, key: str) -> None:
        self.execute(Expire(key, 1_000))

    # ------------------------------------------------------------------------------------- requests

    def has_producer(self, transactional_id: str, producer_id: int) -> bool:
        transaction = self.shard.transactions.get(transactional_id)
        return transaction is not None and transaction.producer_id == producer_id

    def add(self, command: AddPartitions) -> ErrorCode:
        return self.execute(command).error

    def verify(self, command: VerifyPartitions) -> dict[TopicPartition, ErrorCode]:
        return dict(self.execute(command).partition_errors)

    def produce(
        self,
        key: str,
        producer: tuple[int, int],
        place: TopicPartition,
        sequence: int,
        value: int,
        version: int,
    ) -> tuple[ErrorCode, bool]:
        """Append one record; return the error, and whether the record is a duplicate."""
        batch = _batch(producer, sequence, value)
        log: Any = SimpleNamespace(producers=self.producers[place])
        found = verify(self, Writer(key, version), [(place, log, batch)])
        if found.error or found.refused:
            return found.error or found.refused[place], False
        transaction_version = TRANSACTIONS_V2 if version >= 12 else CLASSIC
        header = read_header(batch)
        decision = self.producers[place].check(header, transaction_version=transaction_version)
        if decision.error:
            return ErrorCode(decision.error), False
        if decision.duplicate is not None:
            return ErrorCode.NONE, True
        self.place(Data(place, header, value))
        return ErrorCode.NONE, False

    def commit_offset(
        self, key: str, producer: tuple[int, int] | None, value: int, version: int
    ) -> ErrorCode:
        """Commit the group's offset, plainly or in a transaction."""
        if producer is not None:
            places = frozenset({OFFSETS})
            if version >= 5:
                code = self.add(AddPartitions(key, *producer, places, TRANSACTIONS_V2))
            else:
                code = self.verify(VerifyPartitions(key, *producer, places))[OFFSETS]
            code = code or ErrorCode(self.producers[OFFSETS].check_epoch(*producer))
            if code:
                return code
        committed = CommittedOffset(value, -1, "", self.wall_ms, BY_RETENTION, b"t" * 16, -1)
        record = commit_record(GROUP, "t", 0, committed)
        if producer is not None:
            record = record._replace(producer_id=producer[0])
        self.place(Offset(record, producer, value))
        return ErrorCode.NONE

    def transaction(self, key: str) -> Transaction | None:
        return self.shard.transactions.get(key)


def _batch(producer: tuple[int, int], sequence: int, value: int) -> memoryview:
    batch = encode_batch(
        [LogRecord(0, WALL_MS, None, b"%d" % value, ())],
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=sequence,
        transactional=True,
    )
    return memoryview(bytearray(batch))
