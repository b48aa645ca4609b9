"""Debezium for PostgreSQL in Kafka Connect, with exactly-once support, through kills.

Transactions insert, update and delete rows; `pgoutput`, which is part of PostgreSQL, decodes them.
Each change is in the topic once, in the order of the commits.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import psycopg
import pytest

from tests.counterparts.barnabas_process import BarnabasProcess
from tests.counterparts.connect import ConnectWorker
from tests.counterparts.jars import debezium_postgresql
from tests.counterparts.postgresql_servers import HOST, ROLE, Server
from tests.interop.administration import create
from tests.interop.connect.changes import Changes
from tests.interop.connect.faults import ConnectFaults, Rounds
from tests.products import for_the_night
from tests.seeds import SEED
from tests.waiting import wait_until
from tests.workload.access import BROKER_SETTINGS

TOPIC = "changes.public.orders"
ROWS_AT_ONCE = 5
UPDATED, DELETED = 3, 5
"""Each third row is updated, each fifth one deleted, in the transaction that inserts it."""
JSON = {
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "key.converter.schemas.enable": "false",
    "value.converter.schemas.enable": "false",
}


@pytest.fixture
def database() -> Iterator[Server]:
    """A PostgreSQL with an empty table."""
    with Server(wal_level="logical") as server:
        server.execute("CREATE TABLE orders (id integer PRIMARY KEY, note text)")
        # A deleted row is in its change with all columns.
        server.execute("ALTER TABLE orders REPLICA IDENTITY FULL")
        yield server


@pytest.fixture
def broker(tmp_path) -> Iterator[BarnabasProcess]:
    """A broker with the topic."""
    with BarnabasProcess(tmp_path / "broker", **BROKER_SETTINGS) as running:
        create(running.bootstrap_servers, TOPIC, partitions=1)
        yield running


@pytest.fixture
def worker(broker, database, tmp_path) -> Iterator[ConnectWorker]:
    """A worker whose connector reads the changes of the table."""
    config = {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "exactly.once.support": "required",
        "database.hostname": HOST,
        "database.port": str(database.port),
        "database.user": ROLE,
        "database.password": "unused",
        "database.dbname": "postgres",
        "plugin.name": "pgoutput",
        "topic.prefix": "changes",
        "table.include.list": "public.orders",
        "snapshot.mode": "no_data",
        "tombstones.on.delete": "false",
        # A killed worker's connection may hold the slot for a moment.
        "slot.retry.delay.ms": "1000",
        "slot.max.retries": "60",
        **JSON,
    }
    plugins = [debezium_postgresql()]
    with ConnectWorker(tmp_path / "connect", broker.bootstrap_servers, plugins=plugins) as running:
        running.configure("orders", config)
        wait_until(running.all_run, running.output)
        wait_until(lambda: is_followed(database), running.output)
        yield running


def is_followed(database: Server) -> bool:
    """Return whether a client reads the changes of a replication slot."""
    return database.execute("SELECT active FROM pg_replication_slots") == [(True,)]


@for_the_night(
    beside="tests/interop/test_transactions.py::test_producer_commits_aborts_and_continues"
)
@pytest.mark.timeout(1200)
@pytest.mark.filterwarnings("ignore")
def test_debezium_copies_each_change_once_through_kills(broker, database, worker, say):
    with database.connect() as connection:
        changes = Changes(TOPIC, lambda numbers: change(connection, numbers))
        faults = ConnectFaults([broker], [worker], lambda: changes.add(ROWS_AT_ONCE))
        rounds = Rounds(faults, SEED)
        rounds.run()
    changes.judge(broker, worker.output, change_of)
    assert worker.failures() == []
    say(f"{len(changes.values)} changes of rows, {dict(rounds.faults)};")
    say(f"the worker ended {faults.ended} times by itself")


def change(connection: psycopg.Connection[object], numbers: Sequence[int]) -> list[str]:
    """Change rows in one transaction; return the changes as `change_of` does."""
    made = []
    with connection.transaction():
        for number in numbers:
            connection.execute("INSERT INTO orders VALUES (%s, 'new')", [number])
            made.append(f"c {number} new")
            if number % UPDATED == 0:
                connection.execute("UPDATE orders SET note = 'changed' WHERE id = %s", [number])
                made.append(f"u {number} changed")
            if number % DELETED == 0:
                note = "changed" if number % UPDATED == 0 else "new"
                connection.execute("DELETE FROM orders WHERE id = %s", [number])
                made.append(f"d {number} {note}")
    return made


def change_of(text: str) -> str:
    """Return the kind, the id and the note of a change by Debezium."""
    said = json.loads(text)
    row = said["before" if said["op"] == "d" else "after"]
    return f"{said['op']} {row['id']} {row['note']}"
