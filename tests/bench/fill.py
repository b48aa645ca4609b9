"""`python -m tests.bench.fill DIRECTORY ...`: many partitions, groups, ids, producers, or much log.

Through the broker's own code, but not through sockets: what is measured afterwards is how long a
start and a stop take with all of it, not how it came about.
"""

import asyncio
import sys
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from barnabas.broker.config.loading.loader import load_config
from barnabas.broker.coordination.shard import java_hash
from barnabas.broker.server import BrokerServer
from barnabas.coordinator.decision import Record
from barnabas.coordinator.groups.offset_records import commit_record
from barnabas.coordinator.groups.offset_table import BY_RETENTION, CommittedOffset
from barnabas.coordinator.transactions.state import State, TopicPartition, Transaction, record_of
from barnabas.protocol.records import Record as LogRecord
from barnabas.protocol.records import encode_batch
from barnabas.storage.log.partition_log import PartitionLog

TOPIC_PARTITIONS = 1000
APPENDS_PER_TURN = 500
BATCH_RECORDS, VALUE_BYTES = 1000, 1000
BATCHES_PER_TURN = 16
TIMEOUT_MS = 60_000


class Amount(NamedTuple):
    """Number of objects of each kind."""

    partitions: int = 20_000
    groups: int = 100_000
    transactional_ids: int = 100_000
    producers: int = 100_000
    log_bytes: int = 0


async def fill(server: BrokerServer, amount: Amount) -> None:
    """Fill a started broker; it keeps running."""
    logs = await _create_topics(server, amount.partitions)
    await _write(server, logs, amount.log_bytes)
    await _append(server, _produced(logs, amount.producers))
    groups, transactions = server.groups, server.transactions
    await groups.ensure()
    await transactions.ensure()
    assert groups.is_coordinator()
    assert transactions.is_coordinator()
    await _append(server, _committed(_logs_of(server, groups.log.topic_name), amount.groups))
    ended = _ended(_logs_of(server, transactions.log.topic_name), amount.transactional_ids)
    await _append(server, ended)


def filled(directory: str, amount: Amount) -> None:
    """Fill ``directory`` and leave it as a kill does."""

    async def run() -> None:
        settings = {
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "log.dirs": directory,
            "barnabas.http.listener": "",
        }
        config = load_config(overrides=[f"{key}={value}" for key, value in settings.items()]).config
        server = BrokerServer(config)
        await server.start()
        await fill(server, amount)
        await server.crash()

    asyncio.run(run())


async def _create_topics(server: BrokerServer, partitions: int) -> list[PartitionLog]:
    logs: list[PartitionLog] = []
    while len(logs) < partitions:
        count = min(TOPIC_PARTITIONS, partitions - len(logs))
        topic = await server.catalogue.create_topic(f"many-{len(logs)}", count, {})
        logs += [partition.log for partition in topic.partitions]
    return logs


async def _write(server: BrokerServer, logs: list[PartitionLog], log_bytes: int) -> None:
    """Spread ``log_bytes`` of large batches over the partitions."""
    now_ms = int(time.time() * 1000)
    value = bytes(range(250)) * (VALUE_BYTES // 250)
    batch = encode_batch([LogRecord(at, now_ms, None, value, ()) for at in range(BATCH_RECORDS)])
    for number in range(log_bytes // len(batch)):
        logs[number % len(logs)].append(memoryview(batch))
        if number % BATCHES_PER_TURN == 0:
            await server.transactions.durable()
    await server.transactions.durable()


def _logs_of(server: BrokerServer, name: str) -> list[PartitionLog]:
    topic = server.catalogue.topic(name)
    assert topic is not None
    return [partition.log for partition in topic.partitions]


Append = tuple[Callable[[memoryview], object], bytes]


async def _append(server: BrokerServer, appends: Iterator[Append]) -> None:
    """Append everything, some at a time, and wait until it is durable."""
    for count, (append, batch) in enumerate(appends):
        append(memoryview(batch))
        if count % APPENDS_PER_TURN == 0:
            await server.transactions.durable()
    await server.transactions.durable()


def _produced(logs: list[PartitionLog], producers: int) -> Iterator[Append]:
    """One record of each idempotent producer, on one partition after the other."""
    for number in range(producers):
        now_ms = int(time.time() * 1000)
        record = LogRecord(0, now_ms, None, b"%0100d" % number, ())
        batch = encode_batch([record], producer_id=number, producer_epoch=0, base_sequence=0)
        yield logs[number % len(logs)].append, batch


def _committed(logs: list[PartitionLog], groups: int) -> Iterator[Append]:
    """One committed offset of each group, as the group coordinator writes it."""
    now_ms = int(time.time() * 1000)
    for number in range(groups):
        name = f"group-{number}"
        offset = CommittedOffset(number, 0, "", now_ms, BY_RETENTION, bytes(16), 0)
        yield _append_of(logs, name, commit_record(name, "many-0", number % 1000, offset))


def _ended(logs: list[PartitionLog], ids: int) -> Iterator[Append]:
    """A producer id and a short transaction of each transactional id."""
    now_ms = int(time.time() * 1000)
    places = frozenset({TopicPartition("many-0", 0)})
    for number in range(ids):
        name = f"transactional-id-{number}"
        empty = Transaction(name, number, 0, TIMEOUT_MS, last_update_ms=now_ms)
        ongoing = empty._replace(state=State.ONGOING, partitions=places, start_ms=now_ms)
        decided = ongoing._replace(state=State.PREPARE_COMMIT)
        complete = decided._replace(state=State.COMPLETE_COMMIT, partitions=frozenset())
        for step in (empty, ongoing, decided, complete):
            yield _append_of(logs, name, record_of(step, 1))


def _append_of(logs: list[PartitionLog], key: str, record: Record) -> Append:
    log = logs[java_hash(key) % len(logs)]
    stored = LogRecord(0, int(time.time() * 1000), *record.encode(), ())
    return log.append_records, encode_batch([stored])


if __name__ == "__main__":
    filled(sys.argv[1], Amount(*map(int, sys.argv[2:])))
