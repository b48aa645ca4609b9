"""The memory of a broker's coordinators, compared with their logs.

The state of a partition is what reading its log again gives (D4). Nothing is left in memory of keys
whose partition another broker coordinates.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

from barnabas.broker.coordination.coordinator_log import CoordinatorLog
from barnabas.broker.coordination.groups import group_config
from barnabas.broker.coordination.shard import Shard
from barnabas.broker.metadata.topic_names import GROUP_OFFSETS, TRANSACTION_STATE
from barnabas.broker.server import BrokerServer
from barnabas.coordinator.decision import decode_record
from barnabas.coordinator.groups.consumer.group import ConsumerGroup
from barnabas.coordinator.groups.shard import GroupShard
from barnabas.coordinator.transactions.shard import TransactionShard
from barnabas.protocol.record_decoding import iterate_records, read_marker
from barnabas.protocol.records import NO_PRODUCER_ID, iterate_batches, read_header
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.testing import Broker
from tests.crash.transaction_life import batches_of
from tests.history.logs import LIMIT_BYTES


def check_coordinators(broker: Broker) -> None:
    """Raise AssertionError if a coordinator of a running broker knows too much, or too little."""
    broker.call(lambda: _check(broker.server))


def _check(server: BrokerServer) -> None:
    for shard in server.groups.log.shards:
        if shard.is_loaded:
            _check_groups(server, shard)
    for shard in server.transactions.log.shards:
        if shard.is_loaded:
            _check_transactions(server, shard)
    _check_nothing_is_left(server.groups, server.transactions)


def _check_groups(server: BrokerServer, shard: Shard[GroupShard]) -> None:
    """Compare the groups of a partition with what is appended, unless a part is applied only."""
    if shard in server.groups._runner._slices._under_way:
        return
    config = group_config(server.config, server.groups.consumer_times)
    batches = batches_of(shard.log) + _batches_under_way(shard.log)
    again = _rebuilt(GROUP_OFFSETS, GroupShard(config), batches)
    live = shard.machine
    assert again.groups.keys() == live.groups.keys()
    for key, group in live.groups.items():
        assert _recorded(again.groups[key]) == _recorded(group), key
    assert [*again.offsets.group_ids()] == [*live.offsets.group_ids()]
    for key in live.offsets.group_ids():
        assert again.offsets.commits_of(key) == live.offsets.commits_of(key), key


def _recorded(group: Any) -> tuple[Any, ...]:
    """Return the state of a group that its records have."""
    if isinstance(group, ConsumerGroup):
        return group.epoch, group.assignment_epoch, {*group.members}, group.targets
    return tuple(group.stored[:3])


def _check_transactions(server: BrokerServer, shard: Shard[TransactionShard]) -> None:
    """Transactions apply what is appended."""
    producer_ids: dict[int, str] = {}
    again = _rebuilt(
        TRANSACTION_STATE,
        TransactionShard(server.config.transaction_version, producer_ids),
        batches_of(shard.log) + _batches_under_way(shard.log),
    )
    live = shard.machine
    assert again.transactions == live.transactions
    assert again.open == live.open
    for key, owed in again._awaiting.items():
        assert live._awaiting[key] <= owed, key
    owned = server.transactions._producer_ids.items()
    assert producer_ids == {number: key for number, key in owned if shard.owns(key)}


def _check_nothing_is_left(groups: Any, transactions: Any) -> None:
    runner, markers = groups._runner, transactions._markers
    _check_timers(runner._timers, groups.log)
    _check_timers(transactions._runner._timers, transactions.log)
    _require_here(groups.log, "parked", (each.key for each in runner._parked.values()))
    assert {*runner._slices._under_way} <= {*groups.log.shards}
    _require_here(groups.log, "rebalance", (each.group_id for each in groups.rebalances._ring))
    log = transactions.log
    _require_here(log, "retry", markers._retries)
    assert {each.shard for each in markers._retries.values()} <= {*log.shards}
    _require_here(log, "wait", transactions._waits._waiting)
    _require_here(log, "producer id", transactions._producer_ids.values())
    _require_here(log, "client", transactions.clients._clients)
    _require_here(log, "pipeline", transactions.pipelines._by_id)
    events = transactions.events.newest_first()
    _require_here(log, "event", (each.transactional_id for each in events))
    if transactions.remote_markers is not None:
        for debt in transactions.remote_markers._debts.values():
            assert not debt.shard.is_gone
            assert transactions.is_deciding(debt.key)


def _require_here(log: CoordinatorLog[Any], what: str, keys: Iterable[str]) -> None:
    for key in keys:
        assert log.shard_here(key) is not None, f"{what} of {key}, which is not coordinated here"


def _check_timers(timers: Any, log: CoordinatorLog[Any]) -> None:
    here = {*log.shards}
    assert {*timers._running} <= here
    assert {each.shard for each in timers._expiries.values()} <= here
    for shard, running in timers._running.items():
        assert all(shard.owns(timer.key) for timer in running)


def _batches_under_way(log: PartitionLog) -> list[bytes]:
    """Return the batches that are appended and not durable yet."""
    found = []
    for stored in log.unflushed:
        data = memoryview(stored.chunk)[stored.start : stored.end]
        for position, header in iterate_batches(data):
            if header.base_offset >= log.high_watermark:
                found.append(bytes(data[position : position + header.size]))
    return found


def _rebuilt(topic: str, machine: Any, batches: list[bytes]) -> Any:
    """Return the machine after all records and markers of these batches."""
    for batch in batches:
        view = memoryview(batch)
        header = read_header(view)
        if header.is_control:
            marker = read_marker(view)
            if marker is not None:
                steps = machine.end_transaction(header.producer_id, commit=marker.commit)
                deque(steps or (), maxlen=0)
            continue
        producer_id = header.producer_id if header.is_transactional else NO_PRODUCER_ID
        for stored in iterate_records(view, limit_bytes=LIMIT_BYTES):
            assert stored.key is not None
            record = decode_record(topic, stored.key, stored.value, producer_id)
            machine.apply(record, stored.offset)
    return machine
