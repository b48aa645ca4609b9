"""Recover a disk after a crash and compare its contents with the model."""

from collections.abc import Callable
from random import Random

from barnabas.broker.testing.disk.simulated import SimulatedFileSystem
from barnabas.protocol.records import iterate_batches
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log.segment_read import FileSpan, read_waiting
from barnabas.storage.repair.check import verify
from barnabas.storage.store.log_store import LogStore
from barnabas.storage.store.store_parts import PartitionSpec
from tests.crash.model import Event, Model, Partition
from tests.crash.scripted_engine import ScriptedEngine
from tests.crash.workload import boot_store


class Violation(AssertionError):
    """A promise was broken."""


def recover(
    disk: SimulatedFileSystem, specs: dict[int, PartitionSpec], now_ms: int
) -> tuple[LogStore, ScriptedEngine]:
    """Start a broker; its epoch claims to be the first, so that recovery must raise it (D6)."""
    engine = ScriptedEngine()
    return boot_store(disk, specs, engine, lambda: now_ms, 0), engine


def check_recovery(
    disk: SimulatedFileSystem,
    model: Model,
    specs: dict[int, PartitionSpec],
    now_ms: int,
    random: Random,
    *,
    again: bool,
    check: Callable[[PartitionLog, Partition, Random], None] | None = None,
) -> int:
    """Recover ``disk`` and check it; answers how many events are left. Uses ``disk`` up.

    ``check`` looks at each log in place of :func:`check_log`.
    """
    store, engine = recover(disk, specs, now_ms)
    number, expected = _cut(store, model)
    for partition_id, partition in expected.items():
        (check or check_log)(store.get(partition_id), partition, random)
    if again:
        before = digest(store)
        if random.random() < 0.5:
            store.checkpoint()
            engine.settle()
        store, engine = recover(disk.kill(), specs, now_ms)
        _require(digest(store) == before, "recovering twice gives something else (D3)")
    store.checkpoint()
    engine.settle()
    for partition_id, partition in expected.items():
        _check_producers(store.get(partition_id), partition)
    return number


def _cut(store: LogStore, model: Model) -> tuple[int, dict[int, Partition]]:
    """Return the length of the prefix of events that fits all partitions (D1, D2)."""
    found = {
        partition_id: (log.log_start_offset, log.next_offset)
        for partition_id, log in store.logs.items()
    }
    wanted = []
    for number in model.cuts():
        partitions = model.after(number)
        bounds = {
            partition_id: (partition.start, partition.end)
            for partition_id, partition in partitions.items()
        }
        if bounds == found:
            return number, partitions
        wanted.append(f"{number} events: {bounds}")
    raise Violation(f"(start, end) by partition: {found}, possible: {'; '.join(wanted)} (D1, D2)")


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise Violation(message)


def check_log(log: PartitionLog, expected: Partition, random: Random) -> None:
    """Bounds, bytes, derived state and transactions of one recovered log."""
    _require(log.high_watermark == expected.end, f"{log}: the high watermark is not the end")
    _require(
        log.last_stable_offset == expected.stable,
        f"{log}: stable {log.last_stable_offset}, expected {expected.stable} (L3)",
    )
    problems = verify(log)
    _require(not problems, "; ".join(problems))
    _check_bytes(log, expected, random)
    aborted = [
        entry
        for entry in log.aborted_transactions(expected.start, expected.end)
        if entry.last_offset >= expected.start
    ]
    _require(
        [tuple(entry)[:3] for entry in aborted]
        == [tuple(entry) for entry in expected.aborted if entry.last_offset >= expected.start],
        f"{log}: aborted transactions {aborted}, expected {expected.aborted} (L10)",
    )


def _check_bytes(log: PartitionLog, expected: Partition, random: Random) -> None:
    visible = [event for event in expected.batches if event.next_offset > expected.start]
    stored = read_batches(log, expected.start, random)
    _require(len(stored) == len(visible), f"{log}: {len(stored)} batches, not {len(visible)}")
    epochs = [-1]
    for (base_offset, leader_epoch, data), event in zip(stored, visible, strict=True):
        _require(base_offset == event.base_offset, f"{log}: {base_offset} is not {event} (S3)")
        same = event.stored_as(data) if event.kind == "data" else _is_marker(data, event)
        _require(same, f"{log}: other bytes at offset {base_offset} (S3)")
        epochs.append(leader_epoch)
    _require(epochs == sorted(epochs), f"{log}: leader epochs go back: {epochs}")
    _require(log.leader_epoch > epochs[-1], f"{log}: epoch {log.leader_epoch} is not new (D6)")


def _is_marker(data: bytes, event: Event) -> bool:
    batch = memoryview(data)
    _, header = next(iterate_batches(batch))
    # The record's key is its last part but value and headers: version 0, type 0 (abort) or 1.
    key = (0, 0, 0, 1 if event.kind == "commit" else 0)
    return (
        header.is_control
        and header.producer_id == event.producer_id
        and header.producer_epoch == event.producer_epoch
        and tuple(data[66:70]) == key
    )


def read_batches(log: PartitionLog, offset: int, random: Random) -> list[tuple[int, int, bytes]]:
    """Read to the end as a consumer does: (base offset, leader epoch, bytes) of each batch."""
    found = []
    while offset < log.high_watermark:
        plan = log.plan_read(offset, random.choice((1, 200, 5000, 1_000_000)))
        _require(plan is not None, f"{log}: nothing at {offset} < {log.high_watermark} (L5)")
        if isinstance(plan, FileSpan):
            span = plan.load(read_waiting)
            _require(span is not None, "a read that waits gave up")
            chunks = [span.data]
        else:
            chunks = plan.chunks
        before = offset
        for chunk in chunks:
            for at, header in iterate_batches(chunk):
                data = bytes(chunk[at : at + header.size])
                found.append((header.base_offset, header.partition_leader_epoch, data))
                offset = header.next_offset
        _require(offset > before, f"{log}: a read at {before} does not advance (L5)")
    return found


def _check_producers(log: PartitionLog, expected: Partition) -> None:
    """Send each producer's last five batches again: each returns its original offset (S4)."""
    end = log.next_offset
    for producer in expected.producers.values():
        for event in producer.batches:
            appended = log.append(memoryview(bytearray(event.sent)))
            _require(
                appended.base_offset == event.base_offset,
                f"{log}: the retry of {event.base_offset} went to {appended.base_offset} (S4)",
            )
            _require(appended.group is None, f"{log}: a recovered batch is not durable (S4)")
    _require(log.next_offset == end, f"{log}: a retry was appended (S2)")


def digest(store: LogStore) -> object:
    """Everything of a store that recovery must find again in the same way (D3)."""
    return {
        partition_id: (
            log.log_start_offset,
            log.next_offset,
            log.leader_epochs,
            [(segment.base_offset, segment.size_bytes) for segment in log.segments],
            [segment.transactions.encode() for segment in log.segments],
            {
                entry.producer_id: (entry.row, tuple(entry.batches))
                for entry in log.producers.entries()
            },
        )
        for partition_id, log in store.logs.items()
    }
