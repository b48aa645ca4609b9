"""Rules of transactions that hold in the logs alone, regardless of responses to clients.

``batches`` are all batches of all partitions, as bytes, by topic and index. ``check`` raises Broken
with the invariant's id. ``checker.py`` beside it judges what clients noted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby, pairwise

from barnabas.broker.coordination.shard import java_hash
from barnabas.broker.metadata.topic_names import GROUP_OFFSETS, TRANSACTION_STATE
from barnabas.coordinator.decision import decode_record
from barnabas.coordinator.transactions.state import (
    PREDECESSORS,
    State,
    TopicPartition,
    Transaction,
    transaction_of,
)
from barnabas.protocol.record_decoding import Marker, iterate_records, read_marker
from barnabas.protocol.records import BatchHeader, read_header

Place = tuple[str, int]
Batches = Mapping[Place, Sequence[bytes]]
States = list[Transaction | None]
INTERNAL = {TRANSACTION_STATE, GROUP_OFFSETS}
LIMIT_BYTES = 1 << 30
KEPT_BATCHES = 1 << 15
"""The maximum number of cached batches, because the logs are judged repeatedly."""


class Broken(AssertionError):
    """An invariant does not hold."""


def require(holds: object, what: str) -> None:
    if not holds:
        raise Broken(what)


@dataclass
class Decided:
    """One decision about one transaction."""

    commit: bool
    partitions: frozenset[TopicPartition]
    completed: bool = False


@dataclass
class Ended:
    """One marker of one partition."""

    producer: tuple[int, int]
    commit: bool
    coordinator_epoch: int
    had_data: bool


@dataclass
class PartitionHistory:
    """The content of one partition, in the order of its offsets."""

    markers: list[Ended] = field(default_factory=list)
    open: dict[int, int] = field(default_factory=dict)
    """Producer id and epoch of the transactions without a marker."""
    begun: list[tuple[int, int]] = field(default_factory=list)
    """Producer id and epoch of each transaction with data here."""
    committed: list[bytes] = field(default_factory=list)
    """Values that a READ_COMMITTED reader is given, in the order of the markers."""


def histories(batches: Batches) -> dict[str, States]:
    """The records of ``__transaction_state`` by transactional id, in order."""
    found: dict[str, States] = defaultdict(list)
    partitions = {place: each for place, each in batches.items() if place[0] == TRANSACTION_STATE}
    for place, stored in partitions.items():
        for batch in stored:
            for key, key_hash, state in _states_of(batch):
                require(key_hash % len(partitions) == place[1], f"{key} is in {place}")
                found[key].append(state)
    return found


@lru_cache(KEPT_BATCHES)
def _states_of(batch: bytes) -> tuple[tuple[str, int, Transaction | None], ...]:
    """The transactional id of each record, its hash, and the state; nothing of a control batch."""
    if read_header(batch).is_control:
        return ()
    found = []
    for record in iterate_records(batch, limit_bytes=LIMIT_BYTES):
        assert record.key is not None
        decoded = decode_record(TRANSACTION_STATE, record.key, record.value)
        assert decoded is not None
        key = decoded.key.transactional_id
        state = None if decoded.value is None else transaction_of(decoded)
        found.append((key, java_hash(key), state))
    return tuple(found)


@lru_cache(KEPT_BATCHES)
def _contents(batch: bytes) -> tuple[BatchHeader, tuple[bytes, ...], Marker | None]:
    """The header of a batch, its values, and the content of a marker."""
    header = read_header(batch)
    records = iterate_records(batch, limit_bytes=LIMIT_BYTES)
    values = tuple(record.value or b"" for record in records)
    return header, values, read_marker(batch) if header.is_control else None


def partition_history(stored: Sequence[bytes], place: Place) -> PartitionHistory:
    """Follow one partition's batches (M2, M4, M6, P2, P3)."""
    history = PartitionHistory()
    pending: dict[int, list[bytes]] = defaultdict(list)
    latest: dict[int, int] = {}
    for batch in stored:
        header, values, marker = _contents(batch)
        if not header.is_transactional:
            history.committed += values
            continue
        producer_id, epoch = header.producer_id, header.producer_epoch
        require(epoch >= latest.get(producer_id, -1), f"{place}: epoch {epoch} goes back (P2)")
        latest[producer_id] = epoch
        if header.is_control:
            _end(history, pending.pop(producer_id, []), header, marker, place)
        elif producer_id not in history.open:
            history.open[producer_id] = epoch
            history.begun.append((producer_id, epoch))
            pending[producer_id] += values
        else:
            require(history.open[producer_id] == epoch, f"{place}: two epochs, one open (P3)")
            pending[producer_id] += values
    return history


def _end(
    history: PartitionHistory,
    values: list[bytes],
    header: BatchHeader,
    marker: Marker | None,
    place: Place,
) -> None:
    require(marker is not None, f"{place}: a control batch that is no marker")
    assert marker is not None
    shape = header.is_transactional, header.record_count, header.base_sequence, header.compression
    require(shape == (True, 1, -1, 0), f"{place}: a marker of the shape {shape} (M6)")
    had_data = history.open.pop(header.producer_id, None) is not None
    producer = header.producer_id, header.producer_epoch
    history.markers.append(Ended(producer, marker.commit, marker.coordinator_epoch, had_data))
    if marker.commit:
        history.committed += values


class TransactionHistory:
    """Everything the logs say of transactions."""

    def __init__(self, batches: Batches) -> None:
        self.states = histories(batches)
        self.partitions = {
            place: partition_history(stored, place)
            for place, stored in batches.items()
            if place[0] != TRANSACTION_STATE
        }
        self._added: dict[tuple[int, int], list[frozenset[TopicPartition]]] = defaultdict(list)
        """The partitions of each transaction by what its data carries."""
        self._decided: dict[tuple[int, int], list[Decided]] = defaultdict(list)
        """The decisions by what their markers carry."""
        for key, states in self.states.items():
            self._follow(key, states)

    @property
    def highest_coordinator_epoch(self) -> int:
        """The last offset of all markers, or -1 without a marker."""
        markers = [each for part in self.partitions.values() for each in part.markers]
        return max((each.coordinator_epoch for each in markers), default=-1)

    def values(self, topic: str) -> dict[int, list[bytes]]:
        """Return the values that a `read_committed` reader gets from each partition of a topic."""
        return {
            index: part.committed
            for (name, index), part in self.partitions.items()
            if name == topic
        }

    def latest(self, key: str) -> Transaction:
        """The newest state of a transactional id."""
        state = self.states[key][-1]
        assert state is not None
        return state

    # ---------------------------------------------------------------------------- the coordinator

    def _follow(self, key: str, states: Iterable[Transaction | None]) -> None:
        """Walk through the records of one id (C1, C2, C7)."""
        before: Transaction | None = None
        for state in states:
            if state is None:
                before = None
                continue
            self._follow_one(key, before, state)
            before = state

    def _follow_one(self, key: str, before: Transaction | None, state: Transaction) -> None:
        if before is None:
            require(state.state == State.EMPTY, f"{key} begins as {state.state.name} (C1)")
        elif (
            before.state not in PREDECESSORS[state.state] or before.producer > state.producer
        ):  # Only then it is worth a sentence: a long history has many steps.
            step = f"{key}: {before.state.name} {before.producer} to {state.state.name}"
            step += f" {state.producer}"
            require(before.state in PREDECESSORS[state.state], f"{step} (C1)")
            require(before.producer <= state.producer, f"{step} (C2)")
        if state.state == State.ONGOING:
            is_new = before is None or before.state != State.ONGOING
            added = self._added[state.producer]
            if is_new:
                added.append(state.partitions)
            else:
                require(added[-1] <= state.partitions, f"{key} has lost partitions (C1)")
                added[-1] = state.partitions
        elif state.state.is_decided:
            if before is not None and before.state == State.ONGOING:
                require(before.partitions == state.partitions, f"{key}: other partitions (C3)")
            self._decided[state.producer].append(Decided(state.commits, state.partitions))
        elif before is not None and before.state.is_decided:
            self._decided[before.producer][-1].completed = True

    # ---------------------------------------------------------------------------------- the whole

    def check(self) -> None:
        """Hold both sides against each other (P1, C3, D5, M1)."""
        for place, part in self.partitions.items():
            self._check_data(place, part)
            by_producer = defaultdict(list)
            for marker in part.markers:
                by_producer[marker.producer].append(marker)
            for producer in {*by_producer, *self._decided}:
                self._check_markers(place, producer, by_producer.get(producer, []))

    def _check_data(self, place: Place, part: PartitionHistory) -> None:
        counts: dict[tuple[int, int], int] = defaultdict(int)
        for producer in part.begun:
            counts[producer] += 1
        for producer, count in counts.items():
            added = sum(place in partitions for partitions in self._added[producer])
            require(count <= added, f"{place}: {producer} wrote {count}, added {added} times (P1)")

    def _check_markers(self, place: Place, producer: tuple[int, int], markers: list[Ended]) -> None:
        decided = [each for each in self._decided[producer] if place in each.partitions]
        if not decided and not markers:
            return
        completed = [each for each in decided if each.completed]
        what = f"{place} {producer}: {len(markers)} markers, {len(decided)} decisions"
        require(len(markers) >= len(completed), f"{what}, {len(completed)} completed (D5, M1)")
        # Those sent again follow directly, so equal neighbours count once.
        kinds = [kind for kind, _ in groupby(marker.commit for marker in markers)]
        possible = [
            [kind for kind, _ in groupby(each.commit for each in some)]
            for some in (completed, decided)
        ]
        require(kinds in possible, f"{what}: {kinds} and not {possible} (C3)")
        runs = [marker.had_data for marker in markers]
        require(runs.count(True) <= len(decided), f"{what}: {runs} with data (P1)")
        epochs = [marker.coordinator_epoch for marker in markers]
        require(all(a <= b for a, b in pairwise(epochs)), f"{what}: epochs {epochs} (M3)")

    def check_complete(self, topic: str | None = None, key: str | None = None) -> None:
        """Check that no transaction is open, unfinished, or without its markers (C4, C6).

        With ``topic`` and ``key`` only what concerns these two.
        """
        self.check()
        ids = {state.producer_id for state in self.states.get(key or "", ()) if state}
        for place, part in self.partitions.items():
            if topic in {None, place[0]} or part.open.keys() & ids:
                require(not part.open, f"{place}: {part.open} hang (C6)")
        for name, states in self.states.items():
            last = states[-1]
            if last is not None and key in {None, name}:
                require(last.state.is_idle, f"{name} stays {last.state.name} (C6)")
